//! An authorization server, as far as its public documents go.
#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    clippy::unwrap_used,
    reason = "shared by tests, none of which uses all of it"
)]

use std::{
    convert::Infallible,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body_util::Full;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// Publishes a key set at `/keys`, and says so in its metadata.
pub struct AuthorizationServer {
    pub issuer: String,
    keys: Arc<Mutex<Option<Value>>>,
    asked: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for AuthorizationServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl AuthorizationServer {
    pub async fn start(keys: Value) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        let keys = Arc::new(Mutex::new(Some(keys)));
        let asked = Arc::new(AtomicUsize::new(0));
        let (published, counted, name) = (keys.clone(), asked.clone(), issuer.clone());
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (published, counted) = (published.clone(), counted.clone());
                let name = name.clone();
                let service = service_fn(move |request: http::Request<hyper::body::Incoming>| {
                    let document = match request.uri().path() {
                        "/keys" => {
                            counted.fetch_add(1, Ordering::SeqCst);
                            published.lock().unwrap().clone()
                        }
                        "/.well-known/openid-configuration" => {
                            Some(json!({ "issuer": name, "jwks_uri": format!("{name}/keys") }))
                        }
                        _ => None,
                    };
                    let mut response = Response::new(Full::new(Bytes::new()));
                    match document {
                        Some(document) => {
                            *response.body_mut() = Full::new(document.to_string().into());
                        }
                        None => *response.status_mut() = StatusCode::NOT_FOUND,
                    }
                    async move { Ok::<_, Infallible>(response) }
                });
                tokio::spawn(
                    hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service),
                );
            }
        });
        Self {
            issuer,
            keys,
            asked,
            task,
        }
    }

    /// Publishes another key set; none, and the server fails.
    pub fn publish(&self, keys: Option<Value>) {
        *self.keys.lock().unwrap() = keys;
    }

    /// How often it was asked for its keys.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}
