//! Tools that ask the client's person or model for input. In a session the server sends a request.

use serde_json::{Value, json};
use wayleave_mcp::{Call, RpcError, SchemaError, Tool, ToolReply, ToolResult};

use crate::{
    asking::{InputOutcome, Question, ask},
    no_arguments,
};

pub(crate) fn tools() -> Result<Vec<Tool>, SchemaError> {
    Ok(vec![
        Tool::new("test_sampling", one_text("prompt"), sampling)?
            .describe("Passes a prompt to the client's model."),
        Tool::new("test_elicitation", one_text("message"), elicitation)?
            .describe("Shows the person a message and asks who they are."),
        Tool::new(
            "test_elicitation_sep1034_defaults",
            no_arguments(),
            |call| form(call, "Please review the defaults", defaults()),
        )?
        .describe("Asks with a default for every kind of field."),
        Tool::new("test_elicitation_sep1330_enums", no_arguments(), |call| {
            form(call, "Please choose", choices())
        })?
        .describe("Asks with every kind of choice."),
        Tool::new("test_streaming_elicitation", no_arguments(), |call| {
            form(call, "Please confirm", confirmation())
        })?
        .describe("Asks on the stream of its own response."),
        Tool::new(
            "test_missing_capability",
            no_arguments(),
            |call| async move {
                call.context.require("sampling")?;
                Ok(ToolResult::text("The client declares sampling."))
            },
        )?
        .describe("Needs a client that declares sampling."),
    ])
}

fn one_text(name: &str) -> Value {
    json!({
        "type": "object",
        "properties": { name: { "type": "string" } },
        "required": [name],
        "additionalProperties": false
    })
}

async fn sampling(call: Call) -> Result<ToolReply, RpcError> {
    let question = Question::model("sample", call.text("prompt"), 100);
    reply(call, question, |answer| {
        let text = answer.pointer("/content/text").and_then(Value::as_str);
        format!("LLM response: {}", text.unwrap_or_default())
    })
    .await
}

async fn elicitation(call: Call) -> Result<ToolReply, RpcError> {
    let schema = json!({
        "type": "object",
        "properties": {
            "username": { "type": "string", "description": "User's response" },
            "email": { "type": "string", "description": "User's email address" }
        },
        "required": ["username", "email"]
    });
    let question = Question::form("user", call.text("message"), &schema);
    reply(call, question, |answer| {
        format!("User response: <{}>", outcome(answer, ": "))
    })
    .await
}

async fn form(call: Call, message: &str, schema: Value) -> Result<ToolReply, RpcError> {
    let question = Question::form("form", message, &schema);
    reply(call, question, |answer| {
        format!("Elicitation completed: {}", outcome(answer, "="))
    })
    .await
}

/// Replies with the question's answer in words, or with the question if it is not answered yet.
async fn reply(
    call: Call,
    question: Question,
    words: impl Fn(&Value) -> String,
) -> Result<ToolReply, RpcError> {
    let key = question.key;
    Ok(
        match ask(&call.context, &call.answers, &[question]).await? {
            InputOutcome::Again(required) => required.into(),
            InputOutcome::Answered(given) => ToolResult::text(words(given.answer(key))).into(),
        },
    )
}

/// The person's action, and the values they filled in.
fn outcome(answer: &Value, between: &str) -> String {
    let action = answer.get("action").and_then(Value::as_str);
    let content = answer.get("content").unwrap_or(&Value::Null);
    format!(
        "action{between}{}, content{between}{content}",
        action.unwrap_or_default()
    )
}

fn defaults() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "default": "John Doe" },
            "age": { "type": "integer", "default": 30 },
            "score": { "type": "number", "default": 95.5 },
            "status": {
                "type": "string",
                "enum": ["active", "inactive", "pending"],
                "default": "active"
            },
            "verified": { "type": "boolean", "default": true }
        },
        "required": []
    })
}

fn choices() -> Value {
    let options = json!(["option1", "option2", "option3"]);
    let titled = |noun: &str| {
        json!([
            { "const": "value1", "title": format!("First {noun}") },
            { "const": "value2", "title": format!("Second {noun}") },
            { "const": "value3", "title": format!("Third {noun}") }
        ])
    };
    json!({
        "type": "object",
        "properties": {
            "untitledSingle": { "type": "string", "enum": options },
            "titledSingle": { "type": "string", "oneOf": titled("Option") },
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"]
            },
            "untitledMulti": {
                "type": "array",
                "items": { "type": "string", "enum": options }
            },
            "titledMulti": { "type": "array", "items": { "anyOf": titled("Choice") } }
        },
        "required": []
    })
}

fn confirmation() -> Value {
    json!({
        "type": "object",
        "properties": { "ok": { "type": "boolean" } },
        "required": ["ok"]
    })
}
