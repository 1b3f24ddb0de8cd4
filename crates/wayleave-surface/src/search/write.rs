//! Hits as text and as structure, within their budget of bytes.

use std::io;

use serde_json::{Map, Value as Json};
use wayleave_plan::search::{Place, SearchPlan};
use wayleave_search::Query;

use super::find::Found;
use super::hit::{Shown, shown};
use super::sources::{self, Sources};
use crate::query::Asked;
use crate::reply::Reply;
use crate::table::Table;

/// Bytes of a whole result: so many, and
const AROUND: usize = 2_000;
/// so many for each hit; together 8,000 for the usual ten.
const A_HIT: usize = 600;
/// Characters of snippets, ever fewer until the result fits.
const SNIPPETS: [usize; 6] = [160, 120, 90, 60, 30, 12];

/// The reply: as many hits as fit, with snippets as long as fit.
pub(super) fn written(
    asked: &Asked<'_>,
    plan: &SearchPlan,
    query: &Query,
    found: &Found,
    sources: &Sources,
) -> Reply {
    let limit = usize::try_from(plan.limit()).unwrap_or(usize::MAX);
    let mut count = found.hits.len().min(limit);
    let mut snippets = SNIPPETS.iter();
    let mut length = *snippets.next().unwrap_or(&0);
    loop {
        let page = Page {
            plan,
            hits: found
                .hits
                .iter()
                .take(count)
                .filter_map(|hit| {
                    let stream = plan.streams().get(hit.stream)?;
                    Some((
                        shown(hit, stream, query, length),
                        stream.view.connection_id(),
                    ))
                })
                .collect(),
            next_cursor: next(found, count)
                .map(|place| plan.cursor(&place, sources.generation(), asked.seal)),
            ended_early: found.ended_at.is_some() && count == found.hits.len(),
        };
        let reply = page.reply(query, sources);
        let fits = bytes(&reply) <= AROUND + A_HIT * count.max(1) && reply.text.len() <= asked.most;
        if fits || count <= 1 && snippets.len() == 0 {
            return reply;
        }
        match snippets.next() {
            Some(shorter) => length = *shorter,
            None => count -= 1,
        }
    }
}

/// What [`Reply::bytes`] says of a reply that is no error, without making a copy of it.
fn bytes(reply: &Reply) -> usize {
    const AROUND: &str =
        r#"{"content":[{"type":"text","text":}],"structuredContent":,"isError":false}"#;
    let mut written = Bytes(AROUND.len());
    // Neither a count nor what is in a reply can fail.
    let _ = serde_json::to_writer(&mut written, &reply.text);
    let _ = serde_json::to_writer(&mut written, &reply.structured);
    written.0
}

/// How many bytes were written.
struct Bytes(usize);

impl io::Write for Bytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Where the next page begins, if anything follows the first `count` hits.
fn next(found: &Found, count: usize) -> Option<Place> {
    if count < found.hits.len() {
        return found
            .hits
            .get(count.checked_sub(1)?)
            .map(super::find::Hit::place);
    }
    found.ended_at.clone()
}

struct Page<'a> {
    plan: &'a SearchPlan,
    /// Each hit with its connection.
    hits: Vec<(Shown, &'a str)>,
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
        Reply::row_set(text, Json::Object(data), Json::Object(meta))
    }

    fn say_hits(&self, text: &mut String, query: &Query) {
        let many = self.hits.len();
        if many == 0 {
            let after = self.plan.after().is_some();
            text.push_str(match (query.is_empty(), after) {
                (true, _) => "0 hits: q has no word to look for\n",
                (false, true) => "0 more hits\n",
                (false, false) => "0 hits\n",
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
            // A table without bounds has room for every row.
            let _ = table.push(row);
        }
        text.push_str(&table.finish().0);
    }

    /// How many hits each connection has, in the order in which they first appear.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_reply_is_counted_as_it_will_be_written() {
        for (text, structured) in [
            (String::new(), Json::Null),
            (
                "|a\n\"é\u{1}\\".to_owned(),
                json!({ "data": { "results": [{ "score": 1.5, "é": "\"\n" }] }, "meta": {} }),
            ),
        ] {
            let reply = Reply::done(text, structured);
            assert_eq!(bytes(&reply), reply.bytes());
        }
    }
}
