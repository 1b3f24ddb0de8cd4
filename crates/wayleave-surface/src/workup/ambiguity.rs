//! The refusal of a name that may mean several records: lists all of them, or as many as fit, each
//! with the id to use instead.

use serde_json::{Value as Json, json};

use super::node::Node;
use crate::escape;
use crate::reply::{MAX_ERROR_BYTES, Reply};

/// Maximum number of candidates listed.
const MAX_LISTED: usize = 12;
/// Maximum length of a title, in characters.
const MAX_TITLE_CHARS: usize = 60;

/// The reply to an ambiguous name.
pub(super) fn refuse_ambiguous(dataset: &str, several: &[Node<'_>]) -> Reply {
    let mut listed = several.len().min(MAX_LISTED);
    loop {
        let error = error(dataset, several, listed);
        let reply = Reply {
            text: escape::json(&error),
            structured: json!({ "error": error }).into(),
            is_error: true,
        };
        if reply.bytes() <= MAX_ERROR_BYTES || listed <= 1 {
            return reply;
        }
        listed -= 1;
    }
}

fn error(dataset: &str, several: &[Node<'_>], listed: usize) -> Json {
    let total = several.len();
    let candidates: Vec<Json> = several
        .iter()
        .take(listed)
        .map(|node| {
            json!({
                "id": node.id(),
                "title": node.title().map(|title| escape::inline(&title, MAX_TITLE_CHARS)),
                "stream": node.stream.name(),
                "connection_id": node.stream.connection_id(),
            })
        })
        .collect();
    json!({
        "code": "ambiguous_entity",
        "message": format!("`entity` may mean {total} records; ask again with the id of one"),
        "param": "entity",
        "candidates": candidates,
        "total": total,
        "truncated": listed < total,
        "retryable": false,
        "retry_with": "entity",
        "next": {
            "tool": "workup",
            "arguments": { "dataset": dataset, "entity": several.first().map(Node::id) },
        },
    })
}
