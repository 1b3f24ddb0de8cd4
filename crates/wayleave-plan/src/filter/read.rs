//! Parses a filter object into a predicate.

use serde_json::{Map, Value as Json};
use wayleave_model::mapping::Datatype;

use super::{FilterOwner, FilterTarget, MAX_COMPARISONS, MAX_DEPTH, MAX_VALUES, operand};
use crate::plan::{Comparison, Predicate, TextMatch};
use crate::refusal::{Code, Kind, Refusal, quoted};
use crate::value::{Value, date_text, fold};

pub(super) struct Reader<'a, 'v> {
    owner: FilterOwner<'a, 'v>,
    /// Number of comparisons so far, in the whole filter.
    leaves: &'a mut usize,
}

fn invalid(message: impl Into<String>, param: &str) -> Refusal {
    Refusal::new(Code::InvalidFilter, message).param(param)
}

impl<'a, 'v> Reader<'a, 'v> {
    pub(super) fn new(owner: FilterOwner<'a, 'v>, leaves: &'a mut usize) -> Self {
        Self { owner, leaves }
    }

    pub(super) fn filter(
        &mut self,
        filter: &Map<String, Json>,
        path: &str,
        depth: usize,
    ) -> Result<Predicate, Refusal> {
        if filter.is_empty() {
            return Err(invalid(
                format!("`{path}` is empty; leave it out to ask for all"),
                path,
            )
            .allowed(self.owner.names()));
        }
        let mut parts = Vec::with_capacity(filter.len());
        for (name, wanted) in filter {
            let path = format!("{path}.{name}");
            parts.push(if name == "any" {
                self.any(wanted, &path, depth)?
            } else {
                self.field(name, wanted, &path, depth)?
            });
        }
        Ok(Predicate::all(parts))
    }

    fn any(&mut self, wanted: &Json, path: &str, depth: usize) -> Result<Predicate, Refusal> {
        if depth == MAX_DEPTH {
            let message = format!("`any` may be nested at most {MAX_DEPTH} deep");
            return Err(invalid(message, path));
        }
        let shape = || invalid("`any` must be a list of filters, not empty", path);
        let Json::Array(filters) = wanted else {
            return Err(shape());
        };
        if filters.is_empty() {
            return Err(shape());
        }
        let parts = filters
            .iter()
            .map(|filter| match filter {
                Json::Object(filter) => self.filter(filter, path, depth + 1),
                _ => Err(shape()),
            })
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Predicate::any(parts))
    }

    fn field(
        &mut self,
        name: &str,
        wanted: &Json,
        path: &str,
        depth: usize,
    ) -> Result<Predicate, Refusal> {
        if name.contains(['[', ']']) {
            let message = format!(
                "{} is not a field; write an operator inside, such as {{\"field\": {{\"gte\": 1}}}}",
                quoted(name)
            );
            return Err(invalid(message, path).allowed(self.owner.names()));
        }
        let Some(field) = self.owner.resolve(name) else {
            return match self.related(name, wanted, path, depth) {
                Some(condition) => condition,
                None => Err(self.unknown(name, path)),
            };
        };
        if !self.owner.may_name(&field) {
            let why = match field.masking() {
                None => "",
                Some(_) => ": it is masked",
            };
            let message = format!("field `{name}` cannot be filtered on{why}");
            return Err(invalid(message, path).allowed(self.owner.names()));
        }
        match wanted {
            Json::Array(values) => self.list(&field, values, false, path),
            Json::Object(wanted) => self.operators(&field, wanted, path),
            scalar => self.operator(&field, "eq", scalar, path),
        }
    }

    /// Parses a condition on related records: `{"lines": {"some": {…}}}`. `None` if the name is not
    /// a relation.
    fn related(
        &mut self,
        name: &str,
        wanted: &Json,
        path: &str,
        depth: usize,
    ) -> Option<Result<Predicate, Refusal>> {
        let FilterOwner::Caller(scope) = &mut self.owner else {
            return None;
        };
        scope.relation(name)?;
        if depth == MAX_DEPTH {
            let message = format!("`some` and `none` may be nested at most {MAX_DEPTH} deep");
            return Some(Err(invalid(message, path)));
        }
        let shape = || {
            let message = format!(
                "{} is a relation: write {{\"some\": {{…}}}} or {{\"none\": {{…}}}} with a filter of its records",
                quoted(name)
            );
            invalid(message, path).allowed(["some", "none"])
        };
        let Json::Object(wanted) = wanted else {
            return Some(Err(shape()));
        };
        let mut parts = Vec::with_capacity(wanted.len());
        for (quantifier, filter) in wanted {
            let negated = match quantifier.as_str() {
                "some" => false,
                "none" => true,
                _ => return Some(Err(shape())),
            };
            let Json::Object(filter) = filter else {
                return Some(Err(shape()));
            };
            let (related, mut inner) = scope.related(name)?;
            let path = format!("{path}.{quantifier}");
            // An empty filter matches any related record.
            let predicate = if filter.is_empty() {
                Ok(Predicate::True)
            } else {
                let owner = FilterOwner::Caller(&mut inner);
                Reader::new(owner, self.leaves).filter(filter, &path, depth + 1)
            };
            match predicate {
                Ok(predicate) => parts.push(Predicate::Exists {
                    related: Box::new(related),
                    joins: inner.take_joins(),
                    predicate: Box::new(predicate),
                    negated,
                }),
                Err(refusal) => return Some(Err(refusal)),
            }
        }
        if parts.is_empty() {
            return Some(Err(shape()));
        }
        Some(Ok(Predicate::all(parts)))
    }

    /// The refusal of an unknown name, with a hint for keywords of other query languages.
    fn unknown(&self, name: &str, path: &str) -> Refusal {
        let said = match name.trim_start_matches('$').to_ascii_lowercase().as_str() {
            "or" => Some("OR is `any`: {\"any\": [{…}, {…}]}"),
            "and" | "all" => Some("AND is implied between fields: put them side by side"),
            "field" | "column" | "op" | "operator" | "value" => Some(
                "the field itself is the key: {\"status\": \"open\"} or {\"amount\": {\"gte\": 1}}",
            ),
            "not" => Some("NOT is an operator of a field: `ne`, `not_in`, or {\"is_null\": false}"),
            _ => None,
        };
        if let Some(said) = said {
            return invalid(said, path).allowed(self.owner.names());
        }
        self.owner.unknown(name, path)
    }

    fn operators(
        &mut self,
        field: &FilterTarget,
        wanted: &Map<String, Json>,
        path: &str,
    ) -> Result<Predicate, Refusal> {
        if wanted.is_empty() {
            return Err(invalid(format!("`{path}` names no operator"), path)
                .allowed(field.operators().iter().copied()));
        }
        let parts = wanted
            .iter()
            .map(|(op, value)| self.operator(field, op, value, &format!("{path}.{op}")))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Predicate::all(parts))
    }

    fn operator(
        &mut self,
        field: &FilterTarget,
        op: &str,
        value: &Json,
        path: &str,
    ) -> Result<Predicate, Refusal> {
        if !field.operators().contains(&op) {
            return Err(unknown_operator(field, op, path));
        }
        if let Some(other) = other_field(value) {
            return self.compare_fields(field, op, other, path);
        }
        match op {
            "in" | "not_in" => match value {
                Json::Array(values) => self.list(field, values, op == "not_in", path),
                _ => Err(invalid(format!("`{op}` takes a list of values"), path)),
            },
            "is_null" => match value {
                Json::Bool(null) => {
                    self.leaf(path)?;
                    Ok(Predicate::IsNull {
                        column: field.column.clone(),
                        negated: !null,
                    })
                }
                _ => Err(invalid("`is_null` takes true or false", path)),
            },
            "contains" => self.like(field, TextMatch::Anywhere, false, value, path),
            "starts_with" => self.like(field, TextMatch::Beginning, false, value, path),
            "icontains" => self.like(field, TextMatch::Anywhere, true, value, path),
            "ieq" => self.like(field, TextMatch::Whole, true, value, path),
            _ => match comparison(op) {
                Some(comparison) => self.compare(field, comparison, value, path),
                None => Err(unknown_operator(field, op, path)),
            },
        }
    }

    fn compare(
        &mut self,
        field: &FilterTarget,
        comparison: Comparison,
        value: &Json,
        path: &str,
    ) -> Result<Predicate, Refusal> {
        self.leaf(path)?;
        let listed = matches!(comparison, Comparison::Eq | Comparison::Ne);
        if listed && value.is_array() {
            let several = if comparison == Comparison::Eq {
                "in"
            } else {
                "not_in"
            };
            let message = format!("expected one value; for a list use `{several}`");
            let mut refusal = invalid(message, path);
            refusal.did_you_mean = Some(several.to_owned());
            return Err(refusal);
        }
        if listed || comparison == Comparison::Lte {
            self.moment(field, comparison, value, path)?;
        }
        Ok(Predicate::Compare {
            column: field.column.clone(),
            comparison,
            value: operand(field, value, path, listed)?,
        })
    }

    /// Parses a comparison of two fields: `{"stock": {"lte": {"field": "reorder_level"}}}`.
    fn compare_fields(
        &mut self,
        field: &FilterTarget,
        op: &str,
        other: &str,
        path: &str,
    ) -> Result<Predicate, Refusal> {
        self.leaf(path)?;
        let Some(comparison) = comparison(op) else {
            let message = format!("`{op}` takes a value, not another field");
            return Err(invalid(message, path).allowed(["eq", "ne", "gt", "gte", "lt", "lte"]));
        };
        let param = format!("{path}.field");
        let Some(other) = self.owner.resolve(other) else {
            return Err(self.owner.unknown(other, &param));
        };
        if let Some(masked) = [field, &other]
            .into_iter()
            .find(|it| it.masking().is_some())
        {
            let message = format!(
                "field `{}` is masked, and not compared with another",
                masked.name
            );
            return Err(invalid(message, &param).allowed(self.owner.names()));
        }
        let Some(datatype) = field.datatype().common_with(other.datatype()) else {
            let message = format!(
                "`{}` ({}) cannot be compared with `{}` ({})",
                field.name,
                field.datatype(),
                other.name,
                other.datatype()
            );
            return Err(invalid(message, &param));
        };
        if !self.owner.may_name(&other) {
            let message = format!("field `{}` cannot be filtered on", other.name);
            return Err(invalid(message, &param).allowed(self.owner.names()));
        }
        Ok(Predicate::CompareColumns {
            left: field.column.clone().converted(datatype),
            comparison,
            right: other.column.converted(datatype),
        })
    }

    fn like(
        &mut self,
        field: &FilterTarget,
        place: TextMatch,
        folds: bool,
        value: &Json,
        path: &str,
    ) -> Result<Predicate, Refusal> {
        self.leaf(path)?;
        match operand(field, value, path, false)? {
            Value::Text(text) if place == TextMatch::Whole || !text.is_empty() => {
                Ok(Predicate::Like {
                    column: field.column.clone(),
                    text: if folds { fold(&text) } else { text.into() },
                    place,
                    fold: folds,
                })
            }
            _ => Err(invalid("the text to look for is empty", path)),
        }
    }

    fn list(
        &mut self,
        field: &FilterTarget,
        values: &[Json],
        negated: bool,
        path: &str,
    ) -> Result<Predicate, Refusal> {
        self.leaf(path)?;
        if values.is_empty() || values.len() > MAX_VALUES {
            let message = format!(
                "a list takes 1 to {MAX_VALUES} values, got {}; split longer lists over several calls",
                values.len()
            );
            return Err(invalid(message, path));
        }
        let values = values
            .iter()
            .map(|value| {
                self.moment(field, Comparison::Eq, value, path)?;
                operand(field, value, path, true)
            })
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Predicate::In {
            column: field.column.clone(),
            values,
            negated,
        })
    }

    /// Refuses a date where it would be compared as its midnight only, though the caller means the
    /// day. Hardly any record is at exactly that instant, and an empty or shorter page would not
    /// show the mistake.
    fn moment(
        &self,
        field: &FilterTarget,
        comparison: Comparison,
        value: &Json,
        path: &str,
    ) -> Result<(), Refusal> {
        let is_a_callers = self.owner.is_callers();
        let is_a_time = field.datatype() == Datatype::Datetime && field.masking().is_none();
        let (true, true, Some(day)) = (is_a_callers, is_a_time, value.as_str()) else {
            return Ok(());
        };
        let Ok(Value::Date(days)) = Value::from_text(Datatype::Date, day) else {
            return Ok(());
        };
        let after = date_text(days.saturating_add(1));
        let whole = if comparison == Comparison::Lte {
            format!("{{\"lt\": \"{after}\"}}")
        } else {
            format!("{{\"gte\": \"{day}\", \"lt\": \"{after}\"}}")
        };
        let message = format!(
            "`{}` is a time, and a date means its midnight UTC; for the whole day write {whole}, for the moment \"{day}T00:00:00Z\"",
            field.name
        );
        Err(invalid(message, path))
    }

    fn leaf(&mut self, path: &str) -> Result<(), Refusal> {
        *self.leaves += 1;
        if *self.leaves > MAX_COMPARISONS {
            let message = format!("a filter holds at most {MAX_COMPARISONS} comparisons");
            return Err(invalid(message, path));
        }
        Ok(())
    }
}

/// The field named by an operand: `{"field": "reorder_level"}`.
fn other_field(value: &Json) -> Option<&str> {
    let object = value.as_object().filter(|it| it.len() == 1)?;
    object.get("field")?.as_str()
}

/// The refusal of an operator that a field does not have.
fn unknown_operator(field: &FilterTarget, op: &str, path: &str) -> Refusal {
    let allowed = field.operators();
    let between = if op.trim_start_matches('$') == "between" && allowed.contains(&"gte") {
        "; write {\"gte\": …, \"lt\": …}"
    } else {
        ""
    };
    let message = format!(
        "`{}` ({}) has no operator {}{between}",
        field.name,
        field.kind(),
        quoted(op)
    );
    invalid(message, path)
        .allowed(allowed.iter().copied())
        .near_as(Kind::Operator, op)
}

/// The comparison that an operator stands for; `None` if it is another kind of operator.
fn comparison(op: &str) -> Option<Comparison> {
    match op {
        "eq" => Some(Comparison::Eq),
        "ne" => Some(Comparison::Ne),
        "gt" => Some(Comparison::Gt),
        "gte" => Some(Comparison::Gte),
        "lt" => Some(Comparison::Lt),
        "lte" => Some(Comparison::Lte),
        _ => None,
    }
}
