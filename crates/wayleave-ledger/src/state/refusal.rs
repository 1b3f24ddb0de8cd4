//! Why an act may not follow what is recorded.

use wayleave_model::digest::Digest;
use wayleave_model::grant::TokenKind;

/// Why an event may not be recorded now. These are a caller's to handle, not faults.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// Someone else ratified or retired the dataset since the caller looked.
    #[error("`{dataset}` changed meanwhile: {}, not {}", ratified(*.current), ratified(*.expected))]
    Superseded {
        /// The dataset.
        dataset: String,
        /// What the caller took to be ratified.
        expected: Option<Digest>,
        /// What is.
        current: Option<Digest>,
    },
    /// These very bytes are ratified already.
    #[error("`{dataset}` is already ratified as {digest}")]
    AlreadyRatified {
        /// The dataset.
        dataset: String,
        /// The digest.
        digest: Digest,
    },
    /// The dataset is not ratified: unknown, or retired.
    #[error("no dataset `{dataset}` is ratified")]
    NotRatified {
        /// The dataset.
        dataset: String,
    },
    /// The dataset is not live.
    #[error("`{dataset}` is not active")]
    NotActive {
        /// The dataset.
        dataset: String,
    },
    /// Someone else activated or deactivated the dataset since the caller looked.
    #[error("`{dataset}` was activated or deactivated meanwhile: revision {current} comes next")]
    StaleRevision {
        /// The dataset.
        dataset: String,
        /// The revision that comes next.
        current: u64,
    },
    /// A source of that name is declared.
    #[error("a source `{name}` is already declared")]
    SourceExists {
        /// The source.
        name: String,
    },
    /// No source of that name is declared.
    #[error("no source `{name}` is declared")]
    UnknownSource {
        /// The source.
        name: String,
    },
    /// A grant of that id was made before.
    #[error("a grant `{id}` was made before")]
    GrantExists {
        /// The grant.
        id: String,
    },
    /// No grant of that id was made.
    #[error("there is no grant `{id}`")]
    UnknownGrant {
        /// The grant.
        id: String,
    },
    /// The grant was taken back.
    #[error("grant `{id}` is revoked")]
    GrantRevoked {
        /// The grant.
        id: String,
    },
    /// Two grants of a package are of one connection: which of them counts would be unclear.
    #[error("grants `{first}` and `{second}` are both of connection `{connection}`")]
    OneGrantAConnection {
        /// The connection.
        connection: String,
        /// One of the grants.
        first: String,
        /// The other.
        second: String,
    },
    /// A token of that id was issued before.
    #[error("a token `{id}` was issued before")]
    TokenExists {
        /// The token.
        id: String,
    },
    /// No token of that id was issued.
    #[error("there is no token `{id}`")]
    UnknownToken {
        /// The token.
        id: String,
    },
    /// The token was taken back.
    #[error("token `{id}` is revoked")]
    TokenRevoked {
        /// The token.
        id: String,
    },
    /// Grants, scopes and claims are for the tokens of clients.
    #[error("a token of kind `{kind}` carries no grants, scopes or claims")]
    NotForClients {
        /// The kind.
        kind: TokenKind,
    },
    /// A name or a text is not fit to be kept.
    #[error(transparent)]
    BadText(#[from] crate::text::BadText),
    /// A ledger begins with its creation, once.
    #[error("a ledger is created once, by its first entry")]
    Misplaced,
}

fn ratified(digest: Option<Digest>) -> String {
    digest.map_or_else(
        || "nothing is ratified".to_owned(),
        |digest| format!("{digest} is ratified"),
    )
}
