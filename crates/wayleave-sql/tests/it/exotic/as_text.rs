//! Columns of any type read as text, including values that fit no other datatype.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Value as Json, json};
use wayleave_model::mapping::SourceKind;
use wayleave_plan::value::Value;
use wayleave_store::Store;
use wayleave_store::conformance::ServedMapping;

use crate::stores::{LoadedDatabase, all, arguments, mapping, patient};

/// A column read as text: its field, its type in the store, and for each row a SQL literal with the
/// text it is answered as.
type Texts<'a> = (&'a str, &'a str, [(&'a str, &'a str); 6]);

/// A table in which every column but `id` is read as text. Row 7 is all NULL.
struct TextTable {
    kind: SourceKind,
    store: Arc<dyn Store>,
    served: ServedMapping,
    _loaded: LoadedDatabase,
}

impl TextTable {
    async fn new(
        kind: SourceKind,
        before: &str,
        datatype: &'static str,
        columns: &[Texts<'static>],
    ) -> Self {
        let declared: Vec<String> = columns
            .iter()
            .map(|it| format!("{} {}", it.0, it.1))
            .collect();
        let declared = declared.join(", ");
        let mut sql = format!("{before} CREATE TABLE things (id integer PRIMARY KEY, {declared});");
        for row in 0..6 {
            let values: Vec<&str> = columns.iter().map(|it| it.2[row].0).collect();
            let values = values.join(", ");
            write!(sql, "INSERT INTO things VALUES ({}, {values});", row + 1).unwrap();
        }
        let nulls = vec!["NULL"; columns.len()].join(", ");
        write!(sql, "INSERT INTO things VALUES (7, {nulls});").unwrap();
        let loaded = LoadedDatabase::new(kind, &sql).await;
        let fields: Vec<_> = columns.iter().map(|it| (it.0, datatype)).collect();
        Self {
            kind,
            store: loaded.store(),
            served: ServedMapping::new(&mapping(kind, &[("things", &fields)])).unwrap(),
            _loaded: loaded,
        }
    }

    /// The ids and one field of every record, walked three to a page; and the number of pages.
    async fn walk(&self, field: &str, asked: Json) -> (Vec<(i64, Json)>, usize) {
        let mut asked = arguments(asked);
        asked.extend(arguments(
            json!({"stream": "things", "fields": ["id", field], "limit": 3}),
        ));
        let (mut found, mut pages) = (Vec::new(), 0);
        loop {
            let plan = self.served.query(&asked).unwrap();
            let rows = all(self.store.as_ref(), plan.rows(), &patient()).await;
            let rows = rows.unwrap_or_else(|error| panic!("{}: {asked:?}: {error:?}", self.kind));
            let page = plan.page(&rows);
            pages += 1;
            for record in page.records() {
                let id = record.values[0].to_json().as_i64().unwrap();
                found.push((id, record.values[1].to_json()));
            }
            match page.next_cursor(page.records().len(), self.served.seal()) {
                Some(cursor) => asked.insert("cursor".to_owned(), Json::String(cursor)),
                None => return (found, pages),
            };
        }
    }

    async fn ids(&self, field: &str, filter: Json) -> Vec<i64> {
        let asked = json!({"filter": {field: filter}, "sort": ["id"]});
        let (found, _) = self.walk(field, asked).await;
        found.into_iter().map(|it| it.0).collect()
    }

    /// Each distinct text with its number of rows, in text order.
    async fn groups(&self, field: &str) -> Vec<(Json, i64)> {
        let asked = json!({"stream": "things", "metrics": [{"op": "count"}], "group_by": [field], "sort": [field]});
        let plan = self.served.aggregate(&arguments(asked)).unwrap();
        let groups = all(self.store.as_ref(), plan.groups(), &patient()).await;
        let groups = groups.unwrap();
        let pair = |row: &Vec<Value>| (row[0].to_json(), row[1].to_json().as_i64().unwrap());
        groups.iter().map(pair).collect()
    }
}

/// Reads, sorts, walks, filters and groups by each column, and compares the answers with those
/// computed from the texts alone.
async fn check_texts(
    kind: SourceKind,
    before: &str,
    datatype: &'static str,
    columns: &[Texts<'static>],
) {
    let things = TextTable::new(kind, before, datatype, columns).await;
    for (field, _, values) in columns {
        let texts: Vec<(i64, &str)> = (1..).zip(values.iter().map(|it| it.1)).collect();
        let shown = |(id, text): &(i64, &str)| (*id, json!(text));
        let mut ordered = texts.clone();
        ordered.sort_by_key(|(id, text)| (*text, *id));
        for (sort, backwards) in [((*field).to_owned(), false), (format!("-{field}"), true)] {
            let mut expected: Vec<_> = ordered.clone();
            if backwards {
                expected.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(&b.0)));
            }
            let mut expected: Vec<_> = expected.iter().map(shown).collect();
            expected.push((7, Json::Null));
            let (found, pages) = things.walk(field, json!({"sort": [sort, "id"]})).await;
            assert_eq!(found, expected, "{kind}: {field}");
            assert_eq!(pages, 3, "{kind}: {field}");
        }
        let having = |test: &dyn Fn(&str) -> bool| -> Vec<i64> {
            let held = texts.iter().filter(|it| test(it.1));
            held.map(|it| it.0).collect()
        };
        for (_, text) in &texts {
            let part = text.get(1..).filter(|it| !it.is_empty()).unwrap_or(text);
            let cases: [(Json, Vec<i64>); 6] = [
                (json!({"eq": text}), having(&|it| it == *text)),
                (json!({"ne": text}), having(&|it| it != *text)),
                (json!({"in": [text, "?"]}), having(&|it| it == *text)),
                (json!({"gt": text}), having(&|it| it > *text)),
                (
                    json!({"starts_with": &text[..1]}),
                    having(&|it| it.starts_with(&text[..1])),
                ),
                (json!({"contains": part}), having(&|it| it.contains(part))),
            ];
            for (filter, expected) in cases {
                let found = things.ids(field, filter.clone()).await;
                assert_eq!(found, expected, "{kind}: {field} {filter}");
            }
        }
        let mut groups: Vec<(Json, i64)> = Vec::new();
        for (_, text) in &ordered {
            match groups.last_mut() {
                Some((last, count)) if last == text => *count += 1,
                _ => groups.push((json!(text), 1)),
            }
        }
        groups.push((Json::Null, 1));
        assert_eq!(things.groups(field).await, groups, "{kind}: {field}");
    }
    things.store.close().await;
}

/// Column types of PostgreSQL.
const POSTGRES: &[Texts<'static>] = &[
    (
        "at",
        "timestamptz",
        [
            ("'infinity'", "infinity"),
            ("'-infinity'", "-infinity"),
            ("'2024-05-06 09:08:09+02'", "2024-05-06 07:08:09+00"),
            ("'0044-03-15 12:00:00+00 BC'", "0044-03-15 12:00:00+00 BC"),
            ("'infinity'", "infinity"),
            ("'2024-05-06 07:08:09.5+00'", "2024-05-06 07:08:09.5+00"),
        ],
    ),
    (
        "moment",
        "timestamp",
        [
            ("'infinity'", "infinity"),
            ("'-infinity'", "-infinity"),
            ("'2024-05-06 07:08:09'", "2024-05-06 07:08:09"),
            ("'12024-05-06 07:08:09'", "12024-05-06 07:08:09"),
            ("'infinity'", "infinity"),
            ("'1999-12-31 23:59:59'", "1999-12-31 23:59:59"),
        ],
    ),
    (
        "day",
        "date",
        [
            ("'0044-03-15 BC'", "0044-03-15 BC"),
            ("'2024-05-06'", "2024-05-06"),
            ("'infinity'", "infinity"),
            ("'0044-03-15 BC'", "0044-03-15 BC"),
            ("'0044-03-15'", "0044-03-15"),
            ("'-infinity'", "-infinity"),
        ],
    ),
    (
        "amount",
        "numeric",
        [
            ("'NaN'", "NaN"),
            ("10.50", "10.50"),
            ("9", "9"),
            ("-1", "-1"),
            ("'NaN'", "NaN"),
            ("1e3", "1000"),
        ],
    ),
    (
        "ratio",
        "float8",
        [
            ("'NaN'", "NaN"),
            ("'Infinity'", "Infinity"),
            ("1e300", "1e+300"),
            ("0.1", "0.1"),
            ("'NaN'", "NaN"),
            ("-2", "-2"),
        ],
    ),
    (
        "flag",
        "boolean",
        [
            ("true", "true"),
            ("false", "false"),
            ("true", "true"),
            ("false", "false"),
            ("false", "false"),
            ("true", "true"),
        ],
    ),
    (
        "state",
        "state",
        [
            ("'shut'", "shut"),
            ("'open'", "open"),
            ("'Ajar'", "Ajar"),
            ("'open'", "open"),
            ("'shut'", "shut"),
            ("'shut'", "shut"),
        ],
    ),
    (
        "size",
        "bigint",
        [
            ("10", "10"),
            ("9", "9"),
            ("-10", "-10"),
            ("9223372036854775807", "9223372036854775807"),
            ("9", "9"),
            ("100", "100"),
        ],
    ),
    (
        "place",
        "oid",
        [
            ("4000000000", "4000000000"),
            ("9", "9"),
            ("10", "10"),
            ("9", "9"),
            ("1", "1"),
            ("100", "100"),
        ],
    ),
    (
        "data",
        "jsonb",
        [
            ("'{\"a\":[1]}'", "{\"a\": [1]}"),
            ("'null'", "null"),
            ("'\"x\"'", "\"x\""),
            ("'null'", "null"),
            ("'1.50'", "1.50"),
            ("'[]'", "[]"),
        ],
    ),
];

#[tokio::test]
async fn any_postgres_column_is_read_as_text() {
    let enumeration = "CREATE TYPE state AS ENUM ('shut', 'open', 'Ajar');";
    for datatype in ["string", "iri"] {
        check_texts(SourceKind::Postgres, enumeration, datatype, POSTGRES).await;
    }
}

/// Column types of MariaDB.
const MARIADB: &[Texts<'static>] = &[
    (
        "day",
        "date",
        [
            ("'0000-00-00'", "0000-00-00"),
            ("'2024-00-00'", "2024-00-00"),
            ("'2024-05-06'", "2024-05-06"),
            ("'0000-00-00'", "0000-00-00"),
            ("'9999-12-31'", "9999-12-31"),
            ("'2024-05-00'", "2024-05-00"),
        ],
    ),
    (
        "moment",
        "datetime(3)",
        [
            ("'0000-00-00 00:00:00'", "0000-00-00 00:00:00.000"),
            ("'2024-00-00 01:02:03'", "2024-00-00 01:02:03.000"),
            ("'2024-05-06 07:08:09.5'", "2024-05-06 07:08:09.500"),
            ("'0000-00-00 00:00:00'", "0000-00-00 00:00:00.000"),
            ("'1000-01-01 00:00:00'", "1000-01-01 00:00:00.000"),
            ("'2024-05-06 07:08:09'", "2024-05-06 07:08:09.000"),
        ],
    ),
    (
        "at",
        "timestamp NULL",
        [
            ("'0000-00-00 00:00:00'", "0000-00-00 00:00:00"),
            ("'2024-05-06 07:08:09'", "2024-05-06 07:08:09"),
            ("'2024-05-06 07:08:10'", "2024-05-06 07:08:10"),
            ("'0000-00-00 00:00:00'", "0000-00-00 00:00:00"),
            ("'1999-12-31 23:59:59'", "1999-12-31 23:59:59"),
            ("'2024-05-06 07:08:09'", "2024-05-06 07:08:09"),
        ],
    ),
    (
        "amount",
        "decimal(9, 2)",
        [
            ("10.5", "10.50"),
            ("9", "9.00"),
            ("-1", "-1.00"),
            ("9", "9.00"),
            ("100", "100.00"),
            ("0", "0.00"),
        ],
    ),
    (
        "ratio",
        "double",
        [
            ("1e300", "1e300"),
            ("0.1", "0.1"),
            ("-2", "-2"),
            ("0.1", "0.1"),
            ("10", "10"),
            ("9", "9"),
        ],
    ),
    (
        "share",
        "float",
        [
            ("0.1", "0.1"),
            ("0.5", "0.5"),
            ("-2", "-2"),
            ("0.1", "0.1"),
            ("10", "10"),
            ("9", "9"),
        ],
    ),
    (
        "flag",
        "boolean",
        [
            ("true", "1"),
            ("false", "0"),
            ("2", "2"),
            ("false", "0"),
            ("false", "0"),
            ("true", "1"),
        ],
    ),
    (
        "state",
        "enum('shut', 'open', 'Ajar')",
        [
            ("'shut'", "shut"),
            ("'open'", "open"),
            ("'Ajar'", "Ajar"),
            ("'open'", "open"),
            ("'shut'", "shut"),
            ("'shut'", "shut"),
        ],
    ),
    (
        "size",
        "bigint unsigned",
        [
            ("10", "10"),
            ("9", "9"),
            ("100", "100"),
            ("18446744073709551615", "18446744073709551615"),
            ("9", "9"),
            ("0", "0"),
        ],
    ),
    (
        "code",
        "int(5) zerofill",
        [
            ("10", "00010"),
            ("9", "00009"),
            ("123456", "123456"),
            ("9", "00009"),
            ("0", "00000"),
            ("100", "00100"),
        ],
    ),
    (
        "bits",
        "bit(8)",
        [
            ("b'1010'", "10"),
            ("b'1001'", "9"),
            ("b'1100100'", "100"),
            ("b'1001'", "9"),
            ("b'0'", "0"),
            ("b'11111111'", "255"),
        ],
    ),
    (
        "bytes",
        "varbinary(3)",
        [
            ("0x00ff", "\\x00ff"),
            ("0x61", "\\x61"),
            ("0xff", "\\xff"),
            ("0x61", "\\x61"),
            ("0x6161", "\\x6161"),
            ("0x00", "\\x00"),
        ],
    ),
];

#[tokio::test]
async fn any_mariadb_column_is_read_as_text() {
    let allow = "SET sql_mode = ''; SET time_zone = '+00:00';";
    for datatype in ["string", "iri"] {
        check_texts(SourceKind::Mysql, allow, datatype, MARIADB).await;
    }
}

/// In such a column the server treats the zero date as NULL; answers must not.
#[tokio::test]
async fn the_day_zero_is_not_null() {
    let sql = "SET sql_mode = ''; \
        CREATE TABLE things (id integer PRIMARY KEY, day date NOT NULL, at datetime NOT NULL); \
        INSERT INTO things VALUES (1, '0000-00-00', '0000-00-00'), (2, '2024-05-06', '2024-05-06');";
    let loaded = LoadedDatabase::new(SourceKind::Mysql, sql).await;
    let fields = [("day", "string"), ("at", "string")];
    let served = ServedMapping::new(&mapping(SourceKind::Mysql, &[("things", &fields)])).unwrap();
    let store = loaded.store();
    for (field, _) in fields {
        for (wanted, expected) in [(true, 0), (false, 2)] {
            let asked = json!({"stream": "things", "filter": {field: {"is_null": wanted}}});
            let plan = served.query(&arguments(asked)).unwrap();
            let rows = all(store.as_ref(), plan.rows(), &patient()).await.unwrap();
            assert_eq!(rows.len(), expected, "{field} is_null {wanted}");
        }
    }
    store.close().await;
}
