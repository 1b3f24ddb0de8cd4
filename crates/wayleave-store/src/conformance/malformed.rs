//! Checks stores that hold values not of their datatype: such a value satisfies no grant, and is
//! not interpreted.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value as Json, json};
use wayleave_model::mapping::SourceKind;
use wayleave_plan::AuthorizedPlan;
use wayleave_plan::interpret::{Answerability, TableMap, answerability, interpret};
use wayleave_plan::package::{
    FieldScope, Grant, Grants, Package, RelationScope, StreamGrant, StreamScope,
};
use wayleave_plan::plan::Read;
use wayleave_plan::value::Value;

use super::fixture::{self, Malformed};
use super::requests::{Request, RequestGenerator};
use super::run::{ConformanceError, Options, ServedMapping, answer, lines};
use crate::{Store, StoreError};

/// Maximum number of pages in a walk.
const MAX_PAGES: usize = 3;
/// Number of requests made under one grant.
const REQUESTS_PER_GRANT: usize = 4;

/// Counts of requests that were answered correctly.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MalformedReport {
    /// Requests made.
    pub requests: usize,
    /// Requests, or grants, that policy refused before any store was read.
    pub refused: usize,
    /// Reads that met no malformed value, and were answered as the interpreter does.
    pub fit: usize,
    /// Reads that met one and were answered without its row.
    pub without: usize,
    /// Reads that met one and failed because of it.
    pub unfit: usize,
}

/// Runs requests under generated grants over a store that holds [`fixture::malformed_rows`].
pub async fn run_malformed(
    store: &dyn Store,
    options: Options,
    malformed: &[Malformed],
) -> Result<MalformedReport, ConformanceError> {
    let kind: SourceKind = store.capabilities().kind;
    let mapping = fixture::mapping(kind);
    let tables = fixture::malformed_rows(malformed);
    let operands = fixture::rows();
    let mut maker = RequestGenerator::new(options.seed, &operands);
    let mut suite = Suite {
        store,
        tables: &tables,
        report: MalformedReport::default(),
    };
    while suite.report.requests < options.requests {
        let rows = maker.row_filter();
        let served = ServedMapping::with_package(&mapping, &package(&rows))?;
        for _ in 0..REQUESTS_PER_GRANT {
            suite.report.requests += 1;
            match maker.request() {
                Request::Query(arguments) => suite.query(&served, arguments, &rows).await?,
                Request::Aggregate(arguments) => {
                    suite.aggregate(&served, &arguments, &rows).await?;
                }
            }
        }
    }
    let MalformedReport {
        fit,
        unfit,
        without,
        ..
    } = suite.report;
    if fit == 0 || unfit == 0 || without == 0 {
        let reason = format!("nothing malformed was met: {:?}", suite.report);
        return Err(ConformanceError::Broken { reason });
    }
    Ok(suite.report)
}

/// A package that sees all fields of the fixture, and only some rows of `samples`.
fn package(rows: &Json) -> Package {
    let stream = |rows: Option<Json>| StreamGrant {
        fields: FieldScope::All,
        relations: RelationScope::All,
        rows,
        masks: std::collections::BTreeMap::new(),
    };
    let streams = BTreeMap::from([
        ("samples".to_owned(), stream(Some(rows.clone()))),
        ("parts".to_owned(), stream(None)),
    ]);
    let grant = Grant {
        capabilities: std::collections::BTreeSet::new(),
        id: "grant".to_owned(),
        dataset: "conformance".to_owned(),
        streams: StreamScope::Only(streams),
    };
    Package {
        subject: "the suite".to_owned(),
        epoch: 0,
        grants: Grants::Only(Arc::new(BTreeMap::from([("main".to_owned(), grant)]))),
    }
}

struct Suite<'a> {
    store: &'a dyn Store,
    tables: &'a TableMap,
    report: MalformedReport,
}

impl Suite<'_> {
    async fn query(
        &mut self,
        served: &ServedMapping,
        mut arguments: Map<String, Json>,
        rows: &Json,
    ) -> Result<(), ConformanceError> {
        arguments.remove("expand");
        for _ in 0..MAX_PAGES {
            let Some(plan) = served.query(&arguments) else {
                self.report.refused += 1;
                return Ok(());
            };
            let named = json!({"query_records": arguments, "granted": rows});
            if let Some(count) = plan.count() {
                self.check("a count", count, &named).await?;
            }
            let Some(rows) = self.check("rows", plan.rows(), &named).await? else {
                return Ok(());
            };
            let page = plan.page(&rows);
            match page.next_cursor(page.records().len(), served.seal()) {
                Some(cursor) => arguments.insert("cursor".to_owned(), Json::String(cursor)),
                None => return Ok(()),
            };
        }
        Ok(())
    }

    async fn aggregate(
        &mut self,
        served: &ServedMapping,
        arguments: &Map<String, Json>,
        rows: &Json,
    ) -> Result<(), ConformanceError> {
        let Some(plan) = served.aggregate(arguments) else {
            self.report.refused += 1;
            return Ok(());
        };
        let named = json!({"aggregate": arguments, "granted": rows});
        self.check("groups", plan.groups(), &named).await.map(drop)
    }

    /// Reads from the store, and compares with the permitted answers; `None` if the read failed or
    /// was cut, as permitted.
    async fn check(
        &mut self,
        what: &'static str,
        plan: &AuthorizedPlan,
        named: &Json,
    ) -> Result<Option<Vec<Vec<Value>>>, ConformanceError> {
        let expected = interpret(plan, self.tables);
        let answerability = answerability(plan, self.tables);
        let request = || format!("{named}\n{:?}", plan.read());
        match answer(self.store, plan).await {
            Err(StoreError::MalformedValue { .. }) if answerability != Answerability::Fits => {
                self.report.unfit += 1;
                Ok(None)
            }
            Err(source) => Err(ConformanceError::Failed {
                request: request(),
                source,
            }),
            Ok(answered) if answerability == Answerability::Unfit && is_cut(plan, &answered) => {
                Ok(None)
            }
            Ok(answered)
                if answerability == Answerability::Unfit
                    || lines(&answered) != lines(&expected) =>
            {
                Err(ConformanceError::Differs {
                    what,
                    request: request(),
                    expected: format!("{answerability:?} {}", lines(&expected).join("\n")),
                    answered: lines(&answered).join("\n"),
                })
            }
            Ok(answered) => {
                match answerability {
                    Answerability::Fits => self.report.fit += 1,
                    _ => self.report.without += 1,
                }
                Ok(Some(answered))
            }
        }
    }
}

/// Whether there may be groups beyond those answered, which need not be compared.
fn is_cut(plan: &AuthorizedPlan, answered: &[Vec<Value>]) -> bool {
    let limit = |limit: u32| usize::try_from(limit).unwrap_or(usize::MAX);
    matches!(plan.read(), Read::Groups(groups)
        if !groups.by.is_empty() && answered.len() == limit(groups.limit))
}
