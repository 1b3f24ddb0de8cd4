//! `?where=<field>=<value>`: one clause, one equality, typed by its field before a store is touched.
//!
//! A value is bound and never part of a statement. Characters that end a text literal somewhere are
//! refused here all the same; `query_records` takes every text.

use serde_json::{Map, Number, Value as Json, json};
use wayleave_model::mapping::Datatype;
use wayleave_model::nearest::nearest;
use wayleave_plan::filter::MAX_TEXT_BYTES;
use wayleave_plan::query::QueryPlan;
use wayleave_plan::refusal::{Refusal, quoted};
use wayleave_plan::value::Value;
use wayleave_plan::view::{ConnectionView, FieldView, StreamView};

use super::parameter::InvalidParameter;
use super::query_of;
use crate::call_context::CallContext;

/// Maximum number of field names that a refusal offers.
const MAX_OFFERED: usize = 100;
/// Name of the parameter.
pub(super) const WHERE: &str = "where";

/// A filter of `query_records`.
pub(super) type Filter = Map<String, Json>;

/// A stream to read, and the filter its records must match.
pub(super) type FilteredStream<'v> = (&'v ConnectionView, &'v StreamView, Option<Filter>);

/// A clause as a caller wrote it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct WhereClause {
    field: String,
    value: String,
}

impl WhereClause {
    /// Parses a clause that is percent-decoded already.
    pub(super) fn parse(text: &str) -> Result<Self, InvalidParameter> {
        if let Some(found) = text.chars().find(|it| is_forbidden(*it)) {
            let message = "`where` takes no quotes, backslashes or control characters; a filter of \
                `query_records` takes every text";
            return Err(InvalidParameter::new(WHERE, "forbidden_character", message)
                .with("character", format!("U+{:04X}", u32::from(found))));
        }
        let (field, value) = text.split_once('=').unwrap_or((text, ""));
        if field.contains(['<', '>', '!', '~']) {
            let message = "`where` compares by `=` alone; a filter of `query_records` has the other \
                operators";
            return Err(InvalidParameter::new(
                WHERE,
                "unsupported_operator",
                message,
            ));
        }
        if field.is_empty() || !text.contains('=') {
            let message = "`where` is one clause, `<field>=<value>`";
            return Err(InvalidParameter::new(WHERE, "malformed_clause", message));
        }
        if field.contains('.') {
            let message = "`where` names a field of the type itself; a filter of `query_records` \
                follows paths";
            return Err(InvalidParameter::new(WHERE, "unsupported_path", message));
        }
        if value.len() > MAX_TEXT_BYTES {
            let message = format!("a value to compare with has at most {MAX_TEXT_BYTES} bytes");
            return Err(
                InvalidParameter::new(WHERE, "too_long", message).with("maximum", MAX_TEXT_BYTES)
            );
        }
        Ok(Self {
            field: field.to_owned(),
            value: value.to_owned(),
        })
    }

    /// The streams that have the field, each with the clause as its filter. A record of another
    /// stream has no value there, so it equals nothing.
    pub(super) fn streams<'v>(
        &self,
        call: &CallContext<'_>,
        holders: &[(&'v ConnectionView, &'v StreamView)],
    ) -> Result<Vec<FilteredStream<'v>>, InvalidParameter> {
        let mut refused = None;
        let mut streams = Vec::new();
        for (connection, stream) in holders {
            let Some(field) = stream.field(&self.field) else {
                continue;
            };
            match self.filter(call, connection, stream, field) {
                Ok(filter) => streams.push((*connection, *stream, Some(filter))),
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        if streams.is_empty() {
            return Err(refused.unwrap_or_else(|| self.unknown_field(holders)));
        }
        Ok(streams)
    }

    fn filter(
        &self,
        call: &CallContext<'_>,
        connection: &ConnectionView,
        stream: &StreamView,
        field: &FieldView,
    ) -> Result<Filter, InvalidParameter> {
        let name = field.name();
        if !field.can_filter() {
            let message = format!("field `{name}` cannot be filtered on");
            return Err(InvalidParameter::new(name, "not_filterable", message));
        }
        let value = match field.mask() {
            // A token is text, whatever value it stands for.
            Some(_) => Some(self.value.as_str().into()),
            None => literal(field.datatype(), &self.value),
        };
        let value = value.ok_or_else(|| mismatch(field))?;
        let filter = Map::from_iter([(name.to_owned(), value)]);
        let request = query_of(connection, stream, Some(filter.clone()), 1);
        match QueryPlan::new(&call.view, &request, call.seal) {
            Ok(_) => Ok(filter),
            Err(refusal) => Err(unlisted(field, &refusal).unwrap_or_else(|| mismatch(field))),
        }
    }

    /// The refusal of a field that no stream of the type has, or shows.
    fn unknown_field(&self, holders: &[(&ConnectionView, &StreamView)]) -> InvalidParameter {
        let fields = holders.iter().flat_map(|(_, stream)| stream.fields());
        let mut allowed: Vec<&str> = Vec::new();
        for field in fields.filter(|it| it.can_filter()) {
            if allowed.len() < MAX_OFFERED && !allowed.contains(&field.name()) {
                allowed.push(field.name());
            }
        }
        let shown = quoted(&self.field);
        let near = nearest(&self.field, allowed.iter().copied()).map(str::to_owned);
        let message = format!("there is no field {shown}");
        let field = shown.trim_matches('`');
        let refused =
            InvalidParameter::new(field, "unknown_field", message).with("allowed", json!(allowed));
        match near {
            Some(near) => refused.with("did_you_mean", near),
            None => refused,
        }
    }
}

/// Whether a character ends a text literal in some query language, or a line.
pub(crate) fn is_forbidden(c: char) -> bool {
    matches!(c, '"' | '\'' | '`' | '\\' | '\u{2028}' | '\u{2029}') || c.is_control()
}

/// A text as an operand of `query_records`; `None` if it is not of the datatype.
fn literal(datatype: Datatype, text: &str) -> Option<Json> {
    match datatype {
        Datatype::String | Datatype::Iri => Some(text.into()),
        Datatype::Boolean => match text {
            "true" => Some(true.into()),
            "false" => Some(false.into()),
            _ => None,
        },
        Datatype::Number => {
            let number = serde_json::from_str::<Number>(text).ok();
            // The parser would accept surrounding white space.
            number
                .filter(|_| !text.contains(char::is_whitespace))
                .map(Json::Number)
        }
        Datatype::Integer | Datatype::Decimal | Datatype::Date | Datatype::Datetime => {
            let is_one = Value::from_text(datatype, text).is_ok();
            is_one.then(|| text.into())
        }
        Datatype::Json => None,
    }
}

fn mismatch(field: &FieldView) -> InvalidParameter {
    let (name, datatype) = (field.name(), field.datatype());
    if field.is_masked() {
        let message = format!("`{name}` is masked; compare it with a token that results show");
        return InvalidParameter::new(name, "type_mismatch", message)
            .with("expected_datatype", "token");
    }
    let message = format!("`{name}` ({datatype}) takes {}", spelling(datatype));
    InvalidParameter::new(name, "type_mismatch", message)
        .with("expected_datatype", datatype.to_string())
}

/// The refusal of a value outside the field's closed list.
fn unlisted(field: &FieldView, refusal: &Refusal) -> Option<InvalidParameter> {
    (!refusal.allowed.is_empty()).then(|| {
        let message = format!("`{}` never has that value", field.name());
        InvalidParameter::new(field.name(), "not_one_of", message)
            .with("expected_datatype", field.datatype().to_string())
            .with("allowed", json!(refusal.allowed))
    })
}

/// How a value of the datatype is written in a URI.
const fn spelling(datatype: Datatype) -> &'static str {
    match datatype {
        Datatype::String | Datatype::Iri => "a text",
        Datatype::Integer => "a whole number, such as 42",
        Datatype::Decimal => "a decimal, such as 12.50",
        Datatype::Number => "a number, such as 1.5",
        Datatype::Boolean => "true or false",
        Datatype::Date => "a date, such as 2026-01-31",
        Datatype::Datetime => "an RFC 3339 time, such as 2026-01-31T09:30:00Z",
        Datatype::Json => "no comparison",
    }
}
