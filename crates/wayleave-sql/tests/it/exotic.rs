//! Types that only some stores have, read and filtered according to their mappings.

mod as_text;
use std::fmt::Write as _;

use crate::stores::{LoadedDatabase, all, arguments, mapping, patient};
use serde_json::{Value as Json, json};
use wayleave_model::mapping::SourceKind;
use wayleave_store::conformance::ServedMapping;

/// A column: its field, datatype, type in the store, a value as a SQL literal, and the value as
/// answered.
type ExoticColumn = (&'static str, &'static str, &'static str, &'static str, Json);

/// Creates a table with a row of values and a row of NULLs, reads it, and finds the row again by
/// each value.
async fn check(kind: SourceKind, columns: Vec<ExoticColumn>) {
    let declared: Vec<String> = columns
        .iter()
        .map(|it| format!("{} {}", it.0, it.2))
        .collect();
    let values: Vec<&str> = columns.iter().map(|it| it.3).collect();
    let nulls = vec!["NULL"; columns.len()];
    let sql = format!(
        "CREATE TABLE things (id integer PRIMARY KEY, {}); INSERT INTO things VALUES (1, {}), (2, {});",
        declared.join(", "),
        values.join(", "),
        nulls.join(", ")
    );
    let loaded = LoadedDatabase::new(kind, &sql).await;
    let fields: Vec<(&str, &str)> = columns.iter().map(|it| (it.0, it.1)).collect();
    let served = ServedMapping::new(&mapping(kind, &[("things", &fields)])).unwrap();
    let store = loaded.store();
    let plan = served
        .query(&arguments(json!({"stream": "things"})))
        .unwrap();
    let rows = all(store.as_ref(), plan.rows(), &patient()).await.unwrap();
    let page = plan.page(&rows);
    for (index, (field, datatype, .., expected)) in columns.iter().enumerate() {
        let shown = page.records()[0].values[index + 1].to_json();
        assert_eq!(shown, *expected, "{kind}: {field}");
        assert!(
            page.records()[1].values[index + 1].to_json().is_null(),
            "{kind}: {field}"
        );
        if matches!(*datatype, "json") {
            continue;
        }
        let ops: &[&str] = match *datatype {
            "boolean" => &["eq"],
            _ => &["eq", "gte", "lte"],
        };
        for op in ops {
            let filter =
                json!({"stream": "things", "filter": {*field: {*op: expected}}, "sort": [*field]});
            let plan = served.query(&arguments(filter.clone())).unwrap();
            let found = all(store.as_ref(), plan.rows(), &patient()).await;
            let found = found.unwrap_or_else(|error| panic!("{kind} {filter}: {error:?}"));
            assert_eq!(found.len(), 1, "{kind}: {filter}");
        }
        let group = json!({"stream": "things", "metrics": [{"op": "count"}], "group_by": [*field], "sort": ["-count"]});
        if let Some(plan) = served.aggregate(&arguments(group)) {
            let groups = all(store.as_ref(), plan.groups(), &patient())
                .await
                .unwrap();
            assert_eq!(groups.len(), 2, "{kind}: {field}");
            assert_eq!(groups[0][0].to_json(), *expected, "{kind}: {field}");
        }
    }
    store.close().await;
}

#[tokio::test]
async fn postgres_types_are_read() {
    check(
        SourceKind::Postgres,
        vec![
            ("a", "string", "bytea", "'\\x00ff'", json!("\\x00ff")),
            ("b", "string", "inet", "'10.0.0.1/8'", json!("10.0.0.1/8")),
            (
                "c",
                "string",
                "interval",
                "'1 day 02:03'",
                json!("P1DT2H3M"),
            ),
            ("d", "string", "char(5)", "'ab'", json!("ab")),
            ("e", "string", "int4range", "'[1,5)'", json!("[1,5)")),
            ("f", "string", "time", "'01:02:03'", json!("01:02:03")),
            ("g", "string", "name", "'x'", json!("x")),
            (
                "h",
                "integer",
                "oid",
                "4000000000",
                json!(4_000_000_000_u64),
            ),
            ("i", "number", "float4", "0.5", json!(0.5)),
            ("j", "decimal", "int", "7", json!("7")),
            ("k", "number", "numeric", "1.25", json!(1.25)),
            (
                "l",
                "json",
                "json",
                "'{\"b\":1,\"a\":2}'",
                json!({"a": 2, "b": 1}),
            ),
            ("m", "string", "xml", "'<a/>'", json!("<a/>")),
            (
                "n",
                "datetime",
                "timestamp(0)",
                "'2024-05-06 07:08:09'",
                json!("2024-05-06T07:08:09Z"),
            ),
            (
                "o",
                "datetime",
                "timestamptz",
                "'2024-05-06 09:08:09+02'",
                json!("2024-05-06T07:08:09Z"),
            ),
        ],
    )
    .await;
}

/// Columns of arrays.
fn arrays() -> Vec<ExoticColumn> {
    vec![
        (
            "a",
            "integer",
            "int[]",
            "'{1,NULL,-5}'",
            json!([1, null, -5]),
        ),
        ("b", "boolean", "bool[]", "'{t,f}'", json!([true, false])),
        (
            "c",
            "datetime",
            "timestamptz[]",
            "'{2024-05-06 07:08:09+02}'",
            json!(["2024-05-06T05:08:09Z"]),
        ),
        (
            "d",
            "date",
            "date[]",
            "'{2024-05-06}'",
            json!(["2024-05-06"]),
        ),
        (
            "e",
            "json",
            "jsonb[]",
            "ARRAY['{\"a\":1}'::jsonb]",
            json!([{"a": 1}]),
        ),
        ("f", "number", "real[]", "'{0.1,1e30}'", json!([0.1, 1e30])),
        (
            "g",
            "decimal",
            "numeric[]",
            "'{0.10,1e3}'",
            json!(["0.1", "1000"]),
        ),
        (
            "h",
            "string",
            "char(4)[]",
            "'{a,\"b c\"}'",
            json!(["a", "b c"]),
        ),
        (
            "i",
            "string",
            "bytea[]",
            "ARRAY['\\x00ff'::bytea]",
            json!(["\\x00ff"]),
        ),
        (
            "j",
            "string",
            "text[]",
            "'[2:3]={x,\"\"}'",
            json!(["x", ""]),
        ),
        ("k", "string", "text[]", "'{}'", json!([])),
        (
            "l",
            "integer",
            "bigint[]",
            "'{9223372036854775807}'",
            json!(["9223372036854775807"]),
        ),
    ]
}

/// List items are read like single values.
#[tokio::test]
async fn postgres_arrays_are_read() {
    let kind = SourceKind::Postgres;
    let columns = arrays();
    let declared: Vec<_> = columns
        .iter()
        .map(|it| format!("{} {}", it.0, it.2))
        .collect();
    let values: Vec<_> = columns.iter().map(|it| it.3).collect();
    let sql = format!(
        "CREATE TABLE things (id int, {}); INSERT INTO things VALUES (1, {});",
        declared.join(", "),
        values.join(", ")
    );
    let loaded = LoadedDatabase::new(kind, &sql).await;
    let mut text = mapping(kind, &[("things", &[])]);
    for (field, datatype, ..) in &columns {
        let declared = format!("datatype = \"{datatype}\"\nmany = true\n");
        writeln!(text, "[streams.things.fields.{field}]\n{declared}").unwrap();
    }
    let served = ServedMapping::new(&text).unwrap();
    let store = loaded.store();
    let plan = served.query(&arguments(json!({"stream": "things"})));
    let rows = all(store.as_ref(), plan.unwrap().rows(), &patient()).await;
    let row = rows.unwrap().remove(0);
    for (value, (_, _, declared, _, expected)) in row[1..].iter().zip(&columns) {
        assert_eq!(value.to_json(), *expected, "{declared}");
    }
    store.close().await;
}

#[tokio::test]
async fn mariadb_types_are_read() {
    check(
        SourceKind::Mysql,
        vec![
            ("a", "string", "varbinary(9)", "0x00ff", json!("\\x00ff")),
            ("b", "string", "inet6", "'::1'", json!("::1")),
            (
                "c",
                "string",
                "uuid",
                "'123e4567-e89b-12d3-a456-426655440000'",
                json!("123e4567-e89b-12d3-a456-426655440000"),
            ),
            ("d", "string", "char(5)", "'ab'", json!("ab")),
            ("e", "string", "set('x','y')", "'x,y'", json!("x,y")),
            (
                "f",
                "string",
                "time(3)",
                "'-01:02:03.5'",
                json!("-01:02:03.500"),
            ),
            (
                "g",
                "integer",
                "bigint unsigned",
                "18446744073709551615",
                json!("18446744073709551615"),
            ),
            ("h", "integer", "bit(8)", "b'10000001'", json!(129)),
            ("i", "number", "float", "0.5", json!(0.5)),
            ("j", "decimal", "int", "7", json!("7")),
            ("k", "number", "decimal(9,2)", "1.25", json!(1.25)),
            ("l", "boolean", "bit(1)", "b'1'", json!(true)),
            ("m", "boolean", "tinyint(1)", "2", json!(true)),
            ("n", "integer", "year", "2024", json!(2024)),
            (
                "o",
                "string",
                "varchar(9) CHARACTER SET latin1",
                "'é'",
                json!("é"),
            ),
            (
                "p",
                "string",
                "varchar(9) CHARACTER SET utf16",
                "'日本'",
                json!("日本"),
            ),
            (
                "q",
                "datetime",
                "datetime",
                "'2024-05-06 07:08:09'",
                json!("2024-05-06T07:08:09Z"),
            ),
            (
                "r",
                "decimal",
                "decimal(65,30)",
                "0.000000000000000000000000000001",
                json!("0.000000000000000000000000000001"),
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn sqlite_values_are_read_as_their_mappings_say() {
    check(
        SourceKind::Sqlite,
        vec![
            ("a", "string", "BLOB", "x'00ff'", json!("\\x00ff")),
            ("b", "string", "", "12", json!("12")),
            ("c", "string", "STRING", "'0012x'", json!("0012x")),
            (
                "d",
                "datetime",
                "INTEGER",
                "1714979289",
                json!("2024-05-06T07:08:09Z"),
            ),
            (
                "e",
                "datetime",
                "REAL",
                "1714979289.5",
                json!("2024-05-06T07:08:09.5Z"),
            ),
            (
                "f",
                "datetime",
                "TEXT",
                "'2024-05-06T09:08:09+02:00'",
                json!("2024-05-06T07:08:09Z"),
            ),
            ("g", "boolean", "BOOLEAN", "'t'", json!(true)),
            ("h", "boolean", "TEXT", "'false'", json!(false)),
            (
                "i",
                "decimal",
                "TEXT",
                "'12345678901234567890.10'",
                json!("12345678901234567890.1"),
            ),
            ("j", "decimal", "DECIMAL(10, 2)", "0.1", json!("0.1")),
            ("k", "integer", "REAL", "7.0", json!(7)),
            ("l", "number", "INTEGER", "7", json!(7.0)),
            (
                "m",
                "json",
                "TEXT",
                "'{\"b\":1,\"a\":2}'",
                json!({"a": 2, "b": 1}),
            ),
            ("n", "date", "TEXT", "'2024-05-06'", json!("2024-05-06")),
            (
                "o",
                "integer",
                "INTEGER",
                "9223372036854775807",
                json!("9223372036854775807"),
            ),
        ],
    )
    .await;
}

/// Checks that a malformed value is an error that names its column, not a NULL.
async fn refused(kind: SourceKind, columns: &[(&str, &str, &str)]) {
    for (datatype, declared, value) in columns {
        // Writing the zero date needs a session that allows it.
        let allow = if kind == SourceKind::Mysql {
            "SET sql_mode = '';"
        } else {
            ""
        };
        let sql = format!(
            "{allow} CREATE TABLE things (id integer PRIMARY KEY, odd {declared}); \
             INSERT INTO things VALUES (1, {value});"
        );
        let loaded = LoadedDatabase::new(kind, &sql).await;
        let many = declared.ends_with("[]");
        let mut text = mapping(kind, &[("things", &[("odd", *datatype)])]);
        if many {
            text.push_str("many = true\n");
        }
        let served = ServedMapping::new(&text).unwrap();
        let store = loaded.store();
        let plan = served
            .query(&arguments(json!({"stream": "things"})))
            .unwrap();
        let error = all(store.as_ref(), plan.rows(), &patient())
            .await
            .unwrap_err();
        let refusal = format!("a value of column `odd` is not of datatype `{datatype}`");
        assert_eq!(error.to_string(), refusal, "{kind}: {declared} {value}");
        if matches!(*datatype, "date" | "datetime") {
            let days = json!({"stream": "things", "metrics": [{"op": "count"}],
                "group_by_time": {"field": "odd", "granularity": "day"}});
            let plan = served.aggregate(&arguments(days)).unwrap();
            let error = all(store.as_ref(), plan.groups(), &patient())
                .await
                .unwrap_err();
            assert_eq!(error.to_string(), refusal, "{kind}: days of {value}");
        }
        // The store still works, on this session or another.
        let count = json!({"stream": "things", "metrics": [{"op": "count"}]});
        let plan = served.aggregate(&arguments(count)).unwrap();
        let counted = all(store.as_ref(), plan.groups(), &patient())
            .await
            .unwrap();
        assert_eq!(counted[0][0].to_json(), json!(1));
        store.close().await;
    }
}

#[tokio::test]
async fn values_of_no_datatype_are_refused_by_name() {
    refused(
        SourceKind::Postgres,
        &[
            ("decimal", "numeric", "'NaN'"),
            ("number", "float8", "'Infinity'"),
            ("number", "float8", "'NaN'"),
            ("datetime", "timestamptz", "'infinity'"),
            ("datetime", "timestamp", "'-infinity'"),
            ("date", "date", "'infinity'"),
            ("string", "text[]", "'{{a,b},{c,d}}'"),
        ],
    )
    .await;
    refused(
        SourceKind::Mysql,
        &[
            ("date", "date", "'0000-00-00'"),
            ("datetime", "datetime", "'2024-00-00 00:00:00'"),
            ("json", "text", "'{'"),
        ],
    )
    .await;
    refused(
        SourceKind::Sqlite,
        &[
            ("integer", "INTEGER", "'many'"),
            ("integer", "REAL", "0.5"),
            ("number", "REAL", "9e999"),
            ("date", "DATE", "'2024-02-30'"),
            ("date", "DATE", "'2024-02-03 00:00:00'"),
            ("datetime", "DATETIME", "'yesterday'"),
            ("decimal", "TEXT", "'1e5'"),
            ("boolean", "BOOLEAN", "'maybe'"),
            ("json", "TEXT", "'{'"),
        ],
    )
    .await;
}
