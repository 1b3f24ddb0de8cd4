//! An authorization server's keys and tokens, good and bad.
#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "shared by tests, none of which uses all of it"
)]

use std::process::Command;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use ring::{
    rand::SystemRandom,
    signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _,
        RSA_PKCS1_SHA256, RSA_PSS_SHA256, RsaKeyPair, RsaPublicKeyComponents,
    },
};
use serde_json::{Value, json};

pub const AUDIENCE: &str = "https://data.example.org/mcp";

pub enum Pair {
    Ed25519(Ed25519KeyPair),
    P256(EcdsaKeyPair),
    Rsa(RsaKeyPair),
}

/// A key an authorization server signs with.
pub struct SigningKey {
    pub id: String,
    pair: Pair,
}

impl SigningKey {
    pub fn ed25519(id: &str) -> Self {
        let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let pair = Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap();
        Self::new(id, Pair::Ed25519(pair))
    }

    pub fn p256(id: &str) -> Self {
        let (kind, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(kind, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(kind, pkcs8.as_ref(), &random).unwrap();
        Self::new(id, Pair::P256(pair))
    }

    /// Made by `openssl`: the library that checks signatures here cannot make such keys.
    pub fn rsa(id: &str) -> Self {
        let made = Command::new("openssl")
            .args([
                "genpkey",
                "-algorithm",
                "RSA",
                "-pkeyopt",
                "rsa_keygen_bits:2048",
            ])
            .args(["-outform", "DER"])
            .output()
            .unwrap();
        assert!(made.status.success());
        let pair = RsaKeyPair::from_pkcs8(&made.stdout)
            .or_else(|_| RsaKeyPair::from_der(&made.stdout))
            .unwrap();
        Self::new(id, Pair::Rsa(pair))
    }

    fn new(id: &str, pair: Pair) -> Self {
        Self {
            id: id.to_owned(),
            pair,
        }
    }

    pub fn algorithm(&self) -> &'static str {
        match self.pair {
            Pair::Ed25519(_) => "EdDSA",
            Pair::P256(_) => "ES256",
            Pair::Rsa(_) => "RS256",
        }
    }

    /// The public half, as published.
    pub fn jwk(&self) -> Value {
        let encode = |bytes: &[u8]| BASE64.encode(bytes);
        match &self.pair {
            Pair::Ed25519(pair) => json!({
                "kty": "OKP", "crv": "Ed25519", "kid": self.id, "use": "sig",
                "x": encode(pair.public_key().as_ref()),
            }),
            Pair::P256(pair) => {
                let point = pair.public_key().as_ref();
                json!({
                    "kty": "EC", "crv": "P-256", "kid": self.id,
                    "x": encode(&point[1..33]), "y": encode(&point[33..]),
                })
            }
            Pair::Rsa(pair) => {
                let public = RsaPublicKeyComponents::<Vec<u8>>::from(pair.public());
                json!({
                    "kty": "RSA", "kid": self.id,
                    "n": encode(&public.n), "e": encode(&public.e),
                })
            }
        }
    }

    fn sign(&self, message: &[u8], algorithm: &str) -> Vec<u8> {
        let random = SystemRandom::new();
        match &self.pair {
            Pair::Ed25519(pair) => pair.sign(message).as_ref().to_vec(),
            Pair::P256(pair) => pair.sign(&random, message).unwrap().as_ref().to_vec(),
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                let padding: &dyn ring::signature::RsaEncoding = match algorithm {
                    "PS256" => &RSA_PSS_SHA256,
                    _ => &RSA_PKCS1_SHA256,
                };
                pair.sign(padding, &random, message, &mut signature)
                    .unwrap();
                signature
            }
        }
    }

    /// A token with exactly this header and these claims.
    pub fn token(&self, header: &Value, claims: &Value) -> String {
        let part = |value: &Value| BASE64.encode(value.to_string());
        let signed = format!("{}.{}", part(header), part(claims));
        let algorithm = header["alg"].as_str().unwrap_or_default();
        let signature = self.sign(signed.as_bytes(), algorithm);
        format!("{signed}.{}", BASE64.encode(signature))
    }

    /// The header of a good token.
    pub fn header(&self) -> Value {
        json!({ "alg": self.algorithm(), "typ": "at+jwt", "kid": self.id })
    }
}

/// A key set.
pub fn jwks(keys: &[&SigningKey]) -> Value {
    json!({ "keys": keys.iter().map(|key| key.jwk()).collect::<Vec<_>>() })
}

/// The claims of a good token, at `now` in seconds.
pub fn claims(issuer: &str, now: i64) -> Value {
    json!({
        "iss": issuer, "aud": AUDIENCE, "sub": "ana", "client_id": "agent", "jti": "1",
        "iat": now, "exp": now + 600, "groups": ["staff", "support"], "email": "ana@example.org",
    })
}

/// `value` with some members replaced; `null` removes one.
pub fn with(value: &Value, changes: &Value) -> Value {
    let mut whole = value.as_object().unwrap().clone();
    for (name, value) in changes.as_object().unwrap() {
        if value.is_null() {
            whole.remove(name);
        } else {
            whole.insert(name.clone(), value.clone());
        }
    }
    Value::Object(whole)
}
