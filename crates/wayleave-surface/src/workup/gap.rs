//! What a workup does not know, and why. Data that is not granted is not a gap: it does not exist.

use wayleave_plan::refusal::{Code, Refusal};

use super::reader::{MAX_READS, MAX_ROWS, StopReason};
use super::statement::RecordUse;

/// One unknown.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Gap {
    /// The kind of gap.
    pub(super) code: &'static str,
    pub(super) text: String,
    /// The records that show it.
    pub(super) uses: Vec<RecordUse>,
    /// Whether something that was requested could not be read.
    pub(super) partial: bool,
}

impl Gap {
    /// A gap that records show.
    pub(super) fn shown(code: &'static str, text: String, uses: Vec<RecordUse>) -> Self {
        Self {
            code,
            text,
            uses,
            partial: false,
        }
    }

    /// A gap for something that could not be read.
    pub(super) fn partial(code: &'static str, text: String) -> Self {
        Self {
            code,
            text,
            uses: Vec::new(),
            partial: true,
        }
    }

    /// A gap for a place whose source did not answer.
    pub(super) fn unread(place: &str, refusal: &Refusal) -> Self {
        if refusal.code == Code::Timeout {
            return Self::stopped(StopReason::Deadline);
        }
        if refusal.code == Code::ResultTooLarge {
            return Self::stopped(StopReason::Caps);
        }
        let why = refusal.reason.unwrap_or(refusal.code.as_str());
        Self::partial(
            "source_unavailable",
            format!("{place} could not be read: {why}"),
        )
    }

    pub(super) fn stopped(stop: StopReason) -> Self {
        match stop {
            StopReason::Deadline => Self::partial(
                "deadline",
                "time ran out before everything was read".to_owned(),
            ),
            StopReason::Caps => Self::partial(
                "caps",
                format!("not everything was read: at most {MAX_READS} reads and {MAX_ROWS} rows"),
            ),
        }
    }
}

/// The gaps of a workup, each once.
#[derive(Debug, Default)]
pub(super) struct Gaps(Vec<Gap>);

impl Gaps {
    pub(super) fn add(&mut self, gap: Gap) {
        let known = |it: &Gap| it.code == gap.code && it.text == gap.text;
        if !self.0.iter().any(known) {
            self.0.push(gap);
        }
    }

    pub(super) fn is_partial(&self) -> bool {
        self.0.iter().any(|gap| gap.partial)
    }

    /// Sorted, with those that say what was not read first.
    pub(super) fn sorted(mut self) -> Vec<Gap> {
        self.0.sort_by_key(|gap| !gap.partial);
        self.0
    }
}
