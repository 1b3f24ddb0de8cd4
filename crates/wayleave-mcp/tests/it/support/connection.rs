//! A client connection that stays open between requests.

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::{
    body::Incoming,
    client::conn::{http1, http2},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{net::TcpStream, task::JoinHandle, time::timeout};

use super::{LOST, http::Http};

enum Sender {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

pub struct Connection {
    sender: Sender,
    driver: JoinHandle<()>,
}

impl Connection {
    pub async fn http1(client: &Http) -> Self {
        let stream = TcpStream::connect(client.address).await.unwrap();
        let (sender, driver) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        Self {
            sender: Sender::Http1(sender),
            driver: tokio::spawn(async move { drop(driver.await) }),
        }
    }

    /// An HTTP/2 connection, which acknowledges every ping.
    pub async fn http2(client: &Http) -> Self {
        let stream = TcpStream::connect(client.address).await.unwrap();
        let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
        let (sender, driver) = handshake.await.unwrap();
        Self {
            sender: Sender::Http2(sender),
            driver: tokio::spawn(async move { drop(driver.await) }),
        }
    }

    /// The response to a request, its body still unread; none if the connection is closed.
    pub async fn open(&mut self, mut request: Request<Full<Bytes>>) -> Option<Response<Incoming>> {
        let sent = async {
            match &mut self.sender {
                Sender::Http1(sender) => sender.send_request(request).await,
                Sender::Http2(sender) => {
                    let host = request.headers_mut().remove("host").unwrap();
                    let uri = format!("http://{}{}", host.to_str().unwrap(), request.uri().path());
                    *request.uri_mut() = uri.parse().unwrap();
                    sender.send_request(request).await
                }
            }
        };
        timeout(LOST, sent).await.expect("no response").ok()
    }

    /// The status of the response to a request; none if the connection is closed.
    pub async fn ask(&mut self, request: Request<Full<Bytes>>) -> Option<u16> {
        let response = self.open(request).await?;
        let status = response.status().as_u16();
        let body = timeout(LOST, response.into_body().collect()).await;
        body.expect("body did not end").ok()?;
        Some(status)
    }

    pub fn is_open(&self) -> bool {
        !self.driver.is_finished()
    }

    /// Waits until the server has closed it.
    pub async fn closed(&mut self) {
        timeout(LOST, &mut self.driver)
            .await
            .expect("left open")
            .unwrap();
    }
}
