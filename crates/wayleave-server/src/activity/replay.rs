//! Replays a recorded read under the current grants of its caller.

use std::sync::Arc;

use serde_json::{Map, Value};
use wayleave_activity::{
    Activity, ActivityId, ArgumentKeyError, ArgumentKeys, CallCollector, CollectedCall,
};
use wayleave_ledger::{Clock as _, LedgerError, SystemClock};
use wayleave_mcp::with_call_attachment;
use wayleave_plan::{package::Package, read_tool::ReadTool};

use crate::{Deployment, packages};

/// Why a call cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// It is not a call of a read tool.
    #[error(
        "only calls of `schema`, `query_records`, `aggregate`, `search` and `fetch` can be made again"
    )]
    NotARead,
    /// Its arguments were not recorded, or cannot be opened.
    #[error("its arguments cannot be opened")]
    Arguments(#[source] Option<ArgumentKeyError>),
    /// Its token does not exist.
    #[error("its token `{token}` is not known any more")]
    UnknownToken {
        /// The token.
        token: String,
    },
    /// The ledger cannot be read.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

/// The result of a replay.
#[derive(Debug)]
pub struct ReplayReport {
    /// Whether the answer's data are the same; `None` if they cannot be compared.
    pub same: Option<bool>,
    /// Notes for the operator.
    pub notes: Vec<String>,
}

impl Deployment {
    /// Replays a recorded read, and compares the answers.
    pub async fn replay(
        &self,
        activity: &Activity,
        keys: &ArgumentKeys,
    ) -> Result<ReplayReport, ReplayError> {
        let tool = activity.target.as_deref().and_then(ReadTool::parse);
        let tool = tool.filter(|_| activity.method == "tools/call");
        let tool = tool.ok_or(ReplayError::NotARead)?;
        let sealed = activity.arguments.sealed.as_ref();
        let arguments: Map<String, Value> = match sealed {
            Some(sealed) => {
                let opened = keys.unseal(activity.id, sealed);
                let opened = opened.map_err(|error| ReplayError::Arguments(Some(error)))?;
                serde_json::from_slice(&opened).map_err(|_| ReplayError::Arguments(None))?
            }
            None if activity.arguments.shape.is_empty() => Map::new(),
            None => return Err(ReplayError::Arguments(None)),
        };
        let package = self.package_of(&activity.agent.token)?;
        let collector = Arc::new(CallCollector::new(ActivityId::now(), false));
        let service = self.service();
        if tool == ReadTool::Search {
            self.open_indexes().await;
        }
        let call = service.call(tool, &package, arguments);
        with_call_attachment(collector.clone(), call).await;
        Ok(compared(activity, &collector.take(), keys))
    }

    fn package_of(&self, token: &str) -> Result<Package, ReplayError> {
        if token == Self::local_caller().subject() {
            return Ok(Package::local());
        }
        let state = self.watch().now();
        let entry = state.tokens().get(token);
        let entry = entry.ok_or_else(|| ReplayError::UnknownToken {
            token: token.to_owned(),
        })?;
        let grants = entry.grants.iter().map(String::as_str);
        let now = state.now(SystemClock.now());
        Ok(packages::package_for(
            &state,
            token,
            grants,
            &entry.claims,
            now,
        ))
    }
}

fn compared(activity: &Activity, again: &CollectedCall, keys: &ArgumentKeys) -> ReplayReport {
    let mut notes = Vec::new();
    for grant in &activity.grants {
        let mut now = again.grants.iter();
        let same_connection = now.find(|now| now.connection == grant.connection);
        if same_connection.is_some_and(|now| now.mapping != grant.mapping) {
            let dataset = &grant.dataset;
            notes.push(format!(
                "dataset `{dataset}` has another mapping than at the time"
            ));
        }
    }
    if activity.used != again.used {
        notes.push("it used other records than at the time".to_owned());
    }
    let has_mapping_changed = notes.iter().any(|note| note.starts_with("dataset"));
    let now = again.answer.map(|sum| keys.digest(&sum));
    let same = match (activity.answer, now) {
        (Some(then), Some(now)) if !has_mapping_changed => Some(then == now),
        (None, None) => {
            notes.push("neither answer has data to compare".to_owned());
            None
        }
        (Some(_), None) | (None, Some(_)) => Some(false),
        _ => None,
    };
    ReplayReport { same, notes }
}
