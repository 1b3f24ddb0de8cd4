//! Changes a project from a process of its own, so that tests can kill it and make its calls fail.
//!
//! ```text
//! act freeze  <project> <mapping file> <digest it replaces, or `none`>
//! act sources <project> <prefix> <how many>
//! act insist  <project> <prefix> <how many>      continues after errors, and prints each
//! ```

use std::io::{IoSlice, Write as _};
use std::path::PathBuf;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use anyhow::Context as _;
use wayleave_ledger::{Governance, NewSource, RatifyRequest, SystemClock};
use wayleave_model::mapping::SourceKind;
use wayleave_model::ratify::Draft;

fn main() -> ExitCode {
    let Err(error) = run() else {
        return ExitCode::SUCCESS;
    };
    tell(&error);
    ExitCode::FAILURE
}

/// Prints with `writev`: tests make `write` fail, and must still see why the program stopped.
fn tell(error: &anyhow::Error) {
    let message = format!("error: {error:#}\n");
    let _ = std::io::stderr().write_vectored(&[IoSlice::new(message.as_bytes())]);
}

fn run() -> anyhow::Result<()> {
    let mut words = std::env::args().skip(1);
    let mut word = |what: &str| words.next().with_context(|| format!("{what} is missing"));
    let verb = word("the act")?;
    let project = PathBuf::from(word("the project")?);
    let (first, second) = (word("an argument")?, word("an argument")?);
    let governance = Governance::open(&project, Arc::new(SystemClock))?;
    on_this_thread(async {
        match verb.as_str() {
            "freeze" => freeze(&governance, &first, &second).await,
            "sources" => sources(&governance, &first, second.parse()?).await,
            "insist" => insist(&governance, &first, second.parse()?).await,
            other => anyhow::bail!("`{other}` is no act"),
        }
    })
}

/// Polls without a runtime, so that all work runs on the calling thread and never waits. One thread
/// makes all the system calls, so tests can count them.
fn on_this_thread<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    match pin!(work).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => anyhow::bail!("the work waits for another thread"),
    }
}

async fn freeze(governance: &Governance, file: &str, replaces: &str) -> anyhow::Result<()> {
    let proposed = Draft::new(std::fs::read(file)?).propose(None)?;
    let replaces = match replaces {
        "none" => None,
        digest => Some(digest.parse()?),
    };
    let (who, note) = ("ana".to_owned(), "because".to_owned());
    governance
        .ratify(RatifyRequest {
            proposed,
            replaces,
            who,
            note,
        })
        .await?;
    Ok(())
}

async fn sources(governance: &Governance, prefix: &str, count: u32) -> anyhow::Result<()> {
    for number in 1..=count {
        governance.add_source(source(prefix, number), "ana").await?;
    }
    Ok(())
}

async fn insist(governance: &Governance, prefix: &str, count: u32) -> anyhow::Result<()> {
    for number in 1..=count {
        if let Err(error) = governance.add_source(source(prefix, number), "ana").await {
            tell(&error.into());
        }
    }
    Ok(())
}

fn source(prefix: &str, number: u32) -> NewSource {
    let (name, env) = (format!("{prefix}-{number}"), "SOME_DSN".to_owned());
    NewSource {
        name,
        kind: SourceKind::Sqlite,
        env,
    }
}
