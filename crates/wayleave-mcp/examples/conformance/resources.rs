//! Resources: text, bytes, one to watch, and a template.

use serde_json::json;
use wayleave_mcp::{Batch, Resource, ResourceContents, ResourceTemplate, TemplateError};

use crate::media;

pub(crate) fn add(batch: Batch) -> Result<Batch, TemplateError> {
    let text = Resource::new("test://static-text", "static-text", |read| async move {
        Ok(ResourceContents::text(
            read.uri,
            "text/plain",
            "This is the content of the static text resource.",
        ))
    })
    .describe("Text that never changes.")
    .of_type("text/plain");
    let bytes = Resource::new("test://static-binary", "static-binary", |read| async move {
        Ok(ResourceContents::blob(read.uri, "image/png", media::PIXEL))
    })
    .describe("Bytes that never change.")
    .of_type("image/png");
    let watched = Resource::new("test://watched-resource", "watched", |read| async move {
        Ok(ResourceContents::text(
            read.uri,
            "text/plain",
            "Watched resource content",
        ))
    })
    .describe("Clients may subscribe to it.")
    .of_type("text/plain")
    .subscribable();
    let template = ResourceTemplate::new("test://template/{id}/data", "data", |read| async move {
        let id = read.variables.get("id").cloned().unwrap_or_default();
        let data = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
        Ok(ResourceContents::text(
            read.uri,
            "application/json",
            data.to_string(),
        ))
    })?
    .describe("Data by id.")
    .of_type("application/json");
    Ok(batch
        .add_resource(text)
        .add_resource(bytes)
        .add_resource(watched)
        .add_template(template))
}
