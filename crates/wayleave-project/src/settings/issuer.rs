//! `[auth.jwt]`: the issuer whose access tokens are accepted besides our own, and their packages.

use std::{collections::BTreeSet, str::FromStr};

use url::{Host, Url};
use wayleave_model::grant::Scopes;

use super::{SettingsError, raw, scopes};

/// A signature algorithm of JWTs. Algorithms that sign nothing, or with a shared secret, are not
/// among them and cannot be configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Algorithm {
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    Rs256,
    /// RSASSA-PKCS1-v1_5 with SHA-384.
    Rs384,
    /// RSASSA-PKCS1-v1_5 with SHA-512.
    Rs512,
    /// RSASSA-PSS with SHA-256.
    Ps256,
    /// RSASSA-PSS with SHA-384.
    Ps384,
    /// RSASSA-PSS with SHA-512.
    Ps512,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// ECDSA on P-384 with SHA-384.
    Es384,
    /// Ed25519.
    EdDsa,
}

impl Algorithm {
    /// Every algorithm.
    pub const ALL: [Self; 9] = [
        Self::Rs256,
        Self::Rs384,
        Self::Rs512,
        Self::Ps256,
        Self::Ps384,
        Self::Ps512,
        Self::Es256,
        Self::Es384,
        Self::EdDsa,
    ];

    /// Its name in JWTs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Rs384 => "RS384",
            Self::Rs512 => "RS512",
            Self::Ps256 => "PS256",
            Self::Ps384 => "PS384",
            Self::Ps512 => "PS512",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::EdDsa => "EdDSA",
        }
    }
}

/// The name is not that of a supported algorithm.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a supported signature algorithm")]
pub struct UnknownAlgorithm;

impl FromStr for Algorithm {
    type Err = UnknownAlgorithm;

    fn from_str(text: &str) -> Result<Self, UnknownAlgorithm> {
        let mut all = Self::ALL.into_iter();
        all.find(|it| it.as_str() == text).ok_or(UnknownAlgorithm)
    }
}

/// An authorization server whose access tokens are accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issuer {
    /// Its name, exactly as in `iss`.
    pub issuer: String,
    /// The audience that `aud` must name: this server.
    pub audience: String,
    /// The URL of its keys; without it, its metadata names one.
    pub jwks_url: Option<Url>,
    /// The accepted signature algorithms.
    pub algorithms: BTreeSet<Algorithm>,
    /// The packages of its tokens. The first matching rule decides.
    pub packages: Vec<PackageRule>,
}

/// The package of some tokens of an issuer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageRule {
    /// The claim to check, and the value it must contain; `None` matches every token.
    pub wanted: Option<(String, String)>,
    /// The grants, by id. Of several of one connection the first counts.
    pub grants: Vec<String>,
    /// The scopes.
    pub scopes: Scopes,
}

const URL: &str = "an https URL, without a fragment";

pub(super) fn resolve(raw: raw::Jwt, url: Option<&Url>) -> Result<Issuer, SettingsError> {
    let value = |setting, expected| SettingsError::Value { setting, expected };
    if endpoint(&raw.issuer).is_none() {
        return Err(value("auth.jwt.issuer", URL));
    }
    let jwks_url = match &raw.jwks_url {
        Some(text) => Some(endpoint(text).ok_or_else(|| value("auth.jwt.jwks_url", URL))?),
        None => None,
    };
    let audience = raw
        .audience
        .or_else(|| url.map(Url::to_string))
        .filter(|audience| !audience.is_empty())
        .ok_or_else(|| value("auth.jwt.audience", "given, or `serve.url` instead"))?;
    let algorithms = match raw.algorithms {
        None => BTreeSet::from([Algorithm::Rs256, Algorithm::Es256, Algorithm::EdDsa]),
        Some(names) => {
            let known: Result<_, _> = names.iter().map(|name| name.parse()).collect();
            let known: BTreeSet<_> = known.map_err(|_| {
                let expected = "a list of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384 \
                    and EdDSA";
                value("auth.jwt.algorithms", expected)
            })?;
            known
        }
    };
    if algorithms.is_empty() {
        return Err(value("auth.jwt.algorithms", "a list of at least one"));
    }
    let packages = raw.packages.into_iter().map(rule);
    let packages: Vec<_> = packages.collect::<Result<_, _>>()?;
    if packages.is_empty() {
        let expected = "a list of at least one: without one, the issuer's tokens have no access";
        return Err(value("auth.jwt.packages", expected));
    }
    Ok(Issuer {
        issuer: raw.issuer,
        audience,
        jwks_url,
        algorithms,
        packages,
    })
}

fn rule(raw: raw::JwtPackage) -> Result<PackageRule, SettingsError> {
    let wanted = match (raw.claim, raw.contains) {
        (None, None) => None,
        (Some(claim), Some(contains)) => Some((claim, contains)),
        _ => {
            return Err(SettingsError::Value {
                setting: "auth.jwt.packages",
                expected: "given both `claim` and `contains`, or neither",
            });
        }
    };
    Ok(PackageRule {
        wanted,
        grants: raw.grants,
        scopes: match raw.scopes {
            None => Scopes::RUNTIME,
            Some(names) => scopes("auth.jwt.packages.scopes", &names)?,
        },
    })
}

/// Parses a URL that is safe to fetch from: https, or loopback, where nobody can alter the response
/// in transit.
pub fn endpoint(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok().filter(Url::has_host)?;
    let safe = url.scheme() == "https" || (url.scheme() == "http" && is_loopback(&url));
    (safe && url.fragment().is_none() && url.username().is_empty() && url.password().is_none())
        .then_some(url)
}

/// Whether a URL names this machine.
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Whether a host, with or without a port, is this machine.
pub(super) fn names_this_machine(host: &str) -> bool {
    Url::parse(&format!("http://{host}")).is_ok_and(|url| is_loopback(&url))
}
