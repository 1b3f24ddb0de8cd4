//! A new project, in words.

use std::path::Path;

use serde_json::json;

use super::sources;
use crate::{Rendering, columns};

/// The result of creating a project.
pub fn created(folder: &Path) -> Rendering {
    let next = sources::add_command();
    let contents = [
        ["wayleave.toml", "settings"],
        ["mappings/", "drafts, for version control"],
        [".wayleave/", "what people decided; private to you"],
    ];
    let contents = contents.map(|row| row.map(str::to_owned).to_vec());
    let text = format!(
        "made a project in {}\n{}\nnext: {next}",
        folder.display(),
        columns::indented(&contents)
    );
    let document = json!({ "project": folder.to_string_lossy(), "next": next });
    Rendering::new(document, text)
}
