//! How a record's id is composed of the fields that a result shows.

use wayleave_plan::Record;
use wayleave_plan::value::Value;
use wayleave_plan::view::StreamView;

/// The key of a record as people write it.
pub(crate) fn readable_key(record: &Record) -> String {
    let key: Vec<String> = record.key().filter_map(Value::to_text).collect();
    key.join(", ")
}

/// The pattern of the ids of a stream's records, with the names of the key fields in place of their
/// values, as in `crm-eu/people:{id}`.
pub(crate) fn pattern(stream: &StreamView) -> String {
    let mut pattern = String::with_capacity(64);
    for part in [stream.connection_id(), "/", stream.name(), ":"] {
        pattern.push_str(part);
    }
    for (place, field) in stream.key_fields().iter().enumerate() {
        pattern.push_str(if place == 0 { "{" } else { ",{" });
        pattern.push_str(field.name());
        pattern.push('}');
    }
    pattern
}
