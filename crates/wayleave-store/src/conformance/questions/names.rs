//! Computed fields and measures of the fixture, and the names that questions use.

use wayleave_model::mapping::Datatype;

/// Computed fields and measures, added to the fixture's mapping.
pub(super) const COMPUTED: &str = r#"
[streams.samples.fields.total]
datatype = "decimal"
compute = "price * coalesce(small, 1) + 0.5"

[streams.samples.fields.quotient]
datatype = "decimal"
compute = "price / amount"

[streams.samples.fields.nearly]
datatype = "decimal"
compute = "round(amount * 1.5, 1) - price"

[streams.samples.fields.counted]
datatype = "integer"
compute = "2 * small - 3"

[streams.samples.fields.whole]
datatype = "integer"
compute = "big + big"

[streams.samples.fields.titled]
datatype = "string"
compute = "name || '-' || coalesce(word, '?') || small"

[streams.samples.fields.lateness]
datatype = "string"
compute = "if(at > stamp and not active, 'late', if(at is null, 'never', status))"

[streams.samples.fields.flagged]
datatype = "boolean"
compute = "active or small > 3"

[streams.samples.fields.noted]
datatype = "date"
compute = "coalesce(day, '2024-02-29')"

[streams.samples.fields.seen]
datatype = "datetime"
compute = "if(active, at, stamp)"

[streams.samples.fields.half]
datatype = "number"
compute = "ratio / 2 + 1"

[streams.parts.fields.worth]
datatype = "decimal"
compute = "weight * sample.amount"

[streams.parts.fields.owner]
datatype = "string"
compute = "coalesce(sample.name, 'nobody') || '/' || label"

[streams.samples.measures]
takings = "sum(price * 2)"
average_total = "sum(total) / count()"
share = "100 * sum(if(status = 'Accepted', amount, 0)) / sum(amount)"
spread = "max(amount) - min(amount)"
latest = "max(seen)"
words = "count_distinct(word) + count(small)"

[streams.parts.measures]
mass = "sum(weight)"
heavy = "round(avg(weight * 3), 2)"
days = "count_distinct(sample.day)"
"#;

/// A name that questions use, and a field of the same datatype whose values it is compared with.
#[derive(Debug, Clone, Copy)]
pub(super) struct QuestionField {
    pub(super) name: &'static str,
    pub(super) datatype: Datatype,
    pub(super) like: &'static str,
}

const fn named(name: &'static str, datatype: Datatype, like: &'static str) -> QuestionField {
    QuestionField {
        name,
        datatype,
        like,
    }
}

/// Names of fields of samples.
pub(super) const SAMPLES: &[QuestionField] = &[
    named("id", Datatype::Integer, "id"),
    named("name", Datatype::String, "name"),
    named("word", Datatype::String, "word"),
    named("token", Datatype::String, "token"),
    named("status", Datatype::String, "status"),
    named("small", Datatype::Integer, "small"),
    named("amount", Datatype::Decimal, "amount"),
    named("price", Datatype::Decimal, "price"),
    named("active", Datatype::Boolean, "active"),
    named("day", Datatype::Date, "day"),
    named("at", Datatype::Datetime, "at"),
    named("stamp", Datatype::Datetime, "stamp"),
    named("total", Datatype::Decimal, "price"),
    named("quotient", Datatype::Decimal, "amount"),
    named("nearly", Datatype::Decimal, "amount"),
    named("counted", Datatype::Integer, "small"),
    named("whole", Datatype::Integer, "big"),
    named("titled", Datatype::String, "name"),
    named("lateness", Datatype::String, "status"),
    named("flagged", Datatype::Boolean, "active"),
    named("noted", Datatype::Date, "day"),
    named("seen", Datatype::Datetime, "stamp"),
    named("half", Datatype::Number, "ratio"),
];

/// Names of fields of parts, and of fields of their samples.
pub(super) const PARTS: &[QuestionField] = &[
    named("sample_id", Datatype::Integer, "id"),
    named("label", Datatype::String, "name"),
    named("weight", Datatype::Decimal, "price"),
    named("made", Datatype::Date, "day"),
    named("worth", Datatype::Decimal, "amount"),
    named("owner", Datatype::String, "name"),
    named("sample.name", Datatype::String, "name"),
    named("sample.word", Datatype::String, "word"),
    named("sample.status", Datatype::String, "status"),
    named("sample.small", Datatype::Integer, "small"),
    named("sample.price", Datatype::Decimal, "price"),
    named("sample.active", Datatype::Boolean, "active"),
    named("sample.day", Datatype::Date, "day"),
    named("sample.at", Datatype::Datetime, "at"),
    named("sample.total", Datatype::Decimal, "price"),
    named("sample.titled", Datatype::String, "name"),
    named("sample.flagged", Datatype::Boolean, "active"),
];
