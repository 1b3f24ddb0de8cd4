//! `wayleave grant create`: grants read access to a dataset, or to the named parts of it.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::ExitCode,
};

use wayleave_ledger::GrantRequest;
use wayleave_model::{grant::RowFilter, mask::Mask};
use wayleave_plan::package::GrantSelection;
use wayleave_project::{ratified_mappings::ratified_mapping, render};

use super::{
    expiry::{self, Expiry},
    file::{self, GrantDraft},
};
use crate::{actor, arguments, failure::Failure, output::Output, signing::SigningArgs};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The dataset. Without more, everything in it may be read.
    #[arg(
        long,
        value_name = "DATASET",
        value_parser = arguments::dataset,
        required_unless_present = "file"
    )]
    dataset: Option<String>,
    /// The connection, where the dataset has several.
    #[arg(long, value_name = "ID")]
    connection: Option<String>,
    /// A stream that may be read, whole or by some of its fields. Other streams are not granted.
    #[arg(long = "stream", value_name = "STREAM[=FIELD,…]", value_parser = stream)]
    streams: Vec<(String, Option<BTreeSet<String>>)>,
    /// Which rows of a stream may be read: a filter as `query_records` takes it, in JSON.
    #[arg(long = "rows", value_name = "STREAM=FILTER", value_parser = rows)]
    rows: Vec<(String, RowFilter)>,
    /// A field that is shown masked: `redact`, `last4`, `year`, `bucket:100`, `token` or
    /// `token:project`.
    #[arg(long = "mask", value_name = "STREAM.FIELD=MASK", value_parser = mask)]
    masks: Vec<(String, String, Mask)>,
    /// A capability that may be called.
    #[arg(long = "capability", value_name = "NAME")]
    capabilities: Vec<String>,
    /// When the grant ends: `12h`, `30d`, `6w`, a date or a time [default: never].
    #[arg(long, value_name = "WHEN", value_parser = expiry::parse)]
    expires: Option<Expiry>,
    /// What it is for, in your words; kept for ever.
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    purpose: String,
    /// Read the grant from a TOML file instead.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["dataset", "connection", "streams", "rows", "masks", "capabilities", "expires", "purpose"]
    )]
    file: Option<PathBuf>,
    /// Who you are [default: the user of this machine].
    #[arg(long, value_name = "NAME")]
    who: Option<String>,
    #[command(flatten)]
    signing: SigningArgs,
}

/// Parses `people`, or `people=full_name,status`.
pub(super) fn stream(word: &str) -> Result<(String, Option<BTreeSet<String>>), String> {
    let (name, fields) = match word.split_once('=') {
        None => (word, None),
        Some((name, fields)) => (name, Some(fields)),
    };
    let fields = fields.map(|fields| {
        let names = fields.split(',').map(|name| name.trim().to_owned());
        names.collect::<BTreeSet<_>>()
    });
    let empty = |it: &BTreeSet<String>| it.contains("");
    if name.is_empty() || fields.as_ref().is_some_and(empty) {
        return Err("write it as `people`, or `people=full_name,status`".to_owned());
    }
    Ok((name.to_owned(), fields))
}

/// Parses `people={"region": "eu"}`.
pub(super) fn rows(word: &str) -> Result<(String, RowFilter), String> {
    let form = "write it as `people={\"region\": \"eu\"}`";
    let (stream, filter) = word.split_once('=').ok_or(form)?;
    let filter = filter.parse().map_err(|error| format!("{error}; {form}"))?;
    Ok((stream.trim().to_owned(), filter))
}

/// Parses `people.email=token`.
fn mask(word: &str) -> Result<(String, String, Mask), String> {
    let form = "write it as `people.email=token`";
    let (path, mask) = word.split_once('=').ok_or(form)?;
    let (stream, field) = path.trim().split_once('.').ok_or(form)?;
    let mask = mask
        .trim()
        .parse()
        .map_err(|error| format!("{error}; {form}"))?;
    Ok((stream.to_owned(), field.to_owned(), mask))
}

impl Arguments {
    fn written(self) -> Result<GrantDraft, Failure> {
        if let Some(file) = self.file {
            return file::read(&file);
        }
        let twice = |what: &str, name: &str| {
            Failure::usage(format!("{what} `{name}` is given twice"))
                .hint("name each stream once, with all its fields")
        };
        let mut selection = GrantSelection {
            connection: self.connection,
            capabilities: self.capabilities.into_iter().collect(),
            ..GrantSelection::default()
        };
        for (name, fields) in self.streams {
            if selection.streams.insert(name.clone(), fields).is_some() {
                return Err(twice("stream", &name));
            }
        }
        for (name, filter) in self.rows {
            if selection.rows.insert(name.clone(), filter).is_some() {
                return Err(twice("the row filter of", &name));
            }
        }
        for (stream, field, mask) in self.masks {
            let masks = selection.masks.entry(stream.clone()).or_default();
            if masks.insert(field.clone(), mask).is_some() {
                return Err(twice("the mask of", &format!("{stream}.{field}")));
            }
        }
        let dataset = self.dataset.ok_or_else(|| {
            Failure::bug("neither a dataset nor a file is given, which the parser refuses")
        })?;
        Ok(GrantDraft {
            dataset,
            selection,
            purpose: self.purpose,
            expires: self.expires,
        })
    }
}

pub(super) async fn run(
    mut arguments: Arguments,
    project: Option<&Path>,
    output: Output,
) -> Result<ExitCode, Failure> {
    let project = crate::commands::open(project)?;
    let signing = std::mem::take(&mut arguments.signing);
    let project = signing.sign(project).await?;
    let who = arguments.who.take().unwrap_or_else(actor::os_user);
    let written = arguments.written()?;
    let governance = project.governance();
    let mapping = ratified_mapping(&project, &written.dataset).await?;
    let terms = written.selection.terms(&mapping);
    let terms = terms.map_err(|errors| render::granting::unfit(&errors, &written.dataset))?;
    let state = governance.ledger().state().await?;
    let request = GrantRequest {
        terms,
        expires: written.expires.map(|it| it.moment(expiry::now(&state))),
        purpose: written.purpose,
    };
    let id = governance.grant(request.clone(), &who).await?;
    Ok(output.show(&render::granting::granted(&id, &request, &who)))
}
