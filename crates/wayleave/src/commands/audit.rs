//! `wayleave audit`: shows and verifies the records of decisions and of calls.

mod filter;
mod replay;

use std::{
    io::{self, Write as _},
    path::Path,
    process::ExitCode,
};

use serde_json::json;
use wayleave_activity::{ActivityId, ArgumentKeyError, prov_document};
use wayleave_ledger::{Head, KeyFingerprint};
use wayleave_project::{
    Project, activity_log,
    render::{self, activity::ArgumentDetail},
};

use crate::{failure::Failure, output::Output};
use filter::FilterArguments;

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Option<Action>,
    /// Verify the ledger and every frozen mapping.
    #[arg(long)]
    verify: bool,
    /// A head kept elsewhere, which the ledger must still pass through. Implies `--verify`.
    #[arg(long, value_name = "SEQ:HASH")]
    head: Option<Head>,
    /// The key of the project's first owner, which the ledger must begin its signatures with.
    /// Implies `--verify`.
    #[arg(long, value_name = "FINGERPRINT")]
    owner: Option<KeyFingerprint>,
    /// Number of latest entries to list.
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: u32,
}

/// What to do with the record of calls.
#[derive(Debug, clap::Subcommand)]
enum Action {
    /// List calls, the latest first.
    List(ListArguments),
    /// Show one call in full.
    Show(ShowArguments),
    /// Verify the record of calls, and name the first damaged record.
    Verify,
    /// Export calls for other programs.
    Export(ExportArguments),
    /// Repeat a recorded read, and compare its answer.
    Replay(ReplayArguments),
    /// Destroy the key of all recorded arguments; the rest of the record stays verifiable.
    DestroyKey,
}

#[derive(Debug, clap::Args)]
struct ListArguments {
    #[command(flatten)]
    filter: FilterArguments,
    /// How many calls to list.
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
}

#[derive(Debug, clap::Args)]
struct ShowArguments {
    /// The call, by the id in the `_meta` of its result.
    #[arg(value_name = "ID")]
    id: ActivityId,
    /// Show the arguments too, which may hold values of records.
    #[arg(long)]
    arguments: bool,
}

/// The form of an export.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Format {
    /// One W3C PROV-O document, in JSON-LD.
    Prov,
    /// One JSON document a line.
    Jsonl,
}

#[derive(Debug, clap::Args)]
struct ExportArguments {
    #[command(flatten)]
    filter: FilterArguments,
    /// The form.
    #[arg(long, value_enum, default_value = "jsonl")]
    format: Format,
}

#[derive(Debug, clap::Args)]
struct ReplayArguments {
    /// The call, by the id in the `_meta` of its result.
    #[arg(value_name = "ID")]
    id: ActivityId,
}

impl Arguments {
    /// Whether the command only uses the project folder.
    pub(crate) fn is_local(&self) -> bool {
        !matches!(self.action, Some(Action::Replay(_)))
    }
}

pub(crate) async fn run(
    arguments: Arguments,
    project: Option<&Path>,
    output: Output,
) -> Result<ExitCode, Failure> {
    if let Some(action) = arguments.action {
        return act(action, project, output).await;
    }
    if arguments.verify || arguments.head.is_some() || arguments.owner.is_some() {
        return verify(arguments.head, arguments.owner, project, output).await;
    }
    let project = super::open_to_read(project)?;
    let ledger = project.governance().ledger();
    let total = ledger.epoch().await?;
    let after = total.saturating_sub(u64::from(arguments.limit));
    let entries = ledger.entries(after, arguments.limit).await?;
    Ok(output.show(&render::audit::entries(total, after, &entries)))
}

async fn verify(
    head: Option<Head>,
    owner: Option<KeyFingerprint>,
    project: Option<&Path>,
    output: Output,
) -> Result<ExitCode, Failure> {
    let folder = project.unwrap_or(Path::new("."));
    let trust = super::trust()?.with_owner(owner);
    let project = Project::open_to_read_trusting(folder, &trust)?;
    let report = project.governance().audit(head).await?;
    Ok(output.show(&render::audit::verification(report)))
}

async fn act(action: Action, project: Option<&Path>, output: Output) -> Result<ExitCode, Failure> {
    if let Action::Replay(arguments) = action {
        return replay::run(arguments.id, project, output).await;
    }
    let project = super::open_to_read(project)?;
    let reader = activity_log::reader(&project);
    match action {
        Action::List(arguments) => {
            let filter = arguments.filter.resolve();
            let found = reader.latest(&filter, arguments.limit);
            let found = found.map_err(|error| Failure::from_error(&error))?;
            Ok(output.show(&render::activity::list(&found)))
        }
        Action::Show(arguments) => {
            let found = find(&project, arguments.id)?;
            let given = arguments.arguments.then(|| opened(&project, &found));
            let given = given.transpose()?;
            let detail = match &given {
                None => ArgumentDetail::Shape,
                Some(Some(given)) => ArgumentDetail::Text(given),
                Some(None) => ArgumentDetail::Unrecorded,
            };
            Ok(output.show(&render::activity::show(&found, detail)))
        }
        Action::Verify => {
            let report = activity_log::verify(&project).await;
            let report = report.map_err(|error| Failure::from_error(&error))?;
            Ok(output.show(&render::activity::verification(&report)))
        }
        Action::Export(arguments) => export(&project, &arguments),
        Action::DestroyKey => {
            let keys = activity_log::argument_keys(&project);
            let destroyed = keys.and_then(|keys| keys.destroy());
            let number = destroyed.map_err(|error| Failure::from_error(&error))?;
            Ok(output.show(&render::activity::key_destroyed(number)))
        }
        Action::Replay(_) => Ok(ExitCode::SUCCESS),
    }
}

fn find(project: &Project, id: ActivityId) -> Result<wayleave_activity::Activity, Failure> {
    let found = activity_log::reader(project).find(id);
    let found = found.map_err(|error| Failure::from_error(&error))?;
    found.ok_or_else(|| {
        Failure::usage(format!("no call `{id}` is on record"))
            .hint("`wayleave audit list` lists the latest")
    })
}

/// Unseals the arguments of a call, for the operator; `None` if they are not in the record.
fn opened(
    project: &Project,
    activity: &wayleave_activity::Activity,
) -> Result<Option<String>, Failure> {
    let Some(sealed) = &activity.arguments.sealed else {
        let has_none = activity.arguments.shape.is_empty();
        return Ok(has_none.then(|| "{}".to_owned()));
    };
    let keys = activity_log::argument_keys(project);
    let opened = keys.and_then(|keys| keys.unseal(activity.id, sealed));
    let opened = opened.map_err(|error: ArgumentKeyError| Failure::from_error(&error))?;
    Ok(Some(String::from_utf8_lossy(&opened).into_owned()))
}

fn export(project: &Project, arguments: &ExportArguments) -> Result<ExitCode, Failure> {
    let filter = arguments.filter.resolve();
    let reader = activity_log::reader(project);
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut written = Ok(());
    let mut document = Vec::new();
    let read = reader.each(&filter, |activity| match arguments.format {
        Format::Jsonl => {
            if written.is_ok() {
                written = writeln!(out, "{}", json!(activity));
            }
        }
        Format::Prov => document.push(activity),
    });
    read.map_err(|error| Failure::from_error(&error))?;
    if let Format::Prov = arguments.format {
        written = writeln!(out, "{}", prov_document(&document));
    }
    written
        .and_then(|()| out.flush())
        .map_err(|error| Failure::from_error(&error))?;
    Ok(ExitCode::SUCCESS)
}
