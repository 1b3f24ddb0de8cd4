//! A change to one file, as agents and the command line are shown it: digests and a unified diff.

use std::fmt::Write as _;

use serde::Serialize;
use similar::TextDiff;
use wayleave_model::digest::Digest;

/// Lines of context around a change.
const CONTEXT_LINES: usize = 3;
/// Marks the line before as lacking a line break.
const NO_NEWLINE: &str = "\\ No newline at end of file";

/// A change to a file. Creating one writes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileDiff {
    /// The file, relative to the project.
    pub path: String,
    /// SHA-256 of the file before, in hex; `None` where there was none.
    pub before_sha256: Option<String>,
    /// SHA-256 of the file after, in hex.
    pub after_sha256: String,
    /// The change as a unified diff; empty where nothing changes.
    pub unified: String,
}

impl FileDiff {
    /// The change from one text to another.
    pub fn new(path: impl Into<String>, before: Option<&str>, after: &str) -> Self {
        let path = path.into();
        Self {
            unified: unified(&path, before, after),
            path,
            before_sha256: before.map(|text| Digest::from_bytes(text.as_bytes()).hex()),
            after_sha256: Digest::from_bytes(after.as_bytes()).hex(),
        }
    }

    /// Whether the file stays as it is.
    pub fn is_empty(&self) -> bool {
        self.unified.is_empty()
    }
}

fn unified(path: &str, before: Option<&str>, after: &str) -> String {
    let old = before.unwrap_or_default();
    if old == after {
        return String::new();
    }
    let (from, to) = (format!("a/{path}"), format!("b/{path}"));
    let from = if before.is_some() { &from } else { "/dev/null" };
    TextDiff::from_lines(old, after)
        .unified_diff()
        .context_radius(CONTEXT_LINES)
        .header(from, &to)
        .to_string()
}

/// Why a unified diff was not applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the diff {reason}")]
pub struct PatchError {
    /// The line of the diff, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub reason: &'static str,
}

/// Applies a unified diff of one file, strictly: every line it keeps or removes must be there, at
/// the place it says.
pub fn apply(unified: &str, before: &str) -> Result<String, PatchError> {
    let mut old = before.split_inclusive('\n').enumerate().peekable();
    let mut after = String::with_capacity(before.len());
    let mut in_hunk = false;
    let lines: Vec<&str> = unified.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        let wrong = |reason| PatchError {
            line: at + 1,
            reason,
        };
        if let Some(head) = line.strip_prefix("@@ ") {
            let start = hunk_start(head).ok_or_else(|| wrong("is not the head of a hunk"))?;
            while let Some((_, kept)) = old.next_if(|(number, _)| number + 1 < start) {
                after.push_str(kept);
            }
            in_hunk = true;
            continue;
        }
        if !in_hunk {
            if line.starts_with("--- ") || line.starts_with("+++ ") {
                continue;
            }
            return Err(wrong("stands before the first hunk"));
        }
        let ends = lines.get(at + 1) != Some(&NO_NEWLINE);
        let text = |body: &str| {
            let mut text = body.to_owned();
            if ends {
                text.push('\n');
            }
            text
        };
        let mut chars = line.chars();
        match chars.next() {
            Some('+') => after.push_str(&text(chars.as_str())),
            Some(mark @ (' ' | '-')) => {
                let body = text(chars.as_str());
                let there = old.next().map(|(_, line)| line);
                if there != Some(body.as_str()) {
                    return Err(wrong("is not what the file has there"));
                }
                if mark == ' ' {
                    after.push_str(&body);
                }
            }
            Some('\\') => {}
            // Editors strip the blank of an empty context line.
            None => match old.next() {
                Some((_, "\n")) => after.push('\n'),
                _ => return Err(wrong("is not what the file has there")),
            },
            Some(_) => return Err(wrong("begins with neither a blank, `-` nor `+`")),
        }
    }
    for (_, kept) in old {
        after.push_str(kept);
    }
    Ok(after)
}

/// The first line of a hunk in the old file, from `-12,3 +12,4 @@`.
fn hunk_start(head: &str) -> Option<usize> {
    let before = head.split_whitespace().next()?.strip_prefix('-')?;
    let mut numbers = before.split(',');
    let start: usize = numbers.next()?.parse().ok()?;
    // A hunk that only adds lines names the line it follows.
    match numbers.next() {
        Some("0") => start.checked_add(1),
        _ => Some(start),
    }
}

impl std::fmt::Display for FileDiff {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = String::new();
        let before = self.before_sha256.as_deref().unwrap_or("none");
        let _ = writeln!(text, "path {}", self.path);
        let _ = writeln!(text, "before_sha256 {before}");
        let _ = writeln!(text, "after_sha256 {}", self.after_sha256);
        f.write_str(&text)?;
        f.write_str(&self.unified)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(before: &str, after: &str) {
        let diff = FileDiff::new("a.toml", Some(before), after);
        assert_eq!(apply(&diff.unified, before).unwrap(), after, "{diff}");
    }

    #[test]
    fn a_diff_applied_to_what_it_was_made_from_gives_the_other() {
        let long: Vec<_> = (0..60).map(|n| format!("line {n}\n")).collect();
        let long = long.concat();
        let changed = long.replace("line 7\n", "").replace("line 40\n", "forty\n");
        for (before, after) in [
            ("", "one\ntwo\n"),
            ("one\ntwo\n", ""),
            ("one", "one\n"),
            ("one\n\ntwo", "one\n\ntwo\nthree"),
            ("same", "same"),
            (long.as_str(), changed.as_str()),
            (changed.as_str(), long.as_str()),
        ] {
            round_trip(before, after);
        }
    }

    #[test]
    fn a_diff_of_another_file_is_refused_and_says_where() {
        let diff = FileDiff::new("a.toml", Some("one\ntwo\n"), "one\nthree\n");
        let error = apply(&diff.unified, "one\nTWO\n").unwrap_err();
        assert_eq!(
            error.to_string(),
            "line 5 of the diff is not what the file has there"
        );
        assert!(apply("hello", "").is_err());
        assert!(apply("@@ nonsense\n", "").is_err());
    }
}
