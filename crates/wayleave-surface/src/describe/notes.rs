//! Where a store answers otherwise than others would, as far as the fields of a stream can show it.

use wayleave_model::mapping::Datatype;
use wayleave_plan::view::StreamView;
use wayleave_store::Topic;

use crate::call_context::CallContext;

/// The wanted differences of a stream's store. A store that cannot be opened says nothing here.
pub(super) fn notes(
    call: &CallContext<'_>,
    stream: &StreamView,
    wanted: fn(Topic) -> bool,
) -> Vec<String> {
    let Some(store) = call.store(stream) else {
        return Vec::new();
    };
    store
        .capabilities()
        .differences
        .iter()
        .filter(|difference| wanted(difference.topic) && concerns(difference.topic, stream))
        .map(|difference| format!("{}: {}", difference.topic.as_str(), difference.note))
        .collect()
}

/// Whether a topic is about what answers mean. The others are about how a store's values are read
/// and shown, which an answer shows by itself; they are told to whoever asks for everything.
pub(super) fn changes_answers(topic: Topic) -> bool {
    !matches!(
        topic,
        Topic::Binary
            | Topic::Booleans
            | Topic::Dates
            | Topic::Datetimes
            | Topic::Integers
            | Topic::Text
    )
}

/// Whether a topic is about a type that a stream has fields of.
fn concerns(topic: Topic, stream: &StreamView) -> bool {
    let types: &[Datatype] = match topic {
        Topic::Binary | Topic::Text => &[Datatype::String, Datatype::Iri],
        Topic::Booleans => &[Datatype::Boolean],
        Topic::Dates => &[Datatype::Date],
        Topic::Datetimes => &[Datatype::Datetime],
        Topic::Decimals => &[Datatype::Decimal],
        Topic::FloatSums => &[Datatype::Number],
        Topic::Integers => &[Datatype::Integer],
        Topic::TimeZones => &[Datatype::Date, Datatype::Datetime],
        // What costs time is the operator's to know.
        Topic::Sorting => &[],
        // Better told once too often than not at all.
        _ => return true,
    };
    let mut fields = stream.fields();
    fields.any(|field| types.contains(&field.datatype()))
}
