//! The datasets of a project: their drafts, ratified and live mappings, and their problems.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Serialize, Serializer};
use wayleave_ledger::{Dataset, GovernanceError};
use wayleave_model::{digest::Digest, mapping::Mapping};

use crate::{
    check::{CheckError, CheckedDraft, check},
    explanation::with_causes,
    project::Project,
    serving_status,
    suspension::Suspension,
};

/// The stage a dataset has reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatasetStatus {
    /// A draft that was never ratified.
    Draft,
    /// Ratified, not live.
    Ratified,
    /// Live.
    Active,
    /// Withdrawn.
    Retired,
}

impl DatasetStatus {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Ratified => "ratified",
            Self::Active => "active",
            Self::Retired => "retired",
        }
    }
}

impl Serialize for DatasetStatus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// One dataset, or a draft that names none.
#[derive(Debug, Serialize)]
pub struct DatasetLine {
    /// The dataset's name, if known.
    pub name: Option<String>,
    /// The stage it has reached.
    pub state: DatasetStatus,
    /// The ratified mapping.
    pub digest: Option<Digest>,
    /// The live mapping, if it is not the ratified one.
    pub serving: Option<Digest>,
    /// Whether a draft differs from the ratified mapping.
    pub edited: bool,
    /// The number of its streams: as ratified, else as drafted.
    pub streams: Option<usize>,
    /// The ids of its connections.
    pub connections: Vec<String>,
    /// Its draft's files.
    pub drafts: Vec<String>,
    /// The problem of the ratified or live mapping. If there is one, the dataset is not served.
    pub refused: Option<String>,
    /// The problem of its drafts.
    pub draft_problem: Option<String>,
    /// The streams that a running server has suspended, because they no longer fit their source.
    pub suspended: Vec<String>,
}

/// Every dataset, by name; drafts without a name come last.
pub async fn overview(project: &Project) -> Result<Vec<DatasetLine>, OverviewError> {
    let report = check(project, &[])?;
    let governance = project.governance();
    let state = governance
        .ledger()
        .state()
        .await
        .map_err(GovernanceError::from)?;
    let mut drafts: BTreeMap<&str, Vec<&CheckedDraft>> = BTreeMap::new();
    let mut nameless = Vec::new();
    for draft in &report.drafts {
        match &draft.file.dataset {
            Some(name) => drafts.entry(name).or_default().push(draft),
            None => nameless.push(line(None, None, &[draft])),
        }
    }
    for name in state.datasets().keys() {
        drafts.entry(name).or_default();
    }
    let running = serving_status::running(project.folder());
    let suspended: Vec<&Suspension> = running.iter().flat_map(|it| &it.suspended).collect();
    let mut lines = Vec::new();
    for (name, drafts) in drafts {
        let mut it = line(Some(name), state.datasets().get(name), &drafts);
        let own = suspended.iter().filter(|it| it.dataset == name);
        let own: BTreeSet<String> = own.map(|it| it.stream.clone()).collect();
        it.suspended = own.into_iter().collect();
        if state.ratified(name).is_some() {
            match governance.load(name).await {
                Ok(mapping) => it.describe(&mapping),
                Err(error) => it.refused = Some(with_causes(&error)),
            }
        }
        let active = state.datasets().get(name).and_then(|it| it.active.as_ref());
        if let Some(active) = active.filter(|_| it.serving.is_some())
            && let Err(error) = governance.load_as(&active.ratified.act).await
        {
            it.refused = Some(with_causes(&error));
        }
        lines.push(it);
    }
    lines.extend(nameless);
    Ok(lines)
}

/// Why the datasets cannot be listed.
#[derive(Debug, thiserror::Error)]
pub enum OverviewError {
    /// The drafts cannot be checked.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// The ledger failed.
    #[error(transparent)]
    Governance(#[from] GovernanceError),
}

fn line(name: Option<&str>, dataset: Option<&Dataset>, drafts: &[&CheckedDraft]) -> DatasetLine {
    let ratified = dataset
        .and_then(|it| it.ratified.as_ref())
        .map(|it| it.act.digest);
    let active = dataset
        .and_then(|it| it.active.as_ref())
        .map(|it| it.digest);
    let state = match (dataset, ratified, active) {
        (None, ..) => DatasetStatus::Draft,
        (Some(_), None, _) => DatasetStatus::Retired,
        (Some(_), Some(_), None) => DatasetStatus::Ratified,
        (Some(_), Some(_), Some(_)) => DatasetStatus::Active,
    };
    let mut line = DatasetLine {
        name: name.map(str::to_owned),
        state,
        digest: ratified,
        serving: active.filter(|digest| Some(*digest) != ratified),
        edited: ratified.is_some() && drafts.iter().any(|it| it.digest() != ratified),
        streams: None,
        connections: Vec::new(),
        drafts: drafts.iter().map(|it| it.file.shown.clone()).collect(),
        refused: None,
        draft_problem: draft_problem(drafts),
        suspended: Vec::new(),
    };
    if ratified.is_none()
        && let Some(mapping) = drafts.iter().find_map(|it| it.mapping())
    {
        line.describe(mapping);
    }
    line
}

impl DatasetLine {
    fn describe(&mut self, mapping: &Mapping) {
        self.streams = Some(mapping.streams.len());
        let ids = mapping.connections.iter().map(|it| it.id.value.clone());
        self.connections = ids.collect();
    }
}

fn draft_problem(drafts: &[&CheckedDraft]) -> Option<String> {
    if drafts.len() > 1 {
        return Some(format!("{} drafts have this name", drafts.len()));
    }
    let draft = drafts.first()?;
    if let Some(error) = draft.unreadable() {
        return Some(error.reason());
    }
    match draft.problems.len() {
        0 => None,
        1 => Some("1 problem".to_owned()),
        many => Some(format!("{many} problems")),
    }
}
