//! The line to the server, moved on by whoever waits for what comes over it.
//!
//! The driver splits a session into a client that asks and a connection that must be polled. In a
//! task of its own the connection has to be woken for every question and wakes the asker for every
//! answer, often on another thread. Here one task does both, and a line that nobody waits for rests.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures::task::AtomicWaker;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_postgres::Connection;

/// How often client and connection take turns before other tasks have theirs.
const TURNS: usize = 8;

/// Nobody polls the line.
const RESTS: u8 = 0;
/// It is being polled,
const POLLED: u8 = 1;
/// and one end has woken the other meanwhile.
const WOKEN: u8 = 2;

/// One session's connection.
pub(super) struct Line {
    /// Until it has ended. Its failure shows in whatever waits for an answer.
    connection: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    bell: Arc<Bell>,
    /// What rings it; always the same, so that both ends can keep it.
    waker: Waker,
}

impl Line {
    pub(super) fn new<S, T>(connection: Connection<S, T>) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let bell = Arc::new(Bell::default());
        Self {
            connection: Some(Box::pin(async { drop(connection.await) })),
            waker: Waker::from(Arc::clone(&bell)),
            bell,
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
            self.bell.task.register(context.waker());
            for _ in 0..TURNS {
                self.bell.state.store(POLLED, Ordering::SeqCst);
                self.advance();
                let done = work.as_mut().poll(&mut Context::from_waker(&self.waker));
                let woken = self.bell.state.swap(RESTS, Ordering::SeqCst) == WOKEN;
                if done.is_ready() || !woken {
                    return done;
                }
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
        // What comes now concerns nobody.
        self.bell.task.take();
        done
    }

    /// Whether the server has hung up, as far as has arrived here.
    pub(super) fn is_open(&mut self) -> bool {
        self.advance();
        self.connection.is_some()
    }

    /// Says goodbye, once the client is gone, and waits until it is said.
    pub(super) async fn end(mut self) {
        if let Some(connection) = self.connection.take() {
            connection.await;
        }
    }

    fn advance(&mut self) {
        if let Some(connection) = &mut self.connection {
            let mut context = Context::from_waker(&self.waker);
            if connection.as_mut().poll(&mut context).is_ready() {
                self.connection = None;
            }
        }
    }
}

/// Wakes the task that waits, unless it is just looking.
#[derive(Default)]
struct Bell {
    task: AtomicWaker,
    state: AtomicU8,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let while_polled =
            self.state
                .compare_exchange(POLLED, WOKEN, Ordering::SeqCst, Ordering::SeqCst);
        if while_polled == Err(RESTS) {
            self.task.wake();
        }
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
