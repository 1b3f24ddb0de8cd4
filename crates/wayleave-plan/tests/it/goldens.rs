//! The plan or the refusal of each request, compared word for word.
//!
//! A golden file is a list of cases separated by blank lines. A case is a `package` (by default the
//! previous one), a `request`, `---`, and the answer, which `WAYLEAVE_BLESS=1` rewrites.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value as Json;
use wayleave_plan::aggregate::AggregatePlan;
use wayleave_plan::fetch::FetchPlan;
use wayleave_plan::query::QueryPlan;
use wayleave_plan::refusal::{Code, MAX_BYTES, Refusal};
use wayleave_plan::request::{AggregateRequest, FetchRequest, QueryRequest, SchemaRequest};
use wayleave_plan::view::{FieldView, SchemaSubject, StreamView, View};

use crate::explain::{explain, trimmed};
use crate::fixture::{NOW, active_datasets, arguments, at, keys, package};

fn answer(view: &View, tool: &str, json: &str) -> Result<String, Refusal> {
    let arguments = arguments(serde_json::from_str::<Json>(json).unwrap());
    let keys = keys();
    let mut text = String::new();
    match tool {
        "schema" => {
            let request = SchemaRequest::parse(&arguments)?;
            text.push_str(&discovered(&view.discover(&request)?));
        }
        "query_records" => {
            let request = QueryRequest::parse(&arguments)?;
            let plan = QueryPlan::new(view, &request, at(&keys, NOW))?;
            writeln!(text, "query      {}", plan.header().join(", ")).unwrap();
            text.push_str(&explain(plan.rows()));
            for (name, plan) in [("horizon", plan.horizon()), ("count", plan.count())] {
                if let Some(plan) = plan {
                    writeln!(text, "{name}").unwrap();
                    text.push_str(&explain(plan));
                }
            }
            for expansion in plan.expansions() {
                let header = expansion.header().join(", ");
                let many = if expansion.is_to_one() { "one" } else { "many" };
                writeln!(
                    text,
                    "expand     {} to {many} {}: {header}",
                    expansion.relation(),
                    expansion.stream()
                )
                .unwrap();
            }
        }
        "aggregate" => {
            let plan =
                AggregatePlan::new(view, &AggregateRequest::parse(&arguments)?, at(&keys, NOW))?;
            writeln!(text, "aggregate  {}", plan.header().join(", ")).unwrap();
            text.push_str(&explain(plan.groups()));
            if let Some(totals) = plan.totals() {
                writeln!(text, "totals").unwrap();
                text.push_str(&explain(totals));
            }
        }
        "fetch" => {
            let plan = FetchPlan::new(view, &FetchRequest::parse(&arguments)?)?;
            writeln!(text, "fetch      {}", plan.header().join(", ")).unwrap();
            text.push_str(&explain(plan.rows()));
        }
        other => panic!("unknown tool {other}"),
    }
    Ok(text)
}

fn discovered(discovery: &SchemaSubject<'_>) -> String {
    let mut text = String::new();
    match discovery {
        SchemaSubject::Index(connections) => {
            for connection in connections {
                let streams: Vec<_> = connection.streams.iter().map(StreamView::name).collect();
                writeln!(
                    text,
                    "index      {}: {}",
                    connection.connection_id,
                    streams.join(", ")
                )
                .unwrap();
            }
        }
        SchemaSubject::Streams(streams) => {
            for (connection, stream) in streams {
                let fields: Vec<_> = stream.fields().map(FieldView::name).collect();
                writeln!(
                    text,
                    "stream     {}/{}: {}",
                    connection.connection_id,
                    stream.name(),
                    fields.join(", ")
                )
                .unwrap();
            }
        }
        SchemaSubject::Full(connection, stream) => {
            let relations: Vec<_> = stream.relations().map(|r| r.name.as_str()).collect();
            writeln!(
                text,
                "full       {}/{}, relations {}",
                connection.connection_id,
                stream.name(),
                relations.join(", ")
            )
            .unwrap();
        }
    }
    trimmed(&text)
}

/// Prints a refusal without its defaults, one property per line.
fn refused(refusal: &Refusal) -> String {
    let json = refusal.to_json();
    let written = json.to_string();
    assert!(
        written.len() <= MAX_BYTES,
        "{} bytes: {written}",
        written.len()
    );
    let mut text = format!(
        "refused    {}: {}\n",
        refusal.code.as_str(),
        refusal.message
    );
    for (name, value) in json.as_object().unwrap() {
        match name.as_str() {
            "code" | "message" => {}
            "retryable" if value == false => {}
            "available_connections" => {
                for candidate in value.as_array().unwrap() {
                    writeln!(text, "  choose {candidate}").unwrap();
                }
            }
            _ => writeln!(text, "  {name} {value}").unwrap(),
        }
    }
    text
}

fn file(path: &Path, seen: &mut BTreeSet<Code>) {
    let found = fs::read_to_string(path).unwrap();
    let active = active_datasets();
    let mut words = "local".to_owned();
    let mut expected = String::new();
    for case in found
        .split("\n\n")
        .map(str::trim)
        .filter(|case| !case.is_empty())
    {
        if !expected.is_empty() {
            expected.push('\n');
        }
        let mut request = None;
        for line in case.lines().take_while(|line| *line != "---") {
            writeln!(expected, "{line}").unwrap();
            if let Some(given) = line.strip_prefix("package    ") {
                given.clone_into(&mut words);
            } else if let Some(given) = line.strip_prefix("request    ") {
                request = given.split_once(' ');
            } else {
                assert!(line.starts_with('#'), "{}: {line}", path.display());
            }
        }
        let (tool, json) = request.unwrap_or_else(|| panic!("{case}"));
        let view = View::new(&active, &package(&words));
        assert_eq!(view.withheld(), [], "{case}");
        let text = answer(&view, tool, json).unwrap_or_else(|refusal| {
            seen.insert(refusal.code);
            refused(&refusal)
        });
        write!(expected, "---\n{text}").unwrap();
    }
    if found != expected {
        if std::env::var_os("WAYLEAVE_BLESS").is_some() {
            fs::write(path, &expected).unwrap();
        } else {
            panic!(
                "{} is out of date; `WAYLEAVE_BLESS=1 cargo test -p wayleave-plan` rewrites it\n\
                 --- found\n{found}\n--- expected\n{expected}",
                path.display()
            );
        }
    }
}

#[test]
fn every_request_is_planned_or_refused_as_its_golden_file_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut seen = BTreeSet::new();
    let mut paths: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    paths.sort();
    assert!(!paths.is_empty());
    for path in paths {
        file(&path, &mut seen);
    }
    // These codes come from the code that reads stores, never from planning.
    let of_stores = [
        Code::ResultTooLarge,
        Code::SourceUnavailable,
        Code::Timeout,
        Code::RateLimited,
    ];
    let missing: Vec<_> = Code::ALL
        .iter()
        .filter(|code| !seen.contains(code) && !of_stores.contains(code))
        .collect();
    assert!(missing.is_empty(), "no golden file shows {missing:?}");
}
