//! The public documents of an authorization server.
#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    clippy::unwrap_used,
    reason = "shared by tests, none of which uses all of it"
)]

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body_util::Full;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{
    net::TcpListener,
    sync::{OwnedRwLockWriteGuard, RwLock, watch},
};

const RFC_8414: &str = "/.well-known/oauth-authorization-server";

/// An authorization server that publishes a key set at `/keys` and metadata that points to it.
pub struct AuthorizationServer {
    pub issuer: String,
    keys: Arc<Mutex<Option<Value>>>,
    /// The path of its metadata.
    metadata: Arc<Mutex<&'static str>>,
    asked: watch::Sender<usize>,
    /// Locked for writing while the server is stalled.
    answering: Arc<RwLock<()>>,
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
        let metadata = Arc::new(Mutex::new("/.well-known/openid-configuration"));
        let asked = watch::Sender::new(0);
        let answering = Arc::new(RwLock::new(()));
        let (published, counted, name) = (keys.clone(), asked.clone(), issuer.clone());
        let (stalled, described_at) = (answering.clone(), metadata.clone());
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (published, counted) = (published.clone(), counted.clone());
                let (name, stalled) = (name.clone(), stalled.clone());
                let described_at = described_at.clone();
                let service = service_fn(move |request: http::Request<hyper::body::Incoming>| {
                    let (published, counted) = (published.clone(), counted.clone());
                    let (name, stalled) = (name.clone(), stalled.clone());
                    let described_at = *described_at.lock().unwrap();
                    async move {
                        let document = match request.uri().path() {
                            "/keys" => {
                                counted.send_modify(|asked| *asked += 1);
                                drop(stalled.read().await);
                                published.lock().unwrap().clone()
                            }
                            path if path == described_at => {
                                // The path of the issuer follows the well-known path.
                                let tenant = path.strip_prefix(RFC_8414).unwrap_or("");
                                let (issuer, keys) =
                                    (format!("{name}{tenant}"), format!("{name}/keys"));
                                Some(json!({ "issuer": issuer, "jwks_uri": keys }))
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
                        Ok::<_, Infallible>(response)
                    }
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
            metadata,
            asked,
            answering,
            task,
        }
    }

    /// Delays its answers for keys until the guard is dropped.
    pub async fn stall(&self) -> OwnedRwLockWriteGuard<()> {
        self.answering.clone().write_owned().await
    }

    /// Publishes its metadata at this path only.
    pub fn describe_at(&self, path: &'static str) {
        *self.metadata.lock().unwrap() = path;
    }

    /// Replaces the published key set; without one, requests for keys fail.
    pub fn publish(&self, keys: Option<Value>) {
        *self.keys.lock().unwrap() = keys;
    }

    /// Number of times the keys were fetched.
    pub fn asked(&self) -> usize {
        *self.asked.borrow()
    }

    /// Waits until the keys were fetched this many times.
    pub async fn asked_times(&self, times: usize) {
        let mut asked = self.asked.subscribe();
        asked.wait_for(|asked| *asked >= times).await.unwrap();
    }
}
