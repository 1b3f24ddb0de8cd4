//! Pairs the named entries of two lists.

/// Two lists of named entries, paired by name.
pub(super) struct PairedEntries<'a, T> {
    /// Entries only in the new list.
    pub(super) added: Vec<&'a T>,
    /// Entries only in the old list.
    pub(super) removed: Vec<&'a T>,
    /// Entries in both, old and new.
    pub(super) kept: Vec<(&'a T, &'a T)>,
    /// Whether the entries in both are in a different order.
    pub(super) reordered: bool,
}

/// Pairs entries by name; names are unique within a list.
pub(super) fn pair<'a, T>(
    old: &'a [T],
    new: &'a [T],
    name: fn(&T) -> &str,
) -> PairedEntries<'a, T> {
    let place = |list: &'a [T], wanted: &str| list.iter().position(|entry| name(entry) == wanted);
    let mut kept = Vec::new();
    let mut added = Vec::new();
    let mut places = Vec::new();
    for entry in new {
        match place(old, name(entry)).and_then(|at| Some((at, old.get(at)?))) {
            Some((at, before)) => {
                kept.push((before, entry));
                places.push(at);
            }
            None => added.push(entry),
        }
    }
    PairedEntries {
        added,
        removed: old
            .iter()
            .filter(|entry| place(new, name(entry)).is_none())
            .collect(),
        kept,
        reordered: !places.is_sorted(),
    }
}
