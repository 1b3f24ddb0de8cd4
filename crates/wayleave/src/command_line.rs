//! Converts a tool call to the equivalent command.

use serde_json::{Map, Value};
use wayleave_plan::read_tool::ReadTool;

use crate::shell_word::quoted;

/// The command for a call of a read tool; `None` if an argument has no option.
pub(crate) fn for_call(call: &Value) -> Option<String> {
    let arguments = call.get("arguments")?.as_object()?;
    let (command, first) = match ReadTool::parse(call.get("tool")?.as_str()?)? {
        ReadTool::Schema => ("schema", "stream"),
        ReadTool::QueryRecords => ("query", "stream"),
        ReadTool::Aggregate => ("aggregate", "stream"),
        ReadTool::Search => ("search", "q"),
        ReadTool::Fetch => ("fetch", "id"),
    };
    let mut words = vec!["wayleave".to_owned(), command.to_owned()];
    if let Some(value) = arguments.get(first) {
        words.push(word(value));
    }
    for (name, value) in arguments.iter().filter(|(name, _)| *name != first) {
        words.extend(option(name, value)?);
    }
    let words: Vec<String> = words.iter().map(|it| quoted(it)).collect();
    Some(words.join(" "))
}

/// The command-line words of one argument.
fn option(name: &str, value: &Value) -> Option<Vec<String>> {
    let flag = |name: &str, value: String| vec![format!("--{name}"), value];
    Some(match name {
        "connection_id" => flag("connection", word(value)),
        "filter" | "having" | "limit" | "cursor" | "count" | "offset" => flag(name, word(value)),
        "changes_since" => flag("changes-since", word(value)),
        "fields" | "expand" | "streams" => flag(name, list(value)?.join(",")),
        "group_by" => flag("by", list(value)?.join(",")),
        "group_by_time" => flag("by-time", period(value.as_object()?)?),
        "sort" => repeated("sort", list(value)?),
        "metrics" => repeated("metric", list(value)?),
        "totals" if value.as_bool()? => vec!["--totals".to_owned()],
        "totals" => Vec::new(),
        _ => return None,
    })
}

fn repeated(name: &str, words: Vec<String>) -> Vec<String> {
    let words = words.into_iter();
    words.flat_map(|it| [format!("--{name}"), it]).collect()
}

fn list(value: &Value) -> Option<Vec<String>> {
    Some(value.as_array()?.iter().map(word).collect())
}

fn period(value: &Map<String, Value>) -> Option<String> {
    let mut text = format!(
        "{}:{}",
        value.get("field")?.as_str()?,
        value.get("granularity")?.as_str()?
    );
    if let Some(zone) = value.get("time_zone") {
        text.push(':');
        text.push_str(zone.as_str()?);
    }
    Some(text)
}

fn word(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_is_the_command_that_makes_it() {
        let call = json!({ "tool": "aggregate", "arguments": {
            "stream": "cargo",
            "metrics": ["sum:tonnes", { "op": "count", "as": "n" }],
            "group_by": ["call.vessel", "commodity"],
            "group_by_time": { "field": "at", "granularity": "month", "time_zone": "UTC" },
            "filter": { "commodity": "farmer's \"milk\"" },
            "sort": ["-sum_tonnes"],
            "limit": 3,
            "totals": true,
        } });
        assert_eq!(
            for_call(&call).unwrap(),
            "wayleave aggregate cargo --metric sum:tonnes --metric '{\"op\":\"count\",\"as\":\"n\"}' \
             --by call.vessel,commodity --by-time at:month:UTC \
             --filter '{\"commodity\":\"farmer'\\''s \\\"milk\\\"\"}' --sort -sum_tonnes --limit 3 \
             --totals"
        );
        let call = json!({ "tool": "search", "arguments": { "q": "a b", "streams": ["x", "y"] } });
        assert_eq!(
            for_call(&call).unwrap(),
            "wayleave search 'a b' --streams x,y"
        );
        let call = json!({ "tool": "workup", "arguments": { "entity": "x" } });
        assert_eq!(for_call(&call), None);
    }
}
