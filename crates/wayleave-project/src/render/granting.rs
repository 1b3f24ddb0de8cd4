//! Making, narrowing and revoking grants, in words.

use std::fmt::Write as _;

use serde_json::{Value, json};
use wayleave_ledger::{Entry, GrantEntry, GrantRequest};
use wayleave_model::grant::Terms;
use wayleave_plan::package::SelectionError;

use super::{grants, moment};
use crate::{Explanation, Rendering, columns};

/// The result of making a grant.
pub fn granted(id: &str, grant: &GrantRequest, who: &str) -> Rendering {
    let next = format!("wayleave token create --grant {id}");
    let document = json!({ "grant": document(id, grant, who), "next": next });
    let until = grant.expires.map(|at| format!(", until {}", moment(at)));
    let text = format!(
        "granted `{id}`: reading of connection `{}` of dataset `{}`{}\n{}\nnext: {next}",
        grant.terms.connection,
        grant.terms.dataset,
        until.unwrap_or_default(),
        grants::streams(&grant.terms),
    );
    Rendering::new(document, text)
}

fn document(id: &str, grant: &GrantRequest, who: &str) -> Value {
    json!({
        "id": id, "terms": grant.terms, "expires": grant.expires.map(moment), "who": who,
    })
}

/// Why a selection gives no terms: every part of it that `name`, a dataset or a wider grant, does
/// not have, with its hint.
pub fn unfit(errors: &[SelectionError], name: &str) -> Explanation {
    match errors {
        [only] => Explanation::from_error(only).maybe_hint(only.hint()),
        many => {
            let mut why = Explanation::new(format!("the grant does not fit `{name}`"));
            why.causes = many.iter().map(with_hint).collect();
            why.hint("nothing was granted; fix these and try again")
        }
    }
}

fn with_hint(error: &SelectionError) -> String {
    match error.hint() {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    }
}

/// What the holders of a grant lose under a narrower one, one phrase each.
pub fn losses(wider: &GrantEntry, narrower: &GrantRequest) -> Vec<String> {
    let mut lost = lost_rights(&wider.terms, &narrower.terms);
    if let Some(end) = narrower.expires.filter(|it| Some(*it) != wider.expires) {
        lost.push(format!("all of it from {} on", moment(end)));
    }
    lost
}

fn lost_rights(wider: &Terms, narrower: &Terms) -> Vec<String> {
    let mut lost = Vec::new();
    for (name, before) in &wider.streams {
        let Some(after) = narrower.streams.get(name) else {
            lost.push(format!("stream `{name}`"));
            continue;
        };
        let fields = before.fields.difference(&after.fields);
        lost.extend(fields.map(|field| format!("field `{name}.{field}`")));
        if let Some(rows) = after
            .rows
            .as_ref()
            .filter(|it| before.rows.as_ref() != Some(*it))
        {
            lost.push(format!("rows of `{name}` other than `{}`", rows.as_str()));
        }
    }
    let capabilities = wider.capabilities.difference(&narrower.capabilities);
    lost.extend(capabilities.map(|name| format!("capability `{name}`")));
    lost
}

/// Why a grant is not narrowed: its holders would lose nothing.
pub fn loses_nothing(id: &str) -> Explanation {
    Explanation::new(format!("nothing would be taken from grant `{id}`"))
}

/// The result of narrowing a grant. `holders` are the tokens that have it.
pub fn narrowed(
    id: &str,
    wider: &GrantEntry,
    narrower: &GrantRequest,
    who: &str,
    holders: &[String],
) -> Rendering {
    let lost = losses(wider, narrower);
    let document = json!({
        "grant": document(id, narrower, who),
        "replaces": wider.id, "lost": lost, "tokens": holders,
    });
    let mut text = format!(
        "`{id}` takes the place of `{}`, for {}\n{}",
        wider.id,
        columns::count(holders.len(), "token"),
        grants::streams(&narrower.terms),
    );
    if !lost.is_empty() {
        let _ = write!(text, "\ntaken: {}", lost.join(", "));
    }
    Rendering::new(document, text)
}

/// The result of revoking a grant. `holders` are the tokens that had it.
pub fn revoked(id: &str, who: &str, entry: &Entry, holders: &[String]) -> Rendering {
    let document = json!({ "grant": id, "who": who, "entry": entry.seq, "tokens": holders });
    let from = match holders.len() {
        0 => "no token had it".to_owned(),
        many => format!("{} lost access", columns::count(many, "token")),
    };
    Rendering::new(document, format!("revoked grant `{id}`; {from}"))
}
