//! Differences of a store from the common contract that concern a stream's fields.

use wayleave_model::mapping::Datatype;
use wayleave_plan::view::StreamView;
use wayleave_store::Topic;

use crate::call_context::CallContext;

/// The `wanted` differences of a stream's store. None if the store cannot be opened.
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

/// Whether a topic affects the meaning of answers. The others concern how values are read and
/// shown, which answers show anyway; only the full description includes them.
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

/// Whether a topic concerns the type of any field of the stream.
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
        // Performance concerns the operator, not the caller.
        Topic::Sorting => &[],
        // An irrelevant note is better than a missing one.
        _ => return true,
    };
    let mut fields = stream.fields();
    fields.any(|field| types.contains(&field.datatype()))
}
