//! Parses a message once, for all layers.
//!
//! Budgets, authorization, the observer, the cached lists and the dispatch all use this parse. It
//! is lenient, because a message that fails to parse could not be refused. It flags whatever is
//! unusual about a message, and an unusual message goes to the SDK; the SDK's own parse decides
//! nothing here.

mod members;
pub(crate) mod unparsed;

use std::borrow::Cow;

use serde::{
    Deserialize,
    de::{DeserializeOwned, IgnoredAny},
};
use serde_json::{Value, error::Category, value::RawValue};

use crate::{
    Caller, Era, RequestFacts, RpcError, registry::Snapshot, resolve, sdk::model::RequestId,
};

use members::{is_null, members, text};

#[cfg(test)]
mod tests;

/// Maximum length in bytes of an id that an answer repeats. A listener's id is in every notice.
pub(crate) const MAX_ID_BYTES: usize = 1024;

/// The only stateless revision.
pub(crate) const STATELESS: &str = "2026-07-28";

/// The error for a request with a longer id.
pub(crate) fn id_too_long() -> RpcError {
    RpcError::new(
        RpcError::INVALID_REQUEST,
        format!("the request id is longer than {MAX_ID_BYTES} bytes"),
    )
}

/// A message, parsed up to its parameters.
#[derive(Debug, Default)]
pub(crate) struct Envelope<'m> {
    kind: Kind,
    /// The id for an answer; null if no answer is possible.
    pub(crate) id: Value,
    pub(crate) id_is_too_long: bool,
    method: Cow<'m, str>,
    params: Option<&'m RawValue>,
    known: Params<'m>,
    /// Whether the message is plain: no member is unknown, duplicated, or of a wrong type.
    is_plain: bool,
    /// Whether another parser may read it differently: a member is duplicated or has a wrong type.
    is_ambiguous: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Kind {
    Invalid(Fault),
    Request,
    Notification,
    /// The client's answer to a request of the server.
    Answer,
    #[default]
    Unread,
}

/// The reason that the input is not a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It is not JSON.
    Syntax { line: usize, column: usize },
    /// It is an array, a JSON-RPC batch.
    Batch,
    /// It is JSON, but neither a request, a notification nor an answer.
    NoMessage,
}

/// The members of a message's parameters that this layer reads.
#[derive(Debug, Default)]
struct Params<'m> {
    name: Option<Cow<'m, str>>,
    uri: Option<Cow<'m, str>>,
    cursor: Option<&'m RawValue>,
    /// Of `initialize`.
    client: Option<&'m RawValue>,
    /// Of `notifications/cancelled`.
    cancelled: Option<&'m RawValue>,
    /// Of a tool or prompt, or of a completion.
    arguments: Option<&'m RawValue>,
    /// Of a stateless request: the client's name and version.
    meta_client: Option<&'m RawValue>,
    traceparent: Option<&'m RawValue>,
    meta: Option<&'m RawValue>,
    version: Option<&'m RawValue>,
    capabilities: Option<&'m RawValue>,
    wants_progress: bool,
    wants_logs: bool,
    is_ambiguous: bool,
}

/// The name and version a client states.
#[derive(Deserialize)]
struct ClientName {
    name: String,
    #[serde(default)]
    version: String,
}

impl<'m> Params<'m> {
    /// Parses `params`; `None` if they are not an object.
    fn parse(params: &'m RawValue) -> Option<Self> {
        let names = [
            "name",
            "uri",
            "cursor",
            "clientInfo",
            "requestId",
            "_meta",
            "arguments",
            "argument",
        ];
        let members = members(params.get().as_bytes(), names).ok()?;
        let [
            name,
            uri,
            cursor,
            client,
            cancelled,
            meta,
            arguments,
            argument,
        ] = members.values;
        let mut read = Self {
            name: name.and_then(text),
            uri: uri.and_then(text),
            cursor,
            client,
            cancelled,
            arguments: arguments.or(argument),
            meta: meta.filter(|meta| !is_null(meta)),
            is_ambiguous: members.has_duplicate,
            ..Self::default()
        };
        read.is_ambiguous |= read.read_meta().is_none();
        Some(read)
    }

    /// Parses `_meta`; `None` if it is not an object.
    fn read_meta(&mut self) -> Option<()> {
        let Some(meta) = self.meta else {
            return Some(());
        };
        let names = [
            "io.modelcontextprotocol/protocolVersion",
            "io.modelcontextprotocol/clientCapabilities",
            "io.modelcontextprotocol/logLevel",
            "progressToken",
            "io.modelcontextprotocol/clientInfo",
            "traceparent",
        ];
        let members = members(meta.get().as_bytes(), names).ok()?;
        let [
            version,
            capabilities,
            log_level,
            progress_token,
            client,
            traceparent,
        ] = members.values;
        self.meta_client = client;
        self.traceparent = traceparent;
        self.version = version;
        self.capabilities = capabilities;
        self.wants_logs = log_level.is_some();
        self.wants_progress = progress_token.is_some();
        self.is_ambiguous |= members.has_duplicate;
        Some(())
    }
}

impl<'m> Envelope<'m> {
    /// Parses a message.
    pub(crate) fn parse(message: &'m [u8]) -> Self {
        let members = match members(message, ["jsonrpc", "id", "method", "params"]) {
            Ok(members) => members,
            Err(error) => {
                return Self {
                    kind: Kind::Invalid(Fault::from_error(message, &error)),
                    ..Self::default()
                };
            }
        };
        let [version, id, method, params] = members.values;
        let id = id.filter(|id| !is_null(id));
        let kind = match (method.is_some(), id.is_some()) {
            (true, true) => Kind::Request,
            (true, false) => Kind::Notification,
            (false, true) => Kind::Answer,
            (false, false) => Kind::Invalid(Fault::NoMessage),
        };
        let id: Value = id
            .and_then(|id| serde_json::from_str(id.get()).ok())
            .unwrap_or(Value::Null);
        let id_is_too_long = id.as_str().is_some_and(|id| id.len() > MAX_ID_BYTES);
        let is_answerable = (id.is_string() || id.is_number()) && !id_is_too_long;
        let method = method.and_then(text);
        let written_null = params.is_some_and(is_null);
        let params = params.filter(|_| !written_null);
        let known = params.map(Params::parse);
        let is_ambiguous = members.has_duplicate || matches!(known, Some(None));
        let is_plain = !is_ambiguous
            && !members.has_unknown
            && !written_null
            && version.is_some_and(|version| version.get() == "\"2.0\"")
            && method.is_some()
            && (is_answerable || kind == Kind::Notification)
            && !matches!(&known, Some(Some(known)) if known.is_ambiguous);
        Self {
            kind,
            id: if is_answerable { id } else { Value::Null },
            id_is_too_long,
            method: method.unwrap_or(Cow::Borrowed("")),
            params,
            known: known.flatten().unwrap_or_default(),
            is_plain,
            is_ambiguous,
        }
    }

    /// Whether the sender waits for an answer.
    pub(crate) fn is_request(&self) -> bool {
        self.kind == Kind::Request
    }

    /// Whether it expects no reply, so that a refusal would reach nobody.
    pub(crate) fn is_one_way(&self) -> bool {
        matches!(self.kind, Kind::Notification | Kind::Answer)
    }

    pub(crate) fn is_notification(&self) -> bool {
        self.kind == Kind::Notification
    }

    /// Whether it answers a request of the server.
    pub(crate) fn is_answer(&self) -> bool {
        self.kind == Kind::Answer
    }

    /// Whether it is an array of messages.
    pub(crate) fn is_batch(&self) -> bool {
        self.kind == Kind::Invalid(Fault::Batch)
    }

    /// Whether no member is unknown, duplicated, or of a wrong type.
    pub(crate) fn is_plain(&self) -> bool {
        self.is_plain
    }

    pub(crate) fn is_tool_call(&self) -> bool {
        self.is_request() && !self.id.is_null() && self.method == "tools/call"
    }

    /// Whether it begins a session.
    pub(crate) fn is_initialize(&self) -> bool {
        self.method == "initialize"
    }

    /// Why it is not a message; `None` if it looks like one.
    pub(crate) fn fault(&self) -> Option<Fault> {
        match self.kind {
            Kind::Invalid(fault) => Some(fault),
            _ => None,
        }
    }

    pub(crate) fn method(&self) -> &str {
        &self.method
    }

    /// The tool or prompt name in its parameters.
    pub(crate) fn name(&self) -> Option<&str> {
        self.known.name.as_deref()
    }

    /// The resource URI in its parameters.
    pub(crate) fn uri(&self) -> Option<&str> {
        self.known.uri.as_deref()
    }

    /// The cursor of a list request, as written.
    pub(crate) fn cursor(&self) -> Option<&str> {
        self.known.cursor.map(RawValue::get)
    }

    /// Its parameters, if it has any and they parse as `T`.
    pub(crate) fn params<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_str(self.params?.get()).ok()
    }

    pub(crate) fn has_params(&self) -> bool {
        self.params.is_some()
    }

    pub(crate) fn has_meta(&self) -> bool {
        self.known.meta.is_some()
    }

    /// Its `_meta`, if it has one that parses as `T`.
    pub(crate) fn meta<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_str(self.known.meta?.get()).ok()
    }

    /// The URIs that a `subscriptions/listen` request names; `None` for any other message.
    pub(crate) fn listened_uris(&self) -> Option<Vec<String>> {
        #[derive(serde::Deserialize)]
        struct Params {
            notifications: Filter,
        }
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Filter {
            #[serde(default)]
            resource_subscriptions: Vec<String>,
        }
        if self.method() != "subscriptions/listen" || self.era() != Some(Era::Stateless) {
            return None;
        }
        let params: Params = self.params()?;
        Some(params.notifications.resource_subscriptions)
    }

    /// Whether it requests progress or log notifications.
    pub(crate) fn wants_notices(&self) -> bool {
        self.known.wants_progress || self.known.wants_logs
    }

    /// Whether it names its revision, as requests without a session do.
    pub(crate) fn is_stateless(&self) -> bool {
        self.known.version.is_some()
    }

    /// Its era; `None` if the message states it incompletely.
    pub(crate) fn era(&self) -> Option<Era> {
        let Some(version) = self.known.version else {
            return Some(Era::Session);
        };
        let capabilities = self.known.capabilities?;
        let is_whole = text(version)? == STATELESS && capabilities.get().starts_with('{');
        is_whole.then_some(Era::Stateless)
    }

    /// The era that this settles as the first request on a pipe; `None` for a probe.
    pub(crate) fn opening_era(&self) -> Option<Era> {
        match self.method() {
            "initialize" => Some(Era::Session),
            "ping" | "server/discover" => None,
            _ => self.era().filter(|era| *era == Era::Stateless),
        }
    }

    /// Its id as the protocol's type.
    pub(crate) fn request_id(&self) -> Option<RequestId> {
        request_id(&self.id)
    }

    /// The id of the request that a `notifications/cancelled` cancels.
    pub(crate) fn cancelled_request(&self) -> Option<RequestId> {
        if self.method != "notifications/cancelled" {
            return None;
        }
        request_id(&serde_json::from_str(self.known.cancelled?.get()).ok()?)
    }

    /// The bearer token in an `initialize`, if there is one. A token that is not a string, or that
    /// is ambiguous, counts as a wrong one.
    pub(crate) fn bearer(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct Client {
            authorization: Option<Value>,
        }
        let wrong = String::new;
        if self.known.is_ambiguous || self.is_ambiguous {
            return Some(wrong());
        }
        match serde_json::from_str::<Option<Client>>(self.known.client?.get()) {
            Ok(client) => {
                let authorization = client?.authorization?;
                let bearer = authorization.get("bearer")?;
                Some(bearer.as_str().map_or_else(wrong, str::to_owned))
            }
            Err(_) => Some(wrong()),
        }
    }

    /// Copies the parsed members into an observer's facts.
    pub(crate) fn fill(&self, facts: &mut RequestFacts) {
        facts.method = Some(self.method.to_string()).filter(|method| !method.is_empty());
        facts.id = self.id.clone();
        facts.name = self.name().map(str::to_owned);
        facts.uri = self.uri().map(str::to_owned);
        facts.is_notification = self.is_notification();
        facts.arguments = self.known.arguments.map(|json| json.get().into());
        let client = self.known.meta_client.or(self.known.client);
        facts.client = client.and_then(|json| {
            let client: ClientName = serde_json::from_str(json.get()).ok()?;
            Some((client.name, client.version))
        });
        facts.traceparent = self.known.traceparent.and_then(text).map(Cow::into_owned);
    }

    /// The error for a primitive that the caller may not use, unless its existence is a secret.
    pub(crate) fn denial(&self, snapshot: &Snapshot, caller: &Caller) -> Option<RpcError> {
        match self.method() {
            "tools/call" => resolve::denial(&snapshot.tools, self.name()?, caller),
            "prompts/get" => resolve::denial(&snapshot.prompts, self.name()?, caller),
            "resources/read" | "resources/subscribe" => {
                resolve::read_routes(snapshot, self.uri()?, caller).err()
            }
            _ => None,
        }
    }
}

impl Fault {
    /// The fault of a message that is not an object.
    fn from_error(message: &[u8], error: &serde_json::Error) -> Self {
        // Of input that is not an object, only the first byte is read.
        let syntax = match error.classify() {
            Category::Data => serde_json::from_slice::<IgnoredAny>(message).err(),
            _ => None,
        };
        let error = match (error.classify(), &syntax) {
            (Category::Data, None) if message.trim_ascii_start().starts_with(b"[") => {
                return Self::Batch;
            }
            (Category::Data, None) => return Self::NoMessage,
            (_, Some(syntax)) => syntax,
            (_, None) => error,
        };
        Self::Syntax {
            line: error.line(),
            column: error.column(),
        }
    }
}

fn request_id(id: &Value) -> Option<RequestId> {
    match id {
        Value::String(id) => Some(RequestId::String(id.as_str().into())),
        Value::Number(id) => id.as_i64().map(RequestId::Number),
        _ => None,
    }
}
