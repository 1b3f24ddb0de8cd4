//! Runs the same requests on a store and the reference interpreter, and compares the bytes.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value as Json};
use wayleave_model::digest::Digest;
use wayleave_model::mapping::SourceKind;
use wayleave_model::ratify::{Ratification, verify};
use wayleave_plan::active_datasets::ActiveDatasets;
use wayleave_plan::aggregate::AggregatePlan;
use wayleave_plan::fetch::FetchPlan;
use wayleave_plan::interpret::{RowMap, TableMap, interpret};
use wayleave_plan::package::Package;
use wayleave_plan::query::QueryPlan;
use wayleave_plan::request::{AggregateRequest, FetchRequest, QueryRequest};
use wayleave_plan::seal::{KeyRing, Seal, SealingKey};
use wayleave_plan::value::Value;
use wayleave_plan::view::View;
use wayleave_plan::{AuthorizedPlan, AuthorizedWrite};

use super::fixture;
use super::requests::{Request, RequestGenerator};
use crate::{Answer, ReadContext, Store, StoreError};

/// Maximum number of pages read for a request.
const MAX_PAGES: usize = 4;
/// Deadline of one read.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// The number of requests, and their seed.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Number of requests.
    pub requests: usize,
    /// Seed of the generator.
    pub seed: u64,
}

/// A difference that a store cannot hide.
pub struct Exclusion {
    /// The reason, for readers of the suite.
    pub reason: &'static str,
    /// Whether the exclusion covers a request, given as the tool and its arguments.
    pub applies: fn(&Json) -> bool,
}

/// Counts of requests, and of what was compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Report {
    /// Requests made.
    pub requests: usize,
    /// Requests that policy refused before any store was read.
    pub refused: usize,
    /// Pages of records compared.
    pub pages: usize,
    /// Counts compared.
    pub counts: usize,
    /// Aggregates compared.
    pub aggregates: usize,
    /// Expansions compared.
    pub expansions: usize,
    /// Filters that, with their opposite and NULL, matched every record exactly once.
    pub partitions: usize,
    /// Requests that differed as an exclusion allows.
    pub excluded: usize,
}

/// Why a store does not conform.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConformanceError {
    /// The suite itself is wrong.
    #[error("the suite is broken: {reason}")]
    Broken {
        /// The reason.
        reason: String,
    },
    /// The store failed.
    #[error("the store failed on {request}")]
    Failed {
        /// The request.
        request: String,
        /// The store's error.
        #[source]
        source: StoreError,
    },
    /// The store's answer differs from the interpreter's.
    #[error("{what} of {request} differ\nexpected {expected}\nanswered {answered}")]
    Differs {
        /// What differs: rows, a count, groups.
        what: &'static str,
        /// The request.
        request: String,
        /// The interpreter's answer: the first line that differs.
        expected: String,
        /// The store's answer there.
        answered: String,
    },
    /// A filter, its opposite and NULL do not match every record exactly once.
    #[error("{filters} hold for {found} records of {expected}")]
    Partition {
        /// The three filters.
        filters: String,
        /// Number of records they match.
        found: usize,
        /// Number of records.
        expected: usize,
    },
    /// An exclusion is no longer needed.
    #[error("nothing differs any more, so this exclusion must go: {reason}")]
    Unneeded {
        /// The exclusion's reason.
        reason: &'static str,
    },
}

/// One ratified mapping, served to one client.
pub struct ServedMapping {
    view: View,
    keys: KeyRing,
}

impl ServedMapping {
    /// Ratifies a mapping and serves it whole.
    pub fn new(mapping: &str) -> Result<Self, ConformanceError> {
        Self::with_package(mapping, &Package::local())
    }

    /// Ratifies a mapping and serves what a package grants of it.
    pub fn with_package(mapping: &str, package: &Package) -> Result<Self, ConformanceError> {
        let broken = |reason: String| ConformanceError::Broken { reason };
        let ratification = Ratification {
            dataset: "conformance".to_owned(),
            digest: Digest::from_bytes(mapping.as_bytes()),
            replaces: None,
            who: "the suite".to_owned(),
            note: String::new(),
        };
        let mapping = verify(mapping.as_bytes(), &ratification)
            .map_err(|error| broken(format!("{error:?}")))?;
        let active = ActiveDatasets::new(vec![Arc::new(mapping)])
            .map_err(|error| broken(error.to_string()))?;
        let key = SealingKey {
            id: 1,
            secret: [7; 32],
        };
        Ok(Self {
            view: View::new(&active, package),
            keys: KeyRing::new(&key, &[]),
        })
    }

    /// The keys and a fixed time.
    pub fn seal(&self) -> Seal<'_> {
        Seal {
            keys: &self.keys,
            now: 1_800_000_000,
        }
    }

    /// Plans a query from its arguments; `None` if policy refuses it.
    pub fn query(&self, arguments: &Map<String, Json>) -> Option<QueryPlan> {
        let request = QueryRequest::parse(arguments).ok()?;
        QueryPlan::new(&self.view, &request, self.seal()).ok()
    }

    /// Plans a fetch from its arguments; `None` if policy refuses it.
    pub fn fetch(&self, arguments: &Map<String, Json>) -> Option<FetchPlan> {
        let request = FetchRequest::parse(arguments).ok()?;
        FetchPlan::new(&self.view, &request).ok()
    }

    /// Plans a call of a capability's tool from its arguments; `None` if policy refuses it, or the
    /// package does not include it.
    pub fn write(&self, tool: &str, arguments: &Map<String, Json>) -> Option<AuthorizedWrite> {
        let capability = self.view.capability(tool)?;
        let micros = self.seal().now * 1_000_000;
        AuthorizedWrite::new(capability, "the suite", arguments, micros).ok()
    }

    /// Plans an aggregate from its arguments; `None` if policy refuses it.
    pub fn aggregate(&self, arguments: &Map<String, Json>) -> Option<AggregatePlan> {
        let request = AggregateRequest::parse(arguments).ok()?;
        AggregatePlan::new(&self.view, &request, self.seal()).ok()
    }
}

/// Runs the suite over a store that holds [`fixture::rows`].
pub async fn run(
    store: &dyn Store,
    options: Options,
    exclusions: &[Exclusion],
) -> Result<Report, ConformanceError> {
    let kind: SourceKind = store.capabilities().kind;
    let served = ServedMapping::new(&fixture::mapping(kind))?;
    let tables = fixture::rows();
    let mut suite = Suite::new(store, served, &tables);
    let mut maker = RequestGenerator::new(options.seed, &tables);
    let mut needed = vec![false; exclusions.len()];
    for _ in 0..options.requests {
        let request = maker.request();
        suite.report.requests += 1;
        let (named, outcome) = suite.check(&request).await;
        if let Err(error) = outcome {
            let excluded = exclusions.iter().position(|it| (it.applies)(&named));
            match excluded.and_then(|index| needed.get_mut(index)) {
                Some(needed) => *needed = true,
                None => return Err(error),
            }
            suite.report.excluded += 1;
        }
    }
    for _ in 0..options.requests / 10 {
        suite.partition(&maker.partition()).await?;
    }
    for (exclusion, needed) in exclusions.iter().zip(needed) {
        if !needed {
            return Err(ConformanceError::Unneeded {
                reason: exclusion.reason,
            });
        }
    }
    if suite.report.refused * 4 > suite.report.requests {
        let reason = format!("policy refused too much: {:?}", suite.report);
        return Err(ConformanceError::Broken { reason });
    }
    Ok(suite.report)
}

pub(super) struct Suite<'a> {
    store: &'a dyn Store,
    served: ServedMapping,
    tables: &'a TableMap,
    report: Report,
}

impl<'a> Suite<'a> {
    pub(super) fn new(store: &'a dyn Store, served: ServedMapping, tables: &'a TableMap) -> Self {
        Self {
            store,
            served,
            tables,
            report: Report::default(),
        }
    }

    pub(super) fn served(&self) -> &ServedMapping {
        &self.served
    }

    /// The rows of a table.
    pub(super) fn rows(&self, table: &str) -> &'a [RowMap] {
        let rows = self.tables.get(table);
        rows.map(Vec::as_slice).unwrap_or_default()
    }

    async fn check(&mut self, request: &Request) -> (Json, Result<(), ConformanceError>) {
        match request {
            Request::Query(arguments) => {
                let named = serde_json::json!({"query_records": arguments});
                let outcome = self.query(arguments.clone(), &named).await;
                (named, outcome)
            }
            Request::Aggregate(arguments) => {
                let named = serde_json::json!({"aggregate": arguments});
                let outcome = self.aggregate(arguments, &named).await;
                (named, outcome)
            }
        }
    }

    async fn query(
        &mut self,
        mut arguments: Map<String, Json>,
        named: &Json,
    ) -> Result<(), ConformanceError> {
        for _ in 0..MAX_PAGES {
            let Some(plan) = self.served.query(&arguments) else {
                self.report.refused += 1;
                return Ok(());
            };
            let rows = self.same("rows", plan.rows(), named).await?;
            self.report.pages += 1;
            if let Some(count) = plan.count() {
                self.same("counts", count, named).await?;
                self.report.counts += 1;
            }
            let page = plan.page(&rows);
            for expansion in plan.expansions() {
                if let Some(related) = expansion.plan(page.records()) {
                    self.same("expansions", &related, named).await?;
                    self.report.expansions += 1;
                }
            }
            let shown = page.records().len();
            match page.next_cursor(shown, self.served.seal()) {
                Some(cursor) => arguments.insert("cursor".to_owned(), Json::String(cursor)),
                None => return Ok(()),
            };
        }
        Ok(())
    }

    async fn aggregate(
        &mut self,
        arguments: &Map<String, Json>,
        named: &Json,
    ) -> Result<(), ConformanceError> {
        let Some(plan) = self.served.aggregate(arguments) else {
            self.report.refused += 1;
            return Ok(());
        };
        self.same("groups", plan.groups(), named).await?;
        self.report.aggregates += 1;
        Ok(())
    }

    /// Checks that three filters match every record exactly once in total.
    async fn partition(&mut self, filters: &[Json; 3]) -> Result<(), ConformanceError> {
        let mut found = 0;
        for filter in filters {
            let arguments = Map::from_iter([
                ("stream".to_owned(), Json::from("samples")),
                ("filter".to_owned(), filter.clone()),
                ("count".to_owned(), Json::from("exact")),
            ]);
            let Some(plan) = self.served.query(&arguments) else {
                return Ok(());
            };
            if let Some(count) = plan.count() {
                let rows = self.same("counts", count, filter).await?;
                let count = rows.first().and_then(|row| row.first());
                if let Some(Value::Integer(count)) = count {
                    found += usize::try_from(*count).unwrap_or(usize::MAX);
                }
            }
        }
        if found != fixture::SAMPLE_COUNT {
            return Err(ConformanceError::Partition {
                filters: Json::Array(filters.to_vec()).to_string(),
                found,
                expected: fixture::SAMPLE_COUNT,
            });
        }
        self.report.partitions += 1;
        Ok(())
    }

    /// Runs a plan on the store and the interpreter, and compares the rows as written.
    pub(super) async fn same(
        &self,
        what: &'static str,
        plan: &AuthorizedPlan,
        named: &Json,
    ) -> Result<Vec<Vec<Value>>, ConformanceError> {
        let expected = interpret(plan, self.tables);
        let answered =
            answer(self.store, plan)
                .await
                .map_err(|source| ConformanceError::Failed {
                    request: format!("{named}\n{:?}", plan.read()),
                    source,
                })?;
        let (wanted, got) = (lines(&expected), lines(&answered));
        if wanted == got {
            return Ok(answered);
        }
        let place = wanted.iter().zip(&got).take_while(|(a, b)| a == b).count();
        let shown = |lines: &[String], others: &[String]| {
            let alone = lines.iter().filter(|line| !others.contains(line));
            let alone: Vec<&str> = alone.map(String::as_str).take(3).collect();
            let line = lines.get(place).map_or("nothing", String::as_str);
            format!(
                "in row {place} of {}: {line}\n  and only here: {}",
                lines.len(),
                alone.join("\n  ")
            )
        };
        Err(ConformanceError::Differs {
            what,
            request: format!("{named}\n{:?}", plan.read()),
            expected: shown(&wanted, &got),
            answered: shown(&got, &wanted),
        })
    }
}

/// Reads every row of an answer; a count is one row.
pub(super) async fn answer(
    store: &dyn Store,
    plan: &AuthorizedPlan,
) -> Result<Vec<Vec<Value>>, StoreError> {
    match store
        .read(plan, &ReadContext::with_timeout(READ_TIMEOUT))
        .await?
    {
        Answer::Rows(rows) | Answer::Groups(rows) => rows.collect().await,
        Answer::Count { rows, .. } => Ok(vec![vec![Value::Integer(rows.into())]]),
    }
}

pub(super) fn lines(rows: &[Vec<Value>]) -> Vec<String> {
    rows.iter()
        .map(|row| Json::Array(row.iter().map(Value::to_json).collect()).to_string())
        .collect()
}
