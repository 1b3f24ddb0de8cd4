//! Every rule a token must pass, each broken alone.

use super::super::forge::{AUDIENCE, SigningKey, claims, jwks, with};
use serde_json::json;

use super::*;

const ISSUER: &str = "https://id.example.org";
const NOW: i64 = 1_800_000_000;

fn issuer(algorithms: &[&str]) -> Issuer {
    Issuer {
        issuer: ISSUER.to_owned(),
        audience: AUDIENCE.to_owned(),
        jwks_url: None,
        algorithms: algorithms.iter().map(|it| it.parse().unwrap()).collect(),
        packages: Vec::new(),
    }
}

fn keys(of: &[&SigningKey]) -> Keys {
    Keys::read(jwks(of).to_string().as_bytes()).unwrap()
}

fn check(token: &str, by: &SigningKey) -> Result<VerifiedClaims, InvalidToken> {
    verify(
        token,
        &issuer(&["EdDSA", "ES256", "RS256"]),
        &keys(&[by]),
        NOW,
    )
}

#[test]
fn a_good_token_of_every_kind_of_key_is_taken() {
    for key in [
        SigningKey::ed25519("k"),
        SigningKey::p256("k"),
        SigningKey::rsa("k"),
    ] {
        let token = key.token(&key.header(), &claims(ISSUER, NOW));
        let verified = check(&token, &key).unwrap();
        assert_eq!(
            (verified.subject.as_str(), verified.expires),
            ("ana", NOW + 600)
        );
    }
}

#[test]
fn a_padding_that_was_not_allowed_is_not_taken_and_one_that_was_is() {
    let key = SigningKey::rsa("k");
    let header = with(&key.header(), &json!({ "alg": "PS256" }));
    let token = key.token(&header, &claims(ISSUER, NOW));
    assert_eq!(check(&token, &key), Err(InvalidToken::Algorithm));
    let pss = issuer(&["PS256"]);
    assert!(verify(&token, &pss, &keys(&[&key]), NOW).is_ok());
    // The same key also supports another algorithm, which is not allowed here.
    let token = key.token(&key.header(), &claims(ISSUER, NOW));
    assert_eq!(
        verify(&token, &pss, &keys(&[&key]), NOW),
        Err(InvalidToken::Algorithm)
    );
}

#[test]
fn each_wrong_header_is_refused() {
    let key = SigningKey::ed25519("k");
    for (change, expected) in [
        (json!({ "alg": "none" }), InvalidToken::Algorithm),
        (json!({ "alg": "None" }), InvalidToken::Algorithm),
        (json!({ "alg": "HS256" }), InvalidToken::Algorithm),
        (json!({ "alg": "ES384" }), InvalidToken::Algorithm),
        (json!({ "alg": null }), InvalidToken::Malformed),
        (json!({ "alg": 7 }), InvalidToken::Malformed),
        (json!({ "alg": "ES256" }), InvalidToken::UnknownKey),
        (json!({ "typ": "JWT" }), InvalidToken::Type),
        (json!({ "typ": null }), InvalidToken::Type),
        (json!({ "typ": "id+jwt" }), InvalidToken::Type),
        (json!({ "kid": "other" }), InvalidToken::UnknownKey),
        (json!({ "crit": ["exp"] }), InvalidToken::Critical),
        (
            json!({ "jwk": key.jwk(), "kid": "mine" }),
            InvalidToken::UnknownKey,
        ),
        (
            json!({ "jku": "https://evil.example/keys", "kid": "mine" }),
            InvalidToken::UnknownKey,
        ),
    ] {
        let token = key.token(&with(&key.header(), &change), &claims(ISSUER, NOW));
        assert_eq!(check(&token, &key), Err(expected), "{change}");
    }
    for typ in ["AT+JWT", "application/at+jwt"] {
        let header = with(&key.header(), &json!({ "typ": typ }));
        assert!(check(&key.token(&header, &claims(ISSUER, NOW)), &key).is_ok());
    }
}

#[test]
fn each_wrong_claim_is_refused() {
    let key = SigningKey::ed25519("k");
    for (change, expected) in [
        (
            json!({ "iss": "https://id.example.org/" }),
            InvalidToken::Issuer,
        ),
        (json!({ "iss": null }), InvalidToken::Issuer),
        (json!({ "iss": [ISSUER] }), InvalidToken::Issuer),
        (
            json!({ "aud": "https://data.example.org" }),
            InvalidToken::Audience,
        ),
        (json!({ "aud": [] }), InvalidToken::Audience),
        (json!({ "aud": null }), InvalidToken::Audience),
        (json!({ "aud": { "x": AUDIENCE } }), InvalidToken::Audience),
        (
            json!({ "exp": NOW - LEEWAY_SECONDS }),
            InvalidToken::Expired,
        ),
        (json!({ "exp": null }), InvalidToken::Time),
        (json!({ "exp": "9999999999" }), InvalidToken::Time),
        (
            json!({ "nbf": NOW + LEEWAY_SECONDS + 1 }),
            InvalidToken::NotYet,
        ),
        (json!({ "nbf": "0" }), InvalidToken::Time),
        (
            json!({ "iat": NOW + LEEWAY_SECONDS + 1 }),
            InvalidToken::NotYet,
        ),
        (json!({ "sub": null }), InvalidToken::Subject),
        (json!({ "sub": "" }), InvalidToken::Subject),
        (json!({ "sub": 7 }), InvalidToken::Subject),
    ] {
        let token = key.token(&key.header(), &with(&claims(ISSUER, NOW), &change));
        assert_eq!(check(&token, &key), Err(expected), "{change}");
    }
    for fine in [
        json!({ "aud": ["https://other.example", AUDIENCE] }),
        json!({ "exp": NOW - LEEWAY_SECONDS + 1 }),
        json!({ "nbf": NOW + LEEWAY_SECONDS }),
        json!({ "exp": 1_800_000_600.5 }),
    ] {
        let token = key.token(&key.header(), &with(&claims(ISSUER, NOW), &fine));
        assert!(check(&token, &key).is_ok(), "{fine}");
    }
}

#[test]
fn no_byte_of_a_token_can_be_changed() {
    let key = SigningKey::ed25519("k");
    let token = key.token(&key.header(), &claims(ISSUER, NOW));
    for at in 0..token.len() {
        let mut bytes = token.clone().into_bytes();
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(bytes).unwrap();
        assert!(check(&changed, &key).is_err(), "{at}");
    }
    let (signed, _) = token.rsplit_once('.').unwrap();
    for cut in [
        "",
        ".",
        "..",
        "a.b.c",
        signed,
        &format!("{signed}."),
        &format!("{token}.x"),
    ] {
        assert!(check(cut, &key).is_err(), "{cut}");
    }
}

#[test]
fn a_token_without_a_key_id_is_taken_only_if_there_is_no_choice() {
    let (key, other) = (SigningKey::ed25519("a"), SigningKey::ed25519("b"));
    let header = with(&key.header(), &json!({ "kid": null }));
    let token = key.token(&header, &claims(ISSUER, NOW));
    assert!(check(&token, &key).is_ok());
    let both = keys(&[&key, &other]);
    assert_eq!(
        verify(&token, &issuer(&["EdDSA"]), &both, NOW),
        Err(InvalidToken::UnknownKey)
    );
}

#[test]
fn keys_for_other_uses_and_kinds_are_passed_over() {
    let key = SigningKey::ed25519("k");
    let token = key.token(&key.header(), &claims(ISSUER, NOW));
    for change in [
        json!({ "use": "enc" }),
        json!({ "alg": "ES256" }),
        json!({ "alg": "HS256" }),
        json!({ "kty": "oct" }),
        json!({ "crv": "X25519" }),
        json!({ "x": "!" }),
    ] {
        let set = json!({ "keys": [with(&key.jwk(), &change), 7, {}] });
        let keys = Keys::read(set.to_string().as_bytes()).unwrap();
        let verified = verify(&token, &issuer(&["EdDSA"]), &keys, NOW);
        assert_eq!(verified, Err(InvalidToken::UnknownKey), "{change}");
    }
    assert_eq!(Keys::read(b"[]"), None);
}

mod hostile {
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::*;

    static KEY: LazyLock<SigningKey> = LazyLock::new(|| SigningKey::ed25519("k"));

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn no_text_is_taken_for_a_token(text in "[ -~]{0,200}|([A-Za-z0-9_-]{0,60}\\.){2}[A-Za-z0-9_-]{0,90}") {
            prop_assert!(check(&text, &KEY).is_err());
            let _ = key_named(&text);
        }

        #[test]
        fn no_other_token_is_taken_for_a_good_one(
            at in any::<prop::sample::Index>(),
            cut in 0_usize..40,
            put in "[A-Za-z0-9._=-]{0,40}",
        ) {
            let good = KEY.token(&KEY.header(), &claims(ISSUER, NOW));
            let at = at.index(good.len());
            let end = (at + cut).min(good.len());
            let changed = format!("{}{put}{}", &good[..at], &good[end..]);
            prop_assume!(changed != good);
            prop_assert!(check(&changed, &KEY).is_err());
        }
    }
}
