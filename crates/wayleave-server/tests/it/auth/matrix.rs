//! Every reason for a refusal, with every method of both eras, over both transports: the exact
//! status, header and body. No handler runs.

use http::Method as Verb;
use http_body_util::Full;
use serde_json::{Value, json};
use wayleave_model::grant::{Scope, TokenKind};

use crate::auth::{
    fixture::{AuthFixture, hello, seconds, session_methods, stateless_methods},
    forge::{SigningKey, claims, with},
    wire::{Http, Reply},
};

/// A client that must be refused.
struct RefusedClient {
    name: &'static str,
    /// The client that sends the requests.
    client: Http,
    status: u16,
    reason: &'static str,
    message: &'static str,
    challenge: Challenge,
}

/// The expected `WWW-Authenticate` header.
#[derive(Clone, Copy)]
enum Challenge {
    /// No header.
    Absent,
    /// Only the location of the metadata.
    Plain,
    /// Also the RFC 6750 error code of the credential that was sent.
    Error(&'static str),
}

const INVALID: (&str, &str) = (
    "invalid_token",
    "authentication failed: the token is not valid",
);
const EXPIRED: (&str, &str) = (
    "expired_token",
    "authentication failed: the token has expired",
);
const MALFORMED: (&str, &str) = (
    "malformed_token",
    "authentication failed: not a bearer token",
);

/// Invalid tokens, for either transport, each with its expected reason and message.
pub(crate) async fn bad_tokens(
    fixture: &AuthFixture,
) -> Vec<(&'static str, String, (&'static str, &'static str))> {
    let (key, issuer) = (&fixture.key, fixture.issuer.issuer.as_str());
    let good = claims(issuer, seconds());
    let changed = |change: Value| key.token(&key.header(), &with(&good, &change));
    let header = |change: Value| key.token(&with(&key.header(), &change), &good);
    let unsigned = {
        let token = header(json!({ "alg": "none" }));
        let (signed, _) = token.rsplit_once('.').unwrap();
        format!("{signed}.")
    };
    let stranger = SigningKey::ed25519("current");
    let (revoked, id) = fixture
        .issue(TokenKind::Client, &[Scope::Runtime], None)
        .await;
    fixture.revoke(&id).await;
    let unknown = AuthFixture::new().await.reader().await;
    let revocation = (
        "revoked_token",
        "authentication failed: the token was revoked",
    );
    let reader = fixture.reader().await;
    let other = if reader.ends_with('0') { '1' } else { '0' };
    vec![
        ("malformed", "nonsense".to_owned(), MALFORMED),
        ("malformed ours", "wlc_abc".to_owned(), MALFORMED),
        (
            "one digit off",
            format!("{}{other}", &reader[..reader.len() - 1]),
            MALFORMED,
        ),
        ("of another ledger", unknown, INVALID),
        ("expired ours", fixture.expired().await, EXPIRED),
        ("revoked", revoked, revocation),
        (
            "expired",
            changed(json!({ "exp": seconds() - 3600 })),
            EXPIRED,
        ),
        (
            "not yet",
            changed(json!({ "nbf": seconds() + 3600 })),
            INVALID,
        ),
        (
            "wrong aud",
            changed(json!({ "aud": "https://other.example" })),
            INVALID,
        ),
        (
            "wrong iss",
            changed(json!({ "iss": "https://other.example" })),
            INVALID,
        ),
        ("alg none", header(json!({ "alg": "none" })), INVALID),
        ("alg none, unsigned", unsigned, INVALID),
        ("alg of secrets", header(json!({ "alg": "HS256" })), INVALID),
        ("unknown kid", header(json!({ "kid": "other" })), INVALID),
        ("an id token", header(json!({ "typ": "JWT" })), INVALID),
        ("forged", stranger.token(&stranger.header(), &good), INVALID),
    ]
}

async fn strangers(fixture: &AuthFixture) -> Vec<RefusedClient> {
    let plain = &fixture.http;
    let of_token = |(name, token, (reason, message)): (&'static str, String, _)| RefusedClient {
        name,
        client: plain.with(token),
        status: 401,
        reason,
        message,
        challenge: Challenge::Error("invalid_token"),
    };
    let mut strangers: Vec<_> = bad_tokens(fixture)
        .await
        .into_iter()
        .map(of_token)
        .collect();
    strangers.push(RefusedClient {
        name: "none",
        client: plain.clone(),
        status: 401,
        reason: "missing_token",
        message: "authentication required: no bearer token",
        challenge: Challenge::Plain,
    });
    let good = fixture.reader().await;
    let in_address = |name, bearer: Option<String>| RefusedClient {
        name,
        client: Http {
            path: format!("/mcp?access_token={good}"),
            bearer,
            ..plain.clone()
        },
        status: 401,
        reason: "token_in_address",
        message: "authentication failed: a token belongs in the Authorization header",
        challenge: Challenge::Error("invalid_request"),
    };
    strangers.push(in_address("in the address", None));
    strangers.push(in_address("in the address as well", Some(good.clone())));
    for (kind, reason, message) in [
        (
            TokenKind::Owner,
            "owner_token",
            "authentication failed: an owner token is not for agents, use a client token",
        ),
        (
            TokenKind::Control,
            "control_token",
            "authentication failed: a control token is not for agents, use a client token",
        ),
    ] {
        let (token, _) = fixture.issue(kind, &[], None).await;
        let made_up = format!("{}made-up", kind.prefix());
        for token in [token, made_up] {
            strangers.push(RefusedClient {
                name: reason,
                client: plain.with(token),
                status: 403,
                reason,
                message,
                challenge: Challenge::Absent,
            });
        }
    }
    strangers
}

impl RefusedClient {
    fn check(&self, what: &str, reply: &Reply) {
        let name = format!("{}: {what}", self.name);
        assert_eq!(
            reply.status.as_u16(),
            self.status,
            "{name}: {:?}",
            reply.body
        );
        let address = self.client.address;
        let end = format!(
            "scope=\"runtime\", \
             resource_metadata=\"http://{address}/.well-known/oauth-protected-resource/mcp\""
        );
        let challenge = match self.challenge {
            Challenge::Absent => None,
            Challenge::Plain => Some(format!("Bearer {end}")),
            Challenge::Error(code) => Some(format!(
                "Bearer error=\"{code}\", error_description=\"{}\", {end}",
                self.message
            )),
        };
        assert_eq!(reply.challenge(), challenge.as_deref(), "{name}");
        let body = json!({ "jsonrpc": "2.0", "id": null, "error": {
            "code": -32001, "message": self.message, "data": { "reason": self.reason },
        }});
        assert_eq!(reply.json(), body, "{name}");
        assert_eq!(reply.headers["content-type"], "application/json");
    }
}

#[tokio::test]
async fn no_stranger_is_let_in_over_http_by_any_method_of_either_era() {
    let fixture = AuthFixture::new().await;
    // The session of an admitted client does not help.
    let session = fixture
        .http
        .with(fixture.reader().await)
        .begin()
        .await
        .session;
    let mut tried = 0;
    for stranger in strangers(&fixture).await {
        let client = &stranger.client;
        for method in stateless_methods() {
            let request = client.stateless(method.name, &method.params, method.named);
            stranger.check(method.name, &client.send(request).await);
            tried += 1;
        }
        for session in [None, session.clone()] {
            let client = Http {
                session,
                ..client.clone()
            };
            let hello = client.in_session("initialize", &hello());
            stranger.check("initialize", &client.send(hello).await);
            for method in session_methods() {
                let request = client.in_session(method.name, &method.params);
                stranger.check(method.name, &client.send(request).await);
                tried += 1;
            }
            for verb in [Verb::GET, Verb::DELETE, Verb::PUT] {
                let request = client.request(verb).body(Full::default()).unwrap();
                stranger.check("no method", &client.send(request).await);
                tried += 1;
            }
        }
    }
    assert!(tried > 500, "{tried}");
    assert_eq!(fixture.dispatched(), 0);
    // The same requests succeed with a valid token, so it was the credential that was refused.
    let good = fixture.http.with(fixture.reader().await);
    for method in stateless_methods() {
        if method.name != "subscriptions/listen" && method.name != "no/such/method" {
            let request = good.stateless(method.name, &method.params, method.named);
            let reply = good.send(request).await;
            assert_eq!(reply.status, 200, "{} {:?}", method.name, reply.body);
        }
    }
    assert_eq!(fixture.dispatched(), 4);
}

#[tokio::test]
async fn no_stranger_is_let_in_over_stdio_by_any_method_of_either_era() {
    let fixture = AuthFixture::new().await;
    for (name, token, (reason, message)) in bad_tokens(&fixture).await {
        let refused = |id: u64| {
            json!({ "jsonrpc": "2.0", "id": id, "error": {
                "code": -32001, "message": message, "data": { "reason": reason },
            }})
        };
        // Token in the environment.
        let (mut pipe, _) = fixture.pipe(&[("WAYLEAVE_TOKEN", &token)]);
        assert_eq!(pipe.initialize(None).await, refused(1), "{name}");
        let mut id = 1;
        for method in session_methods() {
            id += 1;
            let answer = pipe.ask(method.name, &method.params).await;
            assert_eq!(answer, refused(id), "{name}: {}", method.name);
        }
        for method in stateless_methods() {
            id += 1;
            let answer = pipe.ask_stateless(method.name, &method.params).await;
            assert_eq!(answer, refused(id), "{name}: {}", method.name);
        }
        // Token in the handshake: the client is then not treated as local either.
        let (mut pipe, _) = fixture.pipe(&[]);
        assert_eq!(
            pipe.initialize(Some(&json!(token))).await,
            refused(1),
            "{name}"
        );
        let answer = pipe.ask("tools/call", &json!({ "name": "echo" })).await;
        assert_eq!(answer, refused(2), "{name}");
    }
    assert_eq!(fixture.dispatched(), 0);
}
