//! The dataset tools of a deployment: the answers agents get about an act, and about each dataset.
//!
//! Agents learn only the kind of a failure. Files, hosts and driver messages are for the operator,
//! and go to the log.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::future::BoxFuture;
use wayleave_ledger::{Dataset as Recorded, GovernanceError, State};
use wayleave_model::mapping::Mapping;
use wayleave_project::activation::{self, ActivationBackend as _, ActivationError};
use wayleave_project::columns;
use wayleave_surface::datasets::{
    Code, ConnectedDataset, Dataset, DatasetPage, DatasetRefusal, DatasetToolLimit, Datasets,
    DisconnectedDataset,
};

use super::serving::ServingContext;
use wayleave_project::datasets::{ServedDatasets, WithheldReason};
use wayleave_project::draft_cache::{DraftSummary, connections};
use wayleave_project::explanation::with_causes;
use wayleave_project::source_probe::{ConnectionDrift, ProbeError};

impl Datasets for ServingContext {
    fn list<'a>(
        &'a self,
        after: &'a str,
        most: usize,
    ) -> BoxFuture<'a, Result<DatasetPage, DatasetRefusal>> {
        Box::pin(async move {
            let state = self.state().await.map_err(|error| broken(&error.into()))?;
            let listed = self.drafts().await;
            let drafts_unlisted = listed.is_err();
            let drafts: BTreeMap<String, Arc<DraftSummary>> = listed
                .unwrap_or_default()
                .into_iter()
                .map(|draft| (draft.name.clone(), draft))
                .collect();
            let names: BTreeSet<&String> = state.datasets().keys().chain(drafts.keys()).collect();
            let mut names = names.into_iter().filter(|name| name.as_str() > after);
            let mut datasets = Vec::new();
            for name in names.by_ref().take(most) {
                datasets.push(
                    self.line(&state, name, drafts.get(name).map(AsRef::as_ref))
                        .await,
                );
            }
            Ok(DatasetPage {
                datasets,
                more: names.next().is_some(),
                drafts_unlisted,
            })
        })
    }

    fn connect<'a>(
        &'a self,
        name: &'a str,
        who: &'a str,
    ) -> BoxFuture<'a, Result<ConnectedDataset, DatasetRefusal>> {
        Box::pin(async move {
            let connected = activation::connect(self, name, who)
                .await
                .map_err(|error| refused(name, &error))?;
            // The dataset may have failed meanwhile.
            if let Some(fault) = self.live().fault(name) {
                return Err(DatasetRefusal::new(
                    Code::MappingRefused,
                    agent_message(&fault.reason),
                ));
            }
            Ok(ConnectedDataset {
                own_tools: self.own_tools(),
                mapping: connected.mapping,
                revision: connected.revision,
                was_active: connected.was_active,
            })
        })
    }

    fn disconnect<'a>(
        &'a self,
        name: &'a str,
        who: &'a str,
    ) -> BoxFuture<'a, Result<DisconnectedDataset, DatasetRefusal>> {
        Box::pin(async move {
            let disconnected = activation::disconnect(self, name, who)
                .await
                .map_err(|error| refused(name, &error))?;
            Ok(DisconnectedDataset {
                name: name.to_owned(),
                revision: disconnected.revision,
                was_active: disconnected.was_active,
            })
        })
    }
}

impl ServingContext {
    fn own_tools(&self) -> DatasetToolLimit {
        DatasetToolLimit {
            live: self.live().mappings().count(),
            most: self.settings.now().dataset_tools,
        }
    }

    /// The streams of a dataset that are suspended in any of its connections.
    fn suspended_streams(&self, dataset: &str) -> Vec<String> {
        let all = self.suspended().into_iter();
        let own = all.filter(|it| it.dataset == dataset).map(|it| it.stream);
        let names: BTreeSet<String> = own.collect();
        names.into_iter().collect()
    }

    async fn line(&self, state: &State, name: &str, draft: Option<&DraftSummary>) -> Dataset {
        let mut line = Dataset {
            name: name.to_owned(),
            state: "draft",
            ..Dataset::default()
        };
        let Some(recorded) = state.datasets().get(name) else {
            if let Some(draft) = draft {
                line.streams = draft.streams;
                line.connections.clone_from(&draft.connections);
            }
            let problem = draft.and_then(|it| it.problem.clone());
            line.reason = problem.or_else(|| Some("awaits a human's ratification".to_owned()));
            return line;
        };
        line.revision = Some(recorded.revision).filter(|revision| *revision > 0);
        if recorded.active.is_some() {
            served(&mut line, recorded, &self.live());
            line.own_tools = self.own_tools();
            line.suspended = self.suspended_streams(name);
        } else if let Some(ratified) = &recorded.ratified {
            line.state = "ratified";
            line.digest = Some(ratified.act.digest.to_string());
            match self.project.governance().load_as(&ratified.act).await {
                Ok(mapping) => describe(&mut line, &mapping),
                Err(error) => line.reason = Some(agent_message(&error.into())),
            }
        } else {
            line.state = "retired";
        }
        line
    }
}

fn served(line: &mut Dataset, recorded: &Recorded, now: &ServedDatasets) {
    line.state = "active";
    if let Some(served) = now.served(&line.name) {
        line.digest = Some(served.mapping.digest().to_string());
        describe(line, &served.mapping);
        line.served = Some(Arc::clone(&served.mapping));
    }
    let active = recorded.active.as_ref().map(|it| it.digest);
    let ratified = recorded.ratified.as_ref().map(|it| it.act.digest);
    line.reason = match now.fault(&line.name) {
        Some(fault) => {
            let instead = match fault.fallback {
                Some(_) => "the last good mapping is served instead",
                None => "it is not served",
            };
            Some(format!("{}; {instead}", agent_message(&fault.reason)))
        }
        None => ratified
            .filter(|it| Some(*it) != active)
            .map(|it| format!("{} was ratified since; connect it to serve it", it.short())),
    };
}

fn describe(line: &mut Dataset, mapping: &Mapping) {
    line.streams = Some(mapping.streams.len());
    line.connections = connections(mapping);
}

/// The text for agents about a mapping that is not served.
fn agent_message(reason: &WithheldReason) -> String {
    match reason {
        WithheldReason::Mapping(GovernanceError::Missing { .. }) => {
            "the frozen mapping is missing".to_owned()
        }
        WithheldReason::Mapping(GovernanceError::Altered { .. }) => {
            "the frozen mapping is not what was ratified".to_owned()
        }
        WithheldReason::Mapping(_) => "the frozen mapping cannot be read".to_owned(),
        WithheldReason::Contradiction(error) => error.to_string(),
    }
}

fn refused(name: &str, error: &ActivationError) -> DatasetRefusal {
    match error {
        ActivationError::Unknown { ratified } => DatasetRefusal::unknown(name, ratified.clone()),
        ActivationError::Draft { ratified, .. } => {
            DatasetRefusal::new(Code::NotRatified, error.to_string())
                .with_reason("draft")
                .with_available(ratified.clone())
        }
        ActivationError::Retired { ratified, .. } => {
            DatasetRefusal::new(Code::NotRatified, error.to_string())
                .with_reason("retired")
                .with_available(ratified.clone())
        }
        ActivationError::Mapping { dataset, cause } => {
            tracing::warn!(
                dataset,
                error = with_causes(cause),
                hint = cause.hint(),
                "a dataset is refused"
            );
            let (reason, what) = match cause {
                GovernanceError::Missing { .. } => ("missing", "is missing"),
                _ => ("altered", "is not what was ratified"),
            };
            let message = format!(
                "the frozen mapping of `{dataset}` {what}; its operator must restore it or ratify again"
            );
            DatasetRefusal::new(Code::MappingRefused, message).with_reason(reason)
        }
        ActivationError::Contradiction(error) => {
            DatasetRefusal::new(Code::ConflictingDataset, error.to_string())
        }
        ActivationError::Unmatched {
            dataset, compared, ..
        } => unmatched(dataset, compared),
        ActivationError::TooOften { retry_after } => {
            DatasetRefusal::new(Code::RateLimited, error.to_string()).with_retry_after(*retry_after)
        }
        ActivationError::Ledger(error) => broken(error),
    }
}

/// The first source that does not answer, or else the first that differs from the mapping.
fn unmatched(dataset: &str, compared: &[ConnectionDrift]) -> DatasetRefusal {
    for it in compared {
        if let Err(error) = &it.drift {
            tracing::warn!(
                dataset,
                connection_id = it.connection,
                error = with_causes(error),
                hint = error.hint(),
                "a source could not be compared"
            );
            let (reason, what) = match error {
                ProbeError::Undeclared { .. } => ("undeclared", "is not declared"),
                ProbeError::Dsn(_) => ("no_dsn", "has no usable DSN"),
                ProbeError::Store { .. } => ("unreachable", "does not answer"),
            };
            let message = format!(
                "the source of `{}` {what}; `{dataset}` was not connected",
                it.connection
            );
            return DatasetRefusal::new(Code::SourceUnavailable, message).with_reason(reason);
        }
    }
    // Tables and columns are for the operator only.
    let mut many = 0;
    for it in compared {
        for problem in it.drift.iter().flatten() {
            many += 1;
            tracing::warn!(
                dataset,
                connection_id = it.connection,
                problem = problem.message,
                "a source has changed since its mapping was ratified"
            );
        }
    }
    DatasetRefusal::new(
        Code::Drifted,
        format!(
            "the source of `{dataset}` does not match its mapping ({}); its operator must fix the \
             mapping and ratify it again",
            columns::count(many, "problem")
        ),
    )
}

fn broken(error: &GovernanceError) -> DatasetRefusal {
    tracing::error!(
        error = with_causes(error),
        hint = error.hint(),
        "the ledger failed"
    );
    DatasetRefusal::new(
        Code::LedgerUnavailable,
        "the ledger of decisions cannot be read or written; its operator has the details",
    )
}
