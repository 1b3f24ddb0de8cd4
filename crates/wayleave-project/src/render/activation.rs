//! The results of connecting and disconnecting a dataset.

use serde_json::json;
use wayleave_ledger::Refusal;

use super::check;
use crate::{
    Explanation, Rendering,
    activation::{ActivationError, ConnectOutcome, DisconnectOutcome},
    source_probe::ConnectionDrift,
};

/// The result of connecting a dataset.
pub fn connected(dataset: &str, connected: &ConnectOutcome) -> Rendering {
    let (digest, revision) = (connected.mapping.digest(), connected.revision);
    let document = json!({
        "dataset": dataset, "digest": digest, "revision": revision,
        "was_active": connected.was_active,
    });
    let already = if connected.was_active { " already" } else { "" };
    let short = digest.short();
    Rendering::new(
        document,
        format!(
            "`{dataset}` is live{already} as {short}, revision {revision}\n\
             next: wayleave client install CLIENT, or wayleave serve"
        ),
    )
}

/// The differences of the sources from the ratified mapping, one text per differing source.
pub fn drift(dataset: &str, mapping: &[u8], compared: &[ConnectionDrift]) -> Vec<String> {
    let text = String::from_utf8_lossy(mapping);
    check::drift(&format!("{dataset}, as ratified"), &text, compared)
}

/// Why a dataset was not connected. A frozen mapping that differs from what was ratified, and a
/// source that differs from the mapping, are findings; a name nobody ratified is not.
pub fn not_connected(dataset: &str, error: ActivationError) -> Explanation {
    match error {
        ActivationError::Unknown { ratified }
        | ActivationError::Draft { ratified, .. }
        | ActivationError::Retired { ratified, .. } => {
            let hint = if ratified.is_empty() {
                "nothing is ratified yet; `wayleave ratify` makes a draft a dataset".to_owned()
            } else {
                let names: Vec<_> = ratified.iter().map(|name| format!("`{name}`")).collect();
                let names = names.join(", ");
                format!("ratified are {names}; `wayleave ratify` makes a draft a dataset")
            };
            Explanation::new(format!("no dataset `{dataset}` is ratified")).hint(hint)
        }
        ActivationError::Mapping { cause, .. } => Explanation::from(cause).finding(),
        ActivationError::Unmatched { ref compared, .. } => {
            // A source that does not answer has not been found to differ.
            let is_silent = compared.iter().any(|it| it.drift.is_err());
            let what = if is_silent {
                "see that the source can be read, as said above"
            } else {
                "fix the draft and ratify it again"
            };
            Explanation::from_error(&error).finding().hint(format!(
                "{what}; or pass `--offline` to connect without comparing"
            ))
        }
        ActivationError::Contradiction(error) => Explanation::from_error(&error)
            .finding()
            .hint("take the other out of service with `wayleave disconnect`"),
        ActivationError::TooOften { .. } => Explanation::from_error(&error),
        ActivationError::Ledger(error) => error.into(),
    }
}

/// The result of disconnecting a dataset, or an error if it was not active.
pub fn disconnected(
    dataset: &str,
    disconnected: &DisconnectOutcome,
) -> Result<Rendering, Explanation> {
    if !disconnected.was_active {
        return Err(not_active(dataset));
    }
    Ok(Rendering::new(
        json!({ "dataset": dataset, "revision": disconnected.revision }),
        format!("`{dataset}` is out of service; it stays ratified"),
    ))
}

/// Why a dataset was not disconnected.
pub fn not_disconnected(dataset: &str, error: ActivationError) -> Explanation {
    match error {
        ActivationError::Ledger(error) => error.into(),
        _ => not_active(dataset),
    }
}

fn not_active(dataset: &str) -> Explanation {
    let dataset = dataset.to_owned();
    Explanation::from_error(&Refusal::NotActive { dataset })
        .hint("`wayleave datasets` lists what is live")
}
