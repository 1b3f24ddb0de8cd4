//! Changes of a stream.

use super::dataset::{described, reordered};
use super::lists::pair;
use super::{ChangeKind, Changes, Risk, field, names, quoted_in_full, relation};
use crate::mapping::{NamedMeasure, SearchAnalyzer, Spanned, Stream};

/// Describes a new stream with its fields and relations.
pub(super) fn added(changes: &mut Changes, new: &Stream) {
    let path = format!("streams.{}", new.name);
    let words = format!(
        "adds stream `{}` ({}) from table `{}`, identified by {}",
        new.name,
        new.type_name,
        new.table,
        names(&new.key)
    );
    changes.push(ChangeKind::StreamAdded, &path, words, Vec::new());
    described(
        changes,
        &path,
        &format!("stream `{}`", new.name),
        None,
        new.description.as_ref(),
    );
    for field in &new.fields {
        field::added(changes, new, field);
    }
    for relation in &new.relations {
        relation::added(changes, new, relation);
    }
    for measure in &new.measures {
        measure_added(changes, new, measure);
    }
}

/// Describes the changes of a stream.
pub(super) fn changed(changes: &mut Changes, old: &Stream, new: &Stream) {
    let Stream {
        name,
        type_name: _,
        table: _,
        key: _,
        title,
        event_time,
        updated,
        deleted,
        search,
        analyzer: _,
        unique,
        description,
        fields: _,
        relations: _,
        measures: _,
    } = new;
    let path = format!("streams.{name}");
    identity_changed(changes, &path, old, new);
    for (part, old, new) in [
        ("title", &old.title, title),
        ("event_time", &old.event_time, event_time),
        ("updated", &old.updated, updated),
        ("deleted", &old.deleted, deleted),
    ] {
        part_changed(changes, &path, name, part, old.as_ref(), new.as_ref());
    }
    if *search != old.search {
        let words = format!(
            "searches {} of `{name}` instead of {}",
            names(search),
            names(&old.search)
        );
        changes.push(
            ChangeKind::SearchChanged,
            &format!("{path}.search"),
            words,
            Vec::new(),
        );
    }
    analyzer_changed(changes, &path, old, new);
    unique_changed(changes, &path, name, &old.unique, unique);
    described(
        changes,
        &path,
        &format!("stream `{name}`"),
        old.description.as_ref(),
        description.as_ref(),
    );
    entries_changed(changes, &path, old, new);
    measures_changed(changes, &path, old, new);
}

/// Describes a change of the search analyzer. Spelling the default out changes nothing.
fn analyzer_changed(changes: &mut Changes, path: &str, old: &Stream, new: &Stream) {
    let (before, after) = (old.search_analyzer(), new.search_analyzer());
    if before == after || new.search.is_empty() {
        return;
    }
    let words = format!(
        "searches words of `{}` {} instead of {}",
        new.name,
        compared(after),
        compared(before)
    );
    let path = format!("{path}.analyzer");
    changes.push(ChangeKind::AnalyzerChanged, &path, words, Vec::new());
}

fn compared(analyzer: SearchAnalyzer) -> &'static str {
    match analyzer {
        SearchAnalyzer::English => "by their English stem",
        SearchAnalyzer::German => "by their German stem",
        SearchAnalyzer::French => "by their French stem",
        SearchAnalyzer::Spanish => "by their Spanish stem",
        SearchAnalyzer::None => "as written",
    }
}

/// Describes changes of the type, the table and the key.
fn identity_changed(changes: &mut Changes, path: &str, old: &Stream, new: &Stream) {
    let Stream {
        name,
        type_name,
        table,
        key,
        ..
    } = new;
    if *type_name != old.type_name {
        let words = format!(
            "calls records of `{name}` {type_name} instead of {}",
            old.type_name
        );
        changes.push(
            ChangeKind::TypeChanged,
            &format!("{path}.type"),
            words,
            vec![Risk::Identity],
        );
    }
    if *table != old.table {
        let words = format!(
            "reads `{name}` from table `{table}` instead of `{}`",
            old.table
        );
        changes.push(
            ChangeKind::TableChanged,
            &format!("{path}.table"),
            words,
            vec![Risk::Source],
        );
    }
    if *key != old.key {
        let words = format!(
            "identifies records of `{name}` by {} instead of {}",
            names(key),
            names(&old.key)
        );
        changes.push(
            ChangeKind::KeyChanged,
            &format!("{path}.key"),
            words,
            vec![Risk::Identity],
        );
    }
}

fn part_changed(
    changes: &mut Changes,
    path: &str,
    stream: &str,
    part: &str,
    old: Option<&Spanned<String>>,
    new: Option<&Spanned<String>>,
) {
    if old == new {
        return;
    }
    let words = match (old, new) {
        (None, Some(new)) => format!("makes `{new}` the `{part}` of `{stream}`"),
        (Some(old), Some(new)) => {
            format!("makes `{new}` the `{part}` of `{stream}` instead of `{old}`")
        }
        (Some(old), None) => format!("`{old}` is no longer the `{part}` of `{stream}`"),
        (None, None) => return,
    };
    let risks = if part == "deleted" && old.is_some() {
        vec![Risk::DeletedShown]
    } else {
        vec![]
    };
    changes.push(
        ChangeKind::PartChanged,
        &format!("{path}.{part}"),
        words,
        risks,
    );
}

fn unique_changed(
    changes: &mut Changes,
    path: &str,
    stream: &str,
    old: &[Spanned<Vec<Spanned<String>>>],
    new: &[Spanned<Vec<Spanned<String>>>],
) {
    let path = format!("{path}.unique");
    let mut said = false;
    for set in new.iter().filter(|set| !old.contains(set)) {
        let words = format!("says {} of `{stream}` are unique together", names(set));
        changes.push(ChangeKind::UniqueChanged, &path, words, Vec::new());
        said = true;
    }
    for set in old.iter().filter(|set| !new.contains(set)) {
        let words = format!(
            "no longer says {} of `{stream}` are unique together",
            names(set)
        );
        changes.push(
            ChangeKind::UniqueChanged,
            &path,
            words,
            vec![Risk::LostConstraint],
        );
        said = true;
    }
    let what = format!("the unique sets of `{stream}`");
    reordered(changes, old != new && !said, &path, &what);
}

fn entries_changed(changes: &mut Changes, path: &str, old: &Stream, new: &Stream) {
    let name = &new.name;
    let paired = pair(&old.fields, &new.fields, |field| &field.name.value);
    for gone in paired.removed {
        let words = format!("removes field `{}` from `{name}`", gone.name);
        let path = format!("{path}.fields.{}", gone.name);
        changes.push(ChangeKind::FieldRemoved, &path, words, Vec::new());
    }
    for field in paired.added {
        field::added(changes, new, field);
    }
    for (old, field) in paired.kept {
        field::changed(changes, new, old, field);
    }
    let what = format!("the fields of `{name}`");
    reordered(changes, paired.reordered, &format!("{path}.fields"), &what);

    let paired = pair(&old.relations, &new.relations, |relation| {
        &relation.name.value
    });
    for gone in paired.removed {
        let words = format!("removes relation `{}` from `{name}`", gone.name);
        let path = format!("{path}.relations.{}", gone.name);
        changes.push(ChangeKind::RelationRemoved, &path, words, Vec::new());
    }
    for relation in paired.added {
        relation::added(changes, new, relation);
    }
    for (old, relation) in paired.kept {
        relation::changed(changes, new, old, relation);
    }
    let what = format!("the relations of `{name}`");
    reordered(
        changes,
        paired.reordered,
        &format!("{path}.relations"),
        &what,
    );
}

fn measure_added(changes: &mut Changes, stream: &Stream, new: &NamedMeasure) {
    let words = format!(
        "adds measure `{}` to `{}`: {}",
        new.name,
        stream.name,
        quoted_in_full(new.expression.text())
    );
    let path = format!("streams.{}.measures.{}", stream.name, new.name);
    changes.push(ChangeKind::MeasureAdded, &path, words, Vec::new());
}

fn measures_changed(changes: &mut Changes, path: &str, old: &Stream, new: &Stream) {
    let name = &new.name;
    let paired = pair(&old.measures, &new.measures, |measure| &measure.name.value);
    for gone in paired.removed {
        let words = format!("removes measure `{}` from `{name}`", gone.name);
        let path = format!("{path}.measures.{}", gone.name);
        changes.push(ChangeKind::MeasureRemoved, &path, words, Vec::new());
    }
    for measure in paired.added {
        measure_added(changes, new, measure);
    }
    for (old, measure) in paired.kept {
        if old.expression != measure.expression {
            let words = format!(
                "measures `{}` of `{name}` as {} instead of {}",
                measure.name,
                quoted_in_full(measure.expression.text()),
                quoted_in_full(old.expression.text())
            );
            let path = format!("{path}.measures.{}", measure.name);
            changes.push(ChangeKind::MeasureChanged, &path, words, vec![Risk::Source]);
        }
    }
    let what = format!("the measures of `{name}`");
    reordered(
        changes,
        paired.reordered,
        &format!("{path}.measures"),
        &what,
    );
}
