//! Writes one record as JSON-LD: its address, its type, and a property for each visible field and
//! to-one relation.
//!
//! Properties are full predicate IRIs, so a document needs no context and means the same on its
//! own. A property without a value is `null`, which a processor leaves out of the graph.

use serde_json::{Map, Value as Json, json};
use wayleave_model::mapping::Datatype;
use wayleave_plan::Record;
use wayleave_plan::request::address;
use wayleave_plan::value::Value;
use wayleave_plan::view::StreamView;

const XSD: &str = "http://www.w3.org/2001/XMLSchema#";

/// A to-one relation of a record.
pub(super) struct Link {
    pub(super) predicate: String,
    /// The address of the other record, if there is one.
    pub(super) to: Option<String>,
}

/// The document of a record.
pub(super) fn document(stream: &StreamView, record: &Record, links: Vec<Link>) -> Json {
    let mut members = Map::new();
    let iri = address::record(stream.type_name(), &record.id());
    members.insert("@id".to_owned(), iri.into());
    members.insert("@type".to_owned(), stream.type_iri().into());
    for field in stream.fields() {
        let shown = match record.value(field.name()) {
            None | Some(Value::Null | Value::Malformed) => Json::Null,
            Some(Value::List(values)) => {
                let each = values.iter().map(|it| term(field.datatype(), it));
                Json::Array(each.collect())
            }
            Some(one) => term(field.datatype(), one),
        };
        add(&mut members, stream.predicate_iri(field), shown);
    }
    for link in links {
        let to = link.to.map(|to| json!({ "@id": to }));
        add(&mut members, link.predicate, to.unwrap_or_default());
    }
    Json::Object(members)
}

/// Adds a property. Several of one predicate are a set.
fn add(members: &mut Map<String, Json>, predicate: String, value: Json) {
    let both = match (members.remove(&predicate), value) {
        (None | Some(Json::Null), one) | (Some(one), Json::Null) => one,
        (Some(before), after) => {
            let set = [before, after].into_iter().flat_map(|it| match it {
                Json::Array(values) => values,
                one => vec![one],
            });
            Json::Array(set.collect())
        }
    };
    members.insert(predicate, both);
}

/// One value as a JSON-LD term: plain JSON where that is exact, else typed. The value decides, not
/// the field: a masked value is a text, whatever it hides.
fn term(datatype: Datatype, value: &Value) -> Json {
    let json = value.to_json();
    let typed = |name: &str| json!({ "@type": format!("{XSD}{name}"), "@value": json });
    match value {
        Value::Text(text) if datatype == Datatype::Iri && is_absolute_iri(text) => {
            json!({ "@id": json })
        }
        // An integer that not every JSON parser holds exactly is written as text.
        Value::Integer(_) if !json.is_number() => typed("integer"),
        Value::Decimal(_) => typed("decimal"),
        Value::Number(_) => typed("double"),
        Value::Date(_) => typed("date"),
        Value::Datetime(_) => typed("dateTime"),
        Value::Json(_) => json!({ "@type": "@json", "@value": json }),
        Value::Null
        | Value::Malformed
        | Value::Text(_)
        | Value::Integer(_)
        | Value::Boolean(_)
        | Value::List(_)
        | Value::Preview(_) => json,
    }
}

/// Whether a processor takes a text for an IRI as it is: not for a blank node, a relative reference
/// or a keyword.
fn is_absolute_iri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else {
        return false;
    };
    let mut scheme = scheme.bytes();
    let refused = |c: char| c.is_control() || c.is_whitespace() || "<>\"{}|\\^`".contains(c);
    scheme.next().is_some_and(|it| it.is_ascii_alphabetic())
        && scheme.all(|it| it.is_ascii_alphanumeric() || b"+-.".contains(&it))
        && !rest.is_empty()
        && !rest.contains(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_values_of_one_predicate_are_a_set_and_null_is_none_of_them() {
        for (values, expected) in [
            (vec![json!(null), json!(null)], json!(null)),
            (vec![json!(null), json!(1)], json!(1)),
            (
                vec![json!([1, 2]), json!(null), json!("x")],
                json!([1, 2, "x"]),
            ),
            (vec![json!([]), json!(1)], json!([1])),
        ] {
            let mut members = Map::new();
            for value in values {
                add(&mut members, "p".to_owned(), value);
            }
            assert_eq!(members["p"], expected);
        }
    }

    #[test]
    fn only_an_absolute_iri_is_a_node() {
        for (text, expected) in [
            (
                "https://example.org/a",
                json!({ "@id": "https://example.org/a" }),
            ),
            ("urn:isbn:1", json!({ "@id": "urn:isbn:1" })),
            ("_:b0", json!("_:b0")),
            ("a b:c", json!("a b:c")),
            ("https://a b", json!("https://a b")),
            ("x", json!("x")),
        ] {
            assert_eq!(term(Datatype::Iri, &Value::Text(text.into())), expected);
        }
    }
}
