//! Writes one record as JSON-LD: its address, its type, and a property for each visible field.
//!
//! Properties are full predicate IRIs, so a document needs no context and means the same on its
//! own.

use serde_json::{Map, Value as Json, json};
use wayleave_model::mapping::Datatype;
use wayleave_plan::Record;
use wayleave_plan::value::Value;
use wayleave_plan::view::StreamView;

use crate::url;

const XSD: &str = "http://www.w3.org/2001/XMLSchema#";

/// The document of a record. Fields without a value are omitted.
pub(super) fn document(stream: &StreamView, header: &[String], record: &Record) -> Json {
    let mut members = Map::new();
    let iri = url::record(stream.type_name(), &record.id());
    members.insert("@id".to_owned(), iri.into());
    members.insert("@type".to_owned(), stream.type_iri().into());
    for (name, value) in header.iter().zip(&record.values) {
        let Some(field) = stream.field(name) else {
            continue;
        };
        let shown = match value {
            Value::Null | Value::Malformed => continue,
            Value::List(values) => {
                let each = values.iter().map(|it| term(field.datatype(), it));
                Json::Array(each.collect())
            }
            one => term(field.datatype(), one),
        };
        members.insert(stream.predicate_iri(field), shown);
    }
    Json::Object(members)
}

/// One value as a JSON-LD term: plain JSON where that is exact, else typed. The value decides, not
/// the field: a masked value is a text, whatever it hides.
fn term(datatype: Datatype, value: &Value) -> Json {
    let json = value.to_json();
    let typed = |name: &str| json!({ "@type": format!("{XSD}{name}"), "@value": json });
    match value {
        Value::Text(text) if datatype == Datatype::Iri && text.contains(':') => {
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
