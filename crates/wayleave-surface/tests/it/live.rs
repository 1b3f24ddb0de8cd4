//! The change feed over each kind of store: another program changes the data, and each subscriber
//! receives exactly the changes that a reader with its package can see.

mod changes;
mod cost;
mod large;
mod masked;
mod recovery;
mod twins;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use wayleave_model::mapping::SourceKind;
use wayleave_plan::package::{
    FieldScope, Grant, Grants, Package, RelationScope, StreamGrant, StreamScope,
};
use wayleave_store::Store;
use wayleave_store::conformance::ServedMapping;
use wayleave_surface::live::{ChangeFeed, ChangeFeedOptions, LocalWatch, RecordChangeKind};

use crate::reading::database::Database;

pub const STORES: [SourceKind; 3] = [SourceKind::Sqlite, SourceKind::Postgres, SourceKind::Mysql];

/// An interval that never elapses: tests start comparisons themselves.
const NEVER: Duration = Duration::from_hours(24);
const PATIENCE: Duration = Duration::from_mins(1);

pub fn options() -> ChangeFeedOptions {
    ChangeFeedOptions {
        interval: NEVER,
        ..ChangeFeedOptions::default()
    }
}

pub fn mapping(kind: SourceKind, updated: bool) -> String {
    let updated = if updated {
        "updated = \"changed\"\n"
    } else {
        ""
    };
    format!(
        "[dataset]\nname = \"fleet\"\nkind = \"{kind}\"\niri = \"https://example.org/#\"\n\
         [[connections]]\nid = \"fleet\"\nsource = \"fleet\"\n\
         [streams.ships]\ntype = \"Ship\"\nkey = [\"id\"]\n{updated}\
         [streams.ships.fields.id]\ndatatype = \"integer\"\n\
         [streams.ships.fields.name]\ndatatype = \"string\"\n\
         [streams.ships.fields.port]\ndatatype = \"string\"\n\
         [streams.ships.fields.tons]\ndatatype = \"decimal\"\n\
         [streams.ships.fields.changed]\ndatatype = \"integer\"\n"
    )
}

pub const TABLE: &str = "CREATE TABLE ships (id INTEGER NOT NULL PRIMARY KEY, \
    name VARCHAR(80), port VARCHAR(80), tons DECIMAL(12, 2), changed INTEGER);";

/// SQL that creates the ships `1` to `many`, those with odd ids in Bergen.
pub fn ships(many: usize) -> String {
    (1..=many).fold(TABLE.to_owned(), |sql, n| {
        let port = if n % 2 == 1 { "Bergen" } else { "Oslo" };
        sql + &format!("INSERT INTO ships VALUES ({n}, 'ship {n}', '{port}', {n}.5, {n});")
    })
}

/// The triggers with which PostgreSQL announces changes of ships.
pub fn triggers() -> String {
    let ships = wayleave_sql::TableName {
        schema: None,
        table: "ships".to_owned(),
    };
    wayleave_sql::change_triggers(SourceKind::Postgres, &[ships]).unwrap()
}

pub async fn feed(
    kind: SourceKind,
    sql: &str,
    updated: bool,
    options: ChangeFeedOptions,
) -> (Arc<Database>, ChangeFeed) {
    let database = Database::new(kind, sql).await;
    let service = database.service(&mapping(kind, updated));
    (database, ChangeFeed::new(service, options))
}

/// A package that sees the names of the ships in Bergen, and nothing else.
pub fn narrow() -> Package {
    let fields = ["id", "name", "port"].map(str::to_owned);
    let stream = StreamGrant {
        fields: FieldScope::Only(BTreeSet::from(fields)),
        relations: RelationScope::All,
        rows: Some(json!({ "port": "Bergen" })),
        masks: std::collections::BTreeMap::new(),
    };
    let streams = BTreeMap::from([("ships".to_owned(), stream)]);
    package("narrow", StreamScope::Only(streams))
}

pub fn package(subject: &str, streams: StreamScope) -> Package {
    let grant = Grant {
        capabilities: std::collections::BTreeSet::new(),
        id: "g".to_owned(),
        dataset: "fleet".to_owned(),
        streams,
    };
    Package {
        subject: subject.to_owned(),
        epoch: 1,
        grants: Grants::Only(Arc::new(BTreeMap::from([("fleet".to_owned(), grant)]))),
    }
}

/// Waits until the store announces changes of ships, or no longer does.
pub async fn until_announced(store: &dyn Store, is_announced: bool) {
    // The token is one of the table, whichever dataset serves it.
    let mapping = mapping(SourceKind::Postgres, true).replacen("fleet", "conformance", 1);
    let served = ServedMapping::new(&mapping).unwrap();
    let query = serde_json::Map::from_iter([("stream".to_owned(), json!("ships"))]);
    let plan = served.query(&query).unwrap();
    let began = Instant::now();
    while matches!(store.change_token(plan.rows()).await, Ok(Some(_))) != is_announced {
        assert!(began.elapsed() < PATIENCE, "announced: {is_announced}");
        // Nothing announces a token: whoever watches asks for it.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub async fn watch(feed: &ChangeFeed, package: Package, what: &str) -> LocalWatch {
    feed.watch_local(package, what, None).await.unwrap()
}

/// Makes the feed compare now, for the subscribers with this package.
pub async fn look(feed: &ChangeFeed, package: Package) {
    drop(watch(feed, package, "ships").await);
}

/// Takes the changes that a watch has received, as `created 7`.
pub fn told(watch: &mut LocalWatch) -> Vec<String> {
    let mut told = Vec::new();
    while let Some(Some(changes)) = futures::FutureExt::now_or_never(watch.next()) {
        assert!(!changes.is_empty(), "a change that cannot be told apart");
        told.extend(changes.into_iter().map(|change| {
            let (_, key) = change.id.split_once(':').unwrap();
            format!("{} {key}", change.kind.as_str())
        }));
    }
    told.sort();
    told
}

/// Waits for the next changes.
pub async fn next(watch: &mut LocalWatch) -> Vec<(String, RecordChangeKind)> {
    let next = tokio::time::timeout(PATIENCE, watch.next()).await;
    let changes = next.unwrap().unwrap();
    changes.into_iter().map(|it| (it.id, it.kind)).collect()
}
