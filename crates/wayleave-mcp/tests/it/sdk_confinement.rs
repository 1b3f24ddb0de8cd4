//! Only one folder names the SDK, so that an upgrade changes only that folder.

use std::{fs, path::Path};

/// The files below `folder` that name the SDK.
fn naming_the_sdk(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            naming_the_sdk(&path, found);
        } else if fs::read_to_string(&path).unwrap().contains("rmcp") {
            found.push(path.display().to_string());
        }
    }
}

#[test]
fn only_the_sdk_folder_names_the_sdk() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    naming_the_sdk(&source, &mut found);
    let sdk = source.join("sdk").display().to_string();
    assert!(found.iter().any(|path| path.starts_with(&sdk)));
    found.retain(|path| !path.starts_with(&sdk));
    assert_eq!(found, Vec::<String>::new());
}
