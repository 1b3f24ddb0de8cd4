//! `mapping.read`, `check`, `diff`, `propose` and `status`.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use wayleave_ledger::Millis;
use wayleave_model::{diff, digest::Digest, grant::Scope, problem::Problem};

use super::{
    MetaCode, MetaContext, MetaOperation, MetaOperationError, MetaRefusal, MetaResult,
    context::now,
    input::{self, MappingInput, WorkingText},
};
use crate::{
    Rendering, columns, inbox::InboxProposal, render::moment, source_probe::ConnectionDrift,
};

pub(super) fn operations() -> Result<Vec<MetaOperation>, MetaOperationError> {
    Ok(vec![
        MetaOperation::new(
            "wayleave.meta.mapping.read",
            Scope::Builder,
            "The text of a ratified mapping and its digest, or of one of your own proposals.",
            read,
        )?,
        MetaOperation::new(
            "wayleave.meta.mapping.check",
            Scope::Builder,
            "Everything that is wrong with a mapping, by itself and against its live source, with \
             line, column and fix.",
            check,
        )?,
        MetaOperation::new(
            "wayleave.meta.mapping.diff",
            Scope::Builder,
            "What ratifying a mapping would change, as a FileDiff and in the words that the human \
             will read.",
            difference,
        )?,
        MetaOperation::new(
            "wayleave.meta.mapping.propose",
            Scope::Builder,
            "Puts a mapping into the human's inbox. It is served to nobody until a person has \
             read and ratified it. A proposal of yours for the same dataset that still waits is \
             replaced. Follow it with wayleave_meta_mapping_status.",
            propose,
        )?,
        MetaOperation::new(
            "wayleave.meta.mapping.status",
            Scope::Builder,
            "How your proposals stand: waiting, accepted, ratified, returned or expired, with the \
             human's comments.",
            status,
        )?,
    ])
}

/// Which mapping to read.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReadInput {
    /// The dataset.
    dataset: String,
    /// The number of one of your own proposals, in place of the ratified mapping.
    #[serde(default)]
    proposal: Option<u64>,
}

async fn read(context: MetaContext, input: ReadInput) -> MetaResult {
    input::check_name(&input.dataset)?;
    let text = match input.proposal {
        Some(id) => {
            let proposal = own(&context, id)?;
            if proposal.dataset != input.dataset {
                let message = format!("your proposal {id} is of dataset `{}`", proposal.dataset);
                return Err(MetaRefusal::new(MetaCode::UnknownProposal, message));
            }
            proposal.text
        }
        None => match context.ratified(&input.dataset).await? {
            Some(text) => text,
            None => return Err(unratified(&context, &input.dataset).await?),
        },
    };
    let document = json!({
        "dataset": input.dataset,
        "path": input::path(&input.dataset),
        "sha256": Digest::from_bytes(text.as_bytes()).hex(),
        "text": text,
    });
    Ok(Rendering::new(document, text))
}

pub(super) async fn unratified(
    context: &MetaContext,
    name: &str,
) -> Result<MetaRefusal, MetaRefusal> {
    let state = context.state().await?;
    let known = state.datasets().iter();
    let known = known.filter(|(_, it)| it.ratified.is_some());
    let known = known.map(|(name, _)| name.clone()).collect();
    Ok(MetaRefusal::unknown(
        MetaCode::UnknownDataset,
        "ratified dataset",
        name,
        known,
    ))
}

fn own(context: &MetaContext, id: u64) -> Result<InboxProposal, MetaRefusal> {
    let own = context.proposals()?;
    let numbers = own.iter().map(|it| it.id.to_string()).collect();
    own.into_iter().find(|it| it.id == id).ok_or_else(|| {
        let mut refusal = MetaRefusal::new(
            MetaCode::UnknownProposal,
            format!("you have no proposal {id}"),
        );
        refusal.allowed = numbers;
        refusal
    })
}

/// The mapping to check or compare.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CheckInput {
    /// The dataset.
    dataset: String,
    /// The mapping, as TOML.
    #[serde(default)]
    text: Option<String>,
    /// The mapping, as a unified diff of the ratified one.
    #[serde(default)]
    unified: Option<String>,
    /// The digest of the ratified mapping that you have read. The call is refused if another is
    /// ratified.
    #[serde(default)]
    before_sha256: Option<String>,
}

impl CheckInput {
    async fn read(self, context: &MetaContext) -> Result<WorkingText, MetaRefusal> {
        let input = MappingInput {
            dataset: self.dataset,
            text: self.text,
            unified: self.unified,
            before_sha256: self.before_sha256,
        };
        WorkingText::read(context, input).await
    }
}

async fn check(context: MetaContext, input: CheckInput) -> MetaResult {
    let working = input.read(&context).await?;
    let proposed = match working.propose(&context) {
        Ok(proposed) => proposed,
        Err(refusal) if refusal.code == MetaCode::MappingProblems => {
            let document = json!({
                "dataset": working.named().unwrap_or(working.dataset),
                "is_sound": false,
                "problems": refusal.problems,
                "live": [],
            });
            let text = problem_lines(&refusal.problems);
            return Ok(Rendering::new(document, text).with_findings(true));
        }
        Err(refusal) => return Err(refusal),
    };
    let compared = context.compare(proposed.mapping(), &working.after).await?;
    let is_sound = !compared.iter().any(ConnectionDrift::is_broken);
    let live: Vec<Value> = compared.iter().map(connection).collect();
    let problems = compared.iter().flat_map(|it| it.drift.iter().flatten());
    let problems: Vec<&Problem> = problems.collect();
    let text = match (is_sound, problems.is_empty()) {
        (_, false) => problem_lines(problems),
        (true, true) => "no problem; it fits its live source".to_owned(),
        (false, true) => "no problem in the text; its source does not answer".to_owned(),
    };
    let document = json!({
        "dataset": working.dataset, "is_sound": is_sound, "problems": [], "live": live,
    });
    Ok(Rendering::new(document, text).with_findings(!is_sound))
}

/// The comparison of a connection with its source, as JSON, without hosts and driver messages.
pub(super) fn connection(compared: &ConnectionDrift) -> Value {
    let error = compared.drift.as_ref().err();
    let error = error.map(|error| MetaRefusal::from(error).document());
    json!({
        "connection": compared.connection,
        "source": compared.source,
        "problems": compared.drift.as_deref().unwrap_or_default(),
        "error": error.and_then(|it| it.get("error").cloned()),
    })
}

/// Problems as text, one per line, and their number.
pub(super) fn problem_lines<'a>(problems: impl IntoIterator<Item = &'a Problem>) -> String {
    let mut lines: Vec<String> = problems.into_iter().map(problem_line).collect();
    lines.push(columns::count(lines.len(), "problem"));
    lines.join("\n")
}

/// A problem in one line: position, message and hint.
pub(super) fn problem_line(problem: &Problem) -> String {
    match &problem.hint {
        Some(hint) => format!("{problem}; {hint}"),
        None => problem.to_string(),
    }
}

async fn difference(context: MetaContext, input: CheckInput) -> MetaResult {
    let working = input.read(&context).await?;
    let proposed = working.propose(&context)?;
    let review = context.review(proposed).await?;
    let diff = working.diff();
    let words = diff::render(&review.changes);
    let document = json!({
        "dataset": working.dataset, "diff": diff, "changes": review.changes,
    });
    let text = if diff.is_empty() {
        "no changes: it is what is ratified".to_owned()
    } else {
        format!("{words}\n{diff}")
    };
    Ok(Rendering::new(document, text))
}

/// The mapping to propose, and why.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ProposeInput {
    /// The dataset.
    dataset: String,
    /// The mapping, as TOML.
    #[serde(default)]
    text: Option<String>,
    /// The mapping, as a unified diff of the ratified one: the `unified` of a `FileDiff`.
    #[serde(default)]
    unified: Option<String>,
    /// The digest of the ratified mapping that you have read. The call is refused if another is
    /// ratified.
    #[serde(default)]
    before_sha256: Option<String>,
    /// Why, in plain words for the human who decides: what you need the data for.
    reason: String,
}

async fn propose(context: MetaContext, input: ProposeInput) -> MetaResult {
    let reason = input.reason;
    let working = CheckInput {
        dataset: input.dataset,
        text: input.text,
        unified: input.unified,
        before_sha256: input.before_sha256,
    };
    let working = working.read(&context).await?;
    let proposed = working.propose(&context)?;
    if working.before.as_deref() == Some(working.after.as_str()) {
        return Err(MetaRefusal::new(
            MetaCode::Unchanged,
            "the mapping is what is ratified already",
        ));
    }
    let compared = context.compare(proposed.mapping(), &working.after).await?;
    if compared.iter().any(ConnectionDrift::is_broken) {
        return Err(MetaRefusal::unmatched(&compared));
    }
    let review = context.review(proposed).await?;
    let diff = working.diff();
    let dataset = working.dataset.clone();
    let proposal = context.submit(dataset, working.after, reason)?;
    let present = now();
    let document = json!({
        "proposal": described(&proposal, present),
        "diff": diff,
        "changes": review.changes,
        "next": { "tool": "wayleave_meta_mapping_status", "arguments": { "proposal": proposal.id } },
    });
    let text = format!(
        "proposal {} waits for a human until {}; nothing is served until they ratify it\n\
         after_sha256 {}",
        proposal.id,
        moment(proposal.expires),
        diff.after_sha256,
    );
    Ok(Rendering::new(document, text))
}

/// Selects proposals.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StatusInput {
    /// Only proposals for this dataset.
    #[serde(default)]
    dataset: Option<String>,
    /// Only the proposal of this number.
    #[serde(default)]
    proposal: Option<u64>,
}

async fn status(context: MetaContext, input: StatusInput) -> MetaResult {
    let present = now();
    let all = match input.proposal {
        Some(id) => vec![own(&context, id)?],
        None => context.proposals()?,
    };
    let is_wanted = |it: &&InboxProposal| {
        let dataset = input.dataset.as_ref();
        dataset.is_none_or(|name| *name == it.dataset)
    };
    let wanted: Vec<_> = all.iter().filter(is_wanted).collect();
    let mut lines: Vec<String> = Vec::new();
    for proposal in &wanted {
        let status = proposal.status(present).as_str();
        let mut line = format!("proposal {} ({}): {status}", proposal.id, proposal.dataset);
        if let Some(decision) = proposal
            .decision
            .as_ref()
            .filter(|it| !it.comment.is_empty())
        {
            let _ = write!(line, ", {} says: {}", decision.who, decision.comment);
        }
        lines.push(line);
    }
    let text = if lines.is_empty() {
        "you have proposed nothing".to_owned()
    } else {
        lines.join("\n")
    };
    let wanted: Vec<Value> = wanted.iter().map(|it| described(it, present)).collect();
    Ok(Rendering::new(json!({ "proposals": wanted }), text))
}

/// A proposal as JSON, without its text.
fn described(proposal: &InboxProposal, now: Millis) -> Value {
    let decision = proposal.decision.as_ref();
    json!({
        "id": proposal.id,
        "dataset": proposal.dataset,
        "status": proposal.status(now),
        "sha256": proposal.digest.hex(),
        "at": moment(proposal.revised.unwrap_or(proposal.at)),
        "expires": moment(proposal.expires),
        "follows": proposal.follows,
        "decided": decision.map(|it| json!({
            "who": it.who, "at": moment(it.at), "comment": it.comment,
        })),
    })
}
