//! The watcher of one stream: reads it at an interval for as long as anyone is interested, and
//! tells each subscriber what changed of what it sees.
//!
//! Subscribers who see the same are one group, compared once. Where several groups watch a stream,
//! one read of all of it tells whether any group has to be read at all.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::Instant;
use wayleave_mcp::RpcError;
use wayleave_plan::package::Package;
use wayleave_plan::query::QueryPlan;
use wayleave_store::StoreError;

use super::digests::{ChangeKind, Changes, RecordDigests};
use super::reader::{ReadFailure, StreamReader};
use super::{StreamKey, refusal};

/// The longest time between two attempts to read a source that fails.
const MAX_BACKOFF: Duration = Duration::from_mins(1);

/// A change of a record, as one subscriber sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordChange {
    /// The record's id.
    pub id: String,
    /// What happened to it.
    pub kind: ChangeKind,
}

/// One who is told of changes.
pub(super) trait Subscriber: Send + Sync {
    /// Its package now; `None` while its authorization has ended.
    fn package(&self) -> Option<Arc<Package>>;
    /// Takes changes that happened at one time. Empty where what it may see has changed as a whole.
    fn changed(&self, changes: &[RecordChange]);
    /// One of the streams it watches is gone.
    fn stream_ended(&self, key: &StreamKey);
}

/// What of a stream is watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Interest {
    /// All records.
    Records,
    /// The record with this key.
    Record(Box<str>),
}

/// A new subscriber of a stream.
pub(super) struct Joining {
    pub(super) subscriber: Arc<dyn Subscriber>,
    pub(super) interest: Interest,
    /// Whether the interest has ended.
    pub(super) is_over: Arc<AtomicBool>,
    /// Answered when changes from then on are reported.
    pub(super) done: oneshot::Sender<Result<(), RpcError>>,
}

struct Member {
    subscriber: Arc<dyn Subscriber>,
    interest: Interest,
    is_over: Arc<AtomicBool>,
    /// The package and the datasets that its group was found for.
    seen: Option<(Arc<Package>, u64)>,
    group: Option<u64>,
    done: Option<oneshot::Sender<Result<(), RpcError>>>,
}

/// Subscribers who see the same.
struct Group {
    id: u64,
    plan: QueryPlan,
    /// What they saw last.
    records: Option<RecordDigests>,
}

pub(super) struct Watcher {
    reader: StreamReader,
    joining: UnboundedReceiver<Joining>,
    left: Arc<Notify>,
    worlds: watch::Receiver<u64>,
    members: Vec<Member>,
    groups: Vec<Group>,
    next_group: u64,
    /// The store's change token when all groups were last compared.
    token: Option<u64>,
    /// All of the stream, as last read.
    whole: Option<RecordDigests>,
    failures: u32,
}

/// Why a watcher looks at its stream.
enum Reason {
    /// A subscriber joined, or the served datasets changed.
    Members,
    /// A subscriber left.
    Left,
    Interval,
    Stop,
}

impl Watcher {
    pub(super) fn new(
        reader: StreamReader,
        joining: UnboundedReceiver<Joining>,
        left: Arc<Notify>,
    ) -> Self {
        Self {
            worlds: reader.service.worlds(),
            reader,
            joining,
            left,
            members: Vec::new(),
            groups: Vec::new(),
            next_group: 0,
            token: None,
            whole: None,
            failures: 0,
        }
    }

    /// Watches until nobody is interested; `retire` decides that no other can join any more.
    pub(super) async fn run(mut self, retire: impl Fn(&UnboundedReceiver<Joining>) -> bool) {
        let stop = self.reader.stop.clone();
        let mut next = Instant::now() + self.reader.options.interval;
        loop {
            let reason = tokio::select! {
                () = stop.cancelled() => Reason::Stop,
                joined = self.joining.recv() => {
                    self.join(joined);
                    Reason::Members
                }
                _ = self.worlds.changed() => Reason::Members,
                () = self.left.notified() => Reason::Left,
                () = tokio::time::sleep_until(next) => Reason::Interval,
            };
            if matches!(reason, Reason::Stop) {
                return;
            }
            while let Ok(joined) = self.joining.try_recv() {
                self.join(Some(joined));
            }
            self.members
                .retain(|member| !member.is_over.load(Ordering::Acquire));
            if !matches!(reason, Reason::Left) {
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = self.look() => {}
                }
                next = Instant::now() + self.pause();
            }
            if self.members.is_empty() && retire(&self.joining) {
                return;
            }
        }
    }

    fn join(&mut self, joined: Option<Joining>) {
        if let Some(joined) = joined {
            self.members.push(Member {
                subscriber: joined.subscriber,
                interest: joined.interest,
                is_over: joined.is_over,
                seen: None,
                group: None,
                done: Some(joined.done),
            });
        }
    }

    /// How long to wait before the stream is read again.
    fn pause(&self) -> Duration {
        let interval = self.reader.options.interval;
        let factor = 1_u32 << self.failures.min(6);
        interval.saturating_mul(factor).min(MAX_BACKOFF.max(interval))
    }

    /// Compares the stream with what each group saw last, and tells what changed.
    async fn look(&mut self) {
        self.regroup();
        let joins = self.members.iter().any(|member| member.done.is_some());
        let Some(first) = self.groups.first() else {
            return;
        };
        // Read before the rows, so that a change made meanwhile is looked for again.
        let token = self.reader.change_token(first.plan.rows()).await;
        let is_new = self.groups.iter().any(|group| group.records.is_none());
        if token.is_some() && token == self.token && !is_new {
            self.admit();
            return;
        }
        self.token = None;
        let changed = joins || self.has_changed().await;
        let mut failed = None;
        for at in 0..self.groups.len() {
            let Some(group) = self.groups.get(at) else {
                break;
            };
            // A row filter may follow relations, so such a group is always read.
            let is_joined = !group.plan.rows().joins().is_empty();
            if !changed && !is_joined && group.records.is_some() {
                continue;
            }
            if let Err(failure) = self.compare(at).await {
                failed = Some(failure);
            }
        }
        match failed {
            None => {
                self.failures = 0;
                self.token = token;
                self.admit();
            }
            Some(failure) => self.fail(&failure),
        }
    }

    /// Whether anything of the stream changed, where that is cheaper to find out than to compare
    /// every group.
    async fn has_changed(&mut self) -> bool {
        if self.groups.len() < 2 {
            self.whole = None;
            return true;
        }
        let Ok(plan) = self.reader.plan(&Package::local()) else {
            return true;
        };
        match self.reader.digests(&plan).await {
            Ok(whole) => {
                let same = self.whole.as_ref() == Some(&whole);
                self.whole = Some(whole);
                !same
            }
            Err(_) => {
                self.whole = None;
                true
            }
        }
    }

    /// Reads a group and tells its members what changed.
    async fn compare(&mut self, at: usize) -> Result<(), ReadFailure> {
        let Some(group) = self.groups.get(at) else {
            return Ok(());
        };
        let now = self.reader.digests(&group.plan).await;
        if now.is_err() {
            // The next look must not take the stream for unchanged.
            self.whole = None;
        }
        let now = now?;
        let Some(group) = self.groups.get_mut(at) else {
            return Ok(());
        };
        let before = group.records.replace(now);
        if let (Some(before), Some(now)) = (before, &group.records) {
            let changes = before.changes_to(now);
            let id = group.id;
            self.tell(id, &changes);
        }
        Ok(())
    }

    fn tell(&self, group: u64, changes: &Changes) {
        if changes.is_empty() {
            return;
        }
        let key = &self.reader.key;
        let change = |(at, kind): (&Box<str>, &ChangeKind)| RecordChange {
            id: format!("{}/{}:{at}", key.connection_id, key.stream),
            kind: *kind,
        };
        let all: Vec<RecordChange> = changes.iter().map(change).collect();
        let members = self.members.iter();
        // Those who are joining have not been answered, so they need not be told.
        for member in members.filter(|it| it.group == Some(group) && it.done.is_none()) {
            match &member.interest {
                Interest::Records => member.subscriber.changed(&all),
                Interest::Record(at) => {
                    if let Some(found) = changes.get_key_value(at) {
                        member.subscriber.changed(&[change(found)]);
                    }
                }
            }
        }
    }

    /// Finds the group of every member whose package, or the datasets, have changed.
    fn regroup(&mut self) {
        let world = *self.worlds.borrow_and_update();
        let mut members = std::mem::take(&mut self.members);
        members.retain_mut(|member| {
            // It is told nothing until it is authorized again.
            let Some(package) = member.subscriber.package() else {
                return true;
            };
            if let Some((seen, of_world)) = &member.seen
                && *of_world == world
                && (Arc::ptr_eq(seen, &package) || *seen == package)
            {
                return true;
            }
            let Ok(plan) = self.reader.plan(&package) else {
                match member.done.take() {
                    Some(done) => drop(done.send(Err(refusal::not_served()))),
                    None => member.subscriber.stream_ended(&self.reader.key),
                }
                return false;
            };
            let group = self.group(plan);
            let moved = member.group.is_some_and(|before| before != group);
            member.seen = Some((package, world));
            member.group = Some(group);
            if moved {
                member.subscriber.changed(&[]);
            }
            true
        });
        self.members = members;
        let members = &self.members;
        self.groups
            .retain(|group| members.iter().any(|it| it.group == Some(group.id)));
    }

    /// The group with this plan.
    fn group(&mut self, plan: QueryPlan) -> u64 {
        let mut groups = self.groups.iter();
        if let Some(group) = groups.find(|group| group.plan.rows() == plan.rows()) {
            return group.id;
        }
        self.next_group += 1;
        self.groups.push(Group {
            id: self.next_group,
            plan,
            records: None,
        });
        self.next_group
    }

    /// Answers those who joined.
    fn admit(&mut self) {
        for member in &mut self.members {
            if let Some(done) = member.done.take() {
                // Whoever asked may have left.
                let _ = done.send(Ok(()));
            }
        }
    }

    fn fail(&mut self, failure: &ReadFailure) {
        let key = &self.reader.key;
        let ends = matches!(
            failure,
            ReadFailure::TooLarge | ReadFailure::Store(StoreError::SchemaDrift { .. })
        );
        if !ends {
            self.failures = self.failures.saturating_add(1);
        }
        tracing::warn!(
            connection_id = key.connection_id,
            stream = key.stream,
            error = %failure,
            ends,
            "a stream cannot be watched"
        );
        let options = self.reader.options;
        self.members.retain_mut(|member| match member.done.take() {
            Some(done) => {
                let _ = done.send(Err(refusal::unwatched(key, failure, options)));
                false
            }
            None if ends => {
                member.subscriber.stream_ended(&self.reader.key);
                false
            }
            None => true,
        });
    }
}
