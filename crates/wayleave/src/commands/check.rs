//! `wayleave check`: all problems of the drafts, at once.

use std::{path::Path, process::ExitCode};

use wayleave_project::{
    Project, check, render,
    token_rules::{self, UnknownGrant},
};

use crate::{failure::Failure, output::Output, progress::Spinner};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Drafts, by dataset or by file [default: all].
    #[arg(value_name = "DATASET|FILE")]
    drafts: Vec<String>,
    /// Also compare each draft, and each live mapping, with its sources.
    #[arg(long)]
    live: bool,
}

impl Arguments {
    /// Whether only the project folder is used.
    pub(crate) fn is_local(&self) -> bool {
        !self.live
    }
}

pub(crate) async fn run(
    arguments: Arguments,
    project: Option<&Path>,
    output: Output,
) -> Result<ExitCode, Failure> {
    let project = super::open(project)?;
    let mut report = check::check(&project, &arguments.drafts)?;
    let mut live = Vec::new();
    if arguments.live {
        let state = project.governance().ledger().state().await?;
        let spinner = Spinner::start("asking the sources");
        let show_step = |step| spinner.show_step(step);
        let probe = super::source_probe();
        report.compare(&probe, &state, &show_step).await;
        let drafts = &arguments.drafts;
        live = check::compare_live(&project, &report, drafts, &probe, &show_step).await?;
    }
    let unknown = unknown_grants(&project).await?;
    for line in render::check::unknown_grants(&unknown) {
        output.remark(line);
    }
    Ok(output.show(&render::check::report_with_settings(
        &report, &live, &unknown,
    )))
}

/// The grants that the settings name for access tokens but that do not exist.
async fn unknown_grants(project: &Project) -> Result<Vec<UnknownGrant>, Failure> {
    if project.settings().jwt.is_none() {
        return Ok(Vec::new());
    }
    let state = project.governance().ledger().state().await?;
    Ok(token_rules::unknown_grants(project.settings(), &state))
}
