//! Calls and latencies over time: SVG shapes, HTML labels, and the same data as a table.
//!
//! Errors are hatched and the 95th percentile is dashed, so that the chart needs no colour.

use maud::{Markup, html};
use wayleave_project::{call_summary::CallBar, columns::thousands, render::activity::duration};

use super::{query::ActivityQuery, started_at};
use crate::page::{clock, day};

/// Width of the drawing, which browsers stretch.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 100.0;
/// Number of labels on the time axis.
const LABELS: usize = 8;

pub(super) fn figure(bars: &[CallBar], asked: &ActivityQuery) -> Markup {
    let most = nice(bars.iter().map(|it| it.calls).max().unwrap_or(0));
    let slowest = nice(
        bars.iter()
            .filter_map(|it| it.p95)
            .max()
            .unwrap_or(0)
            .div_ceil(1000),
    );
    let each = asked.span.bar_words;
    let is_days = asked.span.bar_ms >= 6 * 3_600_000;
    html! { figure aria-labelledby="ch" {
        div.chart {
            div.cap id="ch" {
                strong { "Calls " (each) }
                span { svg.key viewBox="0 0 20 10" aria-hidden="true" { rect.c-bar width="20" height="10" {} } "answered" }
                span { svg.key viewBox="0 0 20 10" aria-hidden="true" {
                    rect.c-bad fill="url(#hatch)" width="20" height="10" {}
                } "not answered, on top" }
            }
            (scale(&thousands(most), &thousands(most / 2)))
            (calls(bars, most, each, is_days))
            div.cap {
                strong { "Time to answer" }
                span { svg.key viewBox="0 0 20 10" aria-hidden="true" { path.c-p50 d="M0 5h20" {} } "median" }
                span { svg.key viewBox="0 0 20 10" aria-hidden="true" { path.c-p95 d="M0 5h20" {} } "p95" }
            }
            (scale(&format!("{} ms", thousands(slowest)), &thousands(slowest / 2)))
            (latencies(bars, slowest))
            div.x { @for label in labels(bars, is_days) { span { (label) } } }
        }
        figcaption { details.small {
            summary { "The same as a table" }
            (table(bars, is_days))
        } }
    } }
}

fn scale(top: &str, middle: &str) -> Markup {
    html! { div.y { span { (top) } span { (middle) } span { "0" } } }
}

/// The start of a bar: a time, or a day and a time.
fn name(bar: &CallBar, is_days: bool) -> String {
    let at = started_at(bar.from_ms);
    if is_days {
        return format!("{}, {}", day(at), clock(at));
    }
    clock(at)
}

fn labels(bars: &[CallBar], is_days: bool) -> Vec<String> {
    let step = bars.len().div_ceil(LABELS).max(1);
    let short = |bar: &CallBar| {
        let at = started_at(bar.from_ms);
        let whole = day(at);
        let short = whole.rsplit_once(' ').map(|(it, _)| it.to_owned());
        if is_days {
            short.unwrap_or(whole)
        } else {
            clock(at)
        }
    };
    let mut labels: Vec<String> = bars.iter().step_by(step).map(short).collect();
    labels.push("now".to_owned());
    labels
}

#[expect(clippy::cast_precision_loss, reason = "pixels")]
fn part(value: u64, of: u64) -> f64 {
    HEIGHT * value as f64 / of.max(1) as f64
}

/// The left edge and the width of a bar.
#[expect(clippy::cast_precision_loss, reason = "pixels")]
fn place(at: usize, many: usize) -> (f64, f64) {
    let width = WIDTH / many.max(1) as f64;
    (at as f64 * width + width * 0.08, width * 0.84)
}

fn px(value: f64) -> String {
    format!("{value:.1}")
}

fn grid() -> Markup {
    html! {
        line.c-grid x1="0" x2="720" y1="50" y2="50" {}
        line.c-grid x1="0" x2="720" y1="0" y2="0" {}
    }
}

fn calls(bars: &[CallBar], most: u64, each: &str, is_days: bool) -> Markup {
    let busiest = bars.iter().max_by_key(|it| it.calls);
    let told = busiest.map_or_else(String::new, |it| {
        let unanswered: u64 = bars.iter().map(|it| it.unanswered).sum();
        format!(
            "Calls {each}: most at {} UTC, {}; {} not answered in all.",
            name(it, is_days),
            thousands(it.calls),
            thousands(unanswered)
        )
    });
    html! { svg viewBox="0 0 720 100" preserveAspectRatio="none" role="img" aria-label=(told) {
        title { "Calls " (each) }
        defs { pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)" {
            path.c-bad d="M0 0v6" {}
        } }
        (grid())
        @for (at, bar) in bars.iter().enumerate() { @if bar.calls > 0 {
            @let (x, width) = place(at, bars.len());
            @let (whole, bad) = (part(bar.calls, most), part(bar.unanswered, most));
            g {
                title { (name(bar, is_days)) " UTC: " (thousands(bar.calls)) " calls, " (thousands(bar.unanswered)) " not answered" }
                rect.c-bar x=(px(x)) y=(px(HEIGHT - whole + bad)) width=(px(width)) height=(px(whole - bad)) {}
                @if bar.unanswered > 0 {
                    rect.c-bad fill="url(#hatch)" x=(px(x)) y=(px(HEIGHT - whole)) width=(px(width)) height=(px(bad)) {}
                }
            }
        } }
    } }
}

fn latencies(bars: &[CallBar], slowest: u64) -> Markup {
    let worst = bars.iter().filter_map(|it| it.p95).max().unwrap_or(0);
    let best = bars.iter().filter_map(|it| it.median).min().unwrap_or(0);
    let told = format!(
        "Time to answer: the median is at best {}; p95 is at worst {}.",
        duration(best),
        duration(worst)
    );
    html! { svg viewBox="0 0 720 100" preserveAspectRatio="none" role="img" aria-label=(told) {
        title { "Time to answer" }
        (grid())
        @for run in runs(bars, slowest, |it| it.median) { polyline.c-p50 points=(run) {} }
        @for run in runs(bars, slowest, |it| it.p95) { polyline.c-p95 points=(run) {} }
    } }
}

/// The polylines of a value: one for each run of bars that have calls.
fn runs(bars: &[CallBar], slowest: u64, value: impl Fn(&CallBar) -> Option<u64>) -> Vec<String> {
    let mut lines: Vec<Vec<(f64, f64, f64)>> = Vec::new();
    let mut is_open = false;
    for (at, bar) in bars.iter().enumerate() {
        let Some(micros) = value(bar) else {
            is_open = false;
            continue;
        };
        let (x, width) = place(at, bars.len());
        let y = HEIGHT - part(micros, slowest * 1000).min(HEIGHT);
        let point = (x + width / 2.0, y, width / 2.0);
        match lines.last_mut().filter(|_| is_open) {
            Some(line) => line.push(point),
            None => lines.push(vec![point]),
        }
        is_open = true;
    }
    let text = |line: &Vec<(f64, f64, f64)>| match line.as_slice() {
        // A run of one bar: draw the line as wide as the bar.
        [(x, y, half)] => format!("{},{y:.1} {},{y:.1}", px(x - half), px(x + half)),
        points => {
            let points = points
                .iter()
                .map(|(x, y, _)| format!("{},{}", px(*x), px(*y)));
            points.collect::<Vec<_>>().join(" ")
        }
    };
    lines.iter().map(text).collect()
}

fn table(bars: &[CallBar], is_days: bool) -> Markup {
    html! { div.scroll role="region" aria-label="Calls over time" tabindex="0" { table {
        thead { tr {
            th scope="col" { "from, UTC" }
            @for head in ["calls", "not answered", "median", "p95"] { th.num scope="col" { (head) } }
        } }
        tbody { @for bar in bars.iter().filter(|it| it.calls > 0) { tr {
            th scope="row" { (name(bar, is_days)) }
            td.num { (thousands(bar.calls)) }
            td.num { (thousands(bar.unanswered)) }
            td.num { @if let Some(it) = bar.median { (duration(it)) } }
            td.num { @if let Some(it) = bar.p95 { (duration(it)) } }
        } } }
    } } }
}

/// The next round number that halves well: 2, 4, 10, 20, 40, 100, ….
fn nice(most: u64) -> u64 {
    let mut unit = 1_u64;
    loop {
        for times in [2, 4, 10] {
            let round = unit.saturating_mul(times);
            if round >= most {
                return round;
            }
        }
        unit = unit.saturating_mul(10);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_are_round_and_never_too_small() {
        for (most, round) in [
            (0, 2),
            (2, 2),
            (3, 4),
            (7, 10),
            (11, 20),
            (110, 200),
            (999, 1000),
        ] {
            assert_eq!(nice(most), round);
        }
        assert!(nice(u64::MAX) == u64::MAX);
    }

    #[test]
    fn a_lonely_bar_has_a_line_and_gaps_break_it() {
        let bar = |median| CallBar {
            median,
            calls: 1,
            ..CallBar::default()
        };
        let bars = [bar(Some(1000)), bar(None), bar(Some(1000)), bar(Some(2000))];
        let lines = runs(&bars, 2, |it| it.median);
        assert_eq!(lines, ["14.4,50.0 165.6,50.0", "450.0,50.0 630.0,0.0"]);
    }
}
