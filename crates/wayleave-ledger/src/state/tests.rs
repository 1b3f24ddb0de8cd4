//! Checks the rules with random sequences of acts.

use proptest::prelude::*;

use std::collections::BTreeSet;

use wayleave_model::grant::{Claims, Scopes, Terms, TokenKind, TokenSecret};

use super::*;
use crate::event::{NewGrant, NewToken};

/// Acts on two datasets with three mappings, sensible or not.
fn event() -> impl Strategy<Value = Event> {
    let dataset = || prop_oneof![Just("crm".to_owned()), Just("hr".to_owned())];
    let digest = || (0_u8..3).prop_map(|mapping| Digest::from_bytes(&[mapping]));
    let who = || "ana".to_owned();
    prop_oneof![
        3 => (dataset(), digest(), prop::option::of(digest())).prop_map(
            move |(dataset, digest, replaces)| Event::DatasetRatified(Ratification {
                dataset, digest, replaces, who: who(), note: String::new(),
            })
        ),
        1 => (dataset(), digest()).prop_map(move |(dataset, digest)| Event::DatasetRetired {
            dataset, digest, who: who(), note: String::new(),
        }),
        3 => (dataset(), digest(), 1_u64..6).prop_map(move |(dataset, digest, revision)| {
            Event::DatasetActivated { dataset, digest, revision, who: who() }
        }),
        2 => (dataset(), 1_u64..6).prop_map(move |(dataset, revision)| {
            Event::DatasetDeactivated { dataset, revision, who: who() }
        }),
    ]
}

/// Acts on few grants and few tokens of those datasets, sensible or not.
fn authority() -> impl Strategy<Value = Event> {
    let id = |prefix: &'static str| (0..5).prop_map(move |n| format!("{prefix}{n}"));
    let digest = || (0_u8..3).prop_map(|mapping| Digest::from_bytes(&[mapping]));
    let dataset = || prop_oneof![Just("crm".to_owned()), Just("hr".to_owned())];
    prop_oneof![
        2 => (id("g"), id("g"), dataset(), digest(), id("c"), prop::option::of(0_i64..3)).prop_map(
            |(replaces, grant, dataset, mapping, connection, expires)| Event::GrantNarrowed {
                replaces,
                narrower: NewGrant {
                    grant,
                    terms: Terms {
                        dataset, connection, mapping,
                        streams: BTreeMap::new(), capabilities: BTreeSet::new(),
                    },
                    expires, purpose: String::new(), who: "ana".into(),
                },
            }
        ),
        4 => (id("g"), dataset(), digest(), id("c")).prop_map(|(grant, dataset, mapping, connection)| {
            Event::GrantCreated(NewGrant {
                grant,
                terms: Terms {
                    dataset, connection, mapping,
                    streams: BTreeMap::new(), capabilities: BTreeSet::new(),
                },
                expires: None, purpose: String::new(), who: "ana".into(),
            })
        }),
        4 => (id("t"), prop::collection::btree_set(id("g"), 0..4), any::<u8>(), 0_usize..3)
            .prop_map(|(token, grants, bits, kind)| {
                let kind = TokenKind::ALL[kind];
                Event::TokenIssued(NewToken {
                    token, kind, grants,
                    hash: TokenSecret::from_bits(kind, &[bits; 32]).hash(),
                    scopes: Scopes::NONE, claims: Claims::new(), label: String::new(),
                    expires: None, who: "ana".into(),
                })
            }),
        1 => id("g").prop_map(|grant| Event::GrantRevoked {
            grant, who: "ana".into(), note: String::new(),
        }),
        1 => id("t").prop_map(|token| Event::TokenRevoked {
            token, who: "ana".into(), note: String::new(),
        }),
    ]
}

fn entry(seq: u64, event: Event) -> Entry {
    Entry {
        seq,
        at: 0,
        event,
        hash: crate::chain::EntryHash::NONE,
        signature: None,
    }
}

proptest! {
    #[test]
    fn whatever_is_admitted_nothing_is_active_that_no_human_ratified(
        events in prop::collection::vec(event(), 0..80),
    ) {
        let mut state = State::default();
        state.apply(&entry(1, Event::LedgerCreated { ledger: "a".into() }));
        let mut ratified: Vec<(String, Digest)> = Vec::new();
        let mut seq = 1;
        for event in events {
            let before = state.clone();
            if state.admit(&event).is_err() {
                continue;
            }
            seq += 1;
            state.apply(&entry(seq, event.clone()));
            if let Event::DatasetRatified(Ratification { dataset, digest, replaces, .. }) = &event {
                prop_assert_eq!(before.ratified(dataset).map(|it| it.act.digest), *replaces);
                ratified.push((dataset.clone(), *digest));
            }
            for (name, active) in state.active() {
                prop_assert!(state.ratified(name).is_some());
                prop_assert!(ratified.contains(&(name.to_owned(), active.digest)));
            }
            for (name, dataset) in state.datasets() {
                let earlier = before.datasets().get(name).map_or(0, |it| it.revision);
                prop_assert!(dataset.revision == earlier || dataset.revision == earlier + 1);
            }
        }
    }

    #[test]
    fn whatever_is_admitted_no_token_reads_twice_and_nothing_revoked_comes_back(
        events in prop::collection::vec(prop_oneof![event(), authority()], 0..120),
    ) {
        let mut state = State::default();
        state.apply(&entry(1, Event::LedgerCreated { ledger: "a".into() }));
        let mut seq = 1;
        for event in events {
            let before = state.clone();
            if state.admit(&event).is_err() {
                continue;
            }
            seq += 1;
            state.apply(&entry(seq, event.clone()));
            if let Event::GrantCreated(new) = &event {
                let ratified = before.ratified(&new.terms.dataset).map(|it| it.act.digest);
                prop_assert_eq!(ratified, Some(new.terms.mapping));
            }
            if let Event::TokenIssued(new) = &event {
                let granted: Vec<_> = new.grants.iter().filter_map(|it| before.grant(it)).collect();
                prop_assert_eq!(granted.len(), new.grants.len());
                prop_assert!(granted.iter().all(|grant| grant.revoked.is_none()));
                let connections: BTreeSet<_> =
                    granted.iter().map(|grant| &grant.terms.connection).collect();
                prop_assert_eq!(connections.len(), granted.len());
                prop_assert!(new.kind == TokenKind::Client || granted.is_empty());
                prop_assert_eq!(state.token(&new.hash).map(|it| &it.id), Some(&new.token));
                prop_assert!(before.token(&new.hash).is_none());
            }
            if let Event::GrantNarrowed { replaces, narrower } = &event {
                let wider = before.grant(replaces).unwrap();
                prop_assert!(wider.revoked.is_none() && narrower.terms.is_within(&wider.terms));
                prop_assert!(state.grant(replaces).unwrap().revoked.is_some());
                for (id, token) in before.tokens() {
                    let after = &state.tokens()[id].grants;
                    prop_assert_eq!(after.len(), token.grants.len());
                    let is_held = token.revoked.is_none() && token.grants.contains(replaces);
                    prop_assert_eq!(after.contains(&narrower.grant), is_held);
                }
            }
            for (id, grant) in before.grants() {
                prop_assert!(grant.revoked.is_none() || state.grant(id) == Some(grant));
            }
            for (id, token) in before.tokens() {
                prop_assert!(token.revoked.is_none() || state.tokens().get(id) == Some(token));
            }
            for grant in state.grants().values().filter(|it| it.revoked.is_none()) {
                prop_assert!(state.ratified(&grant.terms.dataset).is_some());
            }
        }
    }
}
