//! Ends a read of a file early: because of its caller, the clock, a program waiting to write, or
//! the disk.
//!
//! SQLite calls [`Watchdog::must_end`] every thousand virtual machine steps, so the check is cheap
//! and inspects files only now and then.

use std::fs;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use wayleave_store::{ReceiverGone, StoreError};

use super::writers::{Transaction, WriterWatch};
use crate::read_task::StopCondition;

/// Interval between inspections of the files.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Maximum time that a read may delay a program that is ready to write. Most programs wait for five
/// seconds in all.
pub(super) const MAX_WRITER_WAIT: Duration = Duration::from_secs(1);
/// Maximum number of bytes that one read may write to temporary files, as sorts and groups of many
/// rows do.
pub(super) const MAX_TEMP_BYTES: u64 = 256 * 1024 * 1024;

/// Watches one read, on the thread that reads.
pub(super) struct Watchdog {
    stop: StopCondition,
    receiver_gone: ReceiverGone,
    writers: Option<WriterWatch>,
    /// Bytes this thread had written when the read began; `None` where the system does not report
    /// them.
    written_before: Option<u64>,
    polled: Mutex<PollState>,
}

struct PollState {
    next: Instant,
    /// The waiting writer, and since when it is known to wait.
    writer: Option<(Transaction, Instant)>,
    ended: Option<EndReason>,
}

#[derive(Debug, Clone, Copy)]
enum EndReason {
    ForWriter,
    ForSpace,
}

impl Watchdog {
    /// Watches a read on this thread.
    pub(super) fn new(
        stop: StopCondition,
        receiver_gone: ReceiverGone,
        writers: Option<WriterWatch>,
    ) -> Self {
        Self {
            writers,
            written_before: written_by_this_thread(),
            ..Self::inline(stop, receiver_gone)
        }
    }

    /// Watches an inline read, which ends before any file would be inspected.
    pub(super) fn inline(stop: StopCondition, receiver_gone: ReceiverGone) -> Self {
        Self {
            stop,
            receiver_gone,
            writers: None,
            written_before: None,
            polled: Mutex::new(PollState {
                next: Instant::now() + POLL_INTERVAL,
                writer: None,
                ended: None,
            }),
        }
    }

    /// Whether the read must end now.
    pub(super) fn must_end(&self) -> bool {
        self.receiver_gone.is_gone()
            || self.stop.stop_reason().is_some()
            || self.must_end_for_files()
    }

    /// Waits until the read must end, and returns the reason.
    pub(super) async fn wait(&self) -> StoreError {
        let looking = async {
            while !self.must_end_for_files() {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        tokio::select! {
            reason = self.stop.wait(&self.receiver_gone) => reason,
            () = looking => self.reason(),
        }
    }

    /// The reason why a read was ended.
    pub(super) fn reason(&self) -> StoreError {
        let ended = self
            .polled
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .ended;
        match ended {
            Some(EndReason::ForWriter) => StoreError::Locked {
                waited: MAX_WRITER_WAIT,
            },
            Some(EndReason::ForSpace) => StoreError::Unsupported {
                what: "a sort or grouping that needs more than 256 MiB of temporary files",
            },
            None => self.stop.stop_reason().unwrap_or(StoreError::Cancelled),
        }
    }

    fn must_end_for_files(&self) -> bool {
        let mut polled = self.polled.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if polled.ended.is_none() && now >= polled.next {
            polled.next = now + POLL_INTERVAL;
            polled.ended = self.check_files(&mut polled.writer, now);
        }
        polled.ended.is_some()
    }

    fn check_files(
        &self,
        known: &mut Option<(Transaction, Instant)>,
        now: Instant,
    ) -> Option<EndReason> {
        let waiting = self.writers.as_ref().and_then(WriterWatch::waiting);
        *known = match (*known, waiting) {
            (Some((same, since)), Some(it)) if same == it => Some((same, since)),
            (_, waiting) => waiting.map(|it| (it, now)),
        };
        if known.is_some_and(|(_, since)| now.duration_since(since) >= MAX_WRITER_WAIT) {
            return Some(EndReason::ForWriter);
        }
        let written = written_by_this_thread()?.saturating_sub(self.written_before?);
        (written > MAX_TEMP_BYTES).then_some(EndReason::ForSpace)
    }
}

/// Bytes this thread has written to files. A thread reading a file that it cannot write to writes
/// only temporary files.
fn written_by_this_thread() -> Option<u64> {
    let counters = fs::read_to_string("/proc/thread-self/io").ok()?;
    let written = counters.lines().find_map(|it| it.strip_prefix("wchar: "))?;
    written.parse().ok()
}
