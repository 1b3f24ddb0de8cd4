//! `workup`: what is known of one entity of one dataset, statement by statement, each with the
//! records it rests on. No model has a part in it: the same data gives the same text.
//!
//! A workup reads through the caller's own plans, in a view that holds its dataset and nothing
//! else. `check_citations` tells whether a note that was written from one keeps to its evidence.

mod citations;
mod conflicts;
mod desk;
mod draft;
mod gap;
mod node;
mod prose;
mod quote;
mod refused;
mod relations;
mod resolve;
mod sections;
mod write;

use std::sync::OnceLock;

use serde_json::{Map, Value as Json, json};
use wayleave_mcp::{Behaviour, Call, SchemaError, Tool, ToolResult};
use wayleave_model::grant::Scope;
use wayleave_plan::citing::Reference;
use wayleave_plan::package::Package;
use wayleave_plan::refusal::{Call as NextCall, Code, Refusal, quoted};
use wayleave_plan::request::{CitationsRequest, Section, WorkupRequest};

use crate::access::{Access, requires};
use crate::query::Asked;
use crate::reply::Reply;
use crate::service::ReadService;
use desk::Desk;
use draft::{Draft, Use};
use gap::Gaps;
use node::{Reached, SUBJECT};
use resolve::{By, Meaning};
use write::Dossier;

/// The name of the tool for any dataset.
pub const WORKUP: &str = "workup";
/// The name of the tool that checks a note.
pub const CHECK_CITATIONS: &str = "check_citations";

/// What stands before the reference.
const ENDING: &str = "\nread a record with fetch; check a note with check_citations\n";

/// The name of a dataset's own workup: `workup_` and its name, with `_` for `-`.
pub fn name_for(dataset: &str) -> String {
    format!("{WORKUP}_{}", dataset.replace('-', "_"))
}

/// `workup(dataset, entity, …)`, for callers with the `builder` scope.
pub fn tool(service: &ReadService) -> Result<Tool, SchemaError> {
    let description = "What is known of one entity of a dataset, every statement cited as [g1]: \
        its record, relations, timeline, texts, conflicts and gaps. Deterministic; no model.";
    tool_of(service, WORKUP, description, None)
}

/// `workup_<name>(entity, …)`: the workup of one dataset, for callers with the `builder` scope.
pub fn tool_for(service: &ReadService, dataset: &str) -> Result<Tool, SchemaError> {
    let description = format!(
        "What is known of one entity of dataset {dataset}, every statement cited as [g1]: its \
         record, relations, timeline, texts, conflicts and gaps. Deterministic; no model."
    );
    let name = name_for(dataset);
    tool_of(service, &name, &description, Some(dataset.to_owned()))
}

fn tool_of(
    service: &ReadService,
    name: &str,
    description: &str,
    dataset: Option<String>,
) -> Result<Tool, SchemaError> {
    let shape = match dataset {
        None => None,
        Some(_) => Some(shape()?),
    };
    let (service, tool) = (service.clone(), name.to_owned());
    let handler = move |call: Call| {
        let (service, tool, dataset) = (service.clone(), tool.clone(), dataset.clone());
        async move {
            let package = &Access::of(call.context.caller()).package;
            let read = WorkupRequest::read(&tool, dataset.is_none(), &call.arguments);
            let reply = match read {
                Ok(request) => service.workup(package, dataset.as_deref(), &request).await,
                Err(refusal) => refusal.into(),
            };
            Ok::<ToolResult, _>(reply.into())
        }
    };
    let tool = match shape {
        None => Tool::new(name.to_owned(), WorkupRequest::input_schema(true), handler)?,
        Some(shape) => shape.like(name.to_owned(), handler)?,
    };
    Ok(described(tool, name, description))
}

/// What the workups of all datasets share: their schema, compiled once.
fn shape() -> Result<Tool, SchemaError> {
    static SHAPE: OnceLock<Tool> = OnceLock::new();
    if let Some(shape) = SHAPE.get() {
        return Ok(shape.clone());
    }
    let schema = WorkupRequest::input_schema(false);
    let shape = Tool::new(WORKUP, schema, |_| async { Ok(ToolResult::default()) })?;
    Ok(SHAPE.get_or_init(|| shape).clone())
}

/// `check_citations(note, workup)`, for callers with the `builder` scope.
pub fn check_citations(service: &ReadService) -> Result<Tool, SchemaError> {
    let description = "Whether a note keeps to the evidence of a workup: citations that lead \
        nowhere, evidence unused, claims without a citation.";
    let service = service.clone();
    let handler = move |call: Call| {
        let package = &Access::of(call.context.caller()).package;
        let reply = service.check_citations(package, &call.arguments);
        async move { Ok::<ToolResult, _>(reply.into()) }
    };
    let schema = CitationsRequest::input_schema();
    let tool = Tool::new(CHECK_CITATIONS, schema, handler)?;
    Ok(described(tool, CHECK_CITATIONS, description))
}

fn described(tool: Tool, name: &str, description: &str) -> Tool {
    tool.describe(description)
        .behaving(Behaviour::READ)
        .with_meta(Map::from_iter([(
            "io.wayleave/tool".to_owned(),
            json!({ "kind": "runtime" }),
        )]))
        // Refusals of ours name what would be right.
        .checking_arguments()
        .visible(requires(Scope::Builder, name))
}

impl ReadService {
    /// A workup of one entity, in this dataset or in the one the request names.
    pub async fn workup(
        &self,
        caller: &Package,
        dataset: Option<&str>,
        request: &WorkupRequest,
    ) -> Reply {
        let dataset = dataset.or(request.dataset.as_deref()).unwrap_or_default();
        let Some(view) = self.view_of(caller, dataset) else {
            return self.no_dataset(caller, dataset).into();
        };
        let reading = self.reading();
        let asked = self.asking(&view, &reading);
        let answered = self.worked_up(caller, dataset, request, &asked).await;
        answered.unwrap_or_else(Reply::from)
    }

    fn no_dataset(&self, caller: &Package, dataset: &str) -> Refusal {
        let message = format!("there is no active dataset {}", quoted(dataset));
        Refusal::new(Code::NotFound, message)
            .param("dataset")
            .allowed(self.datasets_of(caller))
            .near(dataset)
            .retry_with("dataset")
            .next(NextCall::new("schema", []))
    }

    async fn worked_up(
        &self,
        caller: &Package,
        dataset: &str,
        request: &WorkupRequest,
        asked: &Asked<'_>,
    ) -> Result<Reply, Refusal> {
        let desk = Desk::new(asked, self.indexes());
        let mut gaps = Gaps::default();
        let (node, by) = match resolve::resolve(&desk, &request.entity, &mut gaps).await? {
            Meaning::One(node, by) => (node, by),
            Meaning::Several(several) => return Ok(refused::ambiguous(dataset, &several)),
        };
        let entity = node.id().to_owned();
        let mut reached = Reached::default();
        reached.add(node);
        let drafts = gathered(&desk, request, &mut reached, &mut gaps).await;
        let reference = Reference {
            dataset: dataset.to_owned(),
            entity,
            // None is longer: the room for it is known before it is.
            evidence: u32::MAX,
        };
        let ending = |reference: &Reference| {
            let sealed = reference.seal(&caller.subject, self.keys());
            (format!("{ENDING}workup={sealed}\n"), sealed)
        };
        let is_partial = gaps.is_partial();
        let written = Dossier {
            reached: &reached,
            opening: opening(&reached, &reference, by),
            drafts,
            gaps: gaps.sorted(),
            ending: ending(&reference).0.len(),
            budget: request.budget,
        }
        .write()
        .ok_or_else(too_small)?;
        let evidence = u32::try_from(written.cited.len()).unwrap_or(u32::MAX);
        let (ending, sealed) = ending(&Reference {
            evidence,
            ..reference.clone()
        });
        let (reads, rows) = asked.reading.tally();
        let meta = json!({
            "dataset": dataset,
            "entity": reference.entity,
            "found_by": by.as_str(),
            "reads": reads,
            "rows": rows,
            "records": reached.len(),
            "left_out": written.left_out,
            "text_bytes": written.text.len() + ending.len(),
        });
        let activity = format!("urn:uuid:{}", uuid::Uuid::new_v4());
        let cited = written.cited.iter().zip(1..);
        let evidence: Vec<Json> = cited
            .map(|(cited, number)| cited.to_json(number, &reached, &activity))
            .collect();
        let structured = json!({
            "sections": written.sections,
            "evidence": evidence,
            "gaps": written.gaps,
            "partial": is_partial,
            "workup": sealed,
            "activity": activity,
            "meta": meta,
        });
        Ok(Reply::done(written.text + &ending, structured))
    }
}

/// What stands under the heading.
fn opening(reached: &Reached<'_>, reference: &Reference, by: By) -> Draft {
    let fields = reached.get(SUBJECT).map(|node| {
        let keys = node.stream.key_fields().map(|it| it.name.value.clone());
        keys.chain(node.name_fields()).collect()
    });
    let (entity, dataset) = (&reference.entity, &reference.dataset);
    Draft {
        section: Section::Record,
        text: format!(
            "Record {entity} of dataset {dataset}, found by {}",
            by.as_str()
        ),
        uses: vec![Use::of(SUBJECT, fields.unwrap_or_default())],
    }
}

fn too_small() -> Refusal {
    let message = "not even the name of the record fits; ask for a larger `budget`";
    Refusal::new(Code::ResultTooLarge, message)
        .param("budget")
        .retry_with("budget")
}

/// Everything that is to be said.
async fn gathered<'a>(
    desk: &Desk<'a>,
    request: &WorkupRequest,
    reached: &mut Reached<'a>,
    gaps: &mut Gaps,
) -> Vec<Draft> {
    let wants = |section: Section| request.sections.contains(&section);
    let mut drafts = Vec::new();
    if let Some(node) = reached.get(SUBJECT).filter(|_| wants(Section::Record)) {
        drafts.extend(sections::record(node, gaps));
    }
    let counterparts = if wants(Section::Conflicts) || wants(Section::Record) {
        conflicts::counterparts(desk, reached, gaps).await
    } else {
        Vec::new()
    };
    let follows = [
        Section::Relations,
        Section::SecondHop,
        Section::Timeline,
        Section::Conflicts,
    ];
    let first = if follows.into_iter().any(wants) {
        relations::first_hop(desk, reached, gaps).await
    } else {
        Vec::new()
    };
    let deeper = [Section::SecondHop, Section::Timeline]
        .into_iter()
        .any(wants);
    let second = if request.depth > 1 && deeper {
        relations::second_hop(desk, &first, reached, gaps).await
    } else {
        Vec::new()
    };
    let subjects: Vec<usize> = counterparts.iter().map(|it| it.node).collect();
    if wants(Section::Text) {
        drafts.extend(sections::texts(desk, request, &subjects, reached, gaps).await);
    }
    drafts.extend(counterparts.iter().filter_map(|it| it.statement(reached)));
    drafts.extend(first.iter().filter_map(|link| link.near(reached)));
    drafts.extend(second.iter().filter_map(|link| link.far(reached)));
    drafts.extend(sections::timeline(request, reached));
    drafts.extend(counterparts.iter().flat_map(|it| it.conflicts(reached)));
    drafts.extend(conflicts::between(&first, reached));
    drafts.extend(conflicts::between(&second, reached));
    drafts.retain(|draft| wants(draft.section));
    drafts
}
