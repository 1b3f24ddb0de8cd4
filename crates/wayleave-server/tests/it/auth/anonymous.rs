//! Clients on this machine, admitted without a token if the operator allows it.

use http::{Request, StatusCode};
use http_body_util::Full;
use serde_json::json;

use crate::auth::fixture::AuthFixture;

async fn status(fixture: &AuthFixture, headers: &[(&str, &str)]) -> StatusCode {
    let params = json!({ "name": "echo", "arguments": {} });
    let mut request: Request<Full<_>> = fixture.http.stateless("tools/call", &params, Some("echo"));
    for (name, value) in headers {
        let name: http::HeaderName = name.parse().unwrap();
        request.headers_mut().append(name, value.parse().unwrap());
    }
    fixture.http.send(request).await.status
}

#[tokio::test]
async fn what_a_proxy_hands_on_is_not_of_this_machine() {
    let fixture = AuthFixture::with("[serve]\nanonymous = true").await;
    assert_eq!(status(&fixture, &[]).await, 200);
    for mark in [
        "Forwarded",
        "Via",
        "X-Forwarded-For",
        "X-Forwarded-Host",
        "X-Forwarded-Proto",
        "X-Forwarded-Anything",
        "X-Real-IP",
        "X-Client-IP",
        "True-Client-IP",
        "CF-Connecting-IP",
        "X-Original-Host",
        "X-Envoy-External-Address",
    ] {
        for value in ["127.0.0.1", ""] {
            assert_eq!(
                status(&fixture, &[(mark, value)]).await,
                401,
                "{mark}: {value}"
            );
        }
    }
    assert_eq!(fixture.dispatched(), 1);
}

#[tokio::test]
async fn a_wrong_credential_is_not_as_good_as_none() {
    let fixture = AuthFixture::with("[serve]\nanonymous = true").await;
    let good = format!("Bearer {}", fixture.reader().await);
    for wrong in [
        &["Bearer wlc_nonsense"][..],
        &["Basic YTpi"],
        &["Bearer"],
        &[""],
        &[&good, &good],
        &[&good, "Bearer wlc_nonsense"],
    ] {
        let headers: Vec<_> = wrong
            .iter()
            .map(|value| ("authorization", *value))
            .collect();
        assert_eq!(status(&fixture, &headers).await, 401, "{wrong:?}");
    }
    assert_eq!(fixture.dispatched(), 0);
}
