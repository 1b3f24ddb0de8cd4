//! Detects a server that requests the password in clear text, before the password is sent.
//!
//! The driver answers every authentication request. Over a connection where anybody may impersonate
//! the server, a clear-text request must go unanswered, because the answer would reveal the
//! password. Requests that prove knowledge of the password without revealing it (SCRAM, MD5) pass.

use std::fmt;
use std::io;

/// A tag, a length that counts itself and, in an authentication request, the kind of request.
const REQUEST_BYTES: usize = 9;
const HEAD_BYTES: usize = 5;

/// The server requested the password over an unverified connection.
#[derive(Debug)]
pub(super) struct CleartextRefused;

impl fmt::Display for CleartextRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the server requests the password in clear text over an unverified connection")
    }
}

impl std::error::Error for CleartextRefused {}

/// Inspects the bytes that a server sends until the login is over.
#[derive(Debug)]
pub(super) struct CleartextGuard {
    state: State,
    /// The beginning of a message, as far as it has arrived.
    head: Vec<u8>,
}

#[derive(Debug)]
enum State {
    /// Expects the single byte that tells whether TLS follows.
    TlsAnswer,
    /// Collects the beginning of a message.
    Head,
    /// Skips the remaining bytes of an irrelevant message.
    Skip(usize),
    /// Passes everything: the login is over, or TLS has its own guard.
    Over,
}

impl CleartextGuard {
    /// Guards a connection that does, or does not, request TLS first.
    pub(super) fn new(asks_for_tls: bool) -> Self {
        Self {
            state: if asks_for_tls {
                State::TlsAnswer
            } else {
                State::Head
            },
            head: Vec::with_capacity(REQUEST_BYTES),
        }
    }

    /// Fails where these bytes complete a request for the password in clear text.
    pub(super) fn watch(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut rest = bytes;
        while let Some((first, tail)) = rest.split_first() {
            match self.state {
                State::Over => return Ok(()),
                State::TlsAnswer => {
                    self.state = if *first == b'S' {
                        State::Over
                    } else {
                        State::Head
                    };
                    rest = tail;
                }
                State::Skip(count) => {
                    let skipped = count.min(rest.len());
                    (_, rest) = rest.split_at(skipped);
                    self.state = match count - skipped {
                        0 => State::Head,
                        left => State::Skip(left),
                    };
                }
                State::Head => {
                    self.head.push(*first);
                    rest = tail;
                    self.look()?;
                }
            }
        }
        Ok(())
    }

    /// Decides as soon as enough of a message has arrived.
    fn look(&mut self) -> io::Result<()> {
        let Some((&[tag, ref length @ ..], kind)) = self.head.split_first_chunk::<HEAD_BYTES>()
        else {
            return Ok(());
        };
        let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
        if tag != b'R' || length < 8 {
            self.head.clear();
            self.state = match length.saturating_sub(4) {
                0 => State::Head,
                left => State::Skip(left),
            };
            return Ok(());
        }
        let Some((kind, _)) = kind.split_first_chunk::<4>() else {
            return Ok(());
        };
        match u32::from_be_bytes(*kind) {
            3 => return Err(io::Error::other(CleartextRefused)),
            0 => self.state = State::Over,
            _ => {
                self.state = match length.saturating_sub(8) {
                    0 => State::Head,
                    left => State::Skip(left),
                }
            }
        }
        self.head.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a login with these server bytes proceeds, however they are split.
    fn passes(asks_for_tls: bool, bytes: &[u8]) -> bool {
        let outcomes: Vec<bool> = [1, 2, 3, 7, 1_000]
            .map(|cut| {
                let mut guard = CleartextGuard::new(asks_for_tls);
                bytes.chunks(cut).all(|chunk| guard.watch(chunk).is_ok())
            })
            .into();
        assert!(outcomes.iter().all(|it| *it == outcomes[0]), "{outcomes:?}");
        outcomes[0]
    }

    #[test]
    fn a_request_for_the_password_in_clear_text_is_noticed_wherever_it_comes() {
        const CLEARTEXT: &[u8] = b"R\0\0\0\x08\0\0\0\x03";
        assert!(!passes(false, CLEARTEXT));
        assert!(!passes(true, &[b"N", CLEARTEXT].concat()));
        // Also after a notice, and after another request.
        assert!(!passes(false, &[b"N\0\0\0\x06a\0", CLEARTEXT].concat()));
        let salted: &[u8] = b"R\0\0\0\x0c\0\0\0\x05salt";
        assert!(!passes(false, &[salted, CLEARTEXT].concat()));
    }

    #[test]
    fn what_proves_a_password_without_telling_it_passes() {
        assert!(passes(
            false,
            b"R\0\0\0\x0c\0\0\0\x05saltR\0\0\0\x08\0\0\0\0"
        ));
        assert!(passes(
            false,
            b"R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0R\0\0\0\x0c\0\0\0\x0bdata"
        ));
        // After the login the same bytes are a value.
        assert!(passes(false, b"R\0\0\0\x08\0\0\0\0R\0\0\0\x08\0\0\0\x03"));
        // TLS traffic may look like anything.
        assert!(passes(true, b"SR\0\0\0\x08\0\0\0\x03"));
    }
}
