//! The single client of a pipe: with one token, with two, with none, and with a token of an owner.

use serde_json::{Value, json};
use wayleave_model::grant::{Scope, TokenKind, TokenSecret};
use wayleave_project::source::EnvironmentVariables;
use wayleave_server::auth::ProcessToken;

use crate::auth::fixture::AuthFixture;

#[tokio::test]
async fn without_a_token_a_client_is_local() {
    let fixture = AuthFixture::new().await;
    let (mut pipe, _) = fixture.pipe(&[]);
    assert!(pipe.initialize(None).await.get("result").is_some());
    let tools = pipe.ask("tools/list", &json!({})).await;
    assert_eq!(tools["result"]["tools"][0]["name"], "echo");
    assert_eq!(tools["result"]["tools"].as_array().unwrap().len(), 1);
    let (mut stateless, _) = fixture.pipe(&[]);
    let tools = stateless.ask_stateless("tools/list", &json!({})).await;
    assert_eq!(tools["result"]["tools"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_token_in_the_environment_or_in_the_handshake_is_who_the_client_is() {
    let fixture = AuthFixture::new().await;
    let builder = [Scope::Runtime, Scope::Builder];
    let (token, _) = fixture.issue(TokenKind::Client, &builder, None).await;
    let bearer = json!(token);
    for (variable, bearer) in [
        (Some(&token), None),
        (None, Some(&bearer)),
        (Some(&token), Some(&bearer)),
    ] {
        let variables: Vec<_> = variable
            .map(|it| ("WAYLEAVE_TOKEN", it.as_str()))
            .into_iter()
            .collect();
        let (mut pipe, _) = fixture.pipe(&variables);
        assert!(pipe.initialize(bearer).await.get("result").is_some());
        let answer = pipe.ask("tools/call", &json!({ "name": "build" })).await;
        assert!(answer.get("result").is_some(), "{answer}");
    }
    assert_eq!(fixture.dispatched(), 3);
}

/// Values for `WAYLEAVE_TOKEN_FILE`: an empty, a blank and an unexpanded file, and bad paths.
fn token_files() -> (tempfile::TempDir, Vec<(String, &'static str)>) {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let files = vec![
        (file("empty", ""), "empty"),
        (file("blank", " \t\n"), "empty"),
        (file("reference", "${TOKEN}\n"), "not expanded"),
        (String::new(), "empty"),
        ("${HOME}/token".to_owned(), "not expanded"),
    ];
    (folder, files)
}

#[tokio::test]
async fn an_empty_or_unexpanded_credential_is_a_wrong_token_on_every_path() {
    let fixture = AuthFixture::new().await;
    let (_folder, files) = token_files();
    let mut wrong: Vec<_> = ["", " ", "\t"].map(|it| (it, "empty")).to_vec();
    wrong.extend(
        [
            "${X}",
            "${env:X}",
            "$X",
            "%X%",
            "{{X}}",
            "<your token>",
            "wlc_${X}",
        ]
        .map(|it| (it, "not expanded")),
    );
    let variables = wrong
        .iter()
        .map(|(text, why)| ("WAYLEAVE_TOKEN", *text, *why));
    let files = files
        .iter()
        .map(|(path, why)| ("WAYLEAVE_TOKEN_FILE", path.as_str(), *why));
    for (variable, text, why) in variables.chain(files) {
        let (mut pipe, _) = fixture.pipe(&[(variable, text)]);
        let stateless = pipe.ask_stateless("tools/list", &json!({})).await;
        let hello = pipe.initialize(None).await;
        let call = pipe.ask("tools/call", &json!({ "name": "echo" })).await;
        for refused in [stateless, hello, call] {
            is_malformed(&refused, why, text);
        }
    }
    for (text, why) in wrong {
        let (mut pipe, _) = fixture.pipe(&[]);
        is_malformed(&pipe.initialize(Some(&json!(text))).await, why, text);
        let call = pipe.ask("tools/call", &json!({ "name": "echo" })).await;
        is_malformed(&call, why, text);
    }
    assert_eq!(fixture.dispatched(), 0);
}

/// Checks that the refusal is `malformed_token`, and that its hint contains `why` but not the
/// token.
#[track_caller]
fn is_malformed(refused: &Value, why: &str, text: &str) {
    let data = &refused["error"]["data"];
    assert_eq!(data["reason"], "malformed_token", "`{text}`: {refused}");
    assert!(
        data["hint"].as_str().unwrap().contains(why),
        "`{text}`: {refused}"
    );
    let echoed = text.trim().len() > 1 && refused.to_string().contains(text.trim());
    assert!(!echoed, "{refused}");
}

#[tokio::test]
async fn where_a_token_is_required_a_client_without_one_is_refused() {
    let fixture = AuthFixture::new().await;
    let token = fixture.reader().await;
    let given = ProcessToken::read(&EnvironmentVariables::default())
        .unwrap()
        .required();
    let mut pipe = fixture.pipe_with(given).0;
    for refused in [
        pipe.ask_stateless("tools/list", &json!({})).await,
        pipe.initialize(None).await,
        pipe.ask("tools/call", &json!({ "name": "echo" })).await,
    ] {
        assert_eq!(
            refused["error"]["data"]["reason"], "missing_token",
            "{refused}"
        );
    }
    // The client may send a token in its handshake.
    assert!(
        pipe.initialize(Some(&json!(token)))
            .await
            .get("result")
            .is_some()
    );
    assert_eq!(fixture.dispatched(), 0);
}

#[tokio::test]
async fn a_client_that_begins_while_the_ledger_cannot_be_read_is_served_once_it_can() {
    let fixture = AuthFixture::new().await;
    let builder = [Scope::Runtime, Scope::Builder];
    let (token, _) = fixture.issue(TokenKind::Client, &builder, None).await;
    let bearer = json!(token);
    for (variables, bearer, tool) in [
        (vec![("WAYLEAVE_TOKEN", token.as_str())], None, "build"),
        (vec![], Some(&bearer), "build"),
        (vec![], None, "echo"),
    ] {
        let (mut pipe, _) = fixture.pipe(&variables);
        fixture.set_ledger_readable(false);
        let refused = pipe.initialize(bearer).await;
        let error = &refused["error"];
        assert_eq!(error["code"], -32001, "{refused}");
        assert_eq!(error["data"]["reason"], "unavailable", "{refused}");
        fixture.set_ledger_readable(true);
        // The client need not present its token again.
        let call = json!({ "name": tool, "arguments": {} });
        let answer = pipe.ask_stateless("tools/call", &call).await;
        assert!(answer.get("result").is_some(), "{answer}");
    }
    assert_eq!(fixture.dispatched(), 3);
}

#[tokio::test]
async fn two_different_tokens_are_none() {
    let fixture = AuthFixture::new().await;
    let (ours, theirs) = (fixture.reader().await, fixture.reader().await);
    for bearer in [json!(theirs), json!(""), json!(7), json!(null)] {
        let (mut pipe, _) = fixture.pipe(&[("WAYLEAVE_TOKEN", &ours)]);
        let refused = pipe.initialize(Some(&bearer)).await;
        assert_eq!(refused["error"]["code"], -32001, "{bearer}");
        assert_eq!(refused["error"]["data"]["reason"], "conflicting_tokens");
        let refused = pipe.ask("tools/call", &json!({ "name": "echo" })).await;
        assert_eq!(refused["error"]["code"], -32001);
        // The client may still send the right token.
        assert!(
            pipe.initialize(Some(&json!(ours)))
                .await
                .get("result")
                .is_some()
        );
    }
    assert_eq!(fixture.dispatched(), 0);
}

#[tokio::test]
async fn an_owner_bearer_in_the_handshake_is_the_end_of_the_conversation() {
    let fixture = AuthFixture::new().await;
    let reader = fixture.reader().await;
    for kind in [TokenKind::Owner, TokenKind::Control] {
        let (token, _) = fixture.issue(kind, &[], None).await;
        for variables in [vec![], vec![("WAYLEAVE_TOKEN", reader.as_str())]] {
            let (mut pipe, door) = fixture.pipe(&variables);
            let refused = pipe.initialize(Some(&json!(token))).await;
            assert_eq!(refused["error"]["code"], -32001);
            assert_eq!(refused["error"]["data"]["reason"], format!("{kind}_token"));
            assert_eq!(pipe.hear().await, None);
            pipe.server.await.unwrap().unwrap();
            let found = door.non_agent_token().unwrap().to_string();
            assert!(
                found.contains(kind.as_str()) && !found.contains(&token),
                "{found}"
            );
        }
    }
    assert_eq!(fixture.dispatched(), 0);
}

#[test]
fn an_owner_credential_in_the_environment_is_found_before_anything_is_served() {
    let [owner, control] = [TokenKind::Owner, TokenKind::Control]
        .map(|kind| TokenSecret::from_bits(kind, &[7; 32]).expose().to_owned());
    for (variable, value, kind) in [
        ("WAYLEAVE_OWNER_TOKEN", "anything", "an owner"),
        ("WAYLEAVE_CONTROL_TOKEN", "anything", "a control"),
        ("WAYLEAVE_TOKEN", "wlo_secret", "an owner"),
        ("WAYLEAVE_TOKEN", "wlk_secret", "a control"),
        ("WAYLEAVE_OWNER_TOKEN", "", "an owner"),
        ("WAYLEAVE_CONTROL_TOKEN", "", "a control"),
        ("ADMIN", &owner, "an owner"),
        ("WAYLEAVE_TOKEN_FILE", &owner, "an owner"),
        (
            "SETTINGS",
            &format!("{{\"key\":\"{control}\"}}"),
            "a control",
        ),
    ] {
        let variables = [(variable.to_owned(), value.to_owned())];
        let environment = EnvironmentVariables::with(variables.into_iter().collect());
        let found = ProcessToken::read(&environment).unwrap_err().to_string();
        assert!(found.contains(variable) && found.contains(kind), "{found}");
        assert!(value.is_empty() || !found.contains(value), "{found}");
    }
}
