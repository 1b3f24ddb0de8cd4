//! A grant in words.

use std::fmt::Write as _;

use wayleave_ledger::{GrantEntry, Millis};
use wayleave_model::{
    grant::{StreamTerms, Terms},
    mapping::Mapping,
};
use wayleave_project::{columns, render::moment};

use super::expiry;

/// In a few words: how many streams, and whether rows are held back.
pub(super) fn summary(terms: &Terms) -> String {
    let mut text = columns::count(terms.streams.len(), "stream");
    let filtered = terms.streams.values().filter(|it| it.rows.is_some());
    match filtered.count() {
        0 => {}
        1 => text.push_str(", 1 by rows"),
        many => {
            let _ = write!(text, ", {many} by rows");
        }
    }
    if !terms.capabilities.is_empty() {
        let many = terms.capabilities.len();
        let noun = if many == 1 {
            "capability"
        } else {
            "capabilities"
        };
        let _ = write!(text, ", {many} {noun}");
    }
    text
}

/// What the terms allow, a stream a line.
pub(super) fn streams(terms: &Terms) -> String {
    let rows: Vec<_> = terms
        .streams
        .iter()
        .map(|(name, stream)| vec![name.clone(), fields(stream), filter(stream)])
        .collect();
    columns::indented(&rows)
}

fn fields(stream: &StreamTerms) -> String {
    let names: Vec<_> = stream.fields.iter().map(String::as_str).collect();
    names.join(", ")
}

fn filter(stream: &StreamTerms) -> String {
    match &stream.rows {
        None => String::new(),
        Some(rows) => format!("only rows {}", rows.as_str()),
    }
}

/// Everything about a grant.
pub(super) fn details(
    grant: &GrantEntry,
    now: Millis,
    gone: &[String],
    tokens: &[String],
) -> String {
    let terms = &grant.terms;
    let mut text = format!(
        "grant `{}` of connection `{}` of dataset `{}`\nmade by {} at {}; ends: {}\n",
        grant.id,
        terms.connection,
        terms.dataset,
        grant.who,
        moment(grant.at),
        expiry::ends(grant.validity(now), grant.expires),
    );
    if !grant.purpose.is_empty() {
        let _ = writeln!(text, "for: {}", grant.purpose.replace(['\n', '\t'], " "));
    }
    if let Some(revoked) = &grant.revoked {
        let at = moment(revoked.at);
        let _ = writeln!(text, "revoked by {} at {at}", revoked.who);
    }
    let _ = writeln!(text, "streams:\n{}", streams(terms));
    if !terms.capabilities.is_empty() {
        let names: Vec<_> = terms.capabilities.iter().map(String::as_str).collect();
        let _ = writeln!(text, "capabilities: {}", names.join(", "));
    }
    if !gone.is_empty() {
        let _ = writeln!(text, "no longer in the dataset: {}", gone.join(", "));
    }
    let _ = match tokens {
        [] => writeln!(text, "no token has it"),
        some => writeln!(text, "held by: {}", some.join(", ")),
    };
    text
}

/// Parts of the terms that the mapping no longer has.
pub(super) fn missing_parts(terms: &Terms, mapping: &Mapping) -> Vec<String> {
    let mut gone = Vec::new();
    if mapping.connection(&terms.connection).is_none() {
        gone.push(format!("connection `{}`", terms.connection));
    }
    for (name, wanted) in &terms.streams {
        let Some(stream) = mapping.streams.iter().find(|it| it.name == name.as_str()) else {
            gone.push(format!("stream `{name}`"));
            continue;
        };
        let missing = wanted.fields.iter().filter(|it| stream.field(it).is_none());
        gone.extend(missing.map(|field| format!("field `{name}.{field}`")));
    }
    gone
}
