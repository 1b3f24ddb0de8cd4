//! The one client of a pipe: with a token, with two, with none, and with one that is not its own.

use serde_json::json;
use wayleave_model::grant::{Scope, TokenKind};
use wayleave_server::{auth::GivenToken, source::Environment};

use crate::house::House;

#[tokio::test]
async fn without_a_token_a_client_is_local() {
    let house = House::new().await;
    let (mut pipe, _) = house.pipe(&[]);
    assert!(pipe.initialize(None).await.get("result").is_some());
    let tools = pipe.ask("tools/list", &json!({})).await;
    assert_eq!(tools["result"]["tools"][0]["name"], "echo");
    assert_eq!(tools["result"]["tools"].as_array().unwrap().len(), 1);
    let (mut stateless, _) = house.pipe(&[("WAYLEAVE_TOKEN", "")]);
    let tools = stateless.ask_stateless("tools/list", &json!({})).await;
    assert_eq!(tools["result"]["tools"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_token_in_the_environment_or_in_the_handshake_is_who_the_client_is() {
    let house = House::new().await;
    let builder = [Scope::Runtime, Scope::Builder];
    let (token, _) = house.issue(TokenKind::Client, &builder, None).await;
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
        let (mut pipe, _) = house.pipe(&variables);
        assert!(pipe.initialize(bearer).await.get("result").is_some());
        let answer = pipe.ask("tools/call", &json!({ "name": "build" })).await;
        assert!(answer.get("result").is_some(), "{answer}");
    }
    assert_eq!(house.dispatched(), 3);
}

#[tokio::test]
async fn two_different_tokens_are_none() {
    let house = House::new().await;
    let (ours, theirs) = (house.reader().await, house.reader().await);
    for bearer in [json!(theirs), json!(""), json!(7), json!(null)] {
        let (mut pipe, _) = house.pipe(&[("WAYLEAVE_TOKEN", &ours)]);
        let refused = pipe.initialize(Some(&bearer)).await;
        assert_eq!(refused["error"]["code"], -32001, "{bearer}");
        assert_eq!(refused["error"]["data"]["reason"], "conflicting_tokens");
        let refused = pipe.ask("tools/call", &json!({ "name": "echo" })).await;
        assert_eq!(refused["error"]["code"], -32001);
        // It may still say it right.
        assert!(
            pipe.initialize(Some(&json!(ours)))
                .await
                .get("result")
                .is_some()
        );
    }
    assert_eq!(house.dispatched(), 0);
}

#[tokio::test]
async fn an_owner_bearer_in_the_handshake_is_the_end_of_the_conversation() {
    let house = House::new().await;
    let reader = house.reader().await;
    for kind in [TokenKind::Owner, TokenKind::Control] {
        let (token, _) = house.issue(kind, &[], None).await;
        for variables in [vec![], vec![("WAYLEAVE_TOKEN", reader.as_str())]] {
            let (mut pipe, door) = house.pipe(&variables);
            let refused = pipe.initialize(Some(&json!(token))).await;
            assert_eq!(refused["error"]["code"], -32001);
            assert_eq!(refused["error"]["data"]["reason"], format!("{kind}_token"));
            assert_eq!(pipe.hear().await, None);
            pipe.server.await.unwrap().unwrap();
            let found = door.not_an_agents().unwrap().to_string();
            assert!(
                found.contains(kind.as_str()) && !found.contains(&token),
                "{found}"
            );
        }
    }
    assert_eq!(house.dispatched(), 0);
}

#[test]
fn an_owner_credential_in_the_environment_is_found_before_anything_is_served() {
    for (variable, value, kind) in [
        ("WAYLEAVE_OWNER_TOKEN", "anything", "an owner"),
        ("WAYLEAVE_CONTROL_TOKEN", "anything", "a control"),
        ("WAYLEAVE_TOKEN", "wlo_secret", "an owner"),
        ("WAYLEAVE_TOKEN", "wlk_secret", "a control"),
    ] {
        let variables = [(variable.to_owned(), value.to_owned())];
        let environment = Environment::with(variables.into_iter().collect());
        let found = GivenToken::read(&environment).unwrap_err().to_string();
        assert!(found.contains(variable) && found.contains(kind), "{found}");
        assert!(!found.contains(value), "{found}");
    }
}
