//! Metrics of calls: for Prometheus on a listener of their own, and over OTLP.
//!
//! Nothing is measured unless one of them is configured; disabled metrics cost a call one
//! comparison.

mod metrics;
mod otlp;
mod service;

pub use metrics::CallMetrics;
pub(crate) use otlp::{OtlpExporter, endpoint};
pub(crate) use service::StatusService;
