//! Data outside a grant may be malformed in any way, and changes no byte of any answer.
//!
//! Twins have the same visible records. In one, records outside the grant's rows do not exist. In
//! the other they exist with values that are not of their datatype, also in the columns of the
//! grant's own filter; and so do fields outside the grant, in records inside it. Every call of
//! every tool is answered with the same bytes, `meta` included, page by page to the end of a walk.
//! `WAYLEAVE_FULL=1` makes 24,000 calls on each kind of store instead of 640 on SQLite and 160 on
//! the others.

pub mod rows;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};
use wayleave_model::mapping::SourceKind;
use wayleave_plan::package::{FieldScope, Package, RelationScope, StreamGrant};
use wayleave_plan::request::WorkupRequest;
use wayleave_surface::{ReadService, Reply};

use crate::reading::canary::few;
use wayleave_store::conformance::SeededRng;

use crate::reading::database::Database;
use crate::reading::fixture::{arguments, call, package};
use crate::reading::search::Library;
use rows::{Cell, RowFilter, STREAMS, Stream, WORDS, column_type, malformed, mapping, record};

/// Maximum number of pages in a walk.
const MAX_PAGES: usize = 12;

/// The part of a stream that a grant shows.
struct VisiblePart {
    stream: &'static Stream,
    fields: BTreeSet<&'static str>,
    filter: Option<RowFilter>,
}

impl VisiblePart {
    fn drawn(stream: &'static Stream, number: usize, rng: &mut SeededRng) -> Self {
        let is_whole = stream.name == "parts" && rng.below(2) == 0;
        let filter = (!is_whole).then(|| RowFilter::drawn(stream, number, rng));
        let fields = stream.fields.iter().map(|(name, _)| *name);
        // A grant's filter may use a field that is not in the grant.
        let fields = fields.filter(|it| matches!(*it, "id" | "gone") || rng.below(5) > 0);
        Self {
            stream,
            fields: fields.collect(),
            filter,
        }
    }

    fn grant(&self) -> StreamGrant {
        let fields = self.fields.iter().map(|it| (*it).to_owned()).collect();
        StreamGrant {
            relations: RelationScope::All,
            fields: FieldScope::Only(fields),
            rows: self.filter.map(RowFilter::json),
            masks: std::collections::BTreeMap::new(),
        }
    }

    /// SQL of this stream's table, with malformed values in the hidden part, or without the hidden
    /// part.
    fn sql(&self, kind: SourceKind, with_hidden: bool, rng: &mut SeededRng) -> String {
        let name = self.stream.name;
        let columns = self.stream.fields.iter().map(|(field, datatype)| {
            let key = if *field == "id" { " PRIMARY KEY" } else { "" };
            format!("{field} {}{key}", column_type(kind, datatype))
        });
        let columns: Vec<String> = columns.collect();
        let mut sql = format!("CREATE TABLE {name} ({});\n", columns.join(", "));
        for id in 1..=self.stream.records {
            let record = record(self.stream, id, rng);
            let is_shown = self.filter.is_none_or(|it| it.shows(&record));
            let values = self.stream.fields.iter().map(|(field, datatype)| {
                let odd = malformed(kind, datatype);
                // Draw equally often for both twins.
                let (roll, pick) = (rng.below(3), rng.below(60));
                let is_of_filter = self.filter.is_some_and(|it| it.field == *field);
                let is_hidden = !is_shown || !(self.fields.contains(field) || is_of_filter);
                if with_hidden && is_hidden && *field != "id" && roll > 0 && !odd.is_empty() {
                    odd[pick % odd.len()].to_owned()
                } else {
                    record[field].literal(kind)
                }
            });
            let values: Vec<String> = values.collect();
            if is_shown || with_hidden {
                sql += &format!("INSERT INTO {name} VALUES ({});\n", values.join(", "));
            }
        }
        sql
    }
}

/// Two services over the same visible records.
struct Twins {
    package: Package,
    shown: Vec<VisiblePart>,
    services: [ReadService; 2],
    databases: [std::sync::Arc<Database>; 2],
}

impl Twins {
    async fn new(kind: SourceKind, number: usize, rng: &mut SeededRng) -> Self {
        let mut shown = Vec::new();
        for stream in STREAMS {
            shown.push(VisiblePart::drawn(stream, number, rng));
        }
        let seed = rng.below(1 << 30) as u64 | 1;
        let sql = |with_hidden: bool| {
            let mut rng = SeededRng::new(seed);
            let lax = match kind {
                SourceKind::Mysql => "SET sql_mode = '';\n",
                _ => "",
            };
            let mut sql = lax.to_owned();
            for stream in &shown {
                sql += &stream.sql(kind, with_hidden, &mut rng);
            }
            if number.is_multiple_of(2) {
                for column in ["at", "updated_at", "embargo", "level", "pay"] {
                    sql += &format!("CREATE INDEX by_{column} ON docs ({column});\n");
                }
            }
            sql
        };
        let databases = [
            Database::new(kind, &sql(true)).await,
            Database::new(kind, &sql(false)).await,
        ];
        let mapping = mapping(kind);
        let services = [0, 1].map(|at: usize| databases[at].service(&mapping));
        for service in &services {
            Library::from_service(service, &[]).await;
        }
        let grants = shown.iter().map(|it| (it.stream.name, it.grant()));
        Self {
            package: package("narrow", vec![("vault-main", grants.collect())]),
            shown,
            services,
            databases,
        }
    }

    /// Makes a call in both, and walks to the last page. Returns the number of calls made, and
    /// whether the last one was refused.
    async fn check(&self, tool: &str, given: &Json) -> (usize, bool) {
        let mut pages = [given.clone(), given.clone()];
        for page in 0..MAX_PAGES {
            let [first, second] = [0, 1].map(|at: usize| (&self.services[at], &pages[at]));
            let first = self.reply(first.0, tool, first.1).await;
            let second = self.reply(second.0, tool, second.1).await;
            let why = || {
                let filters: Vec<_> = self.shown.iter().map(|it| it.grant().rows).collect();
                format!("{tool} {given}, page {page}, rows {filters:?}")
            };
            assert_eq!(bytes(&first), bytes(&second), "{}", why());
            let next = [&first, &second].map(|reply| {
                let meta = &reply.structured.value()["meta"];
                let handle = |name: &str| meta[name].as_str().map(str::to_owned);
                handle("next_cursor")
            });
            let [Some(first_cursor), Some(second_cursor)] = next else {
                return (page + 1, first.is_error);
            };
            pages[0]["cursor"] = first_cursor.into();
            pages[1]["cursor"] = second_cursor.into();
        }
        (MAX_PAGES, false)
    }

    async fn reply(&self, service: &ReadService, tool: &str, given: &Json) -> Reply {
        if tool != "workup" {
            return call(service, &self.package, tool, given.clone()).await;
        }
        match WorkupRequest::parse("workup_vault", Some("vault"), &arguments(given.clone())) {
            Ok(request) => service.workup(&self.package, &request).await,
            Err(refusal) => refusal.into(),
        }
    }
}

/// Every byte of a reply, except for texts that are sealed or random in each call.
fn bytes(reply: &Reply) -> String {
    let structured = reply.structured.value();
    let mut all = format!("{}\n{structured}", reply.text);
    let meta = &structured["meta"];
    for random in [
        &meta["next_cursor"],
        &meta["next_changes_since"],
        &structured["workup"],
        &structured["activity"],
    ] {
        if let Some(random) = random.as_str() {
            all = all.replace(random, "RANDOM");
        }
    }
    all
}

fn filter(shown: &VisiblePart, rng: &mut SeededRng) -> Json {
    let is_seen = |(name, _): &&(&str, &str)| shown.fields.contains(name);
    let seen: Vec<_> = shown.stream.fields.iter().filter(is_seen).collect();
    let (field, datatype) = match rng.below(6) {
        0 => *rng.one_of(shown.stream.fields),
        _ => **rng.one_of(&seen),
    };
    let n = rng.below(300);
    let value = match (field, datatype) {
        ("name" | "label", _) => Cell::Title(WORDS[n % 40 % WORDS.len()], n % 40),
        ("body", _) => Cell::Text(WORDS[n % WORDS.len()]),
        ("region", _) => Cell::Text("eu"),
        (_, "integer") => Cell::Integer(n % 6),
        (_, "boolean") => Cell::Boolean(n.is_multiple_of(2)),
        (_, "date") => Cell::Date(n),
        (_, "datetime") => Cell::Time(n, n % 24),
        (_, "decimal") => Cell::Decimal(n * 10),
        (_, "number") => Cell::Number(n % 32),
        _ => return json!({ field: { "is_null": n.is_multiple_of(2) } }),
    };
    let hour_later = match value {
        Cell::Time(day, hour) => Cell::Time(day, (hour + 1).min(23)),
        Cell::Date(day) => Cell::Date((day + 1).min(299)),
        other => other,
    };
    let value = value.json();
    json!({ field: match rng.below(7) {
        0 => json!({ "ne": value }),
        1 => json!({ "is_null": n.is_multiple_of(2) }),
        2 if datatype != "boolean" => json!({ "gte": value }),
        3 if datatype != "boolean" => json!({ "lt": value }),
        // A narrow window, as a caller who searches for hidden data would use.
        4 | 5 if datatype.starts_with("date") => json!({ "gte": value, "lt": hour_later.json() }),
        _ => json!([value]),
    } })
}

fn fields(shown: &VisiblePart, rng: &mut SeededRng, most: usize) -> Vec<&'static str> {
    let seen: Vec<&str> = shown.fields.iter().copied().collect();
    let mut some: Vec<&str> = few(rng, &seen, most);
    some.dedup();
    some
}

/// Generates a call of any tool.
fn drawn(twins: &Twins, rng: &mut SeededRng) -> (&'static str, Json) {
    let shown = &twins.shown[rng.below(twins.shown.len())];
    let name = shown.stream.name;
    let mut given = json!({ "stream": name });
    if rng.below(2) == 0 {
        given["filter"] = filter(shown, rng);
    }
    match rng.below(12) {
        0 | 1 => {
            let some = fields(shown, rng, 13);
            let field = *rng.one_of(&some);
            let op = *rng.one_of(&["count", "count_distinct", "min", "max", "sum", "avg"]);
            given["metrics"] = json!([{ "op": "count" }, { "op": op, "field": field }]);
            match rng.below(3) {
                0 => given["group_by"] = json!(fields(shown, rng, 2)),
                1 => {
                    let field = *rng.one_of(&["at", "updated_at", "embargo", "made"]);
                    let granularity = *rng.one_of(&["day", "month"]);
                    given["group_by_time"] = json!({ "field": field, "granularity": granularity });
                }
                _ => {}
            }
            ("aggregate", given)
        }
        2 => {
            let id = rng.below(shown.stream.records + 2);
            ("fetch", json!({ "id": format!("vault-main/{name}:{id}") }))
        }
        3 | 4 => {
            let mut search = json!({ "q": *rng.one_of(&WORDS), "limit": rng.below(9) + 1 });
            if let (Some(filter), 0) = (given.get("filter"), rng.below(2)) {
                search["filter"] = filter.clone();
            }
            ("search", search)
        }
        5 => {
            let id = rng.below(40) + 1;
            let word = WORDS[id % WORDS.len()];
            let entity = match rng.below(4) {
                0 => format!("vault-main/{name}:{id}"),
                1 => format!("{word} {id}"),
                2 => format!("{id} {word}"),
                _ => word.to_owned(),
            };
            ("workup", json!({ "entity": entity }))
        }
        6 => ("schema", json!({ "stream": name, "detail": "full" })),
        _ => {
            if rng.below(2) == 0 {
                given["fields"] = json!(fields(shown, rng, 4));
            }
            match rng.below(4) {
                0 => given["changes_since"] = json!("beginning"),
                1 | 2 => {
                    let down = ["", "-"][rng.below(2)];
                    let by = fields(shown, rng, 2);
                    given["sort"] = by.iter().map(|it| format!("{down}{it}")).collect();
                }
                _ => {}
            }
            if rng.below(3) == 0 {
                given["expand"] = json!([if name == "docs" { "parts" } else { "owner" }]);
            }
            if rng.below(2) == 0 {
                given["count"] = json!(*rng.one_of(&["exact", "estimated"]));
            }
            given["limit"] = json!([3, 7, 100][rng.below(3)]);
            ("query_records", given)
        }
    }
}

/// Creates `pairs` pairs of twins, and makes `calls` calls with each.
async fn check(kind: SourceKind, (pairs, calls): (usize, usize), seed: u64) {
    let is_full = wayleave_test::is_full();
    let (pairs, calls) = match kind {
        _ if !is_full => (pairs, calls),
        SourceKind::Sqlite => (400, 60),
        // Creating a database on a server takes time and space.
        _ => (40, 600),
    };
    let mut rng = SeededRng::new(seed);
    let mut told: BTreeMap<(&str, bool), usize> = BTreeMap::new();
    let mut pages = 0;
    for number in 0..pairs {
        let twins = Twins::new(kind, number, &mut rng).await;
        for _ in 0..calls {
            let (tool, given) = drawn(&twins, &mut rng);
            let (walked, is_error) = twins.check(tool, &given).await;
            pages += walked;
            *told.entry((tool, is_error)).or_default() += 1;
        }
        for database in &twins.databases {
            database.store.close().await;
        }
    }
    println!("{kind}: {} calls, {pages} pages: {told:?}", pairs * calls);
    for tool in [
        "query_records",
        "aggregate",
        "fetch",
        "search",
        "workup",
        "schema",
    ] {
        assert!(told.contains_key(&(tool, false)), "{tool}: {told:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_hidden_in_sqlite_may_be_malformed_and_changes_no_byte() {
    check(SourceKind::Sqlite, (16, 40), 0x0dd5).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_hidden_in_postgres_may_be_malformed_and_changes_no_byte() {
    check(SourceKind::Postgres, (8, 20), 0x0dd7).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_hidden_in_mariadb_may_be_malformed_and_changes_no_byte() {
    check(SourceKind::Mysql, (8, 20), 0x0dd9).await;
}
