//! Ten kinds of drift between a source and its mapping, on each kind of store, and their repairs.

use std::fmt::Write as _;

use wayleave_model::mapping::SourceKind;
use wayleave_test::{MysqlServer, PostgresServer};

/// A kind of drift.
pub(super) struct DriftCase {
    /// The stream it breaks.
    pub(super) stream: &'static str,
    pub(super) breaks: Vec<String>,
    pub(super) repairs: Vec<String>,
    /// A name that only the operator may learn.
    pub(super) hidden: &'static str,
}

const COLUMNS: &str = "id INTEGER NOT NULL PRIMARY KEY, note VARCHAR(40) NOT NULL, n INTEGER, \
    code VARCHAR(20) NOT NULL";
const ROWS: &str = "VALUES (1, 'one', 10, 'a'), (2, 'two', 20, 'b'), (3, 'three', 30, 'c')";

/// The streams, each broken by one kind of drift.
pub(super) const STREAMS: [&str; 10] = [
    "dropped_column",
    "renamed_column",
    "retyped_column",
    "dropped_table",
    "renamed_table",
    "nullable_column",
    "dropped_key",
    "dropped_unique",
    "replaced_view",
    "replaced_table",
];

/// The tables, each with a copy that repairs it.
pub(super) fn tables() -> Vec<String> {
    let mut sql = vec![
        "CREATE TABLE steady (id INTEGER NOT NULL PRIMARY KEY, word VARCHAR(40), \
         friend INTEGER)"
            .to_owned(),
        "INSERT INTO steady VALUES (1, 'still', 1), (2, 'here', 2)".to_owned(),
    ];
    for stream in STREAMS {
        let names = match stream {
            "replaced_view" => vec!["viewed".to_owned()],
            _ => vec![format!("t_{stream}"), format!("c_{stream}")],
        };
        for name in names {
            sql.push(format!("CREATE TABLE {name} ({COLUMNS})"));
            sql.push(format!("CREATE UNIQUE INDEX u_{name} ON {name} (code)"));
            sql.push(format!("INSERT INTO {name} {ROWS}"));
        }
    }
    sql.push("CREATE VIEW t_replaced_view AS SELECT id, note, n, code FROM viewed".to_owned());
    sql
}

pub(super) fn mapping(kind: SourceKind) -> String {
    let mut text = format!(
        "[dataset]\nname = \"shop\"\nkind = \"{kind}\"\n\n\
         [[connections]]\nid = \"shop\"\nsource = \"store\"\n\n\
         [streams.steady]\ntype = \"Steady\"\nkey = [\"id\"]\ntitle = \"word\"\n\
         [streams.steady.fields]\nid = {{ datatype = \"integer\" }}\n\
         word = {{ datatype = \"string\" }}\nfriend = {{ datatype = \"integer\" }}\n\
         [streams.steady.relations.friend_of]\nto = \"dropped_column\"\non = {{ friend = \"id\" }}\n"
    );
    for stream in STREAMS {
        let type_name: String = stream.split('_').map(capital).collect();
        let _ = write!(
            text,
            "\n[streams.{stream}]\ntype = \"{type_name}\"\ntable = \"t_{stream}\"\nkey = [\"id\"]\n\
             title = \"note\"\nunique = [[\"code\"]]\n[streams.{stream}.fields]\n\
             id = {{ datatype = \"integer\" }}\nnote = {{ datatype = \"string\", required = true }}\n\
             n = {{ datatype = \"integer\" }}\ncode = {{ datatype = \"string\" }}\n"
        );
    }
    text
}

fn capital(word: &str) -> String {
    word[..1].to_uppercase() + &word[1..]
}

#[allow(clippy::too_many_lines, reason = "one entry a way")]
pub(super) fn ways(kind: SourceKind) -> Vec<DriftCase> {
    let way = |stream, breaks: &[&str], repairs: &[&str], hidden| DriftCase {
        stream,
        breaks: breaks.iter().map(|it| (*it).to_owned()).collect(),
        repairs: repairs.iter().map(|it| (*it).to_owned()).collect(),
        hidden,
    };
    let from_copy = |stream: &'static str, breaks: &[&str], hidden| DriftCase {
        repairs: vec![
            format!("DROP TABLE t_{stream}"),
            format!("ALTER TABLE c_{stream} RENAME TO t_{stream}"),
        ],
        ..way(stream, breaks, &[], hidden)
    };
    let (is_sqlite, is_postgres) = (kind == SourceKind::Sqlite, kind == SourceKind::Postgres);
    // SQLite can alter little, so a new table replaces the old one.
    let rebuilt = |stream: &str, columns: &str| {
        [
            format!("CREATE TABLE x_{stream} ({columns})"),
            format!("CREATE UNIQUE INDEX ux_{stream} ON x_{stream} (code)"),
            format!("INSERT INTO x_{stream} {ROWS}"),
            format!("DROP TABLE t_{stream}"),
            format!("ALTER TABLE x_{stream} RENAME TO t_{stream}"),
        ]
    };
    let altered = |stream: &'static str, columns: &str, postgres: &str, mysql: &str, hidden| {
        let breaks: Vec<String> = if is_sqlite {
            rebuilt(stream, columns).to_vec()
        } else if is_postgres {
            vec![format!("ALTER TABLE t_{stream} {postgres}")]
        } else {
            vec![format!("ALTER TABLE t_{stream} {mysql}")]
        };
        let breaks: Vec<&str> = breaks.iter().map(String::as_str).collect();
        from_copy(stream, &breaks, hidden)
    };
    let drop_index = if is_sqlite || is_postgres {
        "DROP INDEX u_t_dropped_unique"
    } else {
        "DROP INDEX u_t_dropped_unique ON t_dropped_unique"
    };
    vec![
        from_copy(
            "dropped_column",
            &["ALTER TABLE t_dropped_column DROP COLUMN n"],
            "t_dropped_column",
        ),
        way(
            "renamed_column",
            &["ALTER TABLE t_renamed_column RENAME COLUMN note TO remark"],
            &["ALTER TABLE t_renamed_column RENAME COLUMN remark TO note"],
            "remark",
        ),
        altered(
            "retyped_column",
            "id INTEGER NOT NULL PRIMARY KEY, note VARCHAR(40) NOT NULL, n TEXT, \
             code VARCHAR(20) NOT NULL",
            "ALTER COLUMN n TYPE varchar(20)",
            "MODIFY n VARCHAR(20)",
            "t_retyped_column",
        ),
        DriftCase {
            repairs: vec!["ALTER TABLE c_dropped_table RENAME TO t_dropped_table".to_owned()],
            ..way(
                "dropped_table",
                &["DROP TABLE t_dropped_table"],
                &[],
                "t_dropped_table",
            )
        },
        way(
            "renamed_table",
            &["ALTER TABLE t_renamed_table RENAME TO elsewhere"],
            &["ALTER TABLE elsewhere RENAME TO t_renamed_table"],
            "elsewhere",
        ),
        altered(
            "nullable_column",
            "id INTEGER NOT NULL PRIMARY KEY, note VARCHAR(40), n INTEGER, code VARCHAR(20) NOT NULL",
            "ALTER COLUMN note DROP NOT NULL",
            "MODIFY note VARCHAR(40) NULL",
            "t_nullable_column",
        ),
        altered(
            "dropped_key",
            "id INTEGER NOT NULL, note VARCHAR(40) NOT NULL, n INTEGER, code VARCHAR(20) NOT NULL",
            "DROP CONSTRAINT t_dropped_key_pkey",
            "DROP PRIMARY KEY",
            "t_dropped_key",
        ),
        way(
            "dropped_unique",
            &[drop_index],
            &["CREATE UNIQUE INDEX u_t_dropped_unique ON t_dropped_unique (code)"],
            "t_dropped_unique",
        ),
        way(
            "replaced_view",
            &[
                "DROP VIEW t_replaced_view",
                "CREATE VIEW t_replaced_view AS SELECT id, note, code FROM viewed",
            ],
            &[
                "DROP VIEW t_replaced_view",
                "CREATE VIEW t_replaced_view AS SELECT id, note, n, code FROM viewed",
            ],
            "t_replaced_view",
        ),
        from_copy(
            "replaced_table",
            &[
                "DROP TABLE t_replaced_table",
                "CREATE TABLE t_replaced_table (id INTEGER NOT NULL PRIMARY KEY, title VARCHAR(9))",
                "INSERT INTO t_replaced_table VALUES (1, 'wrong')",
            ],
            "wrong",
        ),
    ]
}

/// A database of one kind of store.
pub(super) enum Shop {
    Sqlite {
        path: String,
    },
    Postgres {
        server: &'static PostgresServer,
        name: String,
    },
    Mysql {
        server: &'static MysqlServer,
        name: String,
    },
}

impl Shop {
    pub(super) async fn execute(&self, statements: &[String]) {
        for statement in statements {
            self.run(statement).await;
        }
    }

    async fn run(&self, sql: &str) {
        match self {
            // Readers may lock the file for a moment.
            Self::Sqlite { path } => {
                let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
                loop {
                    match wayleave_test::sqlite_execute(path, sql) {
                        Ok(()) => return,
                        Err(error) if std::time::Instant::now() > deadline => {
                            panic!("{sql}: {error}")
                        }
                        Err(_) => tokio::task::yield_now().await,
                    }
                }
            }
            Self::Postgres { server, name } => server.execute(name, sql).await.unwrap(),
            Self::Mysql { server, name } => server.execute(name, sql).await.unwrap(),
        }
    }
}
