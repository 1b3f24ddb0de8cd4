//! A request, a package and a ratified mapping become an [`AuthorizedPlan`], or a typed
//! [`Refusal`](refusal::Refusal).
//!
//! Pure: no async, clock, file, environment or network. Only this crate can build an
//! `AuthorizedPlan`, and only from a `Ratified<Mapping>` and a [`Package`](package::Package);
//! stores take nothing else. No caller's text ever becomes an identifier: names are looked up in
//! the mapping, and a plan contains only the mapping's own tables and columns.

pub mod active_datasets;
pub mod aggregate;
pub mod calendar;
pub mod evaluate;
pub mod expand;
pub mod fetch;
pub mod filter;
pub mod id;
pub mod interpret;
mod layout;
pub mod mask;
pub mod neighbours;
pub mod package;
pub mod plan;
pub mod query;
pub mod read_tool;
pub mod refusal;
pub mod request;
mod scope;
pub mod seal;
pub mod search;
pub mod value;
pub mod view;
pub mod workup_ref;
pub mod write;

pub use layout::Record;
pub use plan::AuthorizedPlan;
pub use write::AuthorizedWrite;
