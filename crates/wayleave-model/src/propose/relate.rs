//! Turns foreign keys into relations.

use std::collections::BTreeMap;

use super::comment;
use super::draft::{ComputedField, Draft, Entry, Field, Relation, Stream};
use super::naming::{self, ExistingNames, UsedNames};
use super::reverse;
use crate::catalogue::{Catalogue, ForeignKey, Table};
use crate::names::NameKind;

/// Maximum number of `on` pairs.
const MAX_PAIRS: usize = 16;

/// Adds to each stream the relations of its table's foreign keys.
pub(super) fn relate(draft: &mut Draft, catalogue: &Catalogue, given: &ExistingNames) {
    let mut taken: BTreeMap<String, UsedNames> = BTreeMap::new();
    let mut found: BTreeMap<String, StreamRelations> = BTreeMap::new();
    for stream in &draft.streams {
        let Some(table) = catalogue.table(&stream.table) else {
            continue;
        };
        let mut names = names_in_use(stream, table, given);
        let mut of_stream = StreamRelations::default();
        for key in &table.foreign_keys {
            match joined(draft, &stream.table, key) {
                Ok((to, on)) => {
                    let known = given.relation(&stream.table, &to, &on).cloned();
                    let name = known.unwrap_or_else(|| name(key, &mut names));
                    of_stream.relations.push(Relation {
                        name,
                        to,
                        on,
                        reverse_of: None,
                    });
                }
                Err(why) => of_stream.unrelated.push((key.columns.clone(), why)),
            }
        }
        found.insert(stream.table.clone(), of_stream);
        taken.insert(stream.table.clone(), names);
    }
    for stream in &mut draft.streams {
        if let Some(found) = found.remove(&stream.table) {
            stream.relations = found.relations;
            stream.unrelated = found.unrelated;
        }
    }
    reverse::add(draft, &mut taken, given);
}

#[derive(Default)]
struct StreamRelations {
    relations: Vec<Relation>,
    unrelated: Vec<(Vec<String>, String)>,
}

/// The names no relation of a stream can take.
pub(super) fn names_in_use(stream: &Stream, table: &Table, given: &ExistingNames) -> UsedNames {
    let mut taken = UsedNames::default();
    for column in &table.columns {
        taken.take(&column.name);
    }
    for entry in &stream.fields {
        match entry {
            Entry::Field(Field { name, .. }) | Entry::Computed(ComputedField { name, .. }) => {
                taken.take(name);
            }
            Entry::LeftOut { .. } => {}
        }
    }
    for name in given.other_names.get(&stream.table).into_iter().flatten() {
        taken.take(name);
    }
    taken
}

type RelationTarget = (String, Vec<(String, String)>);

/// The target stream and the pairs of `on`, or why there can be no relation.
fn joined(draft: &Draft, table: &str, key: &ForeignKey) -> Result<RelationTarget, String> {
    let stream = |table: &str| draft.streams.iter().find(|it| it.table == table);
    let target = stream(&key.to_table)
        .filter(|it| it.is_served())
        .ok_or_else(|| format!("{} is left out", comment::name(&key.to_table)))?;
    if key.columns.len() > MAX_PAIRS {
        return Err(format!("it has more than {MAX_PAIRS} columns"));
    }
    let mut on: Vec<(String, String)> = Vec::new();
    for (ours, theirs) in key.columns.iter().zip(&key.to_columns) {
        let field = target.field_of(theirs).ok_or_else(|| {
            format!(
                "{} of {} is left out",
                comment::name(theirs),
                comment::name(&key.to_table)
            )
        })?;
        let own = stream(table).and_then(|it| it.field_of(ours));
        if !super::choose::is_mappable_name(ours) || own.is_some_and(|own| !can_meet(own, field)) {
            return Err(format!(
                "{} and {} have different datatypes",
                comment::name(ours),
                comment::name(theirs)
            ));
        }
        if on.iter().any(|(column, _)| column == ours) {
            return Err(format!("it names {} twice", comment::name(ours)));
        }
        on.push((ours.clone(), field.name.clone()));
    }
    Ok((target.name.clone(), on))
}

/// Whether values of the two can be equal.
pub(super) fn can_meet(a: &Field, b: &Field) -> bool {
    let comparable = |it: &Field| !it.many && it.datatype != crate::mapping::Datatype::Json;
    comparable(a) && comparable(b) && a.datatype.common_with(b.datatype).is_some()
}

/// A name for the relation: the column without its `_id`, or the column and the target.
fn name(key: &ForeignKey, taken: &mut UsedNames) -> String {
    let one = naming::singular_snake(&key.to_table);
    let candidates = match (key.columns.as_slice(), key.to_columns.as_slice()) {
        ([column], [to_column]) => {
            let column = naming::snake(column);
            let bare = ["id".to_owned(), naming::snake(to_column), "code".to_owned()]
                .iter()
                .find_map(|end| column.strip_suffix(&format!("_{end}")).map(str::to_owned));
            match bare {
                Some(bare) => vec![bare.clone(), format!("{bare}_{one}")],
                None => vec![format!("{column}_{one}"), one],
            }
        }
        _ => vec![
            one.clone(),
            format!("{one}_by_{}", naming::snake(&key.columns.join(" "))),
        ],
    };
    claim_first(&candidates, taken)
}

/// Takes the first candidate that is valid and free, else a name similar to the last.
pub(super) fn claim_first(candidates: &[String], taken: &mut UsedNames) -> String {
    let fit = |name: &&String| NameKind::Relation.accepts(name) && taken.is_free(name);
    let preferred = candidates.iter().find(fit).or(candidates.last());
    let preferred = preferred
        .filter(|it| NameKind::Relation.accepts(it))
        .map_or("related", String::as_str);
    taken.claim(NameKind::Relation, preferred)
}
