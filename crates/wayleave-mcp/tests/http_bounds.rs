//! What is too large, too slow, too many or too idle for the HTTP door, and room that comes back.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests"
)]

mod support;

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use http::{Method, Request, request::Parts};
use http_body_util::Full;
use serde_json::json;
use support::{
    LOST,
    http::{Http, limited, started, still_serves},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use wayleave_mcp::{
    Allowance, Budget, Caller,
    http::{Authenticate, Limits, Options, Rejection},
};

#[tokio::test]
async fn a_body_one_byte_too_large_is_413() {
    let listening = started(Options::default()).await;
    let client = listening.client();
    let reply = client.post(vec![b' '; 4 * 1024 * 1024 + 1]).await;
    assert_eq!((reply.status.as_u16(), reply.error_code()), (413, -32600));

    // And when its length is not declared.
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
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 413");
    still_serves(&client).await;
}

#[tokio::test]
async fn half_a_header_is_given_up_and_so_is_silence() {
    let listening = limited(Limits {
        header_time: Duration::from_millis(300),
        ..Limits::default()
    })
    .await;
    for said in [
        "",
        "P",
        "PRI * HTTP/2.0\r\n",
        "POST /mcp HTTP/1.1\r\nhost: loc",
    ] {
        let mut stream = TcpStream::connect(listening.address).await.unwrap();
        stream.write_all(said.as_bytes()).await.unwrap();
        let mut rest = Vec::new();
        let closed = timeout(LOST, stream.read_to_end(&mut rest)).await;
        assert!(closed.is_ok(), "{said:?} was left open");
    }
    still_serves(&listening.client()).await;
}

#[tokio::test]
async fn a_body_that_stops_half_way_is_408() {
    let listening = limited(Limits {
        body_time: Duration::from_millis(200),
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
async fn sessions_streams_and_connections_are_bounded_and_room_comes_back() {
    let listening = limited(Limits {
        sessions: 2,
        streams: 1,
        ..Limits::default()
    })
    .await;
    let client = listening.client();
    let session = client.begin().await;
    client.begin().await;
    let refused = client.send(client.initialize()).await;
    assert_eq!(
        (refused.status.as_u16(), refused.error_code()),
        (503, -32600)
    );

    let stream = client.session_stream(&session).await;
    let listen = client.stateless("subscriptions/listen", json!({ "notifications": {} }));
    assert_eq!(client.send(listen).await.status, 503);
    drop(stream);
    // The server notices that the stream is gone when it next looks.
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

    let end = client
        .request(Method::DELETE)
        .header("mcp-session-id", &session);
    assert_eq!(
        client.send(end.body(Full::default()).unwrap()).await.status,
        204
    );
    client.begin().await;
}

#[tokio::test]
async fn too_many_connections_are_turned_away() {
    let listening = limited(Limits {
        connections: 2,
        ..Limits::default()
    })
    .await;
    let first = TcpStream::connect(listening.address).await.unwrap();
    let _second = TcpStream::connect(listening.address).await.unwrap();
    let mut third = TcpStream::connect(listening.address).await.unwrap();
    let mut nothing = Vec::new();
    let closed = timeout(LOST, third.read_to_end(&mut nothing))
        .await
        .unwrap();
    assert!(closed.is_err() || nothing.is_empty());
    drop(first);
    timeout(LOST, async {
        loop {
            let stream = TcpStream::connect(listening.address).await.unwrap();
            let sent =
                hyper::client::conn::http1::handshake(hyper_util::rt::TokioIo::new(stream)).await;
            let (mut sender, connection) = sent.unwrap();
            let connection = tokio::spawn(connection);
            let request: Request<Full<bytes::Bytes>> =
                listening.client().stateless("tools/list", json!({}));
            let served = sender.send_request(request).await.is_ok();
            connection.abort();
            if served {
                break;
            }
        }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn an_idle_session_is_forgotten_but_not_one_that_listens() {
    let listening = limited(Limits {
        session_idle: Duration::from_millis(300),
        sessions: 2,
        ..Limits::default()
    })
    .await;
    let client = listening.client();
    let (idle, busy) = (client.begin().await, client.begin().await);
    let mut stream = client.session_stream(&busy).await;
    // Asking would keep it alive; the room it leaves tells that it is gone.
    let gone = async {
        while client.send(client.initialize()).await.status == 503 {
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

/// Every bearer is its own subject, with a budget of its own.
struct Budgeted;

impl Authenticate for Budgeted {
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
        let bearer = request.headers["authorization"].to_str().unwrap();
        let caller = Caller::new(bearer).within(Budget::new(allowance).into());
        Box::pin(std::future::ready(Ok(Arc::new(caller))))
    }
}

#[tokio::test]
async fn one_who_begins_many_sessions_loses_its_own_and_nobody_elses() {
    let listening = started(Options {
        limits: Limits {
            sessions: 4,
            sessions_each: 2,
            ..Limits::default()
        },
        authenticate: Arc::new(Budgeted),
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
    // Now the second is the one that was not used for longest.
    assert_eq!(status(&alice, &first).await, 200);
    for _ in 0..5 {
        alice.begin().await;
        // And now the one just begun is.
        assert_eq!(status(&alice, &first).await, 200);
    }
    assert_eq!(status(&alice, &second).await, 404);
    assert_eq!(status(&bob, &bobs).await, 200);
    // What is in use is not taken away.
    let third = alice.begin().await;
    let _streams = (
        alice.session_stream(&first).await,
        alice.session_stream(&third).await,
    );
    assert_eq!(alice.send(alice.initialize()).await.status, 503);
    bob.begin().await;
}
