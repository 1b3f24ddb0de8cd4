//! What a draft was made from, kept at its end.
//!
//! Without it a later proposal could not tell a column that is new from one a person took out,
//! and would put back what was refused. Each line is a comment that holds one table as TOML.

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

/// How the store declares a column, in short: its type, and `?` where it may be NULL.
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
        // A name that looks like a login would make the document look like it holds one.
        if sensitive::dsn_places(&line).is_empty() {
            text.extend([MARK, &line, "\n"]);
        }
    }
    text
}

/// Takes the block out of a document: the document without it, and what it says, if it is there.
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
