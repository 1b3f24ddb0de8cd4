//! Why somebody is not let in, as each transport says it.

use http::StatusCode;
use serde_json::json;
use wayleave_mcp::RpcError;
use wayleave_model::grant::TokenKind;
use wayleave_surface::access::UNAUTHENTICATED;

/// Why a request is refused before it is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// No credential came with it.
    Missing,
    /// A credential came in the address, where it is logged and cached; it was not read.
    InAddress,
    /// What came is not one credential.
    Malformed,
    /// Nobody issued it, or not for us.
    Invalid,
    /// Its time is over.
    Expired,
    /// A human took it back.
    Revoked,
    /// Two places name two credentials.
    Conflicting,
    /// It is not an agent's.
    NotAnAgents(TokenKind),
    /// It is good, and nothing is granted to it.
    NoPackage,
    /// Whether it is good cannot be found out.
    Unavailable,
}

impl Refusal {
    /// For programs.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Missing => "missing_token",
            Self::InAddress => "token_in_address",
            Self::Malformed => "malformed_token",
            Self::Invalid => "invalid_token",
            Self::Expired => "expired_token",
            Self::Revoked => "revoked_token",
            Self::Conflicting => "conflicting_tokens",
            Self::NotAnAgents(TokenKind::Owner) => "owner_token",
            Self::NotAnAgents(_) => "control_token",
            Self::NoPackage => "no_package",
            Self::Unavailable => "unavailable",
        }
    }

    /// For people.
    pub const fn message(self) -> &'static str {
        match self {
            Self::Missing => "authentication required: no bearer token",
            Self::InAddress => "authentication failed: a token belongs in the Authorization header",
            Self::Malformed => "authentication failed: not a bearer token",
            Self::Invalid => "authentication failed: the token is not valid",
            Self::Expired => "authentication failed: the token has expired",
            Self::Revoked => "authentication failed: the token was revoked",
            Self::Conflicting => "authentication failed: two different tokens were given",
            Self::NotAnAgents(TokenKind::Owner) => {
                "authentication failed: an owner token is not for agents, use a client token"
            }
            Self::NotAnAgents(_) => {
                "authentication failed: a control token is not for agents, use a client token"
            }
            Self::NoPackage => "authentication failed: nothing is granted to this token",
            Self::Unavailable => "authentication failed: tokens cannot be checked now",
        }
    }

    /// As an answer.
    pub fn error(self) -> RpcError {
        RpcError::new(UNAUTHENTICATED, self.message()).with_data(json!({ "reason": self.reason() }))
    }

    pub(super) const fn status(self) -> StatusCode {
        match self {
            Self::NotAnAgents(_) | Self::NoPackage => StatusCode::FORBIDDEN,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::UNAUTHORIZED,
        }
    }

    /// The error code of RFC 6750. Who brought nothing is told none, and who could bring nothing
    /// better is not challenged.
    pub(super) const fn oauth_error(self) -> Option<&'static str> {
        match self {
            Self::InAddress | Self::Conflicting => Some("invalid_request"),
            Self::Malformed | Self::Invalid | Self::Expired | Self::Revoked => {
                Some("invalid_token")
            }
            Self::Missing | Self::NotAnAgents(_) | Self::NoPackage | Self::Unavailable => None,
        }
    }
}
