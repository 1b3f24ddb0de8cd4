//! Detects a server that asks for the password in clear text, before it is sent.
//!
//! The driver answers every request for a password. Over a line where anybody may pose as the
//! server, this one must not be answered: it would hand the password over. Requests that prove the
//! password without telling it (SCRAM, MD5) pass.

use std::fmt;
use std::io;

/// A tag and a length that counts itself, and of a request its kind.
const REQUEST_BYTES: usize = 9;
const HEAD_BYTES: usize = 5;

/// The server asked for the password over a line that is not verified.
#[derive(Debug)]
pub(super) struct CleartextRefused;

impl fmt::Display for CleartextRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the server asks for the password in clear text over a line that is not verified",
        )
    }
}

impl std::error::Error for CleartextRefused {}

/// Watches the bytes of a server until the login is over.
#[derive(Debug)]
pub(super) struct CleartextGuard {
    state: State,
    /// The beginning of a message, as far as it has arrived.
    head: Vec<u8>,
}

#[derive(Debug)]
enum State {
    /// One byte tells whether TLS follows.
    TlsAnswer,
    /// The beginning of a message.
    Head,
    /// So many more bytes of a message that is of no interest.
    Skip(usize),
    /// All that follows is passed: the login is over, or TLS has its own guard.
    Over,
}

impl CleartextGuard {
    /// Over a line on which TLS is asked for first, or not.
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

    /// Decides as soon as enough of a message is there.
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

    /// Whether a login with these bytes from the server goes on, however they are cut.
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
        // After a notice, and after another request.
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
        // Once we are in, the same bytes are a value.
        assert!(passes(false, b"R\0\0\0\x08\0\0\0\0R\0\0\0\x08\0\0\0\x03"));
        // What TLS sends looks like anything.
        assert!(passes(true, b"SR\0\0\0\x08\0\0\0\x03"));
    }
}
