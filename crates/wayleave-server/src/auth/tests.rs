//! Races between a request and a revocation.

use std::{collections::BTreeSet, path::Path};

use wayleave_ledger::{Governance, TokenRequest};
use wayleave_model::grant::{Claims, Scope};

use super::*;

const WHO: &str = "ana";

fn governance(folder: &Path) -> Governance {
    Governance::open(folder, Arc::new(SystemClock)).unwrap()
}

async fn credentials(folder: &Path) -> Credentials {
    let never = std::time::Duration::from_hours(1);
    let watch = LedgerWatch::start(governance(folder), never, CancellationToken::new()).await;
    Credentials::new(watch.unwrap(), &Settings::parse("").unwrap())
}

#[tokio::test]
async fn a_request_that_read_the_ledger_before_a_revocation_does_not_bring_the_token_back() {
    let folder = tempfile::tempdir().unwrap();
    let operator = governance(folder.path());
    let request = TokenRequest {
        kind: TokenKind::Client,
        scopes: [Scope::Runtime].into_iter().collect(),
        grants: BTreeSet::new(),
        claims: Claims::new(),
        label: String::new(),
        expires: None,
    };
    let issued = operator.issue_token(request, WHO).await.unwrap();
    let shared = credentials(folder.path()).await.0;
    // The slow request has read the ledger, and pauses there.
    let before = shared.fresh().await.unwrap();
    let quick = shared.caller_by_token(&issued.secret).await.unwrap();
    operator.revoke_token(&issued.id, WHO, "").await.unwrap();
    shared.fresh().await.unwrap();
    shared.sweep_changed();
    assert!(quick.is_over());
    let hash = issued.secret.hash();
    let slow = shared.admitted(before, |snapshot| {
        let token = snapshot.state().token(&hash).ok_or(Refusal::Invalid)?;
        shared.caller_of_token(snapshot, token)
    });
    assert_eq!(slow.err(), Some(Refusal::Revoked));
    assert!(shared.known_callers.sweep(0).is_empty());
}
