//! Checks that every crate inherits the lints of the workspace.

use crate::finding::Finding;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_takes_the_lints_of_the_workspace() {
        let good = "[package]\nname = \"a\"\n\n[lints]\nworkspace = true\n";
        assert_eq!(without_workspace_lints("crates/a/Cargo.toml", good), None);
        let own = "[package]\nname = \"a\"\n\n[lints.rust]\nunsafe_code = \"allow\"\n";
        assert!(without_workspace_lints("crates/a/Cargo.toml", own).is_some());
    }
}
