//! The log as a server writes it: many callers, one writer, batches.
//!
//! Records wait in a queue. A task that waits for its record while no write is running becomes the
//! writer: it writes batches until the queue is empty, while the others wait for the batch that
//! contains their record. With `sync`, a thread of the log writes instead, because a disk takes
//! longer than a task may block.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak, mpsc},
    thread::{self, JoinHandle},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use crate::{
    activity::Activity,
    codec,
    error::LogError,
    pending::{BatchResult, PendingRecord, RecordBatch},
    segment,
    writer::{SegmentLimits, SegmentWriter},
};

/// Receives the seal of every closed segment.
pub type SealObserver = dyn Fn(SegmentSeal) + Send + Sync;

/// Options of a log.
#[derive(Clone)]
pub struct LogOptions {
    /// The folder of the log.
    pub folder: PathBuf,
    /// Whether a record is synced to disk before its call is answered.
    pub sync: bool,
    /// Size in bytes at which a segment is closed.
    pub segment_bytes: u64,
    /// Retention period of closed segments; unlimited if `None`.
    pub keep: Option<Duration>,
    /// Observer of closed segments.
    pub on_seal: Option<Arc<SealObserver>>,
}

impl LogOptions {
    /// Default size in bytes at which a segment is closed.
    pub const SEGMENT_BYTES: u64 = 16 << 20;

    /// The default options of a log in `folder`.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            sync: false,
            segment_bytes: Self::SEGMENT_BYTES,
            keep: None,
            on_seal: None,
        }
    }
}

/// The end of a closed segment, to be stored where a writer of the log cannot change it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentSeal {
    /// The id of the chain.
    pub writer: [u8; 16],
    /// The segment.
    pub segment: u64,
    /// The number of its last record.
    pub last_record: u64,
    /// The state of the chain after it.
    pub state: [u8; 32],
}

/// The log of a running server. Clones share it. Dropping the last one closes it.
#[derive(Clone)]
pub struct ActivityLog(Arc<Handle>);

/// Joins the threads of a log when its last clone is dropped.
struct Handle {
    shared: Arc<Shared>,
    /// The thread that writes if `sync` is set. Started on first use.
    sync_thread: OnceLock<Mutex<Option<JoinHandle<()>>>>,
}

pub(crate) struct Shared {
    pub(crate) options: LogOptions,
    queue: Mutex<Queue>,
    /// Notifies the log's thread of a queued record, or of the end.
    arrived: Condvar,
    writer: Mutex<Option<SegmentWriter>>,
    /// Started when there is a segment to pack or to drop.
    archiver: Mutex<Option<Archiver>>,
    itself: Weak<Shared>,
}

/// The thread that packs closed segments and drops old ones.
struct Archiver {
    tasks: mpsc::Sender<ArchiverTask>,
    thread: JoinHandle<()>,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<Vec<u8>>,
    /// The batch of the waiting records.
    batch: Arc<RecordBatch>,
    is_writing: bool,
    is_closed: bool,
    /// The error of the last batch; `None` once one succeeds.
    failure: Option<Arc<LogError>>,
}

/// A request to pack the closed segments of a writer's folder, and to drop those past retention.
struct ArchiverTask {
    folder: PathBuf,
    newest: u64,
}

/// Free disk space below which [`ActivityLog::check_folder`] fails.
const MIN_FREE_BYTES: u64 = 64 << 20;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

impl ActivityLog {
    /// A log, opened by its first record. If that fails, each further record tries again.
    pub fn new(options: LogOptions) -> Self {
        let shared = Arc::new_cyclic(|itself| Shared {
            options,
            queue: Mutex::default(),
            arrived: Condvar::new(),
            writer: Mutex::new(None),
            archiver: Mutex::new(None),
            itself: Weak::clone(itself),
        });
        Self(Arc::new(Handle {
            shared,
            sync_thread: OnceLock::new(),
        }))
    }

    /// Queues the record of a call. Unless the log's thread writes it, waiting for the returned
    /// [`PendingRecord`] or dropping it does.
    pub fn append(&self, activity: &Activity) -> PendingRecord {
        self.shared().append(codec::encode_activity(activity))
    }

    /// The shared state, with the log's thread running if `sync` is set.
    fn shared(&self) -> &Arc<Shared> {
        if self.0.shared.options.sync {
            self.0
                .sync_thread
                .get_or_init(|| Mutex::new(self.0.start()));
        }
        &self.0.shared
    }

    /// Checks whether calls can be recorded. After a failed write this opens the log again, so that
    /// service resumes when the disk does.
    pub fn check(&self) -> Result<(), Arc<LogError>> {
        let shared = self.shared();
        let failure = lock(&shared.queue).failure.clone();
        match failure {
            None => Ok(()),
            Some(_) => shared.reopen(),
        }
    }

    /// Opens the log now instead of with the first record.
    pub fn open(&self) -> Result<(), Arc<LogError>> {
        self.shared().reopen()
    }

    /// Closes the newest segment and begins another, for tests.
    pub fn rotate(&self) -> Result<(), Arc<LogError>> {
        self.shared().rotate()
    }

    /// Checks, without writing, whether a server could record calls in a folder.
    pub fn check_folder(folder: &Path) -> Result<(), LogError> {
        let read = segment::writers(folder).map_err(LogError::disk("read", folder))?;
        for writer in read {
            let files = segment::segments(&writer).map_err(LogError::disk("read", &writer))?;
            if let Some(last) = files.last().filter(|last| !last.archived) {
                let opened = std::fs::OpenOptions::new().write(true).open(&last.path);
                opened.map_err(LogError::disk("written", &last.path))?;
            }
        }
        let existing = folder
            .ancestors()
            .find(|path| path.exists())
            .unwrap_or(folder);
        let writable = rustix::fs::access(existing, rustix::fs::Access::WRITE_OK);
        writable.map_err(|error| LogError::disk("written", existing)(error.into()))?;
        let space = rustix::fs::statvfs(existing);
        let space = space.map_err(|error| LogError::disk("read", existing)(error.into()))?;
        if space.f_bavail.saturating_mul(space.f_frsize) < MIN_FREE_BYTES {
            let full = std::io::ErrorKind::StorageFull.into();
            return Err(LogError::disk("written for long", existing)(full));
        }
        Ok(())
    }

    /// The folder of the log.
    pub fn folder(&self) -> &Path {
        &self.0.shared.options.folder
    }
}

impl Handle {
    fn start(&self) -> Option<JoinHandle<()>> {
        let shared = Arc::clone(&self.shared);
        let thread = thread::Builder::new().name("activity-sync".to_owned());
        thread.spawn(move || shared.write_until_closed()).ok()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // Join the archiver first: it records what it drops.
        let archiver = lock(&self.shared.archiver).take();
        if let Some(Archiver { tasks, thread }) = archiver {
            drop(tasks);
            let _ = thread.join();
        }
        lock(&self.shared.queue).is_closed = true;
        self.shared.arrived.notify_all();
        if let Some(thread) = self
            .sync_thread
            .get()
            .and_then(|thread| lock(thread).take())
        {
            let _ = thread.join();
        }
    }
}

impl Shared {
    pub(crate) fn append(self: &Arc<Self>, body: Vec<u8>) -> PendingRecord {
        let mut queue = lock(&self.queue);
        let batch = if queue.is_closed {
            let closed = RecordBatch::default();
            closed.finish(Err(Arc::new(LogError::Closed)));
            Arc::new(closed)
        } else {
            queue.waiting.push(body);
            Arc::clone(&queue.batch)
        };
        drop(queue);
        if self.options.sync {
            self.arrived.notify_one();
        }
        PendingRecord {
            log: Arc::clone(self),
            batch,
        }
    }

    /// Writes the queued records, unless another task or the log's thread does.
    pub(crate) fn write_waiting(&self) {
        if self.options.sync {
            return;
        }
        let mut queue = lock(&self.queue);
        if queue.is_writing || queue.waiting.is_empty() {
            return;
        }
        queue.is_writing = true;
        drop(queue);
        while self.write_batch() {}
    }

    /// Writes one batch of queued records; returns whether there was any.
    fn write_batch(&self) -> bool {
        let (waiting, batch) = {
            let mut queue = lock(&self.queue);
            if queue.waiting.is_empty() {
                queue.is_writing = false;
                return false;
            }
            let waiting = std::mem::take(&mut queue.waiting);
            (waiting, std::mem::take(&mut queue.batch))
        };
        let result: BatchResult = self.commit(&waiting).map_err(Arc::new);
        let failure = result.as_ref().err().cloned();
        let before = std::mem::replace(&mut lock(&self.queue).failure, failure);
        match (&before, &result) {
            (None, Err(error)) => tracing::error!(
                error = %chain_text(error), hint = error.hint(), "calls cannot be recorded"
            ),
            (Some(_), Ok(())) => tracing::warn!("calls are recorded again"),
            _ => {}
        }
        batch.finish(result);
        true
    }

    fn write_until_closed(&self) {
        loop {
            let mut queue = lock(&self.queue);
            while queue.waiting.is_empty() && !queue.is_closed {
                let waited = self.arrived.wait(queue);
                queue = waited.unwrap_or_else(PoisonError::into_inner);
            }
            if queue.waiting.is_empty() {
                return;
            }
            queue.is_writing = true;
            drop(queue);
            while self.write_batch() {}
        }
    }

    fn commit(&self, bodies: &[Vec<u8>]) -> Result<(), LogError> {
        let mut place = lock(&self.writer);
        let writer = self.opened(&mut place)?;
        let ended = writer.rotate_if_due(now_ms());
        let written = match ended {
            Ok(ended) => {
                if ended.is_some() {
                    self.queue_archiving(writer);
                }
                writer.commit(bodies)
            }
            Err(error) => Err(error),
        };
        if written.is_err() {
            // Opened again by the next record: only that reveals what is on the disk.
            *place = None;
        }
        written
    }

    fn opened<'w>(
        &self,
        place: &'w mut Option<SegmentWriter>,
    ) -> Result<&'w mut SegmentWriter, LogError> {
        if place.is_none() {
            let limits = SegmentLimits {
                bytes: self.options.segment_bytes,
                sync: self.options.sync,
            };
            let writer = SegmentWriter::open(&self.options.folder, limits, now_ms())?;
            if self.options.keep.is_some() || has_unpacked(&writer) {
                self.queue_archiving(&writer);
            }
            *place = Some(writer);
        }
        place.as_mut().ok_or(LogError::Closed)
    }

    fn reopen(&self) -> Result<(), Arc<LogError>> {
        let mut place = lock(&self.writer);
        self.opened(&mut place).map(drop).map_err(Arc::new)
    }

    fn rotate(&self) -> Result<(), Arc<LogError>> {
        let mut place = lock(&self.writer);
        let writer = self.opened(&mut place).map_err(Arc::new)?;
        writer.rotate(now_ms()).map_err(Arc::new)?;
        self.queue_archiving(writer);
        Ok(())
    }

    fn queue_archiving(&self, writer: &SegmentWriter) {
        let mut archiver = lock(&self.archiver);
        if archiver.is_none() {
            *archiver = self.start_archiver();
        }
        if let Some(archiver) = archiver.as_ref() {
            let _ = archiver.tasks.send(ArchiverTask {
                folder: writer.folder().to_owned(),
                newest: writer.segment(),
            });
        }
    }

    fn start_archiver(&self) -> Option<Archiver> {
        let shared = self.itself.upgrade()?;
        let (tasks, receiver) = mpsc::channel();
        let thread = thread::Builder::new().name("activity-archive".to_owned());
        let thread = thread.spawn(move || shared.archive(&receiver)).ok()?;
        Some(Archiver { tasks, thread })
    }

    fn archive(self: &Arc<Self>, tasks: &mpsc::Receiver<ArchiverTask>) {
        while let Ok(ArchiverTask { folder, newest }) = tasks.recv() {
            if let Err(error) = self.pack_closed(&folder, newest) {
                tracing::error!(%error, folder = %folder.display(), "closed segments cannot be packed");
            }
            if let Err(error) = self.drop_old(&folder) {
                tracing::error!(%error, folder = %folder.display(), "old segments cannot be dropped");
            }
        }
    }
}

/// Whether an earlier writer left closed segments unpacked.
fn has_unpacked(writer: &SegmentWriter) -> bool {
    let files = segment::segments(writer.folder()).unwrap_or_default();
    let mut closed = files.iter().filter(|file| file.number < writer.segment());
    closed.any(|file| !file.archived || segment::open_path(writer.folder(), file.number).exists())
}

/// An error and its causes in one line.
fn chain_text(error: &LogError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}
