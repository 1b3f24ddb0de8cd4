//! Short reads of a file, run on the caller's thread.
//!
//! A lookup by key takes SQLite less time than handing it to a blocking thread would. [`try_read`]
//! therefore makes one attempt where it stands. These limits keep it from blocking the runtime:
//!
//! - only a read of one row, or of at most [`MAX_ROWS`] rows from a list of values such as keys, is
//!   tried;
//! - nothing is waited for: no session is opened, no shape is read, no lock is waited for, and an
//!   answer that does not fit the queue is given up;
//! - SQLite stops it after [`MAX_STEPS`] steps, and reads no value of more than
//!   [`MAX_VALUE_BYTES`];
//! - what remains is a page that the disk is slow to deliver: after a read that took longer than
//!   [`MAX_TIME`], the next [`BACKOFF_READS`] reads are not tried.
//!
//! An attempt that is given up has sent nothing, and a blocking thread starts over.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use rusqlite::limits::Limit;
use wayleave_plan::plan::{Predicate, Read};
use wayleave_store::{OnMalformed, RowSender};

use super::pool::{FileIdentity, LOCK_TIMEOUT, SqliteSession};
use super::read::Inner;
use super::read_attempt::ReadAttempt;
use super::watchdog::Watchdog;
use crate::compile::PlanParts;
use crate::pool::Slot;
use crate::read_task::StopCondition;

/// Maximum number of rows of a read, and of values in its list.
const MAX_ROWS: u32 = 16;
/// Virtual machine steps a read may take; a lookup by key takes a few dozen.
const MAX_STEPS: i32 = 500;
/// Largest value that is copied.
const MAX_VALUE_BYTES: i32 = 64 * 1024;
/// A read that takes longer met a slow disk.
const MAX_TIME: Duration = Duration::from_millis(1);
/// Reads that are not tried inline after a slow one.
const BACKOFF_READS: u32 = 1_000;

/// Number of reads of a file that are still to skip the inline attempt.
#[derive(Default)]
pub(super) struct InlineBackoff(AtomicU32);

impl InlineBackoff {
    /// Whether this read is one of them.
    fn skips(&self) -> bool {
        let less = |left: u32| left.checked_sub(1);
        let skipped = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        skipped.is_ok()
    }
}

/// Answers on the caller's thread, within the limits above, and returns whether it did.
pub(super) fn try_read(
    inner: &Inner,
    slot: &Slot<SqliteSession>,
    plan: PlanParts<'_>,
    sender: &mut RowSender,
    stop: &StopCondition,
) -> bool {
    if sender.on_malformed() != OnMalformed::Fail || !is_short(plan) || inner.inline.skips() {
        return false;
    }
    let Some(shape) = inner.shapes.get(plan.target) else {
        return false;
    };
    let started = Instant::now();
    let identity = FileIdentity::read(&inner.file);
    let Some(mut session) = slot.idle(|session| session.is_same_file(identity)) else {
        return false;
    };
    let watchdog = Watchdog::inline(stop.clone(), sender.receiver_gone());
    let work = ReadAttempt {
        inner,
        watchdog: &watchdog,
        may_wait: false,
    };
    let answered = limit(&mut session.connection).is_ok()
        && (work.attempt(&session, Some(shape), plan, sender)).is_ok();
    // A session that keeps these limits would fail other reads, so it is not used again.
    if unlimit(&mut session.connection).is_ok() {
        slot.keep(session);
    }
    if started.elapsed() > MAX_TIME {
        inner.inline.0.store(BACKOFF_READS, Ordering::Relaxed);
    }
    answered || !sender.restart()
}

/// Makes a session fail where it would wait for a lock, take more steps, or read a large value.
fn limit(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(Duration::ZERO)?;
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)?;
    connection.progress_handler(MAX_STEPS, Some(|| true))
}

/// Undoes [`limit`].
fn unlimit(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.progress_handler(0, None::<fn() -> bool>)?;
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, i32::MAX)?;
    connection.busy_timeout(LOCK_TIMEOUT)
}

/// Whether a plan reads one row of one table, or a few by key.
fn is_short(plan: PlanParts<'_>) -> bool {
    plan.joined_tables().is_empty()
        && matches!(plan.read, Read::Rows(rows) if rows.per_parent.is_none()
        && (rows.limit == 1 || (rows.limit <= MAX_ROWS && names_few_rows(&rows.predicate))))
}

fn names_few_rows(predicate: &Predicate) -> bool {
    match predicate {
        Predicate::In {
            values,
            negated: false,
            ..
        } => u32::try_from(values.len()).is_ok_and(|many| many <= MAX_ROWS),
        Predicate::And(parts) => parts.iter().any(names_few_rows),
        Predicate::Granted(granted) => names_few_rows(granted),
        _ => false,
    }
}
