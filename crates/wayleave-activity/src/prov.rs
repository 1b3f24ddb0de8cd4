//! Activities as W3C PROV-O, in JSON-LD.

use serde_json::{Map, Value, json};

use crate::activity::{Activity, RecordList, to_hex};

/// The context of every document: the PROV ontology and the terms of Wayleave.
pub const PROV_CONTEXT: &str = r#"{
    "prov": "http://www.w3.org/ns/prov#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
    "wl": "https://wayleave.dev/ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "activity": "urn:uuid:",
    "record": "urn:wayleave:record:",
    "token": "urn:wayleave:token:",
    "mapping": "urn:wayleave:mapping:sha256:"
}"#;

/// Converts activities to one document.
#[expect(
    clippy::expect_used,
    reason = "the context is the JSON written out above"
)]
pub fn prov_document<'a>(activities: impl IntoIterator<Item = &'a Activity>) -> Value {
    let graph: Vec<Value> = activities.into_iter().flat_map(prov_node).collect();
    let context: Value = serde_json::from_str(PROV_CONTEXT).expect("the context is JSON");
    json!({ "@context": context, "@graph": graph })
}

/// The nodes of one activity: the activity, its agent, the mappings it followed, and its records.
pub fn prov_node(activity: &Activity) -> Vec<Value> {
    let agent = agent_iri(&activity.agent.token);
    let mut node = Map::from_iter([
        ("@id".to_owned(), json!(activity.id.urn())),
        ("@type".to_owned(), json!("prov:Activity")),
        (
            "prov:startedAtTime".to_owned(),
            date_time(activity.id.started_ms()),
        ),
        (
            "prov:endedAtTime".to_owned(),
            date_time(activity.ended_ms()),
        ),
        ("prov:wasAssociatedWith".to_owned(), json!({ "@id": agent })),
        ("wl:method".to_owned(), json!(activity.method)),
        ("wl:outcome".to_owned(), json!(activity.outcome.to_string())),
        (
            "wl:argumentsDigest".to_owned(),
            json!(to_hex(&activity.arguments.digest)),
        ),
        (
            "wl:argumentsShape".to_owned(),
            json!(activity.arguments.shape),
        ),
        ("wl:rows".to_owned(), json!(activity.rows)),
        ("wl:bytes".to_owned(), json!(activity.bytes)),
    ]);
    if let Some(target) = &activity.target {
        node.insert("wl:target".to_owned(), json!(target));
    }
    let mut used = entities(&activity.used);
    used.extend(
        activity
            .grants
            .iter()
            .map(|grant| json!({ "@id": mapping_iri(&grant.mapping) })),
    );
    if !used.is_empty() {
        node.insert("prov:used".to_owned(), used.into());
    }
    if activity.used.total > 0 {
        node.insert("wl:recordsUsed".to_owned(), json!(activity.used.total));
    }
    let generated = entities(&activity.generated);
    if !generated.is_empty() {
        node.insert("prov:generated".to_owned(), generated.into());
    }
    if let Some(digest) = &activity.used.digest {
        node.insert("wl:recordsUsedDigest".to_owned(), json!(to_hex(digest)));
    }
    if let Some(answer) = &activity.answer {
        node.insert("wl:answerDigest".to_owned(), json!(to_hex(answer)));
    }
    let grants: Vec<&str> = activity
        .grants
        .iter()
        .map(|grant| grant.grant.as_str())
        .collect();
    if !grants.is_empty() {
        node.insert("wl:grant".to_owned(), json!(grants));
    }
    let mut nodes = vec![Value::Object(node), agent_node(activity)];
    nodes.extend(activity.grants.iter().map(|grant| {
        json!({
            "@id": mapping_iri(&grant.mapping),
            "@type": ["prov:Entity", "prov:Plan"],
            "wl:dataset": grant.dataset,
            "wl:connection": grant.connection,
        })
    }));
    let ids = activity.used.ids.iter().chain(&activity.generated.ids);
    nodes.extend(
        ids.map(|id| json!({ "@id": record_iri(id), "@type": "prov:Entity", "rdfs:label": id })),
    );
    nodes
}

fn agent_node(activity: &Activity) -> Value {
    let mut node = json!({
        "@id": agent_iri(&activity.agent.token),
        "@type": ["prov:Agent", "prov:SoftwareAgent"],
    });
    if let (Some(node), Some(client)) = (node.as_object_mut(), &activity.agent.client) {
        let version = activity.agent.version.as_deref().unwrap_or_default();
        let label = [client, version].join(" ");
        node.insert("rdfs:label".to_owned(), json!(label.trim_end()));
    }
    node
}

fn entities(records: &RecordList) -> Vec<Value> {
    let ids = records.ids.iter();
    ids.map(|id| json!({ "@id": record_iri(id) })).collect()
}

fn date_time(ms: u64) -> Value {
    // A time beyond the calendar is shown as its end.
    let ms = i64::try_from(ms).unwrap_or(i64::MAX);
    let at = jiff::Timestamp::from_millisecond(ms).unwrap_or(jiff::Timestamp::MAX);
    json!({ "@type": "xsd:dateTime", "@value": format!("{at:.3}") })
}

fn agent_iri(token: &str) -> String {
    let token = if token.is_empty() {
        "unidentified"
    } else {
        token
    };
    format!("urn:wayleave:token:{}", escaped(token))
}

fn mapping_iri(digest: &[u8; 32]) -> String {
    format!("urn:wayleave:mapping:sha256:{}", to_hex(digest))
}

fn record_iri(id: &str) -> String {
    format!("urn:wayleave:record:{}", escaped(id))
}

/// Percent-encodes the bytes of a text that a URN does not allow.
fn escaped(text: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~:/@!$&'()*+,;=".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}
