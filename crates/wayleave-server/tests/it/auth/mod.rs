//! Who may come in: the doors over HTTP and stdio, in front of a real ledger and a real issuer.

mod fixture;
mod forge;
mod issuer;
mod wire;

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
