//! Checks that the reference lists everything a user can type or see: tools, error codes, settings,
//! commands.
//!
//! Each rule says where such names are defined in the source and which document must hold them. A
//! rule applies once its source exists. From then on a rule about one file must find a name there,
//! so that moving the definitions cannot disable it; a rule about a folder may find none yet.

use anyhow::Context as _;
use regex::Regex;

use crate::finding::Finding;
use crate::repository::Repository;

/// Names defined in the source that a document must hold in backticks.
struct Rule {
    /// The kind of name, in the singular.
    what: &'static str,
    /// A file, or a folder with all below it.
    source: &'static str,
    /// Its first group captures the name.
    pattern: &'static str,
    document: &'static str,
}

const RULES: &[Rule] = &[
    Rule {
        what: "tool",
        source: "crates/wayleave-surface/src/",
        pattern: r#"\bTool::new\(\s*"([a-z_]+)""#,
        document: "docs/reference/tools.md",
    },
    Rule {
        what: "problem code",
        source: "crates/wayleave-model/src/problem/code.rs",
        pattern: r#"(?m)^\s+\w+ => "([a-z0-9_]+)": ""#,
        document: "docs/reference/mapping.md",
    },
    Rule {
        what: "error code",
        source: "crates/wayleave-mcp/src/error.rs",
        pattern: r"i32 = (-\d+);",
        document: "docs/reference/errors.md",
    },
    Rule {
        what: "setting",
        source: "crates/wayleave-project/src/settings/raw.rs",
        pattern: r"(?m)^    pub\(super\) (\w+): (?:Option<[a-zV]|Option<String|Vec|String)",
        document: "docs/reference/settings.md",
    },
    Rule {
        what: "environment variable",
        source: "crates/",
        pattern: r#""(WAYLEAVE_[A-Z_]+)""#,
        document: "docs/reference/settings.md",
    },
];

/// Reports names that are missing in the reference, and rules that find nothing.
pub(super) fn check(repository: &Repository) -> anyhow::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for rule in RULES {
        let pattern = Regex::new(rule.pattern)
            .with_context(|| format!("the pattern for each {} is wrong", rule.what))?;
        let mut names = Vec::new();
        let mut exists = false;
        for file in repository
            .files()
            .iter()
            .filter(|file| covers(rule.source, file))
        {
            exists = true;
            let text = repository.text(file)?.unwrap_or_default();
            let found = defined(&pattern, &text);
            names.extend(
                found
                    .into_iter()
                    .map(|(line, name)| (file.clone(), line, name)),
            );
        }
        if exists && names.is_empty() && !rule.source.ends_with('/') {
            findings.push(Finding::failure(
                rule.source,
                1,
                format!("no {} is defined here any more", rule.what),
                "name the new place in xtask/src/tidy/reference.rs",
            ));
        }
        let Some(document) = repository.text_of(rule.document)? else {
            if let Some((file, line, name)) = names.first() {
                let message = format!(
                    "{} `{name}` belongs in a reference that does not exist",
                    rule.what
                );
                let hint = format!("write {}", rule.document);
                findings.push(Finding::failure(file, *line, message, hint));
            }
            continue;
        };
        for (file, line, name) in names {
            if !documented(&document, &name) {
                findings.push(Finding::failure(
                    file,
                    line,
                    format!("{} `{name}` is not documented", rule.what),
                    format!("describe it in {}", rule.document),
                ));
            }
        }
    }
    Ok(findings)
}

fn covers(source: &str, file: &str) -> bool {
    let tests = super::is_test_file(file);
    !tests && (file == source || (source.ends_with('/') && file.starts_with(source)))
}

/// The names a source file defines outside its tests, with their lines, each once.
fn defined(pattern: &Regex, text: &str) -> Vec<(usize, String)> {
    let code: String = text
        .split_inclusive('\n')
        .take(super::code_lines(text))
        .collect();
    let mut names: Vec<(usize, String)> = Vec::new();
    for found in pattern.captures_iter(&code) {
        let Some(name) = found.get(1) else { continue };
        if !names.iter().any(|(_, known)| known == name.as_str()) {
            let line = code
                .bytes()
                .take(name.start())
                .filter(|byte| *byte == b'\n')
                .count()
                + 1;
            names.push((line, name.as_str().to_owned()));
        }
    }
    names
}

/// Whether a document holds the name as inline code, alone or as the first word of it.
fn documented(document: &str, name: &str) -> bool {
    // A setting is documented with its section: `serve.http`.
    [format!("`{name}"), format!(".{name}")]
        .iter()
        .any(|opening| {
            document.match_indices(opening).any(|(at, _)| {
                let rest = document.get(at + opening.len()..).unwrap_or_default();
                !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_' || next == '-')
            })
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles_and_has_a_group() {
        for rule in RULES {
            assert_eq!(
                Regex::new(rule.pattern).unwrap().captures_len(),
                2,
                "{}",
                rule.what
            );
        }
    }

    #[test]
    fn names_are_found_with_their_lines_and_tests_define_none() {
        let text = "tool(\n    \"fetch\")\ntool(\"fetch\") tool(\"search\")\n\
                    #[cfg(test)]\nmod tests {\n    tool(\"other\")\n}\n";
        let pattern = Regex::new(r#"tool\(\s*"([a-z]+)""#).unwrap();
        let found = [(2, "fetch".to_owned()), (3, "search".to_owned())];
        assert_eq!(defined(&pattern, text), found);
    }

    #[test]
    fn a_name_is_documented_as_inline_code_and_not_as_part_of_another() {
        assert!(documented("- `fetch` reads one", "fetch"));
        assert!(documented("| `fetch {id}` |", "fetch"));
        assert!(!documented("fetch", "fetch"));
        assert!(!documented("`fetch_all`", "fetch"));
    }

    #[test]
    fn a_folder_covers_its_files_and_not_their_tests() {
        assert!(covers("crates/a/src/", "crates/a/src/x/y.rs"));
        assert!(!covers("crates/a/src/", "crates/a/src/x/tests.rs"));
        assert!(!covers("crates/a/src/x.rs", "crates/a/src/x.rs.md"));
    }
}
