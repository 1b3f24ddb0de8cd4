//! Golden files: approved output as text, rewritten only on purpose.

use std::path::Path;

/// Compares `actual` with the file at `path`; with `WAYLEAVE_BLESS=1` rewrites the file instead.
///
/// # Panics
/// If they differ, with the difference and the command that accepts it.
#[expect(clippy::panic, reason = "an assertion")]
pub fn assert_golden(path: impl AsRef<Path>, actual: &str) {
    let path = path.as_ref();
    if std::env::var_os("WAYLEAVE_BLESS").is_some_and(|it| it == "1") {
        let folder = path.parent().unwrap_or(Path::new("."));
        if let Err(error) =
            std::fs::create_dir_all(folder).and_then(|()| std::fs::write(path, actual))
        {
            panic!("cannot bless {}: {error}", path.display());
        }
        return;
    }
    let agreed = std::fs::read_to_string(path).unwrap_or_default();
    if agreed != actual {
        let difference = similar::TextDiff::from_lines(agreed.as_str(), actual);
        let shown = difference
            .unified_diff()
            .header("agreed", "actual")
            .to_string();
        panic!(
            "{} differs; rerun with WAYLEAVE_BLESS=1 to accept\n{shown}",
            path.display(),
        );
    }
}
