//! Renders problems as text with an excerpt of the document.

use std::ops::Range;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use super::{Problem, ProblemCode, Severity};
use crate::sensitive;

/// The style of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Plain ASCII, for files and pipes.
    Plain,
    /// Colour, for terminals.
    Colour,
}

/// Renders problems with file, line, excerpt and hint.
///
/// The excerpt is taken from a copy of the source in which anything that looks like a
/// credential is redacted, so a password pasted into a document is not printed back.
pub fn render(problems: &[Problem], file_name: &str, source: &str, style: Style) -> String {
    let redacted = redacted(problems, source);
    let renderer = match style {
        Style::Plain => Renderer::plain(),
        Style::Colour => Renderer::styled(),
    }
    .decor_style(DecorStyle::Ascii);
    let mut text = String::new();
    for problem in problems {
        let groups = [group(problem, file_name, &redacted)];
        text.push_str(&renderer.render(&groups));
        text.push_str("\n\n");
    }
    text
}

/// Redacts the secrets of the source: those visible in the text, and those found only after
/// parsing, such as one written with escapes. Each is redacted to the end of its line: a
/// password may hold a quote or a space, and then continues past its apparent end.
fn redacted(problems: &[Problem], source: &str) -> String {
    let found = problems
        .iter()
        .filter(|problem| problem.code == ProblemCode::ConnectionString)
        .filter_map(|problem| problem.span.clone())
        .map(|span| {
            let rest = source.get(span.end..).unwrap_or("");
            span.start..span.end + rest.find('\n').unwrap_or(rest.len())
        });
    sensitive::redact_in_place(source, found)
}

fn group<'a>(problem: &'a Problem, file_name: &'a str, source: &'a str) -> Group<'a> {
    let level = match problem.code.severity() {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let title = level
        .primary_title(&problem.message)
        .id(problem.code.as_str());
    let mut group = match &problem.span {
        Some(span) if !source.is_empty() => {
            let excerpt = Excerpt::around(source, span);
            title.element(
                Snippet::source(excerpt.text)
                    .path(file_name)
                    .line_start(excerpt.line)
                    .annotation(AnnotationKind::Primary.span(excerpt.span)),
            )
        }
        _ => title.element(Origin::path(file_name)),
    };
    if let Some(hint) = &problem.hint {
        group = group.element(Level::HELP.message(hint));
    }
    group
}

/// The lines of a span. The renderer gets only these, so many problems in a large document cost no
/// more than their own lines.
struct Excerpt<'a> {
    text: &'a str,
    /// The number of its first line.
    line: usize,
    /// The span, relative to the excerpt's start.
    span: Range<usize>,
}

impl<'a> Excerpt<'a> {
    fn around(source: &'a str, span: &Range<usize>) -> Self {
        let start = source.floor_char_boundary(span.start);
        let end = source.floor_char_boundary(span.end).max(start);
        let (before, _) = source.split_at(start);
        let from = before.rfind('\n').map_or(0, |at| at + 1);
        let (_, after) = source.split_at(end);
        let to = end + after.find('\n').unwrap_or(after.len());
        Self {
            text: source.split_at(to).0.split_at(from).1,
            line: before.matches('\n').count() + 1,
            span: start - from..end - from,
        }
    }
}
