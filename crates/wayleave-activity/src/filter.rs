//! Filters over activities.

use crate::{
    activity::{Activity, ActivityId},
    archive::{KeyKind, key},
};

/// A filter. An activity matches if it matches every field that is set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ActivityFilter {
    /// The id of the activity.
    pub id: Option<ActivityId>,
    /// Earliest start time, in milliseconds since 1970-01-01T00:00:00Z.
    pub since_ms: Option<u64>,
    /// Start times from this one on do not match.
    pub until_ms: Option<u64>,
    /// The id of the token.
    pub token: Option<String>,
    /// A dataset it used.
    pub dataset: Option<String>,
    /// A stream it read: `connection_id/stream`, or the stream's name alone.
    pub stream: Option<String>,
    /// A record it read or made: `connection_id/stream:key`.
    pub record: Option<String>,
    /// The tool, prompt or resource it named.
    pub target: Option<String>,
    /// Its outcome, as one word.
    pub outcome: Option<String>,
}

impl ActivityFilter {
    /// Whether an activity matches.
    pub fn matches(&self, activity: &Activity) -> bool {
        let started = activity.id.started_ms();
        let is = |wanted: &Option<String>, found: &str| {
            wanted.as_deref().is_none_or(|wanted| wanted == found)
        };
        self.id.is_none_or(|id| id == activity.id)
            && self.since_ms.is_none_or(|since| started >= since)
            && self.until_ms.is_none_or(|until| started < until)
            && is(&self.token, &activity.agent.token)
            && is(&self.outcome, activity.outcome.as_str())
            && is(&self.target, activity.target.as_deref().unwrap_or_default())
            && self.dataset.as_ref().is_none_or(|wanted| {
                let mut grants = activity.grants.iter();
                grants.any(|grant| grant.dataset == *wanted)
            })
            && self.stream.as_ref().is_none_or(|wanted| {
                let mut streams = activity.streams.iter();
                let named =
                    |it: &String| it.split_once('/').is_some_and(|(_, name)| name == wanted);
                streams.any(|it| it == wanted || named(it))
            })
            && self.record.as_ref().is_none_or(|wanted| {
                activity.used.ids.contains(wanted) || activity.generated.ids.contains(wanted)
            })
    }

    /// The index keys that every block with a match contains.
    pub(crate) fn keys(&self) -> Vec<u64> {
        let text =
            |kind, value: &Option<String>| value.as_ref().map(|value| key(kind, value.as_bytes()));
        let whole_stream = self.stream.clone().filter(|stream| stream.contains('/'));
        [
            self.id.map(|id| key(KeyKind::Id, id.as_bytes())),
            text(KeyKind::Token, &self.token),
            text(KeyKind::Dataset, &self.dataset),
            text(KeyKind::Stream, &whole_stream),
            text(KeyKind::Record, &self.record),
            text(KeyKind::Target, &self.target),
            text(KeyKind::Outcome, &self.outcome),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// Whether calls within this time range can match.
    pub(crate) fn may_match_between(&self, from_ms: u64, to_ms: u64) -> bool {
        let (mut since, mut until) = (self.since_ms.unwrap_or(0), self.until_ms);
        if let Some(id) = self.id {
            since = since.max(id.started_ms());
            until = Some(until.unwrap_or(u64::MAX).min(id.started_ms() + 1));
        }
        to_ms >= since && until.is_none_or(|until| from_ms < until)
    }
}
