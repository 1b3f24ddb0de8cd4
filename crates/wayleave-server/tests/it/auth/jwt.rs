//! Access tokens of an authorization server.

use serde_json::{Value, json};

use crate::auth::{
    fixture::{AuthFixture, seconds},
    forge::{SigningKey, claims, jwks, with},
};

fn token(fixture: &AuthFixture, change: &Value) -> String {
    let claims = with(&claims(&fixture.issuer.issuer, seconds()), change);
    fixture.key.token(&fixture.key.header(), &claims)
}

#[tokio::test]
async fn a_good_token_opens_what_the_first_fitting_rule_says() {
    let fixture = AuthFixture::new().await;
    for (change, tool, status) in [
        (json!({}), "echo", 200),
        (json!({}), "build", 403),
        (json!({ "groups": "support" }), "echo", 200),
        (
            json!({ "groups": null, "scope": "read build" }),
            "build",
            200,
        ),
        // Words match whole, not in part.
        (json!({ "groups": null, "scope": "rebuild" }), "build", 403),
        (json!({ "groups": ["supporters"] }), "echo", 403),
        (json!({ "groups": null }), "echo", 403),
    ] {
        let reply = fixture.http.with(token(&fixture, &change)).call(tool).await;
        assert_eq!(reply.status, status, "{change} {tool} {:?}", reply.body);
    }
}

#[tokio::test]
async fn a_token_nothing_is_granted_to_is_told_so_and_not_challenged() {
    let fixture = AuthFixture::new().await;
    let token = token(&fixture, &json!({ "groups": ["strangers"] }));
    let reply = fixture.http.with(token).call("echo").await;
    assert_eq!(reply.status, 403);
    assert_eq!(reply.challenge(), None);
    assert_eq!(reply.json()["error"]["data"]["reason"], "no_package");
    assert_eq!(fixture.dispatched(), 0);
}

#[tokio::test]
async fn a_session_outlives_the_token_it_began_with_for_the_same_person_only() {
    let fixture = AuthFixture::new().await;
    let first = token(&fixture, &json!({ "jti": "1" }));
    let session = fixture.http.with(first).begin().await;
    let renewed = token(&fixture, &json!({ "jti": "2" }));
    let ask = |client: &crate::auth::wire::Http| client.in_session("ping", &json!({}));
    let same = session.with(renewed);
    assert_eq!(same.send(ask(&same)).await.status, 200);
    let other = session.with(token(&fixture, &json!({ "sub": "mallory" })));
    assert_eq!(other.send(ask(&other)).await.status, 404);
}

#[tokio::test]
async fn a_key_that_was_never_published_signs_nothing_even_under_a_known_name() {
    let fixture = AuthFixture::new().await;
    let forged = SigningKey::ed25519(&fixture.key.id);
    let forged = forged.token(&forged.header(), &claims(&fixture.issuer.issuer, seconds()));
    assert_eq!(fixture.http.with(forged).call("echo").await.status, 401);
    assert_eq!(
        fixture
            .http
            .with(token(&fixture, &json!({})))
            .call("echo")
            .await
            .status,
        200
    );
    // The token does not cause another fetch of the keys.
    assert_eq!(fixture.issuer.asked(), 1);
}

#[tokio::test]
async fn while_the_issuer_cannot_be_asked_nobody_unknown_is_let_in() {
    let fixture = AuthFixture::new().await;
    fixture.issuer.publish(None);
    let good = token(&fixture, &json!({}));
    let refused = fixture.http.with(good).call("echo").await;
    assert_eq!(refused.status, 503);
    assert_eq!(refused.json()["error"]["data"]["reason"], "unavailable");
    // Tokens of the project itself do not depend on the issuer.
    assert_eq!(
        fixture
            .http
            .with(fixture.reader().await)
            .call("echo")
            .await
            .status,
        200
    );
    fixture.issuer.publish(Some(jwks(&[&fixture.key])));
    assert_eq!(fixture.dispatched(), 1);
}
