//! The datasets under test: `crm` over two connections, and `shop`.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value as Json};
use wayleave_model::digest::Digest;
use wayleave_model::ratify::{Ratification, verify};
use wayleave_model::schema::EXAMPLE;
use wayleave_plan::active_datasets::ActiveDatasets;
use wayleave_plan::package::{
    FieldScope, Grant, Grants, Package, RelationScope, StreamGrant, StreamScope,
};
use wayleave_plan::seal::{KeyRing, Seal, SealingKey};
use wayleave_plan::view::{StreamView, View};

pub(crate) const SHOP: &str = include_str!("../fixtures/shop.toml");

/// Number of cases of a property; fifty times as many in a full run.
pub(crate) fn cases(everyday: u32) -> u32 {
    everyday * if wayleave_test::is_full() { 50 } else { 1 }
}

/// 2026-05-28T20:26:40Z.
pub(crate) const NOW: i64 = 1_780_000_000;

pub(crate) fn ratified(
    name: &str,
    text: &str,
) -> Arc<wayleave_model::ratify::Ratified<wayleave_model::mapping::Mapping>> {
    let act = Ratification {
        dataset: name.to_owned(),
        digest: Digest::from_bytes(text.as_bytes()),
        replaces: None,
        who: "ada".to_owned(),
        note: "read it twice".to_owned(),
    };
    Arc::new(verify(text.as_bytes(), &act).unwrap())
}

pub(crate) fn active_datasets() -> ActiveDatasets {
    static ACTIVE: LazyLock<ActiveDatasets> = LazyLock::new(|| {
        ActiveDatasets::new(vec![ratified("crm", EXAMPLE), ratified("shop", SHOP)]).unwrap()
    });
    ACTIVE.clone()
}

/// The datasets after `shop` was ratified again with only a comment changed.
pub(crate) fn ratified_again() -> ActiveDatasets {
    let shop = format!("# once more\n{SHOP}");
    ActiveDatasets::new(vec![ratified("crm", EXAMPLE), ratified("shop", &shop)]).unwrap()
}

pub(crate) fn keys() -> KeyRing {
    KeyRing::new(
        &SealingKey {
            id: 1,
            secret: [7; 32],
        },
        &[],
    )
}

pub(crate) fn at(keys: &KeyRing, now: i64) -> Seal<'_> {
    Seal { keys, now }
}

pub(crate) fn local() -> View {
    View::new(&active_datasets(), &Package::local())
}

pub(crate) fn arguments(json: Json) -> Map<String, Json> {
    match json {
        Json::Object(map) => map,
        other => panic!("{other} is no object"),
    }
}

/// The key fields of a stream. Without them no record of it is visible.
fn key_of(connection: &str, stream: &str) -> Vec<String> {
    let local = local();
    let seen = local
        .connection(connection)
        .and_then(|it| it.stream(stream));
    let key = seen.into_iter().flat_map(StreamView::key_fields);
    key.map(|field| field.name().to_owned()).collect()
}

/// Parses a package from `local`, or from one grant per word:
///
/// ```text
/// crm-eu                                        all of the connection
/// crm-eu/orgs                                   one stream, whole
/// crm-eu/people[full_name]                      some fields, and the key
/// shop/orders[amount]{"state":"open"}           some rows
/// ```
pub(crate) fn package(text: &str) -> Package {
    if text == "local" {
        return Package::local();
    }
    let mut grants: BTreeMap<String, Grant> = BTreeMap::new();
    for word in text.split_whitespace() {
        let (connection, stream) = match word.split_once('/') {
            None => (word, None),
            Some((connection, stream)) => (connection, Some(stream)),
        };
        let grant = grants
            .entry(connection.to_owned())
            .or_insert_with(|| Grant {
                capabilities: std::collections::BTreeSet::new(),
                id: format!("g-{connection}"),
                dataset: connection.split('-').next().unwrap_or_default().to_owned(),
                streams: StreamScope::All,
            });
        if let Some(stream) = stream {
            let (stream, rows) = match stream.find('{') {
                None => (stream, None),
                Some(at) => (
                    &stream[..at],
                    Some(serde_json::from_str(&stream[at..]).unwrap()),
                ),
            };
            let (name, fields) = match stream.strip_suffix(']') {
                None => (stream, FieldScope::All),
                Some(listed) => {
                    let (name, fields) = listed.split_once('[').unwrap();
                    let fields = fields.split(',').filter(|f| !f.is_empty());
                    let fields = fields.map(str::to_owned).chain(key_of(connection, name));
                    (name, FieldScope::Only(fields.collect()))
                }
            };
            if grant.streams == StreamScope::All {
                grant.streams = StreamScope::Only(BTreeMap::new());
            }
            let StreamScope::Only(streams) = &mut grant.streams else {
                unreachable!()
            };
            let grant = StreamGrant {
                fields,
                relations: RelationScope::All,
                rows,
                masks: std::collections::BTreeMap::new(),
            };
            streams.insert(name.to_owned(), grant);
        }
    }
    Package {
        subject: "token-1".to_owned(),
        epoch: 1,
        grants: Grants::Only(Arc::new(grants)),
    }
}
