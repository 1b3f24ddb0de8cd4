//! Checks that documents name only existing paths, and that the changelog has a section for
//! unreleased changes.
//!
//! Paths are read from links and from inline code. Fenced blocks are sessions and samples: they
//! show a user's folder, not this repository.

use regex::Regex;

use crate::finding::Finding;
use crate::repository::Repository;

/// Extensions that make a bare word a file name.
const EXTENSIONS: &[&str] = &[
    "json", "lock", "md", "mjs", "py", "rs", "sh", "toml", "txt", "yaml", "yml",
];

/// Files of a user's folder, or of clients' settings, which are not in this repository.
const OF_THE_USER: &[&str] = &[
    ".claude.json",
    ".codex/",
    ".cursor/mcp.json",
    ".gemini/",
    ".mcp.json",
    ".vscode/mcp.json",
    ".wayleave/",
    "claude_desktop_config.json",
    "config.toml",
    "mappings/",
    "mcp.json",
    "ontology.toml",
    "target/",
    "wayleave.toml",
];

/// Documents about the past, which may name removed paths.
const HISTORY: &str = "CHANGELOG.md";

/// A path in a document.
#[derive(Debug, PartialEq, Eq)]
struct Mention {
    line: usize,
    path: String,
    kind: MentionKind,
}

#[derive(Debug, PartialEq, Eq)]
enum MentionKind {
    Link,
    Code,
}

/// Finds the paths a document names.
pub(super) struct Reader {
    link: Regex,
    code: Regex,
    path: Regex,
}

impl Reader {
    pub(super) fn new() -> Result<Self, regex::Error> {
        Ok(Self {
            link: Regex::new(r"\]\(\s*<?([^)\s>]+)>?[^)]*\)")?,
            code: Regex::new(r"`([^`]+)`")?,
            path: Regex::new(r"^[\w.*/-]+$")?,
        })
    }

    /// Reports links and inline code that name a missing path.
    pub(super) fn missing_paths(
        &self,
        file: &str,
        text: &str,
        repository: &Repository,
    ) -> Vec<Finding> {
        if file == HISTORY {
            return Vec::new();
        }
        let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
        let finding = |mention: Mention| {
            Finding::failure(
                file,
                mention.line,
                format!("`{}` does not exist", mention.path),
                "name the path as it is now, from the root or from the document's folder",
            )
        };
        self.mentions(text)
            .into_iter()
            .filter(|mention| !exists(mention, folder, repository))
            .map(finding)
            .collect()
    }

    fn mentions(&self, text: &str) -> Vec<Mention> {
        let mut found = Vec::new();
        let mut fenced = false;
        for (at, line) in text.lines().enumerate() {
            if line.trim_start().starts_with("```") {
                fenced = !fenced;
            } else if !fenced {
                let mut mention = |path: &str, kind| {
                    found.push(Mention {
                        line: at + 1,
                        path: path.to_owned(),
                        kind,
                    });
                };
                for target in captures(&self.link, line) {
                    let path = target.split('#').next().unwrap_or_default();
                    if !path.is_empty() && !path.contains(':') {
                        mention(path, MentionKind::Link);
                    }
                }
                for word in captures(&self.code, line) {
                    let word = word.trim_start_matches("./");
                    if self.path.is_match(word) && looks_like_path(word) {
                        mention(word, MentionKind::Code);
                    }
                }
            }
        }
        found
    }
}

/// Reports a changelog without a section for unreleased changes.
pub(super) fn changelog(text: Option<&str>) -> Option<Finding> {
    let line = |line: &str| matches!(line.trim_end(), "## Unreleased" | "## [Unreleased]");
    (!text.is_some_and(|text| text.lines().any(line))).then(|| {
        let hint = "add a heading `## Unreleased` above the last release";
        Finding::failure(
            HISTORY,
            1,
            "the changelog has no section for unreleased changes",
            hint,
        )
    })
}

fn captures<'a>(pattern: &Regex, line: &'a str) -> Vec<&'a str> {
    pattern
        .captures_iter(line)
        .filter_map(|found| Some(found.get(1)?.as_str()))
        .collect()
}

fn looks_like_path(word: &str) -> bool {
    let of_the_user = OF_THE_USER.iter().any(|known| {
        word == *known || (known.ends_with('/') && format!("{word}/").starts_with(known))
    });
    let named = word.rsplit_once('.').is_some_and(|(stem, extension)| {
        EXTENSIONS.contains(&extension) && !stem.is_empty() && !stem.ends_with('/')
    });
    !word.starts_with(['/', '-']) && !of_the_user && (named || word.contains('/'))
}

fn exists(mention: &Mention, folder: &str, repository: &Repository) -> bool {
    let path = mention.path.as_str();
    // For a glob, check the folder it searches.
    let fixed = path.split('*').next().unwrap_or_default();
    let fixed = if fixed == path {
        path
    } else {
        fixed.rsplit_once('/').map_or("", |it| it.0)
    };
    let from_document = if folder.is_empty() {
        fixed.to_owned()
    } else {
        format!("{folder}/{fixed}")
    };
    if repository.exists(&from_document) {
        return true;
    }
    match mention.kind {
        MentionKind::Link => false,
        MentionKind::Code if repository.exists(fixed) => true,
        // A bare name may belong to any file. A word with a slash and no extension is a path only
        // under a folder of this repository: `tools/list` and `application/json` are not.
        MentionKind::Code => match path.split_once('/') {
            None => repository
                .files()
                .iter()
                .any(|file| file.ends_with(&format!("/{path}"))),
            Some((top, _)) => !has_known_extension(path) && !repository.exists(top),
        },
    }
}

fn has_known_extension(path: &str) -> bool {
    path.rsplit_once('.')
        .is_some_and(|(_, extension)| EXTENSIONS.contains(&extension))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str) -> Vec<(usize, String)> {
        let found = Reader::new().unwrap().mentions(text);
        found
            .into_iter()
            .map(|mention| (mention.line, mention.path))
            .collect()
    }

    #[test]
    fn links_and_inline_code_are_read() {
        let text = "See [it](docs/a.md#part) and\n`src/lib.rs`, `Cargo.toml` or `./scripts/test`.";
        let found = [
            (1, "docs/a.md"),
            (2, "src/lib.rs"),
            (2, "Cargo.toml"),
            (2, "scripts/test"),
        ];
        assert_eq!(
            paths(text),
            found.map(|(line, path)| (line, path.to_owned()))
        );
    }

    #[test]
    fn addresses_anchors_words_and_commands_are_no_paths() {
        let text = "[a](https://example.org/x.md) [b](#there) `cargo run` `query_records` \
                    `wayleave://kg/Person` `--flag` `/mcp` `<id>/x` `.rs`";
        assert_eq!(paths(text), []);
    }

    #[test]
    fn files_of_a_users_folder_are_no_paths_of_ours() {
        assert_eq!(
            paths("`wayleave.toml`, `mappings/crm.toml`, `.wayleave/`, `.wayleave`"),
            []
        );
    }

    #[test]
    fn fenced_blocks_are_samples() {
        assert_eq!(
            paths("```text\n`src/none.rs`\n```\n`a/b.rs`\n"),
            [(4, "a/b.rs".to_owned())]
        );
    }

    #[test]
    fn a_changelog_has_room_for_the_unreleased() {
        assert_eq!(changelog(Some("# Changelog\n\n## Unreleased\n")), None);
        assert!(changelog(Some("# Changelog\n\n## 0.1.0\n")).is_some());
        assert!(changelog(None).is_some());
    }

    /// The paths of a document at `docs/guide/a.md` that are missing from a small repository.
    fn missing(text: &str) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let files = [
            "Cargo.toml",
            "crates/a/src/reload.rs",
            "docs/guide/b.md",
            "scripts/test",
        ];
        let repository = Repository::with_files(folder.path(), &files);
        let found = Reader::new()
            .unwrap()
            .missing_paths("docs/guide/a.md", text, &repository);
        found
            .iter()
            .map(|finding| finding.message().to_owned())
            .collect()
    }

    #[test]
    fn paths_that_exist_are_well_from_the_root_or_the_documents_folder() {
        let text = "[b](b.md) [up](../../Cargo.toml) `scripts/test` `crates/a` `crates/*` \
                    `reload.rs` `docs/guide/*.md`";
        assert_eq!(missing(text), Vec::<String>::new());
    }

    #[test]
    fn paths_that_do_not_exist_are_found() {
        assert_eq!(
            missing("[c](c.md) `scripts/tset` `crates/b/src/lib.rs` `gone.rs` `gone/*.md`"),
            [
                "`c.md` does not exist",
                "`scripts/tset` does not exist",
                "`crates/b/src/lib.rs` does not exist",
                "`gone.rs` does not exist",
                "`gone/*.md` does not exist",
            ]
        );
    }

    #[test]
    fn methods_and_media_types_are_no_paths() {
        assert_eq!(
            missing("`tools/list` `application/json` `and/or`"),
            Vec::<String>::new()
        );
    }

    #[test]
    fn the_changelog_may_name_what_was() {
        let folder = tempfile::tempdir().unwrap();
        let repository = Repository::with_files(folder.path(), &["CHANGELOG.md"]);
        let found = Reader::new()
            .unwrap()
            .missing_paths(HISTORY, "`src/gone.rs`", &repository);
        assert!(found.is_empty());
    }
}
