//! Values at the edges of what stores hold, asked for in drawn requests and held to what the
//! reference interpreter answers over the same values.

mod altered;
mod drawn;
mod encodings;
mod granted;
mod mariadb;
mod no_text;
mod nul;
mod places;
mod postgres;
mod singles;
mod sqlite;
mod values;
