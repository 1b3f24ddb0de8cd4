//! The command line: one definition for parser, help and completions.

#[cfg(test)]
mod reference;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::commands;

/// The exit codes that scripts can distinguish.
const EXIT_CODES: [(u8, &str); 6] = [
    (0, "done"),
    (
        1,
        "completed with findings: problems, drift, a damaged record, or a confirmation that was declined",
    ),
    (2, "invalid usage, or something required is missing"),
    (70, "a bug"),
    (
        77,
        "an owner's or control credential was found where only an agent's may be",
    ),
    (130, "stopped at once by a second signal"),
];

fn exit_codes() -> String {
    let lines = EXIT_CODES.map(|(code, meaning)| format!("\n  {code:<4}{meaning}"));
    format!("Exit codes:{}", lines.concat())
}

/// Governed, live access to your data for AI agents, over MCP.
#[derive(Debug, Parser)]
#[command(name = "wayleave", version, about, max_term_width = 100, after_help = exit_codes())]
pub(crate) struct Cli {
    /// The project folder [default: this one].
    #[arg(long, global = true, value_name = "DIR", display_order = 100)]
    pub(crate) project: Option<PathBuf>,
    /// Print one JSON document instead of text.
    #[arg(long, global = true, display_order = 101)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Create and serve a small demo project: the quickest look at what Wayleave does.
    Demo(commands::demo::Arguments),
    /// Create a project.
    Init(commands::init::Arguments),
    /// Declare, list, test and remove sources.
    #[command(subcommand)]
    Source(commands::source::Action),
    /// Show what a source holds: tables, columns, keys and references. No row is read.
    Introspect(commands::introspect::Arguments),
    /// Write a draft over a source, or bring one up to date. Your edits stay.
    Propose(commands::propose::Arguments),
    /// Show everything that is wrong with the drafts.
    Check(commands::check::Arguments),
    /// Show in words what ratifying a draft would change.
    Diff(commands::diff::Arguments),
    /// Agree to a draft, byte for byte. Nothing else is ever served.
    Ratify(commands::ratify::Arguments),
    /// Read what agents propose, and decide on it.
    #[command(subcommand)]
    Inbox(commands::inbox::Action),
    /// Open the console: a page in your browser to read what agents propose, and decide.
    Console(commands::console::Arguments),
    /// Run one of the agents' authoring operations.
    Meta(commands::meta::Arguments),
    /// Withdraw a dataset.
    Retire(commands::retire::Arguments),
    /// List datasets: drafted, ratified, active, retired.
    Datasets,
    /// Make a ratified dataset live.
    Connect(commands::connect::Arguments),
    /// Take a dataset out of service; it stays ratified.
    Disconnect(commands::disconnect::Arguments),
    /// Serve the active datasets to agents.
    Serve(commands::serve::Arguments),
    /// Add this project's server to the settings of an MCP client.
    #[command(subcommand)]
    Client(commands::client::Action),
    /// Show what agents can read: all streams, or some with their fields and an example call.
    Schema(commands::schema::Arguments),
    /// Read records of a stream, as agents would.
    Query(commands::query::Arguments),
    /// Count and measure records of a stream, as agents would.
    Aggregate(commands::aggregate::Arguments),
    /// Find records by their text, as agents would.
    Search(commands::search::Arguments),
    /// Read one record, as agents would.
    Fetch(commands::fetch::Arguments),
    /// Print changes of a stream or record as subscribers get them.
    Watch(commands::watch::Arguments),
    /// Show or rebuild the full-text indexes.
    #[command(subcommand)]
    Index(commands::index::Action),
    /// Register the people whose keys sign decisions.
    #[command(subcommand)]
    Owner(commands::owner::Action),
    /// Create, list, show, narrow and revoke grants.
    #[command(subcommand)]
    Grant(commands::grant::Action),
    /// Issue, list and revoke tokens.
    #[command(subcommand)]
    Token(commands::token::Action),
    /// Show and verify the records of decisions and of calls.
    Audit(commands::audit::Arguments),
    /// Manage the keys that seal cursors.
    #[command(subcommand)]
    Keys(commands::keys::Action),
    /// Remove what crashes left behind: temporary files, and frozen mappings that no entry names.
    Gc,
    /// Copy the project while it is served, into a folder that can be verified and restored.
    Backup(commands::backup::Arguments),
    /// Verify a backup and restore it into an empty folder.
    Restore(commands::restore::Arguments),
    /// Show live statistics of calls.
    Top(commands::top::Arguments),
    /// Check everything the project needs to serve.
    Doctor,
    /// Print a completion script for a shell.
    Completions(commands::completions::Arguments),
}

impl Command {
    /// Whether the command only uses the project folder: it asks no source, serves nobody and needs
    /// no timer.
    pub(crate) fn is_local(&self) -> bool {
        match self {
            Self::Init(_)
            | Self::Diff(_)
            | Self::Retire(_)
            | Self::Datasets
            | Self::Disconnect(_)
            | Self::Owner(_)
            | Self::Grant(_)
            | Self::Token(_)
            | Self::Keys(_)
            | Self::Gc
            | Self::Backup(_)
            | Self::Restore(_)
            | Self::Client(_)
            | Self::Completions(_) => true,
            Self::Source(action) => action.is_local(),
            Self::Audit(arguments) => arguments.is_local(),
            Self::Inbox(action) => action.is_local(),
            Self::Check(arguments) => arguments.is_local(),
            Self::Ratify(arguments) => arguments.is_local(),
            Self::Connect(arguments) => arguments.is_local(),
            Self::Demo(_)
            | Self::Serve(_)
            | Self::Index(_)
            | Self::Schema(_)
            | Self::Query(_)
            | Self::Aggregate(_)
            | Self::Search(_)
            | Self::Fetch(_)
            | Self::Watch(_)
            | Self::Top(_)
            | Self::Introspect(_)
            | Self::Propose(_)
            | Self::Meta(_)
            | Self::Console(_)
            | Self::Doctor => false,
        }
    }
}
