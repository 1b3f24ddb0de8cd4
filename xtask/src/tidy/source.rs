//! Finds text that must not remain in a source file, and text that no file may contain.
//!
//! The patterns are written so that they do not find themselves.

use regex::Regex;

use super::{code_lines, is_test_file};
use crate::finding::Finding;

/// A pattern that no line may match, a description of the match, and what to do about it.
type Rule = (&'static str, &'static str, &'static str);

/// For production code.
const IN_CODE: &[Rule] = &[
    (
        r"\b(?:todo|unimplemented)!\(",
        "unfinished code",
        "finish it, or leave it out",
    ),
    (
        r"\bdbg!\(",
        "a debugging aid was left behind",
        "remove it, or use `tracing`",
    ),
    (
        r"\bthread::sleep\b",
        "a sleep",
        "wait for the event instead",
    ),
];

/// For every Rust file, including tests.
const IN_RUST: &[Rule] = &[(
    r"#\[ignore\s*\]",
    "a test is ignored without a reason",
    r#"say why: `#[ignore = "reason"]`"#,
)];

/// For every text file.
const ANYWHERE: &[Rule] = &[
    (
        r#"(?:^|[\s"'`(=<:,])/(?:work|root|home|Users)/[\w.]"#,
        "a path of a particular machine",
        "use a relative path, or a variable",
    ),
    (
        r#"(?i)\bartifactory\b|registry\.npmjs\.|\bpypi\.org/|"resolved":\s*"http"#,
        "the address of a package registry",
        "let the user's own settings choose the registry",
    ),
    (
        r"(?i)\bissues?\s+#?\d+\b",
        "a number of the tracker",
        "say the reason itself: the project stands alone",
    ),
];

/// The rules, compiled.
pub(super) struct Rules {
    in_code: Vec<(Regex, &'static Rule)>,
    in_rust: Vec<(Regex, &'static Rule)>,
    anywhere: Vec<(Regex, &'static Rule)>,
}

impl Rules {
    pub(super) fn compile() -> Result<Self, regex::Error> {
        Ok(Self {
            in_code: compile(IN_CODE)?,
            in_rust: compile(IN_RUST)?,
            anywhere: compile(ANYWHERE)?,
        })
    }

    /// Reports unfinished work, debugging aids, sleeps and silent skips.
    pub(super) fn left_behind(&self, file: &str, text: &str) -> Vec<Finding> {
        let code = if is_test_file(file) {
            0
        } else {
            code_lines(text)
        };
        let mut findings = broken(file, text.lines().take(code), &self.in_code);
        findings.extend(broken(file, text.lines(), &self.in_rust));
        findings
    }

    /// Reports machine paths, registry addresses and tracker numbers.
    pub(super) fn foreign_words(&self, file: &str, text: &str) -> Vec<Finding> {
        broken(file, text.lines(), &self.anywhere)
    }
}

fn compile(rules: &'static [Rule]) -> Result<Vec<(Regex, &'static Rule)>, regex::Error> {
    rules
        .iter()
        .map(|rule| Ok((Regex::new(rule.0)?, rule)))
        .collect()
}

fn broken<'a>(
    file: &str,
    lines: impl Iterator<Item = &'a str>,
    rules: &[(Regex, &Rule)],
) -> Vec<Finding> {
    let finding = |(at, line): (usize, &str)| {
        let (_, (_, message, hint)) = rules.iter().find(|(pattern, _)| pattern.is_match(line))?;
        Some(Finding::failure(file, at + 1, *message, *hint))
    };
    lines.enumerate().filter_map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(findings: &[Finding]) -> Vec<(usize, &str)> {
        findings
            .iter()
            .map(|finding| (finding.line(), finding.message()))
            .collect()
    }

    fn left_behind(file: &str, text: &str) -> Vec<Finding> {
        Rules::compile().unwrap().left_behind(file, text)
    }

    fn foreign_words(file: &str, text: &str) -> Vec<Finding> {
        Rules::compile().unwrap().foreign_words(file, text)
    }

    #[test]
    fn unfinished_code_is_found_in_code_but_not_in_its_tests() {
        let text = "fn a() {\n    todo!()\n}\n#[cfg(test)]\nmod tests {\n    dbg!(1);\n}\n";
        assert_eq!(
            lines(&left_behind("crates/a/src/lib.rs", text)),
            [(2, "unfinished code")]
        );
        assert_eq!(lines(&left_behind("crates/a/tests/it.rs", text)), []);
    }

    #[test]
    fn a_test_is_ignored_only_with_a_reason() {
        let bare = concat!("#[ign", "ore]\nfn a() {}\n");
        let reasoned = "#[ignore = \"takes an hour\"]\nfn a() {}\n";
        let message = "a test is ignored without a reason";
        assert_eq!(
            lines(&left_behind("crates/a/tests/it.rs", bare)),
            [(1, message)]
        );
        assert_eq!(lines(&left_behind("crates/a/tests/it.rs", reasoned)), []);
    }

    #[test]
    fn paths_of_a_machine_are_found_but_paths_of_an_address_are_not() {
        let found = |text: &str| foreign_words("a.md", text).len();
        assert_eq!(found(concat!("see `/ho", "me/ann/notes`")), 1);
        assert_eq!(found(concat!("CACHE=/ro", "ot/.cache")), 1);
        assert_eq!(found("https://example.org/work/1"), 0);
    }

    #[test]
    fn tracker_numbers_are_found() {
        assert_eq!(
            foreign_words("a.rs", concat!("// see iss", "ue #12\n")).len(),
            1
        );
        assert_eq!(foreign_words("a.rs", "// issues a token\n").len(), 0);
    }
}
