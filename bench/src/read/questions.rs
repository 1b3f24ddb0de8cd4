//! The requests: three kinds of reads, each with many different arguments, and how to check an
//! answer. It does not measure time.

use std::sync::Arc;

use anyhow::{Context as _, Result, bail, ensure};
use clap::ValueEnum;
use memchr::memmem;
use serde_json::{Map, Value as Json, json};
use wayleave_plan::AuthorizedPlan;
use wayleave_plan::active_datasets::ActiveDatasets;
use wayleave_plan::aggregate::AggregatePlan;
use wayleave_plan::fetch::FetchPlan;
use wayleave_plan::package::Package;
use wayleave_plan::query::QueryPlan;
use wayleave_plan::refusal::Refusal;
use wayleave_plan::request::{AggregateRequest, FetchRequest, QueryRequest};
use wayleave_plan::seal::{KeyRing, Seal, SealingKey};
use wayleave_plan::view::View;

use super::orders::{self, ColumnType};
use crate::wire::{self, Era, Requests};

/// Number of different arguments per case: enough that no client repeats one in a row.
const DIFFERENT: u64 = 512;

/// A kind of read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Case {
    /// One order by its id.
    Point,
    /// The latest 50 orders of one customer.
    Page,
    /// The number of orders of each status and their sums.
    Groups,
}

impl Case {
    /// The name of the case in a report.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Point => "point fetch",
            Self::Page => "50-row page",
            Self::Groups => "group-by, sum",
        }
    }

    /// The tool that answers it.
    pub(crate) fn tool(self) -> &'static str {
        match self {
            Self::Point => "fetch",
            Self::Page => "query_records",
            Self::Groups => "aggregate",
        }
    }

    /// The types of the result's columns.
    pub(crate) fn column_types(self) -> &'static [ColumnType] {
        match self {
            Self::Point | Self::Page => &orders::COLUMNS,
            Self::Groups => &[ColumnType::Text, ColumnType::Decimal, ColumnType::Integer],
        }
    }

    /// Different arguments for a table of this many rows.
    pub(crate) fn questions(self, rows: u64) -> Vec<Question> {
        let different = if self == Self::Groups { 1 } else { DIFFERENT };
        // A stride that is coprime to most sizes, so that consecutive arguments are far apart.
        let places = (0..different).map(|number| number * 7_919_777);
        places.map(|place| self.question(place, rows)).collect()
    }

    fn question(self, place: u64, rows: u64) -> Question {
        let (arguments, mark) = match self {
            Self::Point => {
                let id = format!("shop/orders:{}", place % rows + 1);
                (json!({ "id": id }), format!("\"id\":\"{id}\""))
            }
            Self::Page => {
                let customer = orders::customer(place % orders::customers(rows));
                let filter = json!({ "customer": customer });
                let arguments = json!({
                    "stream": "orders", "filter": filter, "sort": ["-created_at"], "limit": 50,
                });
                (arguments, format!("\"{customer}\""))
            }
            Self::Groups => {
                let metrics = json!([{ "op": "sum", "field": "total" }, { "op": "count" }]);
                let arguments =
                    json!({ "stream": "orders", "group_by": ["status"], "metrics": metrics });
                (arguments, "\"sum_total\"".to_owned())
            }
        };
        let arguments = match arguments {
            Json::Object(arguments) => arguments,
            _ => Map::new(),
        };
        Question { arguments, mark }
    }
}

/// The arguments of one call, and a text that a correct answer contains.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    /// The arguments.
    pub(crate) arguments: Map<String, Json>,
    /// The text.
    pub(crate) mark: String,
}

/// Plans questions as the product would for a local client.
pub(crate) struct Planner {
    view: View,
    keys: KeyRing,
}

impl Planner {
    /// A planner over these datasets.
    pub(crate) fn new(active: &ActiveDatasets) -> Self {
        let key = SealingKey {
            id: 1,
            secret: [7; 32],
        };
        Self {
            view: View::new(active, &Package::local()),
            keys: KeyRing::new(&key, &[]),
        }
    }

    /// The plan of a question.
    pub(crate) fn plan(&self, case: Case, question: &Question) -> Result<AuthorizedPlan> {
        let refused = |refusal: Refusal| anyhow::anyhow!("{}", refusal.to_json());
        let (view, arguments) = (&self.view, &question.arguments);
        let seal = Seal {
            keys: &self.keys,
            now: 0,
        };
        Ok(match case {
            Case::Point => {
                let request = FetchRequest::parse(arguments).map_err(refused)?;
                let plan = FetchPlan::new(view, &request).map_err(refused)?;
                plan.rows().clone()
            }
            Case::Page => {
                let request = QueryRequest::parse(arguments).map_err(refused)?;
                let plan = QueryPlan::new(view, &request, seal).map_err(refused)?;
                plan.rows().clone()
            }
            Case::Groups => {
                let request = AggregateRequest::parse(arguments).map_err(refused)?;
                let plan = AggregatePlan::new(view, &request, seal).map_err(refused)?;
                plan.groups().clone()
            }
        })
    }
}

/// The questions of a case as calls of its tool.
#[derive(Debug)]
pub(crate) struct Calls {
    tool: &'static str,
    questions: Arc<[(String, memmem::Finder<'static>)]>,
}

impl Calls {
    /// Calls that ask these questions in turn.
    pub(crate) fn new(case: Case, questions: &[Question]) -> Self {
        let call = |question: &Question| {
            let arguments = Json::Object(question.arguments.clone()).to_string();
            (arguments, memmem::Finder::new(&question.mark).into_owned())
        };
        Self {
            tool: case.tool(),
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
        Some(self.tool)
    }

    fn write(&self, out: &mut Vec<u8>, era: Era, id: u64) -> Result<()> {
        wire::write_call(out, (self.tool, &self.at(id)?.0), era, id)
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
        let structured = memmem::find(result, b"\"structuredContent\"");
        let structured = structured.and_then(|start| result.get(start..));
        let right = structured.is_some_and(|it| self.at(id).is_ok_and(|q| q.1.find(it).is_some()));
        ensure!(
            right,
            "request {id} was answered with something else: {}",
            String::from_utf8_lossy(result)
        );
        Ok(id)
    }
}
