//! Limits of the HTTP transport on size, time, number and idle time, and the release of resources.

use std::{sync::Arc, time::Duration};

use crate::support::{
    LOST,
    connection::Connection,
    http::{Http, Listening, limited, started, still_serves},
};
use futures::future::BoxFuture;
use http::{StatusCode, request::Parts};
use http_body_util::BodyExt as _;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use wayleave_mcp::{
    Allowance, Budget, Caller, RpcError,
    http::{Authenticate, Limits, Options, Rejection},
};

/// Time within which a connection with a short `header_timeout` is closed. By default it would stay
/// open for twice as long.
const SOON: Duration = Duration::from_secs(5);

#[tokio::test]
async fn a_body_one_byte_too_large_is_413() {
    let listening = started(Options::default()).await;
    let client = listening.client();
    let reply = client.post(vec![b' '; 4 * 1024 * 1024 + 1]).await;
    assert_eq!((reply.status.as_u16(), reply.error_code()), (413, -32600));

    // The same without a declared length.
    let mut stream = TcpStream::connect(listening.address).await.unwrap();
    let head = "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                accept: application/json, text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let chunk = vec![b' '; 0x10_0000];
    for _ in 0..5 {
        let sent = async {
            stream.write_all(b"100000\r\n").await?;
            stream.write_all(&chunk).await?;
            stream.write_all(b"\r\n").await
        };
        if sent.await.is_err() {
            break;
        }
    }
    let mut answer = [0; 12];
    let read = timeout(LOST, stream.read_exact(&mut answer)).await;
    read.unwrap().unwrap();
    assert_eq!(&answer, b"HTTP/1.1 413");
    still_serves(&client).await;
}

#[tokio::test]
async fn a_client_that_sends_all_before_it_reads_learns_that_the_body_is_too_large() {
    let listening = started(Options::default()).await;
    let body = vec![b' '; 12 * 1024 * 1024];
    let mut stream = TcpStream::connect(listening.address).await.unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // No write may fail: a reset of the connection would lose the answer too.
    for part in body.chunks(0x1_0000) {
        stream.write_all(part).await.unwrap();
    }
    let mut answer = [0; 12];
    let read = timeout(LOST, stream.read_exact(&mut answer)).await;
    read.unwrap().unwrap();
    assert_eq!(&answer, b"HTTP/1.1 413");
    still_serves(&listening.client()).await;
}

#[tokio::test]
async fn half_a_header_is_given_up_and_so_is_silence() {
    let listening = limited(Limits {
        header_timeout: Duration::from_millis(300),
        ..Limits::default()
    })
    .await;
    assert!(Limits::default().header_timeout >= 2 * SOON);
    for said in [
        "",
        "P",
        "PRI * HTTP/2.0\r\n",
        "POST /mcp HTTP/1.1\r\nhost: loc",
    ] {
        let mut stream = TcpStream::connect(listening.address).await.unwrap();
        stream.write_all(said.as_bytes()).await.unwrap();
        let mut rest = Vec::new();
        let closed = timeout(SOON, stream.read_to_end(&mut rest)).await;
        assert!(closed.is_ok(), "{said:?} was left open");
    }
    still_serves(&listening.client()).await;
}

#[tokio::test]
async fn a_body_that_stops_half_way_is_408() {
    let listening = limited(Limits {
        body_timeout: Duration::from_millis(200),
        ..Limits::default()
    })
    .await;
    let mut stream = TcpStream::connect(listening.address).await.unwrap();
    let head = "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                accept: application/json, text/event-stream\r\ncontent-length: 100\r\n\r\n{";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    timeout(LOST, stream.read_exact(&mut answer))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(&answer, b"HTTP/1.1 408");
    still_serves(&listening.client()).await;
}

#[tokio::test]
async fn streams_are_bounded_and_room_comes_back() {
    let listening = limited(Limits {
        streams: 1,
        ..Limits::default()
    })
    .await;
    let client = listening.client();
    let session = client.begin().await;
    let stream = client.session_stream(&session).await;
    let listen = client.stateless("subscriptions/listen", json!({ "notifications": {} }));
    assert_eq!(client.send(listen).await.status, 503);
    drop(stream);
    // The server may take a moment to notice the lost stream.
    let listened = timeout(LOST, async {
        loop {
            let request = client.stateless(
                "subscriptions/listen",
                json!({ "notifications": { "toolsListChanged": true } }),
            );
            let response = client.open(request).await;
            if response.status() == 200 {
                break;
            }
            tokio::task::yield_now().await;
        }
    });
    listened.await.unwrap();
}

#[tokio::test]
async fn of_too_many_sessions_the_one_idle_for_longest_makes_room_whoever_holds_it() {
    let listening = started(Options {
        limits: Limits {
            sessions: 4,
            sessions_per_caller: 2,
            ..Limits::default()
        },
        authenticate: Arc::new(BudgetPerBearer),
        ..Options::default()
    })
    .await;
    let [ann, bob, eve] = ["ann", "bob", "eve"].map(|name| listening.client_as(name));
    let status = async |client: &Http, session: &str| {
        let ping = client.in_session(session, "ping", &json!({}));
        client.send(ping).await.status.as_u16()
    };
    let listens = ann.begin().await;
    let _stream = ann.session_stream(&listens).await;
    let oldest = bob.begin().await;
    let others = [ann.begin().await, bob.begin().await];
    // Each caller is within its own share, but together they fill the server.
    let newcomer = eve.begin().await;
    assert_eq!(status(&eve, &newcomer).await, 200);
    assert_eq!(status(&bob, &oldest).await, 404);
    assert_eq!(status(&ann, &listens).await, 200);
    assert_eq!(status(&ann, &others[0]).await, 200);
    assert_eq!(status(&bob, &others[1]).await, 200);
}

#[tokio::test]
async fn where_every_session_is_in_use_whoever_has_most_gives_one_up() {
    let listening = started(Options {
        limits: Limits {
            sessions: 3,
            ..Limits::default()
        },
        authenticate: Arc::new(BudgetPerBearer),
        ..Options::default()
    })
    .await;
    let [ann, bob, eve] = ["ann", "bob", "eve"].map(|name| listening.client_as(name));
    let modest = bob.begin().await;
    let mut kept = bob.session_stream(&modest).await;
    let (first, second) = (ann.begin().await, ann.begin().await);
    let mut ended = ann.session_stream(&first).await;
    let _stream = ann.session_stream(&second).await;
    eve.begin().await;
    assert_eq!(ended.next().await, None);
    kept.is_silent().await;
}

#[tokio::test]
async fn an_idle_connection_is_closed_whichever_http_it_speaks() {
    let listening = limited(Limits {
        header_timeout: Duration::from_millis(300),
        ..Limits::default()
    })
    .await;
    let client = listening.client();
    let listen = json!({ "notifications": { "toolsListChanged": true } });
    let mut listens = Connection::http2(&client).await;
    let request = client.stateless("subscriptions/listen", listen);
    let mut stream = listens.open(request).await.unwrap().into_body();
    for speaks_http2 in [false, true] {
        let mut idle = if speaks_http2 {
            Connection::http2(&client).await
        } else {
            Connection::http1(&client).await
        };
        let request = client.stateless("tools/list", json!({}));
        assert_eq!(idle.ask(request).await, Some(200));
        timeout(SOON, idle.closed()).await.expect("left open");
    }
    // A connection with an open stream is in use, however long it is silent.
    let request = client.stateless("tools/list", json!({}));
    assert_eq!(listens.ask(request).await, Some(200));
    assert!(stream.frame().await.is_some());
}

#[tokio::test]
async fn of_too_many_connections_the_one_idle_for_longest_makes_room() {
    let listening = limited(Limits {
        connections: 3,
        ..Limits::default()
    })
    .await;
    let client = listening.client();
    let list = || client.stateless("tools/list", json!({}));
    let listen = json!({ "notifications": { "toolsListChanged": true } });
    let mut listens = Connection::http1(&client).await;
    let request = client.stateless("subscriptions/listen", listen);
    let _stream = listens.open(request).await.unwrap();
    let mut first = Connection::http2(&client).await;
    let mut second = Connection::http1(&client).await;
    assert_eq!(first.ask(list()).await, Some(200));
    assert_eq!(second.ask(list()).await, Some(200));
    // Now the second has been idle longest.
    assert_eq!(first.ask(list()).await, Some(200));
    let mut third = Connection::http1(&client).await;
    assert_eq!(third.ask(list()).await, Some(200));
    second.closed().await;
    assert_eq!(first.ask(list()).await, Some(200));
    assert!(listens.is_open());
}

#[tokio::test]
async fn where_every_connection_is_in_use_one_more_is_turned_away_and_room_comes_back() {
    let listening = limited(Limits {
        connections: 2,
        ..Limits::default()
    })
    .await;
    let client = listening.client();
    let listen = || {
        let filter = json!({ "notifications": { "toolsListChanged": true } });
        client.stateless("subscriptions/listen", filter)
    };
    let mut first = Connection::http1(&client).await;
    let stream = first.open(listen()).await.unwrap();
    let mut second = Connection::http1(&client).await;
    let _stream = second.open(listen()).await.unwrap();
    let mut third = Connection::http1(&client).await;
    assert_eq!(third.ask(listen()).await, None);
    drop((stream, first));
    let served = async {
        loop {
            let mut again = Connection::http1(&client).await;
            if again
                .ask(client.stateless("tools/list", json!({})))
                .await
                .is_some()
            {
                break;
            }
        }
    };
    timeout(LOST, served).await.unwrap();
}

#[tokio::test]
async fn a_request_that_is_sent_slowly_holds_no_connection_against_another() {
    let listening = limited(Limits {
        connections: 4,
        ..Limits::default()
    })
    .await;
    let client = listening.client();
    let list = || client.stateless("tools/list", json!({}));
    let mut slow = Vec::new();
    for _ in 0..12 {
        let mut stream = TcpStream::connect(listening.address).await.unwrap();
        let head = "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                    content-length: 100\r\n\r\n{";
        stream.write_all(head.as_bytes()).await.unwrap();
        slow.push(stream);
        let mut next = Connection::http1(&client).await;
        assert_eq!(next.ask(list()).await, Some(200));
    }
}

#[tokio::test]
async fn those_without_a_credential_do_not_crowd_out_those_with_one() {
    let listening = started(Options {
        limits: Limits {
            connections: 16,
            ..Limits::default()
        },
        authenticate: Arc::new(BudgetPerBearer),
        ..Options::default()
    })
    .await;
    let (alice, stranger) = (listening.client_as("alice"), listening.client());
    let list = || alice.stateless("tools/list", json!({}));
    let mut hers = Connection::http2(&alice).await;
    assert_eq!(hers.ask(list()).await, Some(200));
    let mut crowd = Vec::new();
    for _ in 0..40 {
        let mut one = Connection::http2(&stranger).await;
        let asked = one.ask(stranger.stateless("tools/list", json!({}))).await;
        assert_eq!(asked, Some(401));
        crowd.push(one);
        let mut new = Connection::http1(&alice).await;
        assert_eq!(new.ask(list()).await, Some(200));
    }
    // The crowd cannot take Alice's connection.
    assert_eq!(hers.ask(list()).await, Some(200));
    let held = crowd.iter().filter(|one| one.is_open()).count();
    assert!(held <= 4, "{held}");
}

#[tokio::test]
async fn an_idle_session_is_forgotten_but_not_one_that_listens() {
    let (registry, server) = crate::support::server();
    registry.add_tool(crate::support::tool("ok", "ok"));
    let limits = Limits {
        session_idle: Duration::from_millis(300),
        ..Limits::default()
    };
    let options = Options {
        limits,
        ..Options::default()
    };
    let listening = Listening::start(&server, options).await;
    let client = listening.client();
    let (idle, busy) = (client.begin().await, client.begin().await);
    let mut stream = client.session_stream(&busy).await;
    // A request would keep the session alive, so wait for its listener to end instead. Only a
    // session that has opened a stream has a listener.
    drop(client.session_stream(&idle).await);
    let gone = async {
        while registry.listening() > 1 {
            tokio::task::yield_now().await;
        }
    };
    timeout(LOST, gone).await.unwrap();
    let reply = client
        .send(client.in_session(&idle, "ping", &json!({})))
        .await;
    assert_eq!(reply.status, 404);
    stream.is_silent().await;
    let reply = client
        .send(client.in_session(&busy, "ping", &json!({})))
        .await;
    assert_eq!(reply.status, 200);
}

/// Makes every bearer a subject with its own budget.
struct BudgetPerBearer;

impl Authenticate for BudgetPerBearer {
    fn authenticate<'r>(
        &'r self,
        request: &'r Parts,
    ) -> BoxFuture<'r, Result<Arc<Caller>, Rejection>> {
        let allowance = Allowance {
            per_minute: 60_000,
            burst: 1000,
            concurrent: 10,
            streams: 10,
        };
        let bearer = request.headers.get("authorization");
        let caller = bearer.map(|bearer| {
            let caller = Caller::new(bearer.to_str().unwrap());
            Arc::new(caller.with_budget(Budget::new(allowance).into()))
        });
        Box::pin(std::future::ready(caller.ok_or(Rejection {
            status: StatusCode::UNAUTHORIZED,
            challenge: None,
            error: RpcError::new(-32001, "nobody"),
        })))
    }
}

#[tokio::test]
async fn one_who_begins_many_sessions_loses_its_own_and_nobody_elses() {
    let listening = started(Options {
        limits: Limits {
            sessions: 4,
            sessions_per_caller: 2,
            ..Limits::default()
        },
        authenticate: Arc::new(BudgetPerBearer),
        ..Options::default()
    })
    .await;
    let (alice, bob) = (listening.client_as("alice"), listening.client_as("bob"));
    let status = async |client: &Http, session: &str| {
        let ping = client.in_session(session, "ping", &json!({}));
        client.send(ping).await.status.as_u16()
    };
    let bobs = bob.begin().await;
    let (first, second) = (alice.begin().await, alice.begin().await);
    // Now the second is the least recently used.
    assert_eq!(status(&alice, &first).await, 200);
    for _ in 0..5 {
        alice.begin().await;
        // And now the newest is.
        assert_eq!(status(&alice, &first).await, 200);
    }
    assert_eq!(status(&alice, &second).await, 404);
    assert_eq!(status(&bob, &bobs).await, 200);
    // A session in use is not dropped.
    let third = alice.begin().await;
    let _streams = (
        alice.session_stream(&first).await,
        alice.session_stream(&third).await,
    );
    assert_eq!(alice.send(alice.initialize()).await.status, 503);
    bob.begin().await;
}
