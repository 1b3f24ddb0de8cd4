//! Renders hits as text and as structure, within a budget of bytes.

use serde_json::{Map, Value as Json};
use wayleave_model::ranking::RankPosition;
use wayleave_plan::search::SearchPlan;
use wayleave_search::Query;

use super::find::SearchOutcome;
use super::hit::{WrittenHit, shown};
use super::sources::{self, Sources};
use crate::call_context::CallContext;
use crate::reply::Reply;
use crate::table::Table;

/// Bytes of a result apart from its hits.
const BASE_BYTES: usize = 2_000;
/// Bytes for each hit; with the base, 8,000 for the usual ten.
const HIT_BYTES: usize = 600;
/// Lengths of snippets to try, in characters, until the result fits.
const SNIPPET_LENGTHS_CHARS: [usize; 6] = [160, 120, 90, 60, 30, 12];

/// The reply: as many hits as fit, with snippets as long as fit.
pub(super) fn render(
    call: &CallContext<'_>,
    plan: &SearchPlan,
    query: &Query,
    found: &SearchOutcome,
    sources: &Sources,
) -> Reply {
    let limit = usize::try_from(plan.limit()).unwrap_or(usize::MAX);
    let mut count = found.hits.len().min(limit);
    let [mut length, shorter @ ..] = SNIPPET_LENGTHS_CHARS;
    let mut snippets = shorter.iter();
    loop {
        let page = Page {
            plan,
            hits: found
                .hits
                .iter()
                .take(count)
                .map(|hit| {
                    let stream = plan.stream(hit.stream);
                    let written = shown(hit, stream, query, length);
                    (written, stream.view.connection_id())
                })
                .collect(),
            next_cursor: next(found, count)
                .map(|place| plan.cursor(&place, sources.generation(), call.seal)),
            ended_early: found.ended_at.is_some() && count == found.hits.len(),
        };
        let reply = page.reply(query, sources);
        let fits = reply.bytes() <= BASE_BYTES + HIT_BYTES * count.max(1)
            && reply.text.len() <= call.max_bytes;
        if fits || count <= 1 && snippets.len() == 0 {
            return reply;
        }
        match snippets.next() {
            Some(shorter) => length = *shorter,
            None => count -= 1,
        }
    }
}

/// Where the next page begins, if any hit follows the first `count`.
fn next(found: &SearchOutcome, count: usize) -> Option<RankPosition> {
    if count < found.hits.len() {
        let last = found.hits.get(count.checked_sub(1)?)?;
        return Some(last.position.clone());
    }
    found.ended_at.clone()
}

struct Page<'a> {
    plan: &'a SearchPlan,
    /// Each hit with its connection.
    hits: Vec<(WrittenHit, &'a str)>,
    next_cursor: Option<String>,
    ended_early: bool,
}

impl Page<'_> {
    fn reply(self, query: &Query, sources: &Sources) -> Reply {
        let mix = self.mix();
        let listed = sources.listed(&mix);
        let mut text = String::new();
        if let Some((first, _)) = self.hits.first() {
            say!(text, "first_fetch_id={}\n", first.id);
            let mix: Vec<String> = mix
                .iter()
                .map(|(id, hits)| format!("{id}:{hits}"))
                .collect();
            say!(text, "source_mix={}\n", mix.join(","));
        }
        self.say_hits(&mut text, query);
        say!(text, "sources: {}\n", sources::text(&listed));
        if self.ended_early {
            text.push_str("time ran out; the search goes on with cursor\n");
        }
        if let Some(cursor) = &self.next_cursor {
            say!(
                text,
                "next_cursor={cursor}\nmore hits: the same call with cursor\n"
            );
        }
        let (listed, total) = sources::structure(&listed);
        let mut meta = Map::new();
        meta.insert("sources".to_owned(), listed);
        meta.insert("sources_total".to_owned(), total.into());
        let mix: Map<String, Json> = mix
            .iter()
            .map(|(id, hits)| ((*id).to_owned(), Json::from(*hits)))
            .collect();
        meta.insert("source_mix".to_owned(), Json::Object(mix));
        if let Some(cursor) = &self.next_cursor {
            meta.insert("next_cursor".to_owned(), cursor.as_str().into());
        }
        let results = self.hits.into_iter().map(|(hit, _)| hit.structure);
        let data = Map::from_iter([("results".to_owned(), results.collect())]);
        let parts = [("data".to_owned(), data), ("meta".to_owned(), meta)];
        let parts = parts.map(|(name, members)| (name, Json::Object(members)));
        Reply::done(text, Json::Object(Map::from_iter(parts)))
    }

    fn say_hits(&self, text: &mut String, query: &Query) {
        let many = self.hits.len();
        if many == 0 {
            let after = self.plan.after().is_some();
            text.push_str(match (query.is_empty(), after) {
                (true, _) => "0 hits: q has no word to look for\n",
                (false, true) => "0 more hits\n",
                (false, false) => {
                    "0 hits: no text here has any of these words; try others, a prefix*, or \
                     query_records with contains\n"
                }
            });
            return;
        }
        let hits = if many == 1 { "hit" } else { "hits" };
        say!(text, "{many} {hits}, best first; fetch reads one by id\n");
        let columns = ["id", "title", "snippet", "score"];
        let columns = columns.map(|name| (name.to_owned(), name.to_owned()));
        let mut table = Table::new(columns, usize::MAX);
        for (hit, _) in &self.hits {
            let row = vec![
                hit.id.as_str().into(),
                hit.title.as_str().into(),
                hit.snippet.as_str().into(),
                hit.score.clone(),
            ];
            let has_room = table.push(&[], &row);
            assert!(has_room, "a table without bounds has room for every row");
        }
        text.push_str(&table.finish(None).0);
    }

    /// Number of hits per connection, in order of first appearance.
    fn mix(&self) -> Vec<(&str, usize)> {
        let mut mix: Vec<(&str, usize)> = Vec::new();
        for (_, connection) in &self.hits {
            match mix.iter_mut().find(|(id, _)| id == connection) {
                Some((_, hits)) => *hits += 1,
                None => mix.push((connection, 1)),
            }
        }
        mix
    }
}
