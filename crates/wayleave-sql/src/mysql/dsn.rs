//! The DSN of a MySQL or MariaDB database.

use wayleave_store::StoreError;

use crate::dsn::{Server, bad};

/// Parses a DSN.
pub(crate) fn parse(text: &str) -> Result<Server, StoreError> {
    let server = Server::parse(text, &["mysql", "mariadb"], 3306)?;
    // The driver hands the password to any server that asks for it, in clear text or encrypted with
    // a key that the server sends. Only a verified connection makes that safe.
    if server.password.is_some() && server.guards_password() {
        return Err(bad(
            "its password could be sent to an impostor: a remote server needs \
             `sslmode=verify-full`, or `cleartext_password=allow` on a trusted network",
        ));
    }
    Ok(server)
}
