//! Keys over a real HTTP server.

use std::sync::atomic::{AtomicI64, Ordering};

use super::super::forge::{AUDIENCE, SigningKey, jwks};
use super::super::server::AuthorizationServer;
use serde_json::json;
use wayleave_ledger::SystemClock;

use super::*;

/// Far less than the fetch timeout, and far more than the time of a request that does not wait.
const AT_ONCE: Duration = Duration::from_secs(2);
/// Deadline that only a lost answer exceeds.
const LOST: Duration = Duration::from_secs(20);

/// A clock that runs ahead by this many milliseconds.
#[derive(Default)]
struct SetClock(AtomicI64);

impl Clock for SetClock {
    fn now(&self) -> Millis {
        SystemClock.now() + self.0.load(Ordering::SeqCst)
    }
}

fn keys_of(server: &AuthorizationServer, timing: KeyTiming) -> IssuerKeys {
    keys_by(server, timing, Arc::new(SystemClock))
}

fn keys_by(server: &AuthorizationServer, timing: KeyTiming, clock: Arc<dyn Clock>) -> IssuerKeys {
    let issuer = Issuer {
        issuer: server.issuer.clone(),
        audience: AUDIENCE.to_owned(),
        jwks_url: None,
        algorithms: std::collections::BTreeSet::new(),
        packages: Vec::new(),
    };
    IssuerKeys::with_times(issuer, timing, clock)
}

/// Timing that allows a fetch at any time.
fn often() -> KeyTiming {
    KeyTiming {
        min_fetch_interval: Duration::ZERO,
        ..KeyTiming::default()
    }
}

/// Timing under which keys are due for renewal at once.
fn ageing() -> KeyTiming {
    KeyTiming {
        refresh_after: Duration::ZERO,
        fetch_timeout: LOST,
        ..often()
    }
}

#[tokio::test]
async fn keys_are_found_by_metadata_and_asked_for_once() {
    let key = SigningKey::ed25519("one");
    let server = AuthorizationServer::start(jwks(&[&key])).await;
    let keys = keys_of(&server, KeyTiming::default());
    for _ in 0..10 {
        assert!(keys.with(Some("one")).await.unwrap().knows("one"));
    }
    assert_eq!(server.asked(), 1);
}

#[tokio::test]
async fn an_issuer_that_describes_itself_by_rfc_8414_alone_is_found() {
    let key = SigningKey::ed25519("one");
    let server = AuthorizationServer::start(jwks(&[&key])).await;
    server.describe_at("/.well-known/oauth-authorization-server");
    let keys = keys_of(&server, KeyTiming::default());
    assert!(keys.with(Some("one")).await.unwrap().knows("one"));
}

#[tokio::test]
async fn the_path_of_an_issuer_follows_the_well_known_one() {
    let key = SigningKey::ed25519("one");
    let mut server = AuthorizationServer::start(jwks(&[&key])).await;
    server.describe_at("/.well-known/oauth-authorization-server/tenant");
    let other = keys_of(&server, often()).with(Some("one")).await;
    assert!(other.is_err(), "an issuer without a path has no document");
    server.issuer = format!("{}/tenant", server.issuer);
    let keys = keys_of(&server, often());
    assert!(keys.with(Some("one")).await.unwrap().knows("one"));
}

#[tokio::test]
async fn a_new_key_is_found_when_a_token_names_it_and_a_withdrawn_one_is_gone() {
    let (old, new) = (SigningKey::ed25519("old"), SigningKey::ed25519("new"));
    let server = AuthorizationServer::start(jwks(&[&old])).await;
    let keys = keys_of(&server, often());
    assert!(keys.with(Some("old")).await.unwrap().knows("old"));
    server.publish(Some(jwks(&[&new])));
    let now = keys.with(Some("new")).await.unwrap();
    assert!(now.knows("new") && !now.knows("old"));
    assert_eq!(server.asked(), 2);
}

#[tokio::test]
async fn known_keys_are_renewed_beside_the_requests_that_use_them() {
    let (old, new) = (SigningKey::ed25519("old"), SigningKey::ed25519("new"));
    let server = AuthorizationServer::start(jwks(&[&old])).await;
    let keys = keys_of(&server, ageing());
    keys.with(Some("old")).await.unwrap();
    let answers = server.stall().await;
    server.publish(Some(jwks(&[&old, &new])));
    // The issuer does not answer, and no request notices.
    for _ in 0..50 {
        let known = timeout(AT_ONCE, keys.with(Some("old"))).await;
        assert!(known.expect("waited for the issuer").unwrap().knows("old"));
    }
    timeout(LOST, server.asked_times(2)).await.unwrap();
    drop(answers);
    let renewed = async {
        while !keys.with(Some("old")).await.unwrap().knows("new") {
            tokio::task::yield_now().await;
        }
    };
    timeout(LOST, renewed).await.unwrap();
}

#[tokio::test]
async fn all_who_need_an_unknown_key_wait_for_one_answer_and_no_longer_than_allowed() {
    let server = AuthorizationServer::start(jwks(&[&SigningKey::ed25519("one")])).await;
    let timing = KeyTiming {
        fetch_timeout: Duration::from_millis(200),
        ..KeyTiming::default()
    };
    let keys = keys_of(&server, timing);
    let answers = server.stall().await;
    let waiting = (0..50).map(|_| keys.with(Some("one")));
    for waited in timeout(LOST, futures::future::join_all(waiting))
        .await
        .unwrap()
    {
        assert!(matches!(*waited.unwrap_err(), KeysError::Slow));
    }
    // A later request is refused at once.
    let later = timeout(AT_ONCE, keys.with(Some("one"))).await.unwrap();
    assert!(matches!(*later.unwrap_err(), KeysError::Recently));
    drop(answers);
    assert_eq!(server.asked(), 1);
}

#[tokio::test]
async fn a_request_that_goes_away_does_not_take_the_answer_with_it() {
    let server = AuthorizationServer::start(jwks(&[&SigningKey::ed25519("one")])).await;
    let keys = keys_of(&server, KeyTiming::default());
    let answers = server.stall().await;
    let mut impatient = Box::pin(keys.with(Some("one")));
    assert!(futures::poll!(impatient.as_mut()).is_pending());
    drop(impatient);
    let patient = keys.with(Some("one"));
    drop(answers);
    assert!(patient.await.unwrap().knows("one"));
    assert_eq!(server.asked(), 1);
}

#[tokio::test]
async fn tokens_that_name_unknown_keys_do_not_make_the_issuer_be_asked_each_time() {
    let server = AuthorizationServer::start(jwks(&[&SigningKey::ed25519("one")])).await;
    let keys = keys_of(&server, KeyTiming::default());
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
    let keys = keys_of(&server, often());
    keys.with(Some("one")).await.unwrap();
    server.publish(None);
    assert!(!keys.with(Some("two")).await.unwrap().knows("two"));
    assert!(keys.with(Some("one")).await.unwrap().knows("one"));
    let never_had_any = keys_of(&server, often());
    let none = never_had_any.with(Some("one")).await.unwrap_err();
    assert!(matches!(*none, KeysError::Fetcher { .. }), "{none}");
    server.publish(Some(json!({ "no": "keys" })));
    let none = never_had_any.with(Some("one")).await.unwrap_err();
    assert!(matches!(*none, KeysError::Document { .. }), "{none}");
}

#[tokio::test]
async fn keys_that_are_too_old_are_not_believed() {
    let server = AuthorizationServer::start(jwks(&[&SigningKey::ed25519("one")])).await;
    let timing = KeyTiming {
        max_age: Duration::ZERO,
        ..KeyTiming::default()
    };
    let keys = keys_of(&server, timing);
    assert!(keys.with(Some("one")).await.is_err());
}

#[tokio::test]
async fn keys_of_an_issuer_that_is_away_are_believed_for_an_hour_by_the_clock_too() {
    let server = AuthorizationServer::start(jwks(&[&SigningKey::ed25519("one")])).await;
    let clock = Arc::<SetClock>::default();
    let keys = keys_by(&server, often(), clock.clone());
    assert!(keys.with(Some("one")).await.is_ok());
    server.publish(None);
    let minute: Millis = 60_000;
    for (ahead, valid_keys) in [
        (59, true),
        (61, false),
        (-1_000, true),
        (463 * 24 * 60, false),
    ] {
        clock.0.store(ahead * minute, Ordering::SeqCst);
        assert_eq!(keys.with(Some("one")).await.is_ok(), valid_keys, "{ahead}");
    }
}
