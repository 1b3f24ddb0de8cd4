//! A program with operations that panic or never end, for the tests of the record of calls:
//!
//! ```text
//! faulty PROJECT          serves it over standard input and output
//! faulty PROJECT http     serves it over HTTP at any port of this machine, and says which
//! ```
#![allow(
    clippy::print_stderr,
    clippy::panic,
    reason = "it says where it listens, and panics on purpose"
)]

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;
use wayleave::{
    Deployment, EnvironmentVariables, Operation, OperationCall, OperationError, ProcessToken,
    Project, Scope,
};

/// How a call goes wrong.
#[derive(Deserialize, JsonSchema)]
struct Fault {
    /// Whether it waits for another task before it panics.
    #[serde(default)]
    later: bool,
}

#[derive(Deserialize, JsonSchema)]
struct Sign {
    /// A file that is made when the call runs.
    file: PathBuf,
}

async fn fall(_: OperationCall, fault: Fault) -> Result<(), OperationError> {
    if fault.later {
        tokio::task::yield_now().await;
    }
    panic!("on purpose");
}

async fn linger(_: OperationCall, sign: Sign) -> Result<(), OperationError> {
    tokio::fs::write(sign.file, "")
        .await
        .map_err(|error| OperationError::Failed(error.to_string()))?;
    std::future::pending().await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args_os().skip(1);
    let folder = words.next().map_or_else(|| ".".into(), PathBuf::from);
    let project = Project::open(&folder)?;
    let deployment = Deployment::open(&project, EnvironmentVariables::process()).await?;
    deployment.register(Operation::new("fall", fall).requires(Scope::Runtime))?;
    deployment.register(Operation::new("linger", linger).requires(Scope::Runtime))?;
    let stop = CancellationToken::new();
    if words.next().is_some() {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let http = deployment.bind(address).await?;
        eprintln!("listening on {}", deployment.url(http.local_addr()));
        let stopping = stop.clone();
        tokio::spawn(async move {
            if tokio::signal::ctrl_c().await.is_ok() {
                stopping.cancel();
            }
        });
        http.serve(stop).await;
    } else {
        let given = ProcessToken::read(&EnvironmentVariables::process())?;
        deployment.serve_stdio(given, stop).await?;
    }
    deployment.close().await;
    Ok(())
}
