//! Grants in words.

use std::fmt::Write as _;

use serde_json::{Value, json};
use wayleave_ledger::{GovernanceError, GrantEntry, Millis, State, Validity};
use wayleave_model::{
    grant::{StreamTerms, Terms},
    mapping::Mapping,
};

use super::{
    listing::{Listing, ListingRow, ends},
    moment,
};
use crate::{Rendering, columns, explanation::with_causes};

/// The valid grants, or all that were ever made.
pub fn list(state: &State, now: Millis, all: bool) -> Rendering {
    let row = |grant: &GrantEntry| {
        let validity = grant.validity(now);
        ListingRow {
            seq: grant.seq,
            validity,
            row: [
                grant.id.clone(),
                grant.terms.connection.clone(),
                grant.terms.dataset.clone(),
                summary(&grant.terms),
                ends(validity, grant.expires),
                grant.purpose.replace(['\n', '\t'], " "),
            ],
            document: document(grant, now),
        }
    };
    let listing = Listing {
        noun: "grant",
        titles: ["GRANT", "CONNECTION", "DATASET", "ALLOWS", "ENDS", "FOR"],
        none: "nothing is granted\nnext: wayleave grant create --dataset DATASET",
    };
    listing.render(state.grants().values().map(|it| row(it)).collect(), all)
}

/// All details of a grant: its terms, the parts of them that the mapping no longer has, and its
/// holders; or why the mapping cannot be loaded, so that these parts are unknown.
pub fn grant(
    state: &State,
    grant: &GrantEntry,
    mapping: Result<&Mapping, &GovernanceError>,
    now: Millis,
) -> Rendering {
    let gone = mapping.map(|mapping| missing_parts(&grant.terms, mapping));
    let gone = gone.map_err(|error| with_causes(error));
    let holders = holders(state, &grant.id, now);
    let mut document = document(grant, now);
    if let Value::Object(members) = &mut document {
        members.insert("no_longer_there".to_owned(), json!(gone.as_ref().ok()));
        if let Err(why) = &gone {
            members.insert("not_compared".to_owned(), json!(why));
        }
        members.insert("tokens".to_owned(), json!(holders));
    }
    let text = details(
        grant,
        now,
        gone.as_deref().map_err(String::as_str),
        &holders,
    );
    Rendering::new(document, text)
}

/// The valid tokens that have the grant.
pub fn holders(state: &State, id: &str, now: Millis) -> Vec<String> {
    let tokens = state.tokens().values();
    tokens
        .filter(|token| token.grants.contains(id) && token.validity(now) == Validity::Live)
        .map(|token| token.id.clone())
        .collect()
}

fn document(grant: &GrantEntry, now: Millis) -> Value {
    let validity = grant.validity(now);
    json!({
        "id": grant.id,
        "standing": validity,
        "terms": grant.terms,
        "expires": grant.expires.map(moment),
        "purpose": grant.purpose,
        "who": grant.who,
        "at": moment(grant.at),
        "revoked": grant.revoked,
    })
}

/// A short summary: how many streams, and whether rows are restricted or fields masked.
fn summary(terms: &Terms) -> String {
    let mut text = columns::count(terms.streams.len(), "stream");
    let filtered = terms.streams.values().filter(|it| it.rows.is_some());
    match filtered.count() {
        0 => {}
        1 => text.push_str(", 1 with a row filter"),
        many => {
            let _ = write!(text, ", {many} with a row filter");
        }
    }
    match terms.streams.values().map(|it| it.masks.len()).sum() {
        0 => {}
        many => {
            let fields = columns::count(many, "field");
            let _ = write!(text, ", {fields} masked");
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

/// The terms, one line per stream.
pub fn streams(terms: &Terms) -> String {
    let rows: Vec<_> = terms
        .streams
        .iter()
        .map(|(name, stream)| vec![name.clone(), fields(stream), filter(stream)])
        .collect();
    columns::indented(&rows)
}

fn fields(stream: &StreamTerms) -> String {
    let shown = |name: &String| match stream.masks.get(name) {
        None => name.clone(),
        Some(mask) => format!("{name} (masked: {mask})"),
    };
    let names: Vec<_> = stream.fields.iter().map(shown).collect();
    names.join(", ")
}

fn filter(stream: &StreamTerms) -> String {
    match &stream.rows {
        None => String::new(),
        Some(rows) => format!("only rows {}", rows.as_str()),
    }
}

/// All details of a grant.
fn details(
    grant: &GrantEntry,
    now: Millis,
    gone: Result<&[String], &str>,
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
        ends(grant.validity(now), grant.expires),
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
    let _ = match gone {
        Ok([]) => Ok(()),
        Ok(gone) => writeln!(text, "no longer in the dataset: {}", gone.join(", ")),
        Err(why) => writeln!(text, "not compared with the dataset: {why}"),
    };
    let _ = match tokens {
        [] => writeln!(text, "no token has it"),
        some => writeln!(text, "held by: {}", some.join(", ")),
    };
    text
}

/// Parts of the terms that the mapping no longer has.
fn missing_parts(terms: &Terms, mapping: &Mapping) -> Vec<String> {
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
