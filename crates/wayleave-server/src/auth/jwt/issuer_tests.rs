//! Keys over a real HTTP server.

use super::super::forge::{AUDIENCE, SigningKey, jwks};
use super::super::server::AuthorizationServer;
use serde_json::json;

use super::*;

fn keys_of(server: &AuthorizationServer, seldom: Duration) -> IssuerKeys {
    let issuer = Issuer {
        issuer: server.issuer.clone(),
        audience: AUDIENCE.to_owned(),
        jwks_url: None,
        algorithms: std::collections::BTreeSet::new(),
        packages: Vec::new(),
    };
    IssuerKeys {
        seldom,
        ..IssuerKeys::new(issuer)
    }
}

#[tokio::test]
async fn keys_are_found_by_metadata_and_asked_for_once() {
    let key = SigningKey::ed25519("one");
    let server = AuthorizationServer::start(jwks(&[&key])).await;
    let keys = keys_of(&server, SELDOM);
    for _ in 0..10 {
        assert!(keys.with(Some("one")).await.unwrap().knows("one"));
    }
    assert_eq!(server.asked(), 1);
}

#[tokio::test]
async fn a_new_key_is_found_when_a_token_names_it_and_a_withdrawn_one_is_gone() {
    let (old, new) = (SigningKey::ed25519("old"), SigningKey::ed25519("new"));
    let server = AuthorizationServer::start(jwks(&[&old])).await;
    let keys = keys_of(&server, Duration::ZERO);
    assert!(keys.with(Some("old")).await.unwrap().knows("old"));
    server.publish(Some(jwks(&[&new])));
    let now = keys.with(Some("new")).await.unwrap();
    assert!(now.knows("new") && !now.knows("old"));
    assert_eq!(server.asked(), 2);
}

#[tokio::test]
async fn tokens_that_name_unknown_keys_do_not_make_the_issuer_be_asked_each_time() {
    let server = AuthorizationServer::start(jwks(&[&SigningKey::ed25519("one")])).await;
    let keys = keys_of(&server, SELDOM);
    let asked = (0..50).map(|n| {
        let keys = &keys;
        async move { keys.with(Some(&format!("unknown-{n}"))).await.unwrap() }
    });
    let all = futures::future::join_all(asked).await;
    assert!(all.iter().all(|keys| keys.knows("one")));
    assert_eq!(server.asked(), 1);
}

#[tokio::test]
async fn an_issuer_that_fails_is_no_reason_to_forget_its_keys_nor_to_invent_some() {
    let server = AuthorizationServer::start(jwks(&[&SigningKey::ed25519("one")])).await;
    let keys = keys_of(&server, Duration::ZERO);
    keys.with(Some("one")).await.unwrap();
    server.publish(None);
    assert!(!keys.with(Some("two")).await.unwrap().knows("two"));
    assert!(keys.with(Some("one")).await.unwrap().knows("one"));
    let never_had_any = keys_of(&server, Duration::ZERO);
    assert!(matches!(
        never_had_any.with(Some("one")).await,
        Err(KeysError::Fetch { .. })
    ));
    server.publish(Some(json!({ "no": "keys" })));
    assert!(matches!(
        never_had_any.with(Some("one")).await,
        Err(KeysError::Document { .. })
    ));
}
