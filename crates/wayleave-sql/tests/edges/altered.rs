//! Tables that change under a store that is open: every answer is right by the mapping, or the read
//! fails because the source has drifted.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};
use wayleave_model::mapping::SourceKind;
use wayleave_plan::interpret::{Fit, Row, Tables, fit, interpret};
use wayleave_plan::value::{Value, date_from_text};
use wayleave_store::StoreError;
use wayleave_store::conformance::{Dice, Served};

use super::stores::{Loaded, all, arguments, granted, mapping, patient};

/// How many changes are made: all of them with `WAYLEAVE_FULL=1`.
fn changes() -> usize {
    if std::env::var_os("WAYLEAVE_FULL").is_some_and(|it| it == "1") {
        500
    } else {
        40
    }
}

const ROWS: i64 = 8;

/// One column of the table: what it is declared as now, and what it holds.
struct Altered {
    name: &'static str,
    /// What it may be declared as, each with values of that type as SQL writes them and what they
    /// are by the mapping; `None` where they are nothing by it.
    forms: Vec<(&'static str, Vec<(&'static str, Option<Value>)>)>,
}

fn text(text: &str) -> Option<Value> {
    Some(Value::Text(text.into()))
}

fn integer(integer: i128) -> Option<Value> {
    Some(Value::Integer(integer))
}

fn date(text: &str) -> Option<Value> {
    Some(Value::Date(date_from_text(text).unwrap()))
}

/// `tenant` is mapped as `string`, `lvl` as `integer`, `dd` as `date`.
fn columns(kind: SourceKind) -> [Altered; 3] {
    let tenants = vec![
        ("'acme'", text("acme")),
        ("'ACME'", text("ACME")),
        ("'acmé'", text("acmé")),
        ("'acme '", text("acme ")),
        ("'other'", text("other")),
    ];
    let numbers = vec![("1", text("1")), ("2", text("2"))];
    let levels = vec![
        ("1", integer(1)),
        ("2", integer(2)),
        ("7", integer(7)),
        ("70", integer(70)),
    ];
    // A number as text is one only where a column holds whatever it is given.
    let loose = kind == SourceKind::Sqlite;
    let spelled = vec![
        ("'1'", integer(1).filter(|_| loose)),
        ("'1; secret'", None),
        ("'secret'", None),
        ("'70'", integer(70).filter(|_| loose)),
    ];
    let parts = vec![("1.5", None), ("2.5", None)];
    let days = vec![
        ("'2020-01-01'", date("2020-01-01")),
        ("'2024-06-01'", date("2024-06-01")),
    ];
    let written = vec![
        ("'2020-01-01'", date("2020-01-01")),
        ("'12/31/2031'", None),
        ("''", None),
    ];
    let (tenant, level, day): (&[&str], &[&str], &[&str]) = match kind {
        SourceKind::Sqlite => (
            &["TEXT", "TEXT COLLATE NOCASE", "TEXT COLLATE RTRIM"],
            &["INTEGER", "NUMERIC"],
            &["DATE", "TEXT"],
        ),
        SourceKind::Postgres => (
            &[
                "text COLLATE \"C\"",
                "text COLLATE loose",
                "varchar(40)",
                "text COLLATE \"en-x-icu\"",
            ],
            &["int", "bigint"],
            &["date"],
        ),
        _ => (
            &[
                "varchar(40) COLLATE utf8mb4_bin",
                "varchar(40) COLLATE utf8mb4_general_ci",
                "varchar(40) CHARACTER SET latin1",
                "text COLLATE utf8mb4_unicode_ci",
            ],
            &["int", "bigint", "smallint unsigned"],
            &["date"],
        ),
    };
    let (number, float, words, time) = match kind {
        SourceKind::Sqlite => ("INTEGER", "REAL", "TEXT", "TEXT"),
        SourceKind::Postgres => ("int", "numeric", "varchar(20)", "varchar(20)"),
        _ => ("int", "double", "varchar(20)", "varchar(20)"),
    };
    let each = |types: &[&'static str], held: &[(&'static str, Option<Value>)]| {
        types
            .iter()
            .map(|it| (*it, held.to_vec()))
            .collect::<Vec<_>>()
    };
    let mut tenant = each(tenant, &tenants);
    tenant.push((number, numbers));
    let mut level = each(level, &levels);
    level.extend([(words, spelled), (float, parts)]);
    let mut day = each(day, &days);
    day.push((time, written));
    let altered = |name, forms| Altered { name, forms };
    [
        altered("tenant", tenant),
        altered("lvl", level),
        altered("dd", day),
    ]
}

/// A row filter or a filter of the caller's.
fn filter(dice: &mut Dice) -> Json {
    let filters = [
        json!({"tenant": "acme"}),
        json!({"tenant": ["acme", "1"]}),
        json!({"tenant": {"ne": "acme"}}),
        json!({"tenant": {"starts_with": "acme"}}),
        json!({"tenant": "1x"}),
        json!({"lvl": 1}),
        json!({"lvl": {"lt": 3}}),
        json!({"lvl": {"gte": 7}}),
        json!({"lvl": {"not_in": [1, 2]}}),
        json!({"dd": {"lt": "2024-01-01"}}),
        json!({"dd": {"ne": "2020-01-01"}}),
        json!({"dd": "2024-06-01"}),
        json!({"dd": {"is_null": false}}),
    ];
    dice.pick(&filters).cloned().unwrap()
}

async fn stays_right(kind: SourceKind) {
    let columns = columns(kind);
    let before = match kind {
        SourceKind::Postgres => {
            "CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level1', deterministic = false);"
        }
        _ => "",
    };
    let loaded = Loaded::new(
        kind,
        &format!("{before} CREATE TABLE things (id integer PRIMARY KEY);"),
    )
    .await;
    let mut model: Vec<Row> = (0..ROWS)
        .map(|id| BTreeMap::from([("id".to_owned(), Value::Integer(id.into()))]))
        .collect();
    for id in 0..ROWS {
        loaded
            .execute(&format!("INSERT INTO things (id) VALUES ({id});"))
            .await;
    }
    let mut dice = Dice::new(0xA17E);
    for column in &columns {
        alter(&loaded, &mut model, column, &mut dice, false).await;
    }
    let store = loaded.store();
    let text = mapping(
        kind,
        &[(
            "things",
            &[("tenant", "string"), ("lvl", "integer"), ("dd", "date")],
        )],
    );
    let (mut right, mut drifted) = (0, 0);
    for _ in 0..changes() {
        let column = dice.pick(&columns).unwrap();
        let gone = dice.percent(15);
        if gone {
            let rename = format!(
                "ALTER TABLE things RENAME COLUMN {0} TO {0}_old;",
                column.name
            );
            loaded.execute(&rename).await;
        } else {
            alter(&loaded, &mut model, column, &mut dice, true).await;
        }
        for _ in 0..3 {
            let rows = filter(&mut dice);
            let served = Served::to(&text, &granted("things", &rows)).unwrap();
            let sort = *dice.pick(&["id", "-id", "tenant", "-lvl"]).unwrap();
            let mut asked = json!({"stream": "things", "sort": [sort], "limit": 20});
            if dice.percent(50) {
                asked["fields"] = json!(["id"]);
            }
            if dice.percent(40) {
                asked["filter"] = filter(&mut dice);
            }
            let plan = served.query(&arguments(asked.clone())).unwrap();
            let tables = Tables::from([("things".to_owned(), model.clone())]);
            let context = format!("{kind} {rows} {asked}");
            match all(store.as_ref(), plan.rows(), &patient()).await {
                Ok(answered) => {
                    assert!(!gone || !names(plan.rows(), column.name), "{context}");
                    assert_eq!(answered, interpret(plan.rows(), &tables), "{context}");
                    assert_ne!(fit(plan.rows(), &tables), Fit::Unfit, "{context}");
                    right += 1;
                }
                Err(StoreError::SchemaDrift { .. } | StoreError::Unfit { .. }) => drifted += 1,
                Err(other) => panic!("{context}: {other:?}"),
            }
        }
        if gone {
            let rename = format!(
                "ALTER TABLE things RENAME COLUMN {0}_old TO {0};",
                column.name
            );
            loaded.execute(&rename).await;
        }
    }
    assert!(right > changes() / 2 && drifted > 0, "{right} {drifted}");
    store.close().await;
}

fn names(plan: &wayleave_plan::AuthorizedPlan, column: &str) -> bool {
    format!("{:?}", plan.read()).contains(&format!("name: \"{column}\""))
}

/// Declares a column anew and fills it.
async fn alter(loaded: &Loaded, model: &mut [Row], column: &Altered, dice: &mut Dice, drop: bool) {
    let (declared, held) = dice.pick(&column.forms).unwrap();
    let name = column.name;
    let mut sql = String::new();
    if drop {
        sql.push_str(&format!("ALTER TABLE things DROP COLUMN {name};"));
    }
    sql.push_str(&format!("ALTER TABLE things ADD COLUMN {name} {declared};"));
    for (id, row) in model.iter_mut().enumerate() {
        let null = ("NULL", Some(Value::Null));
        let (literal, value) = if dice.percent(15) {
            &null
        } else {
            dice.pick(held).unwrap()
        };
        sql.push_str(&format!(
            "UPDATE things SET {name} = {literal} WHERE id = {id};"
        ));
        // What is nothing by the mapping is a value of no datatype here.
        let value = value.clone().unwrap_or(Value::List(Vec::new()));
        row.insert(name.to_owned(), value);
    }
    if !sql.contains("NULL") && dice.percent(40) && loaded.kind == SourceKind::Postgres {
        sql.push_str(&format!(
            "ALTER TABLE things ALTER COLUMN {name} SET NOT NULL;"
        ));
    }
    loaded.execute(&sql).await;
}

#[tokio::test]
async fn sqlite_is_read_right_while_its_tables_change() {
    stays_right(SourceKind::Sqlite).await;
}

#[tokio::test]
async fn postgres_is_read_right_while_its_tables_change() {
    stays_right(SourceKind::Postgres).await;
}

#[tokio::test]
async fn mariadb_is_read_right_while_its_tables_change() {
    stays_right(SourceKind::Mysql).await;
}
