//! Authentication over HTTP and stdio, with a real ledger and a real issuer.

mod fixture;
mod forge;
mod issuer;
pub(crate) mod wire;

mod anonymous;
mod crowd;
mod deployed;
mod guide;
mod jwt;
mod limits;
mod matrix;
mod metadata;
mod revocation;
mod scopes;
mod sharing;
mod stdio;
mod tls;
