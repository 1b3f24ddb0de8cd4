//! Keys, signatures and key files, cross-checked with OpenSSH.

use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use ring::signature::{Ed25519KeyPair, KeyPair as _};
use secrecy::SecretString;
use sha2::{Digest as _, Sha256};

use super::envelope::{NAMESPACE, armored, envelope};
use super::wire::put_string;
use super::*;

const MESSAGE: &[u8] = b"an entry and the head before it";

fn passphrase(text: &str) -> SecretString {
    SecretString::from(text.to_owned())
}

#[test]
fn every_flipped_bit_of_a_signature_is_refused() {
    let pair = UnlockedKey::from_seed([7; 32]);
    let signature = EntrySignature::sign(&pair, pair.key(), MESSAGE).unwrap();
    assert!(signature.is_by(pair.key(), MESSAGE));
    let text = signature.to_string();
    assert_eq!(text.parse::<EntrySignature>().unwrap(), signature);
    for place in 0..text.len() {
        for bit in 0..7 {
            let mut bytes = text.clone().into_bytes();
            bytes[place] ^= 1 << bit;
            let Ok(altered) = String::from_utf8(bytes) else {
                continue;
            };
            let is_by = altered
                .parse::<EntrySignature>()
                .is_ok_and(|it| it.is_by(pair.key(), MESSAGE));
            assert!(!is_by, "{altered}");
        }
    }
}

#[test]
fn a_signature_is_of_one_message_by_one_key() {
    let (ana, ben) = (
        UnlockedKey::from_seed([1; 32]),
        UnlockedKey::from_seed([2; 32]),
    );
    let signature = EntrySignature::sign(&ana, ana.key(), MESSAGE).unwrap();
    assert!(!signature.is_by(ben.key(), MESSAGE));
    for place in 0..MESSAGE.len() {
        let mut other = MESSAGE.to_vec();
        other[place] ^= 1;
        assert!(!signature.is_by(ana.key(), &other));
    }
    // A signature over the bare message, as in another protocol, is invalid.
    let bare = ana.sign(ana.key(), MESSAGE).unwrap();
    assert!(!ana.key().verifies(&envelope(MESSAGE), &bare));
    let other = EntrySignature::sign(&ana, ben.key(), MESSAGE);
    assert!(matches!(other, Err(SignError::NoKey)));
}

#[test]
fn keys_of_other_types_or_lengths_are_refused() {
    let short_rsa = {
        let mut blob = Vec::new();
        for part in [&b"ssh-rsa"[..], &[1, 0, 1], &[0x7f; 128]] {
            put_string(&mut blob, part);
        }
        blob
    };
    assert!(OwnerKey::from_blob(&short_rsa).is_err());
    assert!(OwnerKey::from_ed25519(&[0; 31]).is_err());
    let key = UnlockedKey::from_seed([3; 32]).key().clone();
    let line = key.to_string();
    assert_eq!(
        format!("{line} ana@desk\n").parse::<OwnerKey>().unwrap(),
        key
    );
    for wrong in [
        "",
        "ssh-ed25519",
        &line.replace("ssh-ed25519", "ssh-rsa"),
        &line[..line.len() - 4],
        &format!("{line}AAAA"),
    ] {
        assert!(wrong.parse::<OwnerKey>().is_err(), "{wrong}");
    }
    let fingerprint = key.fingerprint();
    assert_eq!(
        fingerprint.to_string().parse::<KeyFingerprint>().unwrap(),
        fingerprint
    );
    assert!("SHA256:short".parse::<KeyFingerprint>().is_err());
}

/// A security key in software: signs what a device would, with the flags given.
struct SoftwareDevice {
    pair: Ed25519KeyPair,
    flags: u8,
}

impl SoftwareDevice {
    fn new(flags: u8) -> Self {
        let pair = Ed25519KeyPair::from_seed_unchecked(&[9; 32]).unwrap();
        Self { pair, flags }
    }
}

impl Signer for SoftwareDevice {
    fn keys(&self) -> Result<Vec<OwnerKey>, SignError> {
        let mut blob = Vec::new();
        let point = self.pair.public_key().as_ref();
        for part in [b"sk-ssh-ed25519@openssh.com", point, b"ssh:"] {
            put_string(&mut blob, part);
        }
        Ok(vec![OwnerKey::from_blob(&blob).unwrap()])
    }

    fn sign(&self, key: &OwnerKey, bytes: &[u8]) -> Result<Vec<u8>, SignError> {
        let mut signed = Sha256::digest(b"ssh:").to_vec();
        signed.push(self.flags);
        signed.extend(5_u32.to_be_bytes());
        signed.extend(Sha256::digest(bytes));
        let mut signature = Vec::new();
        put_string(&mut signature, key.algorithm().as_bytes());
        put_string(&mut signature, self.pair.sign(&signed).as_ref());
        signature.push(self.flags);
        signature.extend(5_u32.to_be_bytes());
        Ok(signature)
    }
}

#[test]
fn a_security_key_counts_only_when_it_was_touched() {
    let touched = SoftwareDevice::new(0x01);
    let key = touched.keys().unwrap().remove(0);
    assert_eq!(key.algorithm(), "sk-ssh-ed25519@openssh.com");
    let signature = EntrySignature::sign(&touched, &key, MESSAGE).unwrap();
    assert!(signature.is_by(&key, MESSAGE));
    let untouched = EntrySignature::sign(&SoftwareDevice::new(0x00), &key, MESSAGE);
    assert!(matches!(untouched, Err(SignError::Unfit)));
}

#[test]
fn a_key_file_opens_with_its_passphrase_alone_and_only_unaltered() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("owner.key");
    let short = OwnerKeyFile::create(&path, &passphrase("hunter2"));
    assert!(matches!(short, Err(KeyFileError::Short)));
    let good = passphrase("four plain words here");
    let made = OwnerKeyFile::create(&path, &good).unwrap();
    let again = OwnerKeyFile::create(&path, &good);
    let Err(KeyFileError::Disk { source, .. }) = again else {
        panic!("a key file was replaced");
    };
    assert_eq!(source.kind(), ErrorKind::AlreadyExists);
    // No temporary file stays beside it.
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    let file = OwnerKeyFile::open(&path).unwrap();
    assert_eq!(file.key(), made.key());
    assert_eq!(file.unlock(&good).unwrap().key(), made.key());
    let wrong = file.unlock(&passphrase("four plain words there"));
    assert!(matches!(wrong, Err(KeyFileError::Passphrase { .. })));

    let text = std::fs::read_to_string(&path).unwrap();
    assert!(!text.contains("four plain words"));
    // One altered character of each line; each unlocking takes a while.
    for place in [20, 45, 110, 140, 150, 175, 230, text.len() - 5] {
        let mut bytes = text.clone().into_bytes();
        bytes[place] ^= 0x01;
        std::fs::write(&path, bytes).unwrap();
        let opened = OwnerKeyFile::open(&path);
        let is_open = opened.is_ok_and(|it| it.unlock(&good).is_ok());
        assert!(!is_open, "place {place}");
    }
    std::fs::write(&path, &text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    let exposed = OwnerKeyFile::open(&path);
    assert!(matches!(exposed, Err(KeyFileError::Exposed { .. })));
}

/// `ssh-agent` on a socket of its own. Ends with the test.
struct AgentProcess {
    child: Child,
    folder: tempfile::TempDir,
}

impl AgentProcess {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("agent");
        let mut child = Command::new("ssh-agent")
            .arg("-D")
            .arg("-a")
            .arg(&socket)
            .stdout(Stdio::piped())
            .spawn()
            .expect("`ssh-agent` runs; else install the package `openssh-client`");
        // It prints the address once the socket listens.
        let mut line = [0; 1];
        let out = child.stdout.as_mut().unwrap();
        std::io::Read::read_exact(out, &mut line).unwrap();
        Self { child, folder }
    }

    fn agent(&self) -> SshAgent {
        SshAgent::new(self.folder.path().join("agent"))
    }

    /// Makes a key with `ssh-keygen`, and adds it. Returns the public key's file.
    fn add(&self, kind: &str, bits: &str) -> PathBuf {
        let path = self.folder.path().join(kind);
        let keygen = ["-q", "-t", kind, "-b", bits, "-N", "", "-C", "ana", "-f"];
        run(Command::new("ssh-keygen").args(keygen).arg(&path));
        let socket = self.folder.path().join("agent");
        let mut add = Command::new("ssh-add");
        run(add.arg("-q").arg(&path).env("SSH_AUTH_SOCK", socket));
        path.with_extension("pub")
    }
}

impl Drop for AgentProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{command:?}: {said}");
}

/// Verifies a signature of ours with `ssh-keygen`.
fn openssh_verifies(folder: &Path, key: &OwnerKey, signature: &EntrySignature) -> bool {
    let (signers, file) = (folder.join("signers"), folder.join("signature"));
    std::fs::write(&signers, format!("ana {key}\n")).unwrap();
    std::fs::write(&file, armored(key, signature.bytes())).unwrap();
    let mut child = Command::new("ssh-keygen")
        .args(["-Y", "verify", "-I", "ana", "-n", NAMESPACE, "-f"])
        .arg(&signers)
        .arg("-s")
        .arg(&file)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(MESSAGE).unwrap();
    child.wait().unwrap().success()
}

#[test]
fn keys_in_ssh_agent_sign_and_openssh_verifies_what_they_signed() {
    let process = AgentProcess::start();
    let agent = process.agent();
    assert!(agent.keys().unwrap().is_empty());
    for (kind, bits) in [("ed25519", "256"), ("ecdsa", "256"), ("rsa", "2048")] {
        let public = process.add(kind, bits);
        let key: OwnerKey = std::fs::read_to_string(&public).unwrap().parse().unwrap();
        assert!(agent.keys().unwrap().contains(&key), "{kind}");
        let listed = Command::new("ssh-keygen").arg("-lf").arg(&public).output();
        let listed = String::from_utf8(listed.unwrap().stdout).unwrap();
        assert!(listed.contains(&key.fingerprint().to_string()), "{listed}");
        let signature = EntrySignature::sign(&agent, &key, MESSAGE).unwrap();
        assert!(signature.is_by(&key, MESSAGE));
        assert!(!signature.is_by(&key, b"another"));
        assert!(openssh_verifies(process.folder.path(), &key, &signature));
    }
    let stranger = UnlockedKey::from_seed([4; 32]);
    let declined = EntrySignature::sign(&agent, stranger.key(), MESSAGE);
    assert!(matches!(declined, Err(SignError::Declined)));
    let nowhere = SshAgent::new(process.folder.path().join("nobody"));
    assert!(matches!(nowhere.keys(), Err(SignError::Agent { .. })));
}

#[test]
fn openssh_verifies_what_a_key_file_signed() {
    let folder = tempfile::tempdir().unwrap();
    let pair = UnlockedKey::from_seed([5; 32]);
    let signature = EntrySignature::sign(&pair, pair.key(), MESSAGE).unwrap();
    assert!(openssh_verifies(folder.path(), pair.key(), &signature));
}
