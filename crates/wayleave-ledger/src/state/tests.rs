//! The rules, tried with acts in any order.

use proptest::prelude::*;

use super::*;

/// Acts on two datasets with three mappings, sensible or not.
fn event() -> impl Strategy<Value = Event> {
    let dataset = || prop_oneof![Just("crm".to_owned()), Just("hr".to_owned())];
    let digest = || (0_u8..3).prop_map(|mapping| Digest::of(&[mapping]));
    let who = || "ana".to_owned();
    prop_oneof![
        3 => (dataset(), digest(), prop::option::of(digest())).prop_map(
            move |(dataset, digest, replaces)| Event::DatasetRatified {
                dataset, digest, replaces, who: who(), note: String::new(),
            }
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

fn entry(seq: u64, event: Event) -> Entry {
    Entry {
        seq,
        at: 0,
        event,
        hash: crate::chain::EntryHash::NONE,
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
            if let Event::DatasetRatified { dataset, digest, replaces, .. } = &event {
                prop_assert_eq!(before.ratified(dataset).map(|it| it.digest), *replaces);
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
}
