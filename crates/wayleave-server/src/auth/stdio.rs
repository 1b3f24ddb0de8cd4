//! Authentication of the client at the other end of standard input and output.
//!
//! Its token is in our environment, or in its `initialize`. A client without a token has local
//! access, unless a token is required. A variable that is set but empty is a wrong token, not none.
//! An owner's or a control token is never used, not even to check whether it is valid.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use futures::future::BoxFuture;
use wayleave_mcp::{Caller, StdioAuthenticate, StdioRejection};
use wayleave_model::{
    grant::{TokenKind, TokenSecret},
    problem::quoted,
};
use wayleave_project::source::EnvironmentVariables;

use super::{Credentials, Refusal};

/// The variable that holds the client's token.
const TOKEN: &str = "WAYLEAVE_TOKEN";
/// The variable that may name a file with the token instead, for clients that pass on only the
/// variables written into their settings.
const TOKEN_FILE: &str = "WAYLEAVE_TOKEN_FILE";
/// Variables whose mere presence puts an owner's or a control credential within an agent's reach.
const NON_AGENT_VARIABLES: [(&str, TokenKind); 2] = [
    ("WAYLEAVE_OWNER_TOKEN", TokenKind::Owner),
    ("WAYLEAVE_CONTROL_TOKEN", TokenKind::Control),
];

/// The token a process was given for its client, if any. Never printed.
#[derive(Clone)]
pub struct ProcessToken(TokenState);

impl std::fmt::Debug for ProcessToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.0 {
            TokenState::None => "ProcessToken(none)",
            TokenState::Token(_) => "ProcessToken(…)",
            TokenState::Refused(_) => "ProcessToken(refused)",
        })
    }
}

/// A credential that is not an agent's, and its location.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{place} holds {article} {kind} credential, which agents are never served with; use a client token"
)]
pub struct NonAgentToken {
    place: String,
    article: &'static str,
    kind: TokenKind,
}

impl NonAgentToken {
    fn at(place: impl Into<String>, kind: TokenKind) -> Self {
        let article = if kind == TokenKind::Owner { "an" } else { "a" };
        Self {
            place: place.into(),
            article,
            kind,
        }
    }
}

impl ProcessToken {
    /// Reads the environment. Refuses when any variable holds an owner's or a control token, or
    /// when a variable for such a token is set, even to an empty value.
    pub fn read(environment: &EnvironmentVariables) -> Result<Self, NonAgentToken> {
        for (variable, kind) in NON_AGENT_VARIABLES {
            if environment.is_set(variable) {
                return Err(NonAgentToken::at(format!("`{variable}`"), kind));
            }
        }
        if let Some((variable, kind)) = owners_variable(environment) {
            return Err(NonAgentToken::at(quoted(&variable), kind));
        }
        // A token that is not text, or whose file cannot be read, is a wrong token, not none.
        let text = |variable| environment.get(variable).ok_or(Refusal::Malformed);
        let (place, token) = if environment.is_set(TOKEN) {
            ("`WAYLEAVE_TOKEN`", text(TOKEN))
        } else if environment.is_set(TOKEN_FILE) {
            let token = text(TOKEN_FILE).and_then(|path| in_file(&path));
            ("the file that `WAYLEAVE_TOKEN_FILE` names", token)
        } else {
            return Ok(Self(TokenState::None));
        };
        Ok(Self(match token {
            Err(refusal) => TokenState::Refused(refusal),
            Ok(token) => match TokenKind::from_prefix_of(&token) {
                Some(kind @ (TokenKind::Owner | TokenKind::Control)) => {
                    return Err(NonAgentToken::at(place, kind));
                }
                _ => TokenState::Token(token.into()),
            },
        }))
    }

    /// Refuses a client without a token, which would otherwise get local access.
    #[must_use]
    pub fn required(self) -> Self {
        match self.0 {
            TokenState::None => Self(TokenState::Refused(Refusal::Missing)),
            _ => self,
        }
    }
}

/// The first variable by name whose value contains an owner's or a control token.
fn owners_variable(environment: &EnvironmentVariables) -> Option<(String, TokenKind)> {
    let variables = environment.variables();
    let found = variables.filter_map(|(name, value)| {
        let mut kinds = TokenSecret::kinds_within(&value);
        let kind = kinds.find(|kind| *kind != TokenKind::Client)?;
        Some((name, kind))
    });
    found.min()
}

fn in_file(path: &str) -> Result<String, Refusal> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(text.trim_end_matches(['\r', '\n']).to_owned()),
        Err(error) => {
            tracing::warn!(%error, "the file that `{TOKEN_FILE}` names cannot be read");
            // The path itself may be empty or unexpanded.
            Err(Refusal::from_malformed(path))
        }
    }
}

/// The state of the client's token.
#[derive(Clone)]
enum TokenState {
    /// No token: the client is local.
    None,
    /// This token.
    Token(Arc<str>),
    /// A refused token; the client is refused until it presents a valid one.
    Refused(Refusal),
}

/// Authenticates the one client of a pipe.
#[derive(Clone)]
pub struct StdioAuth {
    credentials: Credentials,
    given: TokenState,
    local: Arc<Caller>,
    state: Arc<Mutex<TokenState>>,
    non_agent_token: Arc<OnceLock<NonAgentToken>>,
}

impl StdioAuth {
    /// Authenticates the client with the token `given`; without one it is the caller `local`.
    pub fn new(credentials: Credentials, given: ProcessToken, local: Caller) -> Self {
        let given = given.0;
        Self {
            credentials,
            state: Arc::new(Mutex::new(given.clone())),
            given,
            local: Arc::new(local),
            non_agent_token: Arc::default(),
        }
    }

    /// The non-agent credential for which the client was disconnected.
    pub fn non_agent_token(&self) -> Option<NonAgentToken> {
        self.non_agent_token.get().cloned()
    }

    fn state(&self) -> TokenState {
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn set_state(&self, state: TokenState) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }

    fn reject(&self, refusal: Refusal) -> StdioRejection {
        let mut hang_up = false;
        if let Refusal::NonAgentToken(kind) = refusal {
            hang_up = true;
            let found = NonAgentToken::at("`clientInfo.authorization.bearer`", kind);
            let _ = self.non_agent_token.set(found);
        }
        StdioRejection {
            error: refusal.error(),
            hang_up,
        }
    }

    /// The client's token, chosen from its bearer and the token it was given.
    fn chosen(&self, bearer: Option<&str>) -> TokenState {
        match (bearer, &self.given) {
            (None, given) => given.clone(),
            (Some(bearer), TokenState::None | TokenState::Refused(Refusal::Missing)) => {
                TokenState::Token(bearer.into())
            }
            (Some(bearer), TokenState::Token(given)) if bearer == &**given => {
                TokenState::Token(Arc::clone(given))
            }
            // An owner's credential is reported as such, whatever else is wrong with it.
            (Some(bearer), _) => TokenState::Refused(match TokenKind::from_prefix_of(bearer) {
                Some(kind @ (TokenKind::Owner | TokenKind::Control)) => {
                    Refusal::NonAgentToken(kind)
                }
                _ => Refusal::Conflicting,
            }),
        }
    }

    async fn known(&self, token: &str) -> Result<Arc<Caller>, StdioRejection> {
        let caller = self.credentials.caller(token).await;
        caller.map_err(|refusal| self.reject(refusal))
    }
}

impl StdioAuthenticate for StdioAuth {
    fn begin<'m>(&'m self, bearer: Option<&'m str>) -> BoxFuture<'m, Result<(), StdioRejection>> {
        Box::pin(async move {
            let token = match self.chosen(bearer) {
                TokenState::None => {
                    self.set_state(TokenState::None);
                    return Ok(());
                }
                TokenState::Refused(refusal) => {
                    self.set_state(TokenState::Refused(refusal));
                    return Err(self.reject(refusal));
                }
                TokenState::Token(token) => token,
            };
            match self.credentials.caller(&token).await {
                Ok(_) => {
                    self.set_state(TokenState::Token(token));
                    Ok(())
                }
                Err(refusal) => {
                    self.set_state(match refusal {
                        // Only now: the next message checks the token again.
                        Refusal::Unavailable => TokenState::Token(token),
                        refusal => TokenState::Refused(refusal),
                    });
                    Err(self.reject(refusal))
                }
            }
        })
    }

    fn caller(&self) -> BoxFuture<'_, Result<Arc<Caller>, StdioRejection>> {
        Box::pin(async {
            match self.state() {
                TokenState::None => match self.credentials.check_ledger().await {
                    Ok(()) => Ok(Arc::clone(&self.local)),
                    Err(refusal) => Err(self.reject(refusal)),
                },
                TokenState::Token(token) => self.known(&token).await,
                TokenState::Refused(refusal) => Err(self.reject(refusal)),
            }
        })
    }
}
