//! A TCP proxy in front of servers on this machine, which simulates a network cut.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};

/// A running proxy, stopped on drop.
#[derive(Debug)]
pub struct CutProxy {
    port: u16,
    servers: Arc<Servers>,
    accepted: Arc<AtomicUsize>,
    /// Ends the proxy when dropped.
    running: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

/// The ports behind a proxy, the next one first.
#[derive(Debug)]
struct Servers(Mutex<Vec<u16>>);

impl Servers {
    fn next(&self) -> Option<u16> {
        let mut ports = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let next = ports.first().copied();
        if !ports.is_empty() {
            ports.rotate_left(1);
        }
        next
    }
}

impl CutProxy {
    /// Forwards connections to a port on this machine.
    pub async fn start(server: u16) -> io::Result<Self> {
        Self::alternating(&[server]).await
    }

    /// Forwards connections to these ports in turn.
    pub async fn alternating(servers: &[u16]) -> io::Result<Self> {
        let mut proxy = Self {
            port: 0,
            servers: Arc::new(Servers(Mutex::new(servers.to_vec()))),
            accepted: Arc::default(),
            running: None,
        };
        proxy.restore().await?;
        Ok(proxy)
    }

    /// Forwards new connections to this port.
    pub fn lead_to(&self, server: u16) {
        let mut ports = self
            .servers
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *ports = vec![server];
    }

    /// The port it listens on, the same after every cut.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Number of connections that it has accepted, whatever became of them.
    pub fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }

    /// Accepts connections again.
    pub async fn restore(&mut self) -> io::Result<()> {
        let listener = TcpListener::bind(("127.0.0.1", self.port)).await?;
        self.port = listener.local_addr()?.port();
        let (stop, stopped) = oneshot::channel();
        let (servers, accepted) = (Arc::clone(&self.servers), Arc::clone(&self.accepted));
        let passing = tokio::spawn(pass(listener, servers, accepted, stopped));
        self.running = Some((stop, passing));
        Ok(())
    }

    /// Closes every connection, and refuses new ones.
    pub async fn cut(&mut self) {
        if let Some((stop, passing)) = self.running.take() {
            drop(stop);
            let _ = passing.await;
        }
    }
}

async fn pass(
    listener: TcpListener,
    servers: Arc<Servers>,
    count: Arc<AtomicUsize>,
    mut stopped: oneshot::Receiver<()>,
) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = &mut stopped => break,
        };
        let (Ok((mut near, _)), Some(server)) = (accepted, servers.next()) else {
            break;
        };
        count.fetch_add(1, Ordering::SeqCst);
        connections.spawn(async move {
            if let Ok(mut far) = TcpStream::connect(("127.0.0.1", server)).await {
                let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
            }
        });
    }
    drop(listener);
    connections.shutdown().await;
}
