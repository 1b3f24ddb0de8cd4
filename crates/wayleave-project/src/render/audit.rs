//! The recorded decisions, and the result of verifying the record.

use std::fmt::Write as _;

use serde_json::json;
use wayleave_ledger::{AuditReport, Entry, Event};

use super::moment;
use crate::{Explanation, Rendering, columns};

/// The latest entries of a ledger with `total` entries, `earlier` of which precede them.
pub fn entries(total: u64, earlier: u64, entries: &[Entry]) -> Rendering {
    let rows: Vec<_> = entries.iter().map(row).collect();
    let document = json!({ "total": total, "entries": entries });
    let mut text = columns::align(&rows);
    if earlier > 0 {
        text = format!(
            "{} earlier (`--limit` shows more)\n{text}",
            columns::count_entries(earlier)
        );
    }
    Rendering::new(document, text)
}

/// The result of verifying the ledger and every frozen mapping.
pub fn verification(report: AuditReport) -> Rendering {
    let (ledger, ok) = (&report.ledger, report.is_ok());
    let mappings: Vec<_> = report.mappings.into_iter().map(Explanation::from).collect();
    let document = json!({
        "ok": ok,
        "ledger": ledger,
        "mappings": mappings.iter().map(Explanation::document).collect::<Vec<_>>(),
    });
    let mut text = format!("{}, intact", columns::count_entries(ledger.good));
    if let Some(owner) = ledger.owner {
        let signed = ledger.signed;
        let _ = write!(text, "\n{signed} signed; the first owner's key is {owner}");
    }
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
    Rendering::new(document, text).with_findings(!ok)
}

fn row(entry: &Entry) -> Vec<String> {
    let at = moment(entry.at);
    let (what, who, note) = words(&entry.event);
    let note = match note {
        "" => String::new(),
        note => format!("\"{}\"", note.replace(['\n', '\t'], " ")),
    };
    let who = match entry.signature {
        Some(_) => format!("{who}, signed"),
        None => who.to_owned(),
    };
    vec![entry.seq.to_string(), at, what, who, note]
}

/// The act that an entry records, the actor, and their note.
pub fn words(event: &Event) -> (String, &str, &str) {
    match event {
        Event::LedgerCreated { .. } => ("began".to_owned(), "", ""),
        Event::DatasetRatified(act) => {
            let what = format!("ratified {} {}", act.dataset, act.digest.short());
            (what, &act.who, &act.note)
        }
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
        Event::ActivitySealed {
            segment,
            last_record,
            ..
        } => (
            format!("closed activity segment {segment} at record {last_record}"),
            "",
            "",
        ),
        Event::GrantCreated(new) => {
            let of = &new.terms.connection;
            (
                format!("granted {} of {of}", new.grant),
                &new.who,
                &new.purpose,
            )
        }
        Event::GrantNarrowed { replaces, narrower } => (
            format!("narrowed {replaces} to {}", narrower.grant),
            &narrower.who,
            &narrower.purpose,
        ),
        Event::GrantRevoked { grant, who, note } => (format!("revoked {grant}"), who, note),
        Event::TokenIssued(new) => {
            let id = &new.token;
            (format!("issued {id} ({})", new.kind), &new.who, &new.label)
        }
        Event::TokenRevoked { token, who, note } => (format!("revoked {token}"), who, note),
        Event::OwnerAdded { owner, key, who } => (
            format!("added owner {owner} ({})", key.fingerprint()),
            who,
            "",
        ),
        Event::OwnerRemoved { owner, who, note } => (format!("removed owner {owner}"), who, note),
        _ => ("another act".to_owned(), "", ""),
    }
}
