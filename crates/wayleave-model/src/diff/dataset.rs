//! Changes of the dataset and its connections.

use super::lists::pair;
use super::{ChangeKind, Changes, Risk, capability, quoted_in_full, stream};
use crate::mapping::{Connection, Dataset, Mapping, Spanned};

/// Describes a new mapping.
pub(super) fn added(changes: &mut Changes, new: &Mapping) {
    let Mapping {
        dataset,
        connections,
        streams,
        capabilities,
    } = new;
    let schema = dataset
        .schema
        .as_ref()
        .map_or(String::new(), |schema| format!(", schema `{schema}`"));
    let words = format!("adds dataset `{}` ({}{schema})", dataset.name, dataset.kind);
    changes.push(ChangeKind::DatasetAdded, "dataset", words, Vec::new());
    described(
        changes,
        "dataset",
        "the dataset",
        None,
        dataset.description.as_ref(),
    );
    for connection in connections {
        connection_added(changes, connection);
    }
    for new in streams {
        stream::added(changes, new);
    }
    for new in capabilities {
        capability::added(changes, new);
    }
}

/// Describes the changes of a mapping.
pub(super) fn changed(changes: &mut Changes, old: &Mapping, new: &Mapping) {
    let Mapping {
        dataset,
        connections,
        streams,
        capabilities,
    } = new;
    header(changes, &old.dataset, dataset);

    let paired = pair(&old.connections, connections, |connection| {
        &connection.id.value
    });
    for gone in paired.removed {
        let words = format!("removes connection `{}`", gone.id);
        changes.push(
            ChangeKind::ConnectionRemoved,
            "connections",
            words,
            Vec::new(),
        );
    }
    for new in paired.added {
        connection_added(changes, new);
    }
    for (old, new) in paired.kept {
        connection_changed(changes, old, new);
    }
    reordered(changes, paired.reordered, "connections", "the connections");

    let paired = pair(&old.streams, streams, |stream| &stream.name.value);
    for gone in paired.removed {
        let path = format!("streams.{}", gone.name);
        let words = format!("removes stream `{}`", gone.name);
        changes.push(ChangeKind::StreamRemoved, &path, words, Vec::new());
    }
    for new in paired.added {
        stream::added(changes, new);
    }
    for (old, new) in paired.kept {
        stream::changed(changes, old, new);
    }
    reordered(changes, paired.reordered, "streams", "the streams");

    let paired = pair(&old.capabilities, capabilities, |capability| {
        &capability.name.value
    });
    for gone in paired.removed {
        let path = format!("capabilities.{}", gone.name);
        let words = format!("removes capability `{}`", gone.name);
        changes.push(ChangeKind::CapabilityRemoved, &path, words, Vec::new());
    }
    for new in paired.added {
        capability::added(changes, new);
    }
    for (old, new) in paired.kept {
        capability::changed(changes, old, new);
    }
    reordered(
        changes,
        paired.reordered,
        "capabilities",
        "the capabilities",
    );
}

fn header(changes: &mut Changes, old: &Dataset, new: &Dataset) {
    let Dataset {
        name,
        title,
        description,
        kind,
        schema,
        iri,
    } = new;
    if *name != old.name {
        let words = format!("renames dataset `{}` to `{name}`", old.name);
        changes.push(
            ChangeKind::DatasetRenamed,
            "dataset.name",
            words,
            vec![Risk::Identity],
        );
    }
    if *title != old.title {
        let (words, risks) = match title {
            None => ("removes the dataset's title".to_owned(), Vec::new()),
            Some(title) => (
                format!("titles the dataset {}", quoted_in_full(title)),
                vec![Risk::Prompt],
            ),
        };
        changes.push(ChangeKind::TitleChanged, "dataset.title", words, risks);
    }
    described(
        changes,
        "dataset",
        "the dataset",
        old.description.as_ref(),
        description.as_ref(),
    );
    if *kind != old.kind {
        let words = format!("reads a `{kind}` store instead of a `{}` store", old.kind);
        changes.push(
            ChangeKind::KindChanged,
            "dataset.kind",
            words,
            vec![Risk::Source],
        );
    }
    if *schema != old.schema {
        let called = |schema: &Option<Spanned<String>>| match schema {
            Some(schema) => format!("schema `{schema}`"),
            None => "the source's own schema".to_owned(),
        };
        let words = format!(
            "reads {} instead of {}",
            called(schema),
            called(&old.schema)
        );
        changes.push(
            ChangeKind::SchemaChanged,
            "dataset.schema",
            words,
            vec![Risk::Source],
        );
    }
    // A default base follows the name, whose change is already described.
    let follows = |dataset: &Dataset| dataset.iri.value == Dataset::default_iri(&dataset.name);
    if *iri != old.iri && !(follows(old) && follows(new)) {
        let words = format!("puts predicates under `{iri}` instead of `{}`", old.iri);
        changes.push(ChangeKind::IriChanged, "dataset.iri", words, Vec::new());
    }
}

fn connection_added(changes: &mut Changes, new: &Connection) {
    let Connection { id, label, source } = new;
    let label = label.as_ref().map_or(String::new(), |label| {
        format!(", {}", quoted_in_full(label))
    });
    let words = format!("adds connection `{id}`{label}, read from source `{source}`");
    changes.push(
        ChangeKind::ConnectionAdded,
        "connections",
        words,
        Vec::new(),
    );
}

fn connection_changed(changes: &mut Changes, old: &Connection, new: &Connection) {
    let Connection { id, label, source } = new;
    if *label != old.label {
        let words = match label {
            Some(label) => format!("labels connection `{id}` {}", quoted_in_full(label)),
            None => format!("removes the label of connection `{id}`"),
        };
        changes.push(
            ChangeKind::ConnectionRelabelled,
            "connections",
            words,
            vec![Risk::Prompt],
        );
    }
    if *source != old.source {
        let words = format!(
            "reads connection `{id}` from source `{source}` instead of `{}`",
            old.source
        );
        changes.push(
            ChangeKind::ConnectionMoved,
            "connections",
            words,
            vec![Risk::Source],
        );
    }
}

/// Describes a changed description. Agents read descriptions, so the whole text is shown.
pub(super) fn described(
    changes: &mut Changes,
    path: &str,
    what: &str,
    old: Option<&Spanned<String>>,
    new: Option<&Spanned<String>>,
) {
    if old == new {
        return;
    }
    let (words, risks) = match (old, new) {
        (_, None) => (format!("removes the description of {what}"), Vec::new()),
        (None, Some(new)) => (
            format!("describes {what} as {}", quoted_in_full(new)),
            vec![Risk::Prompt],
        ),
        (Some(old), Some(new)) => {
            let words = format!(
                "describes {what} as {} instead of {}",
                quoted_in_full(new),
                quoted_in_full(old)
            );
            (words, vec![Risk::Prompt])
        }
    };
    changes.push(
        ChangeKind::DescriptionChanged,
        &format!("{path}.description"),
        words,
        risks,
    );
}

/// Describes entries that only changed their order.
pub(super) fn reordered(changes: &mut Changes, reordered: bool, path: &str, what: &str) {
    if reordered {
        changes.push(
            ChangeKind::Reordered,
            path,
            format!("reorders {what}"),
            Vec::new(),
        );
    }
}
