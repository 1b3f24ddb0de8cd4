//! One workup: finds the record that is meant, gathers what is known about it, and writes it.

use serde_json::{Value as Json, json};
use wayleave_plan::package::Package;
use wayleave_plan::refusal::{Call, Code, Refusal, quoted};
use wayleave_plan::request::{Section, WorkupRequest};
use wayleave_plan::workup_ref::Reference;

use super::gap::Gaps;
use super::node::{Node, ReachedRecords, SUBJECT};
use super::reader::WorkupReader;
use super::render::{NumberedWorkup, WorkupContent};
use super::resolve::{self, EntityResolution, MatchKind};
use super::statement::{RecordUse, Statement};
use super::{ambiguity, conflicts, relations, sections};
use crate::call_context::CallContext;
use crate::evidence;
use crate::reply::Reply;
use crate::service::ReadService;

/// The text before the reference.
const ENDING: &str = "\nread a record with fetch; check a note with check_citations\n";

impl ReadService {
    /// A workup of one entity, in the dataset the request names.
    pub async fn workup(&self, caller: &Package, request: &WorkupRequest) -> Reply {
        let Some(call) = self.call_in_dataset(caller, &request.dataset) else {
            return no_dataset(&self.context(caller, 0), &request.dataset).into();
        };
        let answered = worked_up(&call, request).await;
        answered.unwrap_or_else(Reply::from)
    }
}

/// The refusal for a dataset that the caller does not see, listing those it does.
fn no_dataset(call: &CallContext<'_>, dataset: &str) -> Refusal {
    let connections = call.view.connections().iter();
    let mut known: Vec<&str> = connections.map(|it| it.connector_key.as_str()).collect();
    known.dedup();
    let message = format!("there is no active dataset {}", quoted(dataset));
    Refusal::new(Code::NotFound, message)
        .param("dataset")
        .allowed(known)
        .near(dataset)
        .retry_with("dataset")
        .next(Call::new("schema", []))
}

async fn worked_up(call: &CallContext<'_>, request: &WorkupRequest) -> Result<Reply, Refusal> {
    let dataset = request.dataset.as_str();
    let reader = WorkupReader::new(call);
    let mut gaps = Gaps::default();
    let (node, by) = match resolve::resolve(&reader, &request.entity, &mut gaps).await? {
        EntityResolution::One(node, by) => (node, by),
        EntityResolution::Several(several) => {
            return Ok(ambiguity::refuse_ambiguous(dataset, &several));
        }
    };
    let about = |evidence: u32| Reference {
        dataset: dataset.to_owned(),
        entity: node.id().to_owned(),
        evidence,
    };
    let sealed = |reference: &Reference| reference.seal(call.view.subject(), call.seal.keys);
    let ending = |sealed: &str| format!("{ENDING}workup={sealed}\n");
    let opening = opening(&node, dataset, by);
    let mut reached = ReachedRecords::default();
    reached.add(node.clone());
    let statements = gathered(&reader, request, &mut reached, &mut gaps).await;
    let is_partial = gaps.is_partial();
    let written = WorkupContent {
        reached: &reached,
        opening,
        statements,
        gaps: gaps.sorted(),
        // Measured with the largest count, before the real one is known.
        ending: ending(&sealed(&about(u32::MAX))).len(),
        budget: request.budget,
    }
    .render()
    .ok_or_else(too_small)?;
    let reference = about(u32::try_from(written.cited.len()).unwrap_or(u32::MAX));
    let told = WorkupNotes {
        sealed: sealed(&reference),
        reference,
        by,
        is_partial,
        tally: reader.tally(),
    };
    let ending = ending(&told.sealed);
    call.note_ids(reached.all().map(|(_, node)| node.id().to_owned()));
    call.note_rows(reached.len());
    Ok(told.reply(written, &reached, &ending))
}

/// Notes about a workup, apart from its statements.
struct WorkupNotes {
    reference: Reference,
    sealed: String,
    by: MatchKind,
    is_partial: bool,
    /// Number of reads and of rows.
    tally: (usize, usize),
}

impl WorkupNotes {
    fn reply(self, written: NumberedWorkup, reached: &ReachedRecords<'_>, ending: &str) -> Reply {
        let activity = match evidence::collector() {
            Some(collector) => collector.id().urn(),
            None => uuid::Uuid::new_v4().urn().to_string(),
        };
        let cited = written.cited.iter().zip(1..);
        let evidence: Vec<Json> = cited
            .map(|(cited, number)| cited.to_json(number, reached, &activity))
            .collect();
        let text = written.text + ending;
        let structured = json!({
            "sections": written.sections,
            "evidence": evidence,
            "gaps": written.gaps,
            "partial": self.is_partial,
            "workup": self.sealed,
            "activity": activity,
            "meta": {
                "dataset": self.reference.dataset,
                "entity": self.reference.entity,
                "found_by": self.by.as_str(),
                "reads": self.tally.0,
                "rows": self.tally.1,
                "records": reached.len(),
                "left_out": written.left_out,
                "text_bytes": text.len(),
            },
        });
        Reply::done(text, structured)
    }
}

/// The lines under the heading.
fn opening(node: &Node<'_>, dataset: &str, by: MatchKind) -> Statement {
    let fields = node.key_names().chain(node.name_fields()).collect();
    let (id, by) = (node.id(), by.as_str());
    Statement {
        section: Section::Record,
        text: format!("Record {id} of dataset {dataset}, found by {by}"),
        uses: vec![RecordUse::new(SUBJECT, fields)],
    }
}

fn too_small() -> Refusal {
    let message = "not even the name of the record fits; ask for a larger `budget`";
    Refusal::new(Code::ResultTooLarge, message)
        .param("budget")
        .retry_with("budget")
}

/// Gathers every statement.
async fn gathered<'a>(
    reader: &WorkupReader<'a>,
    request: &WorkupRequest,
    reached: &mut ReachedRecords<'a>,
    gaps: &mut Gaps,
) -> Vec<Statement> {
    let wants = |section: &Section| request.sections.contains(section);
    let wants_any = |sections: &[Section]| sections.iter().any(wants);
    let mut statements = Vec::new();
    if wants(&Section::Record) {
        statements.extend(sections::record(reached.get(SUBJECT), gaps));
    }
    let mut counterparts = Vec::new();
    if wants_any(&[Section::Record, Section::Conflicts, Section::Text]) {
        counterparts = conflicts::counterparts(reader, reached, gaps).await;
    }
    let (mut first, mut second) = (Vec::new(), Vec::new());
    let deeper = [Section::SecondHop, Section::Timeline, Section::Conflicts];
    if wants_any(&deeper) || wants(&Section::Relations) {
        first = relations::first_hop(reader, reached, gaps).await;
    }
    if wants_any(&deeper) && request.depth > 1 {
        second = relations::second_hop(reader, &first, reached, gaps).await;
    }
    if wants(&Section::Text) {
        let others: Vec<usize> = counterparts.iter().map(|it| it.node).collect();
        statements.extend(sections::texts(reader, request, &others, reached, gaps).await);
    }
    statements.extend(counterparts.iter().map(|it| it.statement(reached)));
    statements.extend(first.iter().map(|link| link.direct_statement(reached)));
    statements.extend(second.iter().map(|link| link.indirect_statement(reached)));
    statements.extend(sections::timeline(request, reached));
    statements.extend(counterparts.iter().flat_map(|it| it.conflicts(reached)));
    statements.extend(conflicts::between(&first, reached));
    statements.extend(conflicts::between(&second, reached));
    statements.retain(|statement| wants(&statement.section));
    statements
}
