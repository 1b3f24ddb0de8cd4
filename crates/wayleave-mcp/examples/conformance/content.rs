//! Tools that return each kind of content, and two with unusual schemas.

use serde_json::{Value, json};
use wayleave_mcp::{Content, ResourceContents, SchemaError, Tool, ToolResult};

use crate::{media, no_arguments};

pub(crate) fn tools() -> Result<Vec<Tool>, SchemaError> {
    Ok(vec![
        returning(
            "test_simple_text",
            "Returns text.",
            vec![Content::text("This is a simple text response for testing.")],
        )?,
        returning(
            "test_image_content",
            "Returns an image.",
            vec![media::image()],
        )?,
        returning("test_audio_content", "Returns audio.", vec![media::audio()])?,
        returning(
            "test_embedded_resource",
            "Returns a resource.",
            vec![Content::Resource(ResourceContents::text(
                "test://embedded-resource",
                "text/plain",
                "This is an embedded resource content.",
            ))],
        )?,
        returning(
            "test_multiple_content_types",
            "Returns text, an image and a resource.",
            vec![
                Content::text("Multiple content types test:"),
                media::image(),
                Content::Resource(ResourceContents::text(
                    "test://mixed-content-resource",
                    "application/json",
                    json!({ "test": "data", "value": 123 }).to_string(),
                )),
            ],
        )?,
        json_schema()?,
        mirrored_argument()?,
    ])
}

fn returning(
    name: &'static str,
    description: &'static str,
    content: Vec<Content>,
) -> Result<Tool, SchemaError> {
    let tool = Tool::new(name, no_arguments(), move |_| {
        let content = content.clone();
        async move { Ok(ToolResult::blocks(content)) }
    })?;
    Ok(tool.describe(description))
}

fn json_schema() -> Result<Tool, SchemaError> {
    let tool = Tool::new(
        "json_schema_2020_12_tool",
        full_vocabulary(),
        |call| async move { Ok(ToolResult::text(Value::Object(call.arguments).to_string())) },
    )?;
    Ok(tool.describe("Tool with JSON Schema 2020-12 features"))
}

fn full_vocabulary() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } }
            }
        },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" }
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": {
            "properties": { "contactMethod": { "const": "phone" } },
            "required": ["contactMethod"]
        },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false
    })
}

/// A tool with an argument that is repeated in a header, where proxies can read it.
fn mirrored_argument() -> Result<Tool, SchemaError> {
    let schema = json!({
        "type": "object",
        "properties": { "region": { "type": "string", "x-mcp-header": "Region" } },
        "required": ["region"],
        "additionalProperties": false
    });
    let tool = Tool::new("test_mirrored_argument", schema, |call| async move {
        Ok(ToolResult::text(format!("region: {}", call.text("region"))))
    })?;
    Ok(tool.describe("Returns the argument that is also a header."))
}
