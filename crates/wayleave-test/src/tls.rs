//! Certificates: a self-signed one for `localhost`, and further ones for tests of TLS.

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

/// Further certificates of a server's folder: see [`Certificates::new`].
#[derive(Debug)]
pub struct Certificates {
    /// An authority.
    pub authority: PathBuf,
    /// A certificate for `localhost` that ended in 2020, with the key of the server.
    pub expired: PathBuf,
    /// A certificate of the role that tests log in as, from the authority.
    pub client: PathBuf,
    /// Its key.
    pub client_key: PathBuf,
}

const AUTHORITY: &str = r#"
set -e
cd "$0"
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -batch -subj '/CN=authority' \
    -addext basicConstraints=critical,CA:TRUE -keyout ca.key -out ca.crt
openssl req -new -newkey rsa:2048 -nodes -batch -subj "/CN=$1" -keyout client.key -out client.csr
echo basicConstraints=CA:FALSE > client.ext
openssl x509 -req -days 2 -in client.csr -CA ca.crt -CAkey ca.key -CAcreateserial \
    -extfile client.ext -out client.crt
printf '[ca]\ndefault_ca=a\n[a]\ndatabase=index\nserial=serial\nnew_certs_dir=.\ndefault_md=sha256\npolicy=p\ncopy_extensions=copy\n[p]\ncommonName=supplied\n' > ca.conf
: > index
echo 01 > serial
openssl req -new -key server.key -batch -subj /CN=localhost -addext subjectAltName=DNS:localhost \
    -addext basicConstraints=critical,CA:FALSE -out expired.csr
openssl ca -batch -config ca.conf -selfsign -keyfile server.key -in expired.csr \
    -startdate 20200101000000Z -enddate 20200201000000Z -notext -out expired.crt
chmod 644 ca.crt client.crt client.key expired.crt
"#;

impl Certificates {
    /// Creates them in the folder of a server that has a certificate, for the role `user`.
    pub(crate) fn new(account: Account, folder: &Path, user: &str) -> Result<Self, StartError> {
        let mut command = account.command("sh");
        command.args(["-c", AUTHORITY]).arg(folder).arg(user);
        run(command)?;
        Ok(Self {
            authority: folder.join("ca.crt"),
            expired: folder.join("expired.crt"),
            client: folder.join("client.crt"),
            client_key: folder.join("client.key"),
        })
    }
}
