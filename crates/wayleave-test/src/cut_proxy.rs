//! A TCP proxy in front of a server on this machine, whose network can be cut.

use std::io;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};

/// A proxy; it ends when this is dropped.
#[derive(Debug)]
pub struct CutProxy {
    port: u16,
    server: u16,
    /// Ends the proxy when dropped.
    running: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl CutProxy {
    /// Passes on to a port on this machine.
    pub async fn start(server: u16) -> io::Result<Self> {
        let mut proxy = Self {
            port: 0,
            server,
            running: None,
        };
        proxy.restore().await?;
        Ok(proxy)
    }

    /// The port it listens on, the same after every cut.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Accepts connections again.
    pub async fn restore(&mut self) -> io::Result<()> {
        let listener = TcpListener::bind(("127.0.0.1", self.port)).await?;
        self.port = listener.local_addr()?.port();
        let (stop, stopped) = oneshot::channel();
        let passing = tokio::spawn(pass(listener, self.server, stopped));
        self.running = Some((stop, passing));
        Ok(())
    }

    /// Ends every connection, and refuses new ones.
    pub async fn cut(&mut self) {
        if let Some((stop, passing)) = self.running.take() {
            drop(stop);
            let _ = passing.await;
        }
    }
}

async fn pass(listener: TcpListener, server: u16, mut stopped: oneshot::Receiver<()>) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = &mut stopped => break,
        };
        let Ok((mut near, _)) = accepted else { break };
        connections.spawn(async move {
            if let Ok(mut far) = TcpStream::connect(("127.0.0.1", server)).await {
                let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
            }
        });
    }
    drop(listener);
    connections.shutdown().await;
}
