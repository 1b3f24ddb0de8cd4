//! The stylesheet and the script. Their names contain their digests, so browsers may cache them
//! for ever.

use std::sync::LazyLock;

use wayleave_model::digest::Digest;

const STYLE: &str = include_str!("../assets/console.css");
const SCRIPT: &str = include_str!("../assets/console.js");

/// A file that a page names.
pub(crate) struct Asset {
    pub(crate) path: String,
    pub(crate) content_type: &'static str,
    pub(crate) text: &'static str,
}

impl Asset {
    fn new(name: &str, extension: &str, content_type: &'static str, text: &'static str) -> Self {
        let digest = Digest::from_bytes(text.as_bytes()).short();
        Self {
            path: format!("/assets/{name}-{digest}.{extension}"),
            content_type,
            text,
        }
    }
}

/// The stylesheet.
pub(crate) static CSS: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("console", "css", "text/css; charset=utf-8", STYLE));

/// The script. Every page works without it.
pub(crate) static JS: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("console", "js", "text/javascript; charset=utf-8", SCRIPT));
