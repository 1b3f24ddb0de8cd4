//! Problems as text with an excerpt of the document.

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use super::{Problem, Severity};
use crate::sensitive;

/// How the text is to look.
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
/// credential is blotted out, so a password pasted into a document is not printed back.
pub fn render(problems: &[Problem], file_name: &str, source: &str, style: Style) -> String {
    let blotted = sensitive::blot(source);
    let renderer = match style {
        Style::Plain => Renderer::plain(),
        Style::Colour => Renderer::styled(),
    }
    .decor_style(DecorStyle::Ascii);
    let mut text = String::new();
    for problem in problems {
        let groups = [group(problem, file_name, &blotted)];
        text.push_str(&renderer.render(&groups));
        text.push_str("\n\n");
    }
    text
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
            let start = floor(source, span.start);
            let end = floor(source, span.end).max(start);
            title.element(
                Snippet::source(source)
                    .path(file_name)
                    .annotation(AnnotationKind::Primary.span(start..end)),
            )
        }
        _ => title.element(Origin::path(file_name)),
    };
    if let Some(hint) = &problem.hint {
        group = group.element(Level::HELP.message(hint));
    }
    group
}

/// The nearest character boundary at or before a byte.
fn floor(source: &str, at: usize) -> usize {
    (0..=at.min(source.len()))
        .rev()
        .find(|&at| source.is_char_boundary(at))
        .unwrap_or(0)
}
