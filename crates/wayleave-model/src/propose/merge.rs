//! Updates a draft that a person has edited.
//!
//! The person's text stays unchanged, comments and layout included. Parts that the source has
//! gained are added; parts that it has lost are marked, never removed. Entries that a person
//! removed stay out. Merging the same catalogue twice gives the same bytes.

mod apply;
mod change;
mod mark;
mod sampled;

use thiserror::Error;
use toml_edit::{DocumentMut, Item};

pub use change::Change;

use super::draft::{Draft, ForwardRelation, Stream};
use super::naming::{ExistingNames, ExistingRelation};
use super::seen_columns::{self, SeenColumns};
use super::{Note, Omission, ProposeOptions, choose, comment, propose, render};
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
    pub left_out: Vec<Omission>,
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

/// Brings an edited draft up to date with a catalogue. An empty draft is proposed anew.
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
    let (body, seen) = seen_columns::split(existing);
    let mut document: DocumentMut = body.parse().map_err(|error: toml_edit::TomlError| {
        let reason = sensitive::redact(error.message()).into_owned();
        MergeError::Syntax { reason }
    })?;
    let given = given(&document);
    let draft = choose::draft(catalogue, &given, &options.samples);
    let context = MergeContext {
        catalogue,
        seen: seen.as_ref(),
        given: &given,
        draft: &draft,
    };
    let mut changes = apply::to_streams(&mut document, &context);
    let mut text = document.to_string().trim_end().to_owned() + "\n";
    for table in context.tables() {
        let stream = draft.streams.iter().find(|it| it.table == *table);
        if let Some(stream) = stream {
            text.push_str(&context.block(stream));
        }
        let served = stream.filter(|it| it.is_served());
        let stream = served.map(|it| it.name.clone());
        changes.push(Change::NewTable {
            table: table.clone(),
            stream,
        });
    }
    changes.extend(context.nothing_seen());
    text.push_str(&seen_columns::block(catalogue));
    let left_out = draft
        .left_out
        .iter()
        .filter(|it| context.is_new(it))
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
fn given(document: &DocumentMut) -> ExistingNames {
    let mut given = ExistingNames::default();
    for (stream, item) in entries(document.get("streams")) {
        let table = text(item, "table", stream);
        let relations = entries(item.get("relations"));
        let computed = entries(item.get("fields"))
            .into_iter()
            .filter(|(_, of)| is_computed(of));
        let other_names = relations
            .iter()
            .copied()
            .chain(computed)
            .chain(entries(item.get("measures")));
        given
            .other_names
            .entry(table.to_owned())
            .or_default()
            .extend(other_names.map(|(name, _)| name.to_owned()));
        if !given.streams.contains_key(table) {
            let relations = relations.iter().map(|(name, of)| given_relation(name, of));
            given
                .relations
                .insert(table.to_owned(), relations.collect());
        }
        for (field, of) in entries(item.get("fields")) {
            if is_computed(of) {
                continue;
            }
            let place = (table.to_owned(), text(of, "column", field).to_owned());
            given
                .fields
                .entry(place)
                .or_insert_with(|| field.to_owned());
        }
        given.taken_streams.insert(stream.to_owned());
        given
            .streams
            .entry(table.to_owned())
            .or_insert_with(|| stream.to_owned());
    }
    given
}

fn given_relation(name: &str, item: &Item) -> ExistingRelation {
    let pair = |(ours, theirs): (&str, &Item)| Some((ours.to_owned(), theirs.as_str()?.to_owned()));
    ExistingRelation {
        name: name.to_owned(),
        to: text(item, "to", "").to_owned(),
        on: entries(item.get("on"))
            .into_iter()
            .filter_map(pair)
            .collect(),
    }
}

/// Whether a field is computed, and so reads no column.
fn is_computed(field: &Item) -> bool {
    field.get("compute").is_some()
}

/// The named entries of a table, however it is written.
fn entries(item: Option<&Item>) -> Vec<(&str, &Item)> {
    let table = item.and_then(Item::as_table_like);
    table.map(|it| it.iter().collect()).unwrap_or_default()
}

/// The text under a key, or the default.
fn text<'a>(item: &'a Item, key: &str, otherwise: &'a str) -> &'a str {
    item.get(key).and_then(Item::as_str).unwrap_or(otherwise)
}

/// The inputs of a merge.
pub(super) struct MergeContext<'a> {
    pub(super) catalogue: &'a Catalogue,
    seen: Option<&'a SeenColumns>,
    pub(super) given: &'a ExistingNames,
    pub(super) draft: &'a Draft,
}

impl<'a> MergeContext<'a> {
    /// The tables that are new since the draft was made, in the catalogue's order.
    fn tables(&self) -> Vec<&'a String> {
        let new = |table: &&String| {
            self.seen.is_some_and(|seen| !seen.tables.contains_key(*table))
                && !self.given.streams.contains_key(*table)
                // No stream can read such a table, and it may not be recorded as seen.
                && choose::is_mappable_name(table)
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
        let holds = |field: &String| {
            self.given
                .fields
                .iter()
                .any(|((table, _), name)| *table == target.table && name == field)
                || target
                    .field_called(field)
                    .is_some_and(|it| self.columns(&target.table).contains(&&it.column))
        };
        if self.given.streams.contains_key(&target.table) {
            fields.iter().all(|(_, field)| holds(field))
        } else {
            self.tables().contains(&&target.table)
        }
    }

    /// Whether a field of a stream in the document reads or will read a column.
    pub(super) fn reads(&self, table: &str, column: &String) -> bool {
        let place = (table.to_owned(), column.clone());
        self.given.fields.contains_key(&place) || self.columns(table).contains(&column)
    }

    /// Whether the source has gained the foreign key of a relation since the draft was made.
    pub(super) fn is_gained(&self, forward: &ForwardRelation) -> bool {
        let new = self.columns(&forward.table);
        self.tables().contains(&&forward.table)
            || forward.columns.iter().any(|column| new.contains(&column))
    }

    /// A new stream's text, without relations to entries that a person removed.
    fn block(&self, stream: &Stream) -> String {
        let is_known = |forward: &ForwardRelation| {
            let known = self.given.relations.get(&forward.table);
            known
                .into_iter()
                .flatten()
                .any(|it| it.name == forward.relation)
        };
        let kept = |it: &super::draft::Relation| {
            let forward = it.reverse_of.as_ref();
            self.holds(&it.to, &it.on)
                && forward.is_none_or(|forward| self.is_gained(forward) || is_known(forward))
        };
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
    fn is_new(&self, left_out: &Omission) -> bool {
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
