//! One call, as it is recorded. Holds no value of a row and no credential.

use std::{fmt, str::FromStr, time::Duration};

use serde::{Serialize, Serializer};
use uuid::Uuid;

use crate::id_source;

/// The id of one call: a UUID whose first bits are the time the call began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActivityId(pub(crate) Uuid);

impl ActivityId {
    /// The id of a call that begins now.
    pub fn now() -> Self {
        Self(id_source::next())
    }

    /// When the call began, in milliseconds since 1970-01-01T00:00:00Z.
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

    /// Reads an id, with or without `urn:uuid:`.
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
    /// Whether it came over HTTP; else over standard input and output.
    pub http: bool,
    /// Whether it belonged to a session.
    pub session: bool,
}

/// Who called.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Agent {
    /// The id of the token, or the name of the local caller; empty where nobody was identified.
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
    /// A digest under the project's key, so that it cannot be guessed from likely arguments.
    #[serde(serialize_with = "hex")]
    pub digest: [u8; 16],
    /// Names and types, without values.
    pub shape: String,
    /// The arguments themselves, for the operator alone.
    #[serde(skip)]
    pub sealed: Option<SealedArguments>,
}

/// Arguments under a key of the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedArguments {
    /// The number of the key.
    pub key: u32,
    /// The ciphertext.
    pub bytes: Vec<u8>,
}

/// Records by id: as many as are listed, and how many there were.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct RecordList {
    /// The first ids.
    pub ids: Vec<String>,
    /// How many there were.
    pub total: u64,
    /// The digest of all ids in order, where not all are listed.
    #[serde(
        serialize_with = "optional_hex",
        skip_serializing_if = "Option::is_none"
    )]
    pub digest: Option<[u8; 32]>,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CallOutcome {
    /// With a result.
    Completed,
    /// With a tool's result that says it failed.
    ToolError {
        /// The typed code of the failure, where there is one.
        code: Option<String>,
    },
    /// With a JSON-RPC error.
    Failed {
        /// The error's code.
        code: i32,
    },
    /// Cancelled by its client.
    Cancelled,
    /// Its client left, or the server stopped, before it ended.
    Abandoned,
    /// Refused before it was carried out.
    Refused {
        /// Why: `authorization`, `budget`, `malformed`, `unavailable` or `protocol`.
        reason: String,
    },
}

impl CallOutcome {
    /// The outcome as one word.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::ToolError { .. } => "tool_error",
            Self::Failed { .. } => "failed",
            Self::Cancelled => "cancelled",
            Self::Abandoned => "abandoned",
            Self::Refused { .. } => "refused",
        }
    }

    /// The words, for filters.
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
            other => f.write_str(other.word()),
        }
    }
}

/// The W3C trace context a call came with.
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

/// One call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Activity {
    /// Its id, which also states when it began.
    pub id: ActivityId,
    /// How long it took, in microseconds.
    pub micros: u64,
    /// The transport it came by.
    pub transport: CallTransport,
    /// The JSON-RPC method; empty where the message could not be read.
    pub method: String,
    /// The tool, prompt or resource it names, without a query.
    pub target: Option<String>,
    /// Who called.
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
    /// Rows in its result.
    pub rows: u64,
    /// Bytes of its result.
    pub bytes: u64,
    /// The digest of the data in its result, under the project's key.
    #[serde(
        serialize_with = "optional_hex",
        skip_serializing_if = "Option::is_none"
    )]
    pub answer: Option<[u8; 16]>,
    /// How it ended.
    pub outcome: CallOutcome,
    /// The trace it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceParent>,
    /// Refusals before this one that were counted and not recorded one by one.
    #[serde(skip_serializing_if = "is_zero")]
    pub suppressed: u64,
}

impl Activity {
    /// How long it took.
    pub fn duration(&self) -> Duration {
        Duration::from_micros(self.micros)
    }

    /// When it ended, in milliseconds since 1970-01-01T00:00:00Z.
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

/// Bytes as hexadecimal digits.
pub(crate) fn to_hex(bytes: &[u8]) -> String {
    use fmt::Write as _;
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Exactly `N` bytes from lower-case hexadecimal digits.
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
