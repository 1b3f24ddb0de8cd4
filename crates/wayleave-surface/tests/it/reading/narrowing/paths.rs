//! Grants apply along paths: a path hides what a direct read would hide.
//!
//! Pairs of deployments. In one, a grant hides streams, fields, relations and rows of a web of
//! streams, and the hidden data is malformed. In the other none of it ever existed: the mapping has
//! no such stream, field, relation, computed field or measure, and the store has no such row, so
//! that keys that referred to it refer to nothing. A caller guesses paths, `some` and `none`,
//! comparisons of fields, measures and groups of all this. Every byte of every answer must be the
//! same in both, errors and corrected calls included, page by page. `WAYLEAVE_FULL=1` makes 24,000
//! calls on SQLite instead of 480.

mod calls;
mod streams;
mod web;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value as Json;
use wayleave_model::mapping::SourceKind;
use wayleave_plan::package::Package;
use wayleave_plan::read_tool::ReadTool;
use wayleave_store::conformance::SeededRng;
use wayleave_surface::{ReadService, Reply};

use crate::reading::database::Database;
use crate::reading::fixture::{call, package};
use crate::reading::search::Library;
use calls::Calls;
use web::GrantedStreams;

/// Maximum number of pages in a walk.
const MAX_PAGES: usize = 8;

/// A narrow grant over everything, and a full grant over what it shows.
struct Twins {
    sight: GrantedStreams,
    services: [ReadService; 2],
    packages: [Package; 2],
    databases: [Arc<Database>; 2],
}

impl Twins {
    async fn new(kind: SourceKind, rng: &mut SeededRng) -> Self {
        let sight = GrantedStreams::drawn(rng);
        let seed = rng.below(1 << 30) as u64 | 1;
        let databases = [
            Database::new(kind, &sight.sql(kind, true, seed)).await,
            Database::new(kind, &sight.sql(kind, false, seed)).await,
        ];
        let services = [false, true]
            .map(|in_twin| databases[usize::from(in_twin)].service(&sight.mapping(kind, in_twin)));
        for service in &services {
            Library::from_service(service, &[]).await;
        }
        let packages = [false, true]
            .map(|in_twin| package("narrow", vec![("web-main", sight.grants(in_twin))]));
        Self {
            sight,
            services,
            packages,
            databases,
        }
    }

    /// Makes a call in both and walks on while there are pages. Returns the number of calls made,
    /// and the first reply.
    async fn check(&self, tool: &str, given: &Json) -> (usize, Reply) {
        let mut pages = [given.clone(), given.clone()];
        let mut first = None;
        for page in 0..MAX_PAGES {
            let mut replies = Vec::new();
            for at in [0, 1] {
                let given = pages[at].clone();
                replies.push(call(&self.services[at], &self.packages[at], tool, given).await);
            }
            let [world, twin] = <[Reply; 2]>::try_from(replies).unwrap();
            assert_eq!(
                bytes(tool, &world),
                bytes(tool, &twin),
                "{tool} {given}, page {page}, {:?}",
                self.sight
            );
            let cursors = [&world, &twin].map(cursor);
            first.get_or_insert(world);
            let [Some(of_world), Some(of_twin)] = cursors else {
                return (page + 1, first.unwrap());
            };
            if page == 0 {
                self.keeps_cursor(tool, given, &of_world).await;
            }
            pages[0]["cursor"] = of_world.into();
            pages[1]["cursor"] = of_twin.into();
        }
        (MAX_PAGES, first.unwrap())
    }

    /// Checks that a cursor opens for no other caller and under no other grants.
    async fn keeps_cursor(&self, tool: &str, given: &Json, cursor: &str) {
        let mut given = given.clone();
        given["cursor"] = cursor.into();
        let narrow = &self.packages[0];
        let other = Package {
            subject: "another token".to_owned(),
            ..narrow.clone()
        };
        let later = Package {
            epoch: narrow.epoch + 1,
            ..narrow.clone()
        };
        for thief in [other, later, Package::local()] {
            let got = call(&self.services[0], &thief, tool, given.clone()).await;
            let code = &got.structured.value()["error"]["code"];
            assert_eq!(code, "invalid_cursor", "{tool} {given}: {}", got.text);
        }
    }
}

fn cursor(reply: &Reply) -> Option<String> {
    let cursor = reply.structured.value()["meta"]["next_cursor"].as_str();
    cursor.map(str::to_owned)
}

/// Every byte of a reply, with the length of the cursor in place of the cursor. The cursor of a
/// search also seals the number of its indexes, which may be a digit longer.
fn bytes(tool: &str, reply: &Reply) -> String {
    let structured = reply.structured.value();
    let all = format!("{}\n{structured}", reply.text);
    match cursor(reply) {
        Some(cursor) if tool == "search" => all.replace(&cursor, "SEALED"),
        Some(cursor) => all.replace(&cursor, &format!("SEALED({})", cursor.len())),
        None => all,
    }
}

/// The call that an error or an empty answer suggests.
fn offered(reply: &Reply) -> Option<(&'static str, Json)> {
    let value = reply.structured.value();
    let next = [&value["error"]["next"], &value["meta"]["case"]["next"]];
    let next = next.into_iter().find(|it| it.is_object())?;
    let tool = next["tool"].as_str()?;
    let tool = ReadTool::parse(tool)?;
    Some((tool.as_str(), next["arguments"].clone()))
}

async fn check(kind: SourceKind, (pairs, calls): (usize, usize), seed: u64) {
    let is_full = wayleave_test::is_full();
    let (pairs, calls) = match kind {
        _ if !is_full => (pairs, calls),
        SourceKind::Sqlite => (300, 80),
        // Creating a database on a server takes time and space.
        _ => (20, 300),
    };
    let mut rng = SeededRng::new(seed);
    let mut told: BTreeMap<(&str, String), usize> = BTreeMap::new();
    let (mut pages, mut followed) = (0, 0);
    for _ in 0..pairs {
        let twins = Twins::new(kind, &mut rng).await;
        for _ in 0..calls {
            let (tool, given) = Calls::new(&mut rng, &twins.sight).drawn();
            let (walked, reply) = twins.check(tool, &given).await;
            pages += walked;
            if let Some((tool, given)) = offered(&reply) {
                twins.check(tool, &given).await;
                followed += 1;
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
        "{kind}: {} calls, {pages} pages, {followed} offered calls followed: {told:#?}",
        pairs * calls
    );
    for tool in ReadTool::ALL.map(ReadTool::as_str) {
        let answered = told.get(&(tool, "answered".to_owned())).copied();
        assert!(answered.unwrap_or(0) > 0, "{tool}: {told:?}");
    }
    let is_unknown = |it: &(&str, String)| it.1 == "unknown_field";
    assert!(told.keys().any(is_unknown), "{told:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_path_into_what_is_hidden_in_sqlite_leads_nowhere() {
    check(SourceKind::Sqlite, (12, 40), 0x9a75).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_path_into_what_is_hidden_in_postgres_leads_nowhere() {
    check(SourceKind::Postgres, (4, 40), 0x9a77).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_path_into_what_is_hidden_in_mariadb_leads_nowhere() {
    check(SourceKind::Mysql, (4, 40), 0x9a79).await;
}
