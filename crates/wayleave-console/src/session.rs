//! Signed-in people. Sessions live in memory: they end with the program, after twelve hours, or at
//! sign-out.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use subtle::ConstantTimeEq as _;
use wayleave_ledger::Millis;
use wayleave_model::digest::Digest;

use crate::links::random_code;

/// Lifetime of a session, in milliseconds.
const SESSION_LIFETIME: Millis = 12 * 3600 * 1000;
/// Maximum number of sessions; the oldest ends when a further one begins.
const MAX_SESSIONS: usize = 64;
/// Maximum number of failed sign-ins in a minute.
const MAX_FAILURES: usize = 20;

/// A person who is signed in.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    /// Their name.
    pub(crate) who: String,
    /// The CSRF token in every form of the session.
    pub(crate) csrf: String,
    began: Millis,
}

impl Session {
    /// Whether a form carries this session's CSRF token.
    pub(crate) fn fits(&self, csrf: &str) -> bool {
        self.csrf.as_bytes().ct_eq(csrf.as_bytes()).into()
    }
}

/// The sessions, keyed by the hash of their cookie.
#[derive(Debug, Default)]
pub(crate) struct SessionTable {
    sessions: Mutex<HashMap<Digest, Session>>,
    failures: Mutex<Vec<Millis>>,
}

impl SessionTable {
    /// Begins a session, always under a fresh cookie, and returns the cookie.
    pub(crate) fn begin(&self, who: &str, now: Millis) -> Option<String> {
        let (cookie, csrf) = (random_code()?, random_code()?);
        let session = Session {
            who: who.to_owned(),
            csrf,
            began: now,
        };
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|_, it| is_valid(it, now));
        if sessions.len() >= MAX_SESSIONS {
            let oldest = sessions.iter().min_by_key(|(_, it)| it.began);
            if let Some(key) = oldest.map(|(key, _)| *key) {
                sessions.remove(&key);
            }
        }
        sessions.insert(Digest::from_bytes(cookie.as_bytes()), session);
        Some(cookie)
    }

    /// The session of a cookie.
    pub(crate) fn get(&self, cookie: &str, now: Millis) -> Option<Session> {
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let session = sessions.get(&Digest::from_bytes(cookie.as_bytes()))?;
        is_valid(session, now).then(|| session.clone())
    }

    /// Ends a session.
    pub(crate) fn end(&self, cookie: &str) {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.remove(&Digest::from_bytes(cookie.as_bytes()));
    }

    /// Records a failed sign-in.
    pub(crate) fn fail(&self, now: Millis) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.retain(|at| now.saturating_sub(*at) < 60_000);
        failures.push(now);
    }

    /// Whether too many sign-ins failed in the last minute. Then none is attempted.
    pub(crate) fn has_too_many_failures(&self, now: Millis) -> bool {
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = failures
            .iter()
            .filter(|at| now.saturating_sub(**at) < 60_000);
        recent.count() >= MAX_FAILURES
    }
}

fn is_valid(session: &Session, now: Millis) -> bool {
    now >= session.began && now.saturating_sub(session.began) < SESSION_LIFETIME
}
