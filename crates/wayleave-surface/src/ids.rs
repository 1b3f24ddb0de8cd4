//! How the id of a record is made of the fields a result shows.

use wayleave_plan::Record;
use wayleave_plan::view::StreamView;

/// The ids of one stream's records.
pub(crate) struct Ids {
    /// What comes before the key.
    prefix: String,
    /// The id with the names of the key's fields in it: `crm-eu/people:{id}`.
    pattern: String,
}

impl Ids {
    pub(crate) fn of(connection_id: &str, stream_name: &str, stream: Option<&StreamView>) -> Self {
        let key: Vec<&str> = stream
            .into_iter()
            .flat_map(StreamView::key_fields)
            .map(|field| field.name.as_str())
            .collect();
        let named: Vec<String> = key.iter().map(|name| format!("{{{name}}}")).collect();
        let prefix = format!("{connection_id}/{stream_name}:");
        Self {
            pattern: format!("{prefix}{}", named.join(",")),
            prefix,
        }
    }

    /// The id with the names of the key's fields in place of their values.
    pub(crate) fn pattern(&self) -> &str {
        &self.pattern
    }

    /// Whether putting the key's values in place does not give the id, because some characters of
    /// theirs are encoded in it.
    pub(crate) fn is_encoded(&self, record: &Record) -> bool {
        // The mark of an encoded character is itself one that is encoded.
        let key = record.id.strip_prefix(&self.prefix);
        key.is_none_or(|key| key.contains('%'))
    }
}
