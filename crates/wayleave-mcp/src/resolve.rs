//! Resolves names and URIs for one caller.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    Caller, Decision, Prompt, RpcError, Tool,
    primitive_set::{Primitive, PrimitiveSet},
    registry::Snapshot,
    resource::{ReadHandler, SubscribeRule},
};

/// The primitive of that name, if the caller may use it.
fn find<'s, T: Primitive>(
    set: &'s PrimitiveSet<T>,
    kind: &str,
    name: &str,
    caller: &Caller,
) -> Result<&'s Arc<T>, RpcError> {
    let unknown = || RpcError::unknown(kind, name, nearest_name(set, name, caller));
    let item = set.get(name).ok_or_else(unknown)?;
    match item.visibility().decide(caller) {
        Decision::Allow => Ok(item),
        // Missing and hidden get the same answer.
        Decision::Hide => Err(unknown()),
        Decision::Deny(error) => Err(error),
    }
}

/// The most similar name among those the caller may use.
fn nearest_name<'s, T: Primitive>(
    set: &'s PrimitiveSet<T>,
    name: &str,
    caller: &Caller,
) -> Option<&'s str> {
    /// Longer names are not typing errors, and comparing them is slow.
    const MAX_SUGGESTED_BYTES: usize = 128;
    if name.len() > MAX_SUGGESTED_BYTES {
        return None;
    }
    let wanted = name.to_lowercase();
    // A third of the name may differ, at least one character.
    let allowed = (wanted.chars().count() / 3).clamp(1, 4);
    set.iter()
        .map(|item| {
            (
                strsim::osa_distance(&wanted, &item.key().to_lowercase()),
                item,
            )
        })
        .filter(|(distance, _)| *distance <= allowed)
        .filter(|(_, item)| matches!(item.visibility().decide(caller), Decision::Allow))
        .min_by_key(|(distance, item)| (*distance, item.key()))
        .map(|(_, item)| item.key())
}

/// The error for a primitive that the caller may not use, unless its existence is a secret.
pub(crate) fn denial<T: Primitive>(
    set: &PrimitiveSet<T>,
    name: &str,
    caller: &Caller,
) -> Option<RpcError> {
    match set.get(name)?.visibility().decide(caller) {
        Decision::Deny(error) => Some(error),
        Decision::Allow | Decision::Hide => None,
    }
}

pub(crate) fn tool<'s>(
    snapshot: &'s Snapshot,
    name: &str,
    caller: &Caller,
) -> Result<&'s Arc<Tool>, RpcError> {
    find(&snapshot.tools, "tool", name, caller)
}

pub(crate) fn prompt<'s>(
    snapshot: &'s Snapshot,
    name: &str,
    caller: &Caller,
) -> Result<&'s Arc<Prompt>, RpcError> {
    find(&snapshot.prompts, "prompt", name, caller)
}

/// One handler that may read a URI.
pub(crate) struct ReadRoute {
    pub(crate) handler: ReadHandler,
    pub(crate) variables: BTreeMap<String, String>,
    subscribe: Option<SubscribeRule>,
}

impl ReadRoute {
    /// A route that ends in an error.
    fn refused(error: RpcError) -> Self {
        let subscribing = error.clone();
        Self {
            handler: Arc::new(move |_| {
                let error = error.clone();
                Box::pin(async move { Err(error) })
            }),
            variables: BTreeMap::new(),
            subscribe: Some(Arc::new(move |_, _| Err(subscribing.clone()))),
        }
    }
}

/// Every route by which `caller` may read `uri`: the fixed resource first, then templates in list
/// order, last the refusal of a template that matches the path but not the query.
pub(crate) fn read_routes(
    snapshot: &Snapshot,
    uri: &str,
    caller: &Caller,
) -> Result<Vec<ReadRoute>, RpcError> {
    let mut found = Vec::new();
    if let Some(resource) = snapshot.resources.get(uri) {
        match resource.visibility.decide(caller) {
            Decision::Allow => found.push(ReadRoute {
                handler: resource.handler.clone(),
                variables: BTreeMap::new(),
                subscribe: resource.subscribe.clone(),
            }),
            Decision::Hide => {}
            Decision::Deny(error) => return Err(error),
        }
    }
    let mut bad_query = None;
    for template in snapshot.templates.iter() {
        if let Some(matched) = template.template.matches(uri) {
            match (template.visibility.decide(caller), matched) {
                (Decision::Allow, Ok(variables)) => found.push(ReadRoute {
                    handler: template.handler.clone(),
                    variables,
                    subscribe: template.subscribe.clone(),
                }),
                (Decision::Allow, Err(error)) => bad_query = bad_query.or(Some(error)),
                (Decision::Hide, _) => {}
                (Decision::Deny(error), _) => return Err(error),
            }
        }
    }
    found.extend(bad_query.map(ReadRoute::refused));
    Ok(found)
}

/// Whether `caller` may subscribe to `uri`, and if not, why.
pub(crate) fn subscribable(
    snapshot: &Snapshot,
    uri: &str,
    caller: &Caller,
) -> Result<(), RpcError> {
    let routes = read_routes(snapshot, uri, caller)?;
    if routes.is_empty() {
        // A query narrows a resource, but a subscription is to a whole one.
        if let Some((whole, _)) = uri.split_once('?')
            && subscribable(snapshot, whole, caller).is_ok()
        {
            return Err(RpcError::query_not_subscribable(whole));
        }
        return Err(RpcError::resource_not_found(uri));
    }
    let mut refusal = None;
    for rule in routes.into_iter().filter_map(|route| route.subscribe) {
        match rule(uri, caller) {
            Ok(()) => return Ok(()),
            Err(error) => refusal = refusal.or(Some(error)),
        }
    }
    Err(refusal.unwrap_or_else(|| RpcError::invalid_params("this resource is not subscribable")))
}
