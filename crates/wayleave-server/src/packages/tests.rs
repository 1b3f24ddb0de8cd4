//! Packages over a real ledger.

use std::collections::{BTreeMap, BTreeSet};

use wayleave_ledger::{Event, FixedClock, Governance, GrantRequest, TokenRequest};
use wayleave_model::{
    digest::Digest,
    grant::{Scopes, StreamTerms, Terms, TokenKind},
    ratify::Ratification,
};
use wayleave_plan::package::StreamScope;

use super::*;

const NOW: Millis = 1_000_000;

struct Case {
    _folder: tempfile::TempDir,
    governance: Governance,
}

impl Case {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let governance = Governance::open(folder.path(), Arc::new(FixedClock(NOW))).unwrap();
        let case = Self {
            _folder: folder,
            governance,
        };
        case.ratify().await;
        case
    }

    async fn ratify(&self) {
        let event = Event::DatasetRatified(Ratification {
            dataset: "crm".into(),
            digest: digest(),
            replaces: None,
            who: "ana".into(),
            note: String::new(),
        });
        let ledger = self.governance.ledger();
        ledger.append(NOW, event).await.unwrap();
    }

    async fn state(&self) -> Arc<State> {
        self.governance.ledger().state().await.unwrap()
    }

    async fn grant(&self, connection: &str, expires: Option<Millis>) -> String {
        let rows = r#"{"owner": {"claim": "email"}}"#.parse().unwrap();
        let stream = StreamTerms {
            relations: BTreeSet::new(),
            fields: BTreeSet::from(["id".to_owned()]),
            rows: Some(rows),
            masks: std::collections::BTreeMap::new(),
        };
        let request = GrantRequest {
            terms: Terms {
                dataset: "crm".into(),
                connection: connection.into(),
                mapping: digest(),
                streams: BTreeMap::from([("people".to_owned(), stream)]),
                capabilities: BTreeSet::new(),
            },
            expires,
            purpose: String::new(),
        };
        self.governance.grant(request, "ana").await.unwrap()
    }

    async fn token(&self, grants: &[&String]) -> String {
        let request = TokenRequest {
            kind: TokenKind::Client,
            scopes: Scopes::RUNTIME,
            grants: grants.iter().map(|id| (*id).clone()).collect(),
            claims: Claims::from([("email".to_owned(), Claim::Text("a@b.example".into()))]),
            label: String::new(),
            expires: None,
        };
        self.governance
            .issue_token(request, "ana")
            .await
            .unwrap()
            .id
    }
}

fn digest() -> Digest {
    Digest::from_bytes(b"a mapping")
}

fn connections(package: &Package) -> Vec<&str> {
    match &package.grants {
        Grants::Everything => panic!("everything"),
        Grants::Only(grants) => grants.keys().map(String::as_str).collect(),
    }
}

#[tokio::test]
async fn the_same_package_is_handed_out_until_what_is_in_it_changes() {
    let case = Case::new().await;
    let (eu, us) = (case.grant("eu", None).await, case.grant("us", None).await);
    let id = case.token(&[&eu, &us]).await;
    let packages = PackageCache::default();
    let state = case.state().await;
    let first = packages.get(&state, &state.tokens()[&id], NOW);
    assert_eq!(connections(&first), ["eu", "us"]);
    assert!(Arc::ptr_eq(
        &first,
        &packages.get(&state, &state.tokens()[&id], NOW)
    ));
    // Changes to another token have no effect here.
    case.token(&[]).await;
    let state = case.state().await;
    let second = packages.get(&state, &state.tokens()[&id], NOW);
    assert!(Arc::ptr_eq(&first, &second));
    case.governance
        .revoke_grant(&eu, "ana", "enough")
        .await
        .unwrap();
    let state = case.state().await;
    let third = packages.get(&state, &state.tokens()[&id], NOW);
    assert_eq!(connections(&third), ["us"]);
    assert_ne!(third.epoch, first.epoch);
}

#[tokio::test]
async fn a_grant_runs_out_at_its_time_though_nothing_was_recorded() {
    let case = Case::new().await;
    let brief = case.grant("eu", Some(NOW + 10)).await;
    let id = case.token(&[&brief]).await;
    let state = case.state().await;
    let token = &state.tokens()[&id];
    let packages = PackageCache::default();
    let before = packages.get(&state, token, NOW + 9);
    assert_eq!(connections(&before), ["eu"]);
    let after = packages.get(&state, token, NOW + 10);
    assert!(connections(&after).is_empty() && before.epoch != after.epoch);
    // A clock that is set back is trusted.
    assert_eq!(
        connections(&packages.get(&state, token, NOW)),
        connections(&before)
    );
}

#[tokio::test]
async fn taking_the_first_of_two_grants_of_a_connection_back_does_not_bring_in_the_other() {
    let case = Case::new().await;
    let (narrow, wide) = (case.grant("eu", None).await, case.grant("eu", None).await);
    let us = case.grant("us", None).await;
    // In either order of creation, and with any ids.
    for (first, second) in [(&narrow, &wide), (&wide, &narrow)] {
        let of = |state: &State| {
            let ids = [first, second, &us].map(String::as_str);
            package_for(state, "someone", ids, &Claims::new(), NOW)
        };
        let package = of(&*case.state().await);
        let Grants::Only(grants) = &package.grants else {
            panic!("everything")
        };
        assert_eq!(grants["eu"].id, *first);
    }
    case.governance
        .revoke_grant(&narrow, "ana", "")
        .await
        .unwrap();
    let ids = [&narrow, &wide, &us].map(String::as_str);
    let after = package_for(&*case.state().await, "someone", ids, &Claims::new(), NOW);
    assert_eq!(connections(&after), ["us"]);
}

#[tokio::test]
async fn retiring_a_dataset_ends_its_grants_also_when_it_comes_back() {
    let case = Case::new().await;
    let eu = case.grant("eu", None).await;
    let id = case.token(&[&eu]).await;
    case.governance.retire("crm", "ana", "").await.unwrap();
    case.ratify().await;
    let state = case.state().await;
    let token = &state.tokens()[&id];
    assert!(connections(&package(&state, token, &token.claims, NOW)).is_empty());
}

#[tokio::test]
async fn claims_are_bound_and_move_the_epoch_and_a_missing_one_leaves_the_stream_out() {
    let case = Case::new().await;
    let eu = case.grant("eu", None).await;
    let id = case.token(&[&eu]).await;
    let state = case.state().await;
    let token = &state.tokens()[&id];
    let rows = |claims: &Claims| {
        let package = package(&state, token, claims, NOW);
        let Grants::Only(grants) = package.grants else {
            panic!("everything")
        };
        let StreamScope::Only(streams) = &grants["eu"].streams else {
            panic!("all streams")
        };
        let people = streams.get("people");
        (
            package.epoch,
            people.and_then(|it| it.rows.clone()),
            streams.len(),
        )
    };
    let (own, mine, _) = rows(&token.claims);
    assert_eq!(mine, Some(serde_json::json!({"owner": "a@b.example"})));
    let (none, nobodys, streams) = rows(&Claims::new());
    assert_eq!((nobodys, streams), (None, 0));
    assert_ne!(own, none);
}
