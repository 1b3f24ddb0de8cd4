//! Refusals of clients, in the terms of each transport.

use http::StatusCode;
use serde_json::json;
use wayleave_mcp::RpcError;
use wayleave_model::grant::TokenKind;

/// Why a request is refused before its message is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The request carries no credential.
    Missing,
    /// A credential is in the URL, where it is logged and cached; it was not read.
    TokenInUrl,
    /// The credential is malformed.
    Malformed,
    /// The credential is empty or blank, for instance from an unset variable.
    EmptyToken,
    /// The credential is an unexpanded placeholder such as `${TOKEN}`.
    UnexpandedToken,
    /// It is unknown, or not for this server.
    Invalid,
    /// It has expired.
    Expired,
    /// A human revoked it.
    Revoked,
    /// Two places hold two different credentials.
    Conflicting,
    /// It is not an agent's token.
    NonAgentToken(TokenKind),
    /// It is valid, but has no grants.
    NoPackage,
    /// Its validity cannot be determined.
    Unavailable,
}

impl Refusal {
    /// The reason, for programs.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Missing => "missing_token",
            Self::TokenInUrl => "token_in_address",
            Self::Malformed | Self::EmptyToken | Self::UnexpandedToken => "malformed_token",
            Self::Invalid => "invalid_token",
            Self::Expired => "expired_token",
            Self::Revoked => "revoked_token",
            Self::Conflicting => "conflicting_tokens",
            Self::NonAgentToken(TokenKind::Owner) => "owner_token",
            Self::NonAgentToken(_) => "control_token",
            Self::NoPackage => "no_package",
            Self::Unavailable => "unavailable",
        }
    }

    /// The message, for people.
    pub const fn message(self) -> &'static str {
        match self {
            Self::Missing => "authentication required: no bearer token",
            Self::TokenInUrl => {
                "authentication failed: a token belongs in the Authorization header"
            }
            Self::Malformed => "authentication failed: not a bearer token",
            Self::EmptyToken => "authentication failed: the token is empty",
            Self::UnexpandedToken => {
                "authentication failed: the token is an unexpanded placeholder"
            }
            Self::Invalid => "authentication failed: the token is not valid",
            Self::Expired => "authentication failed: the token has expired",
            Self::Revoked => "authentication failed: the token was revoked",
            Self::Conflicting => "authentication failed: two different tokens were given",
            Self::NonAgentToken(TokenKind::Owner) => {
                "authentication failed: an owner token is not for agents, use a client token"
            }
            Self::NonAgentToken(_) => {
                "authentication failed: a control token is not for agents, use a client token"
            }
            Self::NoPackage => "authentication failed: nothing is granted to this token",
            Self::Unavailable => "authentication failed: tokens cannot be checked now",
        }
    }

    /// The refusal of a text that is no token. Tells an empty or unexpanded one apart: its variable
    /// is not set where the client or the server was started.
    pub(super) fn from_malformed(text: &str) -> Self {
        let text = text.trim();
        if text.is_empty() {
            Self::EmptyToken
        } else if is_placeholder(text) {
            Self::UnexpandedToken
        } else {
            Self::Malformed
        }
    }

    /// What to do about it, if the reason does not say so. Never contains the credential.
    pub const fn hint(self) -> Option<&'static str> {
        match self {
            Self::EmptyToken => Some(
                "the variable or file that should hold the token is empty; set it where the client is started",
            ),
            Self::UnexpandedToken => Some(
                "the variable that should hold the token was not expanded; set it where the client is started",
            ),
            _ => None,
        }
    }

    /// The refusal as a JSON-RPC error.
    pub fn error(self) -> RpcError {
        let mut data = json!({ "reason": self.reason() });
        if let (Some(hint), Some(data)) = (self.hint(), data.as_object_mut()) {
            data.insert("hint".to_owned(), hint.into());
        }
        RpcError::new(RpcError::UNAUTHENTICATED, self.message()).with_data(data)
    }

    pub(super) const fn status(self) -> StatusCode {
        match self {
            Self::NonAgentToken(_) | Self::NoPackage => StatusCode::FORBIDDEN,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::UNAUTHORIZED,
        }
    }

    /// The error code of RFC 6750. `None` for a request without a credential, and for refusals that
    /// are not sent as a challenge.
    pub(super) const fn oauth_error(self) -> Option<&'static str> {
        match self {
            Self::TokenInUrl | Self::Conflicting => Some("invalid_request"),
            Self::Malformed
            | Self::EmptyToken
            | Self::UnexpandedToken
            | Self::Invalid
            | Self::Expired
            | Self::Revoked => Some("invalid_token"),
            Self::Missing | Self::NonAgentToken(_) | Self::NoPackage | Self::Unavailable => None,
        }
    }
}

/// Whether a text still has the form of a variable reference: `$X`, `${X}`, `${env:X}`, `%X%`,
/// `{{X}}`, `<X>`. No token contains any of these characters.
fn is_placeholder(text: &str) -> bool {
    let within =
        |open: char, close: char| text.len() > 1 && text.starts_with(open) && text.ends_with(close);
    text.contains('$') || text.contains("{{") || within('%', '%') || within('<', '>')
}
