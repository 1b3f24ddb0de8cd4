//! Reverse relations along foreign keys: from a record to those that refer to it.

use std::collections::{BTreeMap, BTreeSet};

use super::draft::{Draft, ForwardRelation, Relation, Stream};
use super::naming::{self, ExistingNames, UsedNames};
use super::relate::{can_meet, claim_first};

/// Maximum length of a relation's name, in characters.
const MAX_NAME: usize = 64;

/// Adds the reverse of every relation to the stream it leads to.
pub(super) fn add(
    draft: &mut Draft,
    taken: &mut BTreeMap<String, UsedNames>,
    given: &ExistingNames,
) {
    let places: BTreeMap<&str, usize> = draft
        .streams
        .iter()
        .enumerate()
        .map(|(at, stream)| (stream.name.as_str(), at))
        .collect();
    let mut found: Vec<(usize, Relation)> = Vec::new();
    for from in draft.streams.iter().filter(|it| it.is_served()) {
        // A store may declare one foreign key twice.
        let mut joins = BTreeSet::new();
        for relation in &from.relations {
            let place = places.get(relation.to.as_str()).copied();
            let Some((at, target)) = place.and_then(|at| Some((at, draft.streams.get(at)?))) else {
                continue;
            };
            let Some(on) = joined(from, target, relation) else {
                continue;
            };
            if !joins.insert((at, on.clone())) {
                continue;
            }
            let known = given.relation(&target.table, &from.name, &on).cloned();
            let names = taken.entry(target.table.clone()).or_default();
            let name = known
                .unwrap_or_else(|| claim_first(&reverse_names(from, target, relation, &on), names));
            let forward = ForwardRelation {
                stream: from.name.clone(),
                relation: relation.name.clone(),
                table: from.table.clone(),
                columns: relation.on.iter().map(|(ours, _)| ours.clone()).collect(),
            };
            found.push((
                at,
                Relation {
                    name,
                    to: from.name.clone(),
                    on,
                    reverse_of: Some(forward),
                },
            ));
        }
    }
    for (at, relation) in found {
        if let Some(stream) = draft.streams.get_mut(at) {
            stream.relations.push(relation);
        }
    }
}

/// The target's columns, each with the field that refers to it; `None` if one of them is not
/// served.
fn joined(from: &Stream, target: &Stream, relation: &Relation) -> Option<Vec<(String, String)>> {
    let pair = |(ours, theirs): &(String, String)| {
        let near = target.field_called(theirs)?;
        let far = from.field_of(ours)?;
        can_meet(near, far).then(|| (near.column.clone(), far.name.clone()))
    };
    let on: Vec<(String, String)> = relation.on.iter().map(pair).collect::<Option<_>>()?;
    let columns: BTreeSet<&String> = on.iter().map(|(column, _)| column).collect();
    // `on` may name each of our columns only once.
    (columns.len() == on.len()).then_some(on)
}

/// Names for the reverse relation, best first: the referring stream in the plural, or in the
/// singular if no two of its records refer to the same record.
fn reverse_names(
    from: &Stream,
    target: &Stream,
    relation: &Relation,
    on: &[(String, String)],
) -> Vec<String> {
    let covered = |set: &Vec<String>| {
        !set.is_empty() && set.iter().all(|name| on.iter().any(|it| it.1 == *name))
    };
    let single = std::iter::once(&from.key).chain(&from.unique).any(covered);
    let short = if single {
        naming::singular_snake(&from.name)
    } else {
        naming::plural_snake(&from.name)
    };
    let long = format!("{short}_by_{}", relation.name);
    let same_target = from.relations.iter().filter(|it| it.to == target.name);
    let fit = |name: String| name.chars().take(MAX_NAME).collect();
    if from.name == target.name || same_target.count() > 1 {
        vec![fit(long)]
    } else {
        vec![fit(short), fit(long)]
    }
}
