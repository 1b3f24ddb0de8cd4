//! Times in SQLite, in every written form: a table with indexes gives the same answers as one
//! without, which reads every value with the function that the conformance suite compares with the
//! reference.

use crate::stores::{LoadedDatabase, all, arguments, mapping, patient};
use serde_json::{Value as Json, json};
use wayleave_model::mapping::SourceKind;
use wayleave_plan::value::Value;
use wayleave_store::Store;
use wayleave_store::conformance::{SeededRng, ServedMapping};

const ROWS: usize = 200;

/// Number of requests: a share of them by default, all with `WAYLEAVE_FULL=1`.
fn requests() -> usize {
    if wayleave_test::is_full() { 300 } else { 25 }
}

/// Generates times in the forms that programs write, within a few days of each other, so that
/// offsets matter.
fn text(rng: &mut SeededRng) -> String {
    let day = 1 + rng.below(6);
    let (hour, minute, second) = (rng.below(24), rng.below(3) * 20, rng.below(2) * 30);
    let mut text = format!("2024-03-{day:02}");
    match rng.below(12) {
        0 => return text,
        1 => return format!("{text} {hour:02}:{minute:02}"),
        2..5 => text += &format!("T{hour:02}:{minute:02}:{second:02}"),
        5 => text += &format!("t{hour:02}:{minute:02}:{second:02}"),
        6 => text += &format!("T{hour:02}:{minute:02}:{second:02}.{:03}", rng.below(3)),
        7 => text += &format!(" {hour:02}:{minute:02}:{second:02}.{:09}", rng.below(3)),
        _ => text += &format!(" {hour:02}:{minute:02}:{second:02}"),
    }
    text + rng.word(&[
        "", "", "", "Z", "z", "+00:00", "+02:00", "-11:30", "+0530", "+23:59", "-23:59", " UTC",
        " ",
    ])
}

/// Generates times in one form, as `toISOString` writes it.
fn canonical(rng: &mut SeededRng) -> String {
    let (day, hour) = (1 + rng.below(6), rng.below(24));
    format!(
        "2024-03-{day:02}T{hour:02}:00:{:02}.{:03}Z",
        rng.below(60),
        rng.below(2) * 500
    )
}

fn number(rng: &mut SeededRng) -> String {
    let second = 1_709_251_200 + rng.below(300);
    match rng.below(4) {
        0 => format!("{second}.{:07}", rng.below(30)),
        1 => format!("{second}.5"),
        _ => second.to_string(),
    }
}

/// The kind of values in a column.
#[derive(Debug, Clone, Copy)]
enum ColumnContents {
    Texts,
    Canonical,
    Numbers,
    Both,
    Nothing,
}

fn literal(rng: &mut SeededRng, holds: ColumnContents) -> String {
    match holds {
        ColumnContents::Canonical => format!("'{}'", canonical(rng)),
        ColumnContents::Numbers => number(rng),
        ColumnContents::Both if rng.percent(50) => number(rng),
        ColumnContents::Texts | ColumnContents::Both => format!("'{}'", text(rng)),
        ColumnContents::Nothing => "NULL".to_owned(),
    }
}

const ODD: &str = "CREATE INDEX odd ON indexed (at) WHERE at NOT GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-5][0-9]:[0-5][0-9].[0-9][0-9][0-9]Z';";

fn tables(rng: &mut SeededRng, declared: &str, holds: ColumnContents, not_null: bool) -> String {
    let constraint = if not_null { "NOT NULL" } else { "" };
    let columns = format!(
        "(id integer PRIMARY KEY, at {declared} {constraint}, who text, code UUID, small integer)"
    );
    let mut sql = format!("CREATE TABLE plain {columns}; CREATE TABLE indexed {columns};");
    let mut values = Vec::new();
    for id in 0..ROWS {
        let at = if not_null || rng.percent(85) {
            literal(rng, holds)
        } else {
            "NULL".to_owned()
        };
        let who = rng.word(&["'a'", "'b'", "NULL"]);
        let code = rng.word(&["'x1'", "'0e'", "'ff-1'", "''", "'7-7'"]);
        let small = rng.word(&["1", "2", "3", "NULL"]);
        values.push(format!("({id}, {at}, {who}, {code}, {small})"));
    }
    sql += &format!("INSERT INTO plain VALUES {};", values.join(", "));
    sql += "INSERT INTO indexed SELECT * FROM plain;";
    sql += "CREATE INDEX by_at ON indexed (at); CREATE INDEX by_who ON indexed (who, at); \
            CREATE INDEX by_code ON indexed (code); CREATE INDEX by_small ON indexed (small);";
    sql
}

fn operand(rng: &mut SeededRng, holds: ColumnContents) -> Json {
    let text = match holds {
        ColumnContents::Numbers => format!(
            "2024-03-01T00:0{}:{:02}{}Z",
            rng.below(5),
            rng.below(60),
            rng.word(&["", ".5", ".000001", ".000002"])
        ),
        ColumnContents::Canonical => format!(
            "2024-03-0{}T{:02}:00:{:02}{}Z",
            1 + rng.below(6),
            rng.below(24),
            rng.below(60),
            rng.word(&["", ".5", ".500001"])
        ),
        _ => format!("2024-03-0{}T{:02}:20:00Z", 1 + rng.below(6), rng.below(24)),
    };
    match rng.below(30) {
        0 => json!("0001-01-01T00:00:00Z"),
        1 => json!("9999-12-31T23:59:59.999999Z"),
        _ => json!(text),
    }
}

fn filter(rng: &mut SeededRng, holds: ColumnContents) -> Json {
    let mut filter = serde_json::Map::new();
    if rng.percent(60) {
        let mut tests = serde_json::Map::new();
        let first = rng.word(&["gte", "gt", "eq", "ne", "lt", "lte"]);
        tests.insert(first.to_owned(), operand(rng, holds));
        if first.starts_with('g') {
            let second = rng.word(&["lt", "lte"]);
            tests.insert(second.to_owned(), operand(rng, holds));
        }
        filter.insert("at".to_owned(), Json::Object(tests));
    }
    match rng.below(4) {
        0 => drop(filter.insert("who".to_owned(), json!("a"))),
        1 => drop(filter.insert("code".to_owned(), json!({"gte": "7", "lt": "y"}))),
        _ => {}
    }
    if filter.is_empty() {
        Json::Null
    } else {
        Json::Object(filter)
    }
}

/// All rows of a walk as text, or its error.
async fn walk(
    store: &dyn Store,
    served: &ServedMapping,
    stream: &str,
    request: &Json,
) -> Result<Vec<String>, String> {
    let mut query = arguments(request.clone());
    query.insert("stream".to_owned(), json!(stream));
    query.retain(|_, value| !value.is_null());
    let mut lines = Vec::new();
    loop {
        let plan = served.query(&query).unwrap_or_else(|| panic!("{query:?}"));
        let rows = all(store, plan.rows(), &patient()).await;
        let rows = rows.map_err(|error| error.to_string())?;
        let page = plan.page(&rows);
        for record in page.records() {
            let values: Vec<Json> = record.values.iter().map(Value::to_json).collect();
            lines.push(Json::Array(values).to_string());
        }
        match page.next_cursor(page.records().len(), served.seal()) {
            Some(cursor) => drop(query.insert("cursor".to_owned(), json!(cursor))),
            None => return Ok(lines),
        }
    }
}

async fn groups(
    store: &dyn Store,
    served: &ServedMapping,
    stream: &str,
    filter: &Json,
) -> Vec<String> {
    let mut request = json!({
        "stream": stream, "filter": filter, "group_by_time": {"field": "at", "granularity": "day"},
        "metrics": [
            {"op": "count"}, {"op": "count_distinct", "field": "at"},
            {"op": "min", "field": "at"}, {"op": "max", "field": "at"}
        ],
    });
    if filter.is_null() {
        request.as_object_mut().unwrap().remove("filter");
    }
    let plan = served.aggregate(&arguments(request)).unwrap();
    let rows = all(store, plan.groups(), &patient()).await.unwrap();
    let line = |row: &Vec<Value>| {
        let values: Vec<Json> = row.iter().map(Value::to_json).collect();
        Json::Array(values).to_string()
    };
    rows.iter().map(line).collect()
}

fn served() -> ServedMapping {
    let fields: &[(&str, &str)] = &[
        ("at", "datetime"),
        ("who", "string"),
        ("code", "string"),
        ("small", "integer"),
    ];
    let tables = [("plain", fields), ("indexed", fields)];
    ServedMapping::new(&mapping(SourceKind::Sqlite, &tables)).unwrap()
}

async fn check(declared: &str, holds: ColumnContents, not_null: bool, more: &str) {
    let mut rng = SeededRng::new(11);
    let sql = tables(&mut rng, declared, holds, not_null) + more;
    let loaded = LoadedDatabase::new(SourceKind::Sqlite, &sql).await;
    let (store, served) = (loaded.store(), served());
    for _ in 0..requests() {
        let mut request = json!({"limit": 3 + rng.below(60), "filter": filter(&mut rng, holds)});
        let sort = match rng.below(8) {
            0 => json!(["at", "-small"]),
            1 => json!(["-at", "-id"]),
            2 => json!(["code"]),
            3 => json!(["small"]),
            4 => json!(["-small", "at"]),
            5 | 6 => json!(["-at"]),
            _ => json!(["at"]),
        };
        request["sort"] = sort;
        let expected = walk(store.as_ref(), &served, "plain", &request).await;
        let found = walk(store.as_ref(), &served, "indexed", &request).await;
        assert_eq!(found, expected, "{declared} {holds:?} {request}");
        let filter = &request["filter"];
        let expected = groups(store.as_ref(), &served, "plain", filter).await;
        let found = groups(store.as_ref(), &served, "indexed", filter).await;
        assert_eq!(found, expected, "{declared} {holds:?} {filter}");
    }
    store.close().await;
}

#[tokio::test]
async fn texts_of_every_form_are_in_the_order_of_their_times() {
    for declared in ["text", "datetime", "", "integer"] {
        check(declared, ColumnContents::Texts, false, "").await;
        check(declared, ColumnContents::Texts, true, "").await;
    }
}

#[tokio::test]
async fn numbers_of_seconds_are_in_the_order_of_their_times() {
    for declared in ["datetime", "integer", "real", ""] {
        check(declared, ColumnContents::Numbers, false, "").await;
    }
}

#[tokio::test]
async fn texts_among_numbers_are_in_the_order_of_their_times() {
    check("datetime", ColumnContents::Both, false, "").await;
    check("", ColumnContents::Both, true, "").await;
    check("datetime", ColumnContents::Nothing, false, "").await;
}

#[tokio::test]
async fn texts_of_one_form_are_in_the_order_of_their_times() {
    check("datetime", ColumnContents::Canonical, false, ODD).await;
    check("text collate nocase", ColumnContents::Canonical, true, ODD).await;
    // A value in another form.
    let other = "UPDATE plain SET at = '2024-03-04T23:00:00-05:00' WHERE id = 7; \
                 UPDATE indexed SET at = '2024-03-04T23:00:00-05:00' WHERE id = 7;";
    check(
        "text",
        ColumnContents::Canonical,
        true,
        &format!("{ODD}{other}"),
    )
    .await;
    // A partial index that covers only some of the values in another form proves nothing.
    let some = ODD.replace("Z';", "Z' AND small = 9;");
    assert_ne!(some, ODD);
    check(
        "text",
        ColumnContents::Canonical,
        true,
        &format!("{some}{other}"),
    )
    .await;
}

#[tokio::test]
async fn a_text_of_another_form_that_comes_later_is_in_its_place() {
    let mut rng = SeededRng::new(3);
    let sql = tables(&mut rng, "text", ColumnContents::Canonical, true) + ODD;
    let loaded = LoadedDatabase::new(SourceKind::Sqlite, &sql).await;
    let (store, served) = (loaded.store(), served());
    for at in [
        "'2024-03-04T23:00:00-05:00'",
        "'2024-03-03 00:00:00'",
        "1709500000",
    ] {
        for sort in ["at", "-at"] {
            let request = json!({"sort": [sort], "limit": 20});
            let expected = walk(store.as_ref(), &served, "plain", &request).await;
            let found = walk(store.as_ref(), &served, "indexed", &request).await;
            assert!(found.is_ok() && found == expected, "{at} {sort}: {found:?}");
        }
        let changed = |table: &str| format!("UPDATE {table} SET at = {at} WHERE id = 9;");
        loaded
            .execute(&(changed("plain") + &changed("indexed")))
            .await;
    }
    store.close().await;
}

#[tokio::test]
async fn no_walk_passes_over_what_is_no_time() {
    let values = [
        "''",
        "'yesterday'",
        "'2024-03-99'",
        "'06/05/2024'",
        "'2024-03-02T99:00:00.000Z'",
        "x'00'",
        "1e300",
    ];
    for (declared, more) in [("text", ""), ("datetime", ""), ("datetime", ODD)] {
        for value in values {
            let mut rng = SeededRng::new(4);
            let sql = tables(&mut rng, declared, ColumnContents::Canonical, false) + more;
            let odd = format!("UPDATE indexed SET at = {value} WHERE id = 9;");
            let loaded = LoadedDatabase::new(SourceKind::Sqlite, &(sql + &odd)).await;
            let (store, served) = (loaded.store(), served());
            for sort in ["at", "-at"] {
                let request = json!({"sort": [sort], "limit": 20});
                let found = walk(store.as_ref(), &served, "indexed", &request).await;
                let refused = "a value of column `at` is not of datatype `datetime`";
                assert_eq!(found.unwrap_err(), refused, "{declared} {value} {sort}");
            }
            store.close().await;
        }
    }
}
