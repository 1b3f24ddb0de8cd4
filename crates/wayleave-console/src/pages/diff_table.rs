//! Two texts side by side: the differing lines, with some context.

use maud::{Markup, html};
use similar::{DiffOp, TextDiff};

use crate::{
    sentences::count,
    visible_text::{VisibleText, code},
};

/// Lines of context around a change.
const CONTEXT_LINES: usize = 2;
/// Maximum number of lines shown side by side.
const MAX_LINES: usize = 300;

/// One side of a row: line number and text.
type Side = Option<(usize, String)>;

struct Row {
    old: Side,
    new: Side,
    is_same: bool,
}

/// Renders the table; `None` if it would be too long to read.
pub(super) fn render(old: (&str, &str), new: (&str, &str)) -> Option<Markup> {
    let (old_digest, old_text) = old;
    let (new_digest, new_text) = new;
    let diff = TextDiff::from_lines(old_text, new_text);
    let old_lines: Vec<&str> = old_text.lines().collect();
    let new_lines: Vec<&str> = new_text.lines().collect();
    let groups = diff.grouped_ops(CONTEXT_LINES);
    let mut hunks = Vec::new();
    let mut shown = 0;
    let mut last_end = 0;
    for group in &groups {
        let start = group.first().map_or(0, |it| it.old_range().start);
        let place = group.first().map_or(0, |it| it.new_range().start);
        let rows = rows(group, &old_lines, &new_lines);
        shown += rows.len();
        hunks.push((
            start.saturating_sub(last_end),
            stream_at(&new_lines, place),
            rows,
        ));
        last_end = group.last().map_or(0, |it| it.old_range().end);
    }
    if shown > MAX_LINES {
        return None;
    }
    Some(html! { div.frame { table.diff {
        caption.vh { "Lines of the mapping that differ" }
        colgroup { col.ln; col; col.ln; col; }
        thead { tr {
            th colspan="2" scope="colgroup" { "Ratified now " code { (old_digest) } }
            th colspan="2" scope="colgroup" { "Proposed " code { (new_digest) } }
        } }
        tbody {
            @for (same, stream, rows) in &hunks {
                tr.hunk { td colspan="4" {
                    @if *same > 0 { (count(*same, "line")) " the same" }
                    @if let Some(stream) = stream { " · " (code(stream)) }
                } }
                @for row in rows { (one(row)) }
            }
        }
    } } })
}

fn rows(group: &[DiffOp], old: &[&str], new: &[&str]) -> Vec<Row> {
    let line = |lines: &[&str], at: usize| {
        let text = lines.get(at).copied().unwrap_or_default();
        Some((at + 1, text.to_owned()))
    };
    let mut rows = Vec::new();
    for op in group {
        let (olds, news) = (op.old_range(), op.new_range());
        let is_same = matches!(op, DiffOp::Equal { .. });
        for at in 0..olds.len().max(news.len()) {
            let old_at = olds.start + at;
            let new_at = news.start + at;
            rows.push(Row {
                old: (at < olds.len()).then(|| line(old, old_at)).flatten(),
                new: (at < news.len()).then(|| line(new, new_at)).flatten(),
                is_same,
            });
        }
    }
    rows
}

fn one(row: &Row) -> Markup {
    let (old_kind, new_kind) = match (row.is_same, &row.old, &row.new) {
        (true, ..) => ("old same", "new same"),
        (false, None, _) => ("old none", "new is"),
        (false, _, None) => ("old was", "new none"),
        (false, Some(_), Some(_)) => ("old was", "new is"),
    };
    let texts = match (&row.old, &row.new) {
        (Some((_, old)), Some((_, new))) if !row.is_same => Some(common(old, new)),
        _ => None,
    };
    html! { tr {
        td.ln { @if let Some((number, _)) = &row.old { (number) } }
        td class=(old_kind) { @if let Some((_, text)) = &row.old {
            (side(text, texts, true))
        } }
        td.ln { @if let Some((number, _)) = &row.new { (number) } }
        td class=(new_kind) { @if let Some((_, text)) = &row.new {
            (side(text, texts, false))
        } }
    } }
}

/// A line with its differing part marked.
fn side(text: &str, common: Option<(usize, usize)>, is_old: bool) -> Markup {
    let Some((head, tail)) = common else {
        return html! { (VisibleText(text)) };
    };
    let cut = text.len().saturating_sub(tail).max(head);
    let (before, rest) = text.split_at_checked(head).unwrap_or(("", text));
    let (middle, after) = rest.split_at_checked(cut - head).unwrap_or((rest, ""));
    html! {
        (VisibleText(before))
        @if !middle.is_empty() {
            @if is_old { del { (VisibleText(middle)) } } @else { ins { (VisibleText(middle)) } }
        }
        (VisibleText(after))
    }
}

/// Lengths of the common prefix and suffix of two lines in bytes, in whole characters. Zero if they
/// share too little to be the same line.
fn common(old: &str, new: &str) -> (usize, usize) {
    let pairs = old.char_indices().zip(new.chars());
    let head = pairs
        .take_while(|((_, a), b)| a == b)
        .map(|((at, a), _)| at + a.len_utf8());
    let head = head.last().unwrap_or(0);
    let (old_rest, new_rest) = (old.get(head..).unwrap_or(""), new.get(head..).unwrap_or(""));
    let pairs = old_rest.chars().rev().zip(new_rest.chars().rev());
    let tail: usize = pairs
        .take_while(|(a, b)| a == b)
        .map(|(a, _)| a.len_utf8())
        .sum();
    if (head + tail) * 3 < old.len().min(new.len()) {
        (0, 0)
    } else {
        (head, tail)
    }
}

/// The stream that a line of a mapping belongs to.
fn stream_at<'a>(lines: &[&'a str], at: usize) -> Option<&'a str> {
    let above = lines.get(..=at.min(lines.len().saturating_sub(1)))?;
    let head = above.iter().rev().find(|it| it.starts_with('['))?;
    let name = head.strip_prefix("[streams.")?;
    name.split(['.', ']']).next()
}
