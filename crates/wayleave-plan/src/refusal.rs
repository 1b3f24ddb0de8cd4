//! Refusals of reads, as data: what is wrong, what would be accepted, and a call that works.
//!
//! Missing and forbidden things are refused with the same bytes, so a refusal is built only from
//! the caller's own words and from what the caller may see.

mod size_limit;
mod synonyms;

use std::ops::{Deref, DerefMut};

use serde::Serialize;
use serde_json::{Map, Value as Json};
use wayleave_model::nearest::nearest;

pub use size_limit::{MAX_BYTES, MAX_CHOICE_BYTES};
pub(crate) use synonyms::Kind;

use crate::view::StreamView;

/// The kind of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// An argument is missing, unknown or of the wrong shape.
    InvalidRequest,
    /// The filter is malformed, or not allowed on these fields.
    InvalidFilter,
    /// The sort names something that records cannot be sorted by.
    InvalidSort,
    /// The cursor or bookmark was not issued for this call.
    InvalidCursor,
    /// There is no such stream, or it may not be read.
    UnknownStream,
    /// There is no such field or relation, or it may not be read.
    UnknownField,
    /// Several connections hold the stream.
    AmbiguousConnection,
    /// There is no such record or connection, or it may not be read.
    NotFound,
    /// The stream's changes cannot be followed.
    ChangesUnavailable,
    /// A single record exceeds the limits of a result.
    ResultTooLarge,
    /// The store does not respond.
    SourceUnavailable,
    /// The store took too long.
    Timeout,
    /// Too many calls.
    RateLimited,
}

impl Code {
    /// Every code, in the order documents list them.
    pub const ALL: &'static [Self] = &[
        Self::InvalidRequest,
        Self::InvalidFilter,
        Self::InvalidSort,
        Self::InvalidCursor,
        Self::UnknownStream,
        Self::UnknownField,
        Self::AmbiguousConnection,
        Self::NotFound,
        Self::ChangesUnavailable,
        Self::ResultTooLarge,
        Self::SourceUnavailable,
        Self::Timeout,
        Self::RateLimited,
    ];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request",
            Self::InvalidFilter => "invalid_filter",
            Self::InvalidSort => "invalid_sort",
            Self::InvalidCursor => "invalid_cursor",
            Self::UnknownStream => "unknown_stream",
            Self::UnknownField => "unknown_field",
            Self::AmbiguousConnection => "ambiguous_connection",
            Self::NotFound => "not_found",
            Self::ChangesUnavailable => "changes_unavailable",
            Self::ResultTooLarge => "result_too_large",
            Self::SourceUnavailable => "source_unavailable",
            Self::Timeout => "timeout",
            Self::RateLimited => "rate_limited",
        }
    }

    /// Whether the same call may succeed later.
    pub const fn retryable(self) -> bool {
        matches!(
            self,
            Self::SourceUnavailable | Self::Timeout | Self::RateLimited
        )
    }
}

/// A refusal of a read. Dereferences to its [`RefusalBody`].
// Boxed: most functions here return it in `Err`, and it must not enlarge their `Result`.
#[derive(Debug, Clone, PartialEq, Serialize, thiserror::Error)]
#[error("{}: {}", .0.code.as_str(), .0.message)]
#[serde(transparent)]
pub struct Refusal(Box<RefusalBody>);

impl Deref for Refusal {
    type Target = RefusalBody;

    fn deref(&self) -> &RefusalBody {
        &self.0
    }
}

impl DerefMut for Refusal {
    fn deref_mut(&mut self) -> &mut RefusalBody {
        &mut self.0
    }
}

/// The content of a refusal.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RefusalBody {
    /// The kind.
    pub code: Code,
    /// A description of the problem.
    pub message: String,
    /// The case, for a code that has several: `drift`, `unreachable`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// The argument at fault, such as `filter.status.gt`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub param: Option<String>,
    /// The accepted values or names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed: Vec<String>,
    /// The accepted word closest to the given one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub did_you_mean: Option<String>,
    /// Whether the same call may succeed later.
    pub retryable: bool,
    /// The argument to add or change before a retry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_with: Option<&'static str>,
    /// A call that works.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<Call>,
    /// The connections to choose from.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub choice: Option<ConnectionChoice>,
}

/// A call of one of the tools.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Call {
    /// The tool.
    pub tool: &'static str,
    /// Its arguments.
    pub arguments: Map<String, Json>,
}

impl Call {
    /// A call with these arguments.
    pub fn new<'a>(
        tool: &'static str,
        arguments: impl IntoIterator<Item = (&'a str, Json)>,
    ) -> Self {
        Self {
            tool,
            arguments: arguments
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
        }
    }
}

/// Connections to choose from, limited in number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConnectionChoice {
    /// At most twelve connections.
    pub available_connections: Vec<ConnectionOption>,
    /// Number of connections before the limit.
    pub total: usize,
    /// Whether some are left out. Then `allowed` contains ids, as many as fit; `schema` lists all.
    pub truncated: bool,
    /// The ids of all connections.
    #[serde(skip)]
    ids: Vec<String>,
}

/// A connection to choose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConnectionOption {
    /// The grant it is read under.
    pub grant_id: String,
    /// The dataset.
    pub connector_key: String,
    /// The connection.
    pub connection_id: String,
    /// Its label.
    pub label: String,
}

impl Refusal {
    /// A refusal with only a message.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self(Box::new(RefusalBody {
            code,
            message: message.into(),
            reason: None,
            param: None,
            allowed: Vec::new(),
            did_you_mean: None,
            retryable: code.retryable(),
            retry_with: None,
            next: None,
            choice: None,
        }))
    }

    /// Sets the argument at fault.
    #[must_use]
    pub fn param(mut self, param: impl Into<String>) -> Self {
        // A caller may also pass a connection string as a name.
        let plain = |param: &String| !wayleave_model::sensitive::looks_like_dsn(param);
        self.param = Some(param.into()).filter(plain);
        self
    }

    /// Sets the accepted values or names.
    #[must_use]
    pub fn allowed<T: Into<String>>(mut self, allowed: impl IntoIterator<Item = T>) -> Self {
        self.allowed = allowed.into_iter().map(Into::into).collect();
        self
    }

    /// Suggests the accepted word closest to the given one. Call after [`allowed`](Self::allowed).
    #[must_use]
    pub fn near(mut self, given: &str) -> Self {
        self.did_you_mean =
            nearest(given, self.allowed.iter().map(String::as_str)).map(str::to_owned);
        self
    }

    /// Like [`near`](Self::near), but first looks the word up in other query languages' vocabulary.
    #[must_use]
    pub(crate) fn near_as(mut self, kind: Kind, given: &str) -> Self {
        self.did_you_mean = synonyms::meant(kind, given, &self.allowed);
        if self.did_you_mean.is_some() {
            self
        } else {
            self.near(given)
        }
    }

    /// Names the argument to add or change.
    #[must_use]
    pub fn retry_with(mut self, argument: &'static str) -> Self {
        self.retry_with = Some(argument);
        self
    }

    /// Offers a call that works.
    #[must_use]
    pub fn next(mut self, call: Call) -> Self {
        self.next = Some(call);
        self
    }

    /// Offers a `schema` call for the stream if there is no better offer: it lists what the stream
    /// supports, and always works.
    #[must_use]
    pub(crate) fn see(mut self, stream: &StreamView) -> Self {
        if self.next.is_none() {
            self.next = Some(Call::new(
                "schema",
                [
                    ("stream", stream.name().into()),
                    ("connection_id", stream.connection_id().into()),
                ],
            ));
        }
        self
    }

    /// Offers connections to choose from.
    #[must_use]
    pub fn choice(mut self, candidates: Vec<ConnectionOption>) -> Self {
        const MAX_CHOICES: usize = 12;
        let total = candidates.len();
        let ids = candidates.iter().map(|it| it.connection_id.clone());
        let ids = ids.collect();
        let mut available_connections = candidates;
        available_connections.truncate(MAX_CHOICES);
        self.choice = Some(ConnectionChoice {
            truncated: total > available_connections.len(),
            available_connections,
            total,
            ids,
        });
        self
    }

    /// The refusal as JSON of at most [`max_bytes`](Self::max_bytes).
    pub fn to_json(&self) -> Json {
        self.to_json_within(self.max_bytes())
    }

    /// Maximum size as JSON: [`MAX_BYTES`], or [`MAX_CHOICE_BYTES`] if it lists connections.
    pub fn max_bytes(&self) -> usize {
        match &self.choice {
            Some(_) => MAX_CHOICE_BYTES,
            None => MAX_BYTES,
        }
    }

    /// The refusal as JSON of at most `bytes` (no fewer than 512). Cuts texts and shortens lists,
    /// and states what is left out.
    pub fn to_json_within(&self, bytes: usize) -> Json {
        size_limit::to_json_within(self, bytes.max(512))
    }
}

/// The known argument that a name stands for: a word of another query language, or a typo.
pub fn argument_meant(given: &str, known: &[&str]) -> Option<String> {
    meant(Kind::Argument, given, known)
}

/// The known operator or keyword that a word stands for.
pub fn operator_meant(given: &str, known: &[&str]) -> Option<String> {
    meant(Kind::Operator, given, known)
}

fn meant(kind: Kind, given: &str, known: &[&str]) -> Option<String> {
    let words: Vec<String> = known.iter().map(|it| (*it).to_owned()).collect();
    let near = || nearest(given, known.iter().copied()).map(str::to_owned);
    synonyms::meant(kind, given, &words).or_else(near)
}

/// Quotes a caller's own word for a message: in backticks, on one line, limited in length.
pub fn quoted(word: &str) -> String {
    const MAX_QUOTED_CHARS: usize = 64;
    // A connection string passed by mistake must not be echoed with its password.
    if wayleave_model::sensitive::looks_like_dsn(word) {
        return format!("`{}`", wayleave_model::sensitive::WITHHELD);
    }
    let mut shown = String::from("`");
    for c in word.chars().take(MAX_QUOTED_CHARS) {
        if c == '`' {
            shown.push('\'');
        } else if c.is_control() || !(c.is_alphanumeric() || c.is_ascii()) {
            shown.push('\u{fffd}');
        } else {
            shown.push(c);
        }
    }
    if word.chars().nth(MAX_QUOTED_CHARS).is_some() {
        shown.push('…');
    }
    shown.push('`');
    shown
}

#[cfg(test)]
mod tests {
    use super::{Code, Refusal, quoted};

    #[test]
    fn a_connection_string_given_as_a_name_is_not_repeated() {
        for param in [
            "postgres://u:hunter2@h/db",
            "filter.postgres://u:hunter2@h/db.eq",
        ] {
            let refusal = Refusal::new(Code::InvalidRequest, "no").param(param);
            assert_eq!(refusal.param, None, "{param}");
        }
        let refusal = Refusal::new(Code::InvalidRequest, "no").param("filter.name.eq");
        assert_eq!(refusal.param.as_deref(), Some("filter.name.eq"));
    }

    #[test]
    fn a_connection_string_is_not_repeated() {
        let said = quoted("postgres://u:hunter2@h/db");
        assert!(!said.contains("hunter2"), "{said}");
        assert_eq!(quoted("pilotz"), "`pilotz`");
    }
}
