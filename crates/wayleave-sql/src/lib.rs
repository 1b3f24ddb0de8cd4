//! SQLite, PostgreSQL and MySQL/MariaDB as sources.
//!
//! Every session is read-only and bounded in time. Statements are constants of this crate;
//! whatever varies is a bound value. Nothing here knows mappings or grants.

mod assemble;
mod checks;
mod dsn;
mod mysql;
mod postgres;
mod sqlite;
mod tls;

pub use dsn::{Dsn, TlsMode};
pub use sqlite::create_sqlite;
use wayleave_store::{Introspect, Limits};

/// The source behind a DSN. No session is opened until it is asked something.
pub fn open(dsn: Dsn, limits: Limits) -> Box<dyn Introspect> {
    match dsn.into_target() {
        dsn::Target::Sqlite(file) => Box::new(sqlite::Sqlite::new(file, limits)),
        dsn::Target::Postgres(server) => Box::new(postgres::Postgres::new(server, limits)),
        dsn::Target::Mysql(server) => Box::new(mysql::Mysql::new(server, limits)),
    }
}
