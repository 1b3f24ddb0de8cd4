//! Claims of a token about its holder, for the row filters of its grants.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

/// Claims by name.
pub type Claims = BTreeMap<String, Claim>;

/// One claim of a token about its holder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Claim {
    /// True or false.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// A text.
    Text(String),
}

impl Claim {
    fn to_json(&self) -> Json {
        match self {
            Self::Boolean(it) => Json::Bool(*it),
            Self::Integer(it) => Json::from(*it),
            Self::Text(it) => Json::String(it.clone()),
        }
    }

    /// Converts a JSON scalar to a claim; `None` if it cannot be one.
    pub fn from_json(value: &Json) -> Option<Self> {
        match value {
            Json::Bool(it) => Some(Self::Boolean(*it)),
            Json::Number(it) => it.as_i64().map(Self::Integer),
            Json::String(it) => Some(Self::Text(it.clone())),
            Json::Null | Json::Array(_) | Json::Object(_) => None,
        }
    }
}

impl std::fmt::Display for Claim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Boolean(it) => it.fmt(f),
            Self::Integer(it) => it.fmt(f),
            Self::Text(it) => it.fmt(f),
        }
    }
}

/// Visits every operand of a row filter with the name of its field. A key of a filter is a field,
/// or `any` with a list of filters; the value of a field is an operand, a list of operands, or an
/// object of operators. Other shapes are skipped, for the planner to refuse.
pub fn visit_operands(filter: &mut Map<String, Json>, visit: &mut dyn FnMut(&str, &mut Json)) {
    for (name, wanted) in filter {
        match wanted {
            Json::Array(filters) if name == "any" => {
                for filter in filters {
                    if let Json::Object(filter) = filter {
                        visit_operands(filter, visit);
                    }
                }
            }
            wanted => visit_wanted(name, wanted, visit),
        }
    }
}

fn visit_wanted(name: &str, wanted: &mut Json, visit: &mut dyn FnMut(&str, &mut Json)) {
    match wanted {
        Json::Array(values) => values.iter_mut().for_each(|value| visit(name, value)),
        Json::Object(operators) if claimed(operators).is_none() => {
            for value in operators.values_mut() {
                match value {
                    Json::Array(values) => values.iter_mut().for_each(|value| visit(name, value)),
                    value => visit(name, value),
                }
            }
        }
        scalar => visit(name, scalar),
    }
}

/// The claim that an operand refers to, if any.
pub fn claim_of(operand: &Json) -> Option<&str> {
    operand.as_object().and_then(claimed)
}

fn claimed(operand: &Map<String, Json>) -> Option<&str> {
    match operand.get("claim") {
        Some(Json::String(name)) if operand.len() == 1 => Some(name),
        _ => None,
    }
}

/// Replaces the references of a row filter by their claims. A reference to a missing claim stays:
/// the planner refuses it, so the filter is never skipped. Returns the first missing claim.
pub fn bind(filter: &mut Map<String, Json>, claims: &Claims) -> Option<String> {
    let mut missing = None;
    visit_operands(filter, &mut |_, operand| {
        let Some(name) = claim_of(operand) else {
            return;
        };
        match claims.get(name) {
            Some(claim) => *operand = claim.to_json(),
            None => missing = missing.take().or_else(|| Some(name.to_owned())),
        }
    });
    missing
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn bound(filter: Json) -> (Json, Option<String>) {
        let claims = Claims::from([
            ("email".to_owned(), Claim::Text("ana@example.org".into())),
            ("level".to_owned(), Claim::Integer(3)),
        ]);
        let Json::Object(mut filter) = filter else {
            panic!("not a filter")
        };
        let missing = bind(&mut filter, &claims);
        (Json::Object(filter), missing)
    }

    #[test]
    fn claims_are_put_wherever_an_operand_may_stand() {
        let email = || json!({"claim": "email"});
        let filter = json!({
            "owner": email(),
            "level": {"gte": {"claim": "level"}, "lt": 9},
            "any": [{"a": [email(), "x"]}, {"b": {"in": [email()]}}],
        });
        let wanted = json!({
            "owner": "ana@example.org",
            "level": {"gte": 3, "lt": 9},
            "any": [{"a": ["ana@example.org", "x"]}, {"b": {"in": ["ana@example.org"]}}],
        });
        assert_eq!(bound(filter), (wanted, None));
    }

    #[test]
    fn a_field_called_claim_is_a_field() {
        let filter = json!({"claim": "email", "any": [{"claim": "email"}]});
        assert_eq!(bound(filter.clone()), (filter, None));
    }

    #[test]
    fn a_missing_claim_leaves_an_operand_that_nobody_accepts() {
        let filter = json!({"owner": {"claim": "manager"}, "level": {"claim": "level"}});
        let (bound, missing) = bound(filter);
        assert_eq!(bound, json!({"owner": {"claim": "manager"}, "level": 3}));
        assert_eq!(missing.as_deref(), Some("manager"));
    }
}
