//! The fields of a form or of a query string.

use url::form_urlencoded;

/// Decoded fields, in order; a name may occur more than once.
#[derive(Debug, Clone, Default)]
pub(crate) struct FormFields(Vec<(String, String)>);

impl FormFields {
    /// Decodes `a=1&b=2`.
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        Self(form_urlencoded::parse(bytes).into_owned().collect())
    }

    /// The first value of a field; empty if the field is missing.
    pub(crate) fn get(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(key, _)| key == name);
        found.map_or("", |(_, value)| value)
    }

    /// Every value of a field.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let named = self.0.iter().filter(move |(key, _)| key == name);
        named.map(|(_, value)| value.as_str())
    }

    /// Whether a field is there.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(key, _)| key == name)
    }
}

/// Percent-encodes a text for a query string.
pub(crate) fn encode(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}
