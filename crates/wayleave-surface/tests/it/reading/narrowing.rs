//! A narrower grant never sees what a wider one does not, and forbidden names are reported like
//! missing ones.
//!
//! Pairs of packages make the same calls; the second is the first without some connections,
//! streams, fields and rows. Everything that the narrower package is told, errors included, must be
//! known to the wider one. It must also equal, byte for byte, what the narrower package's twin is
//! told: a deployment in which the hidden parts never existed. A cursor of one package opens for no
//! other. `WAYLEAVE_FULL=1` makes 24,000 calls instead of 600.

mod calls;
mod laboratory;
mod lists;
mod malformed;
mod masked;
mod paths;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};
use wayleave_plan::package::Package;
use wayleave_plan::read_tool::ReadTool;
use wayleave_surface::{ReadService, Reply};

use wayleave_store::conformance::SeededRng;

use crate::reading::fixture::call;
use crate::reading::search::Library;
use laboratory::{DATASETS, Rows, VisibleConnections, laboratory};

/// Number of calls per pair.
const CALLS_A_PAIR: usize = 60;

fn pairs() -> usize {
    if wayleave_test::is_full() { 400 } else { 10 }
}

/// All records that a package sees, by id, with their visible fields; and all names it is told.
#[derive(Default)]
struct VisibleData {
    records: BTreeMap<String, BTreeMap<String, Json>>,
    names: BTreeSet<String>,
}

impl VisibleData {
    /// Collects them by walking every stream of every connection, page by page.
    async fn from_service(service: &ReadService, package: &Package) -> Self {
        let mut known = Self::default();
        for (dataset, connections, streams) in DATASETS {
            for (connection, stream) in connections
                .iter()
                .flat_map(|connection| streams.iter().map(move |stream| (connection, stream)))
            {
                let mut given =
                    json!({ "stream": stream.name, "connection_id": connection, "limit": 100 });
                loop {
                    let reply = call(service, package, "query_records", given.clone()).await;
                    if reply.is_error {
                        break;
                    }
                    let names = [dataset, connection, stream.name].map(str::to_owned);
                    known.names.extend(names);
                    known.take(&reply);
                    let Some(next) = reply.structured.value()["meta"]["next_cursor"].as_str()
                    else {
                        break;
                    };
                    given["cursor"] = next.into();
                }
            }
        }
        known
    }

    fn take(&mut self, reply: &Reply) {
        let data = &reply.structured.value()["data"];
        let names = texts(&data["fields"]);
        for (id, values) in rows(reply) {
            self.records.insert(id, values);
        }
        self.names.extend(names);
    }

    #[track_caller]
    fn holds(&self, id: &str, values: &BTreeMap<String, Json>, why: &str) {
        let record = self.records.get(id);
        let record = record.unwrap_or_else(|| panic!("{id} is not known to the wider: {why}"));
        for (field, value) in values {
            assert_eq!(record.get(field), Some(value), "{id} {field}: {why}");
        }
    }
}

fn texts(list: &Json) -> Vec<String> {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(Json::as_str).map(str::to_owned).collect()
}

/// The records of a page, by id, including related ones.
fn rows(reply: &Reply) -> Vec<(String, BTreeMap<String, Json>)> {
    let (data, meta) = (
        &reply.structured.value()["data"],
        &reply.structured.value()["meta"],
    );
    let connection = meta["connection_id"].as_str().unwrap();
    let fields = texts(&data["fields"]);
    let mut found = Vec::new();
    for row in data["rows"].as_array().unwrap() {
        let mut own = BTreeMap::new();
        for (name, cell) in fields.iter().zip(row.as_array().unwrap()) {
            let expanded = &data["expand"][name];
            if expanded.is_null() {
                own.insert(name.clone(), cell.clone());
                continue;
            }
            let stream = expanded["stream"].as_str().unwrap();
            let their_fields = texts(&expanded["fields"]);
            let many = cell.as_array().into_iter().flatten().all(Json::is_array);
            let related = if many {
                cell.as_array().cloned().unwrap_or_default()
            } else {
                vec![cell.clone()]
            };
            for record in related {
                let values = record.as_array().unwrap().iter().cloned();
                let values: BTreeMap<_, _> = their_fields.iter().cloned().zip(values).collect();
                found.push((identity(connection, stream, &values["id"]), values));
            }
        }
        own.remove("@id");
        // A tombstone has only its key.
        if own.remove("@deleted") != Some(json!(true)) {
            let stream = meta["stream"].as_str().unwrap();
            found.push((identity(connection, stream, &own["id"]), own));
        }
    }
    found
}

fn identity(connection: &str, stream: &str, key: &Json) -> String {
    let key = key.as_str().map_or_else(|| key.to_string(), str::to_owned);
    format!("{connection}/{stream}:{key}")
}

/// A reply without its sealed texts, which differ by subject and grants.
fn unsealed(reply: &Reply) -> (String, String) {
    let (mut text, mut structured) = (reply.text.clone(), reply.structured.value().to_string());
    for name in ["next_cursor", "next_changes_since"] {
        if let Some(sealed) = reply.structured.value()["meta"][name].as_str() {
            text = text.replace(sealed, "SEALED");
            structured = structured.replace(sealed, "SEALED");
        }
    }
    (text, structured)
}

struct Pair {
    service: ReadService,
    wider: Package,
    narrower: Package,
    known: VisibleData,
    twin: ReadService,
    in_twin: Package,
}

impl Pair {
    async fn check(&self, tool: &str, given: &Json) -> Reply {
        let less = call(&self.service, &self.narrower, tool, given.clone()).await;
        let twin = call(&self.twin, &self.in_twin, tool, given.clone()).await;
        assert_eq!(unsealed(&less), unsealed(&twin), "{tool} {given}");
        let mut more = call(&self.service, &self.wider, tool, given.clone()).await;
        let ambiguous = more.structured.value()["error"]["code"] == "ambiguous_connection";
        let one = &less.structured.value()["meta"]["connection_id"];
        if ambiguous && one.is_string() {
            // The wider package sees several connections; the narrower one was told which one it
            // sees.
            let mut asked = given.clone();
            asked["connection_id"] = one.clone();
            more = call(&self.service, &self.wider, tool, asked).await;
        }
        let why = format!("{tool} {given}\n{}\n{}", less.text, more.text);
        if less.is_error {
            self.error(&less, given, &why);
            return less;
        }
        match tool {
            "query_records" => self.page(&less, &more, given, &why),
            "aggregate" => groups(&less, &more, given, &why),
            "fetch" => document(&less, &more, &why),
            "search" => self.hits(&less, &why),
            _ => self.names(&less, &why),
        }
        less
    }

    /// Checks that every name offered by an error is known to the wider package or was sent by the
    /// caller.
    fn error(&self, less: &Reply, given: &Json, why: &str) {
        let error = &less.structured.value()["error"];
        let said = given.to_string();
        let names = texts(&error["allowed"])
            .into_iter()
            .chain(texts(&json!([error["did_you_mean"]])));
        let code = error["code"].as_str().unwrap();
        if matches!(code, "unknown_stream" | "unknown_field" | "not_found") {
            for name in names {
                let known = self.known.names.contains(&name) || said.contains(&name);
                // An error about a relation offers the names of relations.
                let relation = DATASETS
                    .iter()
                    .flat_map(|it| it.2)
                    .flat_map(|it| it.relations);
                let relation = relation.clone().any(|it| it.0 == name);
                assert!(known || relation, "`{name}` is offered: {why}");
            }
        }
        for candidate in error["available_connections"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let id = candidate["connection_id"].as_str().unwrap();
            assert!(self.known.names.contains(id), "{why}");
        }
    }

    fn page(&self, less: &Reply, more: &Reply, given: &Json, why: &str) {
        assert!(!more.is_error, "{why}");
        for (id, values) in rows(less) {
            self.known.holds(&id, &values, why);
        }
        let fields = |reply: &Reply| -> BTreeSet<String> {
            texts(&reply.structured.value()["data"]["fields"])
                .into_iter()
                .collect()
        };
        assert!(fields(less).is_subset(&fields(more)), "{why}");
        let count = |reply: &Reply| reply.structured.value()["meta"]["count"]["value"].as_u64();
        assert!(count(less) <= count(more), "{why}");
        let whole = more.structured.value()["meta"]["next_cursor"].is_null();
        if whole && given["limit"] == 100 {
            let ids = |reply: &Reply| -> BTreeSet<String> {
                rows(reply).into_iter().map(|(id, _)| id).collect()
            };
            assert!(ids(less).is_subset(&ids(more)), "{why}");
        }
    }

    fn hits(&self, less: &Reply, why: &str) {
        for hit in less.structured.value()["data"]["results"]
            .as_array()
            .unwrap()
        {
            let id = hit["id"].as_str().unwrap();
            self.known.holds(id, &BTreeMap::new(), why);
            let record = &self.known.records[id];
            let snippet = hit["snippet"].as_str().unwrap_or_default();
            let plain = snippet.replace("<mark>", "").replace("</mark>", "");
            let told = plain.trim_matches('…');
            let told = told.split_once(": ").map_or(told, |(_, rest)| rest);
            let from_record = |value: &Json| value.as_str().is_some_and(|it| it.contains(told));
            assert!(
                record.values().any(from_record),
                "{snippet:?} of {id}: {why}"
            );
        }
    }

    /// Checks that every field and stream described by `schema` is known to the wider package.
    fn names(&self, less: &Reply, why: &str) {
        let known = |name: &str| self.known.names.contains(name);
        for (_, connections, streams) in DATASETS {
            let named = streams
                .iter()
                .flat_map(|it| it.fields)
                .map(|(name, _)| *name);
            let all = named
                .chain(connections.iter().copied())
                .chain(streams.iter().map(|it| it.name));
            for name in all {
                let listed = |line: &str| {
                    line.strip_prefix("- ")
                        .is_some_and(|it| it.split(' ').next() == Some(name))
                };
                assert!(
                    known(name) || !less.text.lines().any(listed),
                    "{name}: {why}"
                );
            }
        }
    }
}

/// Checks that fewer rows give fewer groups, smaller counts, and no new minimum or maximum.
fn groups(less: &Reply, more: &Reply, given: &Json, why: &str) {
    assert!(!more.is_error, "{why}");
    let grouped = given["group_by"].as_array().map_or(0, Vec::len)
        + usize::from(given.get("group_by_time").is_some());
    let read = |reply: &Reply| -> BTreeMap<String, Vec<Json>> {
        let rows = reply.structured.value()["data"]["rows"].as_array().unwrap();
        let rows = rows.iter().map(|row| row.as_array().unwrap());
        rows.map(|row| (json!(row[..grouped]).to_string(), row[grouped..].to_vec()))
            .collect()
    };
    let (less, more) = (read(less), read(more));
    let op = given["metrics"][1]["op"].as_str().unwrap();
    for (group, measures) in &less {
        let wider = more
            .get(group)
            .unwrap_or_else(|| panic!("group {group}: {why}"));
        assert!(measures[0].as_u64() <= wider[0].as_u64(), "{why}");
        if matches!(op, "count" | "count_distinct") {
            assert!(measures[1].as_u64() <= wider[1].as_u64(), "{why}");
        }
        if let (Some(few), Some(many)) = (measures[1].as_i64(), wider[1].as_i64()) {
            assert!(op != "min" || few >= many, "{why}");
            assert!(op != "max" || few <= many, "{why}");
        }
    }
}

/// Checks that a document has no line that the wider package's document lacks.
fn document(less: &Reply, more: &Reply, why: &str) {
    assert!(!more.is_error, "{why}");
    let lines = |reply: &Reply| -> BTreeSet<String> {
        let text = reply.structured.value()["text"].as_str().unwrap();
        text.lines().map(str::to_owned).collect()
    };
    assert!(lines(less).is_subset(&lines(more)), "{why}");
}

/// Checks that a sealed text does not open for another token, for the wider one, or after the
/// grants have changed. Returns the number of attempts.
async fn leaked(pair: &Pair, tool: &str, given: &Json, reply: &Reply) -> usize {
    let mut tried = 0;
    for (name, handle) in [
        ("next_cursor", "cursor"),
        ("next_changes_since", "changes_since"),
    ] {
        let Some(text) = reply.structured.value()["meta"][name].as_str() else {
            continue;
        };
        let mut next = given.clone();
        next[handle] = text.into();
        let own = call(&pair.service, &pair.narrower, tool, next.clone()).await;
        assert!(!own.is_error, "{tool} {next}: {}", own.text);
        let other = Package {
            subject: "another token".to_owned(),
            ..pair.narrower.clone()
        };
        let later = Package {
            epoch: pair.narrower.epoch + 1,
            ..pair.narrower.clone()
        };
        for thief in [&pair.wider, &other, &later, &Package::local()] {
            let got = call(&pair.service, thief, tool, next.clone()).await;
            let code = &got.structured.value()["error"]["code"];
            // The wider package may see several connections with such a stream, and is told so
            // first.
            let ambiguous = code == "ambiguous_connection";
            assert!(
                ambiguous || code == "invalid_cursor",
                "{tool} {next}: {}",
                got.text
            );
            tried += 1;
        }
    }
    tried
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_narrower_grant_never_sees_what_a_wider_one_does_not() {
    let service = laboratory();
    let _library = Library::from_service(&service, &[]).await;
    let mut rng = SeededRng::new(0x1eaf);
    let mut told: BTreeMap<(&str, bool), usize> = BTreeMap::new();
    let mut stolen = 0;
    for number in 0..pairs() {
        let wide = match number % 5 {
            0 => VisibleConnections::everything(),
            _ => VisibleConnections::everything().narrower(&mut rng, Rows::ByLevel),
        };
        let narrow = wide.narrower(&mut rng, Rows::ByCity);
        let wider = match number % 10 {
            0 => Package::local(),
            _ => wide.package("wider", 1),
        };
        let (twin, in_twin) = narrow.twin("narrower", 1);
        let _twin_library = Library::from_service(&twin, &[]).await;
        let pair = Pair {
            known: VisibleData::from_service(&service, &wider).await,
            service: service.clone(),
            wider,
            narrower: narrow.package("narrower", 1),
            twin,
            in_twin,
        };
        for _ in 0..CALLS_A_PAIR {
            let (tool, given) = calls::generated(&mut rng, &narrow);
            let reply = pair.check(tool, &given).await;
            stolen += leaked(&pair, tool, &given, &reply).await;
            *told.entry((tool, reply.is_error)).or_default() += 1;
        }
    }
    println!(
        "{} calls by {} pairs: {told:?}; {stolen} sealed texts tried by others",
        pairs() * CALLS_A_PAIR,
        pairs()
    );
    for tool in ReadTool::ALL.map(ReadTool::as_str) {
        for refused in [false, true] {
            let many = told.get(&(tool, refused)).copied().unwrap_or(0);
            assert!(
                many > 0 || (tool, refused) == ("search", true),
                "{tool} {refused}"
            );
        }
    }
    assert!(stolen > 50, "{stolen}");
}
