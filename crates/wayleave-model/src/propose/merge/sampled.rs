//! Lists sampled values of fields that are already in the document.

use toml_edit::{Array, Item, Table, TableLike, Value};

use super::{mark, text};
use crate::propose::choose::SAMPLED;
use crate::propose::draft::Field;

/// Lists the sampled values of a field, unless a person has constrained its values. Returns whether
/// it did.
pub(super) fn list_values(fields: &mut Table, name: &str, drafted: &Field) -> bool {
    let Some(entry) = fields.get_mut(name) else {
        return false;
    };
    if drafted.note != Some(SAMPLED) || !is_open(entry, &drafted.one_of) {
        return false;
    }
    let mut values = Value::Array(drafted.one_of.iter().collect::<Array>());
    match entry {
        Item::Value(Value::InlineTable(entry)) => {
            // What stands before the closing brace stays there.
            if let Some((_, last)) = entry.iter_mut().last() {
                let suffix = last.decor().suffix().cloned().unwrap_or_default();
                last.decor_mut().set_suffix("");
                values.decor_mut().set_suffix(suffix);
            }
            values.decor_mut().set_prefix(" ");
            entry.insert("one_of", values);
        }
        Item::Table(entry) => {
            entry.insert("one_of", Item::Value(values));
        }
        _ => return false,
    }
    mark::put(fields, name, &format!("# {SAMPLED}"), "");
    true
}

/// Whether nothing in a field's entry constrains its values, or excludes these.
fn is_open(entry: &Item, values: &[String]) -> bool {
    let Some(keys) = entry.as_table_like() else {
        return false;
    };
    let says = |key: &str| TableLike::contains_key(keys, key);
    let longest = values.iter().map(|it| it.chars().count()).max();
    let most = keys
        .get("max_length")
        .and_then(Item::as_integer)
        .and_then(|it| usize::try_from(it).ok());
    text(entry, "datatype", "") == "string"
        && !["one_of", "pattern", "min_length", "many"]
            .into_iter()
            .any(says)
        && most.is_none_or(|most| longest.is_some_and(|it| it <= most))
}
