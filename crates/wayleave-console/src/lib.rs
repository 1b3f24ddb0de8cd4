//! The console: the web pages where a person reads and decides proposals of agents.
//!
//! Server-rendered HTML from the project's own data: no template reads a file, no script is needed,
//! and all data is escaped. This crate answers requests and opens no socket; it reads rows only
//! through its [`ConsoleBackend`], at a person's request.

mod assets;
mod backend;
mod comparisons;
mod console;
mod form;
mod links;
mod page;
mod pages;
mod respond;
mod risk_notes;
mod security;
mod sentences;
mod session;
mod signing;
#[cfg(test)]
mod tests;
mod visible_text;

pub use backend::{ConsoleBackend, ReadTrial, SampleRows};
pub use console::{Console, ConsoleOptions};
pub use links::{LinkError, LoginLinks, console_address};
pub use respond::MAX_FORM_BYTES;
pub use risk_notes::{RiskNote, risk_notes};
pub use signing::{ConsoleSigning, unlock};
