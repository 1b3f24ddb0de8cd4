//! `wayleave audit`: what was decided, by whom, and whether the record is whole.

use std::{fmt::Write as _, path::Path, process::ExitCode};

use serde_json::json;
use wayleave_ledger::{Entry, Event, Head};

use super::grant::expiry;
use crate::{
    columns,
    failure::{Failure, Status},
    output::Output,
};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Walk the whole ledger and every frozen mapping, and say what is wrong.
    #[arg(long)]
    verify: bool,
    /// A head kept elsewhere, which the ledger must still pass through. Implies `--verify`.
    #[arg(long, value_name = "SEQ:HASH")]
    head: Option<Head>,
    /// How many entries to list, the latest.
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: u32,
}

pub(crate) async fn run(
    arguments: Arguments,
    project: Option<&Path>,
    output: Output,
) -> Result<ExitCode, Failure> {
    if arguments.verify || arguments.head.is_some() {
        return verify(arguments.head, project, output).await;
    }
    let project = super::open_to_read(project)?;
    let ledger = project.governance().ledger();
    let total = ledger.epoch().await?;
    let after = total.saturating_sub(u64::from(arguments.limit));
    let entries = ledger.entries(after, arguments.limit).await?;
    let rows: Vec<_> = entries.iter().map(row).collect();
    let document = json!({ "total": total, "entries": entries });
    let mut text = columns::align(&rows);
    if after > 0 {
        text = format!(
            "{} earlier (`--limit` shows more)\n{text}",
            columns::count_entries(after)
        );
    }
    output.answer(&document, text);
    Ok(ExitCode::SUCCESS)
}

async fn verify(
    head: Option<Head>,
    project: Option<&Path>,
    output: Output,
) -> Result<ExitCode, Failure> {
    let project = super::open_to_read(project)?;
    let report = project.governance().audit(head).await?;
    let (ledger, ok) = (&report.ledger, report.is_ok());
    let mappings: Vec<_> = report.mappings.into_iter().map(Failure::from).collect();
    let document = json!({
        "ok": ok,
        "ledger": ledger,
        "mappings": mappings.iter().map(Failure::document).collect::<Vec<_>>(),
    });
    let mut text = format!("{} whole and in order", columns::count_entries(ledger.good));
    if let Some(head) = ledger.head {
        let _ = write!(
            text,
            "\nhead: {head}\nhint: keep the head where nobody can write, and give it back with `--head`"
        );
    }
    if let Some(problem) = &ledger.problem {
        let _ = write!(text, "\nerror: {problem}");
    }
    for failure in &mappings {
        for (kind, line) in failure.lines() {
            let _ = write!(text, "\n{kind}: {line}");
        }
    }
    output.answer(&document, text);
    Ok(if ok {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(Status::Findings as u8)
    })
}

fn row(entry: &Entry) -> Vec<String> {
    let at = expiry::format(entry.at);
    let (what, who, note) = words(&entry.event);
    let note = match note {
        "" => String::new(),
        note => format!("\"{}\"", note.replace(['\n', '\t'], " ")),
    };
    vec![entry.seq.to_string(), at, what, who.to_owned(), note]
}

fn words(event: &Event) -> (String, &str, &str) {
    match event {
        Event::LedgerCreated { .. } => ("began".to_owned(), "", ""),
        Event::DatasetRatified {
            dataset,
            digest,
            who,
            note,
            ..
        } => (format!("ratified {dataset} {}", digest.short()), who, note),
        Event::DatasetRetired {
            dataset, who, note, ..
        } => (format!("retired {dataset}"), who, note),
        Event::DatasetActivated {
            dataset,
            digest,
            who,
            ..
        } => (format!("connected {dataset} {}", digest.short()), who, ""),
        Event::DatasetDeactivated { dataset, who, .. } => {
            (format!("disconnected {dataset}"), who, "")
        }
        Event::SourceAdded {
            name,
            kind,
            env,
            who,
        } => (format!("added source {name} ({kind}, {env})"), who, ""),
        Event::SourceRemoved { name, who } => (format!("removed source {name}"), who, ""),
        Event::GrantCreated(new) => {
            let of = &new.terms.connection;
            (
                format!("granted {} of {of}", new.grant),
                &new.who,
                &new.purpose,
            )
        }
        Event::GrantRevoked { grant, who, note } => (format!("revoked {grant}"), who, note),
        Event::TokenIssued(new) => {
            let id = &new.token;
            (format!("issued {id} ({})", new.kind), &new.who, &new.label)
        }
        Event::TokenRevoked { token, who, note } => (format!("revoked {token}"), who, note),
        _ => ("another act".to_owned(), "", ""),
    }
}
