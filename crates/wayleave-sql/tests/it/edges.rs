//! Values at the limits of what stores can hold: generated requests, compared with the reference
//! interpreter's answers over the same values.

mod altered;
mod drawn;
mod encodings;
mod folding;
mod granted;
mod mariadb;
mod no_text;
mod nul;
mod places;
mod postgres;
mod repeated_keys;
mod singles;
mod sqlite;
mod values;
