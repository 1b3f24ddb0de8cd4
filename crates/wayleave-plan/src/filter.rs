//! The filter language: an object of fields, typed by the mapping before any store is queried.
//!
//! A value is a scalar (equals), a list (any of) or an object of operators, all of which must hold.
//! All fields must hold; `any` takes a list of filters of which one must hold. A comparison with
//! NULL is false, and so is its negation; only `is_null` matches NULL. An empty filter is refused:
//! it has no effect, and a caller that sends one expected some. Operands are typed strictly: a
//! model that compares a number with a text, or a date with a year, has misunderstood the field,
//! and an empty page would hide that.

mod read;

use serde_json::{Map, Number, Value as Json};
use wayleave_model::mapping::{Datatype, ExactNumber, Stream};

use crate::layout;
use crate::mask::Masking;
use crate::plan::{Column, Predicate, TARGET};
use crate::refusal::{Code, Refusal, quoted};
use crate::scope::PathScope;
use crate::value::Value;
use crate::view::FieldView;

/// Maximum nesting of `any`, `some` and `none`.
pub const MAX_DEPTH: usize = 3;
/// Maximum number of comparisons in a filter; a list counts as one.
pub const MAX_COMPARISONS: usize = 64;
/// Maximum number of values in a list.
pub const MAX_VALUES: usize = 100;
/// Maximum size of a text operand, in bytes.
pub const MAX_TEXT_BYTES: usize = 4_096;
/// Decimal digits that a floating-point number preserves.
const SAFE_DIGITS: usize = 15;

/// The operators for fields of a datatype.
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
            "icontains",
            "ieq",
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

/// The operators for fields shown as tokens.
pub const TOKEN_OPERATORS: &[&str] = &["eq", "in"];

/// The author of a filter, which determines the fields it may name.
enum FilterOwner<'a, 'v> {
    /// A caller: visible fields that may be filtered on, and paths to such fields.
    Caller(&'a mut PathScope<'v>),
    /// A grant: every single-valued stored field of the stream.
    Grant(&'a Stream),
    /// A caller, over groups: their measures.
    Groups(&'a [MeasuredColumn]),
}

/// A measure of groups, by its name in the call.
#[derive(Debug, Clone)]
pub(crate) struct MeasuredColumn {
    pub(crate) name: String,
    pub(crate) column: Column,
}

/// The left-hand side of a comparison.
#[derive(Debug, Clone)]
struct FilterTarget {
    name: String,
    column: Column,
    /// The field; `None` for a measure.
    field: Option<FieldView>,
}

impl FilterTarget {
    fn datatype(&self) -> Datatype {
        self.column.datatype
    }

    /// The mask of its values, if they are masked.
    fn masking(&self) -> Option<&Masking> {
        self.field.as_ref()?.masking()
    }

    /// The operators it supports.
    fn operators(&self) -> &'static [&'static str] {
        match self.masking() {
            None => operators(self.datatype()),
            Some(_) => TOKEN_OPERATORS,
        }
    }

    /// Its datatype or mask, for messages.
    fn kind(&self) -> String {
        match self.masking() {
            None => self.datatype().to_string(),
            Some(masking) => format!("masked by `{}`", masking.mask()),
        }
    }
}

impl FilterOwner<'_, '_> {
    fn is_callers(&self) -> bool {
        !matches!(self, Self::Grant(_))
    }

    fn resolve(&mut self, name: &str) -> Option<FilterTarget> {
        match self {
            Self::Caller(scope) => scope.resolve(name).map(|named| FilterTarget {
                name: named.name,
                column: named.column,
                field: Some(named.field),
            }),
            Self::Grant(stream) => {
                let field = FieldView::all(stream).find(|field| field.name() == name)?;
                Some(FilterTarget {
                    name: name.to_owned(),
                    column: field.stored(TARGET)?,
                    field: Some(field),
                })
            }
            Self::Groups(measures) => {
                let measure = measures.iter().find(|it| it.name == name)?;
                Some(FilterTarget {
                    name: name.to_owned(),
                    column: measure.column.clone(),
                    field: None,
                })
            }
        }
    }

    fn may_name(&self, compared: &FilterTarget) -> bool {
        match &compared.field {
            Some(field) if self.is_callers() => field.can_filter(),
            Some(field) => field.is_scalar(),
            None => true,
        }
    }

    /// The refusal of an unknown name.
    fn unknown(&self, name: &str, path: &str) -> Refusal {
        if let Self::Caller(scope) = self {
            return layout::unknown_field(scope, name, path);
        }
        let message = match self {
            Self::Groups(_) => format!("this call has no measure {}", quoted(name)),
            _ => format!("there is no field {}", quoted(name)),
        };
        Refusal::new(Code::UnknownField, message)
            .param(path)
            .allowed(self.names())
            .near(name)
    }

    fn names(&self) -> Vec<String> {
        let name = |field: &FieldView| field.name().to_owned();
        match self {
            Self::Caller(scope) => {
                let fields = scope.stream().fields();
                fields
                    .filter(|field| field.can_filter())
                    .map(name)
                    .collect()
            }
            Self::Grant(stream) => {
                let fields = FieldView::all(stream).filter(FieldView::is_scalar);
                fields.map(|field| name(&field)).collect()
            }
            Self::Groups(measures) => measures.iter().map(|it| it.name.clone()).collect(),
        }
    }
}

/// Parses a caller's filter.
pub(crate) fn parse_caller_filter(
    scope: &mut PathScope<'_>,
    filter: &Map<String, Json>,
) -> Result<Predicate, Refusal> {
    parse_caller_filter_at(scope, filter, "filter")
}

/// Parses a caller's filter in another argument.
pub(crate) fn parse_caller_filter_at(
    scope: &mut PathScope<'_>,
    filter: &Map<String, Json>,
    param: &str,
) -> Result<Predicate, Refusal> {
    let mut leaves = 0;
    read::Reader::new(FilterOwner::Caller(scope), &mut leaves).filter(filter, param, 0)
}

/// Parses a caller's filter on groups.
pub(crate) fn parse_having(
    measures: &[MeasuredColumn],
    having: &Map<String, Json>,
) -> Result<Predicate, Refusal> {
    let mut leaves = 0;
    read::Reader::new(FilterOwner::Groups(measures), &mut leaves).filter(having, "having", 0)
}

/// Parses a grant's row filter.
pub(crate) fn parse_row_filter(
    stream: &Stream,
    filter: &Map<String, Json>,
) -> Result<Predicate, Refusal> {
    let mut leaves = 0;
    read::Reader::new(FilterOwner::Grant(stream), &mut leaves).filter(filter, "rows", 0)
}

/// Checks that a row filter fits a mapped stream, before a grant is made.
pub fn check_rows(stream: &Stream, filter: &Map<String, Json>) -> Result<(), Refusal> {
    parse_row_filter(stream, filter).map(drop)
}

/// Parses an operand as a value of the field's datatype. If `listed`, it must be in the field's
/// list of values.
fn operand(
    compared: &FilterTarget,
    json: &Json,
    path: &str,
    listed: bool,
) -> Result<Value, Refusal> {
    let refuse = |message: String| Refusal::new(Code::InvalidFilter, message).param(path);
    if json.is_null() {
        let message = format!(
            "nothing equals null; write {{\"{}\": {{\"is_null\": true}}}}",
            compared.name
        );
        return Err(refuse(message));
    }
    if json
        .as_str()
        .is_some_and(|text| text.len() > MAX_TEXT_BYTES)
    {
        let message = format!("a text to compare with has at most {MAX_TEXT_BYTES} bytes");
        return Err(refuse(message));
    }
    let datatype = compared.datatype();
    if let Some(masking) = compared.masking() {
        // Everything that is not a valid token gets the same refusal: an altered token, another
        // grant's, a plain value.
        let opened = json.as_str().and_then(|it| masking.open(it, datatype));
        return opened.ok_or_else(|| {
            refuse(format!(
                "`{}` is masked; compare it with a token from your own results, of a value of at most 250 bytes",
                compared.name
            ))
        });
    }
    let value = typed(datatype, json).ok_or_else(|| {
        refuse(format!(
            "`{}` ({datatype}) takes {}",
            compared.name,
            spelling(datatype)
        ))
    })?;
    let one_of = compared.field.as_ref().map_or(&[][..], |it| it.one_of());
    let known = |text: &str| one_of.iter().any(|one| one.to_string() == text);
    if listed
        && !one_of.is_empty()
        && let Some(text) = value.to_text()
        && !known(&text)
    {
        let message = format!("`{}` never has that value", compared.name);
        return Err(refuse(message)
            .allowed(one_of.iter().map(ToString::to_string))
            .near(&text));
    }
    Ok(value)
}

fn typed(datatype: Datatype, json: &Json) -> Option<Value> {
    match (datatype, json) {
        // PostgreSQL texts cannot contain NUL, so no store is queried for it.
        (Datatype::String | Datatype::Iri, Json::String(text)) if text.contains('\0') => None,
        (Datatype::Number, Json::Number(number)) => {
            number.as_f64().filter(|n| n.is_finite()).map(Value::Number)
        }
        (Datatype::Boolean, Json::Bool(boolean)) => Some(Value::Boolean(*boolean)),
        (Datatype::Integer, Json::Number(number)) => whole(number).map(Value::Integer),
        (Datatype::Decimal, Json::Number(number)) => {
            decimal(number).map(|it| Value::Decimal(it.into()))
        }
        (Datatype::Number | Datatype::Boolean | Datatype::Json, _) => None,
        (datatype, Json::String(text)) => Value::from_text(datatype, text).ok(),
        _ => None,
    }
}

/// An integer, also written as `10.0` by clients without an integer type, if it is unambiguous.
fn whole(number: &Number) -> Option<i128> {
    let exact = || -> Option<i128> {
        let exact = ExactNumber::from_f64(number.as_f64()?)?;
        exact.to_string().parse().ok()
    };
    number
        .as_i64()
        .map(i128::from)
        .or_else(|| number.as_u64().map(i128::from))
        .or_else(|| exact().filter(|it| it.unsigned_abs() < 1 << 53))
}

/// The decimal that a JSON number was written as, if it is unambiguous.
fn decimal(number: &Number) -> Option<String> {
    if let Some(whole) = whole(number) {
        return Some(whole.to_string());
    }
    let exact = ExactNumber::from_f64(number.as_f64()?)?.to_string();
    let significant = exact
        .trim_start_matches(['-', '0', '.'])
        .bytes()
        .filter(u8::is_ascii_digit)
        .count();
    (significant <= SAFE_DIGITS).then_some(exact)
}

/// How to write a value of the datatype.
const fn spelling(datatype: Datatype) -> &'static str {
    match datatype {
        Datatype::String | Datatype::Iri => "a text, without U+0000",
        Datatype::Integer => "a whole number, or one in quotes beyond 2^53",
        Datatype::Decimal => "a decimal in quotes, such as \"12.50\"",
        Datatype::Number => "a number",
        Datatype::Boolean => "true or false",
        Datatype::Date => "a date, such as \"2026-01-31\"",
        Datatype::Datetime => {
            "an RFC 3339 time, such as \"2026-01-31T09:30:00Z\"; `gt`, `gte` and `lt` also a date, for its midnight UTC"
        }
        Datatype::Json => "no comparison",
    }
}
