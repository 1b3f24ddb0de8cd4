//! The upkeep of a project's private folder, in words.

use std::path::PathBuf;

use serde_json::json;

use crate::{Rendering, columns};

/// The result of removing what crashes left behind.
pub fn leftovers_removed(removed: &[PathBuf]) -> Rendering {
    let names: Vec<String> = removed.iter().map(|it| it.display().to_string()).collect();
    let text = match names.len() {
        0 => "nothing was left behind".to_owned(),
        many => format!("removed {}", columns::count(many, "file")),
    };
    Rendering::new(json!({ "removed": names }), text)
}
