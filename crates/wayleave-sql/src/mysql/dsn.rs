//! The DSN of a MySQL or MariaDB database.

use wayleave_store::StoreError;

use crate::dsn::{Server, bad};

/// Reads a DSN.
pub(crate) fn parse(text: &str) -> Result<Server, StoreError> {
    let server = Server::parse(text, &["mysql", "mariadb"], 3306)?;
    // The driver gives the password, in clear or under a key that the server sends, to a server
    // that asks for it; only a line that is known is safe.
    if server.password.is_some() && server.guards_password() {
        return Err(bad(
            "its password would go to whoever answers: beyond this machine it needs \
             `sslmode=verify-full`, or `cleartext_password=allow` where the network is trusted",
        ));
    }
    Ok(server)
}
