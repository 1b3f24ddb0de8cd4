//! The door for a client at the other end of standard input and output.
//!
//! Its token is in our environment, or in its `initialize`. Without any it reads what is local.
//! An owner's or a control token is never used, not even to find out whether it is good.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use futures::future::BoxFuture;
use wayleave_mcp::{Admit, Caller, TurnedAway};
use wayleave_model::grant::TokenKind;

use super::{Credentials, Refusal};
use crate::source::Environment;

/// The variable that holds the client's token.
const TOKEN: &str = "WAYLEAVE_TOKEN";
/// The variable that may name a file with the token instead, for clients that hand on only what
/// is written into their settings.
const TOKEN_FILE: &str = "WAYLEAVE_TOKEN_FILE";
/// Variables whose mere presence means that an owner's credential is within an agent's reach.
const NOT_AN_AGENTS: [(&str, &str, TokenKind); 2] = [
    (
        "WAYLEAVE_OWNER_TOKEN",
        "`WAYLEAVE_OWNER_TOKEN`",
        TokenKind::Owner,
    ),
    (
        "WAYLEAVE_CONTROL_TOKEN",
        "`WAYLEAVE_CONTROL_TOKEN`",
        TokenKind::Control,
    ),
];

/// The token a process was given for its client, if any. It is not printed.
#[derive(Clone, Default)]
pub struct GivenToken(Option<Arc<str>>);

impl std::fmt::Debug for GivenToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() {
            "GivenToken(…)"
        } else {
            "GivenToken(none)"
        })
    }
}

/// A credential that is not an agent's, and where it was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "{place} holds {article} {kind} credential, which agents are never served with; use a client token"
)]
pub struct NotAnAgents {
    place: &'static str,
    article: &'static str,
    kind: TokenKind,
}

impl NotAnAgents {
    fn at(place: &'static str, kind: TokenKind) -> Self {
        let article = if kind == TokenKind::Owner { "an" } else { "a" };
        Self {
            place,
            article,
            kind,
        }
    }
}

impl GivenToken {
    /// Reads the environment.
    pub fn read(environment: &Environment) -> Result<Self, NotAnAgents> {
        for (variable, place, kind) in NOT_AN_AGENTS {
            if environment.is_set(variable) {
                return Err(NotAnAgents::at(place, kind));
            }
        }
        // One that is not text, or in a file that cannot be read, is a wrong one, not none.
        let (place, token) = if environment.is_set(TOKEN) {
            ("`WAYLEAVE_TOKEN`", environment.get(TOKEN))
        } else if environment.is_set(TOKEN_FILE) {
            let path = environment.get(TOKEN_FILE).unwrap_or_default();
            ("the file that `WAYLEAVE_TOKEN_FILE` names", in_file(&path))
        } else {
            return Ok(Self(None));
        };
        let token = token.unwrap_or_default();
        match TokenKind::of(&token) {
            Some(kind @ (TokenKind::Owner | TokenKind::Control)) => {
                Err(NotAnAgents::at(place, kind))
            }
            _ => Ok(Self(Some(token.into()))),
        }
    }
}

fn in_file(path: &str) -> Option<String> {
    match std::fs::read_to_string(path) {
        Ok(text) => Some(text.trim_end_matches(['\r', '\n']).to_owned()),
        Err(error) => {
            tracing::warn!(%error, "the file that `{TOKEN_FILE}` names cannot be read");
            None
        }
    }
}

/// Who the client is, as far as it has said.
#[derive(Clone)]
enum Said {
    /// Nothing: it is local.
    Nothing,
    /// This token.
    Token(Arc<str>),
    /// Something wrong, and so nothing is believed until it says something right.
    Wrong(Refusal),
}

/// Lets the one client of a pipe in.
#[derive(Clone)]
pub struct StdioDoor {
    credentials: Credentials,
    given: GivenToken,
    local: Arc<Caller>,
    said: Arc<Mutex<Said>>,
    not_an_agents: Arc<OnceLock<NotAnAgents>>,
}

impl StdioDoor {
    /// A door for the client whose token was `given`; without one it is `local`.
    pub fn new(credentials: Credentials, given: GivenToken, local: Caller) -> Self {
        let said = match &given.0 {
            Some(token) => Said::Token(Arc::clone(token)),
            None => Said::Nothing,
        };
        Self {
            credentials,
            given,
            local: Arc::new(local),
            said: Arc::new(Mutex::new(said)),
            not_an_agents: Arc::default(),
        }
    }

    /// The credential that is not an agent's for which the client was hung up on.
    pub fn not_an_agents(&self) -> Option<NotAnAgents> {
        self.not_an_agents.get().copied()
    }

    fn said(&self) -> Said {
        self.said
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn say(&self, said: Said) {
        *self.said.lock().unwrap_or_else(PoisonError::into_inner) = said;
    }

    fn turn_away(&self, refusal: Refusal) -> TurnedAway {
        let mut hang_up = false;
        if let Refusal::NotAnAgents(kind) = refusal {
            hang_up = true;
            let found = NotAnAgents::at("`clientInfo.authorization.bearer`", kind);
            let _ = self.not_an_agents.set(found);
        }
        TurnedAway {
            error: refusal.error(),
            hang_up,
        }
    }

    async fn known(&self, token: &str) -> Result<Arc<Caller>, TurnedAway> {
        let caller = self.credentials.caller(token).await;
        caller.map_err(|refusal| self.turn_away(refusal))
    }
}

impl Admit for StdioDoor {
    fn begin<'m>(&'m self, bearer: Option<&'m str>) -> BoxFuture<'m, Result<(), TurnedAway>> {
        Box::pin(async move {
            let token: Arc<str> = match (bearer, &self.given.0) {
                (None, None) => {
                    self.say(Said::Nothing);
                    return Ok(());
                }
                (None, Some(given)) => Arc::clone(given),
                (Some(bearer), Some(given)) if bearer != &**given => {
                    // An owner's credential is that, whatever else is wrong with it.
                    let refusal = match TokenKind::of(bearer) {
                        Some(kind @ (TokenKind::Owner | TokenKind::Control)) => {
                            Refusal::NotAnAgents(kind)
                        }
                        _ => Refusal::Conflicting,
                    };
                    self.say(Said::Wrong(refusal));
                    return Err(self.turn_away(refusal));
                }
                (Some(bearer), _) => bearer.into(),
            };
            match self.credentials.caller(&token).await {
                Ok(_) => {
                    self.say(Said::Token(token));
                    Ok(())
                }
                Err(refusal) => {
                    self.say(Said::Wrong(refusal));
                    Err(self.turn_away(refusal))
                }
            }
        })
    }

    fn caller(&self) -> BoxFuture<'_, Result<Arc<Caller>, TurnedAway>> {
        Box::pin(async {
            match self.said() {
                Said::Nothing => Ok(Arc::clone(&self.local)),
                Said::Token(token) => self.known(&token).await,
                Said::Wrong(refusal) => Err(self.turn_away(refusal)),
            }
        })
    }
}
