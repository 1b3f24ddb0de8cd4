//! `wayleave source`: declares stores. A source names the variable that holds its DSN, never the
//! DSN.

use std::{path::Path, process::ExitCode};

use clap::{Subcommand, ValueEnum};
use serde_json::json;
use wayleave_ledger::{GovernanceError, LedgerError, NewSource, Refusal};
use wayleave_model::mapping::SourceKind;
use wayleave_project::{
    change_triggers::{TableName, change_triggers},
    overview::readers,
    render,
    source::{self, Environment},
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
    /// Withdraw a source. What reads it can be read no more.
    Remove {
        /// The source.
        #[arg(value_name = "NAME", value_parser = arguments::source)]
        name: String,
        #[command(flatten)]
        signing: SigningArgs,
    },
    /// Print the statement that makes the table of idempotency keys, for you to run in the source.
    Prepare {
        /// The source that capabilities write through.
        #[arg(value_name = "NAME", value_parser = arguments::source)]
        name: String,
        /// The schema or database of the tables that are written.
        #[arg(long, value_name = "SCHEMA")]
        schema: Option<String>,
    },
    /// Open a read-only session and take the time.
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
    kind: Kind,
    /// The environment variable that holds the DSN; the variable's name, not the DSN. Instead of
    /// it `VARIABLE_FILE` may name a file that holds the DSN.
    #[arg(long, value_name = "VARIABLE")]
    env: String,
    #[command(flatten)]
    signing: SigningArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Kind {
    Sqlite,
    Postgres,
    Mysql,
}

impl From<Kind> for SourceKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Sqlite => Self::Sqlite,
            Kind::Postgres => Self::Postgres,
            Kind::Mysql => Self::Mysql,
        }
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
    let kind = SourceKind::from(add.kind);
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
            let hint = match &error {
                GovernanceError::Ledger(LedgerError::Refused(Refusal::SourceExists { .. })) => {
                    "to change a source, remove it first; `wayleave source list` shows them"
                }
                _ => "export a variable that holds the DSN, and give its name",
            };
            Failure::from(error).or_hint(hint)
        })?;
    let state = governance.ledger().state().await?;
    let is_set = declared(&state, &add.name)
        .is_ok_and(|source| source::is_set(source, &Environment::process()));
    let next = format!("wayleave propose {}", add.name);
    let document = json!({
        "source": { "name": add.name, "kind": kind, "env": add.env, "is_set": is_set },
        "next": next,
    });
    output.answer(
        &document,
        format!(
            "declared source `{}`: {kind}, with its DSN in `{}`\nnext: {next}",
            add.name, add.env
        ),
    );
    if !is_set {
        output.remark(format!(
            "remark: `{}` is not set here; export it before the source is read",
            add.env
        ));
    }
    Ok(ExitCode::SUCCESS)
}

async fn list(project: Option<&Path>, output: Output) -> Result<ExitCode, Failure> {
    let project = super::open(project)?;
    let state = project.governance().ledger().state().await?;
    let sources = render::sources::list(&state, &Environment::process());
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
    let readers = readers(&project, &state, name).await;
    let document = json!({ "removed": name, "read_by": readers });
    output.answer(&document, format!("withdrew source `{name}`"));
    for dataset in readers {
        output.remark(format!(
            "remark: dataset `{dataset}` reads it, and cannot be served without it"
        ));
    }
    Ok(ExitCode::SUCCESS)
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
    let script = change_triggers(&project, &probe, &state, name, &tables);
    let script = script.await.map_err(|error| {
        let hint = error.hint();
        Failure::usage(error.to_string()).hint(hint)
    })?;
    let shown = script.tables.iter();
    let shown = shown.map(|it| json!({ "schema": it.schema, "table": it.table }));
    let shown: Vec<_> = shown.collect();
    let document = json!({ "source": name, "tables": shown, "sql": script.sql });
    output.answer(&document, script.sql.trim_end());
    for view in &script.views {
        output.remark(format!(
            "remark: `{}` is a view, and is read at every interval",
            view.table
        ));
    }
    output.remark(
        "run it as the owner of the tables; until then, and if it is taken away, the tables are \
         read at every interval",
    );
    Ok(ExitCode::SUCCESS)
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
    let statement = source::idempotency_table(kind, schema).unwrap_or_default();
    let document = json!({ "source": name, "kind": kind, "statement": statement });
    output.answer(&document, statement.trim_end());
    output.remark(
        "remark: a key is needed as long as its call may be repeated; delete older rows by `written_at`",
    );
    Ok(ExitCode::SUCCESS)
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
    let took = took.as_millis();
    let document = json!({ "source": name, "kind": kind, "ms": took, "read_only": true });
    output.answer(
        &document,
        format!("source `{name}` ({kind}) answered in {took} ms; the session is read-only"),
    );
    Ok(ExitCode::SUCCESS)
}
