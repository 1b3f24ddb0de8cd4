//! Updates a draft that a person has edited.
//!
//! The person's text stays unchanged, comments and layout included. What the source has gained is
//! added; what it has lost is marked, never removed. What a person removed stays out. Merging the
//! same catalogue twice gives the same bytes.

mod apply;
mod mark;

use std::fmt;

use serde::Serialize;
use thiserror::Error;
use toml_edit::{DocumentMut, Item};

use super::draft::{Draft, Stream};
use super::naming::Given;
use super::seen::{self, SeenColumns};
use super::{LeftOut, Note, ProposeOptions, choose, comment, propose, render};
use crate::catalogue::Catalogue;
use crate::sensitive;

/// An updated draft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merge {
    /// The draft, as TOML.
    pub text: String,
    /// The changes of the source since the draft was made, in the catalogue's order.
    pub changes: Vec<Change>,
    /// The new parts of the source that were left out, and why.
    pub left_out: Vec<LeftOut>,
    /// Notes for the human about the draft as a whole.
    pub notes: Vec<Note>,
}

/// Why a draft cannot be updated.
#[derive(Debug, Error)]
pub enum MergeError {
    /// It is not TOML.
    #[error("the draft is not TOML: {reason}")]
    Syntax {
        /// The parser's message, without anything that looks like a credential.
        reason: String,
    },
}

/// One change of the source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "change")]
pub enum Change {
    /// A table is new.
    NewTable {
        /// The table.
        table: String,
        /// The stream it became; `None` if it is left out or commented out.
        stream: Option<String>,
    },
    /// A table of a stream is gone.
    GoneTable {
        /// The table.
        table: String,
        /// The stream that reads it.
        stream: String,
    },
    /// A column is new.
    NewColumn {
        /// Its table.
        table: String,
        /// The column.
        column: String,
        /// The field it became; `None` if it is left out.
        field: Option<String>,
    },
    /// A column of a field is gone.
    GoneColumn {
        /// Its table.
        table: String,
        /// The column.
        column: String,
        /// The field that reads it.
        field: String,
    },
    /// A column is declared differently.
    Redeclared {
        /// Its table.
        table: String,
        /// The column.
        column: String,
        /// Its earlier declaration: its type, and `?` if it is nullable.
        was: String,
        /// Its current declaration.
        is: String,
    },
    /// The draft does not record what it was made from, so new parts cannot be recognised.
    NothingSeen {
        /// Tables that no stream reads.
        tables: usize,
        /// Columns of mapped tables that no field reads.
        columns: usize,
    },
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = comment::name;
        match self {
            Self::NewTable {
                table,
                stream: Some(stream),
            } => {
                write!(
                    f,
                    "table {} is new: added as stream `{stream}`",
                    name(table)
                )
            }
            Self::NewTable {
                table,
                stream: None,
            } => {
                write!(f, "table {} is new, and left out", name(table))
            }
            Self::GoneTable { table, stream } => {
                write!(f, "table {} of stream `{stream}` is gone", name(table))
            }
            Self::NewColumn {
                table,
                column,
                field: Some(field),
            } => {
                let (column, table) = (name(column), name(table));
                write!(
                    f,
                    "column {column} of {table} is new: added as field `{field}`"
                )
            }
            Self::NewColumn {
                table,
                column,
                field: None,
            } => {
                write!(
                    f,
                    "column {} of {} is new, and left out",
                    name(column),
                    name(table)
                )
            }
            Self::GoneColumn {
                table,
                column,
                field,
            } => {
                let (column, table) = (name(column), name(table));
                write!(
                    f,
                    "column {column} of {table}, read by field `{field}`, is gone"
                )
            }
            Self::Redeclared {
                table,
                column,
                was,
                is,
            } => {
                let (column, table) = (name(column), name(table));
                write!(
                    f,
                    "column {column} of {table} was {} and is {}",
                    name(was),
                    name(is)
                )
            }
            Self::NothingSeen { tables, columns } => write!(
                f,
                "the draft does not say what it was made from, so nothing was added; \
                 {tables} tables and {columns} columns are not in it"
            ),
        }
    }
}

/// Updates an edited draft from a catalogue. Proposes anew if the draft is empty.
pub fn repropose(
    existing: &str,
    catalogue: &Catalogue,
    options: &ProposeOptions,
) -> Result<Merge, MergeError> {
    if existing.trim().is_empty() {
        let proposal = propose(catalogue, options);
        let (text, left_out, notes) = (proposal.text, proposal.left_out, proposal.notes);
        return Ok(Merge {
            text,
            changes: Vec::new(),
            left_out,
            notes,
        });
    }
    let (body, seen) = seen::split(existing);
    let mut document: DocumentMut = body.parse().map_err(|error: toml_edit::TomlError| {
        let reason = sensitive::redact(error.message()).into_owned();
        MergeError::Syntax { reason }
    })?;
    let given = given(&document);
    let draft = choose::draft(catalogue, &given);
    let news = News {
        catalogue,
        seen: seen.as_ref(),
        given: &given,
        draft: &draft,
    };
    let mut changes = apply::to_streams(&mut document, &news);
    let mut text = document.to_string().trim_end().to_owned() + "\n";
    for table in news.tables() {
        let stream = draft.streams.iter().find(|it| it.table == *table);
        if let Some(stream) = stream {
            text.push_str(&news.block(stream));
        }
        let served = stream.filter(|it| it.is_served());
        let stream = served.map(|it| it.name.clone());
        changes.push(Change::NewTable {
            table: table.clone(),
            stream,
        });
    }
    changes.extend(news.nothing_seen());
    text.push_str(&seen::block(catalogue));
    let left_out = draft
        .left_out
        .iter()
        .filter(|it| news.is_new(it))
        .cloned()
        .collect();
    let notes = super::size_note(&text).into_iter().collect();
    Ok(Merge {
        text,
        changes,
        left_out,
        notes,
    })
}

/// The names given by a person or an earlier proposal. If two streams read one table, new columns
/// go to the first.
fn given(document: &DocumentMut) -> Given {
    let mut given = Given::default();
    for (stream, item) in entries(document.get("streams")) {
        let table = text(item, "table", stream);
        for (field, of) in entries(item.get("fields")) {
            let place = (table.to_owned(), text(of, "column", field).to_owned());
            given
                .fields
                .entry(place)
                .or_insert_with(|| field.to_owned());
        }
        let relations = entries(item.get("relations"))
            .into_iter()
            .map(|(name, _)| name.to_owned());
        given
            .relations
            .entry(table.to_owned())
            .or_default()
            .extend(relations);
        given.taken_streams.insert(stream.to_owned());
        given
            .streams
            .entry(table.to_owned())
            .or_insert_with(|| stream.to_owned());
    }
    given
}

/// The named entries of a table, in any TOML notation.
fn entries(item: Option<&Item>) -> Vec<(&str, &Item)> {
    let table = item.and_then(Item::as_table_like);
    table.map(|it| it.iter().collect()).unwrap_or_default()
}

/// The text under a key, or the default.
fn text<'a>(item: &'a Item, key: &str, otherwise: &'a str) -> &'a str {
    item.get(key).and_then(Item::as_str).unwrap_or(otherwise)
}

/// The inputs of a merge.
pub(super) struct News<'a> {
    pub(super) catalogue: &'a Catalogue,
    seen: Option<&'a SeenColumns>,
    pub(super) given: &'a Given,
    pub(super) draft: &'a Draft,
}

impl<'a> News<'a> {
    /// The tables that are new since the draft was made, in the catalogue's order.
    fn tables(&self) -> Vec<&'a String> {
        let new = |table: &&String| {
            self.seen.is_some_and(|seen| !seen.tables.contains_key(*table))
                && !self.given.streams.contains_key(*table)
                // Such a name is not recorded, so it would be new every time.
                && choose::is_writable(table)
        };
        self.catalogue
            .tables
            .iter()
            .map(|it| &it.name)
            .filter(new)
            .collect()
    }

    /// The new columns of a mapped table, in the table's order.
    pub(super) fn columns(&self, table: &str) -> Vec<&'a String> {
        let known = self.seen.and_then(|seen| seen.tables.get(table));
        let (Some(known), Some(of)) = (known, self.catalogue.table(table)) else {
            return Vec::new();
        };
        let mapped = |column: &String| {
            self.given
                .fields
                .contains_key(&(table.to_owned(), column.clone()))
        };
        let names = of.columns.iter().map(|it| &it.name);
        names
            .filter(|it| !known.contains_key(*it) && !mapped(it))
            .collect()
    }

    /// How a column was declared when the draft was made.
    pub(super) fn declared(&self, table: &str, column: &str) -> Option<&'a String> {
        self.seen?.tables.get(table)?.get(column)
    }

    /// Whether a relation's other end will be in the document.
    pub(super) fn holds(&self, to: &str, fields: &[(String, String)]) -> bool {
        let Some(target) = self.draft.streams.iter().find(|it| it.name == to) else {
            return false;
        };
        let new = || self.tables().contains(&&target.table);
        let mapped = |field: &String| {
            self.given
                .fields
                .iter()
                .any(|((table, _), name)| *table == target.table && name == field)
        };
        if self.given.streams.contains_key(&target.table) {
            fields.iter().all(|(_, field)| mapped(field))
        } else {
            new()
        }
    }

    /// A new stream's text, without relations to streams that a person removed.
    fn block(&self, stream: &Stream) -> String {
        let kept = |it: &super::draft::Relation| self.holds(&it.to, &it.on);
        let relations = stream
            .relations
            .iter()
            .filter(|it| kept(it))
            .cloned()
            .collect();
        let text = render::block(&Stream {
            relations,
            ..stream.clone()
        });
        text.replacen('\n', &format!("\n{}\n", mark::NEW), 1)
    }

    /// Whether something left out is new since the draft was made.
    fn is_new(&self, left_out: &LeftOut) -> bool {
        match &left_out.column {
            Some(column) if self.given.streams.contains_key(&left_out.table) => {
                self.columns(&left_out.table).contains(&column)
            }
            _ => self.tables().contains(&&left_out.table),
        }
    }

    fn nothing_seen(&self) -> Option<Change> {
        let mapped = |table: &String| self.given.streams.contains_key(table);
        let missing = |table: &str, column: &str| {
            let place = (table.to_owned(), column.to_owned());
            mapped(&place.0) && !self.given.fields.contains_key(&place)
        };
        let tables = self
            .catalogue
            .tables
            .iter()
            .filter(|it| !mapped(&it.name))
            .count();
        let all = self.catalogue.tables.iter();
        let columns = all
            .flat_map(|table| table.columns.iter().map(move |it| (&table.name, &it.name)))
            .filter(|(table, column)| missing(table, column))
            .count();
        let unknown = self.seen.is_none() && tables + columns > 0;
        unknown.then_some(Change::NothingSeen { tables, columns })
    }
}
