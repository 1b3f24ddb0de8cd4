//! Generated comments on a person's entries.

use toml_edit::{Decor, Item, Table};

/// Comment on an entry that a later proposal added.
pub(super) const NEW: &str = "# new in the source: review it before ratifying";
/// Start of the comment on an entry whose table or column is missing.
pub(super) const GONE: &str = "# gone from the source: ";
/// Start of the comment on an entry whose column is declared differently.
pub(super) const CHANGED: &str = "# changed in the source: ";

/// Puts a comment line before an entry, replacing one with the same start.
pub(super) fn put(parent: &mut Table, name: &str, beginning: &str, rest: &str) {
    edit(parent, name, |prefix| {
        let kept = without(prefix, beginning);
        let indent_at = kept.rfind('\n').map_or(0, |at| at + 1);
        let (head, indent) = kept.split_at(indent_at);
        format!("{head}{beginning}{rest}\n{indent}")
    });
}

/// Removes a comment line.
pub(super) fn take(parent: &mut Table, name: &str, beginning: &str) {
    edit(parent, name, |prefix| without(prefix, beginning));
}

fn without(prefix: &str, beginning: &str) -> String {
    let kept = prefix
        .split('\n')
        .filter(|line| !line.trim_start().starts_with(beginning));
    kept.collect::<Vec<_>>().join("\n")
}

/// Rewrites the text before an entry's table header or key. An entry made of dotted keys, or inside
/// an inline table, has no such text and is skipped.
fn edit(parent: &mut Table, name: &str, rewrite: impl FnOnce(&str) -> String) {
    let Some((mut key, item)) = parent.get_key_value_mut(name) else {
        return;
    };
    let rewrite = |decor: &mut Decor| {
        let prefix = decor
            .prefix()
            .and_then(|it| it.as_str())
            .unwrap_or_default()
            .to_owned();
        let wanted = rewrite(&prefix);
        if wanted != prefix {
            decor.set_prefix(wanted);
        }
    };
    match item {
        Item::Table(table) if !table.is_dotted() && !table.is_implicit() => {
            rewrite(table.decor_mut());
        }
        Item::Value(_) => rewrite(key.leaf_decor_mut()),
        _ => {}
    }
}
