//! Repairs the condition on one field: its operators and values.

use serde_json::{Map, Value as Json, json};
use wayleave_model::mapping::Datatype;
use wayleave_model::nearest::nearest;
use wayleave_plan::filter::operators;
use wayleave_plan::refusal::operator_meant;
use wayleave_plan::value::{Value, date_text};
use wayleave_plan::view::FieldView;

use super::super::names::Names;
use super::{SIGNS, literal};

/// The intended condition on a field.
pub(super) fn repaired(names: &Names<'_>, field: Option<&FieldView>, wanted: &Json) -> Json {
    let Some(field) = field else {
        return wanted.clone();
    };
    let compared = ComparedField {
        names: Some(names),
        datatype: field.datatype(),
        field: Some(field),
    };
    compared.condition(wanted)
}

/// The intended condition on a measure.
pub(in super::super) fn of_measure(wanted: &Json) -> Json {
    let compared = ComparedField {
        names: None,
        datatype: Datatype::Number,
        field: None,
    };
    compared.condition(wanted)
}

struct ComparedField<'a> {
    /// Resolves the names of fields to compare with.
    names: Option<&'a Names<'a>>,
    datatype: Datatype,
    field: Option<&'a FieldView>,
}

impl ComparedField<'_> {
    fn condition(&self, wanted: &Json) -> Json {
        match wanted {
            Json::Null => json!({ "is_null": true }),
            Json::Array(values) => values.iter().map(|it| self.value(it)).collect(),
            Json::Object(wanted) => {
                let mut all = Map::new();
                for (op, value) in wanted {
                    all.extend(self.operator(op, value));
                }
                Json::Object(all)
            }
            scalar => {
                if let Some((op, value)) = self.signed(scalar) {
                    return Json::Object(self.operator(op, &value));
                }
                let condition = self.operator("eq", scalar);
                match condition.get("eq") {
                    Some(value) if condition.len() == 1 => value.clone(),
                    _ => Json::Object(condition),
                }
            }
        }
    }

    /// A comparison written as text: `">= 10"`.
    fn signed(&self, scalar: &Json) -> Option<(&'static str, Json)> {
        let text = scalar.as_str().map(str::trim)?;
        if matches!(self.datatype, Datatype::String | Datatype::Iri) {
            return None;
        }
        let (sign, op) = SIGNS.iter().find(|(sign, _)| text.starts_with(*sign))?;
        Some((*op, literal(text.strip_prefix(*sign)?.trim())?))
    }

    /// The intended operators for one operator and its value.
    fn operator(&self, op: &str, value: &Json) -> Map<String, Json> {
        let known = operators(self.datatype);
        let word = op.trim_start_matches('$').to_ascii_lowercase();
        if word == "between"
            && let Some([from, to]) = value.as_array().map(Vec::as_slice)
        {
            let mut both = self.operator("gte", from);
            both.extend(self.operator("lte", to));
            return both;
        }
        if let Some((op, text)) = pattern(&word, value) {
            return Map::from_iter([(op.to_owned(), text.into())]);
        }
        let op = if known.contains(&word.as_str()) {
            word
        } else {
            operator_meant(op, known).unwrap_or_else(|| op.to_owned())
        };
        let pair = |op: &str, value: Json| Map::from_iter([(op.to_owned(), value)]);
        match (op.as_str(), value) {
            ("eq", Json::Null) => pair("is_null", true.into()),
            ("ne", Json::Null) => pair("is_null", false.into()),
            ("eq", Json::Array(values)) => pair("in", self.list(values)),
            ("ne", Json::Array(values)) => pair("not_in", self.list(values)),
            ("in" | "not_in", Json::Array(values)) => pair(&op, self.list(values)),
            ("in" | "not_in", scalar) => pair(&op, json!([self.value(scalar)])),
            ("is_null", Json::Bool(_)) => pair(&op, value.clone()),
            ("is_null", Json::String(text)) => {
                pair(&op, (!text.eq_ignore_ascii_case("false")).into())
            }
            (op, scalar) => match (op, self.span(op, scalar)) {
                ("eq", Some((from, after))) => {
                    let mut both = pair("gte", from.into());
                    both.extend(pair("lt", after.into()));
                    both
                }
                ("gte" | "lt", Some((from, _))) => pair(op, from.into()),
                ("gt", Some((_, after))) => pair("gte", after.into()),
                ("lte", Some((_, after))) => pair("lt", after.into()),
                _ => pair(op, self.value(scalar)),
            },
        }
    }

    fn list(&self, values: &[Json]) -> Json {
        values.iter().map(|it| self.value(it)).collect()
    }

    /// The first day of a year, month or day and the first day after it, unless the text is itself
    /// a value of the field.
    fn span(&self, op: &str, value: &Json) -> Option<(String, String)> {
        let text = match value {
            Json::String(text) => text.trim().to_owned(),
            Json::Number(number) => number.to_string(),
            _ => return None,
        };
        let first = |text: &str| match Value::from_text(Datatype::Date, text) {
            Ok(Value::Date(days)) => Some(days),
            _ => None,
        };
        if let Some(day) = first(&text) {
            let is_meant = self.datatype == Datatype::Datetime && matches!(op, "eq" | "lte");
            return is_meant
                .then(|| Some((text, date_text(day.checked_add(1)?))))
                .flatten();
        }
        if !matches!(self.datatype, Datatype::Date | Datatype::Datetime) {
            return None;
        }
        let (year, month) = text.split_once('-').unwrap_or((text.as_str(), ""));
        let year: u16 = year.parse().ok().filter(|it| (1_000..9_999).contains(it))?;
        let months = match month {
            "" => 12,
            _ => 1,
        };
        let month: u16 = if month.is_empty() {
            1
        } else {
            month.parse().ok()?
        };
        let ends = month.checked_add(months)?;
        let after = if ends > 12 {
            format!("{}-{:02}-01", year + 1, ends - 12)
        } else {
            format!("{year}-{ends:02}-01")
        };
        let from = format!("{year}-{month:02}-01");
        first(&from).zip(first(&after)).map(|_| (from, after))
    }

    /// Converts a value to the datatype of the field, where possible.
    fn value(&self, value: &Json) -> Json {
        if let Some(other) = value.get("field").and_then(Json::as_str)
            && let Some(path) = self.names.and_then(|it| it.field(other))
        {
            return json!({ "field": path });
        }
        let text = value.as_str().map(str::trim);
        let is_value = |raw: &str| Value::from_text(self.datatype, raw).is_ok();
        let repaired = match (self.datatype, value) {
            (Datatype::Integer | Datatype::Decimal, Json::String(raw)) if is_value(raw) => None,
            (Datatype::Integer | Datatype::Number, Json::String(_)) => {
                let number = text.and_then(|it| serde_json::from_str::<Json>(it).ok());
                number.filter(Json::is_number)
            }
            (Datatype::Decimal, Json::String(_)) => {
                let plain = text.map(|it| it.trim_start_matches(['$', '€', '£']).replace(',', ""));
                plain.map(Json::from)
            }
            (Datatype::Boolean, Json::String(_)) => {
                match text.map(str::to_ascii_lowercase).as_deref() {
                    Some("true" | "yes" | "1") => Some(true.into()),
                    Some("false" | "no" | "0") => Some(false.into()),
                    _ => None,
                }
            }
            (Datatype::Boolean, Json::Number(number)) => match number.as_i64() {
                Some(0) => Some(false.into()),
                Some(1) => Some(true.into()),
                _ => None,
            },
            (Datatype::String | Datatype::Iri, Json::Number(number)) => {
                Some(number.to_string().into())
            }
            _ => None,
        };
        self.listed(repaired.unwrap_or_else(|| value.clone()))
    }

    /// The intended value of a closed list.
    fn listed(&self, value: Json) -> Json {
        let one_of = self.field.map_or(&[][..], |it| it.one_of());
        let known: Vec<String> = one_of.iter().map(ToString::to_string).collect();
        let Some(text) = value.as_str() else {
            return value;
        };
        if known.is_empty() || known.iter().any(|it| it == text) {
            return value;
        }
        match nearest(text, known.iter().map(String::as_str)) {
            Some(meant) => meant.into(),
            None => value,
        }
    }
}

/// Converts a pattern with `%` to one of our operators.
fn pattern(word: &str, value: &Json) -> Option<(&'static str, String)> {
    let folds = match word {
        "like" => false,
        "ilike" => true,
        _ => return None,
    };
    let text = value.as_str()?;
    let op = match (text.starts_with('%'), text.ends_with('%'), folds) {
        (_, _, true) => "icontains",
        (false, true, false) => "starts_with",
        (false, false, false) => "eq",
        _ => "contains",
    };
    let text = text.trim_matches('%');
    (!text.is_empty()).then(|| (op, text.to_owned()))
}
