//! A draft before it is rendered.

use super::{Omission, OmissionReason};
use crate::mapping::Datatype;

/// The content of a draft.
#[derive(Debug, Clone)]
pub(super) struct Draft {
    /// One per table whose name a mapping can hold, in the catalogue's order.
    pub(super) streams: Vec<Stream>,
    pub(super) left_out: Vec<Omission>,
}

/// A table as a stream.
#[derive(Debug, Clone)]
pub(super) struct Stream {
    pub(super) name: String,
    pub(super) type_name: String,
    pub(super) table: String,
    /// Why it can only appear commented out, if so.
    pub(super) unserved: Option<OmissionReason>,
    pub(super) key: Vec<String>,
    /// A remark on the key for the human.
    pub(super) key_note: Option<String>,
    pub(super) title: Option<Guess>,
    pub(super) event_time: Option<Guess>,
    pub(super) updated: Option<Guess>,
    pub(super) deleted: Option<Guess>,
    pub(super) search: Vec<String>,
    pub(super) unique: Vec<Vec<String>>,
    pub(super) fields: Vec<Entry>,
    pub(super) relations: Vec<Relation>,
    /// Foreign keys that cannot be relations: their columns, and why.
    pub(super) unrelated: Vec<(Vec<String>, String)>,
    /// The store's comment on the table.
    pub(super) remark: Option<String>,
}

impl Stream {
    /// Whether the draft would serve it once ratified.
    pub(super) fn is_served(&self) -> bool {
        self.unserved.is_none()
    }

    /// The stored field of that name.
    pub(super) fn field_called(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find_map(|entry| match entry {
            Entry::Field(field) if field.name == name => Some(field),
            _ => None,
        })
    }

    /// The field that reads a column.
    pub(super) fn field_of(&self, column: &str) -> Option<&Field> {
        self.fields.iter().find_map(|entry| match entry {
            Entry::Field(field) if field.column == column => Some(field),
            _ => None,
        })
    }
}

/// A field chosen by its name, and a remark on it for the human.
#[derive(Debug, Clone)]
pub(super) struct Guess {
    pub(super) field: String,
    pub(super) note: &'static str,
}

/// A column, either served or left out.
#[derive(Debug, Clone)]
pub(super) enum Entry {
    Field(Field),
    Computed(ComputedField),
    LeftOut { column: String, why: OmissionReason },
}

/// A column as a field.
#[derive(Debug, Clone)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) column: String,
    pub(super) datatype: Datatype,
    pub(super) required: bool,
    pub(super) many: bool,
    pub(super) generated: bool,
    pub(super) one_of: Vec<String>,
    pub(super) max_length: Option<u32>,
    /// A remark for the human.
    pub(super) note: Option<&'static str>,
    /// The store's comment on the column.
    pub(super) remark: Option<String>,
}

/// A text computed from other fields.
#[derive(Debug, Clone)]
pub(super) struct ComputedField {
    pub(super) name: String,
    pub(super) expression: String,
    /// A remark that says what it is computed from.
    pub(super) note: &'static str,
}

/// A relation along a foreign key, or the reverse of one.
#[derive(Debug, Clone)]
pub(super) struct Relation {
    pub(super) name: String,
    pub(super) to: String,
    /// Columns of this table, each with a field of the other stream.
    pub(super) on: Vec<(String, String)>,
    /// The relation it reverses; `None` if it follows a foreign key of its own table.
    pub(super) reverse_of: Option<ForwardRelation>,
}

/// The relation along a foreign key of another table, which a reverse relation reverses.
#[derive(Debug, Clone)]
pub(super) struct ForwardRelation {
    /// Its stream.
    pub(super) stream: String,
    /// Its name.
    pub(super) relation: String,
    /// The table of that stream.
    pub(super) table: String,
    /// The foreign key's columns in that table.
    pub(super) columns: Vec<String>,
}
