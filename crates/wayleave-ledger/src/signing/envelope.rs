//! The bytes that a key signs, as `ssh-keygen -Y sign` lays them out.

use sha2::{Digest as _, Sha512};

use super::wire::put_string;

/// Domain separator of SSH signatures outside SSH's own protocol.
const MAGIC: &[u8; 6] = b"SSHSIG";
/// SSHSIG namespace of our signatures.
pub(super) const NAMESPACE: &str = "ledger@wayleave";
const HASH: &str = "sha512";

/// The bytes to sign for a message.
pub(super) fn envelope(message: &[u8]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    put_string(&mut bytes, NAMESPACE.as_bytes());
    put_string(&mut bytes, b"");
    put_string(&mut bytes, HASH.as_bytes());
    put_string(&mut bytes, &Sha512::digest(message));
    bytes
}

/// The signature as a file that `ssh-keygen -Y verify` reads.
#[cfg(test)]
pub(super) fn armored(key: &super::OwnerKey, signature: &[u8]) -> String {
    use base64::Engine as _;
    let mut bytes = MAGIC.to_vec();
    bytes.extend(1_u32.to_be_bytes());
    put_string(&mut bytes, key.blob());
    put_string(&mut bytes, NAMESPACE.as_bytes());
    put_string(&mut bytes, b"");
    put_string(&mut bytes, HASH.as_bytes());
    put_string(&mut bytes, signature);
    let text = base64::engine::general_purpose::STANDARD.encode(bytes);
    let mut lines = String::from("-----BEGIN SSH SIGNATURE-----\n");
    for line in text.as_bytes().chunks(70) {
        lines.push_str(str::from_utf8(line).unwrap());
        lines.push('\n');
    }
    lines + "-----END SSH SIGNATURE-----\n"
}
