//! The record of calls, in words.

use std::fmt::Write as _;

use serde_json::{Value, json};
use wayleave_activity::{Activity, LogReport};
use wayleave_ledger::Millis;

use super::moment;
use crate::{Rendering, columns};

fn started(activity: &Activity) -> String {
    moment(Millis::try_from(activity.id.started_ms()).unwrap_or(Millis::MAX))
}

fn duration(micros: u64) -> String {
    format!("{}.{} ms", micros / 1_000, micros % 1_000 / 100)
}

/// Activities, one line each.
pub fn list(activities: &[Activity]) -> Rendering {
    let rows: Vec<Vec<String>> = activities.iter().map(row).collect();
    let text = match activities {
        [] => "no call on record matches".to_owned(),
        _ => columns::align(&rows),
    };
    Rendering::new(json!({ "activities": activities }), text)
}

fn row(activity: &Activity) -> Vec<String> {
    let target = activity.target.as_deref().unwrap_or_default();
    let what = match (activity.method.as_str(), target) {
        ("tools/call", target) => target.to_owned(),
        (method, "") => method.to_owned(),
        (method, target) => format!("{method} {target}"),
    };
    vec![
        started(activity),
        activity.id.to_string(),
        token(activity).to_owned(),
        what,
        activity.outcome.to_string(),
        columns::count(usize::try_from(activity.rows).unwrap_or(usize::MAX), "row"),
        duration(activity.micros),
    ]
}

fn token(activity: &Activity) -> &str {
    match activity.agent.token.as_str() {
        "" => "(nobody)",
        token => token,
    }
}

/// One activity in full, with its arguments where the operator asked for them.
pub fn show(activity: &Activity, arguments: Option<&str>) -> Rendering {
    let mut document = json!(activity);
    let given = arguments.map(|text| serde_json::from_str(text).unwrap_or(Value::Null));
    if let (Some(given), Some(members)) = (given, document["arguments"].as_object_mut()) {
        members.insert("given".to_owned(), given);
    }
    let client = [&activity.agent.client, &activity.agent.version];
    let client: Vec<&str> = client.iter().filter_map(|part| part.as_deref()).collect();
    let carrier = if activity.transport.http {
        "http"
    } else {
        "stdio"
    };
    let mut rows = vec![
        ("activity", activity.id.to_string()),
        ("began", started(activity)),
        ("took", duration(activity.micros)),
        ("by", token(activity).to_owned()),
        ("client", client.join(" ")),
        ("over", carrier.to_owned()),
        ("method", activity.method.clone()),
        ("target", activity.target.clone().unwrap_or_default()),
        ("outcome", activity.outcome.to_string()),
        ("rows", activity.rows.to_string()),
        ("bytes", activity.bytes.to_string()),
        ("arguments", activity.arguments.shape.clone()),
    ];
    rows.extend(arguments.map(|given| ("given", given.to_owned())));
    for grant in &activity.grants {
        let digest: String = grant
            .mapping
            .iter()
            .take(6)
            .fold(String::new(), |mut hex, byte| {
                let _ = write!(hex, "{byte:02x}");
                hex
            });
        let (id, connection, dataset) = (&grant.grant, &grant.connection, &grant.dataset);
        rows.push((
            "grant",
            format!("{id} of {connection} ({dataset} {digest})"),
        ));
    }
    rows.extend(
        activity
            .streams
            .iter()
            .map(|stream| ("stream", stream.clone())),
    );
    rows.extend(activity.used.ids.iter().map(|id| ("used", id.clone())));
    rows.extend(
        activity
            .generated
            .ids
            .iter()
            .map(|id| ("generated", id.clone())),
    );
    let unlisted = activity.used.total - activity.used.ids.len() as u64;
    if unlisted > 0 {
        rows.push(("used", format!("{unlisted} more")));
    }
    let rows: Vec<Vec<String>> = rows
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| vec![name.to_owned(), value])
        .collect();
    Rendering::new(document, columns::align(&rows))
}

/// Whether the log is as it was written.
pub fn verification(report: &LogReport) -> Rendering {
    let mut text = String::new();
    let count = |number: u64, word| columns::count(usize::try_from(number).unwrap_or(0), word);
    for writer in &report.writers {
        let (records, segments) = (
            count(writer.records, "record"),
            count(writer.segments, "segment"),
        );
        let _ = write!(text, "{records} in {segments}");
        if writer.dropped > 0 {
            let _ = write!(
                text,
                ", {} dropped by retention",
                count(writer.dropped, "record")
            );
        }
        let _ = writeln!(text, ": {}", writer.folder.display());
    }
    if report.writers.is_empty() {
        text.push_str("no call is on record yet\n");
    }
    for damage in report.damages() {
        let _ = writeln!(text, "error: {damage}");
    }
    if report.is_sound() {
        text.push_str("whole and in order");
    } else {
        text.push_str("hint: what is before the record named is as it was written");
    }
    let document = json!({ "ok": report.is_sound(), "log": report });
    Rendering::new(document, text).with_findings(!report.is_sound())
}

/// Whether a call made again is answered as it was.
pub fn replay(id: &str, same: Option<bool>, notes: &[String]) -> Rendering {
    let verdict = match same {
        Some(true) => "the same answer",
        Some(false) => "another answer",
        None => "not comparable",
    };
    let mut text = format!("{id}: {verdict}");
    for note in notes {
        let _ = write!(text, "\nnote: {note}");
    }
    let document = json!({ "activity": id, "same": same, "notes": notes });
    Rendering::new(document, text).with_findings(same != Some(true))
}
