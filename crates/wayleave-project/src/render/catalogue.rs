//! The contents of a source, according to its catalogue.

use std::fmt::Write as _;

use serde_json::json;
use wayleave_model::catalogue::{Catalogue, Column, Table, TableKind};

use crate::{Rendering, columns};

/// The tables of a source.
pub fn catalogue(source: &str, catalogue: &Catalogue) -> Rendering {
    Rendering::new(json!(catalogue), text(source, catalogue))
}

fn text(source: &str, catalogue: &Catalogue) -> String {
    let mut text = format!(
        "source {source} ({}{}): {}\n",
        catalogue.kind,
        catalogue
            .schema
            .as_ref()
            .map(|schema| format!(", schema {schema}"))
            .unwrap_or_default(),
        columns::count(catalogue.tables.len(), "table"),
    );
    for table in &catalogue.tables {
        text.push('\n');
        text.push_str(&one_table(table));
    }
    let _ = write!(text, "\nnext: wayleave propose {source}");
    text
}

fn one_table(table: &Table) -> String {
    let kind = match table.kind {
        TableKind::Table => "",
        TableKind::View => " (view)",
        TableKind::MaterializedView => " (materialized view)",
    };
    let rows = match table.row_estimate {
        Some(rows) => format!("about {rows} rows"),
        None => "rows unknown".to_owned(),
    };
    let mut text = format!("{}{kind}, {rows}\n", one_line(&table.name));
    let rows: Vec<_> = table.columns.iter().map(|it| column(table, it)).collect();
    let _ = writeln!(text, "{}", columns::indented(&rows));
    for unique in table.unique.iter().filter(|unique| unique.len() > 1) {
        let _ = writeln!(text, "  unique: {}", list(unique));
    }
    for key in &table.foreign_keys {
        let _ = writeln!(
            text,
            "  references: {} -> {} ({})",
            list(&key.columns),
            one_line(&key.to_table),
            list(&key.to_columns)
        );
    }
    text
}

fn column(table: &Table, column: &Column) -> Vec<String> {
    let mut marks = Vec::new();
    if table.primary_key.contains(&column.name) {
        marks.push("key".to_owned());
    }
    if table.unique.iter().any(|it| *it == [column.name.as_str()]) {
        marks.push("unique".to_owned());
    }
    if column.nullable {
        marks.push("may be null".to_owned());
    }
    if column.generated {
        marks.push("generated".to_owned());
    }
    if !column.one_of.is_empty() {
        marks.push(format!("one of {}", list(&column.one_of)));
    }
    let many = if column.many { "many " } else { "" };
    vec![
        one_line(&column.name),
        one_line(&column.native_type),
        format!("{many}{}", column.datatype),
        marks.join(", "),
    ]
}

fn list(names: &[String]) -> String {
    let names: Vec<_> = names.iter().map(|name| one_line(name)).collect();
    names.join(", ")
}

/// A name from the store on one line; the output sanitizes the rest.
fn one_line(name: &str) -> String {
    name.replace(['\n', '\r', '\t'], "\u{fffd}")
}
