//! Checks that every crate inherits the lints of the workspace and uses its dependencies.

use std::collections::BTreeSet;

use regex::Regex;

use crate::finding::Finding;

/// A dependency that a manifest names.
struct Dependency<'a> {
    name: &'a str,
    line: usize,
    /// Whether only tests may use it.
    dev: bool,
}

/// Reports the manifest of a crate that does not inherit the lints of the workspace.
pub(super) fn without_workspace_lints(file: &str, text: &str) -> Option<Finding> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let inherits = lines
        .windows(2)
        .any(|pair| pair == ["[lints]", "workspace = true"]);
    (!inherits).then(|| {
        Finding::failure(
            file,
            lines.len().max(1),
            "the crate does not take the lints of the workspace",
            "end the manifest with `[lints]` and `workspace = true`",
        )
    })
}

/// Reports the dependencies of a crate that its sources do not name: `code` is the text of its
/// library and programs, `tests` that of everything else.
pub(super) fn unused(
    file: &str,
    text: &str,
    code: &str,
    tests: &str,
) -> anyhow::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for Dependency { name, line, dev } in dependencies(text) {
        let word = Regex::new(&format!(r"\b{}\b", name.replace('-', "_")))?;
        if !(word.is_match(code) || dev && word.is_match(tests)) {
            findings.push(Finding::failure(
                file,
                line,
                format!("no source names the dependency `{name}`"),
                "remove it",
            ));
        }
    }
    Ok(findings)
}

/// Reports the dependencies of the workspace that none of these manifests takes.
pub(super) fn unused_in_workspace<'a>(
    text: &str,
    manifests: impl IntoIterator<Item = &'a str>,
) -> Vec<Finding> {
    let taken: BTreeSet<&str> = manifests
        .into_iter()
        .flat_map(|manifest| dependencies(manifest).map(|it| it.name))
        .collect();
    dependencies(text)
        .filter(|it| !taken.contains(it.name))
        .map(|it| {
            Finding::failure(
                "Cargo.toml",
                it.line,
                format!("no crate takes the dependency `{}`", it.name),
                "remove it",
            )
        })
        .collect()
}

/// The dependencies of a manifest, each on a line of its own as in all of ours.
fn dependencies(text: &str) -> impl Iterator<Item = Dependency<'_>> {
    let mut section = "";
    text.lines().enumerate().filter_map(move |(index, line)| {
        if let Some(header) = line.strip_prefix('[') {
            section = header.trim_end_matches(']');
            return None;
        }
        if !section.ends_with("dependencies") || line.starts_with('#') {
            return None;
        }
        let name = line.split(['.', '=', ' ']).next().unwrap_or_default();
        (!name.is_empty()).then_some(Dependency {
            name,
            line: index + 1,
            dev: section.ends_with("dev-dependencies"),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dependency_is_used_by_a_source() {
        let manifest = "[dependencies]\none-two.workspace = true\nthree = \"1\"\n\n\
            [dev-dependencies]\nfour = { version = \"1\" }\n";
        let unused = |code, tests| -> Vec<String> {
            let findings = unused("crates/a/Cargo.toml", manifest, code, tests).unwrap();
            findings.iter().map(|it| it.message().to_owned()).collect()
        };
        assert!(unused("use one_two::A; three::b()", "four").is_empty());
        let all =
            ["one-two", "three", "four"].map(|it| format!("no source names the dependency `{it}`"));
        assert_eq!(unused("one_two_three", "one_two three"), all);
    }

    #[test]
    fn a_dependency_of_the_workspace_is_taken_by_a_crate() {
        let workspace = "[workspace.dependencies]\none = \"1\"\n# why\ntwo = \"1\"\n";
        let manifest = "[dependencies]\ntwo.workspace = true\n";
        let findings = unused_in_workspace(workspace, [manifest]);
        let messages: Vec<_> = findings.iter().map(Finding::message).collect();
        assert_eq!(messages, ["no crate takes the dependency `one`"]);
    }

    #[test]
    fn a_crate_takes_the_lints_of_the_workspace() {
        let good = "[package]\nname = \"a\"\n\n[lints]\nworkspace = true\n";
        assert_eq!(without_workspace_lints("crates/a/Cargo.toml", good), None);
        let own = "[package]\nname = \"a\"\n\n[lints.rust]\nunsafe_code = \"allow\"\n";
        assert!(without_workspace_lints("crates/a/Cargo.toml", own).is_some());
    }
}
