//! The filters of the activity page, parsed from a query string and written back to one.

use maud::{Markup, html};
use wayleave_activity::{ActivityFilter, ActivityId};
use wayleave_ledger::rfc3339;
use wayleave_project::call_summary::{CallQuery, CallVerdict};

use super::{label, started_at};
use crate::{form::encode, respond::SignedInRequest, visible_text::code};

/// A period to look back over, and the bars of its chart.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimeSpan {
    pub(super) name: &'static str,
    pub(super) words: &'static str,
    /// The unit of a bar: `hour`.
    pub(super) bar_words: &'static str,
    pub(super) bar_ms: u64,
    pub(super) bars: usize,
}

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;

/// The selectable periods; the first is the default.
pub(super) const SPANS: [TimeSpan; 4] = [
    TimeSpan {
        name: "24h",
        words: "24 hours",
        bar_words: "an hour",
        bar_ms: HOUR,
        bars: 24,
    },
    TimeSpan {
        name: "1h",
        words: "1 hour",
        bar_words: "in 2 minutes",
        bar_ms: 2 * MINUTE,
        bars: 30,
    },
    TimeSpan {
        name: "7d",
        words: "7 days",
        bar_words: "in 6 hours",
        bar_ms: 6 * HOUR,
        bars: 28,
    },
    TimeSpan {
        name: "30d",
        words: "30 days",
        bar_words: "a day",
        bar_ms: 24 * HOUR,
        bars: 30,
    },
];

/// The filters a person selected.
pub(super) struct ActivityQuery {
    pub(super) span: TimeSpan,
    pub(super) since_ms: u64,
    pub(super) who: String,
    pub(super) tool: String,
    pub(super) dataset: String,
    pub(super) verdict: Option<CallVerdict>,
    /// A stream; a record if it contains a `:`.
    pub(super) of: String,
    pub(super) before: Option<ActivityId>,
    /// Whether a filter in the query string is invalid.
    pub(super) is_wrong: bool,
}

impl ActivityQuery {
    pub(super) fn new(visit: &SignedInRequest<'_>) -> Self {
        let text = |name: &str| visit.query.get(name).trim().to_owned();
        let asked = text("since");
        let [first, ..] = SPANS;
        let span = SPANS.into_iter().find(|it| it.name == asked);
        let (outcome, before) = (text("outcome"), text("before"));
        let verdict = CallVerdict::parse(&outcome);
        let cursor: Option<ActivityId> = before.parse().ok();
        let is_wrong = (span.is_none() && !asked.is_empty())
            || (verdict.is_none() && !outcome.is_empty())
            || (cursor.is_none() && !before.is_empty());
        let span = span.unwrap_or(first);
        let now = u64::try_from(visit.console.now()).unwrap_or(0);
        // Bars begin at whole hours and days; the last one is still running.
        let last = now - now % span.bar_ms;
        let since_ms = last.saturating_sub(span.bar_ms * (span.bars as u64 - 1));
        Self {
            span,
            since_ms,
            who: text("who"),
            tool: text("tool"),
            dataset: text("dataset"),
            verdict,
            of: text("of"),
            before: cursor,
            is_wrong,
        }
    }

    pub(super) fn to_calls(&self) -> CallQuery {
        let named = |text: &String| Some(text.clone()).filter(|it| !it.is_empty());
        let (stream, record) = match named(&self.of) {
            Some(of) if of.contains(':') => (None, Some(of)),
            of => (of, None),
        };
        CallQuery {
            filter: ActivityFilter {
                since_ms: Some(self.since_ms),
                token: named(&self.who),
                target: named(&self.tool),
                dataset: named(&self.dataset),
                stream,
                record,
                ..ActivityFilter::default()
            },
            verdict: self.verdict,
            before: self.before,
            bar_ms: self.span.bar_ms,
            bars: self.span.bars,
        }
    }

    fn pairs(&self) -> Vec<(&'static str, &str)> {
        let verdict = self.verdict.map_or("", CallVerdict::as_str);
        let all = [
            ("since", self.span.name),
            ("who", self.who.as_str()),
            ("tool", self.tool.as_str()),
            ("dataset", self.dataset.as_str()),
            ("outcome", verdict),
            ("of", self.of.as_str()),
        ];
        all.into_iter().filter(|(_, it)| !it.is_empty()).collect()
    }

    /// The URL of this selection, with further parameters.
    pub(super) fn link(&self, more: &[(&'static str, &str)]) -> String {
        address(
            "/activity",
            self.pairs().into_iter().chain(more.iter().copied()),
        )
    }

    pub(super) fn prov_link(&self) -> String {
        let before = self.before.map(|it| it.to_string()).unwrap_or_default();
        let before = [("before", before.as_str())];
        let before = before.into_iter().filter(|(_, it)| !it.is_empty());
        address("/activity/prov", self.pairs().into_iter().chain(before))
    }

    /// The same period without other filters.
    pub(super) fn wider_link(&self) -> String {
        address("/activity", [("since", self.span.name)].into_iter())
    }

    /// The same filters over a longer period.
    pub(super) fn longer_link(&self) -> Option<String> {
        let longest = SPANS.last()?.name;
        let others = self
            .pairs()
            .into_iter()
            .filter(|(name, _)| *name != "since");
        (self.span.name != longest)
            .then(|| address("/activity", others.chain([("since", longest)])))
    }

    pub(super) fn is_narrow(&self) -> bool {
        self.pairs().len() > 1
    }

    pub(super) fn who_words(&self, visit: &SignedInRequest<'_>) -> Markup {
        html! { @match self.who.as_str() {
            "" => "anyone",
            "local" => "this machine",
            id => @match visit.state.tokens().get(id) {
                Some(token) => (label(token)),
                None => (code(id)),
            },
        } }
    }

    /// The equivalent command on the command line.
    pub(super) fn command(&self) -> String {
        let since = rfc3339(started_at(self.since_ms));
        let mut command = format!("wayleave audit list --since {since}");
        let (stream, record) = if self.of.contains(':') {
            ("", self.of.as_str())
        } else {
            (self.of.as_str(), "")
        };
        for (option, value) in [
            ("token", self.who.as_str()),
            ("target", &self.tool),
            ("dataset", &self.dataset),
            ("stream", stream),
            ("record", record),
        ] {
            if !value.is_empty() {
                command = format!("{command} --{option} {value}");
            }
        }
        command
    }
}

fn address<'a>(path: &str, pairs: impl Iterator<Item = (&'static str, &'a str)>) -> String {
    let pairs: Vec<String> = pairs
        .map(|(name, value)| format!("{name}={}", encode(value)))
        .collect();
    format!("{path}?{}", pairs.join("&"))
}
