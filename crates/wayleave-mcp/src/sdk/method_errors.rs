//! Distinguishes a method that does not exist from one whose parameters do not parse.
//!
//! The SDK passes on every request it could not parse as "custom", whatever the reason.

use rmcp::model::{
    CallToolRequestParams, CompleteRequestParams, GetPromptRequestParams, InitializeRequestParams,
    PaginatedRequestParams, ReadResourceRequestParams, SubscribeRequestParams,
    SubscriptionsListenRequestParams, UnsubscribeRequestParams,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{Era, RpcError, error::excerpt, logging::LevelParams};

/// The error for a request the SDK could not dispatch.
pub(crate) fn refuse(method: &str, params: Option<&Value>, era: Era) -> RpcError {
    let params = params
        .cloned()
        .unwrap_or_else(|| Value::Object(serde_json::Map::new()));
    let reason = match (method, era) {
        ("tools/call", _) => parse_error::<CallToolRequestParams>(params),
        ("prompts/get", _) => parse_error::<GetPromptRequestParams>(params),
        ("resources/read", _) => parse_error::<ReadResourceRequestParams>(params),
        ("completion/complete", _) => parse_error::<CompleteRequestParams>(params),
        ("tools/list" | "prompts/list" | "resources/list" | "resources/templates/list", _) => {
            parse_error::<PaginatedRequestParams>(params)
        }
        ("initialize", Era::Session) => parse_error::<InitializeRequestParams>(params),
        ("resources/subscribe", Era::Session) => parse_error::<SubscribeRequestParams>(params),
        ("resources/unsubscribe", Era::Session) => parse_error::<UnsubscribeRequestParams>(params),
        ("logging/setLevel", Era::Session) => parse_error::<LevelParams>(params),
        ("subscriptions/listen", Era::Stateless) => {
            parse_error::<SubscriptionsListenRequestParams>(params)
        }
        ("ping", Era::Session) | ("server/discover", _) => "unexpected parameters".to_owned(),
        _ => {
            return RpcError::new(
                RpcError::METHOD_NOT_FOUND,
                format!("unknown method `{}`", excerpt(method)),
            );
        }
    };
    RpcError::invalid_params(format!("invalid parameters of `{method}`: {reason}"))
}

fn parse_error<T: DeserializeOwned>(params: Value) -> String {
    match serde_json::from_value::<T>(params) {
        Ok(_) => "the request is malformed".to_owned(),
        Err(error) => excerpt(&error.to_string()).into_owned(),
    }
}
