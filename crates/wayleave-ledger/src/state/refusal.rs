//! Why the recorded state forbids an act.

use wayleave_model::digest::Digest;
use wayleave_model::grant::TokenKind;

use crate::signing::KeyFingerprint;

/// Why an event may not be recorded now. For the caller to handle; not a fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The dataset was ratified or retired by someone else since the caller read the state.
    #[error("`{dataset}` changed meanwhile: {}, not {}", ratified(*.current), ratified(*.expected))]
    Superseded {
        /// The dataset.
        dataset: String,
        /// The digest the caller expected to be ratified.
        expected: Option<Digest>,
        /// The digest that is.
        current: Option<Digest>,
    },
    /// Exactly these bytes are ratified already.
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
    /// The dataset was activated or deactivated by someone else since the caller read the state.
    #[error("`{dataset}` was activated or deactivated meanwhile: revision {current} comes next")]
    StaleRevision {
        /// The dataset.
        dataset: String,
        /// The next revision.
        current: u64,
    },
    /// A source of that name is declared already.
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
    /// A grant with that id exists already.
    #[error("a grant `{id}` was made before")]
    GrantExists {
        /// The grant.
        id: String,
    },
    /// No grant has that id.
    #[error("there is no grant `{id}`")]
    UnknownGrant {
        /// The grant.
        id: String,
    },
    /// The grant was revoked.
    #[error("grant `{id}` is revoked")]
    GrantRevoked {
        /// The grant.
        id: String,
    },
    /// The replacement of a grant allows something that the grant does not.
    #[error("that is not narrower than grant `{id}`")]
    NotNarrower {
        /// The grant.
        id: String,
    },
    /// Two grants of a package are for one connection, so it would be ambiguous which applies.
    #[error("grants `{first}` and `{second}` are both of connection `{connection}`")]
    DuplicateConnection {
        /// The connection.
        connection: String,
        /// One of the grants.
        first: String,
        /// The other.
        second: String,
    },
    /// A token with that id exists already.
    #[error("a token `{id}` was issued before")]
    TokenExists {
        /// The token.
        id: String,
    },
    /// No token has that id.
    #[error("there is no token `{id}`")]
    UnknownToken {
        /// The token.
        id: String,
    },
    /// The token was revoked.
    #[error("token `{id}` is revoked")]
    TokenRevoked {
        /// The token.
        id: String,
    },
    /// Only client tokens may have grants, scopes or claims.
    #[error("a token of kind `{kind}` carries no grants, scopes or claims")]
    OnlyForClientTokens {
        /// The kind.
        kind: TokenKind,
    },
    /// An owner of that name was added before.
    #[error("an owner `{name}` was added before")]
    OwnerExists {
        /// The owner.
        name: String,
    },
    /// The key belongs to an owner, or did.
    #[error("key {key} belongs or belonged to owner `{name}`")]
    KeyExists {
        /// The key.
        key: KeyFingerprint,
        /// The owner.
        name: String,
    },
    /// No owner has that name, or they were removed.
    #[error("there is no owner `{name}`")]
    UnknownOwner {
        /// The owner.
        name: String,
    },
    /// Without an owner nobody could sign.
    #[error("`{name}` is the only owner; a project that has owners keeps one")]
    LastOwner {
        /// The owner.
        name: String,
    },
    /// The project has owners, and none has signed this decision.
    #[error("the project has owners, and none of them signed it")]
    Unsigned,
    /// The signing key was not an owner's at that entry.
    #[error("key {key} did not belong to an owner when the entry was recorded")]
    NotAnOwner {
        /// The key.
        key: KeyFingerprint,
    },
    /// The signature is not over this entry, or not by that key.
    #[error("the signature by key {key} does not cover this entry at this position")]
    BadSignature {
        /// The key.
        key: KeyFingerprint,
    },
    /// The chain grew after the signature was made.
    #[error("another entry was recorded meanwhile, so the signature is not over the chain's head")]
    HeadMoved,
    /// A name or a text may not be recorded.
    #[error(transparent)]
    InvalidText(#[from] crate::text::InvalidText),
    /// The creation of the ledger must be its first entry, and only that.
    #[error("a ledger is created once, by its first entry")]
    Misplaced,
}

impl Refusal {
    /// What to do next, where that is known.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Superseded { .. } => "review the new difference, then ratify again",
            Self::SourceExists { .. } => {
                "to change a source, remove it first; `wayleave source list` shows all sources"
            }
            Self::UnknownGrant { .. } | Self::GrantRevoked { .. } => {
                "`wayleave grant list --all` shows all grants"
            }
            Self::NotNarrower { .. } => "make another grant for what it does not allow",
            Self::UnknownToken { .. } | Self::TokenRevoked { .. } => {
                "`wayleave token list --all` shows all tokens"
            }
            Self::DuplicateConnection { .. } => {
                "a token reads each connection under one grant: make one grant that allows both"
            }
            Self::OnlyForClientTokens { .. } => "leave out `--grant`, `--scope` and `--claim`",
            _ => return None,
        })
    }
}

fn ratified(digest: Option<Digest>) -> String {
    digest.map_or_else(
        || "nothing is ratified".to_owned(),
        |digest| format!("{digest} is ratified"),
    )
}
