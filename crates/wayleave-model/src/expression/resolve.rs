//! Types the expressions of a mapping, whose paths lead through its streams.

use super::typing::{FieldTypes, Path, UnknownPath, type_field, type_measure};
use super::{AggregateTerm, ExpressionError, Formula, MAX_CHAIN, MAX_DEPTH, MAX_HOPS, MAX_LEAVES};
use crate::mapping::{Datatype, Field, Mapping, NamedMeasure, Origin, Relation, Stream};
use crate::nearest::nearest;

impl Mapping {
    /// Whether a relation leads from each record to at most one other: it joins on all fields of
    /// the other stream's key, or of a set declared unique.
    pub fn is_to_one(&self, relation: &Relation) -> bool {
        let Some(target) = self.stream(&relation.to) else {
            return false;
        };
        let joined = |name: &str| relation.on.iter().any(|join| join.field == name);
        let mut sets = std::iter::once(target.key.as_slice())
            .chain(target.unique.iter().map(|set| set.value.as_slice()));
        sets.any(|set| !set.is_empty() && set.iter().all(|name| joined(name)))
    }

    /// The formula of a computed field over stored fields; `None` for a stored field.
    pub fn formula(
        &self,
        stream: &Stream,
        field: &Field,
    ) -> Result<Option<Formula<Path>>, ExpressionError> {
        Expander::new(self).computed(stream, field)
    }

    /// The formula of a measure as written, with computed fields as leaves.
    pub fn written_measure(
        &self,
        stream: &Stream,
        measure: &NamedMeasure,
    ) -> Result<Formula<AggregateTerm<Path>>, ExpressionError> {
        let fields = StreamFields::new(self, stream);
        type_measure(measure.expression.syntax(), &fields)
    }

    /// The formula of a measure over stored fields.
    pub fn measure_formula(
        &self,
        stream: &Stream,
        measure: &NamedMeasure,
    ) -> Result<Formula<AggregateTerm<Path>>, ExpressionError> {
        let syntax = measure.expression.syntax();
        let typed = self.written_measure(stream, measure)?;
        let mut expander = Expander::new(self);
        let whole = || syntax.span.clone();
        typed.try_replace(&mut |leaf: &AggregateTerm<Path>| {
            let over = leaf.over.as_ref();
            let over = over.map(|it| expander.expanded(stream, it)).transpose();
            let over = over.map_err(|message| ExpressionError::new(message, whole()))?;
            let datatype = leaf.datatype();
            Ok(Formula::leaf(datatype, AggregateTerm { op: leaf.op, over }))
        })
    }
}

/// The fields of a stream, and the fields that its paths lead to.
struct StreamFields<'m> {
    mapping: &'m Mapping,
    stream: &'m Stream,
}

impl<'m> StreamFields<'m> {
    fn new(mapping: &'m Mapping, stream: &'m Stream) -> Self {
        Self { mapping, stream }
    }

    /// Follows a path to its last stream, and the field there.
    fn end(&self, path: &Path) -> Result<(&'m Stream, &'m Field), UnknownPath> {
        let Some((name, relations)) = path.0.split_last() else {
            return Err(unknown("a path names a field".to_owned(), None));
        };
        let mut stream = self.stream;
        for hop in relations {
            let Some(relation) = stream.relation(hop) else {
                let message = format!("stream `{}` has no relation `{hop}`", stream.name);
                let names = stream.relations.iter().map(|it| it.name.as_str());
                return Err(unknown(message, nearest(hop, names)));
            };
            if !self.mapping.is_to_one(relation) {
                return Err(UnknownPath {
                    message: format!(
                        "relation `{hop}` of `{}` leads to many records",
                        stream.name
                    ),
                    hint: Some(format!(
                        "a path follows relations that join the key, or a `unique` set, of `{}`",
                        relation.to
                    )),
                });
            }
            stream = self
                .mapping
                .stream(&relation.to)
                .ok_or_else(|| unknown(format!("stream `{}` is not mapped", relation.to), None))?;
        }
        match stream.field(name) {
            Some(field) if field.many.value => {
                let message = format!("field `{name}` of `{}` holds many values", stream.name);
                Err(unknown(message, None))
            }
            Some(field) => Ok((stream, field)),
            None if stream.relation(name).is_some() => Err(UnknownPath {
                message: format!("`{name}` is a relation of `{}`, and no field", stream.name),
                hint: Some(format!("name a field behind it: `{path}.…`")),
            }),
            None => {
                let message = format!("stream `{}` has no field `{name}`", stream.name);
                let names = stream.fields.iter().map(|it| it.name.as_str());
                Err(unknown(message, nearest(name, names)))
            }
        }
    }
}

fn unknown(message: String, near: Option<&str>) -> UnknownPath {
    UnknownPath {
        message,
        hint: near.map(|near| format!("did you mean `{near}`?")),
    }
}

impl FieldTypes for StreamFields<'_> {
    fn datatype(&self, path: &Path) -> Result<Datatype, UnknownPath> {
        self.end(path).map(|(_, field)| field.datatype.value)
    }
}

/// Replaces references to computed fields by their formulas.
struct Expander<'m> {
    mapping: &'m Mapping,
    /// The computed fields being expanded: `stream.field`.
    open: Vec<String>,
    leaves: usize,
}

impl<'m> Expander<'m> {
    fn new(mapping: &'m Mapping) -> Self {
        Self {
            mapping,
            open: Vec::new(),
            leaves: 0,
        }
    }

    fn computed(
        &mut self,
        stream: &Stream,
        field: &Field,
    ) -> Result<Option<Formula<Path>>, ExpressionError> {
        let Origin::Computed(expression) = &field.origin else {
            return Ok(None);
        };
        let syntax = expression.syntax();
        let fail = |message| ExpressionError::new(message, syntax.span.clone());
        let name = format!("{}.{}", stream.name, field.name);
        if self.open.contains(&name) {
            return Err(fail(format!("`{name}` would be computed from itself")));
        }
        if self.open.len() == MAX_CHAIN {
            return Err(fail(format!(
                "more than {MAX_CHAIN} computed fields depend on each other in a chain"
            )));
        }
        let fields = StreamFields::new(self.mapping, stream);
        let typed = type_field(syntax, &fields, field.datatype.value)?;
        self.open.push(name);
        let expanded = self.expanded(stream, &typed).map_err(fail)?;
        self.open.pop();
        Ok(Some(expanded))
    }

    fn expanded(
        &mut self,
        stream: &Stream,
        formula: &Formula<Path>,
    ) -> Result<Formula<Path>, String> {
        let mapping = self.mapping;
        let expanded = formula.try_replace(&mut |path: &Path| {
            let fields = StreamFields::new(mapping, stream);
            let (end, field) = fields.end(path).map_err(|unknown| unknown.message)?;
            self.leaves += 1;
            if self.leaves > MAX_LEAVES {
                return Err(format!(
                    "the expression refers to fields more than {MAX_LEAVES} times"
                ));
            }
            let inner = self.computed(end, field).map_err(|error| error.message)?;
            let Some(inner) = inner else {
                return Ok(Formula::leaf(field.datatype.value, path.clone()));
            };
            let hops = path.0.split_last().map_or(&[][..], |(_, hops)| hops);
            inner.try_replace(&mut |leaf: &Path| {
                let whole: Vec<String> = hops.iter().chain(&leaf.0).cloned().collect();
                if whole.len() > MAX_HOPS + 1 {
                    return Err(format!("`{path}` follows more than {MAX_HOPS} relations"));
                }
                let (_, end) = fields.end(&Path(whole.clone())).map_err(|it| it.message)?;
                Ok(Formula::leaf(end.datatype.value, Path(whole)))
            })
        })?;
        if expanded.depth() > MAX_DEPTH {
            return Err(format!(
                "with the computed fields in it this nests more than {MAX_DEPTH} deep"
            ));
        }
        Ok(expanded)
    }
}
