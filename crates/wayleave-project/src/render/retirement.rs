//! Retiring a dataset, in words.

use serde_json::json;
use wayleave_ledger::{Entry, RatificationEntry, Refusal, State};

use crate::{Explanation, Rendering, columns};

/// Why a dataset cannot be retired: nothing is ratified under that name.
pub fn not_ratified(dataset: &str) -> Explanation {
    let dataset = dataset.to_owned();
    Explanation::from_error(&Refusal::NotRatified { dataset })
        .hint("`wayleave datasets` lists what there is")
}

/// What would be retired: the mapping, whether it is live, and how many grants end with it.
pub fn announcement(state: &State, ratified: &RatificationEntry) -> String {
    let act = &ratified.act;
    let dataset = act.dataset.as_str();
    let live = if state.active().any(|(name, _)| name == dataset) {
        "; it is live, and ends for every client"
    } else {
        ""
    };
    let grants = state.grants().values();
    let granted = grants.filter(|it| it.terms.dataset == dataset && it.revoked.is_none());
    let granted = match granted.count() {
        0 => String::new(),
        many => format!("; it takes {} along", columns::count(many, "grant")),
    };
    format!(
        "`{dataset}` is {}, ratified by {}{live}{granted}",
        act.digest.short(),
        act.who
    )
}

/// The result of retiring a dataset. `ratified` is the ratification that ended.
pub fn retired(ratified: &RatificationEntry, who: &str, entry: &Entry) -> Rendering {
    let act = &ratified.act;
    Rendering::new(
        json!({ "dataset": act.dataset, "digest": act.digest, "who": who, "entry": entry.seq }),
        format!(
            "retired `{}`; serving it again takes another ratification",
            act.dataset
        ),
    )
}
