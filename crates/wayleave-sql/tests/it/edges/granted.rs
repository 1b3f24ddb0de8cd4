//! Row filters of grants and filters of callers over malformed values: what a row filter opens, and
//! what a caller's own filter reports.

use serde_json::{Value as Json, json};
use wayleave_model::mapping::SourceKind;
use wayleave_plan::value::Value;
use wayleave_store::StoreError;
use wayleave_store::conformance::ServedMapping;

use crate::stores::{LoadedDatabase, all, arguments, granted, mapping, patient};

/// The selection of a filter, as a grant's row filter or as the caller's own.
struct FilteredTable {
    loaded: LoadedDatabase,
    mapping: String,
}

impl FilteredTable {
    fn new(loaded: LoadedDatabase, fields: &[(&str, &str)]) -> Self {
        let mapping = mapping(loaded.kind, &[("things", fields)]);
        Self { loaded, mapping }
    }

    async fn read(&self, served: &ServedMapping, asked: Json) -> Result<Vec<i128>, StoreError> {
        let store = self.loaded.store();
        let plan = served.query(&arguments(asked)).unwrap();
        let rows = all(store.as_ref(), plan.rows(), &patient()).await;
        store.close().await;
        let id = |row: Vec<Value>| match row[0] {
            Value::Integer(id) => id,
            ref other => panic!("{other:?}"),
        };
        Ok(rows?.into_iter().map(id).collect())
    }

    async fn by_grant(&self, rows: &Json) -> Vec<i128> {
        let served = ServedMapping::with_package(&self.mapping, &granted("things", rows)).unwrap();
        let asked = json!({"stream": "things", "fields": ["id"], "sort": ["id"]});
        self.read(&served, asked).await.unwrap()
    }

    async fn by_caller(&self, filter: &Json) -> Result<Vec<i128>, StoreError> {
        let served = ServedMapping::new(&self.mapping).unwrap();
        let asked = json!({"stream": "things", "fields": ["id"], "sort": ["id"], "filter": filter});
        self.read(&served, asked).await
    }

    /// Checks what a row filter opens, and whether the same filter from a caller meets the
    /// malformed values.
    async fn opens(&self, filter: Json, ids: &[i128], meets: bool) {
        assert_eq!(self.by_grant(&filter).await, ids, "{filter}");
        match self.by_caller(&filter).await {
            Ok(found) => {
                assert!(!meets, "{filter} guessed");
                assert_eq!(found, ids, "{filter}");
            }
            Err(StoreError::MalformedValue { .. }) => {
                assert!(meets, "{filter} met nothing malformed");
            }
            Err(other) => panic!("{filter}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn values_of_no_datatype_open_nothing_in_sqlite() {
    let sql =
        "CREATE TABLE things (id INTEGER PRIMARY KEY, public BOOLEAN, embargo DATE, level INTEGER,
                                    price DECIMAL, at DATETIME);
        INSERT INTO things VALUES (1, 1, '2020-01-01', 3, 2.5, '2020-01-01 00:00:00');
        INSERT INTO things VALUES (2, 'no', '12/31/2031', 'unknown', 'n/a', 'garbage');
        INSERT INTO things VALUES (3, '', '', '1?', '', '2024-05-05 nonsense');
        INSERT INTO things VALUES (4, x'00', 20250101, x'31', x'01', 1e300);
        INSERT INTO things VALUES (5, 0, '2030-01-01', 1, 1, '2030-01-01T00:00:00Z');";
    let fields = [
        ("public", "boolean"),
        ("embargo", "date"),
        ("level", "integer"),
        ("price", "decimal"),
        ("at", "datetime"),
    ];
    let loaded = LoadedDatabase::new(SourceKind::Sqlite, sql).await;
    let things = FilteredTable::new(loaded, &fields);
    things.opens(json!({"public": true}), &[1], true).await;
    things
        .opens(json!({"public": {"ne": true}}), &[5], true)
        .await;
    things
        .opens(json!({"embargo": {"lt": "2024-01-01"}}), &[1], true)
        .await;
    things
        .opens(json!({"embargo": {"ne": "2020-01-01"}}), &[5], true)
        .await;
    things.opens(json!({"level": {"gte": 3}}), &[1], true).await;
    things
        .opens(json!({"level": {"not_in": [1]}}), &[1], true)
        .await;
    things.opens(json!({"level": 3}), &[1], false).await;
    things
        .opens(json!({"price": {"gt": "1"}}), &[1], true)
        .await;
    things
        .opens(json!({"at": {"lt": "2024-01-01T00:00:00Z"}}), &[1], true)
        .await;
    // A grant's filter sees only valid values; a caller's only asks whether a value is present.
    let present = json!({"at": {"is_null": false}});
    assert_eq!(things.by_grant(&present).await, [1, 5]);
    assert_eq!(things.by_caller(&present).await.unwrap(), [1, 2, 3, 4, 5]);
}

/// Invalid days, and years that are numbers.
const DAYS: &str = "CREATE TABLE things (id int PRIMARY KEY, d date, t datetime, y year);
    INSERT INTO things VALUES (1, '2020-01-01', '2020-01-01 00:00:00', 2024);
    INSERT INTO things VALUES (2, '0000-00-00', '0000-00-00 00:00:00', 1970);
    INSERT INTO things VALUES (3, '2023-05-00', '2023-05-00 10:00:00', 1999);
    INSERT INTO things VALUES (4, '2030-01-01', '2030-01-01 00:00:00', 2001);";

async fn opens_no_day_that_is_none(loaded: LoadedDatabase) {
    let fields = [("d", "date"), ("t", "datetime"), ("y", "integer")];
    let things = FilteredTable::new(loaded, &fields);
    things
        .opens(json!({"d": {"lt": "2024-06-01"}}), &[1], true)
        .await;
    things
        .opens(json!({"d": {"gte": "2020-01-02"}}), &[4], true)
        .await;
    things
        .opens(json!({"d": {"ne": "2020-01-01"}}), &[4], true)
        .await;
    things
        .opens(json!({"t": {"lte": "2024-06-01T00:00:00Z"}}), &[1], true)
        .await;
    things.opens(json!({"y": 24}), &[], false).await;
    things
        .opens(json!({"y": {"gte": 1}}), &[1, 2, 3, 4], false)
        .await;
    things.opens(json!({"y": {"lt": 50}}), &[], false).await;
    things.opens(json!({"y": 1970}), &[2], false).await;
}

#[tokio::test]
async fn days_that_are_none_open_nothing_in_mariadb_and_mysql() {
    let sql = format!("SET sql_mode = '';\n{DAYS}");
    opens_no_day_that_is_none(LoadedDatabase::new(SourceKind::Mysql, &sql).await).await;
    if let Some(loaded) = LoadedDatabase::on_mysql(&sql).await {
        opens_no_day_that_is_none(loaded).await;
    }
}

#[tokio::test]
async fn what_is_infinite_or_no_number_opens_nothing_in_postgres() {
    let sql =
        "CREATE TABLE things (id int PRIMARY KEY, d date, t timestamptz, p numeric, r float8);
        INSERT INTO things VALUES (1, '2020-01-01', '2020-01-01Z', 1.5, 1.5);
        INSERT INTO things VALUES (2, 'infinity', 'infinity', 'NaN', 'NaN');
        INSERT INTO things VALUES (3, '-infinity', '-infinity', 'NaN', '-Infinity');
        INSERT INTO things VALUES (4, '2030-01-01', '2030-01-01Z', 3, 3);";
    let fields = [
        ("d", "date"),
        ("t", "datetime"),
        ("p", "decimal"),
        ("r", "number"),
    ];
    let loaded = LoadedDatabase::new(SourceKind::Postgres, sql).await;
    let things = FilteredTable::new(loaded, &fields);
    things
        .opens(json!({"d": {"gt": "2024-01-01"}}), &[4], true)
        .await;
    things
        .opens(json!({"t": {"lt": "2024-01-01T00:00:00Z"}}), &[1], true)
        .await;
    things.opens(json!({"p": {"gte": "2"}}), &[4], true).await;
    things.opens(json!({"r": {"lt": 2}}), &[1], true).await;
    things
        .opens(json!({"r": {"not_in": [3]}}), &[1], true)
        .await;
    things.opens(json!({"p": "1.5"}), &[1], false).await;
}

/// MariaDB pads sort keys with NULs.
#[tokio::test]
async fn texts_that_end_in_nul_are_walked_once_each_in_mariadb() {
    let mut sql =
        "CREATE TABLE things (id int PRIMARY KEY, word varchar(20) COLLATE utf8mb4_nopad_bin);"
            .to_owned();
    for id in 0..24 {
        let nuls = "CHAR(0), ".repeat(id % 3);
        sql.push_str(&format!(
            "INSERT INTO things VALUES ({id}, CONCAT({nuls}'', 'w', {}, REPEAT(CHAR(0), {})));",
            id % 2,
            (24 - id) % 4
        ));
    }
    let loaded = LoadedDatabase::new(SourceKind::Mysql, &sql).await;
    let store = loaded.store();
    let served =
        ServedMapping::new(&mapping(loaded.kind, &[("things", &[("word", "string")])])).unwrap();
    for (sort, limit) in [("word", 1), ("-word", 1), ("word", 3), ("-word", 5)] {
        let mut asked = arguments(json!({"stream": "things", "sort": [sort], "limit": limit}));
        let mut seen = Vec::new();
        for _ in 0..30 {
            let plan = served.query(&asked).unwrap();
            let rows = all(store.as_ref(), plan.rows(), &patient()).await.unwrap();
            let page = plan.page(&rows);
            let records = page.records().iter();
            seen.extend(records.map(wayleave_plan::Record::id));
            match page.next_cursor(page.records().len(), served.seal()) {
                Some(cursor) => asked.insert("cursor".to_owned(), Json::String(cursor)),
                None => break,
            };
        }
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 24, "{sort} {limit}");
    }
    store.close().await;
}
