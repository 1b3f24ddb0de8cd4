//! The only place that names the SDK.
//!
//! Everything else takes the protocol's types from [`model`], and hands the SDK the requests that
//! need its loop through [`handler`] and [`session_streams`]. An upgrade of the SDK changes this
//! folder.

pub(crate) mod answer;
pub(crate) mod convert;
pub(crate) mod handler;
pub(crate) mod handover;
pub(crate) mod method_errors;
pub(crate) mod notice_sink;
mod opening_requests;
pub(crate) mod pipe_transport;
mod sdk_requests;
pub(crate) mod session_streams;
pub(crate) mod streamable_http;

/// The protocol's types.
pub(crate) mod model {
    pub(crate) use rmcp::{
        ErrorData, RoleServer,
        model::*,
        service::{Peer, RequestContext, ServiceError},
    };
}
