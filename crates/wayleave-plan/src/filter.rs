//! The filter language: an object of fields, typed by the mapping before any store is touched.
//!
//! A value is a scalar (equals), a list (any of) or an object of operators, all of which hold.
//! All fields must hold; `any` holds a list of filters of which one must hold. A comparison with NULL
//! is false, and so is its opposite; only `is_null` sees NULLs. An empty filter is refused: it
//! says nothing, and a caller that sends one meant something.

mod operand;
mod read;

use serde_json::{Map, Value as Json};
use wayleave_model::mapping::{Datatype, Stream};

use crate::plan::Predicate;
use crate::refusal::{Call, Code, Refusal, quoted};
use crate::view::{FieldView, StreamView};

/// How deep `any` may nest.
pub const MAX_DEPTH: usize = 3;
/// How many comparisons a filter may hold; a list is one.
pub const MAX_LEAVES: usize = 64;
/// How many values a list may hold.
pub const MAX_VALUES: usize = 100;
/// How many bytes a text to compare with may have.
pub const MAX_TEXT: usize = 4_096;

/// The operators of a field of that datatype.
pub const fn operators(datatype: Datatype) -> &'static [&'static str] {
    match datatype {
        Datatype::String | Datatype::Iri => &[
            "eq",
            "ne",
            "in",
            "not_in",
            "gt",
            "gte",
            "lt",
            "lte",
            "contains",
            "starts_with",
            "is_null",
        ],
        Datatype::Integer
        | Datatype::Decimal
        | Datatype::Number
        | Datatype::Date
        | Datatype::Datetime => &[
            "eq", "ne", "in", "not_in", "gt", "gte", "lt", "lte", "is_null",
        ],
        Datatype::Boolean => &["eq", "ne", "in", "not_in", "is_null"],
        Datatype::Json => &[],
    }
}

/// Whose filter it is, which decides the fields it may name.
#[derive(Clone, Copy)]
enum FilterOwner<'a> {
    /// A caller's: visible fields that the mapping lets filters name.
    Caller(&'a StreamView),
    /// A grant's: every single-valued field of the mapping.
    Grant(&'a Stream),
}

impl FilterOwner<'_> {
    fn field(self, name: &str) -> Option<FieldView> {
        match self {
            Self::Caller(view) => view.resolve(name),
            Self::Grant(stream) => FieldView::all(stream).find(|field| field.name() == name),
        }
    }

    fn may_name(self, field: &FieldView) -> bool {
        match self {
            Self::Caller(_) => field.can_filter(),
            Self::Grant(_) => field.is_scalar(),
        }
    }

    /// The refusal of `relation.field`, where that relation may be followed: how to ask instead.
    fn elsewhere(self, name: &str) -> Option<Refusal> {
        let Self::Caller(view) = self else {
            return None;
        };
        let relation = view.relation_of(name)?;
        let ours = view.joined_on(relation);
        let ours: Vec<String> = ours.map(|field| format!("`{}`", field.name())).collect();
        let then = match ours.join(" and ") {
            ours if ours.is_empty() => String::new(),
            ours => format!(", then filter this stream on {ours}"),
        };
        let message = format!(
            "{} is of another stream; filter `{}` first{then}",
            quoted(name),
            relation.to
        );
        Some(Refusal::new(Code::UnknownField, message).next(Call::new(
            "query_records",
            [
                ("stream", relation.to.as_str().into()),
                ("connection_id", view.connection_id().into()),
            ],
        )))
    }

    fn names(self) -> Vec<String> {
        let named = |field: FieldView| self.may_name(&field).then(|| field.name().to_owned());
        match self {
            Self::Caller(view) => view.fields().cloned().filter_map(named).collect(),
            Self::Grant(stream) => FieldView::all(stream).filter_map(named).collect(),
        }
    }
}

/// A caller's filter as a predicate.
pub(crate) fn of_caller(
    view: &StreamView,
    filter: &Map<String, Json>,
) -> Result<Predicate, Refusal> {
    read::Reader::new(FilterOwner::Caller(view)).filter(filter, "filter", 0)
}

/// A grant's row filter as a predicate.
pub(crate) fn of_grant(stream: &Stream, filter: &Map<String, Json>) -> Result<Predicate, Refusal> {
    read::Reader::new(FilterOwner::Grant(stream)).filter(filter, "rows", 0)
}

/// Whether a row filter fits a mapped stream: what to ask before a grant is made.
pub fn check_rows(stream: &Stream, filter: &Map<String, Json>) -> Result<(), Refusal> {
    of_grant(stream, filter).map(drop)
}
