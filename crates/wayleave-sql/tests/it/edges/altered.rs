//! Tables that are altered while a store is open: every answer is right by the mapping, or the read
//! fails because the source has drifted.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};
use wayleave_model::mapping::SourceKind;
use wayleave_plan::interpret::{Answerability, RowMap, TableMap, answerability, interpret};
use wayleave_plan::value::{Value, date_from_text};
use wayleave_store::conformance::{SeededRng, ServedMapping};
use wayleave_store::{Store, StoreError};

use crate::stores::{LoadedDatabase, all, arguments, granted, mapping, patient};

/// Number of changes to make; all of them with `WAYLEAVE_FULL=1`.
fn changes() -> usize {
    if wayleave_test::is_full() { 500 } else { 40 }
}

const TABLE: &str = "CREATE TABLE things (id integer PRIMARY KEY);";
const ROWS: i64 = 8;

/// A value as a SQL literal, and as the mapping reads it; `None` if it is malformed.
type WrittenValue = (&'static str, Option<Value>);

/// A declared type of a column, with values of that type.
type Form = (&'static str, Vec<WrittenValue>);

/// A column of the table, and the types it may change to.
struct AlteredColumn {
    name: &'static str,
    forms: Vec<Form>,
}

fn text(sql: &'static str, text: &str) -> WrittenValue {
    (sql, Some(Value::Text(text.into())))
}

fn integer(sql: &'static str, integer: i128) -> WrittenValue {
    (sql, Some(Value::Integer(integer)))
}

fn date(sql: &'static str, text: &str) -> WrittenValue {
    (sql, date_from_text(text).map(Value::Date))
}

fn nothing(sql: &'static str) -> WrittenValue {
    (sql, None)
}

/// `tenant` is mapped as `string`, `lvl` as `integer`, `dd` as `date`.
fn columns(kind: SourceKind) -> [AlteredColumn; 3] {
    let tenants = vec![
        text("'acme'", "acme"),
        text("'ACME'", "ACME"),
        text("'acmé'", "acmé"),
        text("'acme '", "acme "),
        text("'other'", "other"),
    ];
    let levels = vec![
        integer("1", 1),
        integer("2", 2),
        integer("7", 7),
        integer("70", 70),
    ];
    let days = vec![
        date("'2020-01-01'", "2020-01-01"),
        date("'2024-06-01'", "2024-06-01"),
    ];
    // A text of digits is a number only where a column stores values of any type.
    let spelled = |sql, number| match kind {
        SourceKind::Sqlite => integer(sql, number),
        _ => nothing(sql),
    };
    let words = vec![
        spelled("'1'", 1),
        nothing("'1; secret'"),
        nothing("'secret'"),
        spelled("'70'", 70),
    ];
    let numbers = vec![text("1", "1"), text("2", "2")];
    let parts = vec![nothing("1.5"), nothing("2.5")];
    let written = vec![
        date("'2020-01-01'", "2020-01-01"),
        nothing("'12/31/2031'"),
        nothing("''"),
    ];
    let types = types(kind);
    let each = |types: &[&'static str], held: &[WrittenValue]| -> Vec<Form> {
        types.iter().map(|it| (*it, held.to_vec())).collect()
    };
    let mut tenant = each(types.texts, &tenants);
    tenant.push((types.number, numbers));
    let mut level = each(types.integers, &levels);
    level.extend([(types.word, words), (types.fraction, parts)]);
    let mut day = each(types.dates, &days);
    day.push((types.word, written));
    let altered = |name, forms| AlteredColumn { name, forms };
    [
        altered("tenant", tenant),
        altered("lvl", level),
        altered("dd", day),
    ]
}

/// The declared types of the columns.
struct Types {
    texts: &'static [&'static str],
    integers: &'static [&'static str],
    dates: &'static [&'static str],
    number: &'static str,
    fraction: &'static str,
    word: &'static str,
}

fn types(kind: SourceKind) -> Types {
    match kind {
        SourceKind::Sqlite => Types {
            texts: &["TEXT", "TEXT COLLATE NOCASE", "TEXT COLLATE RTRIM"],
            integers: &["INTEGER", "NUMERIC"],
            dates: &["DATE", "TEXT"],
            number: "INTEGER",
            fraction: "REAL",
            word: "TEXT",
        },
        SourceKind::Postgres => Types {
            texts: &[
                "text COLLATE \"C\"",
                "text COLLATE loose",
                "varchar(40)",
                "text COLLATE \"en-x-icu\"",
            ],
            integers: &["int", "bigint"],
            dates: &["date"],
            number: "int",
            fraction: "numeric",
            word: "varchar(20)",
        },
        _ => Types {
            texts: &[
                "varchar(40) COLLATE utf8mb4_bin",
                "varchar(40) COLLATE utf8mb4_general_ci",
                "varchar(40) CHARACTER SET latin1",
                "text COLLATE utf8mb4_unicode_ci",
                // MySQL and MariaDB have different names for this collation.
                "varchar(40) COLLATE BY_CODE_POINT",
            ],
            integers: &["int", "bigint", "smallint unsigned"],
            dates: &["date"],
            number: "int",
            fraction: "double",
            word: "varchar(20)",
        },
    }
}

/// Generates a grant's row filter, or a caller's filter.
fn filter(rng: &mut SeededRng) -> Json {
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
    rng.pick(&filters).cloned().unwrap()
}

/// A table of these columns and its contents, in a store that stays open.
struct AlteredTable {
    loaded: LoadedDatabase,
    model: Vec<RowMap>,
    columns: [AlteredColumn; 3],
    rng: SeededRng,
    /// The server's code-point collation, where it is MySQL or MariaDB.
    by_code_point: &'static str,
}

impl AlteredTable {
    async fn new(loaded: LoadedDatabase, by_code_point: &'static str) -> Self {
        let columns = columns(loaded.kind);
        let model =
            (0..ROWS).map(|id| BTreeMap::from([("id".to_owned(), Value::Integer(id.into()))]));
        let mut this = Self {
            model: model.collect(),
            columns,
            rng: SeededRng::new(0xA17E),
            by_code_point,
            loaded,
        };
        if this.loaded.kind == SourceKind::Postgres {
            let loose = "CREATE COLLATION loose \
                (provider = icu, locale = 'und-u-ks-level1', deterministic = false);";
            this.loaded.execute(loose).await;
        }
        for id in 0..ROWS {
            let row = format!("INSERT INTO things (id) VALUES ({id});");
            this.loaded.execute(&row).await;
        }
        for place in 0..this.columns.len() {
            this.alter(place, false).await;
        }
        this
    }

    /// Changes a column's type and refills it.
    async fn alter(&mut self, place: usize, drop: bool) {
        let (columns, rng) = (&self.columns, &mut self.rng);
        let name = columns[place].name;
        let (declared, held) = rng.pick(&columns[place].forms).unwrap();
        // Servers that alter a table in place limit the number of such changes.
        let copied = match self.loaded.kind {
            SourceKind::Mysql => ", ALGORITHM = COPY",
            _ => "",
        };
        let mut sql = String::new();
        if drop {
            sql.push_str(&format!("ALTER TABLE things DROP COLUMN {name}{copied};"));
        }
        sql.push_str(&format!(
            "ALTER TABLE things ADD COLUMN {name} {declared}{copied};"
        ));
        let null = ("NULL", Some(Value::Null));
        let mut has_null = false;
        for (id, row) in self.model.iter_mut().enumerate() {
            let is_null = rng.percent(15);
            has_null |= is_null;
            let (literal, value) = if is_null {
                &null
            } else {
                rng.pick(held).unwrap()
            };
            sql.push_str(&format!(
                "UPDATE things SET {name} = {literal} WHERE id = {id};"
            ));
            // A malformed value is represented by a value of no datatype.
            let value = value.clone().unwrap_or(Value::List(Vec::new()));
            row.insert(name.to_owned(), value);
        }
        if !has_null && rng.percent(40) && self.loaded.kind == SourceKind::Postgres {
            sql.push_str(&format!(
                "ALTER TABLE things ALTER COLUMN {name} SET NOT NULL;"
            ));
        }
        let sql = sql.replace("BY_CODE_POINT", self.by_code_point);
        self.loaded.execute(&sql).await;
    }

    /// Renames a column.
    async fn rename(&self, from: &str, to: &str) {
        let sql = format!("ALTER TABLE things RENAME COLUMN {from} TO {to};");
        self.loaded.execute(&sql).await;
    }

    /// Reads once under a generated grant; returns whether there was an answer.
    async fn read(&mut self, store: &dyn Store, mapping: &str, gone: Option<&str>) -> bool {
        let rng = &mut self.rng;
        let rows = filter(rng);
        let served = ServedMapping::with_package(mapping, &granted("things", &rows)).unwrap();
        let sort = *rng.pick(&["id", "-id", "tenant", "-lvl"]).unwrap();
        let mut asked = json!({"stream": "things", "sort": [sort], "limit": 20});
        if rng.percent(50) {
            asked["fields"] = json!(["id"]);
        }
        if rng.percent(40) {
            asked["filter"] = filter(rng);
        }
        let plan = served.query(&arguments(asked.clone())).unwrap();
        let tables = TableMap::from([("things".to_owned(), self.model.clone())]);
        let context = format!("{} {rows} {asked}", self.loaded.kind);
        match all(store, plan.rows(), &patient()).await {
            Ok(answered) => {
                assert!(gone.is_none_or(|it| !names(plan.rows(), it)), "{context}");
                assert_eq!(answered, interpret(plan.rows(), &tables), "{context}");
                assert_ne!(
                    answerability(plan.rows(), &tables),
                    Answerability::Unfit,
                    "{context}"
                );
                true
            }
            Err(StoreError::SchemaDrift { .. } | StoreError::MalformedValue { .. }) => false,
            Err(other) => panic!("{context}: {other:?}"),
        }
    }
}

async fn stays_right(loaded: LoadedDatabase, by_code_point: &'static str) {
    let fields: &[(&str, &str)] = &[("tenant", "string"), ("lvl", "integer"), ("dd", "date")];
    let text = mapping(loaded.kind, &[("things", fields)]);
    let mut changing = AlteredTable::new(loaded, by_code_point).await;
    let store = changing.loaded.store();
    let (mut right, mut drifted) = (0, 0);
    for _ in 0..changes() {
        let place = changing.rng.below(3);
        let name = changing.columns[place].name;
        let gone = changing.rng.percent(15).then_some(name);
        let old = format!("{name}_old");
        if gone.is_some() {
            changing.rename(name, &old).await;
        } else {
            changing.alter(place, true).await;
        }
        for _ in 0..3 {
            if changing.read(store.as_ref(), &text, gone).await {
                right += 1;
            } else {
                drifted += 1;
            }
        }
        if gone.is_some() {
            changing.rename(&old, name).await;
        }
    }
    assert!(right > changes() / 2 && drifted > 0, "{right} {drifted}");
    store.close().await;
}

fn names(plan: &wayleave_plan::AuthorizedPlan, column: &str) -> bool {
    format!("{:?}", plan.read()).contains(&format!("name: \"{column}\""))
}

#[tokio::test]
async fn sqlite_is_read_right_while_its_tables_change() {
    stays_right(LoadedDatabase::new(SourceKind::Sqlite, TABLE).await, "").await;
}

#[tokio::test]
async fn postgres_is_read_right_while_its_tables_change() {
    stays_right(LoadedDatabase::new(SourceKind::Postgres, TABLE).await, "").await;
}

#[tokio::test]
async fn mariadb_is_read_right_while_its_tables_change() {
    let loaded = LoadedDatabase::new(SourceKind::Mysql, TABLE).await;
    stays_right(loaded, "utf8mb4_nopad_bin").await;
}

#[tokio::test]
async fn mysql_is_read_right_while_its_tables_change() {
    if let Some(loaded) = LoadedDatabase::on_mysql(TABLE).await {
        stays_right(loaded, "utf8mb4_0900_bin").await;
    }
}
