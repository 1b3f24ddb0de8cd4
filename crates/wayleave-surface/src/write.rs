//! Capabilities as tools: the one path by which a caller changes a source.
//!
//! A call is planned under the caller's package, carried out by the writer of the capability's
//! source, and answered with the record as it became. Failures are JSON-RPC errors, because nothing
//! was done.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value as Json, json};
use wayleave_mcp::{Behaviour, Call, Caller, Decision, RpcError, SchemaError, Tool, Visibility};
use wayleave_model::constraint::FieldError;
use wayleave_model::grant::Scope;
use wayleave_model::mapping::{Action, Capability, Mapping};
use wayleave_plan::package::Package;
use wayleave_plan::request::address;
use wayleave_plan::write::{self, AuthorizedWrite, PolicyRefusal, WriteRefusal};
use wayleave_store::{CallerKey, StoreError, WriteContext, WriteError, WriteOutcome, Writer};

use crate::access::Access;
use crate::evidence;
use crate::failure::DRIFT;
use crate::reply::Reply;
use crate::service::ReadService;

/// Error code: the grant does not allow the write.
pub const POLICY: i32 = -32002;

/// Maximum time of a write.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of a refusal's message, in bytes; `data.fields` is complete.
const MAX_MESSAGE_BYTES: usize = 1_024;

/// The writers of a deployment, by the operator's name for their source; each is opened on first
/// use and has its own sessions.
pub trait Writers: Send + Sync {
    /// The writer of a source.
    fn writer(&self, source: &str) -> Result<Arc<dyn Writer>, StoreError>;
}

/// Carries out calls of capabilities. Cheap to clone.
#[derive(Clone)]
pub struct WriteService {
    service: ReadService,
    writers: Arc<dyn Writers>,
}

impl WriteService {
    /// A service that plans under the views of `service` and writes through `writers`.
    pub fn new(service: ReadService, writers: Arc<dyn Writers>) -> Self {
        Self { service, writers }
    }

    /// Calls the capability whose tool has this name.
    pub async fn call(
        &self,
        package: &Package,
        tool: &str,
        arguments: &Map<String, Json>,
    ) -> Result<Reply, RpcError> {
        let view = self.service.view(package);
        let Some(capability) = view.capability(tool) else {
            return Err(RpcError::invalid_params(format!("unknown tool `{tool}`")));
        };
        let planned = AuthorizedWrite::new(capability, view.subject(), arguments, unix_micros());
        let write = planned.map_err(refused)?;
        evidence::note_write(&view, &write);
        let source = write.target().source.clone();
        let context = WriteContext {
            caller: CallerKey::from_subject(view.subject()),
            ..WriteContext::with_timeout(WRITE_TIMEOUT)
        };
        // Cancels the write when the call is dropped.
        let _stop_when_dropped = context.cancel.clone().drop_guard();
        let written = match self.writers.writer(&source) {
            Ok(writer) => writer.write(&write, &context).await,
            Err(error) => Err(error.into()),
        };
        let outcome = written.map_err(|error| {
            if let WriteError::Store(error) = &error {
                let source = write.stream().source();
                self.service.stores().report(source, error);
            }
            failed(tool, error)
        })?;
        evidence::note_written(&write, &outcome);
        if !write.is_dry_run() && !outcome.replayed {
            let stream = write.stream();
            self.service
                .announce_write(stream.connection_id(), stream.name());
        }
        Ok(answer(&write, &outcome))
    }

    /// The tools of a mapping's capabilities.
    pub(crate) fn tools(&self, mapping: &Mapping) -> Result<Vec<Tool>, SchemaError> {
        let capabilities = mapping.capabilities.iter();
        capabilities.map(|it| self.tool(mapping, it)).collect()
    }

    fn tool(&self, mapping: &Mapping, capability: &Capability) -> Result<Tool, SchemaError> {
        let name: Arc<str> = capability.tool_name(&mapping.dataset).into();
        let (service, tool) = (self.clone(), Arc::clone(&name));
        let handler = move |call: Call| {
            let (service, tool) = (service.clone(), Arc::clone(&tool));
            let package = Arc::clone(&Access::from_caller(call.context.caller()).package);
            async move { service.call(&package, &tool, &call.arguments).await }
        };
        let schema = write::input_schema(mapping, capability);
        let hints = write::hints(mapping, capability);
        let meta = write::meta(mapping, capability);
        Ok(Tool::new(name.to_string(), schema, handler)?
            .describe(write::description(mapping, capability))
            .behaving(Behaviour {
                read_only: Some(false),
                destructive: Some(hints.destructive),
                idempotent: Some(hints.idempotent),
                open_world: Some(false),
            })
            .with_meta(Map::from_iter([("io.wayleave/tool".to_owned(), meta)]))
            .visible(self.visible(name))
            .failing_with_errors()
            // The planner refuses everything the schema does, with better messages.
            .checking_arguments())
    }

    /// The tool is visible only to callers with the capability.
    fn visible(&self, tool: Arc<str>) -> Visibility {
        let service = self.service.clone();
        Visibility::rule(move |caller: &Caller| {
            let access = Access::from_caller(caller);
            let may_call = access.scopes.contains(Scope::Runtime)
                && service.view(&access.package).capability(&tool).is_some();
            if may_call {
                Decision::Allow
            } else {
                Decision::Hide
            }
        })
    }
}

/// The reply to a write that was carried out, or to a dry run.
fn answer(write: &AuthorizedWrite, outcome: &WriteOutcome) -> Reply {
    let id = write.record_id(&outcome.key);
    let shown = |image: &Option<_>| image.as_ref().map(|it| write.visible_values(it));
    let (before, after) = (shown(&outcome.before), shown(&outcome.after));
    let url = address::record(write.stream().type_name(), &id);
    let action = write.action();
    let mut data = Map::from_iter([
        ("id".to_owned(), Json::from(id.as_str())),
        ("url".to_owned(), url.into()),
        ("action".to_owned(), action.as_str().into()),
    ]);
    if let (Action::Update, Some(before), Some(after)) = (action, &before, &after) {
        data.insert("changed".to_owned(), changed(before, after));
    }
    if let Some(record) = after.or(before) {
        data.insert("record".to_owned(), Json::Object(record));
    }
    let done = match action {
        Action::Create => "created",
        Action::Update => "updated",
        Action::Delete => "deleted",
    };
    let headline = if write.is_dry_run() {
        format!("dry run, nothing written: `{id}` would be {done}")
    } else if outcome.replayed {
        format!("`{id}` was {done} by an earlier call with this idempotency_key")
    } else {
        format!("{done} `{id}`")
    };
    let data = Json::Object(data);
    let text = format!("{headline}\n{}", crate::escape::json(&data));
    let meta = json!({ "dry_run": write.is_dry_run(), "replayed": outcome.replayed });
    Reply::done(text, json!({ "data": data, "meta": meta }))
}

/// The visible fields that changed.
fn changed(before: &Map<String, Json>, after: &Map<String, Json>) -> Json {
    let changes = after.iter().filter_map(|(name, to)| {
        let from = before.get(name)?;
        (from != to).then(|| (name.clone(), json!({ "from": from, "to": to })))
    });
    changes.collect::<Map<_, _>>().into()
}

fn refused(refusal: WriteRefusal) -> RpcError {
    match refusal {
        WriteRefusal::Fields(fields) => invalid(&fields),
        WriteRefusal::Policy(policy) => forbidden(policy),
    }
}

/// `-32602` with every error, and a message that names the fields.
pub(crate) fn invalid(fields: &[FieldError]) -> RpcError {
    let mut message = format!("validation failed on {} field(s): ", fields.len());
    for (place, error) in fields.iter().enumerate() {
        let before = if place == 0 { "" } else { "; " };
        if message.len() + error.message.len() > MAX_MESSAGE_BYTES {
            say!(message, "{before}…");
            break;
        }
        say!(message, "{before}{}", error.message);
    }
    RpcError::invalid_params(message).with_data(json!({ "fields": fields }))
}

fn forbidden(policy: PolicyRefusal) -> RpcError {
    RpcError::new(POLICY, policy.message()).with_data(json!({ "reason": policy.as_str() }))
}

fn failed(tool: &str, error: WriteError) -> RpcError {
    let (error, outcome) = match error {
        WriteError::Refused(refusal) => return refused(refusal),
        WriteError::Store(error) => (error, "not_written"),
        WriteError::Unknown(error) => (error, "unknown"),
    };
    tracing::warn!(tool, %error, hint = error.hint(), outcome, "a write failed");
    let mut told = RpcError::internal(&format!("{tool}: {error}"));
    let has_drifted = matches!(
        error,
        StoreError::Suspended { .. } | StoreError::SchemaDrift { .. }
    );
    let what = match (outcome, error.is_retryable()) {
        (_, false) if has_drifted => {
            "the stream is suspended: its source has changed since its mapping was ratified; \
             nothing was written"
        }
        ("unknown", _) => {
            "the source was lost while it committed: read the record to learn whether it was written"
        }
        (_, true) => "the source cannot take this now; nothing was written, so try again",
        (_, false) => "the source cannot take this; nothing was written",
    };
    told.message = what.into();
    if let Some(Json::Object(data)) = &mut told.data {
        data.insert("outcome".to_owned(), outcome.into());
        if has_drifted {
            data.insert("reason".to_owned(), DRIFT.into());
        }
        data.insert("retryable".to_owned(), error.is_retryable().into());
    }
    told
}

/// Microseconds since 1970.
fn unix_micros() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
    })
}
