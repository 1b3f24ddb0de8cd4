use tempfile::TempDir;

use super::*;
use crate::{Project, datasets::fixture::mapping, project::ONTOLOGY, review::ReviewError};

const DAY: Millis = 24 * 3600 * 1000;

fn project() -> (TempDir, Project) {
    let folder = tempfile::tempdir().unwrap();
    let project = Project::create(folder.path(), "").unwrap();
    (folder, project)
}

fn new(token: &str, dataset: &str, text: &str) -> NewProposal {
    NewProposal {
        dataset: dataset.to_owned(),
        text: text.to_owned(),
        reason: "to look".to_owned(),
        proposer: Proposer {
            token: Some(token.to_owned()),
            name: token.to_owned(),
        },
    }
}

fn decision(outcome: InboxOutcome, at: Millis) -> InboxDecision {
    InboxDecision {
        outcome,
        who: "ana".to_owned(),
        at,
        comment: "no".to_owned(),
    }
}

#[test]
fn a_token_replaces_its_own_waiting_proposal_and_nobody_elses() {
    let (_folder, project) = project();
    let inbox = ProposalInbox::new(&project);
    let first = inbox.submit(new("t_a", "shop", "one"), 1).unwrap();
    let other = inbox.submit(new("t_b", "shop", "two"), 2).unwrap();
    let again = inbox.submit(new("t_a", "shop", "three"), 3).unwrap();
    assert_eq!((first.id, other.id, again.id), (1, 2, 1));
    assert_eq!((again.at, again.revised), (1, Some(3)));
    assert_eq!(inbox.get(2).unwrap().text, "two");
    assert_eq!(inbox.waiting(4).unwrap(), 2);
}

#[test]
fn only_what_was_read_is_decided_and_only_once() {
    let (_folder, project) = project();
    let inbox = ProposalInbox::new(&project);
    let read = inbox.submit(new("t_a", "shop", "one"), 1).unwrap().digest;
    let now = inbox.submit(new("t_a", "shop", "two"), 2).unwrap().digest;
    let stale = inbox.decide(1, read, decision(InboxOutcome::Ratified, 3));
    assert!(
        matches!(stale, Err(InboxError::Replaced { .. })),
        "{stale:?}"
    );
    inbox
        .decide(1, now, decision(InboxOutcome::Returned, 4))
        .unwrap();
    let twice = inbox.decide(1, now, decision(InboxOutcome::Ratified, 5));
    assert!(
        matches!(twice, Err(InboxError::Decided { .. })),
        "{twice:?}"
    );
    let next = inbox.submit(new("t_a", "shop", "three"), 6).unwrap();
    assert_eq!((next.id, next.follows), (2, Some(1)));
}

#[test]
fn proposals_are_bounded_in_number_and_size() {
    let (_folder, project) = project();
    let inbox = ProposalInbox::new(&project);
    for n in 0..MAX_WAITING_PER_TOKEN {
        inbox.submit(new("t_a", &format!("d{n}"), "x"), 1).unwrap();
    }
    let full = inbox.submit(new("t_a", "one-more", "x"), 1);
    assert!(matches!(full, Err(InboxError::Full { .. })), "{full:?}");
    inbox.submit(new("t_b", "one-more", "x"), 1).unwrap();
    let huge = "x".repeat(MAX_PROPOSAL_BYTES + 1);
    let huge = inbox.submit(new("t_c", "huge", &huge), 1);
    assert!(matches!(huge, Err(InboxError::TooLarge { .. })), "{huge:?}");
}

#[test]
fn a_proposal_expires_then_goes_and_its_number_is_never_given_again() {
    let (_folder, project) = project();
    let inbox = ProposalInbox::new(&project);
    let digest = inbox.submit(new("t_a", "shop", "one"), 0).unwrap().digest;
    assert_eq!(
        inbox.get(1).unwrap().status(14 * DAY - 1),
        InboxStatus::Waiting
    );
    assert_eq!(inbox.get(1).unwrap().status(14 * DAY), InboxStatus::Expired);
    let late = inbox.decide(1, digest, decision(InboxOutcome::Ratified, 14 * DAY));
    assert!(matches!(late, Err(InboxError::Decided { .. })), "{late:?}");
    let next = inbox.submit(new("t_a", "shop", "two"), 44 * DAY).unwrap();
    assert_eq!(next.id, 2);
    assert!(matches!(inbox.get(1), Err(InboxError::Unknown { .. })));
}

#[test]
fn no_number_is_given_while_the_last_one_cannot_be_read() {
    let (folder, project) = project();
    let inbox = ProposalInbox::new(&project);
    inbox.submit(new("t_a", "shop", "one"), 0).unwrap();
    let last = folder.path().join(".wayleave/inbox/last");
    // The first proposal is removed by then, so nothing else tells its number.
    let next = || inbox.submit(new("t_a", "shop", "two"), 44 * DAY);
    for damage in [&b""[..], b"one", b"-1", b"\xff"] {
        std::fs::write(&last, damage).unwrap();
        let refused = next();
        assert!(
            matches!(refused, Err(InboxError::Disk { .. })),
            "{refused:?}"
        );
    }
    std::fs::remove_file(&last).unwrap();
    std::fs::create_dir(&last).unwrap();
    let refused = next();
    assert!(
        matches!(refused, Err(InboxError::Disk { .. })),
        "{refused:?}"
    );
    std::fs::remove_dir(&last).unwrap();
    std::fs::write(&last, "1").unwrap();
    assert_eq!(next().unwrap().id, 2);
}

#[test]
fn words_that_hold_a_credential_or_hide_characters_are_refused() {
    let (_folder, project) = project();
    let inbox = ProposalInbox::new(&project);
    for reason in ["postgres://u:hunter2@h/db", "a\u{202e}b", "a\u{1b}[2J"] {
        let proposal = NewProposal {
            reason: reason.to_owned(),
            ..new("t_a", "shop", "x")
        };
        let refused = inbox.submit(proposal, 1).unwrap_err();
        assert!(matches!(refused, InboxError::Text(_)), "{refused:?}");
        assert!(!refused.to_string().contains("hunter2"));
    }
}

#[test]
fn a_file_that_was_altered_is_not_shown_and_hides_no_other() {
    let (folder, project) = project();
    let inbox = ProposalInbox::new(&project);
    inbox.submit(new("t_a", "shop", "one"), 1).unwrap();
    inbox.submit(new("t_a", "other", "two"), 1).unwrap();
    let path = folder.path().join(".wayleave/inbox/1.json");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("\"one\"", "\"0ne\"")).unwrap();
    let left: Vec<u64> = inbox.list().unwrap().iter().map(|it| it.id).collect();
    assert_eq!(left, [2]);
    assert_eq!(inbox.listing().unwrap().unreadable, [1]);
}

#[tokio::test]
async fn no_proposal_is_reviewed_without_the_vocabulary_that_the_project_has() {
    let (folder, project) = project();
    let inbox = ProposalInbox::new(&project);
    let text = mapping("crm", "crm-eu", "");
    let proposal = inbox.submit(new("t_a", "crm", &text), 1).unwrap();
    review(&project, &proposal).await.unwrap();
    std::fs::write(folder.path().join(ONTOLOGY), "not TOML").unwrap();
    let refused = review(&project, &proposal).await.unwrap_err();
    let ReviewError::InvalidDraft { report, .. } = refused else {
        panic!("{refused:?}");
    };
    assert!(report.ontology.is_some() && !report.is_sound());
}
