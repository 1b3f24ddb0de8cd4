//! The content that tools, resources and prompts return.

use serde_json::{Map, Value};

/// A block of content.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// Text.
    Text(String),
    /// An image, base64.
    Image {
        /// The bytes, base64.
        data: String,
        /// For instance `image/png`.
        mime_type: String,
    },
    /// Audio, base64.
    Audio {
        /// The bytes, base64.
        data: String,
        /// For instance `audio/wav`.
        mime_type: String,
    },
    /// A resource's contents, embedded.
    Resource(ResourceContents),
    /// A pointer to a resource the client may read.
    Link {
        /// The resource.
        uri: String,
        /// Its name.
        name: String,
        /// Its media type.
        mime_type: Option<String>,
    },
}

impl Content {
    /// Text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }
}

/// The body of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResourceBody {
    /// Text.
    Text(String),
    /// Bytes, base64.
    Blob(String),
}

/// The contents of one resource.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceContents {
    /// The resource.
    pub uri: String,
    /// Its media type.
    pub mime_type: Option<String>,
    /// Its body.
    pub body: ResourceBody,
    /// Metadata, under reverse-DNS keys.
    pub meta: Option<Map<String, Value>>,
}

impl ResourceContents {
    /// Text contents.
    pub fn text(
        uri: impl Into<String>,
        mime_type: impl Into<String>,
        text: impl Into<String>,
    ) -> Self {
        Self {
            uri: uri.into(),
            mime_type: Some(mime_type.into()),
            body: ResourceBody::Text(text.into()),
            meta: None,
        }
    }

    /// Binary contents, already base64.
    pub fn blob(
        uri: impl Into<String>,
        mime_type: impl Into<String>,
        base64: impl Into<String>,
    ) -> Self {
        Self {
            uri: uri.into(),
            mime_type: Some(mime_type.into()),
            body: ResourceBody::Blob(base64.into()),
            meta: None,
        }
    }

    /// Adds metadata.
    #[must_use]
    pub fn with_meta(mut self, meta: Map<String, Value>) -> Self {
        self.meta = Some(meta);
        self
    }
}
