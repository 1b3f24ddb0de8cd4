//! The record of one call. It contains no row values and no credentials.

use std::{fmt, str::FromStr, time::Duration};

use serde::{Serialize, Serializer};
use uuid::Uuid;

use crate::id_source;

/// The id of one call: a UUID of version 7, which begins with the time the call began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActivityId(pub(crate) Uuid);

impl ActivityId {
    /// Creates the id of a call that begins now.
    pub fn now() -> Self {
        Self(id_source::next())
    }

    /// Start time of the call, in milliseconds since 1970-01-01T00:00:00Z.
    pub fn started_ms(&self) -> u64 {
        self.0.get_timestamp().map_or(0, |at| {
            let (seconds, nanoseconds) = at.to_unix();
            seconds * 1_000 + u64::from(nanoseconds / 1_000_000)
        })
    }

    /// The id as bytes.
    pub fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }

    /// The id as a URN.
    pub fn urn(&self) -> String {
        self.0.urn().to_string()
    }
}

impl fmt::Display for ActivityId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for ActivityId {
    type Err = uuid::Error;

    /// Parses an id, with or without `urn:uuid:`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Uuid::parse_str(text).map(Self)
    }
}

impl Serialize for ActivityId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// The transport and protocol era of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CallTransport {
    /// Whether the call came over HTTP; else over standard input and output.
    pub http: bool,
    /// Whether the call belonged to a session.
    pub session: bool,
}

/// The caller of a call.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Agent {
    /// The id of the token, or the name of the local caller; empty if no caller was identified.
    pub token: String,
    /// The client's name, as the client states it.
    pub client: Option<String>,
    /// The client's version, as the client states it.
    pub version: Option<String>,
}

/// A grant that a call read or wrote under.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GrantUse {
    /// The grant.
    pub grant: String,
    /// The connection.
    pub connection: String,
    /// The dataset.
    pub dataset: String,
    /// The digest of the ratified mapping.
    #[serde(serialize_with = "hex")]
    pub mapping: [u8; 32],
}

/// The arguments of a call, without their values.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ArgumentRecord {
    /// A MAC under the project's key, so that likely arguments cannot be tested against it.
    #[serde(serialize_with = "hex")]
    pub digest: [u8; 16],
    /// Names and types, without values.
    pub shape: String,
    /// The encrypted arguments, for the operator alone.
    #[serde(skip)]
    pub sealed: Option<SealedArguments>,
}

/// Arguments encrypted with a key of the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedArguments {
    /// The number of the key.
    pub key: u32,
    /// The ciphertext.
    pub bytes: Vec<u8>,
}

/// Records by id: the listed ones, and how many there were in total.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct RecordList {
    /// The first ids.
    pub ids: Vec<String>,
    /// Total number of records.
    pub total: u64,
    /// Digest of all ids in order, if not all are listed.
    #[serde(
        serialize_with = "optional_hex",
        skip_serializing_if = "Option::is_none"
    )]
    pub digest: Option<[u8; 32]>,
}

/// The outcome of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CallOutcome {
    /// The call returned a result.
    Completed,
    /// The tool returned a result that says it failed.
    ToolError {
        /// The typed code of the failure, if it has one.
        code: Option<String>,
    },
    /// The call returned a JSON-RPC error.
    Failed {
        /// The error's code.
        code: i32,
    },
    /// The client cancelled the call.
    Cancelled,
    /// The client left, or the server stopped, before the call ended.
    Abandoned,
    /// The call was refused before it was carried out.
    Refused {
        /// The reason: `authorization`, `budget`, `malformed`, `unavailable` or `protocol`.
        reason: String,
    },
}

impl CallOutcome {
    /// The outcome as one word.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::ToolError { .. } => "tool_error",
            Self::Failed { .. } => "failed",
            Self::Cancelled => "cancelled",
            Self::Abandoned => "abandoned",
            Self::Refused { .. } => "refused",
        }
    }

    /// All outcome words, for filters.
    pub const WORDS: [&'static str; 6] = [
        "completed",
        "tool_error",
        "failed",
        "cancelled",
        "abandoned",
        "refused",
    ];
}

impl fmt::Display for CallOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ToolError { code: Some(code) } => write!(f, "tool_error {code}"),
            Self::Failed { code } => write!(f, "failed {code}"),
            Self::Refused { reason } => write!(f, "refused {reason}"),
            other => f.write_str(other.as_str()),
        }
    }
}

/// The W3C trace context of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TraceParent {
    /// The trace.
    #[serde(serialize_with = "hex")]
    pub trace: [u8; 16],
    /// The span that made the call.
    #[serde(serialize_with = "hex")]
    pub span: [u8; 8],
}

impl TraceParent {
    /// Parses a `traceparent` of version 00.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let (version, trace, span) = (parts.next()?, parts.next()?, parts.next()?);
        parts.next()?;
        if version != "00" || parts.next().is_some() {
            return None;
        }
        let parsed = Self {
            trace: from_hex(trace)?,
            span: from_hex(span)?,
        };
        (parsed.trace != [0; 16] && parsed.span != [0; 8]).then_some(parsed)
    }
}

/// The record of one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Activity {
    /// The id, which also states when the call began.
    pub id: ActivityId,
    /// Duration, in microseconds.
    pub micros: u64,
    /// The transport and protocol era.
    pub transport: CallTransport,
    /// The JSON-RPC method; empty if the message could not be parsed.
    pub method: String,
    /// The tool, prompt or resource it names; a resource URI without its query.
    pub target: Option<String>,
    /// The caller.
    pub agent: Agent,
    /// The grants it used.
    pub grants: Vec<GrantUse>,
    /// The streams it read, as `connection_id/stream`.
    pub streams: Vec<String>,
    /// Its arguments.
    pub arguments: ArgumentRecord,
    /// The records it read.
    pub used: RecordList,
    /// The records it made or changed.
    pub generated: RecordList,
    /// Number of rows in the result.
    pub rows: u64,
    /// Size of the result in bytes.
    pub bytes: u64,
    /// MAC of the data in the result, under the project's key.
    #[serde(
        serialize_with = "optional_hex",
        skip_serializing_if = "Option::is_none"
    )]
    pub answer: Option<[u8; 16]>,
    /// The outcome.
    pub outcome: CallOutcome,
    /// The trace context, if the call had one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceParent>,
    /// Number of earlier refusals that were counted instead of recorded one by one.
    #[serde(skip_serializing_if = "is_zero")]
    pub suppressed: u64,
}

impl Activity {
    /// Duration of the call.
    pub fn duration(&self) -> Duration {
        Duration::from_micros(self.micros)
    }

    /// End time of the call, in milliseconds since 1970-01-01T00:00:00Z.
    pub fn ended_ms(&self) -> u64 {
        self.id.started_ms() + self.micros / 1_000
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Encodes bytes as hexadecimal digits.
pub(crate) fn to_hex(bytes: &[u8]) -> String {
    use fmt::Write as _;
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Parses exactly `N` bytes from lower-case hexadecimal digits.
pub(crate) fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != N * 2
        || !text
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
    }
    Some(bytes)
}

fn hex<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&to_hex(bytes))
}

#[expect(clippy::ref_option, reason = "serde passes a reference to the field")]
fn optional_hex<S: Serializer, const N: usize>(
    bytes: &Option<[u8; N]>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match bytes {
        Some(bytes) => serializer.serialize_str(&to_hex(bytes)),
        None => serializer.serialize_none(),
    }
}
