//! JSON-RPC batches: accepted in sessions of revision 2025-03-26, and nowhere else.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::{Arc, Mutex},
};

use crate::observer::recorder::{RecordedOutcome, Recorder, fates};
use crate::support::{
    LOST, controlled_tool,
    http::{Http, Listening},
    pipe::Pipe,
    server, text, tool,
};
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Method, Request, StatusCode, request::Parts};
use http_body_util::Full;
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use wayleave_mcp::{
    Allowance, Budget, Caller, RefusalReason, Registry, RpcError, Server,
    http::{Authenticate, Options, Rejection},
};

const WITH_BATCHES: &str = "2025-03-26";
const OTHERS: [&str; 3] = ["2024-11-05", "2025-06-18", "2025-11-25"];

fn initialize(revision: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": {
        "protocolVersion": revision, "capabilities": {},
        "clientInfo": { "name": "test", "version": "0" },
    } })
}

fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

fn call(id: u64, name: &str) -> Value {
    request(id, "tools/call", &json!({ "name": name }))
}

/// A client in a session of a given revision, over either transport.
enum Client {
    Pipe(Box<Pipe>),
    Http {
        http: Http,
        session: String,
        _listening: Listening,
    },
}

impl Client {
    async fn both(server: &Server, revision: &str, caller: &Caller) -> [Self; 2] {
        let mut pipe = Pipe::raw(server, caller.clone());
        pipe.say(initialize(revision)).await;
        let agreed = pipe.hear().await;
        assert_eq!(agreed["result"]["protocolVersion"], revision);
        pipe.say(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
            .await;
        let options = Options {
            authenticate: Arc::new(SingleCallerAuth(Arc::new(caller.clone()))),
            ..Options::default()
        };
        let listening = Listening::start(server, options).await;
        let http = listening.client();
        let reply = http.post(initialize(revision).to_string()).await;
        assert_eq!(reply.json()["result"]["protocolVersion"], revision);
        let session = reply.headers["mcp-session-id"].to_str().unwrap().to_owned();
        [
            Self::Pipe(Box::new(pipe)),
            Self::Http {
                http,
                session,
                _listening: listening,
            },
        ]
    }

    /// Sends a body and returns the answer; `None` if the body has no request.
    async fn send(&mut self, body: &Value) -> Option<Value> {
        match self {
            Self::Pipe(pipe) => {
                let expects = |it: &Value| {
                    it.get("id").is_some() && it.get("method").is_some()
                        || it.get("method").is_none() && it.get("result").is_none()
                };
                let expects = match body {
                    Value::Array(members) => members.is_empty() || members.iter().any(expects),
                    one => expects(one),
                };
                pipe.say(body.clone()).await;
                if expects {
                    Some(pipe.hear().await)
                } else {
                    None
                }
            }
            Self::Http { http, session, .. } => {
                let reply = http.send(posted(http, session, body)).await;
                (!reply.body.is_empty()).then(|| reply.json())
            }
        }
    }
}

fn posted(http: &Http, session: &str, body: &Value) -> Request<Full<Bytes>> {
    let request = http.request(Method::POST).header("mcp-session-id", session);
    request.body(Full::new(body.to_string().into())).unwrap()
}

struct SingleCallerAuth(Arc<Caller>);

impl Authenticate for SingleCallerAuth {
    fn authenticate<'r>(&'r self, _: &'r Parts) -> BoxFuture<'r, Result<Arc<Caller>, Rejection>> {
        Box::pin(std::future::ready(Ok(Arc::clone(&self.0))))
    }
}

/// Admits each request as the next of these callers, and none after the last.
struct Admissions(Mutex<VecDeque<Arc<Caller>>>);

impl Authenticate for Admissions {
    fn authenticate<'r>(&'r self, _: &'r Parts) -> BoxFuture<'r, Result<Arc<Caller>, Rejection>> {
        let next = self.0.lock().unwrap().pop_front();
        Box::pin(std::future::ready(next.ok_or(Rejection {
            status: StatusCode::UNAUTHORIZED,
            challenge: None,
            error: RpcError::new(RpcError::UNAUTHENTICATED, "closed"),
        })))
    }
}

fn served() -> (Registry, Server) {
    let (registry, server) = server();
    registry.add_tool(tool("ok", "ok"));
    (registry, server)
}

/// The answers by id.
fn by_id(answers: &Value) -> std::collections::BTreeMap<String, Value> {
    let all = answers.as_array().unwrap_or_else(|| panic!("{answers}"));
    let named = all.iter().map(|it| (it["id"].to_string(), it.clone()));
    let named: std::collections::BTreeMap<_, _> = named.collect();
    assert_eq!(named.len(), all.len(), "{answers}");
    named
}

#[tokio::test]
async fn every_message_of_a_batch_is_carried_out_and_answered_in_one_array() {
    let (_registry, server) = served();
    for mut client in Client::both(&server, WITH_BATCHES, &Caller::anonymous()).await {
        let batch = json!([
            call(1, "ok"),
            request(2, "tools/list", &json!({})),
            request(3, "ping", &json!({})),
            { "jsonrpc": "2.0", "method": "notifications/initialized" },
            call(4, "unknown"),
            request(5, "no/such", &json!({})),
            initialize(WITH_BATCHES),
            17,
            { "jsonrpc": "2.0", "id": 9, "result": {} },
        ]);
        let answers = by_id(&client.send(&batch).await.unwrap());
        assert_eq!(answers.len(), 7, "{answers:?}");
        assert_eq!(text(&answers["1"]["result"]), "ok");
        assert_eq!(answers["2"]["result"]["tools"][0]["name"], "ok");
        assert!(answers["3"]["result"].is_object());
        assert!(answers["4"]["error"].is_object() || answers["4"]["result"]["isError"] == true);
        for refused in ["5", "\"hello\"", "null"] {
            assert_eq!(answers[refused]["error"]["code"], -32600, "{refused}");
        }
        // The session still accepts single messages.
        let alone = client.send(&call(10, "ok")).await.unwrap();
        assert_eq!(text(&alone["result"]), "ok");
    }
}

#[tokio::test]
async fn a_batch_without_requests_takes_no_answer() {
    let (_registry, server) = served();
    for mut client in Client::both(&server, WITH_BATCHES, &Caller::anonymous()).await {
        let notices = json!([
            { "jsonrpc": "2.0", "method": "notifications/initialized" },
            { "jsonrpc": "2.0", "id": 9, "result": {} },
        ]);
        assert_eq!(client.send(&notices).await, None);
        let alone = client.send(&call(1, "ok")).await.unwrap();
        assert_eq!(text(&alone["result"]), "ok");
    }
}

#[tokio::test]
async fn an_error_without_an_id_does_not_hold_the_answers_of_its_batch() {
    let (_registry, server) = served();
    for mut client in Client::both(&server, WITH_BATCHES, &Caller::anonymous()).await {
        let error = json!({ "jsonrpc": "2.0", "error": { "code": -32603, "message": "lost" } });
        let batch = json!([error, call(1, "ok")]);
        let answers = client.send(&batch).await.unwrap();
        let of_call = answers.as_array().unwrap().iter().find(|it| it["id"] == 1);
        assert_eq!(text(&of_call.unwrap()["result"]), "ok", "{answers}");
    }
}

#[tokio::test]
async fn a_malformed_notification_in_a_batch_is_not_answered_and_does_not_release_the_others() {
    let (registry, server) = served();
    let slow = controlled_tool("slow");
    registry.add_tool(slow.tool.clone());
    let [pipe, _http] = Client::both(&server, WITH_BATCHES, &Caller::anonymous()).await;
    let Client::Pipe(mut pipe) = pipe else {
        unreachable!()
    };
    let malformed = json!({ "jsonrpc": "2.0", "method": 5 });
    pipe.say(json!([call(1, "slow"), malformed])).await;
    timeout(LOST, slow.running.notified()).await.unwrap();
    // A premature array would come before this answer, or be among the rest.
    pipe.say(call(2, "ok")).await;
    assert_eq!(pipe.hear().await["id"], 2);
    slow.go_on.notify_one();
    let answers = by_id(&pipe.hear().await);
    assert_eq!(answers.keys().collect::<Vec<_>>(), ["1"]);
    assert_eq!(text(&answers["1"]["result"]), "finished");
    assert_eq!(pipe.rest().await, Vec::<Value>::new());
}

#[tokio::test]
async fn a_batch_has_a_bounded_number_of_messages() {
    let (_registry, server) = served();
    for mut client in Client::both(&server, WITH_BATCHES, &Caller::anonymous()).await {
        let of = |many: u64| Value::Array((0..many).map(|id| call(id, "ok")).collect());
        let whole = client.send(&of(64)).await.unwrap();
        assert_eq!(by_id(&whole).len(), 64);
        for wrong in [of(65), of(0)] {
            let refused = client.send(&wrong).await.unwrap();
            assert_eq!(refused["error"]["code"], -32600, "{refused}");
        }
    }
}

#[tokio::test]
async fn a_batch_is_refused_where_another_revision_was_agreed_on() {
    let (_registry, server) = served();
    for revision in OTHERS {
        for mut client in Client::both(&server, revision, &Caller::anonymous()).await {
            let refused = client.send(&json!([call(1, "ok")])).await.unwrap();
            assert_eq!(refused["error"]["code"], -32600, "{revision}: {refused}");
            let alone = client.send(&call(2, "ok")).await.unwrap();
            assert_eq!(text(&alone["result"]), "ok");
        }
    }
}

#[tokio::test]
async fn every_message_of_a_batch_is_charged_and_observed_like_one_that_comes_alone() {
    let (registry, server) = served();
    let recorder = Arc::new(Recorder::default());
    let server = server.with_observer(recorder.clone());
    drop(registry);
    for at in 0..2 {
        let allowance = Allowance {
            per_minute: 1,
            burst: 4,
            concurrent: 8,
            streams: 1,
        };
        let caller = Caller::new("alice").with_budget(Budget::new(allowance).into());
        // The budget is four; beginning each of the two sessions takes one of it.
        let [pipe, http] = Client::both(&server, WITH_BATCHES, &caller).await;
        let mut client = if at == 0 { pipe } else { http };
        let before = recorder.entries.lock().unwrap().len();
        let calls = (1..=6).map(|id| call(id, "ok")).collect();
        let answers = by_id(&client.send(&Value::Array(calls)).await.unwrap());
        assert_eq!(answers.len(), 6);
        let done = |it: &&Value| it["result"]["content"][0]["text"] == "ok";
        let done = answers.values().filter(done).count();
        assert!((1..=3).contains(&done), "{done}: {answers:?}");
        let entries = recorder.entries.lock().unwrap();
        let seen = &entries[before..];
        assert_eq!(seen.len(), 6, "each message once, and the batch not at all");
        let completed = seen
            .iter()
            .filter(|it| it.fate == RecordedOutcome::Completed)
            .count();
        assert_eq!(completed, done);
        let refused = RefusalReason::Budget;
        let refused = seen
            .iter()
            .filter(|it| it.fate == RecordedOutcome::Refused(refused))
            .count();
        assert_eq!(refused, 6 - done);
        assert!(
            seen.iter()
                .all(|it| it.facts.method.as_deref() == Some("tools/call"))
        );
    }
}

#[tokio::test]
async fn every_answer_in_a_batch_names_what_was_recorded_of_its_message() {
    let (_registry, server) = served();
    let recorder = Arc::new(Recorder::default());
    let server = server.with_observer(recorder.clone());
    for mut client in Client::both(&server, WITH_BATCHES, &Caller::anonymous()).await {
        let batch = json!([
            call(1, "ok"),
            call(2, "unknown"),
            request(3, "no/such", &json!({})),
            initialize(WITH_BATCHES),
            17,
            { "jsonrpc": "2.0", "id": "x".repeat(2000), "method": "ping" },
        ]);
        let answers = client.send(&batch).await.unwrap();
        let entries = recorder.entries.lock().unwrap();
        let mut named = BTreeSet::new();
        for answer in answers.as_array().unwrap() {
            let meta = match answer.get("error") {
                Some(error) => &error["data"]["_meta"],
                None => &answer["result"]["_meta"],
            };
            let at = meta["test/activity"].as_u64();
            let at = at.unwrap_or_else(|| panic!("unnamed: {answer}"));
            let entry = &entries[usize::try_from(at).unwrap()];
            if !answer["id"].is_null() {
                assert_eq!(entry.facts.id, answer["id"]);
            }
            named.insert(at);
        }
        assert_eq!(named.len(), 6, "{answers}");
    }
}

#[tokio::test]
async fn a_batch_whose_sender_loses_its_authorization_is_observed_once_as_refused() {
    let (_registry, server) = served();
    let recorder = Arc::new(Recorder::default());
    let server = server.with_observer(recorder.clone());
    let over = CancellationToken::new();
    over.cancel();
    // The second caller is admitted, but its authorization is over once the batch is whole.
    let admitted = [
        Caller::new("alice"),
        Caller::new("alice").with_revocation(over),
    ];
    let admitted = admitted.map(Arc::new).into();
    let options = Options {
        authenticate: Arc::new(Admissions(Mutex::new(admitted))),
        ..Options::default()
    };
    let listening = Listening::start(&server, options).await;
    let http = listening.client();
    let begun = http.post(initialize(WITH_BATCHES).to_string()).await;
    let session = begun.headers["mcp-session-id"].to_str().unwrap();
    let before = recorder.count();
    let batch = json!([call(1, "ok"), call(2, "ok")]);
    let reply = http.send(posted(&http, session, &batch)).await;
    assert_eq!(reply.status, 401);
    let named = &reply.json()["error"]["data"]["_meta"]["test/activity"];
    assert_eq!(*named, before);
    let refused = RecordedOutcome::Refused(RefusalReason::Authorization);
    assert_eq!(fates(&recorder)[before..], [refused]);
}

#[tokio::test]
async fn a_call_of_a_batch_can_be_cancelled_and_the_others_are_answered() {
    let (registry, server) = served();
    let slow = controlled_tool("slow");
    registry.add_tool(slow.tool.clone());
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": { "requestId": 1 } });
    let batch = json!([call(1, "slow"), call(2, "ok")]);
    let [pipe, http] = Client::both(&server, WITH_BATCHES, &Caller::anonymous()).await;
    let Client::Pipe(mut pipe) = pipe else {
        unreachable!()
    };
    pipe.say(batch.clone()).await;
    timeout(LOST, slow.running.notified()).await.unwrap();
    pipe.say(cancel.clone()).await;
    let answers = by_id(&pipe.hear().await);
    assert_eq!(answers.keys().collect::<Vec<_>>(), ["2"]);
    let Client::Http {
        http,
        session,
        _listening,
    } = http
    else {
        unreachable!()
    };
    let sent = http.send(posted(&http, &session, &batch));
    let cancelled = async {
        timeout(LOST, slow.running.notified()).await.unwrap();
        http.send(posted(&http, &session, &cancel)).await
    };
    let (answered, cancelled) = tokio::join!(sent, cancelled);
    assert_eq!(cancelled.status, 202);
    let answers = by_id(&answered.json());
    assert_eq!(answers.keys().collect::<Vec<_>>(), ["2"]);
}
