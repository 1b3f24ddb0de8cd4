//! Converts this crate's types to the SDK's.

use rmcp::{
    ErrorData,
    model::{
        CallToolResponse, CallToolResult, ContentBlock, ErrorCode, GetPromptResponse,
        GetPromptResult, InputRequests, InputRequiredResult, MetaObject, PromptMessage,
        ReadResourceResponse, ReadResourceResult, Resource, ResourceContents, Role,
    },
};
use serde_json::{Map, Value, json};

use crate::{
    Content, InputRequired, PromptReply, ReadReply, ResourceBody, RpcError, Structured, ToolReply,
    ToolResult,
};

pub(crate) fn error(error: RpcError) -> ErrorData {
    ErrorData::new(ErrorCode(error.code), error.message, error.data)
}

impl From<RpcError> for ErrorData {
    fn from(ours: RpcError) -> Self {
        error(ours)
    }
}

impl From<&ErrorData> for RpcError {
    fn from(theirs: &ErrorData) -> Self {
        Self {
            code: theirs.code.0,
            message: theirs.message.clone(),
            data: theirs.data.clone(),
        }
    }
}

fn meta(map: Map<String, Value>) -> MetaObject {
    MetaObject(map)
}

pub(crate) fn contents(ours: crate::ResourceContents) -> ResourceContents {
    let mut theirs = match ours.body {
        ResourceBody::Text(text) => ResourceContents::text(text, ours.uri),
        ResourceBody::Blob(blob) => ResourceContents::blob(blob, ours.uri),
    };
    if let Some(mime_type) = ours.mime_type {
        theirs = theirs.with_mime_type(mime_type);
    }
    if let Some(map) = ours.meta {
        theirs = theirs.with_meta(meta(map));
    }
    theirs
}

pub(crate) fn block(content: Content) -> ContentBlock {
    match content {
        Content::Text(text) => ContentBlock::text(text),
        Content::Image { data, mime_type } => ContentBlock::image(data, mime_type),
        Content::Audio { data, mime_type } => ContentBlock::audio(data, mime_type),
        Content::Resource(resource) => ContentBlock::resource(contents(resource)),
        Content::Link {
            uri,
            name,
            mime_type,
        } => {
            let mut link = Resource::new(uri, name);
            link.mime_type = mime_type;
            ContentBlock::resource_link(link)
        }
    }
}

pub(crate) fn tool_result(ours: ToolResult) -> CallToolResult {
    let blocks = ours.content.into_iter().map(block).collect();
    let mut theirs = CallToolResult::success(blocks);
    theirs.is_error = ours.is_error.then_some(true);
    theirs.structured_content = ours.structured.map(Structured::into_value);
    theirs.meta = ours.meta.map(meta);
    theirs
}

/// A result made by the protocol layer, as JSON.
#[expect(
    clippy::expect_used,
    reason = "it holds text and JSON, and JSON of these cannot fail"
)]
pub(crate) fn tool_result_json(ours: ToolResult) -> Map<String, Value> {
    let json = serde_json::to_value(tool_result(ours)).expect("text and JSON serialize");
    serde_json::from_value(json).expect("a result is an object")
}

pub(super) fn tool_reply(ours: ToolReply) -> Result<CallToolResponse, RpcError> {
    Ok(match ours {
        ToolReply::Done(result) => CallToolResponse::Complete(tool_result(result)),
        ToolReply::NeedsInput(required) => CallToolResponse::InputRequired(input(required)?),
    })
}

pub(crate) fn read_reply(reply: ReadReply) -> Result<Option<ReadResourceResponse>, RpcError> {
    Ok(match reply {
        ReadReply::Done(all) => Some(ReadResourceResponse::Complete(ReadResourceResult::new(
            all.into_iter().map(contents).collect(),
        ))),
        ReadReply::NeedsInput(required) => {
            Some(ReadResourceResponse::InputRequired(input(required)?))
        }
        ReadReply::Missing => None,
    })
}

pub(crate) fn prompt_reply(reply: PromptReply) -> Result<GetPromptResponse, RpcError> {
    Ok(match reply {
        PromptReply::Done(messages) => {
            let messages = messages
                .into_iter()
                .map(|message| {
                    let role = match message.role {
                        crate::Role::User => Role::User,
                        crate::Role::Assistant => Role::Assistant,
                    };
                    PromptMessage::new(role, block(message.content))
                })
                .collect();
            GetPromptResponse::Complete(GetPromptResult::new(messages))
        }
        PromptReply::NeedsInput(required) => GetPromptResponse::InputRequired(input(required)?),
    })
}

pub(crate) fn input(required: InputRequired) -> Result<InputRequiredResult, RpcError> {
    let mut requests = InputRequests::new();
    for (key, request) in required.requests {
        let request = json!({ "method": request.method, "params": request.params });
        let request = serde_json::from_value(request)
            .map_err(|error| RpcError::internal(&format!("input request is malformed: {error}")))?;
        requests.insert(key, request);
    }
    let requests = (!requests.is_empty()).then_some(requests);
    Ok(InputRequiredResult::new(requests, required.state))
}
