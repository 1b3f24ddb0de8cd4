//! The record of calls, in words.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};
use wayleave_activity::{Activity, CallOutcome, LogReport};
use wayleave_ledger::Millis;

use super::moment;
use crate::{Rendering, call_summary, columns};

fn started(activity: &Activity) -> String {
    moment(Millis::try_from(activity.id.started_ms()).unwrap_or(Millis::MAX))
}

/// A human-readable duration: `0.4 ms`, `44 ms`, `1.2 s`.
pub fn duration(micros: u64) -> String {
    match micros {
        0..100 => "under 0.1 ms".to_owned(),
        100..10_000 => format!("{}.{} ms", micros / 1000, micros % 1000 / 100),
        10_000..1_000_000 => format!("{} ms", micros / 1000),
        _ => format!("{}.{} s", micros / 1_000_000, micros % 1_000_000 / 100_000),
    }
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

/// How much of an activity's arguments is shown.
#[derive(Debug, Clone, Copy)]
pub enum ArgumentDetail<'a> {
    /// Their names and types.
    Shape,
    /// All of them, as text.
    Text(&'a str),
    /// Their names and types: the operator requested all, and they are not in the record.
    Unrecorded,
}

/// One activity in full, with its arguments if the operator requested them.
pub fn show(activity: &Activity, detail: ArgumentDetail<'_>) -> Rendering {
    let (arguments, remark) = match detail {
        ArgumentDetail::Shape => (None, None),
        ArgumentDetail::Text(text) => (Some(text), None),
        ArgumentDetail::Unrecorded => (None, Some(UNRECORDED_ARGUMENTS.to_owned())),
    };
    let mut document = json!(activity);
    // A text that is not JSON is shown as it is.
    let given = arguments.map(|text| serde_json::from_str(text).unwrap_or_else(|_| text.into()));
    if let (Some(given), Some(members)) = (
        given,
        document
            .pointer_mut("/arguments")
            .and_then(Value::as_object_mut),
    ) {
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
    Rendering::new(document, columns::align(&rows)).with_remarks(remark)
}

const UNRECORDED_ARGUMENTS: &str = "remark: the arguments of this call are not in the record: \
     arguments over 16 KiB are recorded by names and types alone";

/// The result of destroying the key of all recorded arguments. `number` is that of the next key.
pub fn key_destroyed(number: u32) -> Rendering {
    Rendering::new(
        json!({ "key": number }),
        "the arguments of all calls so far cannot be read any more",
    )
}

/// The result of verifying the log.
pub fn verification(report: &LogReport) -> Rendering {
    let mut text = String::new();
    let count =
        |number: u64, word| columns::count(usize::try_from(number).unwrap_or(usize::MAX), word);
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
        text.push_str("the record of calls is intact");
    } else {
        text.push_str("hint: records before the damaged one are intact");
    }
    let document = json!({ "ok": report.is_sound(), "log": report });
    Rendering::new(document, text).with_findings(!report.is_sound())
}

/// The result of replaying a call.
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

/// Statistics of the calls of one token, target or dataset.
#[derive(Default)]
struct CallGroup {
    micros: Vec<u64>,
    failed: usize,
    rows: u64,
}

impl CallGroup {
    fn add(&mut self, activity: &Activity) {
        self.micros.push(activity.micros);
        self.failed += usize::from(activity.outcome != CallOutcome::Completed);
        self.rows += activity.rows;
    }

    /// The latency that `percent` of the calls do not exceed.
    fn percentile(&mut self, percent: u64) -> u64 {
        self.micros.sort_unstable();
        let rank = call_summary::rank(self.micros.len() as u64, percent);
        let place = usize::try_from(rank - 1).unwrap_or(usize::MAX);
        self.micros.get(place).copied().unwrap_or(0)
    }

    fn row(&mut self, name: &str, window: u64) -> Vec<String> {
        let calls = self.micros.len() as u64;
        let tenths = calls * 10 / window.max(1);
        vec![
            name.to_owned(),
            format!("{}.{}/s", tenths / 10, tenths % 10),
            duration(self.percentile(50)),
            duration(self.percentile(95)),
            self.failed.to_string(),
            self.rows.to_string(),
        ]
    }

    fn document(&mut self) -> Value {
        json!({
            "calls": self.micros.len(), "failed": self.failed, "rows": self.rows,
            "p50_micros": self.percentile(50), "p95_micros": self.percentile(95),
        })
    }
}

/// Number of slowest calls shown.
const MAX_SLOW_CALLS: usize = 5;
/// Maximum number of groups shown of each kind.
const MAX_GROUPS: usize = 12;

/// The calls of the last `window` seconds, and the running calls if a server reports them.
pub fn top(calls: &[Activity], window: u64, running: Option<&Value>) -> Rendering {
    let mut kinds: [(&str, BTreeMap<&str, CallGroup>); 3] = [
        ("token", BTreeMap::new()),
        ("call", BTreeMap::new()),
        ("dataset", BTreeMap::new()),
    ];
    let mut all = CallGroup::default();
    for activity in calls {
        all.add(activity);
        let [(_, tokens), (_, targets), (_, datasets)] = &mut kinds;
        tokens.entry(token(activity)).or_default().add(activity);
        let name = match activity.method.as_str() {
            "tools/call" => activity.target.as_deref().unwrap_or("tools/call"),
            method => method,
        };
        targets.entry(name).or_default().add(activity);
        for grant in &activity.grants {
            datasets.entry(&grant.dataset).or_default().add(activity);
        }
    }
    let mut text = format!("{} in {window} s", columns::count(calls.len(), "call"));
    let live = running.and_then(|running| running.get("calls")?.as_array());
    if let Some(live) = live {
        let _ = write!(text, ", {} running", live.len());
    }
    let mut document =
        json!({ "window_seconds": window, "all": all.document(), "running": running });
    for (kind, groups) in &mut kinds {
        let header = [*kind, "rate", "p50", "p95", "failed", "rows"].map(str::to_owned);
        let mut rows = vec![header.to_vec()];
        let mut shown: Vec<_> = groups.iter_mut().collect();
        shown.sort_by_key(|(_, group)| std::cmp::Reverse(group.micros.len()));
        let each = shown.iter_mut().take(MAX_GROUPS);
        rows.extend(each.map(|(name, group)| group.row(name, window)));
        let _ = write!(text, "\n\n{}", columns::align(&rows));
        let documents: serde_json::Map<String, Value> = shown
            .into_iter()
            .map(|(name, group)| ((*name).to_owned(), group.document()))
            .collect();
        if let Some(document) = document.as_object_mut() {
            document.insert((*kind).to_owned(), documents.into());
        }
    }
    let mut slow: Vec<&Activity> = calls.iter().collect();
    slow.sort_by_key(|activity| std::cmp::Reverse(activity.micros));
    slow.truncate(MAX_SLOW_CALLS);
    let rows: Vec<Vec<String>> = slow.iter().map(|activity| row(activity)).collect();
    let _ = write!(text, "\n\nslowest\n{}", columns::align(&rows));
    for call in live.into_iter().flatten() {
        let word = |name: &str| {
            call.get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let (token, method, target) = (word("token"), word("method"), word("target"));
        let ms = call.get("running_ms").and_then(Value::as_u64).unwrap_or(0);
        let _ = write!(text, "\nrunning {ms} ms  {token}  {method} {target}");
    }
    Rendering::new(document, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_told_as_people_read_them() {
        for (micros, told) in [
            (7, "under 0.1 ms"),
            (412, "0.4 ms"),
            (9_900, "9.9 ms"),
            (44_000, "44 ms"),
            (1_250_000, "1.2 s"),
        ] {
            assert_eq!(duration(micros), told);
        }
    }

    #[test]
    fn a_percentile_is_a_latency_that_so_many_calls_do_not_exceed() {
        let mut group = CallGroup {
            micros: vec![900, 100],
            ..CallGroup::default()
        };
        assert_eq!(group.percentile(50), 100);
        assert_eq!(group.percentile(95), 900);
        assert_eq!(CallGroup::default().percentile(95), 0);
    }
}
