//! The watcher of one stream: polls it while there are subscribers, and notifies each of the
//! changes that it may see.
//!
//! Subscribers with the same view form one group, compared once. Where several groups watch a
//! stream, one read of the whole stream decides whether any group has to be read.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::broadcast::{self, error::RecvError};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use wayleave_plan::package::Package;
use wayleave_plan::query::QueryPlan;
use wayleave_store::StoreError;

use super::digests::{RecordChangeKind, RecordDigests};
use super::group::{Group, GroupChanges, WatchedRecords};
use super::member::{Admission, Interest, JoinRequest, Member, RecordChange};
use super::reader::{ReadFailure, StreamReader};
use super::{ChangeCounts, refusal};
use crate::service::WrittenStream;

/// Maximum time between two attempts to read a failing source.
const MAX_BACKOFF: Duration = Duration::from_mins(1);

/// Number of subscribers notified before yielding to other tasks.
const MAX_BURST: usize = 32;

pub(super) struct Watcher {
    reader: StreamReader,
    joining: UnboundedReceiver<JoinRequest>,
    left: Arc<Notify>,
    dataset_changes: watch::Receiver<u64>,
    writes: broadcast::Receiver<WrittenStream>,
    members: Vec<Member>,
    groups: Vec<Group>,
    next_group: u64,
    /// The store's change token when all groups were last compared.
    token: Option<u64>,
    /// Digests of the whole stream at the last read.
    whole: Option<RecordDigests>,
    failures: u32,
    /// Counts every change, whichever subscriber sees it.
    seen: watch::Sender<ChangeCounts>,
}

/// Why a watcher checks its stream.
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
        joining: UnboundedReceiver<JoinRequest>,
        left: Arc<Notify>,
        seen: watch::Sender<ChangeCounts>,
    ) -> Self {
        Self {
            dataset_changes: reader.service.dataset_changes(),
            writes: reader.service.writes(),
            reader,
            joining,
            left,
            members: Vec::new(),
            groups: Vec::new(),
            next_group: 0,
            token: None,
            whole: None,
            failures: 0,
            seen,
        }
    }

    /// Watches until the last subscriber has left. `retire` removes the watcher, so that nobody can
    /// join, unless somebody is joining.
    pub(super) async fn run(mut self, retire: impl Fn(&UnboundedReceiver<JoinRequest>) -> bool) {
        let stop = self.reader.stop.clone();
        let mut next = Instant::now() + self.reader.options().interval;
        loop {
            let reason = tokio::select! {
                () = stop.cancelled() => Reason::Stop,
                joined = self.joining.recv() => {
                    self.join(joined);
                    Reason::Members
                }
                _ = self.dataset_changes.changed() => Reason::Members,
                () = self.left.notified() => Reason::Left,
                written = self.writes.recv() => match written {
                    Ok(written) if !self.reader.key.is_of(&written) => continue,
                    // The missed writes may include this stream.
                    Ok(_) | Err(RecvError::Lagged(_)) => Reason::Interval,
                    Err(RecvError::Closed) => Reason::Stop,
                },
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
            let joins = self.members.iter().any(Member::awaits_answer);
            if joins || !matches!(reason, Reason::Left) {
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = self.poll(&reason) => {}
                }
            }
            if matches!(reason, Reason::Interval) {
                next = Instant::now() + self.pause();
            }
            if self.members.is_empty() && retire(&self.joining) {
                return;
            }
        }
    }

    fn join(&mut self, joined: Option<JoinRequest>) {
        if let Some(joined) = joined {
            self.members.push(Member {
                subscriber: joined.subscriber,
                interest: joined.interest,
                is_over: joined.is_over,
                seen: None,
                group: None,
                admission: Some(joined.admission),
            });
        }
    }

    /// How long to wait before the stream is read again.
    fn pause(&self) -> Duration {
        let interval = self.reader.options().interval;
        let factor = 1_u32 << self.failures.min(6);
        interval
            .saturating_mul(factor)
            .min(MAX_BACKOFF.max(interval))
    }

    /// Compares the stream with the state each group saw last, and notifies of changes.
    async fn poll(&mut self, reason: &Reason) {
        self.regroup();
        self.refuse_suspended();
        if self.groups.iter().all(Group::is_suspended) {
            return;
        }
        // Taken before the rows are read, so that a concurrent change is found by the next check.
        let token = self.change_token().await;
        let mut read = self.groups.iter().filter(|it| !it.is_suspended());
        let is_known = read.all(Group::is_known);
        let read = self.groups.iter().filter(|it| !it.is_suspended());
        let ids: Vec<u64> = read.map(|group| group.id).collect();
        if token.is_some() && token == self.token && is_known && !self.has_new_keys() {
            self.admit(&ids);
            return;
        }
        self.token = None;
        let is_whole = matches!(reason, Reason::Interval) || token.is_some();
        let changed = is_whole && self.has_changed().await;
        let mut is_complete = true;
        for id in ids {
            if changed || self.is_needed(id, is_whole) {
                is_complete &= self.compare(id).await;
            }
        }
        if is_complete {
            self.failures = 0;
            self.token = token;
        } else {
            // The next check must not treat the stream as unchanged.
            self.whole = None;
            self.failures = self.failures.saturating_add(1);
        }
    }

    /// A token that changes when anything the groups read may have changed; `None` if a store has
    /// none.
    async fn change_token(&self) -> Option<u64> {
        let mut hasher = DefaultHasher::new();
        let read = self.groups.iter().filter(|it| !it.is_suspended());
        for (place, group) in read.enumerate() {
            // Every group reads the stream itself; row filters may also follow relations to others.
            if place == 0 || group.reads_other_streams() {
                let token = self.reader.change_token(group.plan.rows()).await?;
                token.hash(&mut hasher);
            }
        }
        Some(hasher.finish())
    }

    /// Whether a group has to be read although no change of the stream is known.
    fn is_needed(&self, id: u64, is_whole: bool) -> bool {
        let Some(group) = self.groups.iter().find(|group| group.id == id) else {
            return false;
        };
        let is_joined = is_whole && group.reads_other_streams();
        let mut members = self.members.iter();
        let joins = members.any(|it| it.group == Some(group.id) && it.is_joining());
        is_joined || joins || !group.is_known()
    }

    /// Whether a joining member watches single records of a stream too large to be read whole.
    fn has_new_keys(&self) -> bool {
        self.groups.iter().any(|group| {
            let mut joining = self.members.iter().filter(|it| it.is_joining());
            !group.is_suspended()
                && group.is_followed()
                && joining.any(|it| it.group == Some(group.id))
        })
    }

    /// Whether the stream changed. Assumed where checking is no cheaper than comparing every group.
    async fn has_changed(&mut self) -> bool {
        if self.groups.len() < 2 || self.groups.iter().any(Group::is_followed) {
            self.whole = None;
            return true;
        }
        let Ok(plan) = self.reader.plan(&Package::local()) else {
            return true;
        };
        let whole = self.reader.digests(&plan).await.ok();
        let same = whole.is_some() && self.whole == whole;
        self.whole = whole;
        !same
    }

    /// Reads a group and notifies its members of changes. Returns whether the read succeeded.
    async fn compare(&mut self, id: u64) -> bool {
        // Retry once after members were removed: the others can still be notified.
        for _ in 0..2 {
            let wanted = self.wanted(id);
            let Some(group) = self.groups.iter_mut().find(|group| group.id == id) else {
                return true;
            };
            match group.read_changes(&self.reader, &wanted).await {
                Ok(changes) => {
                    self.count(&changes);
                    self.notify(id, &changes).await;
                    self.admit(&[id]);
                    return true;
                }
                Err(failure) => {
                    self.reader.report(group.plan.rows(), &failure);
                    if !self.fail(id, &failure) {
                        return false;
                    }
                }
            }
        }
        true
    }

    /// The records watched by the members of a group.
    fn wanted(&self, group: u64) -> WatchedRecords {
        let mut wanted = WatchedRecords::default();
        for member in self.members.iter().filter(|it| it.group == Some(group)) {
            match &member.interest {
                Interest::Records => wanted.records = true,
                Interest::Record(key) => wanted.keys.push(key.clone()),
            }
        }
        wanted.keys.sort_by(|one, other| one.text.cmp(&other.text));
        wanted.keys.dedup_by(|one, other| one.text == other.text);
        wanted
    }

    /// Signals a change to code that reads the stream itself.
    fn count(&self, changes: &GroupChanges) {
        if changes.is_everything || !changes.records.is_empty() || !changes.keyed.is_empty() {
            let key = &self.reader.key;
            let stream = (key.connection_id.clone(), key.stream.clone());
            self.seen
                .send_modify(|seen| *seen.entry(stream).or_default() += 1);
        }
    }

    async fn notify(&self, group: u64, changes: &GroupChanges) {
        let key = &self.reader.key;
        let change = |at: &str, kind: RecordChangeKind| RecordChange {
            id: format!("{}/{}:{at}", key.connection_id, key.stream),
            kind,
        };
        let records = changes.records.iter();
        let mut all: Vec<RecordChange> = records.map(|(at, kind)| change(at, *kind)).collect();
        all.sort();
        let members = self.members.iter();
        let members = members.filter(|it| it.group == Some(group) && !it.is_joining());
        for (place, member) in members.enumerate() {
            // Thousands of subscribers woken at once would delay every call that comes meanwhile.
            if place % MAX_BURST == MAX_BURST - 1 {
                tokio::task::yield_now().await;
            }
            match &member.interest {
                _ if changes.is_everything => member.subscriber.changed(&[]),
                Interest::Records if all.is_empty() => {}
                Interest::Records => member.subscriber.changed(&all),
                Interest::Record(key) => {
                    if let Some(kind) = changes.keyed.get(&key.text) {
                        member.subscriber.changed(&[change(&key.text, *kind)]);
                    }
                }
            }
        }
    }

    /// Refuses members that await an answer about a suspended stream. The others are notified when
    /// it resumes.
    fn refuse_suspended(&mut self) {
        let suspended = self.groups.iter().filter_map(|it| {
            let stream = it.plan.rows().suspended_stream()?;
            Some((it.id, stream.to_string()))
        });
        let suspended: Vec<(u64, String)> = suspended.collect();
        for (id, stream) in suspended {
            let mut members = self.members.iter();
            if members.any(|it| it.group == Some(id) && it.awaits_answer()) {
                self.fail(id, &ReadFailure::Store(StoreError::Suspended { stream }));
            }
        }
    }

    /// Reassigns members to groups after their package or the datasets have changed.
    fn regroup(&mut self) {
        let version = *self.dataset_changes.borrow_and_update();
        let mut members = std::mem::take(&mut self.members);
        members.retain_mut(|member| {
            // Gets no notifications until it is authorized again.
            let Some(package) = member.subscriber.package() else {
                return true;
            };
            if let Some((seen, seen_version)) = &member.seen
                && *seen_version == version
                && (Arc::ptr_eq(seen, &package) || *seen == package)
            {
                return true;
            }
            let Ok(plan) = self.reader.plan(&package) else {
                match member.admission.take() {
                    Some(Admission::Answered(answer)) => {
                        drop(answer.send(Err(refusal::not_served())));
                    }
                    Some(Admission::Notified) | None => {
                        member.subscriber.stream_ended(&self.reader.key);
                    }
                }
                return false;
            };
            let group = self.group(plan, &package);
            let moved = member.group.is_some_and(|before| before != group);
            member.seen = Some((package, version));
            member.group = Some(group);
            // A joining member is notified when it is admitted.
            if moved && !member.is_joining() {
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
    fn group(&mut self, plan: QueryPlan, package: &Arc<Package>) -> u64 {
        let mut groups = self.groups.iter();
        if let Some(group) = groups.find(|group| group.plan.rows() == plan.rows()) {
            return group.id;
        }
        self.next_group += 1;
        let group = Group::new(self.next_group, plan, Arc::clone(package));
        self.groups.push(group);
        self.next_group
    }

    /// Accepts the joining members of these groups.
    fn admit(&mut self, groups: &[u64]) {
        let members = self.members.iter_mut();
        for member in members.filter(|it| it.group.is_some_and(|id| groups.contains(&id))) {
            match member.admission.take() {
                // The subscriber may have left.
                Some(Admission::Answered(answer)) => drop(answer.send(Ok(()))),
                Some(Admission::Notified) => member.subscriber.changed(&[]),
                None => {}
            }
        }
    }

    /// Refuses the members of a group that await an answer and, if the failure is final, ends all
    /// members that it affects. Returns whether it is final, so that the others can be retried.
    fn fail(&mut self, group: u64, failure: &ReadFailure) -> bool {
        let key = &self.reader.key;
        let ends = failure.is_final();
        tracing::warn!(
            connection_id = key.connection_id,
            stream = key.stream,
            error = %failure,
            ends,
            "a stream cannot be watched"
        );
        let options = self.reader.options();
        self.members.retain_mut(|member| {
            let is_meant = match (failure, &member.interest) {
                (ReadFailure::NotFollowed, Interest::Record(_))
                | (ReadFailure::NotKeyed, Interest::Records) => false,
                _ => member.group == Some(group),
            };
            if !is_meant {
                return true;
            }
            match member.admission.take() {
                Some(Admission::Answered(answer)) => {
                    let _ = answer.send(Err(refusal::unwatched(key, failure, options)));
                    return false;
                }
                Some(Admission::Notified) if ends => member.subscriber.stream_refused(key),
                None if ends => member.subscriber.stream_ended(key),
                waiting => member.admission = waiting,
            }
            !ends
        });
        ends
    }
}
