//! SQLite values that are not text in columns read as text: bytes, and texts that are not UTF-8.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Value as Json, json};
use wayleave_model::mapping::{Datatype, SourceKind};
use wayleave_plan::value::Value;
use wayleave_store::Store;
use wayleave_store::conformance::ServedMapping;

use super::drawn::{DrawnTable, Edge};
use crate::stores::{LoadedDatabase, all, arguments, patient};

/// The values as SQL literals and as shown. The last two are shown alike.
const HELD: [(&str, &str); 14] = [
    ("''", ""),
    ("'Z'", "Z"),
    ("'\\x'", "\\x"),
    ("'\\xff'", "\\xff"),
    ("'a'", "a"),
    ("'b'", "b"),
    ("'ÿ'", "ÿ"),
    ("CAST(x'00ff' AS TEXT)", "\\x00ff"),
    ("CAST(x'61ff' AS TEXT)", "\\x61ff"),
    ("CAST(x'7aff' AS TEXT)", "\\x7aff"),
    ("CAST(x'ff61' AS TEXT)", "\\xff61"),
    ("x'6161'", "\\x6161"),
    ("x'ff62'", "\\xff62"),
    ("CAST(x'ff62' AS TEXT)", "\\xff62"),
];

struct ThingsTable {
    store: Arc<dyn Store>,
    served: ServedMapping,
    _loaded: LoadedDatabase,
}

impl ThingsTable {
    async fn new(declared: &str, index: bool) -> Self {
        let mut sql =
            format!("CREATE TABLE things (name {declared}, id INTEGER, PRIMARY KEY (name, id));");
        for (id, (literal, _)) in (0..).zip(HELD) {
            write!(sql, "INSERT INTO things VALUES ({literal}, {id});").unwrap();
            write!(sql, "INSERT INTO things VALUES ({literal}, {});", id + 100).unwrap();
        }
        if index {
            sql.push_str("CREATE INDEX by_name ON things (name);");
        }
        let loaded = LoadedDatabase::new(SourceKind::Sqlite, &sql).await;
        let mapping = "[dataset]\nname = \"conformance\"\nkind = \"sqlite\"\n\
            [[connections]]\nid = \"main\"\nsource = \"main\"\n\
            [streams.things]\ntype = \"Thing\"\nkey = [\"name\", \"id\"]\n\
            [streams.things.fields.id]\ndatatype = \"integer\"\nrequired = true\n\
            [streams.things.fields.name]\ndatatype = \"string\"\nrequired = true\n";
        Self {
            store: loaded.store(),
            served: ServedMapping::new(mapping).unwrap(),
            _loaded: loaded,
        }
    }

    /// The numbers of the records, in walk order.
    async fn walk(&self, mut asked: Json) -> Vec<i64> {
        asked["stream"] = json!("things");
        asked["fields"] = json!(["name", "id"]);
        let mut asked = arguments(asked);
        let mut found = Vec::new();
        for _ in 0..=2 * HELD.len() {
            let plan = self.served.query(&asked).unwrap();
            let rows = all(self.store.as_ref(), plan.rows(), &patient()).await;
            let rows = rows.unwrap_or_else(|error| panic!("{asked:?}: {error:?}"));
            let page = plan.page(&rows);
            let ids = page.records().iter().map(|it| it.values[1].to_json());
            found.extend(ids.map(|it| it.as_i64().unwrap()));
            match page.next_cursor(page.records().len(), self.served.seal()) {
                Some(cursor) => asked.insert("cursor".to_owned(), Json::String(cursor)),
                None => return found,
            };
        }
        panic!("a walk without end: {asked:?}");
    }
}

#[tokio::test]
async fn a_walk_passes_each_once_and_a_filter_finds_each_by_what_is_shown() {
    for (declared, index) in [
        ("TEXT", true),
        ("TEXT", false),
        ("TEXT COLLATE NOCASE", true),
        ("UUID", true),
        ("UUID", false),
        ("BLOB", true),
        ("", false),
    ] {
        let things = ThingsTable::new(declared, index).await;
        let every: BTreeSet<i64> = (0..14).chain(100..114).collect();
        for sort in [
            json!(["name"]),
            json!(["-name"]),
            json!(["name", "-id"]),
            json!(["-name", "-id"]),
        ] {
            for limit in [1, 2, 3, 5] {
                let walked = things.walk(json!({"sort": sort, "limit": limit})).await;
                let told = format!("{declared} {sort} {limit}: {walked:?}");
                assert_eq!(walked.len(), every.len(), "{told}");
                assert_eq!(walked.into_iter().collect::<BTreeSet<_>>(), every, "{told}");
            }
        }
        for (_, shown) in HELD {
            let is = |it: &i64| HELD[usize::try_from(it % 100).unwrap()].1 == shown;
            for (op, operand, wanted) in [
                ("eq", json!(shown), true),
                ("in", json!([shown, "?"]), true),
                ("ne", json!(shown), false),
                ("not_in", json!([shown, "?"]), false),
            ] {
                let asked = json!({"filter": {"name": {op: operand}}, "limit": 100});
                let found: BTreeSet<i64> = things.walk(asked).await.into_iter().collect();
                let expected = every
                    .iter()
                    .filter(|it| is(it) == wanted)
                    .copied()
                    .collect();
                assert_eq!(found, expected, "{declared}: {op} {shown}");
            }
        }
        things.store.close().await;
    }
}

/// Without an index, or in a column of bytes, values sort by their shown form.
#[tokio::test]
async fn in_columns_that_are_no_text_they_are_sorted_by_what_is_shown() {
    let held = HELD.map(|(literal, shown)| (literal.to_owned(), Value::Text(shown.into())));
    for declared in ["BLOB", "", "UUID"] {
        let edge = Edge::new("token", Datatype::String, declared, held.to_vec());
        let edges = vec![edge.asked([json!("\\"), json!("m")])];
        let drawn = DrawnTable::new(SourceKind::Sqlite, "", edges).await;
        drawn.indexed().await.check(20).await;
    }
}
