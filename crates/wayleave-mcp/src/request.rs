//! A request as the dispatch takes it: its method known, its parameters of their types.

use crate::{
    Era,
    envelope::Envelope,
    logging::LevelParams,
    sdk::model::{
        CallToolRequestParams, CompleteRequestParams, GetPromptRequestParams,
        PaginatedRequestParams, ReadResourceRequestParams, SubscribeRequestParams,
        UnsubscribeRequestParams,
    },
};

/// A request that is carried out without the SDK.
#[derive(Debug)]
pub(crate) enum Request {
    Ping,
    SetLevel(LevelParams),
    Subscribe(SubscribeRequestParams),
    Unsubscribe(UnsubscribeRequestParams),
    CallTool(CallToolRequestParams),
    ReadResource(ReadResourceRequestParams),
    GetPrompt(GetPromptRequestParams),
    Complete(CompleteRequestParams),
    ListTools(PaginatedRequestParams),
    ListResources(PaginatedRequestParams),
    ListTemplates(PaginatedRequestParams),
    ListPrompts(PaginatedRequestParams),
}

impl Request {
    /// The request that `envelope` holds; none if it is to be refused, or carried by the SDK: what is
    /// odd about a message, even in the least, is judged there.
    pub(crate) fn from_envelope(envelope: &Envelope<'_>) -> Option<(Self, Era)> {
        if !envelope.is_plain() || !envelope.is_request() {
            return None;
        }
        let era = envelope.era()?;
        let request = match (envelope.method(), era) {
            ("tools/call", _) => Self::CallTool(envelope.params()?),
            ("resources/read", _) => Self::ReadResource(envelope.params()?),
            ("prompts/get", _) => Self::GetPrompt(envelope.params()?),
            ("completion/complete", _) => Self::Complete(envelope.params()?),
            ("tools/list", _) => Self::ListTools(page(envelope)?),
            ("resources/list", _) => Self::ListResources(page(envelope)?),
            ("resources/templates/list", _) => Self::ListTemplates(page(envelope)?),
            ("prompts/list", _) => Self::ListPrompts(page(envelope)?),
            ("ping", Era::Session) => Self::Ping,
            ("logging/setLevel", Era::Session) => Self::SetLevel(envelope.params()?),
            ("resources/subscribe", Era::Session) => Self::Subscribe(envelope.params()?),
            ("resources/unsubscribe", Era::Session) => Self::Unsubscribe(envelope.params()?),
            _ => return None,
        };
        Some((request, era))
    }
}

/// Which page of a list is asked for; without parameters it is the first.
fn page(envelope: &Envelope<'_>) -> Option<PaginatedRequestParams> {
    if envelope.has_params() {
        envelope.params()
    } else {
        Some(PaginatedRequestParams::default())
    }
}
