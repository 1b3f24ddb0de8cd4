//! The same searches by every path, in turn within a round: the rivals, Wayleave's index alone, the
//! read service, and the product's server over HTTP.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use clap::ValueEnum;
use memchr::memmem;
use serde_json::{Map, Value as Json, json};
use tokio::runtime::Runtime;
use wayleave_plan::package::Package;
use wayleave_search::{Index, Query, SearchedIndex, search};
use wayleave_surface::ReadService;

use super::corpus::{Case, Question};
use super::project::Library;
use super::rivals::{Fts5, Tsvector, WANTED};
use crate::load::HttpLoad;
use crate::measure::{Effort, Nanoseconds, microseconds_at, nanoseconds};
use crate::process::Server;
use crate::rounds::RoundSample;
use crate::wire::{self, Era, Requests};

/// Number of turns of each path in a round.
const TURNS: u32 = 4;

/// A path of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Way {
    /// SQLite's FTS5, snippets included.
    Fts5,
    /// PostgreSQL's `tsvector`, headlines included.
    Tsvector,
    /// Wayleave's index alone: ids and scores, nothing read at the source.
    Index,
    /// The read service, inside this process: verified at the source, with snippets.
    Service,
    /// The product's server, over HTTP.
    Mcp,
}

impl Way {
    /// All of them.
    pub(crate) const ALL: [Self; 5] = [
        Self::Fts5,
        Self::Tsvector,
        Self::Index,
        Self::Service,
        Self::Mcp,
    ];
}

/// The figures of one path in one round.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    /// The path.
    pub(crate) way: Way,
    /// Median latency, in microseconds.
    pub(crate) p50: f64,
    /// 95th percentile of the latency, in microseconds.
    pub(crate) p95: f64,
    /// Searches in the round.
    pub(crate) calls: usize,
}

impl RoundSample for Sample {
    type Way = Way;

    fn way(&self) -> Way {
        self.way
    }

    fn p50(&self) -> f64 {
        self.p50
    }
}

/// All engines.
pub(crate) struct Engines {
    /// SQLite.
    pub(crate) fts5: Fts5,
    /// PostgreSQL.
    pub(crate) tsvector: Tsvector,
    /// Wayleave's index.
    pub(crate) index: Index,
    /// Wayleave's read service.
    pub(crate) service: ReadService,
    /// Number of documents in each.
    pub(crate) documents: u64,
}

impl Engines {
    /// Returns the average number of matching documents per query. Checks that FTS5 and `tsvector`
    /// match as many, and that the index returns as many as it should.
    pub(crate) fn agree(&self, runtime: &Runtime, case: Case) -> Result<u64> {
        let questions = case.questions(self.documents);
        let mut matches = 0;
        for (place, question) in questions.iter().enumerate() {
            let count = self.fts5.count(question)?;
            matches += count;
            // Counting is slow in each engine, so only a few queries are counted by both.
            if place.is_multiple_of(8) {
                let theirs = runtime.block_on(self.tsvector.count(question))?;
                ensure!(theirs == count, "{question:?}: {count} and {theirs}");
            }
            let shown = usize::try_from(count.min(u64::from(WANTED)))?;
            let ours = ranked(&self.index, question, shown + 1)?;
            ensure!(ours.min(10) == shown, "{question:?}: {ours} of {shown}");
        }
        Ok(matches / questions.len().max(1) as u64)
    }

    async fn ask(&self, way: Way, question: &Question) -> Result<usize> {
        Ok(match way {
            Way::Fts5 => self.fts5.ask(question)?.len(),
            Way::Tsvector => self.tsvector.ask(question).await?.len(),
            Way::Index | Way::Mcp => ranked(&self.index, question, usize::try_from(WANTED)?)?,
            Way::Service => served(&self.service, question).await?,
        })
    }
}

/// Number of hits of the index alone.
pub(crate) fn ranked(index: &Index, question: &Question, most: usize) -> Result<usize> {
    let source = SearchedIndex {
        index,
        fields: vec!["title", "body"],
        counted: true,
    };
    let query = Query::parse(&question.ours(), |_| false);
    let found = search(std::slice::from_ref(&source), &query, None, most)?;
    Ok(found.candidates.len())
}

/// Number of hits of the read service.
pub(crate) async fn served(service: &ReadService, question: &Question) -> Result<usize> {
    let caller = Package::local();
    let reply = service.search(&caller, arguments(question)).await;
    ensure!(!reply.is_error, "refused: {}", reply.text);
    let results = reply.structured.value().pointer("/data/results");
    Ok(results.and_then(Json::as_array).map_or(0, Vec::len))
}

fn arguments(question: &Question) -> Map<String, Json> {
    match json!({ "q": question.ours(), "limit": WANTED }) {
        Json::Object(arguments) => arguments,
        _ => Map::new(),
    }
}

/// Runs a round of every path, in turn and in a balanced order.
pub(crate) fn round(
    runtime: &Runtime,
    engines: &Arc<Engines>,
    library: &Library,
    case: Case,
    (effort, number): (&Effort, u32),
) -> Result<Vec<Sample>> {
    let questions: Arc<[Question]> = case.questions(engines.documents).into();
    let (server, address) = Server::listening(library.server()?)?;
    let calls = || Box::new(Calls::new(&questions)) as _;
    let mut http = HttpLoad::open(address, Era::Modern, 1, calls)?;
    let mut taken: Vec<(Way, Vec<Nanoseconds>)> = Way::ALL.map(|way| (way, Vec::new())).into();
    let turn = effort.load / TURNS;
    for place in 0..=TURNS {
        // The first turn warms up and is not counted.
        let time = if place == 0 { effort.warm_up } else { turn };
        let first = usize::try_from(place + number)?;
        for step in 0..taken.len() {
            let next = (first + step) % taken.len();
            let Some((way, latencies)) = taken.get_mut(next) else {
                continue;
            };
            let mut more = match way {
                Way::Mcp => http.run(Instant::now() + time)?,
                _ => inside(runtime, engines, &questions, *way, (time, latencies.len()))?,
            };
            if place > 0 {
                latencies.append(&mut more);
            }
        }
    }
    drop((http, server));
    taken.into_iter().map(sample).collect()
}

fn inside(
    runtime: &Runtime,
    engines: &Arc<Engines>,
    questions: &Arc<[Question]>,
    way: Way,
    (time, asked): (Duration, usize),
) -> Result<Vec<Nanoseconds>> {
    let (engines, questions) = (Arc::clone(engines), Arc::clone(questions));
    let work = async move {
        let mut latencies = Vec::new();
        let mut started = Instant::now();
        let deadline = started + time;
        while started < deadline || latencies.is_empty() {
            let place = (asked + latencies.len()) % questions.len().max(1);
            let question = questions.get(place).context("no question")?;
            let found = engines.ask(way, question).await?;
            let answered = Instant::now();
            ensure!(found > 0, "{question:?} has no answer");
            latencies.push(nanoseconds(answered - started));
            started = answered;
        }
        anyhow::Ok(latencies)
    };
    // On a worker thread of the runtime, as in a server, not on this thread.
    runtime.block_on(runtime.spawn(work))?
}

fn sample((way, mut latencies): (Way, Vec<Nanoseconds>)) -> Result<Sample> {
    latencies.sort_unstable();
    let at = |percent| microseconds_at(&latencies, percent).context("nothing was answered");
    Ok(Sample {
        way,
        p50: at(50)?,
        p95: at(95)?,
        calls: latencies.len(),
    })
}

/// Searches as calls of the tool.
#[derive(Debug)]
struct Calls {
    questions: Arc<[(String, memmem::Finder<'static>)]>,
}

impl Calls {
    fn new(questions: &[Question]) -> Self {
        let call = |question: &Question| {
            let mark = format!(
                "<mark>{}</mark>",
                question.words.first().map_or("", String::as_str)
            );
            let mark = if question.words.len() > 1 {
                "<mark>"
            } else {
                &mark
            };
            (
                Json::Object(arguments(question)).to_string(),
                memmem::Finder::new(mark).into_owned(),
            )
        };
        Self {
            questions: questions.iter().map(call).collect(),
        }
    }

    fn at(&self, id: u64) -> Result<&(String, memmem::Finder<'static>)> {
        let place = usize::try_from(id)? % self.questions.len().max(1);
        self.questions.get(place).context("no question to ask")
    }
}

impl Requests for Calls {
    fn method(&self) -> &'static str {
        "tools/call"
    }

    fn name(&self) -> Option<&'static str> {
        Some("search")
    }

    fn write(&self, out: &mut Vec<u8>, era: Era, id: u64) -> Result<()> {
        wire::write_call(out, ("search", &self.at(id)?.0), era, id)
    }

    fn check(&mut self, message: &[u8]) -> Result<u64> {
        let (id, result) = wire::result_of(message)?;
        let result = result.get().as_bytes();
        if memmem::find(result, b"\"isError\":true").is_some() {
            bail!(
                "request {id} was refused: {}",
                String::from_utf8_lossy(result)
            );
        }
        ensure!(
            self.at(id)?.1.find(result).is_some(),
            "request {id} was answered with something else: {}",
            String::from_utf8_lossy(result)
        );
        Ok(id)
    }
}
