//! Probes declared sources: reachability, catalogue, drift from a mapping, samples for a proposal.
//!
//! Reads catalogues, and rows only if an operator requests samples. A DSN is looked up as late as
//! possible, and passed only to the store.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    time::{Duration, Instant},
};

use wayleave_ledger::{Source, State};
use wayleave_model::{
    catalogue::Catalogue,
    drift,
    mapping::{Connection, Mapping},
    nearest::nearest,
    problem::{self, Problem, ProblemCode},
    propose::{Samples, columns_to_sample},
};
use wayleave_store::{Introspect, IntrospectOptions, Limits, Progress, SampleError, StoreError};

use crate::{
    adapters,
    source::{self, EnvironmentVariables, SourceError},
};

/// Why a source could not be probed.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// It is not declared.
    #[error("no source `{name}` is declared")]
    Undeclared {
        /// The requested name.
        name: String,
        /// A declared one with a similar name.
        near: Option<String>,
    },
    /// Its DSN is not available.
    #[error(transparent)]
    Dsn(#[from] SourceError),
    /// The store failed.
    #[error("source `{name}` did not answer")]
    Store {
        /// The source.
        name: String,
        /// The cause.
        #[source]
        cause: StoreError,
    },
}

impl ProbeError {
    /// What the operator can do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Undeclared { name, near: None } => {
                format!("declare it: `wayleave source add {name} --kind KIND --env VARIABLE`")
            }
            Self::Undeclared {
                near: Some(near), ..
            } => format!("did you mean `{near}`?"),
            Self::Dsn(error) => error.hint(),
            Self::Store {
                cause: StoreError::NoSchema { visible, .. },
                ..
            } if !visible.is_empty() => {
                format!("visible are: {}", visible.join(", "))
            }
            Self::Store {
                cause: StoreError::Missing { .. },
                ..
            } => "check the database name or the file's path, which begins in the folder this was \
                  started from; a missing file is never created"
                .to_owned(),
            Self::Store { cause, .. } => cause.hint().to_owned(),
        }
    }
}

/// Maximum number of columns of a source sampled at once.
const MAX_SAMPLED_COLUMNS: usize = 100;

/// The values of a source's columns, for a proposal.
#[derive(Debug, Clone, Default)]
pub struct SourceSamples {
    /// The sampled values.
    pub samples: Samples,
    /// The number of columns that were read.
    pub columns: usize,
    /// The columns that were not read.
    pub unsampled: Vec<UnsampledColumn>,
}

/// A column that was selected for sampling but not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsampledColumn {
    /// Its table, exactly as in the store.
    pub table: String,
    /// The column.
    pub column: String,
    /// Why.
    pub reason: SampleError,
}

/// Opens declared sources to examine them.
#[derive(Debug, Clone, Default)]
pub struct SourceProbe {
    /// The environment that holds the DSNs.
    pub environment: EnvironmentVariables,
    /// The time limits of a session.
    pub limits: Limits,
}

impl SourceProbe {
    /// Opens a session and measures how long it takes.
    pub async fn ping(&self, state: &State, name: &str) -> Result<Duration, ProbeError> {
        let (_, store) = self.open(state, name)?;
        let start = Instant::now();
        let answered = store.ping().await;
        let took = start.elapsed();
        answered.map_err(|cause| failed(name, cause))?;
        Ok(took)
    }

    /// Whether reads of a declared source block the programs that write to it.
    pub async fn reads_block_writers(&self, state: &State, name: &str) -> Result<bool, ProbeError> {
        let source = declared(state, name)?;
        let dsn = source::dsn(name, source, &self.environment)?;
        let answered = adapters::writers_wait_for_reads(dsn, self.limits).await;
        answered.map_err(|cause| failed(name, cause))
    }

    /// Reads the catalogue of a declared source.
    pub async fn catalogue(
        &self,
        state: &State,
        name: &str,
        schema: Option<&str>,
        progress: Progress<'_>,
    ) -> Result<Catalogue, ProbeError> {
        let (_, store) = self.open(state, name)?;
        let options = IntrospectOptions {
            schema: schema.map(str::to_owned),
        };
        store
            .introspect(&options, progress)
            .await
            .map_err(|cause| failed(name, cause))
    }

    /// Reads the distinct values of columns that may hold a closed list, up to
    /// [`MAX_SAMPLED_COLUMNS`].
    pub async fn samples(
        &self,
        state: &State,
        name: &str,
        catalogue: &Catalogue,
    ) -> Result<SourceSamples, ProbeError> {
        let (_, store) = self.open(state, name)?;
        let columns = columns_to_sample(catalogue);
        let mut found = SourceSamples::default();
        if columns.is_empty() {
            return Ok(found);
        }
        let read = columns.get(..MAX_SAMPLED_COLUMNS).unwrap_or(&columns);
        let outcomes = store.sample(catalogue, read).await;
        let outcomes = outcomes.map_err(|cause| failed(name, cause))?.into_iter();
        let outcomes = outcomes.chain(std::iter::repeat(Err(SampleError::OverLimit)));
        for (column, outcome) in columns.into_iter().zip(outcomes) {
            match outcome {
                Ok(sample) => {
                    found.columns += 1;
                    let (table, column) = (&column.table, &column.column);
                    found.samples.insert(table, column, sample);
                }
                Err(reason) => found.unsampled.push(UnsampledColumn {
                    table: column.table,
                    column: column.column,
                    reason,
                }),
            }
        }
        Ok(found)
    }

    fn open<'a>(
        &self,
        state: &'a State,
        name: &str,
    ) -> Result<(&'a Source, Box<dyn Introspect>), ProbeError> {
        let source = declared(state, name)?;
        let dsn = source::dsn(name, source, &self.environment)?;
        Ok((source, adapters::open(dsn, self.limits)))
    }
}

/// The source of that name.
pub fn declared<'a>(state: &'a State, name: &str) -> Result<&'a Source, ProbeError> {
    state.sources().get(name).ok_or_else(|| {
        let known = state.sources().keys().map(String::as_str);
        ProbeError::Undeclared {
            name: name.to_owned(),
            near: nearest(name, known).map(str::to_owned),
        }
    })
}

fn failed(name: &str, cause: StoreError) -> ProbeError {
    ProbeError::Store {
        name: name.to_owned(),
        cause,
    }
}

/// One connection of a mapping, compared with its source.
#[derive(Debug)]
pub struct ConnectionDrift {
    /// The connection's id, or the capability's name.
    pub connection: String,
    /// The source.
    pub source: String,
    /// How the source differs from the mapping, or why that could not be determined.
    pub drift: Result<Vec<Problem>, ProbeError>,
}

impl ConnectionDrift {
    /// The streams that no longer fit the source, each with its problems; `None` if the source does
    /// not answer, which says nothing about them. A missing schema breaks all streams.
    pub fn broken_streams(&self, mapping: &Mapping) -> Option<BTreeMap<String, Vec<Problem>>> {
        match &self.drift {
            Ok(problems) => Some(drift::broken_streams(mapping, problems)),
            Err(ProbeError::Store {
                cause: cause @ StoreError::NoSchema { .. },
                ..
            }) => {
                let gone = Problem::new(ProblemCode::SchemaMismatch, cause.to_string());
                Some(drift::broken_streams(mapping, &[gone]))
            }
            Err(_) => None,
        }
    }

    /// Whether the mapping cannot be served over this connection: it has errors, or no answer.
    pub fn is_broken(&self) -> bool {
        match &self.drift {
            Ok(problems) => problem::any_errors(problems),
            Err(_) => true,
        }
    }
}

/// Compares mappings with their sources, reading each schema of each source once.
#[derive(Debug)]
pub struct MappingComparison<'a> {
    probe: &'a SourceProbe,
    state: &'a State,
    catalogues: BTreeMap<(String, Option<String>), Catalogue>,
}

impl<'a> MappingComparison<'a> {
    /// A comparison over the sources declared in `state`.
    pub fn new(probe: &'a SourceProbe, state: &'a State) -> Self {
        Self {
            probe,
            state,
            catalogues: BTreeMap::new(),
        }
    }

    /// Compares every connection of a mapping, then checks that the sources its capabilities write
    /// through are declared.
    pub async fn compare(
        &mut self,
        mapping: &Mapping,
        text: &str,
        progress: Progress<'_>,
    ) -> Vec<ConnectionDrift> {
        let mut compared = Vec::new();
        for connection in &mapping.connections {
            let drift = self.compare_connection(mapping, connection, text, progress);
            compared.push(drift.await);
        }
        for capability in &mapping.capabilities {
            let source = capability.source.value.clone();
            if let Err(error) = declared(self.state, &source) {
                compared.push(ConnectionDrift {
                    connection: capability.name.value.clone(),
                    source,
                    drift: Err(error),
                });
            }
        }
        compared
    }

    /// Compares one connection of a mapping.
    pub async fn compare_connection(
        &mut self,
        mapping: &Mapping,
        connection: &Connection,
        text: &str,
        progress: Progress<'_>,
    ) -> ConnectionDrift {
        let source = &connection.source;
        ConnectionDrift {
            connection: connection.id.value.clone(),
            source: source.value.clone(),
            drift: self.drift(mapping, source, text, progress).await,
        }
    }

    async fn drift(
        &mut self,
        mapping: &Mapping,
        source: &str,
        text: &str,
        progress: Progress<'_>,
    ) -> Result<Vec<Problem>, ProbeError> {
        let schema = mapping.dataset.schema.as_ref().map(|it| it.value.clone());
        let catalogue = match self.catalogues.entry((source.to_owned(), schema)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                let schema = unknown.key().1.clone();
                let asked = self
                    .probe
                    .catalogue(self.state, source, schema.as_deref(), progress);
                unknown.insert(asked.await?)
            }
        };
        let mut problems = drift::drift(mapping, catalogue);
        problem::locate(&mut problems, text);
        Ok(problems)
    }
}
