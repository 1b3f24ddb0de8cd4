//! The smallest possible picture and sound.

use wayleave_mcp::Content;

/// One red pixel, a PNG.
pub(crate) const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC";

/// A millisecond of silence, a WAV.
const SILENCE: &str = "UklGRiwAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQgAAACAgICAgICAgA==";

pub(crate) fn image() -> Content {
    Content::Image {
        data: PIXEL.to_owned(),
        mime_type: "image/png".to_owned(),
    }
}

pub(crate) fn audio() -> Content {
    Content::Audio {
        data: SILENCE.to_owned(),
        mime_type: "audio/wav".to_owned(),
    }
}
