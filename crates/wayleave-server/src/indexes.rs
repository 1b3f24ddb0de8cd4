//! The full-text indexes of a deployment: made when it begins to serve, kept fresh while it does.
//!
//! One task looks after all of them, one index at a time, so that indexing takes bounded memory
//! and one session of a source. Searches go on meanwhile, in the indexes there are.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use wayleave_ledger::FOLDER;
use wayleave_plan::value::Value;
use wayleave_search::{ANALYZER, Found, Index, IndexError, Place, Shelf, Spec};
use wayleave_surface::{Extent, Indexed, Indexes, ReadService, Searchable};

use crate::overview::with_causes;

/// The folder of indexes inside the project's own.
const FOLDER_OF_INDEXES: &str = "index";
/// How often changes are asked for.
const REFRESH: Duration = Duration::from_secs(30);
/// How often a stream whose changes cannot be followed is read whole again.
const REBUILD: Duration = Duration::from_hours(1);
/// How often one is whose changes can: deletions without a trace are seen only so.
const REBUILD_TRACKED: Duration = Duration::from_hours(24);
/// How long to wait for another process that is making the index.
const BUSY: Duration = Duration::from_secs(5);
/// How long to wait after a failure.
const RETRY: Duration = Duration::from_mins(1);

/// The shelf of a project's indexes.
pub(crate) fn shelf(folder: &Path) -> Shelf {
    Shelf::new(folder.join(FOLDER).join(FOLDER_OF_INDEXES))
}

/// The indexes of a deployment.
pub(crate) struct ServedIndexes {
    shelf: Shelf,
    served: Mutex<HashMap<(String, String), Indexed>>,
}

impl Indexes for ServedIndexes {
    fn index(&self, connection_id: &str, stream: &str, spec: &Spec) -> Indexed {
        let served = self.served.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (connection_id.to_owned(), stream.to_owned());
        match served.get(&key) {
            Some(Indexed::Ready(index)) if !is_of(index, spec) => Indexed::Making,
            Some(indexed) => indexed.clone(),
            None => Indexed::Making,
        }
    }
}

fn is_of(index: &Index, spec: &Spec) -> bool {
    let stamp = index.stamp();
    stamp.digest == spec.digest && stamp.fields == spec.fields
}

impl ServedIndexes {
    pub(crate) fn new(shelf: Shelf) -> Self {
        Self {
            shelf,
            served: Mutex::default(),
        }
    }

    pub(crate) fn shelf(&self) -> &Shelf {
        &self.shelf
    }

    fn serve(&self, what: &Searchable, indexed: Indexed) {
        let mut served = self.served.lock().unwrap_or_else(PoisonError::into_inner);
        served.insert((what.connection_id.clone(), what.stream.clone()), indexed);
    }

    /// Looks after the indexes of a service until told to stop.
    pub(crate) fn look_after(
        self: Arc<Self>,
        service: ReadService,
        stop: CancellationToken,
    ) -> JoinHandle<()> {
        tokio::spawn(async move {
            let mut kept: Vec<Kept> = service.searchable().into_iter().map(Kept::new).collect();
            self.forget_others(&kept).await;
            // First what is there already: it is served before anything new is made.
            for one in &mut kept {
                if let Some(place) = self.place(one) {
                    self.open(one, place).await;
                }
            }
            while !stop.is_cancelled() {
                for one in &mut kept {
                    if one.due <= Instant::now() && !stop.is_cancelled() {
                        self.attend(&service, one, &stop).await;
                    }
                }
                let next = kept.iter().map(|one| one.due).min();
                let Some(next) = next else { return };
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = tokio::time::sleep_until(next.into()) => {}
                }
            }
        })
    }

    /// What is not served any more leaves no words behind.
    async fn forget_others(&self, kept: &[Kept]) {
        let all = self.shelf.clone();
        let kept: Vec<(String, String)> = kept
            .iter()
            .map(|one| (one.what.connection_id.clone(), one.what.stream.clone()))
            .collect();
        let removed = tokio::task::spawn_blocking(move || {
            let kept: Vec<(&str, &str)> = kept
                .iter()
                .map(|(connection, stream)| (connection.as_str(), stream.as_str()))
                .collect();
            all.keep_only(&kept)
        });
        match removed.await {
            Ok(Ok(0)) => {}
            Ok(Ok(indexes)) => tracing::info!(indexes, "indexes served no more are removed"),
            Ok(Err(error)) => {
                tracing::warn!(error = with_causes(&error), "indexes cannot be removed");
            }
            Err(error) => tracing::warn!(%error, "indexes cannot be removed"),
        }
    }

    fn place(&self, one: &Kept) -> Option<Place> {
        self.shelf
            .place(&one.what.connection_id, &one.what.stream)
            .inspect_err(|error| tracing::warn!(%error, "an index has no place"))
            .ok()
    }

    /// Opens the index that is on disk, if it is whole and of what is served.
    async fn open(&self, one: &mut Kept, place: Place) {
        let spec = one.what.spec.clone();
        let opened = tokio::task::spawn_blocking(move || {
            let version = place.version()?;
            Ok::<_, IndexError>((place.open(&spec)?, version))
        });
        match opened.await {
            Ok(Ok((Found::Fit(index), version))) => {
                one.version = version;
                one.took(&index);
                self.serve(&one.what, Indexed::Ready(Arc::new(index)));
            }
            Ok(Ok((Found::Torn, _))) => {
                tracing::warn!(index = one.name(), "an index is damaged and is made again");
            }
            Ok(Ok((Found::Absent | Found::Unfit, _))) => {}
            Ok(Err(error)) => tracing::warn!(index = one.name(), %error, "an index cannot be read"),
            Err(error) => tracing::warn!(index = one.name(), %error, "an index cannot be read"),
        }
    }

    /// Makes an index or brings it up to date.
    async fn attend(&self, service: &ReadService, one: &mut Kept, stop: &CancellationToken) {
        let Some(place) = self.place(one) else {
            one.due = Instant::now() + REBUILD_TRACKED;
            return;
        };
        // Another process may have made it meanwhile.
        if place.version().ok().flatten() != one.version {
            self.open(one, place.clone()).await;
            if one.due > Instant::now() {
                return;
            }
        }
        let began = Instant::now();
        let (extent, since) = one.next();
        let made = service
            .index(&one.what, &place, extent, since, stop.child_token())
            .await;
        match made {
            Ok(index) => {
                tracing::info!(
                    index = one.name(),
                    documents = index.documents(),
                    milliseconds = began.elapsed().as_millis(),
                    whole = extent == Extent::Whole,
                    "indexed"
                );
                one.version = place.version().ok().flatten();
                one.took(&index);
                self.serve(&one.what, Indexed::Ready(Arc::new(index)));
            }
            Err(_) if stop.is_cancelled() => {}
            Err(IndexError::Busy) => one.due = Instant::now() + BUSY,
            Err(error) => {
                tracing::warn!(
                    index = one.name(),
                    error = with_causes(&error),
                    hint = error.hint(),
                    "a stream cannot be indexed"
                );
                // What cannot be followed any more is read whole.
                one.bookmark = None;
                one.due = Instant::now() + RETRY;
                if !one.is_served {
                    self.serve(&one.what, Indexed::Failed);
                }
            }
        }
    }
}

/// What there is of one index.
#[derive(Debug, Clone, Serialize)]
pub struct IndexStatus {
    /// The dataset.
    pub dataset: String,
    /// The connection.
    pub connection_id: String,
    /// The stream.
    pub stream: String,
    /// `ready`, `absent`, `outdated` (of another mapping) or `damaged`.
    pub state: &'static str,
    /// How many records it holds.
    pub documents: Option<u64>,
    /// What it takes on disk.
    pub bytes: u64,
    /// When reading its records began, as RFC 3339 in UTC.
    pub as_of: Option<String>,
    /// How its words are made.
    pub analyzer: &'static str,
    /// The fields that are searched.
    pub fields: Vec<String>,
    /// Whether changes are followed; if not, it is made again every hour while serving.
    pub follows_changes: bool,
}

/// What there is of the index of a stream, found by reading all of it.
pub(crate) fn status(shelf: &Shelf, what: &Searchable) -> Result<IndexStatus, IndexError> {
    let place = shelf.place(&what.connection_id, &what.stream)?;
    let found = place.open(&what.spec)?;
    let index = match &found {
        Found::Fit(index) => Some(index),
        Found::Absent | Found::Unfit | Found::Torn => None,
    };
    Ok(IndexStatus {
        dataset: what.connector_key.clone(),
        connection_id: what.connection_id.clone(),
        stream: what.stream.clone(),
        state: match &found {
            Found::Fit(_) => "ready",
            Found::Absent => "absent",
            Found::Unfit => "outdated",
            Found::Torn => "damaged",
        },
        documents: index.map(Index::documents),
        bytes: place.usage()?.bytes,
        as_of: index.and_then(|it| time(it.stamp().as_of)),
        analyzer: ANALYZER,
        fields: what.spec.fields.clone(),
        follows_changes: what.is_tracked,
    })
}

/// One index that is looked after.
struct Kept {
    what: Searchable,
    /// When to look at it next.
    due: Instant,
    /// When it is to be read whole again.
    rebuild: Instant,
    bookmark: Option<String>,
    version: Option<String>,
    is_served: bool,
}

impl Kept {
    fn new(what: Searchable) -> Self {
        let now = Instant::now();
        Self {
            what,
            due: now,
            rebuild: now,
            bookmark: None,
            version: None,
            is_served: false,
        }
    }

    fn name(&self) -> String {
        format!("{}/{}", self.what.connection_id, self.what.stream)
    }

    /// What to do next: follow changes where that is possible, else read all.
    fn next(&self) -> (Extent, Option<String>) {
        let follows = self.is_served && self.rebuild > Instant::now();
        match self.bookmark.clone().filter(|_| follows) {
            Some(bookmark) => (Extent::Changes, Some(bookmark)),
            None => (Extent::Whole, None),
        }
    }

    /// Takes note of an index that is served from now on.
    fn took(&mut self, index: &Index) {
        let now = Instant::now();
        let stamp = index.stamp();
        self.is_served = true;
        self.bookmark.clone_from(&stamp.bookmark);
        let since = age(stamp.built);
        let every = if self.what.is_tracked {
            REBUILD_TRACKED
        } else {
            REBUILD
        };
        self.rebuild = now + every.saturating_sub(since);
        self.due = if self.what.is_tracked {
            now + REFRESH.saturating_sub(age(stamp.as_of))
        } else {
            self.rebuild
        };
    }
}

fn time(seconds: i64) -> Option<String> {
    Value::Datetime(seconds.saturating_mul(1_000_000)).to_text()
}

fn age(seconds: i64) -> Duration {
    let then = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
    let since = std::time::SystemTime::UNIX_EPOCH + then;
    since.elapsed().unwrap_or_default()
}
