//! Issuing and revoking tokens, in words. Never their texts.

use std::collections::BTreeSet;

use serde_json::json;
use wayleave_ledger::{Entry, Millis, State, TokenRequest, Validity};
use wayleave_model::grant::{Claims, TokenKind};

use super::{granting, moment};
use crate::{Explanation, Rendering, whole_grants::WholeGrantError};

/// The result of issuing a token, with the instructions for its text, which is shown apart from
/// them so that it can be piped.
pub fn issued(state: &State, id: &str, token: &TokenRequest, who: &str, now: Millis) -> Rendering {
    let document = json!({
        "token": {
            "id": id, "kind": token.kind, "label": token.label,
            "scopes": token.scopes, "grants": token.grants, "claims": token.claims,
            "expires": token.expires.map(moment), "who": who,
        },
    });
    let shortcomings = shortcomings(state, &token.grants, &token.claims, now);
    let remarks = shortcomings.into_iter().map(|it| format!("remark: {it}"));
    Rendering::new(document, handover_text(id, token)).with_remarks(remarks)
}

fn handover_text(id: &str, token: &TokenRequest) -> String {
    let ends = match token.expires {
        Some(at) => format!("it ends {}", moment(at)),
        None => "it never ends".to_owned(),
    };
    let keep = format!(
        "issued `{id}`; {ends}\nits text follows, once: keep it where only its user can read"
    );
    match token.kind {
        TokenKind::Client if token.grants.is_empty() => format!(
            "{keep}\nremark: it has no grant, so it reads nothing; `--grant` and `--all-of` give it some"
        ),
        TokenKind::Client => format!(
            "{keep}\nhint: clients send it as a bearer token; `wayleave serve --stdio` takes it from `WAYLEAVE_TOKEN`"
        ),
        _ => format!("{keep}\nremark: agents are never let in with it"),
    }
}

/// The reasons why a token can read less than its grants seem to allow.
pub fn shortcomings(
    state: &State,
    grants: &BTreeSet<String>,
    claims: &Claims,
    now: Millis,
) -> Vec<String> {
    let mut all = Vec::new();
    for grant in grants.iter().filter_map(|id| state.grant(id)) {
        let id = &grant.id;
        if grant.validity(now) != Validity::Live {
            all.push(format!("grant `{id}` has ended"));
        }
        for claim in grant.terms.claims() {
            if !claims.contains_key(&claim) {
                all.push(format!(
                    "grant `{id}` asks for the claim `{claim}`; without it the token does not see those streams"
                ));
            }
        }
    }
    all
}

/// The result of revoking a token.
pub fn revoked(id: &str, who: &str, entry: &Entry) -> Rendering {
    Rendering::new(
        json!({ "token": id, "who": who, "entry": entry.seq }),
        format!("revoked token `{id}`; requests with it are refused from now on"),
    )
}

impl From<WholeGrantError> for Explanation {
    fn from(error: WholeGrantError) -> Self {
        match error {
            WholeGrantError::Mapping(error) => error.into(),
            WholeGrantError::DuplicateConnection { .. } => {
                Self::from_error(&error).hint("a token reads each connection under one grant")
            }
            WholeGrantError::Unfit { dataset, errors } => granting::unfit(&errors, &dataset),
        }
    }
}
