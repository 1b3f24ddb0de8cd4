//! An observer sees every message once, whatever its kind, outcome and transport.

mod cases;
mod client;
pub(crate) mod recorder;
mod replies;
use std::sync::Arc;

use self::cases::{Case, EraTransport, ExpectedOutcome, ID, WAYS, cases, generated};
use self::client::{Client, Gatekeeper, server};
use self::recorder::{RecordedOutcome, Recorder, fates};
use crate::support::{LOST, http::Listening, meta, pipe::Pipe};
use bytes::Bytes;
use http::Method;
use http_body_util::Full;
use serde_json::{Value, json};
use tokio::time::timeout;
use wayleave_mcp::{Allowance, Budget, Caller, Carrier, RefusalReason, http::Options};

fn matches_expected(fate: &RecordedOutcome, expected: &ExpectedOutcome) -> bool {
    match expected {
        ExpectedOutcome::Completed { .. } => *fate == RecordedOutcome::Completed,
        ExpectedOutcome::ToolError => *fate == RecordedOutcome::ToolError,
        ExpectedOutcome::Failed => matches!(fate, RecordedOutcome::Failed(_)),
        ExpectedOutcome::Refused(reason) => *fate == RecordedOutcome::Refused(*reason),
        ExpectedOutcome::NotDone => matches!(
            fate,
            RecordedOutcome::Refused(_) | RecordedOutcome::Failed(_)
        ),
        ExpectedOutcome::Open => matches!(
            fate,
            RecordedOutcome::Completed | RecordedOutcome::Abandoned
        ),
        ExpectedOutcome::Any => *fate != RecordedOutcome::Begun,
        ExpectedOutcome::Unseen => false,
    }
}

/// Sends one message and checks that it is observed once, with the right facts.
async fn check(way: EraTransport, case: &Case, prepare: impl Fn(&Gatekeeper, &Budget)) {
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
    let mut client = Client::begin(way, &server, &gate).await;
    let before = way.opening_messages();
    recorder.saw(before, &case.name).await;
    prepare(&gate, &budget);
    let answer = client.send(case).await;
    let expected = before + usize::from(!matches!(case.expected, ExpectedOutcome::Unseen));
    recorder.saw(expected, &case.name).await;
    client.leave().await;

    let entries = recorder.entries.lock().unwrap();
    assert_eq!(entries.len(), expected, "{}", case.name);
    for entry in entries.iter().take(before) {
        assert_eq!(entry.fate, RecordedOutcome::Completed, "{}", case.name);
    }
    let Some(entry) = entries.get(before) else {
        return;
    };
    let fate = &entry.fate;
    assert!(
        matches_expected(fate, &case.expected),
        "{}: {fate:?}",
        case.name
    );
    let carrier = if way.is_http() {
        Carrier::Http
    } else {
        Carrier::Pipe
    };
    assert_eq!(entry.facts.carrier, carrier, "{}", case.name);
    if let ExpectedOutcome::Completed { meta: true } | ExpectedOutcome::ToolError = case.expected {
        assert_eq!(entry.facts.method.as_deref(), Some(&*case.method));
        assert_eq!(entry.facts.id, ID);
        assert_eq!(entry.facts.caller.as_ref().unwrap().subject(), "alice");
        let answer = answer.unwrap();
        assert_eq!(
            answer["result"]["_meta"]["test/activity"], before,
            "{answer}"
        );
    }
}

#[tokio::test]
async fn every_kind_of_message_is_seen_once_by_every_carrier_in_every_era() {
    for way in WAYS {
        for case in cases(way) {
            check(way, &case, |_, _| ()).await;
        }
    }
}

#[tokio::test]
async fn every_method_in_every_spelling_is_seen_once_by_every_carrier_in_every_era() {
    for way in WAYS {
        for case in generated(way) {
            check(way, &case, |_, _| ()).await;
        }
    }
}

#[tokio::test]
async fn what_a_budget_has_no_room_for_is_seen_once_as_refused() {
    for way in WAYS {
        for mut case in cases(way).into_iter().chain(generated(way)) {
            let is_request = serde_json::from_slice::<Value>(&case.body)
                .is_ok_and(|body| body["id"] == ID && body.get("method").is_some());
            if is_request {
                case.expected = ExpectedOutcome::Refused(RefusalReason::Budget);
                check(way, &case, |_, budget| while budget.take().is_ok() {}).await;
            }
        }
    }
}

#[tokio::test]
async fn what_comes_without_authorization_is_seen_once_as_refused() {
    for way in WAYS {
        for mut case in cases(way).into_iter().chain(generated(way)) {
            let is_answer = matches!(case.expected, ExpectedOutcome::Unseen);
            let is_long = case.body.len() > 1024 * 1024;
            if is_answer || is_long {
                continue;
            }
            case.expected = ExpectedOutcome::Refused(RefusalReason::Authorization);
            let close = |gate: &Gatekeeper, _: &Budget| {
                gate.closed.store(true, std::sync::atomic::Ordering::SeqCst);
            };
            check(way, &case, close).await;
        }
    }
}

#[tokio::test]
async fn what_http_itself_refuses_is_seen_once() {
    use RefusalReason::{Authorization, Malformed};
    let recorder = Arc::<Recorder>::default();
    let listening = Listening::start(&server(&recorder), Options::default()).await;
    let client = listening.client();
    let call = || {
        Full::new(Bytes::from_static(
            br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
        ))
    };
    for (name, value, reason) in [
        ("host", "evil.example", Authorization),
        ("origin", "https://evil.example", Authorization),
        ("mcp-session-id", "unknown", Malformed),
        ("content-type", "text/plain", Malformed),
        ("accept", "text/html", Malformed),
    ] {
        let mut request = client.request(Method::POST).body(call()).unwrap();
        request.headers_mut().insert(name, value.parse().unwrap());
        let before = recorder.count();
        client.send(request).await;
        recorder.saw(before + 1, name).await;
        let fates = fates(&recorder);
        assert_eq!(
            fates.last(),
            Some(&RecordedOutcome::Refused(reason)),
            "{name}"
        );
        assert_eq!(fates.len(), before + 1, "{name}");
    }
    let count = recorder.count();
    // Neither request carries a message.
    client.send(client.get("unknown")).await;
    let delete = client
        .request(Method::DELETE)
        .body(Full::default())
        .unwrap();
    client.send(delete).await;
    listening.stop.cancel();
    listening.done.await.unwrap();
    assert_eq!(recorder.count(), count);
}

#[tokio::test]
async fn a_ping_before_the_handshake_and_a_notification_that_comes_first_are_seen_once() {
    let recorder = Arc::<Recorder>::default();
    let mut pipe = Pipe::raw(&server(&recorder), Caller::anonymous());
    pipe.ask("ping", json!({})).await.unwrap();
    pipe.say(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
        .await;
    pipe.ask("server/discover", json!({ "_meta": meta() }))
        .await
        .unwrap();
    pipe.initialize().await;
    pipe.leave().await.unwrap();
    assert_eq!(
        fates(&recorder),
        [
            RecordedOutcome::Completed,
            RecordedOutcome::Refused(RefusalReason::Protocol),
            RecordedOutcome::Completed,
            RecordedOutcome::Completed,
            RecordedOutcome::Completed
        ]
    );
}

#[tokio::test]
async fn a_call_that_gets_no_turn_on_a_pipe_is_seen_once_as_refused() {
    let recorder = Arc::<Recorder>::default();
    let server = server(&recorder);
    let controlled = crate::support::controlled_tool("slow");
    server.registry().add_tool(controlled.tool);
    let budget = Budget::new(Allowance {
        per_minute: 6000,
        burst: 100,
        concurrent: 1,
        streams: 1,
    });
    let mut pipe = Pipe::raw(&server, Caller::new("alice").with_budget(budget.into()));
    pipe.initialize().await;
    let slow = pipe.send("tools/call", json!({ "name": "slow" })).await;
    timeout(LOST, controlled.running.notified()).await.unwrap();
    assert_eq!(pipe.call("ok", json!({})).await.unwrap()["isError"], true);
    controlled.go_on.notify_one();
    pipe.answer(slow).await;
    pipe.leave().await.unwrap();
    assert_eq!(
        fates(&recorder),
        [
            RecordedOutcome::Completed,
            RecordedOutcome::Completed,
            RecordedOutcome::Completed,
            RecordedOutcome::Refused(RefusalReason::Budget)
        ]
    );
}

#[tokio::test]
async fn a_call_whose_client_leaves_is_seen_once_and_not_as_completed() {
    for way in [EraTransport::StatelessHttp, EraTransport::SessionHttp] {
        let recorder = Arc::<Recorder>::default();
        let server = server(&recorder);
        let controlled = crate::support::controlled_tool("slow");
        server.registry().add_tool(controlled.tool);
        let gate = Gatekeeper::new(Caller::anonymous());
        let client = Client::begin(way, &server, &gate).await;
        let before = recorder.count();
        let Client::Http(listening, session) = client else {
            panic!("not over HTTP")
        };
        let params = json!({ "name": "slow" });
        let http = listening.client();
        let request = match session {
            Some(session) => http.in_session(&session, "tools/call", &params),
            None => http.stateless("tools/call", params),
        };
        let calling = tokio::spawn(async move { http.send(request).await.status });
        timeout(LOST, controlled.running.notified()).await.unwrap();
        calling.abort();
        timeout(LOST, controlled.ended.notified()).await.unwrap();
        listening.stop.cancel();
        listening.done.await.unwrap();
        let fates = fates(&recorder);
        assert_eq!(fates.len(), before + 1, "{way:?}");
        let left = fates.last().unwrap();
        assert!(
            matches!(
                left,
                RecordedOutcome::Abandoned | RecordedOutcome::Cancelled
            ),
            "{way:?} {left:?}"
        );
    }
}
