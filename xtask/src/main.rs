//! Checks of the workspace itself, run as `cargo xtask <command>`.
//!
//! One file per command. Knows the repository's layout, but not what the crates do.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool speaks through its standard streams"
)]

mod edges;
mod finding;
mod repository;
mod tidy;

use std::process::ExitCode;

use crate::repository::Repository;

const USAGE: &str = "\
usage: cargo xtask <command>

commands:
  edges   the dependencies between crates are the ones the architecture allows
  tidy    documents, sizes and sources keep the rules of the house";

/// Exit codes as in the product: 1 for findings, 2 for a wrong call or a failed precondition.
const FINDINGS: u8 = 1;
const PRECONDITION: u8 = 2;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let command = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["edges"] => edges::run,
        ["tidy"] => tidy::run,
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(PRECONDITION);
        }
    };
    match Repository::open().and_then(|repository| command(&repository)) {
        Ok(findings) => report(&findings),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(PRECONDITION)
        }
    }
}

/// Prints every finding, warnings first, so that the failures stay on the screen.
fn report(findings: &[finding::Finding]) -> ExitCode {
    let (failures, warnings): (Vec<_>, Vec<_>) =
        findings.iter().partition(|finding| finding.is_failure());
    for finding in warnings.iter().chain(&failures) {
        println!("{finding}");
    }
    println!("{} failures, {} warnings", failures.len(), warnings.len());
    if failures.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(FINDINGS)
    }
}
