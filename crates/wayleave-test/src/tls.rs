//! A self-signed certificate for `localhost` and 127.0.0.1.

use std::path::{Path, PathBuf};

use crate::server::{Account, StartError, find, run};

/// Writes `server.crt` and `server.key` into `folder`, owned by `account`.
pub(crate) fn certificate(
    account: Account,
    folder: &Path,
) -> Result<(PathBuf, PathBuf), StartError> {
    let (certificate, key) = (folder.join("server.crt"), folder.join("server.key"));
    let mut command = account.command(find("openssl", [], "openssl")?);
    command
        .args([
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-batch",
        ])
        .args([
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=DNS:localhost",
        ])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .arg("-keyout")
        .arg(&key)
        .arg("-out")
        .arg(&certificate);
    run(command)?;
    Ok((certificate, key))
}
