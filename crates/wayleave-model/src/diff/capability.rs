//! Changes of a capability.

use super::dataset::described;
use super::{ChangeKind, Changes, Risk, names, risks};
use crate::mapping::{Action, Capability, Spanned};

/// Describes a new capability.
pub(super) fn added(changes: &mut Changes, new: &Capability) {
    let path = format!("capabilities.{}", new.name);
    let lets = match new.action.value {
        Action::Create => format!(
            "create records of `{}` with {}",
            new.stream,
            names(&new.fields)
        ),
        Action::Update => format!("set {} of `{}`", names(&new.fields), new.stream),
        Action::Delete => format!("delete records of `{}`", new.stream),
    };
    let connection = new.connection.as_ref();
    let connection = connection.map_or_else(String::new, |it| format!(" of connection `{it}`"));
    let words = format!(
        "lets agents {lets}{connection}: adds capability `{}`, through source `{}`",
        new.name, new.source
    );
    let secret = Risk::secret(new.fields.iter().map(|field| field.as_str()));
    changes.push(
        ChangeKind::CapabilityAdded,
        &path,
        words,
        risks([Some(Risk::Write), secret]),
    );
    let what = format!("capability `{}`", new.name);
    described(changes, &path, &what, None, new.description.as_ref());
}

/// Describes the changes of a capability.
pub(super) fn changed(changes: &mut Changes, old: &Capability, new: &Capability) {
    let Capability {
        name,
        connection,
        stream,
        action,
        fields,
        source,
        idempotency,
        description,
    } = new;
    let path = format!("capabilities.{name}");
    let what = format!("capability `{name}`");
    let mut push = |key: &str, words: String, risks: Vec<Risk>| {
        changes.push(
            ChangeKind::CapabilityChanged,
            &format!("{path}.{key}"),
            words,
            risks,
        );
    };
    if *connection != old.connection {
        let shown = |it: &Option<Spanned<String>>| match it {
            Some(id) => format!("connection `{id}`"),
            None => "the only connection".to_owned(),
        };
        let words = format!(
            "lets {what} write {} instead of {}",
            shown(connection),
            shown(&old.connection)
        );
        push("connection", words, vec![Risk::Write]);
    }
    if *stream != old.stream {
        let words = format!("lets {what} write `{stream}` instead of `{}`", old.stream);
        push("stream", words, vec![Risk::Write]);
    }
    if *action != old.action {
        let words = format!(
            "changes the action of {what} from `{}` to `{action}`",
            old.action
        );
        push("action", words, vec![Risk::Write]);
    }
    if *fields != old.fields {
        let words = format!(
            "lets {what} set {} of `{stream}` instead of {}",
            names(fields),
            names(&old.fields)
        );
        let more = fields.iter().any(|field| !old.fields.contains(field));
        let secret = Risk::secret(fields.iter().map(|field| field.as_str()));
        push(
            "fields",
            words,
            risks([more.then_some(Risk::Write), secret]),
        );
    }
    if *source != old.source {
        let words = format!(
            "lets {what} write through source `{source}` instead of `{}`",
            old.source
        );
        push("source", words, vec![Risk::Source]);
    }
    if *idempotency != old.idempotency {
        let words = if idempotency.value {
            format!("lets callers of {what} give an idempotency key")
        } else {
            format!("no longer lets callers of {what} give an idempotency key")
        };
        let lost = (!idempotency.value).then_some(Risk::LostConstraint);
        push("idempotency", words, risks([lost, None]));
    }
    described(
        changes,
        &path,
        &what,
        old.description.as_ref(),
        description.as_ref(),
    );
}
