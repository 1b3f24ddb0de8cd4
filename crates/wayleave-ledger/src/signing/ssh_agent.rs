//! A client of `ssh-agent`: lists its keys, and requests signatures. Private keys never leave it.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use super::owner_key::OwnerKey;
use super::signer::{SignError, Signer};
use super::wire::{WireReader, put_string};

const REQUEST_IDENTITIES: u8 = 11;
const IDENTITIES_ANSWER: u8 = 12;
const SIGN_REQUEST: u8 = 13;
const SIGN_RESPONSE: u8 = 14;
/// Request flag: sign with SHA-512 (RSA keys).
const RSA_SHA2_512: u32 = 4;
/// Largest accepted response.
const MAX_ANSWER_BYTES: u32 = 256 * 1024;
/// Deadline for listing keys.
const LIST_TIMEOUT: Duration = Duration::from_secs(5);
/// Deadline for signing: a person may have to confirm it, or touch a device.
const SIGN_TIMEOUT: Duration = Duration::from_mins(2);

/// The agent behind a socket, usually that of `SSH_AUTH_SOCK`.
#[derive(Debug, Clone)]
pub struct SshAgent {
    socket: PathBuf,
}

impl SshAgent {
    /// The agent at that socket. Does not connect yet.
    pub fn new(socket: PathBuf) -> Self {
        Self { socket }
    }

    fn ask(&self, request: &[u8], timeout: Duration) -> Result<Vec<u8>, SignError> {
        let ask = || -> io::Result<Option<Vec<u8>>> {
            let mut stream = UnixStream::connect(&self.socket)?;
            stream.set_read_timeout(Some(timeout))?;
            stream.set_write_timeout(Some(LIST_TIMEOUT))?;
            let mut framed = Vec::with_capacity(request.len() + 4);
            put_string(&mut framed, request);
            stream.write_all(&framed)?;
            let mut length = [0; 4];
            stream.read_exact(&mut length)?;
            let length = u32::from_be_bytes(length);
            if length == 0 || length > MAX_ANSWER_BYTES {
                return Ok(None);
            }
            let mut answer = Vec::new();
            let read = stream.take(length.into()).read_to_end(&mut answer)?;
            Ok((u64::try_from(read).ok() == Some(length.into())).then_some(answer))
        };
        let answer = ask().map_err(|source| SignError::Agent {
            path: self.socket.clone(),
            source,
        })?;
        answer.ok_or(SignError::Garbled)
    }
}

impl Signer for SshAgent {
    fn keys(&self) -> Result<Vec<OwnerKey>, SignError> {
        let answer = self.ask(&[REQUEST_IDENTITIES], LIST_TIMEOUT)?;
        let mut reader = WireReader::new(&answer);
        let mut read = || {
            let is_list = reader.byte()? == IDENTITIES_ANSWER;
            let count = reader.number().filter(|_| is_list)?;
            let mut keys = Vec::new();
            for _ in 0..count {
                let (blob, _comment) = (reader.string()?, reader.string()?);
                // Skips certificates and unsupported key types.
                keys.extend(OwnerKey::from_blob(blob));
            }
            Some(keys)
        };
        read().ok_or(SignError::Garbled)
    }

    fn sign(&self, key: &OwnerKey, bytes: &[u8]) -> Result<Vec<u8>, SignError> {
        let mut request = vec![SIGN_REQUEST];
        put_string(&mut request, key.blob());
        put_string(&mut request, bytes);
        let flags = if key.algorithm() == "ssh-rsa" {
            RSA_SHA2_512
        } else {
            0
        };
        request.extend(flags.to_be_bytes());
        let answer = self.ask(&request, SIGN_TIMEOUT)?;
        let mut reader = WireReader::new(&answer);
        if reader.byte() != Some(SIGN_RESPONSE) {
            return Err(SignError::Declined);
        }
        let signature = reader.string().ok_or(SignError::Garbled)?;
        Ok(signature.to_vec())
    }
}
