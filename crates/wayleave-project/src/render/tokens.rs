//! Tokens in words, without their texts.

use serde_json::{Value, json};
use wayleave_ledger::{Millis, State, TokenEntry, Validity};

use super::{
    listing::{Listing, ListingRow, ends},
    moment,
};
use crate::Rendering;

/// The valid tokens, or all that were ever issued.
pub fn list(state: &State, now: Millis, all: bool) -> Rendering {
    // A token can outlive its grants, and then reads nothing under them.
    let grant = |id: &String| match state.grant(id).map(|it| it.validity(now)) {
        Some(Validity::Live) => id.clone(),
        Some(_) | None => format!("{id}(ended)"),
    };
    let row = |token: &TokenEntry| {
        let validity = token.validity(now);
        ListingRow {
            seq: token.seq,
            validity,
            row: [
                token.id.clone(),
                token.kind.to_string(),
                words(token.scopes.iter().map(|it| it.to_string())),
                words(token.grants.iter().map(grant)),
                ends(validity, token.expires),
                token.label.clone(),
            ],
            document: document(token, now),
        }
    };
    let listing = Listing {
        noun: "token",
        titles: ["TOKEN", "KIND", "SCOPES", "GRANTS", "ENDS", "LABEL"],
        none: "no token is issued\nnext: wayleave token create --all-of DATASET",
    };
    listing.render(state.tokens().values().map(|it| row(it)).collect(), all)
}

/// Joins words with commas; a dash if there are none.
fn words(words: impl Iterator<Item = String>) -> String {
    let words: Vec<_> = words.collect();
    if words.is_empty() {
        "-".to_owned()
    } else {
        words.join(",")
    }
}

fn document(token: &TokenEntry, now: Millis) -> Value {
    json!({
        "id": token.id,
        "standing": token.validity(now),
        "kind": token.kind,
        "label": token.label,
        "scopes": token.scopes,
        "grants": token.grants,
        "claims": token.claims,
        "expires": token.expires.map(moment),
        "who": token.who,
        "at": moment(token.at),
        "revoked": token.revoked,
    })
}
