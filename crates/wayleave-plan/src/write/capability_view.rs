//! A capability that a grant includes.

use std::sync::Arc;

use wayleave_model::mapping::{Action, Capability, Mapping, Relation};
use wayleave_model::ratify::Ratified;

use crate::plan::{Comparison, Predicate, Target};
use crate::value::Value;
use crate::view::{FieldView, StreamView};

use super::Assignment;
use super::table_rules::UniqueRule;

/// A capability that a grant includes, with everything it needs. Cheap to clone.
#[derive(Debug, Clone)]
pub struct CapabilityView(Arc<CapabilityInner>);

#[derive(Debug)]
struct CapabilityInner {
    mapping: Arc<Ratified<Mapping>>,
    /// The index in the mapping.
    index: usize,
    tool: String,
    stream: StreamView,
    target: Arc<Target>,
    fields: Vec<FieldView>,
    /// The references that these fields determine.
    references: Vec<FieldReference>,
    /// Columns that the row filter pins to one value.
    pinned: Vec<(String, Value)>,
    /// For a deletion: a suspended stream whose records may refer to the deleted one.
    suspended_referrer: Option<Arc<str>>,
}

/// A relation that the fields of a write determine, and its target.
#[derive(Debug, Clone)]
pub(super) struct FieldReference {
    /// The joined fields, in the relation's order.
    pub(super) fields: Vec<String>,
    pub(super) relation: Relation,
    pub(super) to: StreamView,
}

/// Checks that a collision of unique values cannot involve a masked field: it would reveal that two
/// values are equal.
fn check_unique_unmasked(stream: &StreamView, written: &[FieldView]) -> Result<(), String> {
    for set in &stream.mapped.unique {
        let writes = |name: &str| written.iter().any(|it| it.name() == name);
        let masked = set.iter().find(|name| stream.is_field_masked(name));
        if let (true, Some(name)) = (set.iter().any(|name| writes(name)), masked) {
            return Err(format!(
                "a unique set contains both a written field and `{name}`, which is masked"
            ));
        }
    }
    Ok(())
}

impl CapabilityView {
    /// Builds the view of the capability with that index, or returns the reason to withhold it.
    pub(crate) fn new(
        mapping: &Arc<Ratified<Mapping>>,
        index: usize,
        streams: &[StreamView],
    ) -> Result<Self, String> {
        let capability = mapping.capabilities.get(index).ok_or("it is gone")?;
        let seen = |name: &str| streams.iter().find(|it| it.name() == name);
        let stream = seen(&capability.stream).ok_or("its stream is not granted")?;
        let fields = capability.fields.iter().map(|name| {
            let field = stream.field(name);
            match field {
                None => Err(format!("`{name}` is not granted")),
                Some(field) if field.is_masked() => Err(format!("`{name}` is masked")),
                Some(field) => Ok(field.clone()),
            }
        });
        let fields: Vec<FieldView> = fields.collect::<Result<_, _>>()?;
        check_unique_unmasked(stream, &fields)?;
        let mut references = Vec::new();
        for relation in &stream.mapped.relations {
            if !mapping.is_to_one(relation) || !is_decided(capability, stream, relation) {
                continue;
            }
            let to = seen(&relation.to).filter(|_| stream.relation(&relation.name).is_some());
            let to =
                to.ok_or_else(|| format!("`{}` leads to what is not granted", relation.name))?;
            // All columns of a relation together identify the target, so all of them must be
            // visible.
            let joined = relation.on.iter().map(|join| {
                let field = stream.field_of_column(&join.column);
                let field = field.map(|field| field.name().to_owned());
                field.ok_or_else(|| format!("`{}` joins on what is not granted", relation.name))
            });
            let joined: Vec<String> = joined.collect::<Result<_, _>>()?;
            references.push(FieldReference {
                fields: joined,
                relation: Relation::clone(relation),
                to: to.clone(),
            });
        }
        let leads_here = |it: &&StreamView| {
            let mut relations = it.mapped.relations.iter();
            relations.any(|it| *it.to.value == *stream.name() && mapping.is_to_one(it))
        };
        let is_deletion = *capability.action == Action::Delete;
        let mut referrers = streams.iter().filter(leads_here).filter(|_| is_deletion);
        let view = Self(Arc::new(CapabilityInner {
            suspended_referrer: referrers.find_map(|it| it.target.suspended.clone()),
            mapping: Arc::clone(mapping),
            index,
            tool: capability.tool_name(&mapping.dataset),
            target: Arc::new(Target {
                source: capability.source.value.clone(),
                ..Target::clone(&stream.target)
            }),
            pinned: pinned(stream),
            stream: stream.clone(),
            fields,
            references,
        }));
        view.referring_streams_are_whole(streams)?;
        Ok(view)
    }

    /// A suspended stream that a write refers to, or, for a deletion, one that refers to its
    /// record.
    pub(super) fn suspended_stream(&self, set: &[Assignment]) -> Option<&Arc<str>> {
        let is_set = |name: &String| set.iter().any(|it| it.field == *name);
        let referred = self.0.references.iter();
        let referred = referred.filter(|it| it.fields.iter().any(is_set));
        let mut referred = referred.filter_map(|it| it.to.target.suspended.as_ref());
        referred.next().or(self.0.suspended_referrer.as_ref())
    }

    /// Checks that no record that refers to a deleted one is hidden. If the store allows the
    /// deletion, it removes such records or leaves them dangling.
    fn referring_streams_are_whole(&self, streams: &[StreamView]) -> Result<(), String> {
        if self.action() != Action::Delete {
            return Ok(());
        }
        for (from, _) in self.referring() {
            let seen = streams.iter().find(|it| *it.name() == *from.name.value);
            if !seen.is_some_and(StreamView::is_whole) {
                return Err(format!(
                    "records of `{}` that it hides may refer to it",
                    from.name
                ));
            }
        }
        Ok(())
    }

    /// The to-one relations that lead to the stream, each with its own stream.
    pub(super) fn referring(
        &self,
    ) -> impl Iterator<Item = (&wayleave_model::mapping::Stream, &Relation)> {
        let mapping = &self.0.mapping;
        mapping.streams.iter().flat_map(move |from| {
            let leading = from
                .relations
                .iter()
                .filter(move |it| *it.to.value == *self.stream().name() && mapping.is_to_one(it));
            leading.map(move |relation| (from.as_ref(), relation.as_ref()))
        })
    }

    /// The mapped capability.
    #[expect(clippy::expect_used, reason = "a ratified mapping does not change")]
    pub fn capability(&self) -> &Capability {
        let found = self.0.mapping.capabilities.get(self.0.index);
        found.expect("the view was made of it")
    }

    /// The mapping that defines it.
    pub fn mapping(&self) -> &Mapping {
        &self.0.mapping
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.capability().name
    }

    /// The name of its tool.
    pub fn tool(&self) -> &str {
        &self.0.tool
    }

    /// Its action.
    pub fn action(&self) -> Action {
        self.capability().action.value
    }

    /// The stream that it writes.
    pub fn stream(&self) -> &StreamView {
        &self.0.stream
    }

    /// The fields that a caller may set.
    pub fn fields(&self) -> &[FieldView] {
        &self.0.fields
    }

    pub(super) fn target(&self) -> &Arc<Target> {
        &self.0.target
    }

    pub(super) fn references(&self) -> &[FieldReference] {
        &self.0.references
    }

    /// The value that the row filter pins a column to.
    pub(super) fn pinned(&self, column: &str) -> Option<&Value> {
        let mut pinned = self.0.pinned.iter();
        pinned
            .find(|(name, _)| name == column)
            .map(|(_, value)| value)
    }

    /// Whether the grant hides some of the stream's records.
    pub(super) fn is_narrowed(&self) -> bool {
        !self.0.stream.is_whole()
    }

    /// Whether a unique constraint may compare values of a masked field. What an expression or a
    /// condition reads is unknown.
    pub(super) fn may_compare_masked(&self, rule: &UniqueRule) -> bool {
        let stream = &self.0.stream;
        let mut masked = stream.masked_fields();
        if rule.is_opaque {
            return masked.next().is_some();
        }
        masked.any(|field| {
            let column = stream.mapped.field(field).and_then(|it| it.column());
            column.is_some_and(|it| rule.columns.contains(&it.value))
        })
    }
}

/// Whether a write determines the target of a relation: it sets one of the joined columns.
fn is_decided(capability: &Capability, stream: &StreamView, relation: &Relation) -> bool {
    relation.on.iter().any(|join| {
        let field = stream.mapped.field_of_column(&join.column);
        field.is_some_and(|field| capability.writes(&field.name))
    })
}

/// The columns that a stream's row filter pins to one value.
fn pinned(stream: &StreamView) -> Vec<(String, Value)> {
    let parts = match stream.granted_rows() {
        Predicate::Granted(inner) => match *inner {
            Predicate::And(parts) => parts,
            one => vec![one],
        },
        _ => Vec::new(),
    };
    let pinned = parts.into_iter().filter_map(|part| match part {
        Predicate::Compare {
            column,
            comparison: Comparison::Eq,
            value,
        } => Some((column.own_name()?.to_owned(), value)),
        _ => None,
    });
    pinned.collect()
}
