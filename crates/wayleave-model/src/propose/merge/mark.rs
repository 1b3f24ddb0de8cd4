//! Our own comments on a person's entries.

use toml_edit::{Decor, Item, Table};

/// Says that an entry was added by a later proposal.
pub(super) const NEW: &str = "# new in the source: weigh it before it is ratified";
/// Begins the comment on an entry whose table or column is gone.
pub(super) const GONE: &str = "# gone from the source: ";
/// Begins the comment on an entry whose column is declared in another way.
pub(super) const CHANGED: &str = "# changed in the source: ";

/// Puts a comment line before an entry, in place of one of the same beginning.
pub(super) fn put(parent: &mut Table, name: &str, beginning: &str, rest: &str) {
    edit(parent, name, |prefix| {
        let kept = without(prefix, beginning);
        let indent_at = kept.rfind('\n').map_or(0, |at| at + 1);
        let (head, indent) = kept.split_at(indent_at);
        format!("{head}{beginning}{rest}\n{indent}")
    });
}

/// Takes a comment line away again.
pub(super) fn take(parent: &mut Table, name: &str, beginning: &str) {
    edit(parent, name, |prefix| without(prefix, beginning));
}

fn without(prefix: &str, beginning: &str) -> String {
    let kept = prefix
        .split('\n')
        .filter(|line| !line.trim_start().starts_with(beginning));
    kept.collect::<Vec<_>>().join("\n")
}

/// Rewrites what stands before an entry: a table's header, or a key. An entry made of dotted
/// keys, or inside an inline table, has no such place and is left alone.
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
