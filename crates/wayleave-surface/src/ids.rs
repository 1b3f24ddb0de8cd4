//! How the id of a record is made of the fields a result shows.

use wayleave_plan::Record;
use wayleave_plan::id::RecordId;
use wayleave_plan::view::StreamView;

/// The key in a record's id, encoded as it is there.
pub(crate) fn key(id: &str) -> &str {
    id.split_once(':').map_or("", |(_, key)| key)
}

/// The key in a record's id as people write it.
pub(crate) fn readable_key(id: &str) -> String {
    RecordId::parse(id).map_or_else(|_| key(id).to_owned(), |id| id.key.join(", "))
}

/// The ids of one stream's records.
pub(crate) struct RecordIds {
    /// The id with the names of the key's fields in it: `crm-eu/people:{id}`.
    pattern: String,
    /// How much of it comes before the key.
    prefix: usize,
}

impl RecordIds {
    pub(crate) fn new(connection_id: &str, stream_name: &str, stream: Option<&StreamView>) -> Self {
        let mut pattern = String::with_capacity(64);
        for part in [connection_id, "/", stream_name, ":"] {
            pattern.push_str(part);
        }
        let prefix = pattern.len();
        let key = stream.into_iter().flat_map(StreamView::key_fields);
        for (place, field) in key.enumerate() {
            pattern.push_str(if place == 0 { "{" } else { ",{" });
            pattern.push_str(&field.name);
            pattern.push('}');
        }
        Self { pattern, prefix }
    }

    /// The id with the names of the key's fields in place of their values.
    pub(crate) fn pattern(&self) -> &str {
        &self.pattern
    }

    /// Whether putting the key's values in place does not give the id, because some characters of
    /// theirs are encoded in it.
    pub(crate) fn is_encoded(&self, record: &Record) -> bool {
        // The mark of an encoded character is itself one that is encoded. No id is one that the
        // values tell.
        let prefix = self.pattern.get(..self.prefix).unwrap_or_default();
        let key = record.id.strip_prefix(prefix);
        !record.id.is_empty() && key.is_none_or(|key| key.contains('%'))
    }
}
