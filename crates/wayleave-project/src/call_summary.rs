//! Statistics of calls over time: counts, unanswered calls, latencies, and the newest calls.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap},
};

use wayleave_activity::{
    Activity, ActivityFilter, ActivityId, ActivityReader, CallOutcome, ReadError,
};

/// Maximum number of calls one summary reads, newest first, to bound the cost of a page.
pub const MAX_SUMMARIZED_CALLS: usize = 200_000;
/// Calls on one page of the list.
pub const PAGE_CALLS: usize = 30;
/// JSON-RPC code of an internal error.
const INTERNAL_ERROR: i32 = -32603;
/// Buckets per power of two. Latencies below this many microseconds are counted exactly.
const BUCKETS_PER_OCTAVE: u64 = 32;

/// How a call ended, as people filter by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallVerdict {
    /// With a result.
    Answered,
    /// Not carried out: not allowed, over budget, or an invalid request.
    Refused,
    /// With an error of the server or of a source.
    Failed,
    /// Its client cancelled it or left.
    Ended,
}

impl CallVerdict {
    /// Every verdict.
    pub const ALL: [Self; 4] = [Self::Answered, Self::Refused, Self::Failed, Self::Ended];

    /// The verdict in a word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::Ended => "ended early",
        }
    }

    /// The verdict of a word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == word)
    }
}

impl From<&CallOutcome> for CallVerdict {
    fn from(outcome: &CallOutcome) -> Self {
        match outcome {
            CallOutcome::Completed => Self::Answered,
            CallOutcome::ToolError { code } => match code.as_deref() {
                Some("source_unavailable" | "timeout" | "internal" | "unavailable") => Self::Failed,
                _ => Self::Refused,
            },
            // Only this code is the server's fault; others describe a fault of the request.
            CallOutcome::Failed {
                code: INTERNAL_ERROR,
            } => Self::Failed,
            CallOutcome::Failed { .. } | CallOutcome::Refused { .. } => Self::Refused,
            CallOutcome::Cancelled | CallOutcome::Abandoned => Self::Ended,
        }
    }
}

/// Selects the calls of a summary.
#[derive(Debug, Clone, Default)]
pub struct CallQuery {
    /// Everything but the verdict.
    pub filter: ActivityFilter,
    /// How they ended.
    pub verdict: Option<CallVerdict>,
    /// Lists only calls older than this one. The totals count all.
    pub before: Option<ActivityId>,
    /// The width of a bar in milliseconds.
    pub bar_ms: u64,
    /// Number of bars, from `filter.since_ms` on.
    pub bars: usize,
}

/// Calls of one bar.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallBar {
    /// When it begins, in milliseconds since 1970-01-01T00:00:00Z.
    pub from_ms: u64,
    /// All calls.
    pub calls: u64,
    /// Calls that were not answered.
    pub unanswered: u64,
    /// Median latency in microseconds.
    pub median: Option<u64>,
    /// 95th percentile of the latency in microseconds.
    pub p95: Option<u64>,
}

/// Statistics of the selected calls.
#[derive(Debug, Clone, Default)]
pub struct CallSummary {
    /// All calls.
    pub calls: u64,
    /// Calls that were not answered.
    pub unanswered: u64,
    /// Median latency in microseconds.
    pub median: Option<u64>,
    /// 95th percentile of the latency in microseconds.
    pub p95: Option<u64>,
    /// The calls over time.
    pub bars: Vec<CallBar>,
    /// The newest calls, newest first.
    pub newest: Vec<Activity>,
    /// Whether there are calls older than those listed.
    pub has_older: bool,
    /// Tools that were called, by name.
    pub tools: BTreeSet<String>,
    /// Whether all calls were read; if not, the counts cover only the newest.
    pub is_whole: bool,
}

/// When tokens and grants were last used, and datasets called, among the newest calls.
#[derive(Debug, Clone, Default)]
pub struct RecentUse {
    /// The last call of each token, in milliseconds since 1970-01-01T00:00:00Z.
    pub tokens: BTreeMap<String, u64>,
    /// The last call under each grant.
    pub grants: BTreeMap<String, u64>,
    /// How many calls used each dataset.
    pub datasets: BTreeMap<String, u64>,
}

/// The rank, from 1, of the smallest of `count` values that `percent` of them do not exceed.
pub(crate) fn rank(count: u64, percent: u64) -> u64 {
    (count * percent).div_ceil(100).max(1)
}

/// Histogram of latencies in buckets of about three percent: a million take a kilobyte.
#[derive(Debug, Clone, Default)]
struct Latencies {
    buckets: BTreeMap<u64, u64>,
    count: u64,
}

impl Latencies {
    fn add(&mut self, micros: u64) {
        *self.buckets.entry(bucket(micros)).or_default() += 1;
        self.count += 1;
    }

    /// The latency that `percent` of the calls do not exceed.
    fn percentile(&self, percent: u64) -> Option<u64> {
        let wanted = rank(self.count, percent);
        let mut passed = 0;
        let found = self.buckets.iter().find(|(_, many)| {
            passed += **many;
            passed >= wanted
        });
        found.map(|(bucket, _)| upper_end(*bucket))
    }
}

/// The bucket of a latency: itself if small, else its power of two and the fraction above it.
fn bucket(micros: u64) -> u64 {
    if micros < BUCKETS_PER_OCTAVE {
        return micros;
    }
    let doubling = u64::from(micros.ilog2() - BUCKETS_PER_OCTAVE.ilog2());
    BUCKETS_PER_OCTAVE * doubling + (micros >> doubling)
}

/// The largest latency of a bucket.
fn upper_end(bucket: u64) -> u64 {
    if bucket < BUCKETS_PER_OCTAVE * 2 {
        return bucket;
    }
    let doubling = bucket / BUCKETS_PER_OCTAVE - 1;
    let part = bucket - BUCKETS_PER_OCTAVE * doubling;
    ((part + 1) << doubling) - 1
}

/// Summarizes the selected calls.
pub fn summarize(reader: &ActivityReader, query: &CallQuery) -> Result<CallSummary, ReadError> {
    let since = query.filter.since_ms.unwrap_or(0);
    let bar_ms = query.bar_ms.max(1);
    let mut bars: Vec<(CallBar, Latencies)> = (0..query.bars as u64)
        .map(|at| {
            let bar = CallBar {
                from_ms: since + at * bar_ms,
                ..CallBar::default()
            };
            (bar, Latencies::default())
        })
        .collect();
    let (mut summary, mut latencies) = (CallSummary::default(), Latencies::default());
    let mut newest = NewestCalls::new(query.before);
    summary.is_whole = reader.recent(&query.filter, MAX_SUMMARIZED_CALLS, |activity| {
        if let Some(target) = activity
            .target
            .as_ref()
            .filter(|_| activity.method == "tools/call")
        {
            summary.tools.insert(target.clone());
        }
        let verdict = CallVerdict::from(&activity.outcome);
        if query.verdict.is_some_and(|wanted| wanted != verdict) {
            return;
        }
        let unanswered = u64::from(verdict != CallVerdict::Answered);
        summary.calls += 1;
        summary.unanswered += unanswered;
        latencies.add(activity.micros);
        let at = activity.id.started_ms().saturating_sub(since) / bar_ms;
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        if let Some((bar, of_bar)) = bars.get_mut(at) {
            bar.calls += 1;
            bar.unanswered += unanswered;
            of_bar.add(activity.micros);
        }
        newest.offer(activity);
    })?;
    (summary.median, summary.p95) = (latencies.percentile(50), latencies.percentile(95));
    let bars = bars.into_iter().map(|(bar, of_bar)| CallBar {
        median: of_bar.percentile(50),
        p95: of_bar.percentile(95),
        ..bar
    });
    summary.bars = bars.collect();
    (summary.newest, summary.has_older) = newest.finish();
    Ok(summary)
}

/// Last use of tokens and grants, and calls per dataset, among about `limit` newest calls.
pub fn recent_use(
    reader: &ActivityReader,
    since_ms: u64,
    limit: usize,
) -> Result<RecentUse, ReadError> {
    let filter = ActivityFilter {
        since_ms: Some(since_ms),
        ..ActivityFilter::default()
    };
    let mut found = RecentUse::default();
    reader.recent(&filter, limit, |activity| {
        let at = activity.id.started_ms();
        let last = |map: &mut BTreeMap<String, u64>, key: &str| match map.get_mut(key) {
            Some(known) => *known = at.max(*known),
            None => drop(map.insert(key.to_owned(), at)),
        };
        last(&mut found.tokens, &activity.agent.token);
        let mut datasets = BTreeSet::new();
        for grant in &activity.grants {
            last(&mut found.grants, &grant.grant);
            datasets.insert(grant.dataset.as_str());
        }
        for dataset in datasets {
            *found.datasets.entry(dataset.to_owned()).or_default() += 1;
        }
    })?;
    Ok(found)
}

/// Collects the newest calls: one page, and one more.
struct NewestCalls {
    before: Option<ActivityId>,
    heap: BinaryHeap<Reverse<ById>>,
}

/// A call, ordered by its id and so by its time.
struct ById(Activity);

impl PartialEq for ById {
    fn eq(&self, other: &Self) -> bool {
        self.0.id == other.0.id
    }
}

impl Eq for ById {}

impl PartialOrd for ById {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ById {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.id.cmp(&other.0.id)
    }
}

impl NewestCalls {
    fn new(before: Option<ActivityId>) -> Self {
        Self {
            before,
            heap: BinaryHeap::new(),
        }
    }

    fn offer(&mut self, activity: Activity) {
        if self.before.is_some_and(|before| activity.id >= before) {
            return;
        }
        self.heap.push(Reverse(ById(activity)));
        // One more than a page shows whether there are older ones.
        if self.heap.len() > PAGE_CALLS + 1 {
            self.heap.pop();
        }
    }

    fn finish(self) -> (Vec<Activity>, bool) {
        let sorted = self.heap.into_sorted_vec().into_iter();
        let mut calls: Vec<Activity> = sorted.map(|Reverse(ById(it))| it).collect();
        let has_older = calls.len() > PAGE_CALLS;
        calls.truncate(PAGE_CALLS);
        (calls, has_older)
    }
}

#[cfg(test)]
mod tests {
    use wayleave_activity::{
        ActivityLog, Agent, ArgumentRecord, CallTransport, LogOptions, RecordList,
    };

    use super::*;

    fn call(target: &str, micros: u64, outcome: CallOutcome) -> Activity {
        Activity {
            id: ActivityId::now(),
            micros,
            transport: CallTransport {
                http: true,
                session: false,
            },
            method: "tools/call".into(),
            target: Some(target.into()),
            agent: Agent {
                token: "t_abcd".into(),
                ..Agent::default()
            },
            grants: Vec::new(),
            streams: Vec::new(),
            arguments: ArgumentRecord::default(),
            used: RecordList::default(),
            generated: RecordList::default(),
            rows: 1,
            bytes: 10,
            answer: None,
            outcome,
            trace: None,
            suppressed: 0,
        }
    }

    #[test]
    fn percentiles_are_within_a_few_percent_of_the_exact_ones() {
        let mut latencies = Latencies::default();
        let mut exact: Vec<u64> = (1..=10_000_u64).map(|n| n * n % 1_000_003 + 1).collect();
        for it in &exact {
            latencies.add(*it);
        }
        exact.sort_unstable();
        for percent in [1, 50, 95, 99, 100] {
            let wanted = exact[exact.len() * percent / 100 - 1];
            let found = latencies.percentile(percent as u64).unwrap();
            assert!(
                found >= wanted && found <= wanted + wanted / 16 + 1,
                "{percent}: {found} {wanted}"
            );
        }
        assert_eq!(Latencies::default().percentile(50), None);
        for micros in [
            0,
            1,
            31,
            32,
            63,
            64,
            65,
            1_000,
            999_999,
            u64::from(u32::MAX),
        ] {
            let end = upper_end(bucket(micros));
            assert!(
                end >= micros && bucket(end) == bucket(micros),
                "{micros} {end}"
            );
        }
    }

    #[test]
    fn calls_are_counted_listed_newest_first_and_paged_without_gap_or_repeat() {
        let folder = tempfile::tempdir().unwrap();
        let log = ActivityLog::new(LogOptions::new(folder.path()));
        let mut ids = Vec::new();
        for n in 0..120 {
            let outcome = match n % 10 {
                0 => CallOutcome::Refused {
                    reason: "budget".into(),
                },
                1 => CallOutcome::ToolError {
                    code: Some("unknown_field".into()),
                },
                2 => CallOutcome::Failed { code: -32603 },
                _ => CallOutcome::Completed,
            };
            let activity = call(if n < 60 { "fetch" } else { "search" }, 1_000, outcome);
            ids.push(activity.id);
            log.append(&activity).wait_blocking().unwrap();
        }
        ids.reverse();
        let reader = ActivityReader::new(folder.path());
        let since = ids[119].started_ms();
        let mut query = CallQuery {
            filter: ActivityFilter {
                since_ms: Some(since),
                ..ActivityFilter::default()
            },
            bar_ms: 3_600_000,
            bars: 24,
            ..CallQuery::default()
        };
        let summary = summarize(&reader, &query).unwrap();
        assert_eq!(
            (summary.calls, summary.unanswered, summary.is_whole),
            (120, 36, true)
        );
        assert_eq!((summary.bars[0].calls, summary.bars[1].calls), (120, 0));
        assert_eq!(summary.bars[0].median, summary.median);
        assert_eq!(
            summary.tools,
            BTreeSet::from(["fetch".to_owned(), "search".to_owned()])
        );
        let mut walked: Vec<ActivityId> = Vec::new();
        loop {
            let page = summarize(&reader, &query).unwrap();
            walked.extend(page.newest.iter().map(|it| it.id));
            assert_eq!(page.calls, 120);
            query.before = page.newest.last().map(|it| it.id);
            if !page.has_older {
                break;
            }
        }
        assert_eq!(walked, ids);
        query.before = None;
        for (verdict, many) in [
            (CallVerdict::Answered, 84),
            (CallVerdict::Refused, 24),
            (CallVerdict::Failed, 12),
            (CallVerdict::Ended, 0),
        ] {
            query.verdict = Some(verdict);
            assert_eq!(
                summarize(&reader, &query).unwrap().calls,
                many,
                "{verdict:?}"
            );
            assert_eq!(CallVerdict::parse(verdict.as_str()), Some(verdict));
        }
        let used = recent_use(&reader, since, 10_000).unwrap();
        assert_eq!(used.tokens["t_abcd"], ids[0].started_ms());
    }
}
