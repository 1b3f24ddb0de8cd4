//! `wayleave://prov/latest` and `wayleave://prov/<id>`: a caller's own activities as W3C PROV-O.

use std::sync::Arc;

use futures::future::BoxFuture;
use wayleave_activity::{Activity, ActivityId, ReadError, prov_document};
use wayleave_mcp::{
    Read, ReadReply, Resource, ResourceContents, ResourceTemplate, RpcError, TemplateError,
};
use wayleave_model::grant::Scope;

use crate::access;
use crate::escape;

/// The caller's latest activity.
pub const LATEST: &str = "wayleave://prov/latest";
const TEMPLATE: &str = "wayleave://prov/{id}";
const MIME: &str = "application/ld+json";

/// Why an activity was not looked up.
#[derive(Debug, thiserror::Error)]
pub enum LookupError {
    /// The log cannot be read.
    #[error("the activity log cannot be read: {cause}")]
    Log {
        /// The cause, which may name a file of the operator.
        #[source]
        cause: ReadError,
    },
    /// The read ended before its result.
    #[error("the read of the activity log was interrupted")]
    Interrupted,
}

impl From<LookupError> for RpcError {
    fn from(error: LookupError) -> Self {
        Self::internal(&error.to_string())
    }
}

/// The activity found, if there is one.
pub type Lookup = Result<Option<Activity>, LookupError>;

/// What the resources require of a deployment. Both find only activities of `subject`.
pub trait ActivityLookup: Send + Sync + 'static {
    /// The latest activity, lookups aside.
    fn latest<'a>(&'a self, subject: &'a str) -> BoxFuture<'a, Lookup>;

    /// One activity by its id.
    fn find<'a>(&'a self, subject: &'a str, id: ActivityId) -> BoxFuture<'a, Lookup>;
}

fn contents(uri: &str, activity: &Activity) -> ResourceContents {
    ResourceContents::text(uri, MIME, escape::json(&prov_document([activity])))
}

/// The caller's latest activity, which clients can subscribe to where anything `is_live`.
pub fn latest(lookup: Arc<dyn ActivityLookup>, is_live: bool) -> Resource {
    let resource = Resource::new(LATEST, "prov-latest", move |read: Read| {
        let lookup = Arc::clone(&lookup);
        async move {
            let subject = read.context.caller().subject();
            let found = lookup.latest(subject).await?;
            let found = found.ok_or_else(|| RpcError::resource_not_found(&read.uri))?;
            Ok::<_, RpcError>(contents(&read.uri, &found))
        }
    })
    .describe("The provenance of your latest call, as W3C PROV-O: what it used, and when.")
    .of_type(MIME)
    .visible(access::requires(Scope::Runtime, LATEST));
    if is_live {
        resource.subscribable()
    } else {
        resource
    }
}

/// Any activity of the caller.
pub fn template(lookup: Arc<dyn ActivityLookup>) -> Result<ResourceTemplate, TemplateError> {
    let template = ResourceTemplate::new(TEMPLATE, "prov", move |read: Read| {
        let lookup = Arc::clone(&lookup);
        async move {
            let id = read.variables.get("id").and_then(|id| id.parse().ok());
            let Some(id) = id else {
                return Ok::<_, RpcError>(ReadReply::Missing);
            };
            let found = lookup.find(read.context.caller().subject(), id).await?;
            Ok(match found {
                Some(found) => contents(&read.uri, &found).into(),
                None => ReadReply::Missing,
            })
        }
    })?;
    Ok(template
        .describe(
            "The provenance of one of your calls, by the id in the `_meta` of its result, as W3C \
             PROV-O.",
        )
        .of_type(MIME)
        .visible(access::requires(Scope::Runtime, TEMPLATE)))
}
