//! The options that select calls.

use wayleave_activity::{ActivityFilter, CallOutcome};

#[derive(Debug, clap::Args)]
pub(super) struct FilterArguments {
    /// Calls since this time, like `2026-07-28` or `2026-07-28T10:00:00Z`.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    since: Option<u64>,
    /// Calls before this time.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    until: Option<u64>,
    /// Calls with this token, by its id.
    #[arg(long, value_name = "ID")]
    token: Option<String>,
    /// Calls that used this dataset.
    #[arg(long, value_name = "NAME")]
    dataset: Option<String>,
    /// Calls that read this stream: its name, or `CONNECTION/STREAM`.
    #[arg(long, value_name = "NAME")]
    stream: Option<String>,
    /// Calls that read or made this record: `CONNECTION/STREAM:KEY`.
    #[arg(long, value_name = "ID")]
    record: Option<String>,
    /// Calls of this tool, prompt or resource.
    #[arg(long, value_name = "NAME")]
    target: Option<String>,
    /// Calls that ended this way.
    #[arg(long, value_name = "OUTCOME", value_parser = CallOutcome::WORDS)]
    outcome: Option<String>,
}

impl FilterArguments {
    pub(super) fn resolve(&self) -> ActivityFilter {
        ActivityFilter {
            id: None,
            since_ms: self.since,
            until_ms: self.until,
            token: self.token.clone(),
            dataset: self.dataset.clone(),
            stream: self.stream.clone(),
            record: self.record.clone(),
            target: self.target.clone(),
            outcome: self.outcome.clone(),
        }
    }
}

/// Parses a date or a time in UTC, to milliseconds since 1970-01-01T00:00:00Z.
fn moment(text: &str) -> Result<u64, &'static str> {
    let at = text.parse::<jiff::Timestamp>().or_else(|_| {
        let date = text.parse::<jiff::civil::Date>()?;
        let midnight = date.to_zoned(jiff::tz::TimeZone::UTC)?;
        Ok::<_, jiff::Error>(midnight.timestamp())
    });
    let at = at.map_err(|_| "neither a date nor a time like 2026-07-28T10:00:00Z")?;
    u64::try_from(at.as_millisecond()).map_err(|_| "before 1970")
}
