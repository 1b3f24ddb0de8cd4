//! The line to the server, moved on by whoever waits for what comes over it.
//!
//! The driver splits a session into a client that asks and a connection that must be polled. In a
//! task of its own the connection has to be woken for every question and wakes the asker for every
//! answer, often on another thread. Here one task does both, and a line that nobody waits for rests.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_postgres::Connection;

use crate::bell::Bell;

/// How often client and connection take turns before other tasks have theirs.
const TURNS: usize = 8;

type Polled = Pin<Box<dyn Future<Output = ()> + Send>>;

/// One session's connection.
pub(super) struct Line {
    /// Until it has ended. Its failure shows in whatever waits for an answer.
    connection: Option<Polled>,
    /// How one end wakes the other.
    bell: Bell,
}

impl Line {
    pub(super) fn new<S, T>(connection: Connection<S, T>) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        Self {
            connection: Some(Box::pin(async { drop(connection.await) })),
            bell: Bell::default(),
        }
    }

    /// Waits for what a client of this line does.
    pub(super) async fn carry<T>(&mut self, work: impl Future<Output = T>) -> T {
        self.carry_pinned(pin!(work)).await
    }

    /// The same of work that is not moved.
    pub(super) async fn carry_pinned<T>(
        &mut self,
        mut work: Pin<&mut impl Future<Output = T>>,
    ) -> T {
        let done = poll_fn(|context| {
            self.bell.wakes(context);
            for _ in 0..TURNS {
                let (connection, waker) = (&mut self.connection, self.bell.waker());
                let (done, woken) = self.bell.while_looking(|| {
                    let mut context = Context::from_waker(waker);
                    advance(connection, &mut context);
                    work.as_mut().poll(&mut context)
                });
                if done.is_ready() || !woken {
                    return done;
                }
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
        // What comes now concerns nobody.
        self.bell.wakes_nobody();
        done
    }

    /// Whether the server has hung up, as far as has arrived here.
    pub(super) fn is_open(&mut self) -> bool {
        let mut context = Context::from_waker(self.bell.waker());
        advance(&mut self.connection, &mut context);
        self.connection.is_some()
    }

    /// Says goodbye, once the client is gone, and waits until it is said.
    pub(super) async fn end(mut self) {
        if let Some(connection) = self.connection.take() {
            connection.await;
        }
    }
}

/// Moves a connection on, until it has ended.
fn advance(connection: &mut Option<Polled>, context: &mut Context<'_>) {
    if let Some(polled) = connection
        && polled.as_mut().poll(context).is_ready()
    {
        *connection = None;
    }
}

#[cfg(test)]
mod tests {
    use tokio_postgres::{Client, NoTls};

    use super::*;

    async fn connected(name: &str) -> (Client, Line) {
        let server = wayleave_test::postgres().await;
        let database = server.fresh_database(name, "").await.unwrap();
        let (client, connection) = tokio_postgres::connect(&database.dsn, NoTls).await.unwrap();
        (client, Line::new(connection))
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn an_answer_that_takes_many_turns_comes_whole() {
        let (client, mut line) = connected("line_turns").await;
        let asked = client.query(
            "SELECT repeat('x', 900) FROM generate_series(1, 20000)",
            &[],
        );
        assert_eq!(line.carry(asked).await.unwrap().len(), 20_000);
        for number in 0..2_000_i32 {
            let text = format!("SELECT {number}");
            let row = line.carry(client.query_one(&text, &[])).await.unwrap();
            assert_eq!(row.get::<_, i32>(0), number);
        }
    }

    #[tokio::test]
    async fn a_line_at_rest_learns_that_the_server_hung_up() {
        let (client, mut line) = connected("line_rest").await;
        let (other, mut to_other) = connected("line_rest_other").await;
        let asked = client.query_one("SELECT pg_backend_pid()", &[]);
        let backend: i32 = line.carry(asked).await.unwrap().get(0);
        assert!(line.is_open());
        let end = format!("SELECT pg_terminate_backend({backend}, 10000)");
        let ended = to_other.carry(other.query_one(&end, &[])).await.unwrap();
        assert!(ended.get::<_, bool>(0));
        // What has arrived is seen once the runtime has looked at its sockets.
        let asked = other.query_one("SELECT 1", &[]);
        to_other.carry(asked).await.unwrap();
        assert!(!line.is_open());
        assert!(line.carry(client.query_one("SELECT 1", &[])).await.is_err());
    }
}
