//! Finds which record an entity's name means: by id, key, exact title, and then by words. Never
//! guesses: a name that may mean several records is refused with all of them.

use std::collections::BTreeSet;

use wayleave_model::nearest::nearest;
use wayleave_plan::Record;
use wayleave_plan::id::RecordId;
use wayleave_plan::refusal::{Call, Code, Refusal, quoted};
use wayleave_plan::request::address;
use wayleave_plan::view::StreamView;
use wayleave_search::Query;

use super::gap::{Gap, Gaps};
use super::node::Node;
use super::reader::{
    MAX_LOOKUP_STREAMS, StopReason, WorkupReader, phrase, run_concurrently, stopped,
};
use crate::search::{BestMatches, MissingStream};

/// Maximum number of hits inspected.
const MAX_HITS: u32 = 25;
/// Maximum number of records with one title inspected in each stream.
const MAX_NAMESAKES: u32 = 13;
/// Number of titles of each stream compared with a name that was not found.
const NEAR_TITLES: u32 = 50;

/// How a record was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MatchKind {
    Id,
    Key,
    Title,
    Words,
}

impl MatchKind {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Id => "id",
            Self::Key => "key",
            Self::Title => "title",
            Self::Words => "words",
        }
    }
}

/// What a name means.
pub(super) enum EntityResolution<'a> {
    One(Node<'a>, MatchKind),
    Several(Vec<Node<'a>>),
}

/// Finds out what an entity's name means.
pub(super) async fn resolve<'a>(
    reader: &WorkupReader<'a>,
    entity: &str,
    gaps: &mut Gaps,
) -> Result<EntityResolution<'a>, Refusal> {
    let entity = entity.trim();
    if let Some(node) = by_id(reader, entity).await? {
        return Ok(EntityResolution::One(node, MatchKind::Id));
    }
    let mut lost = Vec::new();
    let mut meaning = meant(by_key(reader, entity, &mut lost).await, MatchKind::Key);
    if meaning.is_none() {
        meaning = meant(by_title(reader, entity, &mut lost).await, MatchKind::Title);
    }
    if meaning.is_none() {
        meaning = by_words(reader, entity, &mut lost).await?;
    }
    if let Some(meaning) = meaning {
        report_failures(&lost, gaps);
        return Ok(meaning);
    }
    // Where a source did not answer, nobody knows that the entity does not exist.
    match lost.into_iter().next() {
        Some((_, refusal)) => Err(refusal),
        None => Err(not_found(reader, entity).await),
    }
}

/// The connections that did not answer, and why.
type FailedConnections = Vec<(String, Refusal)>;
/// The answer of one stream.
type Read<'a> = (&'a StreamView, Result<Vec<Node<'a>>, Refusal>);

fn report_failures(lost: &FailedConnections, gaps: &mut Gaps) {
    for (place, refusal) in lost {
        gaps.add(Gap::unread(place, refusal));
    }
}

/// Finds a record by its id, or by its address, which contains the id.
async fn by_id<'a>(reader: &WorkupReader<'a>, entity: &str) -> Result<Option<Node<'a>>, Refusal> {
    let held = address::id(entity);
    let entity = held.as_deref().unwrap_or(entity);
    let Ok(id) = RecordId::parse(entity) else {
        return Ok(None);
    };
    let Some(stream) = reader.stream(&id.connection_id, &id.stream) else {
        return Ok(None);
    };
    let Some(around) = reader.alone(stream) else {
        return Ok(None);
    };
    let records = reader.by_id(&around, &[entity]).await?;
    let record = records.into_iter().next();
    Ok(record.map(|record| Node::new(stream, record)))
}

async fn by_key<'a>(
    reader: &WorkupReader<'a>,
    entity: &str,
    lost: &mut FailedConnections,
) -> Vec<Node<'a>> {
    let keyed = reader.streams().filter_map(|stream| {
        let around = reader.alone(stream)?;
        let id = around.id_of(entity)?;
        Some((stream, around, id))
    });
    let reads = few(keyed, lost)
        .into_iter()
        .map(|(stream, around, id)| async move {
            let read = reader.by_id(&around, &[&id]).await;
            let nodes = |records: Vec<Record>| -> Vec<Node<'a>> {
                let nodes = records.into_iter().map(|record| Node::new(stream, record));
                nodes.collect()
            };
            (stream, read.map(nodes))
        });
    gathered(run_concurrently(reads.collect()).await, lost)
}

async fn by_title<'a>(
    reader: &WorkupReader<'a>,
    entity: &str,
    lost: &mut FailedConnections,
) -> Vec<Node<'a>> {
    let titled = reader.streams().filter(|stream| stream.title().is_some());
    let reads = few(titled, lost).into_iter().map(|stream| async move {
        let read = reader.by_title(stream, "eq", entity, MAX_NAMESAKES).await;
        (stream, read)
    });
    gathered(run_concurrently(reads.collect()).await, lost)
}

/// Limits how many streams are searched, and records in `lost` that there are more.
fn few<T>(all: impl Iterator<Item = T>, lost: &mut FailedConnections) -> Vec<T> {
    let mut some: Vec<T> = all.take(MAX_LOOKUP_STREAMS + 1).collect();
    if some.len() > MAX_LOOKUP_STREAMS {
        some.truncate(MAX_LOOKUP_STREAMS);
        lost.push(("some streams".to_owned(), stopped(StopReason::Caps)));
    }
    some
}

/// Collects the records of several reads, and records in `lost` each source that did not answer.
fn gathered<'a>(reads: Vec<Read<'a>>, lost: &mut FailedConnections) -> Vec<Node<'a>> {
    let mut found = Vec::new();
    for (stream, read) in reads {
        match read {
            Ok(nodes) => found.extend(nodes),
            Err(refusal) => {
                let place = stream.connection_id().to_owned();
                if !lost.iter().any(|(known, _)| *known == place) {
                    lost.push((place, refusal));
                }
            }
        }
    }
    found
}

/// Finds records by the words of their title.
async fn by_words<'a>(
    reader: &WorkupReader<'a>,
    entity: &str,
    lost: &mut FailedConnections,
) -> Result<Option<EntityResolution<'a>>, Refusal> {
    let words: Vec<Query> = entity
        .split_whitespace()
        .map(|word| Query::parse(&phrase(word), |_| false))
        .filter(|query| !query.is_empty())
        .collect();
    if words.is_empty() {
        return Ok(None);
    }
    let q: Vec<String> = entity.split_whitespace().map(phrase).collect();
    let q = q.join(" ");
    let mut found = TitleSearch::default();
    let mut is_searched = true;
    for title in few(searched_titles(reader).into_iter(), lost) {
        if is_searched {
            let best = reader.best_in(title, q.clone(), &words, MAX_HITS).await;
            is_searched = found.take(reader, best, &words, lost).await?;
        }
    }
    if found.nodes.is_empty() && is_searched {
        // A title that is not searchable may belong to a record that another text leads to.
        let best = reader.best(q, MAX_HITS).await;
        found.take(reader, best, &words, lost).await?;
    }
    let TitleSearch { nodes, more } = found;
    let same = |node: &&Node<'_>| {
        let title = node.title();
        title.is_some_and(|title| folded(&title) == folded(entity))
    };
    let exact: Vec<Node<'a>> = nodes.iter().filter(same).cloned().collect();
    if !exact.is_empty() {
        return Ok(meant(exact, MatchKind::Words));
    }
    if more && !nodes.is_empty() {
        return Ok(Some(several(nodes)));
    }
    Ok(meant(nodes, MatchKind::Words))
}

/// The names of the fields that are titles and searchable, each once.
fn searched_titles<'a>(reader: &WorkupReader<'a>) -> BTreeSet<&'a str> {
    let titles = reader.streams().filter_map(|stream| {
        let title = stream.title()?;
        let mut searched = stream.search();
        searched.any(|field| field == title).then(|| title.name())
    });
    titles.collect()
}

/// Records whose title contains all words of a name.
#[derive(Default)]
struct TitleSearch<'a> {
    nodes: Vec<Node<'a>>,
    /// Whether there may be more.
    more: bool,
}

impl<'a> TitleSearch<'a> {
    /// Adds the records of a search whose title contains all words; returns whether to search on.
    async fn take(
        &mut self,
        reader: &WorkupReader<'a>,
        best: Result<BestMatches, Refusal>,
        words: &[Query],
        lost: &mut FailedConnections,
    ) -> Result<bool, Refusal> {
        let best = match best {
            Ok(best) => best,
            // No part of this dataset is searchable.
            Err(refusal) if refusal.code == Code::InvalidRequest => return Ok(false),
            Err(refusal) => {
                lost.push(("search".to_owned(), refusal));
                return Ok(false);
            }
        };
        for (place, why) in &best.missing {
            if !lost.iter().any(|(known, _)| known == place) {
                lost.push((place.clone(), unsearched(why)));
            }
        }
        if best.more && best.ids.is_empty() {
            lost.push(("search".to_owned(), stopped(StopReason::Deadline)));
        }
        self.more |= best.more;
        for node in reader.nodes(&best.ids).await? {
            let title = node.title();
            let analyzer = node.stream.search_analyzer().into();
            let has = |word: &Query| {
                let title = title.as_deref();
                title.is_some_and(|title| word.matches(analyzer, [("title", title)]))
            };
            let known = self.nodes.iter().any(|it| it.id() == node.id());
            if !known && words.iter().all(has) {
                self.nodes.push(node);
            }
        }
        Ok(true)
    }
}

/// The refusal of a name that might occur in texts that could not be searched.
fn unsearched(why: &MissingStream) -> Refusal {
    let message = match why {
        MissingStream::Unread(refusal) => return refusal.clone(),
        MissingStream::Indexing => {
            "no record has this id, key or title; some texts could not be searched because they are still being indexed; try again in a moment"
        }
        MissingStream::NotIndexed => {
            "no record has this id, key or title; some texts could not be searched because an index failed to build (the server retries)"
        }
    };
    let mut refusal = Refusal::new(Code::SourceUnavailable, message);
    refusal.reason = Some(why.as_str());
    refusal
}

fn folded(text: &str) -> String {
    let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
    words.join(" ")
}

/// The single entity that was found: one record, or one in each of several connections that all
/// denote the same entity.
fn meant(found: Vec<Node<'_>>, by: MatchKind) -> Option<EntityResolution<'_>> {
    let mut rest = found.iter();
    let first = rest.next()?;
    let mut seen = vec![first.stream.connection_id()];
    let one = rest.all(|other| {
        let elsewhere = !seen.contains(&other.stream.connection_id());
        seen.push(other.stream.connection_id());
        elsewhere && same_entity(first, other).is_some()
    });
    if one {
        let first = found.into_iter().next()?;
        return Some(EntityResolution::One(first, by));
    }
    Some(several(found))
}

fn several(mut found: Vec<Node<'_>>) -> EntityResolution<'_> {
    found.sort_by(|a, b| a.id().cmp(b.id()));
    EntityResolution::Several(found)
}

/// Why records of two connections denote one entity: the same stream, and the same title, or the
/// same key where that is more than a number assigned by its store and no title contradicts it.
pub(super) fn same_entity(one: &Node<'_>, other: &Node<'_>) -> Option<&'static str> {
    if one.stream.name() != other.stream.name() {
        return None;
    }
    let titles = (one.title(), other.title());
    let same_key = one.key() == other.key();
    match titles {
        (Some(one), Some(other)) if one == other && same_key => Some("key and title"),
        (Some(one), Some(other)) if one == other => Some("title"),
        _ if same_key && !one.has_local_key() => Some("key"),
        _ => None,
    }
}

/// The refusal of a name that was not found, with the nearest title.
async fn not_found(reader: &WorkupReader<'_>, entity: &str) -> Refusal {
    let beginning: String = entity.chars().take(2).collect();
    let streams = reader.streams().filter(|stream| stream.title().is_some());
    let reads = streams
        .take(MAX_LOOKUP_STREAMS)
        .map(|stream| reader.by_title(stream, "starts_with", &beginning, NEAR_TITLES));
    let found = run_concurrently(reads.collect()).await;
    let titles: Vec<String> = found
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|node| node.title())
        .collect();
    let message = format!(
        "nothing here is called {}: no record's id, key or title is that, and no searched title \
         has all its words",
        quoted(entity)
    );
    let mut refusal = Refusal::new(Code::NotFound, message)
        .param("entity")
        .retry_with("entity");
    refusal.did_you_mean = nearest(entity, titles.iter().map(String::as_str)).map(str::to_owned);
    if !wayleave_model::sensitive::looks_like_dsn(entity) {
        let q: String = entity.chars().take(200).collect();
        refusal = refusal.next(Call::new("search", [("q", q.into())]));
    }
    refusal
}
