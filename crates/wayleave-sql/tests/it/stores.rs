//! The records of the conformance suite in each store, in tables that differ as much as the stores
//! allow.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value as Json};
use tempfile::TempDir;
use wayleave_model::mapping::{Datatype, SourceKind};
use wayleave_plan::AuthorizedPlan;
use wayleave_plan::interpret::{RowMap, TableMap};
use wayleave_plan::package::{
    FieldScope, Grant, Grants, Package, RelationScope, StreamGrant, StreamScope,
};
use wayleave_plan::value::Value;
use wayleave_sql::{Dsn, StoreOptions, store};
use wayleave_store::conformance::fixture::{
    FixtureColumn, PART_COLUMNS, PARTS, SAMPLE_COLUMNS, SAMPLES, rows,
};
use wayleave_store::{Answer, ReadContext, Row, Store, StoreError};
use wayleave_test::{MysqlServer, mariadb, mysql, postgres, sqlite_file};

/// The kinds of store under test.
pub(crate) const KINDS: [SourceKind; 3] =
    [SourceKind::Sqlite, SourceKind::Postgres, SourceKind::Mysql];

/// A database, and its owner's access to it.
pub(crate) struct LoadedDatabase {
    pub(crate) kind: SourceKind,
    pub(crate) dsn: String,
    /// The database's name on its server; for SQLite, its path.
    pub(crate) name: String,
    /// The server, for MySQL and MariaDB.
    pub(crate) server: Option<&'static MysqlServer>,
    _folder: Option<TempDir>,
}

impl LoadedDatabase {
    /// Creates a database of a kind and runs `sql` in it.
    pub(crate) async fn new(kind: SourceKind, sql: &str) -> Self {
        let (dsn, name, folder) = match kind {
            SourceKind::Sqlite => {
                let (folder, path) = sqlite_file(sql).unwrap();
                let path = path.to_str().unwrap().to_owned();
                (path.clone(), path, Some(folder))
            }
            SourceKind::Postgres => {
                let made = postgres().await.fresh_database("read", sql).await.unwrap();
                (made.dsn, made.name, None)
            }
            _ => return Self::on_server(mariadb().await, sql).await,
        };
        Self {
            kind,
            dsn,
            name,
            server: None,
            _folder: folder,
        }
    }

    /// Creates a database on a MySQL or MariaDB server and runs `sql` in it.
    pub(crate) async fn on_server(server: &'static MysqlServer, sql: &str) -> Self {
        let made = server.fresh_database("read", sql).await.unwrap();
        Self {
            kind: SourceKind::Mysql,
            dsn: made.dsn,
            name: made.name,
            server: Some(server),
            _folder: None,
        }
    }

    /// Creates a MySQL database and runs `sql` in it; `None` if MySQL is not available.
    pub(crate) async fn on_mysql(sql: &str) -> Option<Self> {
        // MySQL has another name for the code-point collation without padding.
        let sql = sql.replace("utf8mb4_nopad_bin", "utf8mb4_0900_bin");
        Some(Self::on_server(mysql().await?, &sql).await)
    }

    /// Creates a MySQL database with the suite's records; `None` if MySQL is not available.
    pub(crate) async fn with_fixture_on_mysql() -> Option<Self> {
        Self::on_mysql(&fixture_sql(SourceKind::Mysql)).await
    }

    /// Creates a PostgreSQL database with a given encoding and runs `sql` in it.
    pub(crate) async fn encoded(encoding: &str, sql: &str) -> Self {
        let server = postgres().await;
        let beside = server.fresh_database("encoded", "").await.unwrap().name;
        let name = format!("{beside}_in_{encoding}");
        let make = format!(
            "CREATE DATABASE \"{name}\" ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0"
        );
        server.execute(&beside, &make).await.unwrap();
        server.execute(&name, sql).await.unwrap();
        Self {
            kind: SourceKind::Postgres,
            dsn: server.dsn(&name),
            name,
            server: None,
            _folder: None,
        }
    }

    /// Creates a database with the suite's records.
    pub(crate) async fn with_fixture(kind: SourceKind) -> Self {
        Self::new(kind, &fixture_sql(kind)).await
    }

    /// Opens a store over the database.
    pub(crate) fn store(&self) -> Arc<dyn Store> {
        self.store_with(StoreOptions::default())
    }

    pub(crate) fn store_with(&self, options: StoreOptions) -> Arc<dyn Store> {
        store(Dsn::parse(self.kind, &self.dsn).unwrap(), options)
    }

    /// Runs statements as the owner.
    pub(crate) async fn execute(&self, sql: &str) {
        match self.kind {
            SourceKind::Sqlite => {
                let (path, sql) = (self.name.clone(), sql.to_owned());
                tokio::task::spawn_blocking(move || wayleave_test::sqlite_execute(&path, &sql))
                    .await
                    .unwrap()
                    .unwrap();
            }
            SourceKind::Postgres => postgres().await.execute(&self.name, sql).await.unwrap(),
            _ => self.server.unwrap().execute(&self.name, sql).await.unwrap(),
        }
    }
}

/// A mapping of tables with the key `id`, and further fields by name and datatype.
pub(crate) fn mapping(kind: SourceKind, tables: &[(&str, &[(&str, &str)])]) -> String {
    let mut text = format!(
        "[dataset]\nname = \"conformance\"\nkind = \"{kind}\"\n\n\
         [[connections]]\nid = \"main\"\nsource = \"main\"\n"
    );
    for (table, fields) in tables {
        writeln!(
            text,
            "\n[streams.{table}]\ntype = \"Thing\"\nkey = [\"id\"]\n\n\
             [streams.{table}.fields.id]\ndatatype = \"integer\"\nrequired = true"
        )
        .unwrap();
        for (field, datatype) in *fields {
            writeln!(
                text,
                "\n[streams.{table}.fields.{field}]\ndatatype = \"{datatype}\""
            )
            .unwrap();
        }
    }
    text
}

/// A package that sees all fields of one stream, in the rows that a filter selects.
pub(crate) fn granted(stream: &str, rows: &Json) -> Package {
    let granted = StreamGrant {
        fields: FieldScope::All,
        relations: RelationScope::All,
        rows: Some(rows.clone()),
        masks: std::collections::BTreeMap::new(),
    };
    let grant = Grant {
        capabilities: std::collections::BTreeSet::new(),
        id: "grant".to_owned(),
        dataset: "conformance".to_owned(),
        streams: StreamScope::Only(BTreeMap::from([(stream.to_owned(), granted)])),
    };
    Package {
        subject: "the tests".to_owned(),
        epoch: 0,
        grants: Grants::Only(Arc::new(BTreeMap::from([("main".to_owned(), grant)]))),
    }
}

/// The arguments of a call.
pub(crate) fn arguments(json: Json) -> Map<String, Json> {
    match json {
        Json::Object(arguments) => arguments,
        other => panic!("not an object: {other}"),
    }
}

/// Every row of an answer.
pub(crate) async fn all(
    store: &dyn Store,
    plan: &AuthorizedPlan,
    context: &ReadContext,
) -> Result<Vec<Row>, StoreError> {
    match store.read(plan, context).await? {
        Answer::Rows(rows) | Answer::Groups(rows) => rows.collect().await,
        Answer::Count { rows, .. } => Ok(vec![vec![Value::Integer(rows.into())]]),
    }
}

/// A deadline longer than any read that works.
pub(crate) fn patient() -> ReadContext {
    ReadContext::with_timeout(Duration::from_secs(30))
}

/// The statements that create and fill the suite's tables.
pub(crate) fn fixture_sql(kind: SourceKind) -> String {
    fixture_sql_of(kind, &rows())
}

/// Like [`fixture_sql`], with the given records.
pub(crate) fn fixture_sql_of(kind: SourceKind, tables: &TableMap) -> String {
    let mut sql = schema(kind).to_owned();
    for (table, columns) in [
        (SAMPLES, SAMPLE_COLUMNS.as_slice()),
        (PARTS, PART_COLUMNS.as_slice()),
    ] {
        for row in &tables[table] {
            insert(&mut sql, kind, table, columns, row);
        }
    }
    sql
}

pub(crate) fn quoted(kind: SourceKind, name: &str) -> String {
    if kind == SourceKind::Mysql {
        format!("`{}`", name.replace('`', "``"))
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}

fn insert(
    sql: &mut String,
    kind: SourceKind,
    table: &str,
    columns: &[FixtureColumn],
    row: &RowMap,
) {
    let names: Vec<String> = columns.iter().map(|it| quoted(kind, it.column)).collect();
    let values: Vec<String> = columns
        .iter()
        .map(|it| literal(kind, it, &row[it.column]))
        .collect();
    writeln!(
        sql,
        "INSERT INTO {} ({}) VALUES ({});",
        quoted(kind, table),
        names.join(", "),
        values.join(", ")
    )
    .unwrap();
}

/// A text literal written as bytes, which no store interprets.
pub(crate) fn text_literal(kind: SourceKind, text: &str) -> String {
    let digits: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
    match kind {
        SourceKind::Sqlite => format!("CAST(x'{digits}' AS TEXT)"),
        SourceKind::Postgres => format!("convert_from('\\x{digits}'::bytea, 'UTF8')"),
        _ if text.is_empty() => "''".to_owned(),
        _ => format!("CONVERT(0x{digits} USING utf8mb4)"),
    }
}

fn literal(kind: SourceKind, column: &FixtureColumn, value: &Value) -> String {
    match value {
        Value::Null | Value::Malformed => "NULL".to_owned(),
        // A malformed value is written in the store's own notation.
        Value::List(items) if !column.many => items[0].to_text().unwrap(),
        Value::Text(text) if column.field == "token" && kind == SourceKind::Postgres => {
            format!("'{text}'::uuid")
        }
        Value::Text(text) if column.field == "status" => format!("'{text}'"),
        Value::Text(text) => text_literal(kind, text),
        Value::Decimal(text) if kind == SourceKind::Sqlite && column.field == "price" => {
            format!("'{text}'")
        }
        Value::Integer(_) | Value::Decimal(_) => value.to_text().unwrap(),
        Value::Number(number) => format!("{number:?}"),
        Value::Boolean(boolean) => match kind {
            SourceKind::Postgres => boolean.to_string(),
            _ => u8::from(*boolean).to_string(),
        },
        Value::Date(_) => format!("'{}'", value.to_text().unwrap()),
        Value::Datetime(micros) => format!("'{}'", time(kind, *micros)),
        Value::Json(json) => {
            text_literal(kind, &json.to_string())
                + if kind == SourceKind::Postgres {
                    "::jsonb"
                } else {
                    ""
                }
        }
        Value::List(items) if kind == SourceKind::Postgres => {
            let element = FixtureColumn {
                many: false,
                ..*column
            };
            let items: Vec<String> = items.iter().map(|it| literal(kind, &element, it)).collect();
            let cast = if column.datatype == Datatype::Decimal {
                "numeric[]"
            } else {
                "text[]"
            };
            format!("ARRAY[{}]::{cast}", items.join(", "))
        }
        Value::List(_) | Value::Preview(_) => text_literal(kind, &value.to_json().to_string()),
    }
}

/// A time in a form that programs write to the store; for SQLite, one of several forms.
fn time(kind: SourceKind, micros: i64) -> String {
    let written = Value::Datetime(micros).to_text().unwrap();
    let plain = written.trim_end_matches('Z');
    match kind {
        SourceKind::Postgres => written,
        SourceKind::Sqlite => match micros.rem_euclid(5) {
            0 => written,
            1 => plain.replace('T', " "),
            // Only where the year keeps its number of digits.
            2 if written.starts_with(['1', '2']) => {
                let east = Value::Datetime(micros + 9_000_000_000).to_text().unwrap();
                format!("{}+02:30", east.trim_end_matches('Z'))
            }
            _ => format!("{}+00:00", plain.replace('T', " ")),
        },
        _ => plain.replace('T', " "),
    }
}

fn schema(kind: SourceKind) -> &'static str {
    match kind {
        SourceKind::Sqlite => {
            "CREATE TABLE \"the \"\"samples` '\" (id INTEGER PRIMARY KEY, \"na\"\"me\" TEXT COLLATE NOCASE NOT NULL, \
             \"wo`rd ?\", link TEXT, token UUID NOT NULL, status VARCHAR(10), \"select\" INT, big BIGINT NOT NULL, \
             amount NUMERIC, price TEXT NOT NULL, ratio DOUBLE, active BOOLEAN, day DATE, at DATETIME, \
             stamp TEXT NOT NULL, data JSON, tags TEXT, marks TEXT);\n\
             CREATE TABLE parts (sample_id INTEGER NOT NULL, label TEXT NOT NULL, weight DECIMAL(20, 8), made DATE, \
             PRIMARY KEY (sample_id, label)) WITHOUT ROWID;\n"
        }
        SourceKind::Postgres => {
            "CREATE TYPE state AS ENUM ('rejected', 'proposed', 'Accepted');\n\
             CREATE DOMAIN address AS text CHECK (VALUE <> '');\n\
             CREATE TABLE \"the \"\"samples` '\" (id int PRIMARY KEY, \"na\"\"me\" text COLLATE \"en-x-icu\" NOT NULL, \
             \"wo`rd ?\" varchar(200), link address, token uuid NOT NULL, status state, \"select\" smallint, big bigint NOT NULL, \
             amount numeric, price numeric(40, 20) NOT NULL, ratio float8, active bool, day date, at timestamptz, \
             stamp timestamp NOT NULL, data jsonb, tags text[], marks numeric[]);\n\
             CREATE TABLE parts (sample_id int NOT NULL, label text COLLATE \"C\" NOT NULL, weight numeric(20, 8), made date, \
             PRIMARY KEY (sample_id, label));\n"
        }
        _ => {
            "CREATE TABLE `the \"samples`` '` (id int PRIMARY KEY, `na\"me` varchar(200) COLLATE utf8mb4_unicode_ci NOT NULL, \
             `wo``rd ?` text COLLATE utf8mb4_bin, link varchar(200) CHARACTER SET latin1, token char(36) CHARACTER SET ascii NOT NULL, \
             status enum('rejected', 'proposed', 'Accepted'), `select` smallint, big bigint NOT NULL, \
             amount decimal(20, 8), price decimal(50, 20) NOT NULL, ratio double, active tinyint(1), day date, at datetime(6), \
             stamp timestamp(6) NOT NULL DEFAULT '2000-01-01 00:00:00', data json, tags json, marks json);\n\
             CREATE TABLE parts (sample_id int NOT NULL, label varchar(100) COLLATE utf8mb4_nopad_bin NOT NULL, \
             weight decimal(20, 8), made date, PRIMARY KEY (sample_id, label));\n\
             SET time_zone = '+00:00';\n"
        }
    }
}
