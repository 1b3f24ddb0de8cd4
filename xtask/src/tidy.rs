//! `cargo xtask tidy`: checks documents, file sizes and sources against the project's rules.
//!
//! Each check is a finder over text, in its own file, tested on small strings. This file only
//! decides which files a finder reads. All findings are reported at once.

mod decisions;
mod documents;
mod manifests;
mod names;
mod purity;
mod reference;
mod reliability;
mod sizes;
mod source;

use crate::finding::Finding;
use crate::repository::Repository;

/// Third-party or generated text.
const NOT_OURS: &[&str] = &["Cargo.lock", "LICENSE-APACHE", "LICENSE-MIT"];

/// Runs every check over the working tree.
pub(crate) fn run(repository: &Repository) -> anyhow::Result<Vec<Finding>> {
    let reader = documents::Reader::new()?;
    let rules = source::Rules::compile()?;
    let purity = purity::Purity::compile()?;
    let mut names = names::Names::new()?;
    let mut findings = Vec::new();
    for file in repository.files() {
        if NOT_OURS.contains(&file.as_str()) {
            continue;
        }
        let Some(text) = repository.text(file)? else {
            continue;
        };
        findings.extend(rules.foreign_words(file, &text));
        if has_extension(file, "md") {
            findings.extend(reader.missing_paths(file, &text, repository));
        }
        if has_extension(file, "rs") {
            findings.extend(sizes::too_long(file, &text));
            findings.extend(rules.left_behind(file, &text));
            findings.extend(purity.impurities(file, &text));
            findings.extend(purity.unbound_statements(file, &text));
            findings.extend(names.read(file, &text));
        }
        if file.ends_with("/Cargo.toml") {
            findings.extend(manifests::without_workspace_lints(file, &text));
        }
    }
    findings.extend(names.shared());
    findings.extend(dependencies(repository)?);
    findings.extend(decisions::check(repository)?);
    findings.extend(documents::changelog(
        repository.text_of("CHANGELOG.md")?.as_deref(),
    ));
    findings.extend(reference::check(repository)?);
    findings.extend(reliability::check(repository)?);
    Ok(findings)
}

/// Checks that every dependency is used.
fn dependencies(repository: &Repository) -> anyhow::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let mut manifests = Vec::new();
    for file in repository.files() {
        let Some(folder) = file.strip_suffix("Cargo.toml").filter(|it| !it.is_empty()) else {
            continue;
        };
        let Some(text) = repository.text(file)? else {
            continue;
        };
        let (mut code, mut tests) = (String::new(), String::new());
        for source in repository.files() {
            let Some(inside) = source
                .strip_prefix(folder)
                .filter(|it| has_extension(it, "rs"))
            else {
                continue;
            };
            let text = repository.text(source)?.unwrap_or_default();
            let target = if inside.starts_with("src/") {
                &mut code
            } else {
                &mut tests
            };
            target.push_str(&text);
        }
        findings.extend(manifests::unused(file, &text, &code, &tests)?);
        manifests.push(text);
    }
    let workspace = repository.text_of("Cargo.toml")?.unwrap_or_default();
    let manifests = manifests.iter().map(|it| &**it);
    findings.extend(manifests::unused_in_workspace(&workspace, manifests));
    Ok(findings)
}

fn has_extension(file: &str, extension: &str) -> bool {
    file.rsplit_once('.')
        .is_some_and(|(_, found)| found == extension)
}

/// Whether a file holds only tests or test support.
fn is_test_file(file: &str) -> bool {
    let inside = |folder: &str| file.contains(&format!("/{folder}/")) || file.starts_with(folder);
    file.ends_with("/tests.rs") || inside("tests") || inside("benches") || inside("wayleave-test")
}

/// The lines of a source file before its inline test module.
fn code_lines(text: &str) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    let tests = lines.windows(2).position(|pair| match pair {
        [attribute, module] => {
            *attribute == "#[cfg(test)]" && module.starts_with("mod ") && module.ends_with('{')
        }
        _ => false,
    });
    tests.unwrap_or(lines.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inline_test_module_is_no_code() {
        assert_eq!(code_lines("a\nb\n#[cfg(test)]\nmod tests {\n}\n"), 2);
    }

    #[test]
    fn a_test_module_in_its_own_file_leaves_the_code_whole() {
        assert_eq!(code_lines("a\n#[cfg(test)]\nmod tests;\nb\n"), 4);
    }

    #[test]
    fn test_files_are_told_by_their_place() {
        for file in [
            "crates/a/tests/it.rs",
            "crates/a/src/x/tests.rs",
            "tests/python/t.rs",
        ] {
            assert!(is_test_file(file), "{file}");
        }
        for file in ["crates/a/src/latests.rs", "crates/a/src/lib.rs"] {
            assert!(!is_test_file(file), "{file}");
        }
    }
}
