//! Masked data changes no answer.
//!
//! Two databases have the same records, and differ in everything that masks hide: in redacted
//! values and whether they are null, in all but the last characters, within years and ranges, and
//! in the values behind tokens. Both answer generated calls with the same bytes except for tokens,
//! which differ, but each always in place of the same other one. `WAYLEAVE_FULL=1` makes 24,000
//! calls on SQLite instead of 600, and 2,400 on each other store instead of 120.

mod calls;
mod surfaces;
mod ward;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value as Json, json};
use wayleave_model::mapping::SourceKind;
use wayleave_plan::package::Package;
use wayleave_plan::read_tool::ReadTool;
use wayleave_store::conformance::SeededRng;
use wayleave_surface::{ReadService, Reply};
use wayleave_test::is_full;

use crate::reading::database::Database;
use crate::reading::fixture::{call, good, refused};
use crate::reading::search::Library;
use ward::{CANARY, FieldMasks, PATIENTS, Twin};

const CALLS_A_PAIR: usize = 60;

/// The one-to-one correspondence between the tokens of the twins.
#[derive(Default)]
pub struct Renaming {
    forth: BTreeMap<String, String>,
    back: BTreeMap<String, String>,
}

impl Renaming {
    #[track_caller]
    fn learn(&mut self, one: &str, other: &str, why: &str) {
        let known = self.forth.entry(one.to_owned()).or_insert(other.to_owned());
        assert_eq!(known, other, "{why}");
        let known = self.back.entry(other.to_owned()).or_insert(one.to_owned());
        assert_eq!(known, one, "{why}");
    }

    /// Replaces the tokens of the second twin by those of the first.
    fn renamed(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for token in tokens(&text.clone()) {
            let ours = self.back.get(&token);
            text = text.replace(&token, ours.map_or("an unknown token", String::as_str));
        }
        text
    }
}

/// The tokens in a text, in order.
pub fn tokens(text: &str) -> Vec<String> {
    let each = text.match_indices("tok_").map(|(at, _)| {
        let token: String = text[at..]
            .chars()
            .take_while(|it| it.is_ascii_alphanumeric() || matches!(it, '_' | '-'))
            .collect();
        token
    });
    each.filter(|it| it.len() > 30).collect()
}

/// Two deployments that differ in what is masked.
pub struct Twins {
    one: ReadService,
    two: ReadService,
    databases: [Arc<Database>; 2],
    _libraries: [Arc<Library>; 2],
    package: Package,
    renaming: Renaming,
    /// The mail token of each patient, in each twin.
    mails: Vec<[String; 2]>,
}

impl Twins {
    async fn new(kind: SourceKind, sight: &FieldMasks, seed: u64) -> Self {
        let mapping = ward::mapping(kind);
        let one = Database::new(kind, &ward::sql(kind, seed, Twin::One)).await;
        let two = Database::new(kind, &ward::sql(kind, seed, Twin::Two)).await;
        let databases = [one, two];
        let [one, two] = [0, 1].map(|it: usize| databases[it].service(&mapping));
        let libraries = [
            Library::from_service(&one, &[]).await,
            Library::from_service(&two, &[]).await,
        ];
        let mut twins = Self {
            package: sight.package("agent"),
            one,
            two,
            databases,
            _libraries: libraries,
            renaming: Renaming::default(),
            mails: Vec::new(),
        };
        let all = json!({ "stream": "patients", "fields": ["email"], "limit": 100 });
        let (first, second) = twins.ask("query_records", &all).await;
        for (a, b) in rows(&first).iter().zip(rows(&second)) {
            let pair = [a[1].as_str(), b[1].as_str()].map(|it| it.unwrap_or_default().to_owned());
            twins.mails.push(pair);
        }
        twins.check("query_records", &all).await;
        let visits = json!({ "stream": "visits", "fields": ["email"], "limit": 100 });
        twins.check("query_records", &visits).await;
        twins
    }

    /// The arguments of a call in one twin: `@n` becomes the token of patient `n` there.
    fn given(&self, given: &Json, twin: usize) -> Json {
        let mut text = given.to_string();
        for (patient, tokens) in self.mails.iter().enumerate() {
            text = text.replace(&format!("\"@{patient}\""), &format!("\"{}\"", tokens[twin]));
        }
        serde_json::from_str(&text).unwrap()
    }

    async fn ask(&self, tool: &str, given: &Json) -> (Reply, Reply) {
        let first = call(&self.one, &self.package, tool, self.given(given, 0)).await;
        let second = call(&self.two, &self.package, tool, self.given(given, 1)).await;
        (first, second)
    }

    /// Makes a call in both, and compares the answers. Returns the first answer, and the next call
    /// in each twin.
    async fn check(&mut self, tool: &str, given: &Json) -> (Reply, Option<[Json; 2]>) {
        let (first, second) = self.ask(tool, given).await;
        self.compare(tool, given, &first, &second);
        let next = self.continued(given, &first, &second);
        (first, next)
    }

    fn compare(&mut self, tool: &str, given: &Json, first: &Reply, second: &Reply) {
        let why = format!("{tool} {given}\n{}\n{}", first.text, second.text);
        let asked = given.to_string().matches(CANARY).count();
        for told in [&first.text, &first.structured.value().to_string()] {
            assert!(told.matches(CANARY).count() <= 2 * asked, "{why}");
        }
        let ours = unsealed(first);
        let theirs = unsealed(second);
        if tokens(&ours).is_empty() && !given.to_string().contains('@') {
            // A cursor of a search is bound to the indexes of its deployment.
            if tool == "search" {
                assert_eq!(ours, theirs, "{why}");
            } else {
                assert_eq!(first, second, "{why}");
            }
            return;
        }
        let grouped = tool == "aggregate" && !first.is_error;
        if !grouped {
            let (a, b) = (tokens(&ours), tokens(&theirs));
            assert_eq!(a.len(), b.len(), "{why}");
            for (one, other) in a.iter().zip(&b) {
                self.renaming.learn(one, other, &why);
            }
            assert_eq!(ours, self.renaming.renamed(&theirs), "{why}");
            return;
        }
        // Groups of equal rank are sorted by their tokens, which differ.
        let theirs = self.renaming.renamed(&theirs);
        assert_eq!(sorted_lines(&ours), sorted_lines(&theirs), "{why}");
    }

    fn continued(&self, given: &Json, first: &Reply, second: &Reply) -> Option<[Json; 2]> {
        let next = |twin: usize, reply: &Reply| {
            let mut next = self.given(given, twin);
            for (name, handle) in [
                ("next_cursor", "cursor"),
                ("next_changes_since", "changes_since"),
            ] {
                if let Some(text) = reply.structured.value()["meta"][name].as_str() {
                    next[handle] = text.into();
                    return Some(next);
                }
            }
            None
        };
        Some([next(0, first)?, next(1, second)?])
    }
}

fn rows(reply: &Reply) -> Vec<Vec<Json>> {
    let rows = reply.structured.value()["data"]["rows"].as_array().unwrap();
    rows.iter()
        .map(|it| it.as_array().unwrap().clone())
        .collect()
}

/// The text of a reply and its structure, row by row, without sealed texts.
fn unsealed(reply: &Reply) -> String {
    let structured = reply.structured.value().to_string().replace("],[", "],\n[");
    let structured = structured.replace("\"rows\":[[", "\"rows\":[\n[");
    let structured = structured.replace("]]", "]\n]");
    let mut text = format!("{}\n{structured}", reply.text);
    for name in ["next_cursor", "next_changes_since"] {
        if let Some(sealed) = reply.structured.value()["meta"][name].as_str() {
            text = text.replace(sealed, "SEALED");
        }
    }
    text
}

/// The lines in sorted order; a row of the structured content is a line too.
fn sorted_lines(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().map(|it| it.trim_end_matches(',')).collect();
    lines.sort_unstable();
    lines
}

async fn check(kind: SourceKind, pairs: usize, seed: u64) {
    let mut rng = SeededRng::new(seed);
    let mut told: BTreeMap<(&str, String), usize> = BTreeMap::new();
    let (mut walked, mut with_tokens) = (0, 0);
    for number in 0..pairs {
        let sight = match number % 4 {
            0 => FieldMasks::typical(),
            _ => FieldMasks::drawn(&mut rng),
        };
        let mut twins = Twins::new(kind, &sight, rng.below(1 << 30) as u64 | 1).await;
        for _ in 0..CALLS_A_PAIR {
            let (tool, given) = calls::drawn(&mut rng);
            let (reply, next) = twins.check(tool, &given).await;
            with_tokens += usize::from(!tokens(&reply.text).is_empty());
            if let Some([one, two]) = next {
                let first = call(&twins.one, &twins.package, tool, one).await;
                let second = call(&twins.two, &twins.package, tool, two).await;
                twins.compare(tool, &given, &first, &second);
                assert_ne!(first.structured.value()["error"]["code"], "invalid_cursor");
                walked += 1;
            }
            let code = reply.structured.value()["error"]["code"].as_str();
            let code = code.unwrap_or("answered").to_owned();
            assert_ne!(code, "source_unavailable", "{tool} {given}: {}", reply.text);
            *told.entry((tool, code)).or_default() += 1;
        }
        for database in &twins.databases {
            database.store.close().await;
        }
    }
    println!(
        "{kind}: {} calls by {pairs} pairs, {walked} more pages, {with_tokens} answers with tokens: {told:?}",
        pairs * CALLS_A_PAIR
    );
    for tool in ReadTool::ALL.map(ReadTool::as_str) {
        let answered = told.get(&(tool, "answered".to_owned())).copied();
        assert!(answered.unwrap_or(0) > 0, "{tool}: {told:?}");
    }
    assert!(walked > 0 && with_tokens > 0, "{told:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_mask_hides_in_sqlite_changes_no_answer() {
    let pairs = if is_full() { 400 } else { 10 };
    check(SourceKind::Sqlite, pairs, 0x3a5c).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_mask_hides_in_postgres_changes_no_answer() {
    let pairs = if is_full() { 40 } else { 2 };
    check(SourceKind::Postgres, pairs, 0x3a5d).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_mask_hides_in_mariadb_changes_no_answer() {
    let pairs = if is_full() { 40 } else { 2 };
    check(SourceKind::Mysql, pairs, 0x3a5e).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_twins_differ_in_every_masked_field() {
    let twins = Twins::new(SourceKind::Sqlite, &FieldMasks::typical(), 7).await;
    let local = Package::local();
    let differ = async |given: &Json| {
        let first = call(&twins.one, &local, "query_records", given.clone()).await;
        let second = call(&twins.two, &local, "query_records", given.clone()).await;
        (!first.is_error && !second.is_error).then(|| first != second)
    };
    for (stream, field) in ward::MASKED {
        if field == "name" {
            // A malformed name fails its whole page, so names are read one by one.
            let mut differing = 0;
            for id in 1..=PATIENTS {
                let given = json!({ "stream": stream, "fields": [field], "filter": { "id": id } });
                differing += usize::from(differ(&given).await == Some(true));
            }
            assert!(differing > 0, "{stream}.{field}");
            continue;
        }
        let given = json!({ "stream": stream, "fields": [field], "limit": 100 });
        assert_eq!(differ(&given).await, Some(true), "{stream}.{field}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_groups_counts_compares_and_joins_but_does_not_sort() {
    let twins = Twins::new(SourceKind::Sqlite, &FieldMasks::typical(), 7).await;
    let (service, package) = (&twins.one, &twins.package);
    let plain = |metrics: Json| json!({ "stream": "patients", "metrics": metrics });
    let counted = good(
        service,
        package,
        "aggregate",
        plain(json!(["count_distinct:email"])),
    )
    .await;
    let distinct: BTreeSet<&str> = twins.mails.iter().map(|it| it[0].as_str()).collect();
    let distinct = distinct.iter().filter(|it| !it.is_empty()).count();
    assert_eq!(rows(&counted)[0][0], distinct);
    // Each token finds the records that show it, and no others.
    let token = &twins.mails.iter().find(|it| !it[0].is_empty()).unwrap()[0];
    let same = twins.mails.iter().filter(|it| it[0] == *token).count();
    for filter in [
        json!({ "email": token }),
        json!({ "email": { "eq": token } }),
        json!({ "email": [token] }),
    ] {
        let given = json!({ "stream": "patients", "filter": filter, "limit": 100 });
        let found = good(service, package, "query_records", given).await;
        assert_eq!(rows(&found).len(), same);
    }
    // A relation between two tokens is followed; one between a plain and a masked field is not.
    let given = json!({ "stream": "visits", "fields": ["email", "by_mail.email"], "limit": 100 });
    let joined = good(service, package, "query_records", given).await;
    let met: Vec<_> = rows(&joined)
        .into_iter()
        .filter(|it| !it[2].is_null())
        .collect();
    assert!(met.iter().all(|it| it[1] == it[2]) && !met.is_empty());
    // Groups of equal rank are sorted by their tokens, over all pages of a walk.
    let mut given = json!({
        "stream": "patients", "group_by": ["email"], "metrics": ["count"], "limit": 3,
    });
    let mut walked: Vec<(i64, String)> = Vec::new();
    loop {
        let page = good(service, package, "aggregate", given.clone()).await;
        walked.extend(rows(&page).iter().map(|it| {
            let token = it[0].as_str().unwrap_or("~").to_owned();
            (-it[1].as_i64().unwrap(), token)
        }));
        match page.structured.value()["meta"]["next_cursor"].as_str() {
            Some(next) => given["cursor"] = next.into(),
            None => break,
        }
    }
    assert!(walked.is_sorted(), "{walked:?}");
    assert_eq!(walked.len(), distinct + 1, "NULL is a group too");
    for (tool, given) in [
        (
            "query_records",
            json!({ "stream": "patients", "sort": ["email"] }),
        ),
        (
            "query_records",
            json!({ "stream": "patients", "filter": { "email": { "ne": token } } }),
        ),
        (
            "query_records",
            json!({ "stream": "patients", "filter": { "email": { "gt": token } } }),
        ),
        (
            "query_records",
            json!({ "stream": "patients", "filter": { "email": { "field": "city" } } }),
        ),
        (
            "query_records",
            json!({ "stream": "patients", "filter": { "city": { "eq": { "field": "email" } } } }),
        ),
        (
            "aggregate",
            json!({ "stream": "patients", "metrics": ["min:email"] }),
        ),
        (
            "aggregate",
            json!({ "stream": "patients", "metrics": ["count"], "group_by": ["email"], "sort": ["email"] }),
        ),
    ] {
        refused(service, package, tool, given).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_of_two_grants_do_not_compare() {
    let twins = Twins::new(SourceKind::Sqlite, &FieldMasks::typical(), 7).await;
    let other = FieldMasks::typical().packaged("agent", "another-grant");
    let given = json!({ "stream": "patients", "fields": ["email"], "limit": 100 });
    let ours = rows(&good(&twins.one, &twins.package, "query_records", given.clone()).await);
    let theirs = rows(&good(&twins.one, &other, "query_records", given).await);
    let of = |rows: &[Vec<Json>]| -> BTreeSet<String> {
        let all = rows.iter().filter_map(|it| it[1].as_str());
        all.map(str::to_owned).collect()
    };
    let (ours, theirs) = (of(&ours), of(&theirs));
    assert_eq!(ours.len(), theirs.len());
    assert!(ours.is_disjoint(&theirs));
    // A token of another grant, an invented token and a plain value get the same answer.
    let foreign = ours.first().unwrap().clone();
    let mut answers = BTreeSet::new();
    for value in [foreign.as_str(), "tok_AAAAAAAAAAAAAAAA", "mail", "tok_"] {
        let given = json!({ "stream": "patients", "filter": { "email": value } });
        let error = refused(&twins.one, &other, "query_records", given).await;
        assert_eq!(error["code"], "invalid_filter");
        answers.insert(error["message"].to_string());
    }
    assert_eq!(answers.len(), 1, "{answers:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_mask_shows_what_it_says_and_the_schema_tells_which() {
    let twins = Twins::new(SourceKind::Sqlite, &FieldMasks::typical(), 7).await;
    let fields = [
        "name", "phone", "born", "income", "score", "card", "admitted",
    ];
    let given = json!({ "stream": "patients", "fields": fields, "limit": 100 });
    let reply = good(&twins.one, &twins.package, "query_records", given).await;
    let seen = rows(&reply);
    assert_eq!(seen.len(), PATIENTS);
    let is_null_or = |value: &Json, fits: &dyn Fn(&Json) -> bool| value.is_null() || fits(value);
    let range = |it: &Json| {
        it.as_str()
            .is_some_and(|it| it.starts_with('[') && it.ends_with(')'))
    };
    let last = |it: &Json| {
        it.as_str()
            .is_some_and(|it| it.starts_with("****") && it.len() == 8)
    };
    let year = |it: &Json| it.as_i64().is_some_and(|it| (1900..2100).contains(&it));
    for row in &seen {
        assert_eq!(row[1], "[redacted]");
        assert!(
            is_null_or(&row[2], &last) && is_null_or(&row[6], &last),
            "{row:?}"
        );
        assert!(
            is_null_or(&row[3], &year) && is_null_or(&row[7], &year),
            "{row:?}"
        );
        assert!(
            is_null_or(&row[4], &range) && is_null_or(&row[5], &range),
            "{row:?}"
        );
    }
    let given = json!({ "stream": "patients", "detail": "full" });
    let schema = good(&twins.one, &twins.package, "schema", given).await;
    for said in [
        "name string masked(redact)",
        "masked(token: ",
        "masked(bucket:1000)",
    ] {
        assert!(schema.text.contains(said), "{said}: {}", schema.text);
    }
    for hidden in ["alias", "wealth", "title name"] {
        assert!(!schema.text.contains(hidden), "{hidden}: {}", schema.text);
    }
    assert!(
        schema.text.contains("place string computed"),
        "{}",
        schema.text
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_text_is_masked_whole() {
    let twins = Twins::new(SourceKind::Sqlite, &FieldMasks::typical(), 7).await;
    let long = "(SELECT replace(hex(zeroblob(100000)), '00', 'x') || 'wxyz')";
    let sql = format!("UPDATE patients SET phone = {long}, email = {long} WHERE id < 30;");
    twins.databases[0].execute(&sql).await;
    let given = json!({ "stream": "patients", "fields": ["phone", "email"], "limit": 100 });
    let reply = good(&twins.one, &twins.package, "query_records", given).await;
    let shown = rows(&reply);
    // Their size is hidden too: the page has all records.
    assert_eq!(shown.len(), PATIENTS);
    assert_eq!(shown[0][1], "****wxyz");
    let token = shown[0][2].as_str().unwrap();
    assert!(token.len() < 100 && shown[1][2] == token, "{token}");
    let given = json!({ "stream": "patients", "filter": { "email": token } });
    let error = refused(&twins.one, &twins.package, "query_records", given).await;
    assert_eq!(error["code"], "invalid_filter");
    let given = json!({ "stream": "patients", "group_by": ["email"], "metrics": ["count"] });
    let groups = rows(&good(&twins.one, &twins.package, "aggregate", given).await);
    assert_eq!((&groups[0][0], &groups[0][1]), (&json!(token), &json!(29)));
}
