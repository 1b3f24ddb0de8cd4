//! The body of `wayleave://schema`: every visible stream for programs, with its predicate IRIs.
//!
//! Nothing here touches a store.

use serde_json::{Map, Value as Json, json};
use wayleave_model::mapping::Relation;
use wayleave_plan::view::{FieldView, MeasureView, StreamView};

use crate::call_context::CallContext;
use crate::escape::inline;

/// Maximum length of a description, in characters.
const MAX_DESCRIPTION_CHARS: usize = 240;
/// Maximum number of values of a closed list.
const MAX_LISTED: usize = 100;

/// Every stream: described until the body is full, then named, then counted.
pub(super) fn body(call: &CallContext<'_>) -> Json {
    let (mut listed, mut left_out, mut bytes) = (Vec::new(), 0_usize, 0);
    for stream in call.view.connections().iter().flat_map(|it| &it.streams) {
        let mut described = named(stream);
        let fits = |it: &Map<String, Json>| {
            let size = crate::json_bytes::value_len(&Json::Object(it.clone()));
            Some(bytes + size).filter(|total| *total <= call.max_bytes)
        };
        let mut whole = described.clone();
        whole.extend(details(stream));
        if fits(&whole).is_some() {
            described = whole;
        }
        match fits(&described) {
            Some(total) => {
                bytes = total;
                listed.push(Json::Object(described));
            }
            None => left_out += 1,
        }
    }
    json!({ "streams": listed, "left_out": left_out })
}

fn named(stream: &StreamView) -> Map<String, Json> {
    let members = [
        ("connector_key", stream.connector_key()),
        ("connection_id", stream.connection_id()),
        ("stream", stream.name()),
        ("type", stream.type_name()),
    ];
    let members = members.map(|(name, value)| (name.to_owned(), value.into()));
    Map::from_iter(members)
}

fn details(stream: &StreamView) -> Map<String, Json> {
    let mut members = Map::new();
    let mut put = |name: &str, value: Json| members.insert(name.to_owned(), value);
    put("type_iri", stream.type_iri().into());
    put("uri", super::type_uri(stream.type_name()).into());
    if let Some(description) = stream.description() {
        put(
            "description",
            inline(description, MAX_DESCRIPTION_CHARS).into(),
        );
    }
    let key = stream.key_fields().iter().map(FieldView::name);
    put("key", key.collect());
    if let Some(title) = stream.title() {
        put("title", title.name().into());
    }
    put(
        "fields",
        stream.fields().map(|it| field(stream, it)).collect(),
    );
    let relations = stream.relations().map(|it| relation(stream, it));
    put("relations", relations.collect());
    if !stream.measures().is_empty() {
        put("measures", stream.measures().iter().map(measure).collect());
    }
    members
}

fn field(stream: &StreamView, field: &FieldView) -> Json {
    let mut members = Map::new();
    let mut put = |name: &str, value: Json| members.insert(name.to_owned(), value);
    put("name", field.name().into());
    put("datatype", field.datatype().to_string().into());
    put("predicate", stream.predicate_iri(field).into());
    let marks = [
        ("required", field.is_required()),
        ("many", field.is_many()),
        ("where", field.can_filter()),
    ];
    for (name, _) in marks.into_iter().filter(|(_, holds)| *holds) {
        put(name, true.into());
    }
    if let Some(mask) = field.mask() {
        put("mask", mask.to_string().into());
    }
    if !field.one_of().is_empty() {
        let values = field.one_of().iter().take(MAX_LISTED);
        put("one_of", values.map(ToString::to_string).collect());
    }
    if let Some(description) = field.description() {
        put(
            "description",
            inline(description, MAX_DESCRIPTION_CHARS).into(),
        );
    }
    Json::Object(members)
}

fn relation(stream: &StreamView, relation: &Relation) -> Json {
    json!({
        "name": relation.name.as_str(),
        "to": relation.to.as_str(),
        "predicate": stream.relation_iri(relation),
        "many": !stream.is_to_one(relation),
    })
}

fn measure(measure: &MeasureView) -> Json {
    json!({ "name": measure.name(), "datatype": measure.datatype().to_string() })
}
