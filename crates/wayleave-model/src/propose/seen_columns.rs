//! Records, at the end of a draft, which columns it was made from.
//!
//! Without this a later proposal could not distinguish a new column from one that a person removed,
//! and would add it again. Each line is a comment that holds one table as TOML.

use std::collections::BTreeMap;

use toml_edit::{DocumentMut, Item, TableLike};

use super::render::{key, string};
use crate::catalogue::{Catalogue, Column};
use crate::sensitive;

const TITLE: &str =
    "# What the source held, so that the next proposal can tell what is new. Leave it here.\n";
const MARK: &str = "#: seen ";

/// The columns of each table, and how the store declared each.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SeenColumns {
    pub(super) tables: BTreeMap<String, BTreeMap<String, String>>,
}

/// The short declaration of a column: its type, and `?` if it is nullable.
pub(super) fn declared(column: &Column) -> String {
    format!(
        "{}{}",
        column.native_type,
        if column.nullable { "?" } else { "" }
    )
}

/// The block, with the empty line before it.
pub(super) fn block(catalogue: &Catalogue) -> String {
    let mut text = format!("\n{TITLE}");
    for table in &catalogue.tables {
        let pair = |it: &Column| format!("{} = {}", key(&it.name), string(&declared(it)));
        let columns: Vec<String> = table.columns.iter().map(pair).collect();
        let line = format!("{} = {{ {} }}", key(&table.name), columns.join(", "));
        // A name that looks like a credential would make the document look like it holds one.
        if sensitive::dsn_ranges(&line).is_empty() {
            text.extend([MARK, &line, "\n"]);
        }
    }
    text
}

/// Splits the block off a document. Returns the rest, and the block's content if there is one.
pub(super) fn split(text: &str) -> (String, Option<SeenColumns>) {
    let mut rest = String::with_capacity(text.len());
    let mut lines = String::new();
    let mut found = false;
    for line in text.split_inclusive('\n') {
        if let Some(table) = line.strip_prefix(MARK) {
            lines.push_str(table);
            found = true;
        } else if line.trim_end() == TITLE.trim_end() {
            found = true;
        } else {
            rest.push_str(line);
        }
    }
    let read = lines.parse::<DocumentMut>().ok().filter(|_| found);
    (rest, read.map(|it| seen(&it)))
}

fn seen(document: &DocumentMut) -> SeenColumns {
    let columns = |item: &Item| -> BTreeMap<String, String> {
        let table = item
            .as_table_like()
            .map(TableLike::iter)
            .into_iter()
            .flatten();
        table
            .filter_map(|(column, declared)| {
                Some((column.to_owned(), declared.as_str()?.to_owned()))
            })
            .collect()
    };
    let tables = document
        .iter()
        .map(|(table, item)| (table.to_owned(), columns(item)));
    SeenColumns {
        tables: tables.collect(),
    }
}
