//! The library as its clients see it: over HTTP and over a pipe, in both eras.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    unreachable_pub,
    missing_docs,
    reason = "tests fail by panicking, and nobody outside uses them"
)]

mod authorization;
mod batches;
mod callers;
mod confusion;
mod dynamic_primitives;
mod hang_up;
mod http_bounds;
mod http_refusals;
mod http_streams;
#[cfg(target_os = "linux")]
mod idle_sessions;
mod observer;
mod pipe_bounds;
mod pipe_calls;
mod sdk_confinement;
mod session_calls;
mod support;
mod two_paths;
