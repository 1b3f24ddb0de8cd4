//! Typed requests, as the dispatch takes them.

use crate::{
    Era,
    envelope::Envelope,
    logging::LevelParams,
    sdk::model::{
        CallToolRequestParams, CompleteRequestParams, GetPromptRequestParams,
        PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams, RequestId,
        RequestMetaObject, SubscribeRequestParams, UnsubscribeRequestParams,
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

/// A request, with the members of its envelope.
#[derive(Debug)]
pub(crate) struct PlainRequest {
    pub(crate) id: RequestId,
    pub(crate) era: Era,
    pub(crate) meta: RequestMetaObject,
    pub(crate) request: Request,
}

impl PlainRequest {
    /// Parses the request in `envelope`; `None` if it must be refused or handled by the SDK, which
    /// gets every unusual message.
    pub(crate) fn from_envelope(envelope: &Envelope<'_>) -> Option<Self> {
        if !envelope.is_plain() || !envelope.is_request() {
            return None;
        }
        let era = envelope.era()?;
        let meta: RequestMetaObject = if envelope.has_meta() {
            envelope.meta()?
        } else {
            RequestMetaObject::default()
        };
        let required = ProtocolVersion::V_2026_07_28;
        if era == Era::Stateless && !meta.missing_required_keys(&required).is_empty() {
            return None;
        }
        Some(Self {
            id: envelope.request_id()?,
            era,
            meta,
            request: Request::from_envelope(envelope, era)?,
        })
    }
}

impl Request {
    fn from_envelope(envelope: &Envelope<'_>, era: Era) -> Option<Self> {
        Some(match (envelope.method(), era) {
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
        })
    }
}

/// Parses the requested page of a list; without parameters, the first.
fn page(envelope: &Envelope<'_>) -> Option<PaginatedRequestParams> {
    if envelope.has_params() {
        envelope.params()
    } else {
        Some(PaginatedRequestParams::default())
    }
}
