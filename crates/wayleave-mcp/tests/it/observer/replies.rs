//! Replies contain what the observer adds to them; if recording fails, the reply is an error.

use std::sync::{Arc, atomic::Ordering};

use serde_json::{Value, json};
use wayleave_mcp::{Allowance, Budget, Caller};

use super::cases::{Case, EraTransport, ExpectedOutcome, WAYS, cases, generated};
use super::client::{Client, Gatekeeper, server};
use super::recorder::Recorder;

/// The conversation in which a message is sent.
enum Conversation {
    Open,
    /// The caller's budget is spent.
    Spent,
    /// The caller is no longer admitted.
    Closed,
}

impl Conversation {
    /// Returns the answers to a message, and the index of its record.
    async fn answers(
        &self,
        way: EraTransport,
        case: &Case,
        is_failing: bool,
    ) -> (Vec<Value>, usize) {
        let recorder = Arc::<Recorder>::default();
        let server = server(&recorder);
        let budget = Arc::new(Budget::new(Allowance {
            per_minute: 1,
            burst: 100,
            concurrent: 4,
            streams: 4,
        }));
        let caller = Caller::new("alice")
            .with_view("all")
            .with_budget(budget.clone());
        let gate = Gatekeeper::new(caller);
        let client = Client::begin(way, &server, &gate).await;
        let before = way.opening_messages();
        recorder.saw(before, &case.name).await;
        recorder.is_failing.store(is_failing, Ordering::SeqCst);
        match self {
            Self::Open => {}
            Self::Spent => while budget.take().is_ok() {},
            Self::Closed => gate.closed.store(true, Ordering::SeqCst),
        }
        (client.answers(case).await, before)
    }
}

fn messages(way: EraTransport) -> Vec<Case> {
    let is_answered = |case: &Case| {
        !matches!(
            case.expected,
            ExpectedOutcome::Open | ExpectedOutcome::Unseen
        )
    };
    let is_short = |case: &Case| case.body.len() < 1024 * 1024;
    let all = cases(way).into_iter().chain(generated(way));
    all.filter(|it| is_answered(it) && is_short(it)).collect()
}

#[tokio::test]
async fn no_answer_is_sent_whose_message_cannot_be_recorded() {
    let (mut count, mut sent) = (0, Vec::new());
    for way in WAYS {
        for conversation in [
            Conversation::Open,
            Conversation::Spent,
            Conversation::Closed,
        ] {
            for case in messages(way) {
                for answer in conversation.answers(way, &case, true).await.0 {
                    if answer["error"]["data"]["reason"] != "audit_unavailable" {
                        sent.push(format!("{}: {answer}", case.name));
                    }
                    count += 1;
                }
            }
        }
    }
    assert!(
        sent.is_empty(),
        "{} of {count}:\n{}",
        sent.len(),
        sent.join("\n")
    );
    assert!(count > 300, "{count} answers");
}

#[tokio::test]
async fn every_answer_names_what_was_recorded_of_its_message() {
    let (mut count, mut unnamed) = (0, Vec::new());
    for way in WAYS {
        for conversation in [
            Conversation::Open,
            Conversation::Spent,
            Conversation::Closed,
        ] {
            for case in messages(way) {
                let (answers, before) = conversation.answers(way, &case, false).await;
                for answer in answers {
                    if answer["result"] == json!({}) {
                        // Empty results come from the SDK itself, and have no room for the index.
                        continue;
                    }
                    let named = match answer.get("error") {
                        Some(error) => &error["data"]["_meta"]["test/activity"],
                        None => &answer["result"]["_meta"]["test/activity"],
                    };
                    if *named != before {
                        unnamed.push(format!("{}: {answer}", case.name));
                    }
                    count += 1;
                }
            }
        }
    }
    assert!(
        unnamed.is_empty(),
        "{} of {count}:\n{}",
        unnamed.len(),
        unnamed.join("\n")
    );
    assert!(count > 300, "{count} answers");
}
