//! Edits a mapping to fit a changed source: a draft for a human to read and ratify.
//!
//! Resolves what [`drift`](crate::drift::drift) reports. Removes entries that the source no longer
//! has, with everything that depends on them, and updates changed declarations. Follows a column
//! that looks renamed, and the change says that it is a guess. Differences that cannot be resolved
//! stay, and `check` reports them. Everything else stays as written, byte for byte.

use toml_edit::{Array, DocumentMut, Item, Value};

use super::merge::{Change, Merge, MergeError};
use crate::catalogue::{Catalogue, Column, Table};
use crate::drift::{drift, renamed_column};
use crate::mapping::{Datatype, Field, Mapping, Stream};
use crate::parse;
use crate::problem::{Problem, ProblemCode, Severity};
use crate::sensitive;

/// Maximum number of rounds: more than the longest chain of dependent entries.
const MAX_ROUNDS: usize = 16;

/// Edits the mapping until it fits the catalogue or nothing more can be resolved.
pub fn fit(existing: &str, catalogue: &Catalogue) -> Result<Merge, MergeError> {
    let mut document: DocumentMut = existing.parse().map_err(|error: toml_edit::TomlError| {
        let reason = sensitive::redact(error.message()).into_owned();
        MergeError::Syntax { reason }
    })?;
    let mut changes = Vec::new();
    // Remove only entries that our own edits break; a person's mistakes are theirs to correct.
    let is_sound = parse::parse(existing.as_bytes()).is_ok();
    let rounds = if is_sound { MAX_ROUNDS } else { 0 };
    for _ in 0..rounds {
        let text = document.to_string();
        let mut made = Vec::new();
        match parse::parse(text.as_bytes()) {
            Err(problems) => {
                for problem in &problems {
                    made.extend(remove_entry(&mut document, &problem.path, &problem.message));
                }
            }
            Ok(mapping) => {
                let problems = drift(&mapping, catalogue);
                let errors = problems.iter();
                for problem in errors.filter(|it| it.code.severity() == Severity::Error) {
                    made.extend(resolve_difference(
                        &mut document,
                        &mapping,
                        catalogue,
                        problem,
                    ));
                }
            }
        }
        made.dedup();
        if made.is_empty() {
            break;
        }
        changes.append(&mut made);
    }
    Ok(Merge {
        text: document.to_string(),
        changes,
        left_out: Vec::new(),
        notes: Vec::new(),
    })
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "it ends functions that give up where the document is not as expected"
)]
fn fitted_change(entry: &str, what: impl Into<String>) -> Option<Change> {
    Some(Change::Fitted {
        entry: entry.to_owned(),
        what: what.into(),
    })
}

/// Resolves one difference between the source and the mapping.
fn resolve_difference(
    document: &mut DocumentMut,
    mapping: &Mapping,
    catalogue: &Catalogue,
    problem: &Problem,
) -> Option<Change> {
    let path = problem.path.as_str();
    let mut parts = path.split('.').skip(1);
    let stream = mapping.stream(parts.next()?)?;
    let table = catalogue.table(&stream.table);
    let field = match (parts.next(), parts.next()) {
        (Some("fields"), Some(name)) => stream.field(name),
        _ => None,
    };
    let column = |field: &Field| table.zip(field.column()).and_then(|(it, at)| it.column(at));
    match (problem.code, field) {
        (ProblemCode::MissingTable, _) => remove_entry(
            document,
            &format!("streams.{}", stream.name),
            "its table is gone",
        ),
        (ProblemCode::RenamedColumn, Some(field)) => {
            let now = renamed_column(mapping.dataset.kind.value, stream, field, table?)?;
            set(document, path, "column", now.name.as_str().into())?;
            fitted_change(
                path,
                "reads the column that looks like the one that is gone: check that it is",
            )
        }
        (ProblemCode::RetypedColumn, Some(field)) => retype(document, path, field, column(field)?),
        (ProblemCode::NullableColumn, Some(field)) if field.required.value => {
            remove(document, path, "required")?;
            fitted_change(path, "is not required any more: its column may be NULL")
        }
        (ProblemCode::ValuesRemoved, Some(field)) => {
            let entry = path.strip_suffix(".one_of").unwrap_or(path);
            list_values(document, field, entry, column(field)?)
        }
        (ProblemCode::KeyNotUnique, _) if path.ends_with(".unique") => {
            let entry = path.strip_suffix(".unique")?;
            remove(document, entry, "unique")?;
            fitted_change(path, "is taken out: nothing in the source keeps it unique")
        }
        (ProblemCode::KeyNotUnique, _) => choose_key(document, stream, table?),
        (ProblemCode::MissingColumn, _) => remove_entry(document, path, "its column is gone"),
        _ => None,
    }
}

fn retype(document: &mut DocumentMut, path: &str, field: &Field, now: &Column) -> Option<Change> {
    let mut changed = Vec::new();
    if now.datatype != field.datatype.value {
        let datatype = now.datatype.to_string();
        set(document, path, "datatype", datatype.as_str().into())?;
        changed.push(format!("is `{datatype}`, as its column"));
        // These constraints were written for the old datatype.
        for said in [
            "one_of",
            "pattern",
            "min_length",
            "max_length",
            "min_value",
            "max_value",
            "aggregate",
        ] {
            if remove(document, path, said).is_some() {
                changed.push(format!("loses `{said}`"));
            }
        }
    }
    if now.many != field.many.value {
        set(document, path, "many", now.many.into())?;
        changed.push(format!("has `many = {}`", now.many));
    }
    if changed.is_empty() {
        return remove_entry(document, path, "its column cannot be read as it is mapped");
    }
    fitted_change(path, changed.join("; "))
}

fn list_values(
    document: &mut DocumentMut,
    field: &Field,
    path: &str,
    now: &Column,
) -> Option<Change> {
    if field.datatype.value != Datatype::String {
        remove(document, path, "one_of")?;
        return fitted_change(path, "loses `one_of`: its column allows other values");
    }
    let values: Array = now.one_of.iter().collect();
    set(document, path, "one_of", Value::Array(values))?;
    fitted_change(path, "lists the values that its column allows now")
}

/// Sets another key of mapped fields that the source keeps unique.
fn choose_key(document: &mut DocumentMut, stream: &Stream, table: &Table) -> Option<Change> {
    let sets = std::iter::once(&table.primary_key).chain(&table.unique);
    let named = |columns: &Vec<String>| -> Option<Vec<String>> {
        // A primary key may be NULL, as in a new proposal; another unique set may not.
        let is_primary = *columns == table.primary_key;
        let fields = columns.iter().map(|it| {
            let field = stream.field_of_column(it)?;
            let is_present = is_primary || table.column(it).is_some_and(|it| !it.nullable);
            let can_be_key =
                field.datatype.can_be_key() && !field.many.value && field.mask.is_none();
            (is_present && can_be_key).then(|| field.name.value.clone())
        });
        fields.collect()
    };
    let mut keys = sets.filter(|it| !it.is_empty()).filter_map(named);
    let key = keys.next()?;
    let entry = format!("streams.{}", stream.name);
    let array: Array = key.iter().collect();
    set(document, &entry, "key", Value::Array(array))?;
    fitted_change(
        &format!("{entry}.key"),
        format!("is {} now: ids of records change", key.join(", ")),
    )
}

/// Removes the entry that a problem is about; from a list, the names that are not fields.
fn remove_entry(document: &mut DocumentMut, path: &str, why: &str) -> Option<Change> {
    let parts: Vec<&str> = path.split('.').collect();
    match parts.as_slice() {
        [
            "streams",
            stream,
            section @ ("fields" | "relations" | "measures"),
            name,
            ..,
        ] => {
            let entry = format!("streams.{stream}.{section}");
            remove(document, &entry, name)?;
            fitted_change(&format!("{entry}.{name}"), format!("is taken out: {why}"))
        }
        [
            "streams",
            stream,
            key @ ("title" | "event_time" | "updated" | "deleted" | "unique"),
            ..,
        ] => {
            remove(document, &format!("streams.{stream}"), key)?;
            fitted_change(
                &format!("streams.{stream}.{key}"),
                format!("is taken out: {why}"),
            )
        }
        ["streams", stream, "search", ..] => {
            let fields = item(document, &format!("streams.{stream}.fields"))?;
            let fields: Vec<String> = fields
                .as_table_like()?
                .iter()
                .map(|it| it.0.to_owned())
                .collect();
            let search = item(document, &format!("streams.{stream}.search"))?.as_array_mut()?;
            let before = search.len();
            search.retain(|it| {
                it.as_str()
                    .is_some_and(|it| fields.iter().any(|field| field == it))
            });
            (search.len() < before).then_some(())?;
            fitted_change(
                &format!("streams.{stream}.search"),
                "names only fields that are left",
            )
        }
        // A stream cannot exist without its key or its table.
        ["streams", stream, ..] => {
            remove(document, "streams", stream)?;
            fitted_change(&format!("streams.{stream}"), format!("is taken out: {why}"))
        }
        ["capabilities", name, ..] => {
            remove(document, "capabilities", name)?;
            fitted_change(
                &format!("capabilities.{name}"),
                format!("is taken out: {why}"),
            )
        }
        _ => None,
    }
}

/// The entry at a path of names.
fn item<'d>(document: &'d mut DocumentMut, path: &str) -> Option<&'d mut Item> {
    let mut at = document.as_item_mut();
    for name in path.split('.') {
        at = at.as_table_like_mut()?.get_mut(name)?;
    }
    Some(at)
}

fn remove(document: &mut DocumentMut, path: &str, name: &str) -> Option<Item> {
    let entry = item(document, path)?;
    if let Item::Value(Value::InlineTable(table)) = entry {
        let removed = table.remove(name).map(Item::Value);
        table.fmt();
        return removed;
    }
    entry.as_table_like_mut()?.remove(name)
}

/// Sets a value, and keeps the syntax of the entry.
fn set(document: &mut DocumentMut, path: &str, name: &str, value: Value) -> Option<()> {
    let entry = item(document, path)?;
    if let Item::Value(Value::InlineTable(table)) = entry {
        table.insert(name, value);
        table.fmt();
        return Some(());
    }
    let table = entry.as_table_like_mut()?;
    table.insert(name, Item::Value(value));
    Some(())
}

#[cfg(test)]
mod tests;
