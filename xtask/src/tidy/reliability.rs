//! Checks that the list of ways to break the server names existing tests, and numbers its items
//! without gaps.

use std::collections::BTreeSet;

use anyhow::Context as _;

use crate::finding::Finding;
use crate::repository::Repository;

const PAGE: &str = "docs/reliability.md";
/// Number of listed ways.
const ITEMS: usize = 58;

/// Reports named tests that are missing from their files, and missing items.
pub(super) fn check(repository: &Repository) -> anyhow::Result<Vec<Finding>> {
    let Some(page) = repository.text_of(PAGE).context("cannot read the list")? else {
        return Ok(Vec::new());
    };
    let mut findings = missing_items(&page);
    for (line, row) in (1..).zip(page.lines()) {
        let mut tests = String::new();
        for word in code(row) {
            if super::has_extension(word, "rs") || super::has_extension(word, "py") {
                // A missing file is a missing path, which another check reports.
                tests = repository.text_of(word)?.unwrap_or_default();
            } else if is_test_name(word) && !has_test(&tests, word) {
                findings.push(Finding::failure(
                    PAGE,
                    line,
                    format!("the file named before it has no test `{word}`"),
                    "name a test that exists, or say that the item is not shown",
                ));
            }
        }
    }
    Ok(findings)
}

fn missing_items(page: &str) -> Vec<Finding> {
    let listed: BTreeSet<usize> = page
        .lines()
        .filter_map(|row| row.strip_prefix("| ")?.split(' ').next()?.parse().ok())
        .collect();
    (1..=ITEMS)
        .filter(|item| !listed.contains(item))
        .map(|item| {
            let message = format!("item {item} is missing");
            Finding::failure(PAGE, 1, message, "list it, shown or not")
        })
        .collect()
}

/// Whether a file defines a test of this name, in Rust or in Python.
fn has_test(file: &str, name: &str) -> bool {
    ["fn", "def"]
        .iter()
        .any(|keyword| file.contains(&format!("{keyword} {name}(")))
}

/// The inline code of a line.
fn code(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// Whether a word is a test name: tests are named by sentences, and nothing else on the page is.
fn is_test_name(word: &str) -> bool {
    word.contains('_') && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_counted_wherever_they_stand() {
        let rows: Vec<String> = (2..=ITEMS).map(|item| format!("| {item} | x |")).collect();
        let found = missing_items(&rows.join("\n"));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].message(), "item 1 is missing");
    }

    #[test]
    fn a_test_is_found_in_either_language_by_its_whole_name() {
        for file in [
            "#[test]\nfn it_holds_well() {}",
            "    async def it_holds_well(self) -> None:",
        ] {
            assert!(has_test(file, "it_holds_well"), "{file}");
            assert!(!has_test(file, "it_holds"), "{file}");
        }
    }

    #[test]
    fn a_sentence_in_code_is_a_test_and_a_path_is_not() {
        let words: Vec<&str> = code("| 1 | `crates/a/b.rs` `it_holds_well`, `deny` |").collect();
        assert_eq!(words, ["crates/a/b.rs", "it_holds_well", "deny"]);
        assert!(is_test_name("it_holds_well"));
        assert!(!is_test_name("crates/a/b_c.rs") && !is_test_name("deny"));
    }
}
