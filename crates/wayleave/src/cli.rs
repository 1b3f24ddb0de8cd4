//! The command line: one definition for parser, help and completions.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::commands;

/// Governed, live access to your data for AI agents, over MCP.
#[derive(Debug, Parser)]
#[command(name = "wayleave", version, about, max_term_width = 100)]
pub(crate) struct Cli {
    /// The project folder [default: this one].
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) project: Option<PathBuf>,
    /// Print one JSON document instead of text.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a small project of its own and serve it: the quickest look at what Wayleave does.
    Demo(commands::demo::Arguments),
}
