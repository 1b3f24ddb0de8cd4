//! `wayleave source`: declares stores. A source names the variable that holds its DSN, never the
//! DSN.

use std::{path::Path, process::ExitCode, sync::LazyLock};

use clap::{Subcommand, ValueEnum, builder::PossibleValue};
use wayleave_ledger::NewSource;
use wayleave_model::mapping::SourceKind;
use wayleave_project::{
    adapters::{self, TableName},
    change_triggers::change_triggers,
    ratified_mappings::RatifiedMappings,
    render,
    source::EnvironmentVariables,
    source_probe::{ProbeError, declared},
};

use crate::{
    actor, arguments,
    failure::{Failure, Status},
    output::Output,
    signing::SigningArgs,
};

#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Declare a source: its kind, and the environment variable that holds its DSN.
    Add(Add),
    /// List the declared sources.
    List,
    /// Remove a source; datasets that read it can no longer be served.
    Remove {
        /// The source.
        #[arg(value_name = "NAME", value_parser = arguments::source)]
        name: String,
        #[command(flatten)]
        signing: SigningArgs,
    },
    /// Print the SQL that creates the table of idempotency keys.
    Prepare {
        /// The source that capabilities write through.
        #[arg(value_name = "NAME", value_parser = arguments::source)]
        name: String,
        /// The schema or database of the tables that are written.
        #[arg(long, value_name = "SCHEMA")]
        schema: Option<String>,
    },
    /// Open a read-only session, and print how long it took.
    Test {
        /// The source.
        #[arg(value_name = "NAME", value_parser = arguments::source)]
        name: String,
    },
    /// Print the SQL that lets a PostgreSQL source announce its changes. Installs nothing.
    Triggers {
        /// The source.
        #[arg(value_name = "NAME", value_parser = arguments::source)]
        name: String,
        /// A table, as `TABLE` or `SCHEMA.TABLE`, instead of those that ratified datasets read. A
        /// partition needs a trigger of its own.
        #[arg(long = "table", value_name = "TABLE")]
        tables: Vec<String>,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct Add {
    /// What to call it: `a-z`, `0-9`, `_` and `-`.
    #[arg(value_name = "NAME", value_parser = arguments::source)]
    name: String,
    /// The kind of store.
    #[arg(long)]
    kind: DeclarableKind,
    /// The environment variable that holds the DSN; the variable's name, not the DSN. Instead of
    /// it `VARIABLE_FILE` may name a file that holds the DSN.
    #[arg(long, value_name = "VARIABLE")]
    env: String,
    #[command(flatten)]
    signing: SigningArgs,
}

/// A kind of source that has an adapter.
#[derive(Debug, Clone, Copy)]
struct DeclarableKind(SourceKind);

impl ValueEnum for DeclarableKind {
    fn value_variants<'a>() -> &'a [Self] {
        static KINDS: LazyLock<Vec<DeclarableKind>> =
            LazyLock::new(|| adapters::kinds().map(DeclarableKind).collect());
        &KINDS
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.as_str()))
    }
}

impl Action {
    /// Whether only the project folder is used.
    pub(crate) fn is_local(&self) -> bool {
        !matches!(self, Self::Test { .. } | Self::Triggers { .. })
    }
}

pub(crate) async fn run(
    action: Action,
    project: Option<&Path>,
    output: Output,
) -> Result<ExitCode, Failure> {
    match action {
        Action::Add(add) => run_add(add, project, output).await,
        Action::List => list(project, output).await,
        Action::Remove { name, signing } => remove(&name, &signing, project, output).await,
        Action::Prepare { name, schema } => {
            prepare(&name, schema.as_deref(), project, output).await
        }
        Action::Test { name } => test(&name, project, output).await,
        Action::Triggers { name, tables } => triggers(&name, &tables, project, output).await,
    }
}

async fn run_add(add: Add, project: Option<&Path>, output: Output) -> Result<ExitCode, Failure> {
    let project = add.signing.sign(super::open(project)?).await?;
    let DeclarableKind(kind) = add.kind;
    let new = NewSource {
        name: add.name.clone(),
        kind,
        env: add.env.clone(),
    };
    let governance = project.governance();
    governance
        .add_source(new, &actor::os_user())
        .await
        .map_err(|error| {
            let hint = "export a variable that holds the DSN, and give its name";
            Failure::from(error).or_hint(hint)
        })?;
    let state = governance.ledger().state().await?;
    let source = declared(&state, &add.name)?;
    let added = render::sources::added(&add.name, source, &EnvironmentVariables::process());
    Ok(output.show(&added))
}

async fn list(project: Option<&Path>, output: Output) -> Result<ExitCode, Failure> {
    let project = super::open(project)?;
    let state = project.governance().ledger().state().await?;
    let sources = render::sources::list(&state, &EnvironmentVariables::process());
    Ok(output.show(&sources))
}

async fn remove(
    name: &str,
    signing: &SigningArgs,
    project: Option<&Path>,
    output: Output,
) -> Result<ExitCode, Failure> {
    let project = signing.sign(super::open(project)?).await?;
    let governance = project.governance();
    let state = governance.ledger().state().await?;
    declared(&state, name)?;
    governance.remove_source(name, &actor::os_user()).await?;
    let ratified = RatifiedMappings::load(&project, &state).await;
    Ok(output.show(&render::sources::removed(name, &ratified)))
}

async fn triggers(
    name: &str,
    tables: &[String],
    project: Option<&Path>,
    output: Output,
) -> Result<ExitCode, Failure> {
    let project = super::open_to_read(project)?;
    let state = project.governance().ledger().state().await?;
    let tables: Vec<TableName> = tables.iter().map(|it| table_name(it)).collect();
    let probe = super::source_probe();
    let script = change_triggers(&project, &probe, &state, name, &tables).await?;
    Ok(output.show(&render::sources::change_triggers(name, &script)))
}

/// Prints the statement without running it: only the operator changes a source.
async fn prepare(
    name: &str,
    schema: Option<&str>,
    project: Option<&Path>,
    output: Output,
) -> Result<ExitCode, Failure> {
    let project = super::open(project)?;
    let state = project.governance().ledger().state().await?;
    let kind = declared(&state, name)?.kind;
    let table = render::sources::idempotency_table(name, kind, schema)?;
    Ok(output.show(&table))
}

/// Parses `TABLE` or `SCHEMA.TABLE`.
fn table_name(text: &str) -> TableName {
    let (schema, table) = match text.split_once('.') {
        Some((schema, table)) => (Some(schema.to_owned()), table),
        None => (None, text),
    };
    TableName {
        schema,
        table: table.to_owned(),
    }
}

async fn test(name: &str, project: Option<&Path>, output: Output) -> Result<ExitCode, Failure> {
    let project = super::open(project)?;
    let state = project.governance().ledger().state().await?;
    let took = super::source_probe()
        .ping(&state, name)
        .await
        .map_err(|error| {
            let status = match error {
                ProbeError::Store { .. } => Status::Findings,
                _ => Status::Usage,
            };
            Failure::from(error).status(status)
        })?;
    let kind = declared(&state, name)?.kind;
    Ok(output.show(&render::sources::answered(name, kind, took)))
}
