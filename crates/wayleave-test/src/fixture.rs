//! Schemas for tests, written for each dialect.

/// The SQL dialect of a fixture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// SQLite.
    Sqlite,
    /// PostgreSQL.
    Postgres,
    /// MySQL and MariaDB.
    Mysql,
}

/// A schema with a few rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fixture {
    /// A music store that uses most features of the dialect.
    Music,
    /// A trading company, as in a web application.
    Trade,
    /// Tables without keys; names with spaces, quotes, reserved words, unicode and mixed case;
    /// hostile names and comments.
    Ugly,
}

impl Fixture {
    /// Every fixture.
    pub const ALL: [Self; 3] = [Self::Music, Self::Trade, Self::Ugly];

    /// Its name, for databases and golden files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Music => "music",
            Self::Trade => "trade",
            Self::Ugly => "ugly",
        }
    }

    /// The statements that create it.
    pub fn sql(self, dialect: Dialect) -> &'static str {
        match (self, dialect) {
            (Self::Music, Dialect::Sqlite) => include_str!("../fixtures/sqlite/music.sql"),
            (Self::Trade, Dialect::Sqlite) => include_str!("../fixtures/sqlite/trade.sql"),
            (Self::Ugly, Dialect::Sqlite) => include_str!("../fixtures/sqlite/ugly.sql"),
            (Self::Music, Dialect::Postgres) => include_str!("../fixtures/postgres/music.sql"),
            (Self::Trade, Dialect::Postgres) => include_str!("../fixtures/postgres/trade.sql"),
            (Self::Ugly, Dialect::Postgres) => include_str!("../fixtures/postgres/ugly.sql"),
            (Self::Music, Dialect::Mysql) => include_str!("../fixtures/mysql/music.sql"),
            (Self::Trade, Dialect::Mysql) => include_str!("../fixtures/mysql/trade.sql"),
            (Self::Ugly, Dialect::Mysql) => include_str!("../fixtures/mysql/ugly.sql"),
        }
    }
}

/// The statements that create `count` tables of ten columns, each referring to the one before.
pub fn many_tables(dialect: Dialect, count: usize) -> String {
    let text = if dialect == Dialect::Mysql {
        "varchar(40)"
    } else {
        "text"
    };
    let table = |n: usize| {
        let previous = n.saturating_sub(1);
        format!(
            "CREATE TABLE \"table {n:03}\" (\"Id\" integer PRIMARY KEY, \"previous id\" integer, \
             code {text} NOT NULL UNIQUE, name {text}, status {text} CHECK (status IN ('a', 'b')), \
             amount decimal(10, 2), password {text}, created_at timestamp NULL, updated_at timestamp NULL, \
             note {text}, FOREIGN KEY (\"previous id\") REFERENCES \"table {previous:03}\" (\"Id\"));\n"
        )
    };
    let sql: String = (0..count).map(table).collect();
    if dialect == Dialect::Mysql {
        sql.replace('"', "`")
    } else {
        sql
    }
}
