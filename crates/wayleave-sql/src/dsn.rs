//! The location of a source and its login. Parsed once, never shown.
//!
//! No message of this module quotes any part of a DSN: a misplaced `@` or `?` can make any part
//! of it the password.

mod server;

use std::fmt;

use wayleave_model::mapping::SourceKind;
use wayleave_store::StoreError;

pub use self::server::TlsMode;
pub(crate) use self::server::{
    ClientCertificate, PARAMETERS as SERVER_PARAMETERS, Server, ServerAddress,
};
use crate::adapter::{Adapter, UnopenedSource};

/// A parsed DSN. `Debug` and `Display` show its kind only.
pub struct Dsn {
    adapter: &'static Adapter,
    source: Box<dyn UnopenedSource>,
}

impl Dsn {
    /// The parameters that the DSNs of a kind accept.
    pub fn parameters(kind: SourceKind) -> Result<&'static [&'static str], StoreError> {
        Ok(Adapter::for_kind(kind)?.dsn_parameters)
    }

    /// Parses a DSN of a declared kind.
    ///
    /// `sqlite` accepts `sqlite:///absolute/path`, `sqlite:relative/path` or a plain path; the
    /// `sqlite:` forms accept `?immutable=1`. Servers accept `postgres://` (or `postgresql://`) and
    /// `mysql://` (or `mariadb://`) with `sslmode`, `sslrootcert`, `sslcert` and `sslkey`, with
    /// `cleartext_password=allow`, and with `socket`, the folder (PostgreSQL) or file (MySQL) of a
    /// local socket.
    ///
    /// ```
    /// use wayleave_model::mapping::SourceKind;
    /// use wayleave_sql::Dsn;
    ///
    /// let dsn = Dsn::parse(SourceKind::Postgres, "postgres://ada:s3cret@db.example/crm").unwrap();
    /// assert_eq!(format!("{dsn:?}"), "Dsn(postgres://***)");
    /// ```
    pub fn parse(kind: SourceKind, text: &str) -> Result<Self, StoreError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(bad("it is empty"));
        }
        let adapter = Adapter::for_kind(kind)?;
        let source = (adapter.parse)(text)?;
        Ok(Self { adapter, source })
    }

    /// The kind it was parsed as.
    pub fn kind(&self) -> SourceKind {
        self.adapter.kind
    }

    /// The source that the DSN names.
    pub(crate) fn into_source(self) -> Box<dyn UnopenedSource> {
        self.source
    }
}

impl fmt::Display for Dsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.adapter.redacted_dsn)
    }
}

impl fmt::Debug for Dsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dsn({self})")
    }
}

/// The error for a bad DSN. The reason quotes none of it.
pub(crate) fn bad(reason: &'static str) -> StoreError {
    StoreError::BadDsn { reason }
}

/// Percent-decodes one part of a DSN.
pub(crate) fn decoded(part: &str) -> Result<String, StoreError> {
    let broken = || bad("a `%` in it is not followed by two hexadecimal digits of UTF-8");
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |it: Option<u8>| it.and_then(|it| char::from(it).to_digit(16));
        let (Some(high), Some(low)) = (digit(rest.next()), digit(rest.next())) else {
            return Err(broken());
        };
        bytes.push(u8::try_from(high * 16 + low).map_err(|_| broken())?);
    }
    String::from_utf8(bytes).map_err(|_| broken())
}

#[cfg(test)]
mod tests;
