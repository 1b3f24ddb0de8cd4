//! The life cycle of a mapping: a draft becomes a served dataset only through its digest.

use proptest::prelude::*;
use wayleave_model::digest::Digest;
use wayleave_model::mapping::Mapping;
use wayleave_model::print::print;
use wayleave_model::problem::ProblemCode;
use wayleave_model::ratify::{
    Draft, Proposed, Ratification, Ratified, VerifyError, ratify, verify,
};
use wayleave_model::schema::EXAMPLE;

use crate::arbitrary::mapping;

fn act(dataset: &str, digest: Digest) -> Ratification {
    Ratification {
        dataset: dataset.to_owned(),
        digest,
        replaces: None,
        who: "ada".to_owned(),
        note: "read it twice".to_owned(),
    }
}

#[test]
fn a_mapping_lives_from_draft_to_ratified() {
    let proposed = Draft::new(EXAMPLE).propose(None).unwrap();
    let ratification = act("crm", proposed.digest());
    let ratified = ratify(proposed, ratification.clone()).unwrap();
    assert_eq!(ratified.stream("people").unwrap().table, "personnel");
    assert_eq!(ratified.bytes(), EXAMPLE.as_bytes());
    let again = verify(ratified.bytes(), &ratification).unwrap();
    assert_eq!(again.digest(), Digest::from_bytes(EXAMPLE.as_bytes()));
    assert_eq!(again.ratification(), &ratification);
}

#[test]
fn a_draft_with_problems_stays_a_draft() {
    let draft = Draft::new("[dataset]");
    let rejected = draft.clone().propose(None).unwrap_err();
    assert_eq!(rejected.draft, draft);
    assert!(
        rejected
            .problems
            .iter()
            .all(|problem| problem.code == ProblemCode::MissingKey)
    );
}

#[test]
fn ratifying_names_the_digest_and_the_dataset_of_what_was_read() {
    let proposed = || Draft::new(EXAMPLE).propose(None).unwrap();
    let other = Digest::from_bytes(b"something else");
    assert!(matches!(
        ratify(proposed(), act("crm", other)),
        Err(VerifyError::Digest { .. })
    ));
    let digest = proposed().digest();
    assert!(matches!(
        ratify(proposed(), act("hr", digest)),
        Err(VerifyError::Dataset { .. })
    ));
}

#[test]
fn ratified_bytes_that_no_longer_check_are_refused() {
    let bytes = b"[dataset]\nname = \"crm\"\n";
    let error = verify(bytes, &act("crm", Digest::from_bytes(bytes))).unwrap_err();
    assert!(matches!(error, VerifyError::Problems { problems } if !problems.is_empty()));
}

#[test]
fn every_flipped_bit_of_a_frozen_mapping_is_refused() {
    let text = print(&verify_example());
    let ratification = act("crm", Digest::from_bytes(text.as_bytes()));
    assert!(verify(text.as_bytes(), &ratification).is_ok());
    let mut bytes = text.into_bytes();
    for at in 0..bytes.len() {
        for bit in 0..8 {
            bytes[at] ^= 1 << bit;
            let error = verify(&bytes, &ratification).unwrap_err();
            assert!(
                matches!(error, VerifyError::Digest { .. }),
                "byte {at}, bit {bit}"
            );
            bytes[at] ^= 1 << bit;
        }
    }
    bytes.pop();
    assert!(verify(&bytes, &ratification).is_err());
}

fn verify_example() -> Mapping {
    Draft::new(EXAMPLE).propose(None).unwrap().mapping().clone()
}

/// A step that a caller might try.
#[derive(Debug, Clone)]
enum Step {
    Propose,
    Ratify {
        digest_of: usize,
        dataset: usize,
    },
    Verify {
        bytes: usize,
        digest_of: usize,
        dataset: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        Just(Step::Propose),
        (0_usize..3, 0_usize..2)
            .prop_map(|(digest_of, dataset)| Step::Ratify { digest_of, dataset }),
        (0_usize..3, 0_usize..3, 0_usize..2).prop_map(|(bytes, digest_of, dataset)| {
            Step::Verify {
                bytes,
                digest_of,
                dataset,
            }
        }),
    ]
}

/// The state of a mapping.
enum State {
    Draft(Draft),
    Proposed(Proposed),
    Ratified(Ratified<Mapping>),
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Any steps in any order, over three documents of which one is broken: a ratified mapping has
    /// exactly the bytes of the digest in the act, and the name of the act's dataset.
    #[test]
    fn nothing_is_ratified_but_the_bytes_an_act_names(
        first in mapping(),
        second in mapping(),
        start in 0_usize..3,
        steps in prop::collection::vec(step(), 1..12),
    ) {
        let documents = [print(&first), print(&second), "[dataset]\nname = \"crm\"\n".to_owned()];
        let names = [first.dataset.name.value.clone(), "another".to_owned()];
        let digest = |at: usize| Digest::from_bytes(documents[at].as_bytes());
        let mut state = State::Draft(Draft::new(documents[start].as_str()));
        for step in steps {
            state = match (state, step) {
                (State::Draft(draft), Step::Propose) => match draft.propose(None) {
                    Ok(proposed) => State::Proposed(proposed),
                    Err(rejected) => State::Draft(rejected.draft),
                },
                (State::Proposed(proposed), Step::Ratify { digest_of, dataset }) => {
                    let act = act(&names[dataset], digest(digest_of));
                    let right = proposed.digest() == act.digest
                        && proposed.mapping().dataset.name == act.dataset.as_str();
                    let answer = ratify(proposed.clone(), act);
                    prop_assert_eq!(answer.is_ok(), right);
                    answer.map_or(State::Proposed(proposed), State::Ratified)
                }
                (state, Step::Verify { bytes, digest_of, dataset }) => {
                    let act = act(&names[dataset], digest(digest_of));
                    let answer = verify(documents[bytes].as_bytes(), &act);
                    let draft = Draft::new(documents[bytes].as_str());
                    let right = documents[bytes] == documents[digest_of]
                        && draft.propose(None).is_ok_and(|proposed| {
                            proposed.mapping().dataset.name == act.dataset.as_str()
                        });
                    prop_assert_eq!(answer.is_ok(), right);
                    answer.map_or(state, State::Ratified)
                }
                (state, _) => state,
            };
            if let State::Ratified(ratified) = &state {
                let act = ratified.ratification();
                prop_assert_eq!(Digest::from_bytes(ratified.bytes()), act.digest);
                prop_assert_eq!(&ratified.dataset.name.value, &act.dataset);
            }
        }
    }
}
