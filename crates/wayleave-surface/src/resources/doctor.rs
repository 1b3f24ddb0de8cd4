//! `wayleave://doctor`: whether the sources that a caller reads answer and fit their mappings, for
//! callers with the scope `builder`.
//!
//! Shows only the kind of a failure. Hosts, tables and driver messages are for the operator.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::json;
use wayleave_mcp::{Decision, Read, Resource, ResourceContents, RpcError, Visibility};
use wayleave_model::grant::Scope;

use crate::access::{self, Access};
use crate::escape;
use crate::service::ReadService;

const URI: &str = "wayleave://doctor";
const MAX_BODY_BYTES: usize = 64 * 1024;

/// The state of one connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionHealth {
    /// The dataset.
    pub dataset: String,
    /// The connection.
    pub connection_id: String,
    /// What is wrong with it, if anything: `undeclared`, `no_dsn`, `unreachable`, `drift` or
    /// `not_as_activated`.
    pub reason: Option<&'static str>,
}

/// What the resource requires of a deployment.
pub trait Doctor: Send + Sync + 'static {
    /// Examines these connections.
    fn examine<'a>(
        &'a self,
        connections: &'a BTreeSet<String>,
    ) -> BoxFuture<'a, Vec<ConnectionHealth>>;
}

/// The resource.
pub fn resource(service: &ReadService, doctor: Arc<dyn Doctor>) -> Resource {
    let service = service.clone();
    Resource::new(URI, "doctor", move |read: Read| {
        let (service, doctor) = (service.clone(), Arc::clone(&doctor));
        async move {
            let package = &Access::from_caller(read.context.caller()).package;
            let connections: BTreeSet<String> = {
                let call = service.context(package, MAX_BODY_BYTES);
                let connections = call.view.connections().iter();
                connections.map(|it| it.connection_id.clone()).collect()
            };
            let found = doctor.examine(&connections).await;
            // Whatever the deployment examined, a caller learns only of its own connections.
            let told = found
                .iter()
                .filter(|it| connections.contains(&it.connection_id));
            let is_well = told.clone().all(|it| it.reason.is_none());
            let told: Vec<_> = told
                .map(|it| {
                    json!({
                        "dataset": it.dataset, "connection_id": it.connection_id,
                        "ok": it.reason.is_none(), "reason": it.reason,
                    })
                })
                .collect();
            let body = json!({ "ok": is_well, "connections": told });
            let text = escape::json(&body);
            Ok::<_, RpcError>(ResourceContents::text(&read.uri, "application/json", text))
        }
    })
    .describe(
        "Whether the sources of the datasets you read answer, and still fit their mappings. A read \
         asks every source.",
    )
    .of_type("application/json")
    .visible(builders_who_read())
}

/// Visible to callers with the scope `builder` that may also read.
fn builders_who_read() -> Visibility {
    let builder = access::requires(Scope::Builder, URI);
    Visibility::rule(move |caller| {
        if Access::from_caller(caller).scopes.contains(Scope::Runtime) {
            builder.decide(caller)
        } else {
            Decision::Hide
        }
    })
}
