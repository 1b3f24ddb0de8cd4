//! Collects what a call uses while it runs: grants, streams, records and timed phases.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use sha2::{Digest as _, Sha256};

use crate::{
    activity::{ActivityId, GrantUse, RecordList},
    chain::sha256,
};

/// Maximum number of records listed by id for a call. Any page of a read tool has fewer.
pub const MAX_LISTED_RECORDS: usize = 128;
/// Maximum number of streams, and of grants, listed for a call.
const MAX_LISTED_NAMES: usize = 64;
/// Maximum number of timed phases of a call.
const MAX_SPANS: usize = 64;

/// A timed phase of a call.
#[derive(Debug, Clone)]
pub struct CallSpan {
    /// Its name.
    pub name: &'static str,
    /// The source it waited for, if any.
    pub source: Option<String>,
    /// Start time.
    pub began: Instant,
    /// End time.
    pub ended: Instant,
}

/// The collected facts of a call.
#[derive(Debug, Clone, Default)]
pub struct CollectedCall {
    /// The grants that were used.
    pub grants: Vec<GrantUse>,
    /// The streams that were read, as `connection_id/stream`.
    pub streams: Vec<String>,
    /// The records that were read.
    pub used: RecordList,
    /// The records that were made or changed.
    pub generated: RecordList,
    /// Number of rows in the result.
    pub rows: u64,
    /// The hash of the data in the result.
    pub answer: Option<[u8; 32]>,
    /// The typed code of a refusal.
    pub error_code: Option<String>,
    /// The timed phases.
    pub spans: Vec<CallSpan>,
}

#[derive(Default)]
struct Notes {
    call: CollectedCall,
    used: Option<Sha256>,
    generated: Option<Sha256>,
}

/// Collects the facts of one call. Shared by everything that works on the call.
pub struct CallCollector {
    id: ActivityId,
    /// Whether phases are timed.
    is_timed: bool,
    notes: Mutex<Notes>,
}

impl CallCollector {
    /// A collector for the call `id`. It records phases only if `is_timed`.
    pub fn new(id: ActivityId, is_timed: bool) -> Self {
        Self {
            id,
            is_timed,
            notes: Mutex::default(),
        }
    }

    /// The id the call is recorded under.
    pub fn id(&self) -> ActivityId {
        self.id
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a grant the call reads or writes under.
    pub fn use_grant(&self, grant: &str, connection: &str, dataset: &str, mapping: [u8; 32]) {
        let mut notes = self.notes();
        let grants = &mut notes.call.grants;
        let is_noted = |it: &GrantUse| it.connection == connection && it.mapping == mapping;
        if grants.len() < MAX_LISTED_NAMES && !grants.iter().any(is_noted) {
            grants.push(GrantUse {
                grant: grant.to_owned(),
                connection: connection.to_owned(),
                dataset: dataset.to_owned(),
                mapping,
            });
        }
    }

    /// Adds a stream the call reads or writes.
    pub fn use_stream(&self, connection: &str, stream: &str) {
        let mut notes = self.notes();
        let streams = &mut notes.call.streams;
        let is_noted = |it: &String| {
            let rest = it.strip_prefix(connection);
            rest.and_then(|rest| rest.strip_prefix('/')) == Some(stream)
        };
        if streams.len() < MAX_LISTED_NAMES && !streams.iter().any(is_noted) {
            streams.push(format!("{connection}/{stream}"));
        }
    }

    /// Adds records the call reads.
    pub fn use_records(&self, ids: impl IntoIterator<Item = String>) {
        let Notes { call, used, .. } = &mut *self.notes();
        for id in ids {
            list(&mut call.used, used, id);
        }
    }

    /// Adds records the call makes or changes.
    pub fn generate_records(&self, ids: impl IntoIterator<Item = String>) {
        let Notes {
            call, generated, ..
        } = &mut *self.notes();
        for id in ids {
            list(&mut call.generated, generated, id);
        }
    }

    /// Adds to the number of rows in the result.
    pub fn add_rows(&self, rows: usize) {
        self.notes().call.rows += rows as u64;
    }

    /// Hashes the data of the result: the part that a repeated call must reproduce.
    pub fn set_answer(&self, data: &[u8]) {
        let sum = sha256(data);
        self.notes().call.answer = Some(sum);
    }

    /// Sets the code of a refusal.
    pub fn set_error_code(&self, code: &str) {
        self.notes().call.error_code = Some(code.to_owned());
    }

    /// Adds a phase that ends now, if phases are timed.
    pub fn add_span(&self, name: &'static str, source: Option<&str>, began: Instant) {
        if !self.is_timed {
            return;
        }
        let ended = Instant::now();
        let spans = &mut self.notes().call.spans;
        if spans.len() < MAX_SPANS {
            spans.push(CallSpan {
                name,
                source: source.map(str::to_owned),
                began,
                ended,
            });
        }
    }

    /// Takes the collected facts.
    pub fn take(&self) -> CollectedCall {
        let Notes {
            mut call,
            used,
            generated,
        } = std::mem::take(&mut *self.notes());
        call.used.digest = used.map(|hash| hash.finalize().into());
        call.generated.digest = generated.map(|hash| hash.finalize().into());
        call
    }
}

/// Adds an id to a list, and to the digest once the list is full.
fn list(records: &mut RecordList, digest: &mut Option<Sha256>, id: String) {
    if digest.is_none() && records.ids.contains(&id) {
        return;
    }
    records.total += 1;
    if records.ids.len() < MAX_LISTED_RECORDS {
        records.ids.push(id);
        return;
    }
    let hash = digest.get_or_insert_with(|| {
        let mut hash = Sha256::new();
        records.ids.iter().for_each(|id| add_id(&mut hash, id));
        hash
    });
    add_id(hash, &id);
}

fn add_id(hash: &mut Sha256, id: &str) {
    hash.update(id.as_bytes());
    hash.update([0]);
}
