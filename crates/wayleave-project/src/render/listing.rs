//! Lists grants and tokens: those that are valid, and how many have ended.

use serde_json::{Value, json};
use wayleave_ledger::{Millis, Validity};

use super::moment;
use crate::{Rendering, columns};

/// The kind of entry being listed.
pub(super) struct Listing {
    /// The singular noun: `grant`.
    pub(super) noun: &'static str,
    /// The column headings.
    pub(super) titles: [&'static str; 6],
    /// The text for an empty list.
    pub(super) none: &'static str,
}

/// One entry of a listing.
pub(super) struct ListingRow {
    /// Its sequence number in the ledger.
    pub(super) seq: u64,
    pub(super) validity: Validity,
    pub(super) row: [String; 6],
    pub(super) document: Value,
}

impl Listing {
    /// Renders the entries in the order they were made; ended ones only with `all`.
    pub(super) fn render(&self, mut entries: Vec<ListingRow>, all: bool) -> Rendering {
        let total = entries.len();
        entries.retain(|it| all || it.validity == Validity::Live);
        entries.sort_by_key(|it| it.seq);
        let ended = total - entries.len();
        let mut rows = vec![self.titles.map(str::to_owned).to_vec()];
        let mut documents = Vec::new();
        for entry in entries {
            rows.push(entry.row.to_vec());
            documents.push(entry.document);
        }
        let mut text = if documents.is_empty() {
            self.none.to_owned()
        } else {
            columns::align(&rows)
        };
        if ended > 0 {
            let ended = columns::count(ended, self.noun);
            text = format!("{text}\n{ended} ended (`--all` shows them)");
        }
        Rendering::new(json!({ format!("{}s", self.noun): documents }), text)
    }
}

/// When or how an entry ends, in a word or two.
pub(super) fn ends(validity: Validity, expires: Option<Millis>) -> String {
    match (validity, expires) {
        (Validity::Revoked, _) => "revoked".to_owned(),
        (Validity::Expired, Some(at)) => format!("ended {}", moment(at)),
        (_, Some(at)) => moment(at),
        (_, None) => "never".to_owned(),
    }
}
