//! Changes of a relation.

use super::dataset::described;
use super::{ChangeKind, Changes, Risk, risks};
use crate::mapping::{Relation, Stream};

/// Describes a new relation.
pub(super) fn added(changes: &mut Changes, stream: &Stream, new: &Relation) {
    let path = format!("streams.{}.relations.{}", stream.name, new.name);
    let words = format!(
        "adds relation `{}` ({}) from `{}` to `{}`, joined on {}",
        new.name,
        new.type_name,
        stream.name,
        new.to,
        joins(new)
    );
    changes.push(
        ChangeKind::RelationAdded,
        &path,
        words,
        join_risks(stream, new),
    );
    let what = format!("relation `{}` of `{}`", new.name, stream.name);
    described(changes, &path, &what, None, new.description.as_ref());
}

/// Describes the changes of a relation.
pub(super) fn changed(changes: &mut Changes, stream: &Stream, old: &Relation, new: &Relation) {
    let Relation {
        name,
        to,
        on,
        type_name,
        description,
    } = new;
    let path = format!("streams.{}.relations.{name}", stream.name);
    let what = format!("relation `{name}` of `{}`", stream.name);
    if *to != old.to {
        let words = format!("leads {what} to `{to}` instead of `{}`", old.to);
        changes.push(
            ChangeKind::RelationChanged,
            &format!("{path}.to"),
            words,
            vec![Risk::Source],
        );
    }
    if *on != old.on {
        let words = format!("joins {what} on {} instead of {}", joins(new), joins(old));
        let mut risks = join_risks(stream, new);
        risks.insert(0, Risk::Source);
        changes.push(
            ChangeKind::RelationChanged,
            &format!("{path}.on"),
            words,
            risks,
        );
    }
    if *type_name != old.type_name {
        let words = format!("calls {what} {type_name} instead of {}", old.type_name);
        changes.push(
            ChangeKind::TypeChanged,
            &format!("{path}.type"),
            words,
            Vec::new(),
        );
    }
    described(
        changes,
        &path,
        &what,
        old.description.as_ref(),
        description.as_ref(),
    );
}

fn joins(relation: &Relation) -> String {
    let pairs: Vec<_> = relation
        .on
        .iter()
        .map(|join| format!("`{}` = `{}`", join.column, join.field))
        .collect();
    pairs.join(" and ")
}

fn join_risks(stream: &Stream, relation: &Relation) -> Vec<Risk> {
    let hidden = relation
        .on
        .iter()
        .any(|join| stream.field_of_column(&join.column).is_none());
    let secret = Risk::secret(relation.on.iter().map(|join| join.column.as_str()));
    risks([hidden.then_some(Risk::HiddenJoin), secret])
}
