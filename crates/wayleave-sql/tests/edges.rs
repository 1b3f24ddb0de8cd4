//! Values at the edges of what stores hold, asked for in drawn requests and held to what the
//! reference interpreter answers over the same values.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::format_push_string,
    reason = "tests"
)]

#[path = "edges/altered.rs"]
mod altered;
#[path = "edges/drawn.rs"]
mod drawn;
#[path = "edges/encodings.rs"]
mod encodings;
#[path = "edges/granted.rs"]
mod granted;
#[path = "edges/mariadb.rs"]
mod mariadb;
#[path = "edges/no_text.rs"]
mod no_text;
#[path = "edges/nul.rs"]
mod nul;
#[path = "edges/places.rs"]
mod places;
#[path = "edges/postgres.rs"]
mod postgres;
#[path = "edges/singles.rs"]
mod singles;
#[path = "edges/sqlite.rs"]
mod sqlite;
mod stores;
#[path = "edges/values.rs"]
mod values;
