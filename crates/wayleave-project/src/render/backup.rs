//! The results of backup and restore.

use std::path::Path;

use serde_json::json;

use super::moment;
use crate::{
    Rendering,
    backup::{FinishedBackup, RestoredProject},
    columns,
};

/// A finished backup.
pub fn made(folder: &Path, backup: &FinishedBackup) -> Rendering {
    let FinishedBackup {
        digest,
        head,
        files,
        bytes,
    } = backup;
    let document = json!({
        "backup": folder.to_string_lossy(),
        "digest": digest,
        "head": head.to_string(),
        "files": files,
        "bytes": bytes,
    });
    let text = format!(
        "backed up {} ({bytes} bytes) in {}\ndigest: {digest}\nhead: {head}\n\
         hint: keep the digest elsewhere, and give it to `wayleave restore --digest`",
        columns::count(*files, "file"),
        folder.display(),
    );
    Rendering::new(document, text)
}

/// A restored project.
pub fn restored(folder: &Path, project: &RestoredProject) -> Rendering {
    let RestoredProject {
        digest,
        made,
        head,
        files,
        entries,
        calls,
    } = project;
    let document = json!({
        "project": folder.to_string_lossy(),
        "digest": digest,
        "made": moment(*made),
        "head": head.to_string(),
        "files": files,
        "entries": entries,
        "calls": calls,
    });
    let text = format!(
        "restored {} of {} in {}\n\
         {} and {calls} recorded calls, intact\n\
         head: {head}\n\
         note: what was decided after entry {} is not in it: tokens and grants revoked since are live again\n\
         next: wayleave doctor",
        columns::count(*files, "file"),
        moment(*made),
        folder.display(),
        columns::count_entries(*entries),
        head.seq,
    );
    Rendering::new(document, text)
}
