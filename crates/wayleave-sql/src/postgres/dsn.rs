//! The DSN of a PostgreSQL database.

use wayleave_store::StoreError;

use crate::dsn::Server;

/// Parses a DSN.
pub(crate) fn parse(text: &str) -> Result<Server, StoreError> {
    Server::parse(text, &["postgres", "postgresql"], 5432)
}
