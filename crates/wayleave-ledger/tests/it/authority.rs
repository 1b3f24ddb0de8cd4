//! Grants and tokens in a ledger on disk.

use std::collections::BTreeSet;

use crate::project::{NOW, governance, mapping, ratify_request, tamper};
use wayleave_ledger::{
    Governance, GovernanceError, GrantRequest, LedgerError, Refusal, TokenRequest, Validity,
};
use wayleave_model::digest::Digest;
use wayleave_model::grant::{Claim, Claims, Scopes, StreamTerms, Terms, TokenKind, TokenSecret};

fn granting(mapping: Digest) -> GrantRequest {
    let stream = StreamTerms {
        relations: BTreeSet::new(),
        fields: BTreeSet::from(["id".to_owned()]),
        rows: Some(r#"{"id": {"gte": 0.30000000000000004}}"#.parse().unwrap()),
        masks: std::collections::BTreeMap::new(),
    };
    GrantRequest {
        terms: Terms {
            dataset: "crm".into(),
            connection: "crm".into(),
            mapping,
            streams: [("people".to_owned(), stream)].into(),
            capabilities: BTreeSet::new(),
        },
        expires: None,
        purpose: "support".into(),
    }
}

fn issuing(grants: &[&str]) -> TokenRequest {
    TokenRequest {
        kind: TokenKind::Client,
        scopes: Scopes::RUNTIME,
        grants: grants.iter().map(|id| (*id).to_owned()).collect(),
        claims: Claims::from([("level".to_owned(), Claim::Integer(-3))]),
        label: "desk".into(),
        expires: Some(NOW + 10),
    }
}

async fn ratified() -> (tempfile::TempDir, Governance, Digest) {
    let dir = tempfile::tempdir().unwrap();
    let governance = governance(dir.path());
    let ratified = governance
        .ratify(ratify_request(&mapping("one"), None))
        .await;
    let digest = ratified.unwrap().digest();
    (dir, governance, digest)
}

fn refusal<T: std::fmt::Debug>(result: Result<T, GovernanceError>) -> Refusal {
    match result.unwrap_err() {
        GovernanceError::Ledger(LedgerError::Refused(refusal)) => refusal,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_token_is_found_by_its_text_alone_also_after_a_restart() {
    let (dir, before, digest) = ratified().await;
    let grant = before.grant(granting(digest), "ana").await.unwrap();
    let issued = before.issue_token(issuing(&[&grant]), "ana").await.unwrap();
    drop(before);
    let after = governance(dir.path());
    let state = after.ledger().state().await.unwrap();
    let read = TokenSecret::parse(issued.secret.expose()).unwrap();
    let token = state.token(&read.hash()).unwrap();
    assert_eq!(
        (token.id.as_str(), token.label.as_str()),
        (issued.id.as_str(), "desk")
    );
    assert_eq!(token.claims["level"], Claim::Integer(-3));
    assert_eq!(token.validity(NOW + 9), Validity::Live);
    assert_eq!(token.validity(NOW + 10), Validity::Expired);
    let rows = state.grant(&grant).unwrap().terms.streams["people"]
        .rows
        .clone();
    // Byte for byte, because numbers are not parsed and printed in between.
    assert_eq!(
        rows.unwrap().as_str(),
        r#"{"id": {"gte": 0.30000000000000004}}"#
    );
    let other = TokenSecret::from_bits(TokenKind::Client, &[9; 32]);
    assert!(state.token(&other.hash()).is_none());
    let report = after.audit(None).await.unwrap();
    assert!(report.is_ok());
}

#[tokio::test]
async fn what_was_revoked_is_revoked_once_and_for_all() {
    let (_dir, governance, digest) = ratified().await;
    let grant = governance.grant(granting(digest), "ana").await.unwrap();
    let token = governance
        .issue_token(issuing(&[&grant]), "ana")
        .await
        .unwrap()
        .id;
    governance
        .revoke_grant(&grant, "ben", "enough")
        .await
        .unwrap();
    governance
        .revoke_token(&token, "ben", "enough")
        .await
        .unwrap();
    let again = refusal(governance.revoke_grant(&grant, "ana", "").await);
    assert!(matches!(again, Refusal::GrantRevoked { .. }), "{again}");
    let again = refusal(governance.revoke_token(&token, "ana", "").await);
    assert!(matches!(again, Refusal::TokenRevoked { .. }), "{again}");
    let with = refusal(governance.issue_token(issuing(&[&grant]), "ana").await);
    assert!(matches!(with, Refusal::GrantRevoked { .. }), "{with}");
    let state = governance.ledger().state().await.unwrap();
    let revoked = state.grant(&grant).unwrap().revoked.clone().unwrap();
    assert_eq!(
        (revoked.who.as_str(), revoked.note.as_str()),
        ("ben", "enough")
    );
    assert_eq!(state.tokens()[&token].validity(NOW), Validity::Revoked);
}

#[tokio::test]
async fn a_grant_is_of_what_is_ratified_now() {
    let (_dir, governance, digest) = ratified().await;
    let other = refusal(
        governance
            .grant(granting(Digest::from_bytes(b"x")), "ana")
            .await,
    );
    assert!(matches!(other, Refusal::Superseded { .. }), "{other}");
    governance.retire("crm", "ana", "").await.unwrap();
    let none = refusal(governance.grant(granting(digest), "ana").await);
    assert!(matches!(none, Refusal::NotRatified { .. }), "{none}");
}

#[tokio::test]
async fn no_credential_can_be_written_into_a_grant_or_a_token() {
    let (_dir, governance, digest) = ratified().await;
    let secret = TokenSecret::from_bits(TokenKind::Client, &[3; 32]);
    for planted in [secret.expose(), "postgres://ana:hunter2@db/crm"] {
        let mut purpose = granting(digest);
        purpose.purpose = planted.to_owned();
        let mut rows = granting(digest);
        let people = rows.terms.streams.get_mut("people").unwrap();
        people.rows = Some(format!(r#"{{"id": "{planted}"}}"#).parse().unwrap());
        for request in [purpose, rows] {
            let refused = refusal(governance.grant(request, "ana").await).to_string();
            assert!(!refused.contains(planted), "{refused}");
        }
        let mut label = issuing(&[]);
        label.label = planted.to_owned();
        let mut claim = issuing(&[]);
        let planted_claim = Claim::Text(planted.to_owned());
        claim.claims.insert("x".to_owned(), planted_claim);
        for request in [label, claim] {
            let refused = refusal(governance.issue_token(request, "ana").await).to_string();
            assert!(!refused.contains(planted), "{refused}");
        }
    }
    let mut nothing = granting(digest);
    nothing.terms.streams.clear();
    let refused = refusal(governance.grant(nothing, "ana").await);
    assert!(matches!(refused, Refusal::InvalidText(_)), "{refused}");
}

#[tokio::test]
async fn a_ledger_of_the_time_before_grants_is_brought_up_to_date() {
    let (dir, open, digest) = ratified().await;
    drop(open);
    tamper(&dir.path().join(".wayleave"), |conn| {
        conn.execute("ALTER TABLE entries DROP COLUMN signature", [])
            .unwrap();
        conn.pragma_update(None, "user_version", 1).unwrap();
    });
    let governance = governance(dir.path());
    assert!(governance.audit(None).await.unwrap().is_ok());
    governance.grant(granting(digest), "ana").await.unwrap();
    drop(governance);
    let conn = rusqlite::Connection::open(dir.path().join(".wayleave/ledger.db")).unwrap();
    let version: i64 = conn
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .unwrap();
    assert_eq!(version, 4, "the latest");
}

#[tokio::test]
async fn a_narrower_grant_takes_the_place_of_another_in_one_act() {
    let (dir, governance, digest) = ratified().await;
    let wide = governance.grant(granting(digest), "ana").await.unwrap();
    let token = governance
        .issue_token(issuing(&[&wide]), "ana")
        .await
        .unwrap();
    let entries = governance.ledger().epoch().await.unwrap();
    let mut request = granting(digest);
    let people = request.terms.streams.get_mut("people").unwrap();
    let more = r#"{"name": "Ann"}"#.parse().unwrap();
    people.rows = people.rows.as_ref().unwrap().and(&more);
    request.expires = Some(NOW + 5);
    // A request that allows more is refused.
    let mut wider = request.clone();
    let people = wider.terms.streams.get_mut("people").unwrap();
    people.fields.insert("salary".into());
    let mut unfiltered = request.clone();
    unfiltered.terms.streams.get_mut("people").unwrap().rows = None;
    for more in [wider, unfiltered] {
        let refused = refusal(governance.narrow_grant(&wide, more, "ana").await);
        assert!(matches!(refused, Refusal::NotNarrower { .. }), "{refused}");
    }
    assert_eq!(governance.ledger().epoch().await.unwrap(), entries);
    let narrow = governance
        .narrow_grant(&wide, request.clone(), "bo")
        .await
        .unwrap();
    assert_eq!(governance.ledger().epoch().await.unwrap(), entries + 1);
    drop(governance);
    let after = crate::project::governance(dir.path());
    let state = after.ledger().state().await.unwrap();
    let ended = state.grant(&wide).unwrap();
    assert_eq!(ended.validity(NOW), Validity::Revoked);
    assert_eq!(
        ended.revoked.as_ref().unwrap().note,
        format!("narrowed to {narrow}")
    );
    assert_eq!(state.grant(&narrow).unwrap().terms, request.terms);
    assert_eq!(
        state.tokens()[&token.id].grants,
        BTreeSet::from([narrow.clone()])
    );
    // A revoked grant cannot be narrowed, and a later expiry is not narrower.
    let again = refusal(after.narrow_grant(&wide, request.clone(), "bo").await);
    assert!(matches!(again, Refusal::GrantRevoked { .. }), "{again}");
    request.expires = None;
    let longer = refusal(after.narrow_grant(&narrow, request, "bo").await);
    assert!(matches!(longer, Refusal::NotNarrower { .. }), "{longer}");
}
