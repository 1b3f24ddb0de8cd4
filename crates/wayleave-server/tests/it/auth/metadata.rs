//! The metadata that tells a client without a credential how to get one: RFC 9728.

use serde_json::json;

use crate::auth::fixture::AuthFixture;

#[tokio::test]
async fn both_well_known_forms_tell_the_same_to_anyone() {
    let fixture = AuthFixture::new().await;
    let address = fixture.http.address;
    let expected = json!({
        "resource": format!("http://{address}/mcp"),
        "resource_name": "wayleave",
        "bearer_methods_supported": ["header"],
        "scopes_supported": ["runtime", "builder"],
        "authorization_servers": [fixture.issuer.issuer],
    });
    for path in [
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
    ] {
        let reply = fixture.http.get(path).await;
        assert_eq!(
            (reply.status.as_u16(), reply.json()),
            (200, expected.clone()),
            "{path}"
        );
    }
    for path in [
        "/.well-known/oauth-protected-resource/other",
        "/.well-known/x",
        "/",
    ] {
        assert_eq!(fixture.http.get(path).await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn the_address_clients_use_is_the_one_the_settings_name() {
    let fixture = AuthFixture::with("[serve]\nurl = \"https://data.example.org/mcp\"").await;
    let metadata = fixture
        .http
        .get("/.well-known/oauth-protected-resource")
        .await
        .json();
    assert_eq!(metadata["resource"], "https://data.example.org/mcp");
    let refused = fixture.http.call("echo").await;
    let challenge = refused.challenge().unwrap();
    let pointer = "resource_metadata=\
        \"https://data.example.org/.well-known/oauth-protected-resource/mcp\"";
    assert!(challenge.ends_with(pointer), "{challenge}");
}
