//! The keys that seal cursors and bookmarks, in words.

use serde_json::json;

use crate::{Rendering, columns, keys::Rotation};

/// The result of rotating the keys.
pub fn rotated(rotation: &Rotation) -> Rendering {
    let older = match rotation.older {
        0 => "no older key is left, and what was sealed before is refused".to_owned(),
        many => format!(
            "{} still open what they sealed",
            columns::count(many, "older key")
        ),
    };
    Rendering::new(
        json!({ "key": rotation.id, "older": rotation.older }),
        format!(
            "new cursors are sealed under key {}; {older}; servers that run take it at their next start",
            rotation.id
        ),
    )
}
