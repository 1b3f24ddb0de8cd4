//! Operations of a program that embeds Wayleave: tools with typed input under the same rules as
//! capabilities. Listing, validation, scopes, grants, errors and observation are included.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json, json};
use wayleave_mcp::{
    Behaviour, Call, Caller, Decision, RpcError, SchemaError, Tool, Violation, Visibility,
};
use wayleave_model::constraint::{FieldError, FieldErrorCode, WHOLE_RECORD};
use wayleave_model::grant::Scope;
use wayleave_model::names::NameKind;
use wayleave_plan::package::Package;
use wayleave_project::input_schema;

use crate::access::{self, Access};
use crate::reply::Reply;
use crate::service::ReadService;
use crate::write::{POLICY, invalid};

/// The side effects of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SideEffects {
    /// Nothing: it only reads.
    None,
    /// It adds something.
    Adds,
    /// It changes or removes something.
    Changes,
}

/// Why an operation was not carried out.
#[derive(Debug, Clone, PartialEq)]
pub enum OperationError {
    /// The input is wrong: `-32602` with every field.
    Fields(Vec<FieldError>),
    /// A rule of the program forbids it: `-32002`.
    Policy(String),
    /// It failed: `-32603` with a trace id. The text goes to the log, not to the caller.
    Failed(String),
}

/// One call of an operation: the caller, and reads limited to the caller's grants.
#[derive(Clone)]
pub struct OperationCall {
    package: Arc<Package>,
    service: ReadService,
}

impl OperationCall {
    /// The caller: a token's id, or `local`.
    pub fn subject(&self) -> &str {
        &self.package.subject
    }

    /// Reads records under the caller's package.
    pub async fn query_records(&self, arguments: Map<String, Json>) -> Reply {
        self.service.query_records(&self.package, arguments).await
    }

    /// Reads one record under the caller's package.
    pub async fn fetch(&self, arguments: Map<String, Json>) -> Reply {
        self.service.fetch(&self.package, arguments).await
    }
}

type Handler = dyn Fn(OperationCall, Map<String, Json>) -> BoxFuture<'static, Result<Json, OperationError>>
    + Send
    + Sync;

/// An operation of an embedding program: its name, input, requirements and effects.
#[derive(Clone)]
pub struct Operation {
    name: String,
    description: String,
    schema: Json,
    scope: Scope,
    dataset: Option<String>,
    effects: SideEffects,
    is_idempotent: bool,
    handler: Arc<Handler>,
}

impl std::fmt::Debug for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Operation")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Why an operation cannot be registered.
#[derive(Debug, thiserror::Error)]
pub enum OperationNotRegistered {
    /// The name does not match the pattern of capabilities, or belongs to Wayleave.
    #[error("an operation cannot be called `{name}`: {reason}")]
    Name {
        /// The name.
        name: String,
        /// Why not.
        reason: &'static str,
    },
    /// Another tool has the name.
    #[error("there is a tool `{name}` already")]
    Taken {
        /// The name.
        name: String,
    },
    /// The input's schema cannot be listed.
    #[error(transparent)]
    Schema(#[from] SchemaError),
}

impl Operation {
    /// An operation with input `I` and JSON output. The input schema is derived from `I`, inlined
    /// without references.
    pub fn new<I, O, F, Fut>(name: impl Into<String>, handler: F) -> Self
    where
        I: DeserializeOwned + JsonSchema,
        O: Serialize,
        F: Fn(OperationCall, I) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, OperationError>> + Send + 'static,
    {
        let handler = move |call, input: Map<String, Json>| {
            let input = serde_json::from_value::<I>(Json::Object(input));
            let answer = input.map(|input| handler(call, input));
            async move {
                let answer = answer.map_err(|error| unread(&error))?.await?;
                serde_json::to_value(answer)
                    .map_err(|error| OperationError::Failed(error.to_string()))
            }
            .boxed()
        };
        Self {
            name: name.into(),
            description: String::new(),
            schema: schema_of::<I>(),
            scope: Scope::Runtime,
            dataset: None,
            effects: SideEffects::Changes,
            is_idempotent: false,
            handler: Arc::new(handler),
        }
    }

    /// Sets the description for models.
    #[must_use]
    pub fn describe(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }

    /// Requires a scope; the default is `runtime`.
    #[must_use]
    pub fn requires(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// Shows it only to callers with a grant of this dataset.
    #[must_use]
    pub fn within(mut self, dataset: impl Into<String>) -> Self {
        self.dataset = Some(dataset.into());
        self
    }

    /// Declares its side effects; the default is `Changes`.
    #[must_use]
    pub fn effects(mut self, effects: SideEffects) -> Self {
        self.effects = effects;
        self
    }

    /// Declares that a repeated call with the same input has no further effect.
    #[must_use]
    pub fn idempotent(mut self) -> Self {
        self.is_idempotent = true;
        self
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The operation as a tool.
    pub fn into_tool(self, service: &ReadService) -> Result<Tool, OperationNotRegistered> {
        let refused = |reason| OperationNotRegistered::Name {
            name: self.name.clone(),
            reason,
        };
        if !NameKind::Capability.matches(&self.name) {
            return Err(refused("a name is a-z, 0-9 and `_`"));
        }
        if let Some(reason) = NameKind::reserved_tool(&self.name) {
            return Err(refused(reason));
        }
        let (service, handler) = (service.clone(), Arc::clone(&self.handler));
        let visibility = self.visibility(&service);
        let logged = self.name.clone();
        let handle = move |call: Call| {
            let package = Arc::clone(&Access::from_caller(call.context.caller()).package);
            let service = service.clone();
            let answer = handler(OperationCall { package, service }, call.arguments);
            let logged = logged.clone();
            async move { answered(&logged, answer.await) }
        };
        let schema = self.schema.clone();
        let meta = json!({
            "kind": "runtime", "scope": self.scope, "idempotent": self.is_idempotent,
        });
        Ok(Tool::new(self.name.clone(), self.schema, handle)?
            .describe(self.description)
            .behaving(Behaviour {
                read_only: Some(self.effects == SideEffects::None),
                destructive: Some(self.effects == SideEffects::Changes),
                idempotent: Some(self.is_idempotent || self.effects == SideEffects::None),
                open_world: Some(false),
            })
            .with_meta(Map::from_iter([("io.wayleave/tool".to_owned(), meta)]))
            .visible(visibility)
            .failing_with_errors()
            .refusing(move |violations| Err(violated(&schema, violations))))
    }

    fn visibility(&self, service: &ReadService) -> Visibility {
        let scope = access::requires(self.scope, self.name.as_str());
        let (service, dataset) = (service.clone(), self.dataset.clone());
        Visibility::rule(move |caller: &Caller| {
            let access = Access::from_caller(caller);
            let is_granted = dataset.as_ref().is_none_or(|dataset| {
                let view = service.view(&access.package);
                view.connections()
                    .iter()
                    .any(|it| it.connector_key == *dataset)
            });
            if is_granted {
                scope.decide(caller)
            } else {
                Decision::Hide
            }
        })
    }
}

/// The JSON Schema of an input: draft 07, closed.
fn schema_of<I: JsonSchema>() -> Json {
    let mut schema = input_schema::derive::<I>(SchemaSettings::draft07());
    if let Some(schema) = schema.as_object_mut() {
        schema.insert("type".to_owned(), "object".into());
        schema.insert("additionalProperties".to_owned(), false.into());
    }
    schema
}

/// The error for input that the schema allows but the type does not.
fn unread(error: &serde_json::Error) -> OperationError {
    let message = error.to_string();
    let error = FieldError::new(WHOLE_RECORD, FieldErrorCode::Datatype, message);
    OperationError::Fields(vec![error])
}

fn answered(name: &str, answer: Result<Json, OperationError>) -> Result<Reply, RpcError> {
    match answer {
        Ok(data) => Ok(Reply::done(
            crate::escape::json(&data),
            json!({ "data": data }),
        )),
        Err(OperationError::Fields(fields)) => Err(invalid(&fields)),
        Err(OperationError::Policy(why)) => {
            let data = json!({ "reason": "policy" });
            Err(RpcError::new(POLICY, format!("policy: {why}")).with_data(data))
        }
        Err(OperationError::Failed(cause)) => Err(RpcError::internal(&format!("{name}: {cause}"))),
    }
}

/// All violations of a schema as field errors.
fn violated(schema: &Json, violations: &[Violation]) -> RpcError {
    let codes: BTreeMap<&str, FieldErrorCode> = [
        ("required", FieldErrorCode::Required),
        ("additionalProperties", FieldErrorCode::Unknown),
        ("minLength", FieldErrorCode::MinLength),
        ("maxLength", FieldErrorCode::MaxLength),
        ("pattern", FieldErrorCode::Pattern),
        ("enum", FieldErrorCode::OneOf),
        ("minimum", FieldErrorCode::MinValue),
        ("maximum", FieldErrorCode::MaxValue),
    ]
    .into();
    let errors = violations.iter().flat_map(|violation| {
        let code = codes.get(violation.keyword.as_str()).copied();
        let code = code.unwrap_or(FieldErrorCode::Datatype);
        named(violation).into_iter().map(move |field| {
            let constraint = schema.pointer(&format!("/properties/{field}/{}", violation.keyword));
            let message = format!("`{field}`: {}", violation.message);
            FieldError::new(&field, code, message)
                .constraint(constraint.cloned().unwrap_or_default())
        })
    });
    invalid(&errors.collect::<Vec<_>>())
}

/// The fields of a violation. Missing and unknown fields are named only in its message.
fn named(violation: &Violation) -> Vec<String> {
    let own = violation.path.split('/').nth(1).filter(|it| !it.is_empty());
    if let Some(own) = own {
        return vec![own.to_owned()];
    }
    let quote = match violation.keyword.as_str() {
        "additionalProperties" => '\'',
        _ => '"',
    };
    let quoted = violation.message.split(quote).skip(1).step_by(2);
    let quoted: Vec<String> = quoted.map(str::to_owned).collect();
    if quoted.is_empty() {
        vec![WHOLE_RECORD.to_owned()]
    } else {
        quoted
    }
}
