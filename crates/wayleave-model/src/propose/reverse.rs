//! The ways back along foreign keys: from a record to those that refer to it.

use std::collections::BTreeMap;

use super::draft::{Draft, ForwardRelation, Relation, Stream};
use super::naming::{self, Given, Taken};
use super::relate::{can_meet, claim_first};

/// The most characters of a relation's name.
const MAX_NAME: usize = 64;

/// Adds the reverse of every relation to the stream it leads to.
pub(super) fn add(draft: &mut Draft, taken: &mut BTreeMap<String, Taken>, given: &Given) {
    let mut found: Vec<(usize, Relation)> = Vec::new();
    for from in draft.streams.iter().filter(|it| it.is_served()) {
        for relation in &from.relations {
            let target = draft.streams.iter().enumerate();
            let Some((at, target)) = target.into_iter().find(|(_, it)| it.name == relation.to)
            else {
                continue;
            };
            let Some(on) = joined(from, target, relation) else {
                continue;
            };
            let same =
                |(other, it): &(usize, Relation)| *other == at && it.to == from.name && it.on == on;
            if found.iter().any(same) {
                continue;
            }
            let known = given.relation(&target.table, &from.name, &on).cloned();
            let names = taken.entry(target.table.clone()).or_default();
            let name =
                known.unwrap_or_else(|| claim_first(&wishes(from, target, relation, &on), names));
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

/// The target's columns and the fields that refer to them, where every one is served.
fn joined(from: &Stream, target: &Stream, relation: &Relation) -> Option<Vec<(String, String)>> {
    let pair = |(ours, theirs): &(String, String)| {
        let near = target.field_called(theirs)?;
        let far = from.field_of(ours)?;
        can_meet(near, far).then(|| (near.column.clone(), far.name.clone()))
    };
    relation.on.iter().map(pair).collect()
}

/// Names for the way back, best first: the referring stream for many, or for one where no two
/// of its records refer to the same record.
fn wishes(
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
        naming::one(&from.name)
    } else {
        naming::many(&from.name)
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
