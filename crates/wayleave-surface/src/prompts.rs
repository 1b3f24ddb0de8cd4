//! Prompts for a person to start from: exploring a dataset, and working up an entity.
//!
//! A prompt names only what its reader may see; a dataset that is not visible does not exist.

use wayleave_mcp::{Prompt, PromptCall, PromptMessage, RpcError, Visibility};
use wayleave_model::mapping::workup_tool;
use wayleave_plan::refusal::quoted;
use wayleave_plan::view::StreamView;

use crate::access::Access;
use crate::escape;
use crate::service::ReadService;

/// The prompt that explores a dataset.
pub(crate) const EXPLORE: &str = "explore-dataset";
/// The prompt that works up an entity.
pub(crate) const WORKUP: &str = "workup-entity";

/// Maximum number of streams that a prompt names.
const MAX_STREAMS: usize = 40;
/// Maximum length of a stream's description, in characters.
const MAX_DESCRIPTION_CHARS: usize = 160;
/// Maximum length of an entity, in characters.
const MAX_ENTITY_CHARS: usize = 200;

pub(crate) fn explore(service: &ReadService, who: Visibility) -> Prompt {
    let service = service.clone();
    Prompt::new(EXPLORE, move |call: PromptCall| {
        let service = service.clone();
        async move {
            let dataset = call.text("dataset");
            let streams = streams(&service, &call, dataset)?;
            Ok(PromptMessage::user(format!(
                "Get to know the dataset `{dataset}`. It has these streams:\n{streams}\n\
                 1. Call schema: fields, relations and measures of all, or of the streams that matter \
                 (streams: [\"a\", \"b\"]).\n\
                 2. Count and group with aggregate before reading rows; read a few with query_records. \
                 Ask across relations in one call: a path (order.customer.name) wherever a field is \
                 named, {{relation: {{some: filter}}}} over relations to many.\n\
                 3. Report what the records are about, how the streams relate, from when to when they \
                 reach, what stands out, and which questions they can and cannot answer. Name the \
                 record ids you rely on."
            )))
        }
    })
    .describe("Get to know a dataset: its streams, how they relate, what they can answer.")
    .required("dataset", "The dataset's name.")
    .visible(who)
}

pub(crate) fn workup(service: &ReadService, who: Visibility) -> Prompt {
    let service = service.clone();
    Prompt::new(WORKUP, move |call: PromptCall| {
        let service = service.clone();
        async move {
            let dataset = call.text("dataset");
            streams(&service, &call, dataset)?;
            let entity = escape::inline(call.text("entity"), MAX_ENTITY_CHARS);
            let tool = workup_tool(dataset);
            Ok(PromptMessage::user(format!(
                "Work up the entity \"{entity}\" of the dataset `{dataset}`.\n\
                 1. Call {tool} with entity \"{entity}\" (or workup with dataset \"{dataset}\"). If it \
                 offers candidates, ask me which one is meant, and call it with that id.\n\
                 2. Write a note: summary, relationships, timeline, conflicts, gaps. End every \
                 sentence that claims something with the evidence it rests on, as [g1].\n\
                 3. Call check_citations with the note, fix what it reports, and show me the note."
            )))
        }
    })
    .describe("Work up one entity of a dataset into a note whose every claim is cited.")
    .required("dataset", "The dataset's name.")
    .required("entity", "A record's id, key or title.")
    .visible(who)
}

/// The visible streams of a dataset, one per line.
fn streams(service: &ReadService, prompt: &PromptCall, dataset: &str) -> Result<String, RpcError> {
    let package = &Access::from_caller(prompt.context.caller()).package;
    let call = service.context(package, 0);
    let connections = call.view.connections().iter();
    let lines: Vec<String> = connections
        .filter(|connection| connection.connector_key == dataset)
        .flat_map(|connection| &connection.streams)
        .map(line)
        .collect();
    if lines.is_empty() {
        let message = format!("there is no dataset {}", quoted(dataset));
        return Err(RpcError::invalid_params(message));
    }
    let left_out = lines.len().saturating_sub(MAX_STREAMS);
    let mut text: String = lines.into_iter().take(MAX_STREAMS).collect();
    if left_out > 0 {
        say!(text, "- and {left_out} more, which schema lists\n");
    }
    Ok(text)
}

fn line(stream: &StreamView) -> String {
    let about = stream.description().unwrap_or_default();
    let about = escape::inline(about, MAX_DESCRIPTION_CHARS);
    let colon = if about.is_empty() { "" } else { ": " };
    let (name, of) = (stream.name(), stream.type_name());
    let connection_id = stream.connection_id();
    format!("- {name} ({of}, connection_id {connection_id}){colon}{about}\n")
}
