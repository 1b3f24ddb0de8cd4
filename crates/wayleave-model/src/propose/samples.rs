//! Guesses closed lists from sampled values of columns.
//!
//! A catalogue holds no rows. If the operator requests it, an adapter reads the distinct values of
//! [`columns_to_sample`] into [`Samples`], and a draft lists them as `one_of`.

use std::collections::{BTreeMap, BTreeSet};

use super::{choose, guess, naming, person};
use crate::catalogue::{Catalogue, Column, Table, TableKind};
use crate::mapping::{Datatype, SourceKind};
use crate::sensitive;

/// Maximum number of distinct values in a closed list. A reader stops after one more.
pub const MAX_SAMPLED_VALUES: usize = 12;
/// Minimum number of rows with a value for a credible closed list. A reader stops counting there.
pub const MIN_SAMPLED_ROWS: u64 = 100;
/// Maximum length of a value in a closed list, in characters. Longer values are prose.
const MAX_VALUE_CHARS: usize = 40;
/// Maximum number of words in such a value.
const MAX_VALUE_WORDS: usize = 4;

/// Last words of names of columns that hold prose, or values specific to one record.
const NOT_LISTED: &[&str] = &[
    "name",
    "names",
    "title",
    "label",
    "subject",
    "headline",
    "summary",
    "id",
    "uuid",
    "guid",
    "key",
    "hash",
    "slug",
    "email",
    "mail",
    "phone",
    "fax",
    "mobile",
    "address",
    "street",
    "city",
    "town",
    "zip",
    "postcode",
    "postal",
    "url",
    "uri",
    "link",
    "path",
    "file",
    "ip",
    "host",
    "note",
    "notes",
    "remark",
    "remarks",
    "comment",
    "comments",
    "description",
    "text",
    "body",
    "content",
    "message",
    "reason",
    "bio",
    "iban",
    "vat",
    "ssn",
    "at",
    "on",
    "date",
    "time",
    "timestamp",
    "version",
    "user",
    "by",
    "author",
    "owner",
];

/// The samples of several columns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Samples {
    columns: BTreeMap<(String, String), ColumnSample>,
}

/// The sample of one column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnSample {
    /// Its distinct values without NULL: all of them, or more than [`MAX_SAMPLED_VALUES`].
    pub values: Vec<String>,
    /// Number of rows with a value; counted up to [`MIN_SAMPLED_ROWS`] at least.
    pub rows: u64,
}

/// A column whose values may be a closed list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampledColumn {
    /// Its table, exactly as the store has it.
    pub table: String,
    /// The column, exactly as the store has it.
    pub column: String,
}

impl Samples {
    /// Adds the sample of a column, unless it has more values than can be listed.
    pub fn insert(&mut self, table: &str, column: &str, sample: ColumnSample) {
        if sample.values.len() <= MAX_SAMPLED_VALUES {
            let place = (table.to_owned(), column.to_owned());
            self.columns.insert(place, sample);
        }
    }

    /// The values of a column, sorted, if they look like a closed list; else nothing.
    pub(super) fn listed(&self, kind: SourceKind, table: &Table, column: &Column) -> Vec<String> {
        let place = (table.name.clone(), column.name.clone());
        let sample = self.columns.get(&place);
        let Some(sample) = sample.filter(|_| may_be_listed(kind, table, column)) else {
            return Vec::new();
        };
        let values: BTreeSet<&String> = sample.values.iter().collect();
        let whole = values.len() > 1
            && values.len() <= MAX_SAMPLED_VALUES
            && sample.rows >= MIN_SAMPLED_ROWS
            && values.iter().all(|it| is_word(it));
        let values = values.into_iter().filter(|_| whole);
        values.cloned().collect()
    }
}

/// The columns whose values are worth reading, in the catalogue's order: never one that a draft
/// leaves out, or whose name says that it holds names, texts or identifiers.
pub fn columns_to_sample(catalogue: &Catalogue) -> Vec<SampledColumn> {
    let of_table = |table: &'_ Table| -> Vec<SampledColumn> {
        let columns = table.columns.iter();
        columns
            .filter(|column| may_be_listed(catalogue.kind, table, column))
            .map(|column| SampledColumn {
                table: table.name.clone(),
                column: column.name.clone(),
            })
            .collect()
    };
    catalogue.tables.iter().flat_map(of_table).collect()
}

fn may_be_listed(kind: SourceKind, table: &Table, column: &Column) -> bool {
    let name = &column.name;
    let words = naming::words(name);
    let is_code = words
        .last()
        .is_some_and(|it| !NOT_LISTED.contains(&it.as_str()));
    let identifies = table.primary_key.contains(name)
        || table.unique.iter().any(|set| set.contains(name))
        || table
            .foreign_keys
            .iter()
            .any(|it| it.columns.contains(name));
    // Reading the distinct values of a view may run anything.
    table.kind != TableKind::View
        && choose::is_mappable_name(&table.name)
        && choose::is_mappable_name(name)
        && super::would_map(kind, name, &column.native_type)
        && column.datatype == Datatype::String
        && !column.many
        && column.one_of.is_empty()
        && guess::holds_text(&column.native_type)
        && is_code
        && !identifies
        && !person::is_name(table, name)
}

/// Whether a value looks like a code or a term, and a mapping can hold it.
fn is_word(value: &str) -> bool {
    let words = value.split_whitespace().count();
    (1..=MAX_VALUE_WORDS).contains(&words)
        && value.chars().count() <= MAX_VALUE_CHARS
        && !value.contains('@')
        && choose::is_listable(value)
        && sensitive::redact(value) == value
}
