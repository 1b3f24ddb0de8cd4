//! An issuer's public keys: RFC 7517.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
    UnparsedPublicKey, VerificationAlgorithm,
};
use serde::Deserialize;

use wayleave_project::settings::Algorithm;

/// Maximum number of keys of one issuer.
const MAX_KEYS: usize = 64;

/// The signing keys of an issuer.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Keys(Vec<Key>);

/// One key of an issuer.
#[derive(Debug, PartialEq)]
pub(crate) struct Key {
    id: Option<String>,
    /// The one algorithm it is for, if its issuer names one.
    only: Option<Algorithm>,
    material: Material,
}

#[derive(Debug, PartialEq)]
enum Material {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

#[derive(Deserialize)]
struct Document {
    keys: Vec<serde_json::Value>,
}

#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl Keys {
    /// Parses a key set. Skips keys of unsupported kinds. `None` if the document is no key set.
    pub(crate) fn read(document: &[u8]) -> Option<Self> {
        let document: Document = serde_json::from_slice(document).ok()?;
        let keys = document.keys.into_iter().take(MAX_KEYS);
        Some(Self(keys.filter_map(Key::read).collect()))
    }

    /// The key with the id a token names; for a token that names none, the only key that fits.
    pub(crate) fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Option<&Key> {
        let mut fitting = self.0.iter().filter(|key| key.fits(algorithm));
        match id {
            Some(id) => fitting.find(|key| key.id.as_deref() == Some(id)),
            None => match (fitting.next(), fitting.next()) {
                (Some(only), None) => Some(only),
                _ => None,
            },
        }
    }

    /// Whether there is a key with that id, for any use.
    pub(crate) fn knows(&self, id: &str) -> bool {
        self.0.iter().any(|key| key.id.as_deref() == Some(id))
    }
}

impl Key {
    fn read(value: serde_json::Value) -> Option<Self> {
        let jwk: Jwk = serde_json::from_value(value).ok()?;
        if jwk.purpose.as_deref().is_some_and(|it| it != "sig") {
            return None;
        }
        let only = match jwk.alg.as_deref() {
            None => None,
            Some(name) => Some(name.parse().ok()?),
        };
        let part = |text: &Option<String>| URL_SAFE_NO_PAD.decode(text.as_deref()?).ok();
        let point = || {
            let (x, y) = (part(&jwk.x)?, part(&jwk.y)?);
            Some([vec![4], x, y].concat())
        };
        let material = match (jwk.kty.as_str(), jwk.crv.as_deref()) {
            ("RSA", _) => Material::Rsa {
                n: part(&jwk.n)?,
                e: part(&jwk.e)?,
            },
            ("EC", Some("P-256")) => Material::P256(point()?),
            ("EC", Some("P-384")) => Material::P384(point()?),
            ("OKP", Some("Ed25519")) => Material::Ed25519(part(&jwk.x)?),
            _ => return None,
        };
        Some(Self {
            id: jwk.kid,
            only,
            material,
        })
    }

    fn fits(&self, algorithm: Algorithm) -> bool {
        use Algorithm::{EdDsa, Es256, Es384, Ps256, Ps384, Ps512, Rs256, Rs384, Rs512};
        let kind = match self.material {
            Material::Rsa { .. } => {
                matches!(algorithm, Rs256 | Rs384 | Rs512 | Ps256 | Ps384 | Ps512)
            }
            Material::P256(_) => algorithm == Es256,
            Material::P384(_) => algorithm == Es384,
            Material::Ed25519(_) => algorithm == EdDsa,
        };
        kind && self.only.is_none_or(|only| only == algorithm)
    }

    /// Whether this key made `signature` over `signed`.
    pub(crate) fn verifies(&self, algorithm: Algorithm, signed: &[u8], signature: &[u8]) -> bool {
        let unparsed = |kind: &'static dyn VerificationAlgorithm, key: &[u8]| {
            UnparsedPublicKey::new(kind, key)
                .verify(signed, signature)
                .is_ok()
        };
        match &self.material {
            Material::Rsa { n, e } => rsa(algorithm).is_some_and(|parameters| {
                RsaPublicKeyComponents { n, e }
                    .verify(parameters, signed, signature)
                    .is_ok()
            }),
            Material::P256(point) => unparsed(&ECDSA_P256_SHA256_FIXED, point),
            Material::P384(point) => unparsed(&ECDSA_P384_SHA384_FIXED, point),
            Material::Ed25519(key) => unparsed(&ED25519, key),
        }
    }
}

fn rsa(algorithm: Algorithm) -> Option<&'static RsaParameters> {
    Some(match algorithm {
        Algorithm::Rs256 => &RSA_PKCS1_2048_8192_SHA256,
        Algorithm::Rs384 => &RSA_PKCS1_2048_8192_SHA384,
        Algorithm::Rs512 => &RSA_PKCS1_2048_8192_SHA512,
        Algorithm::Ps256 => &RSA_PSS_2048_8192_SHA256,
        Algorithm::Ps384 => &RSA_PSS_2048_8192_SHA384,
        Algorithm::Ps512 => &RSA_PSS_2048_8192_SHA512,
        Algorithm::Es256 | Algorithm::Es384 | Algorithm::EdDsa => return None,
    })
}
