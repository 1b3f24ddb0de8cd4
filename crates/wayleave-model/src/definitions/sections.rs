//! The sections of a mapping and their keys.

use super::{Key, MAX_TITLE_CHARS, Presence, Section, Shape};
use crate::mapping::{Action, AggregateOp, Datatype, SearchAnalyzer, SourceKind};
use crate::names::NameKind;

/// The words of a vocabulary, at compile time.
macro_rules! words {
    ($vocabulary:ident) => {{
        const WORDS: [&str; $vocabulary::ALL.len()] = {
            let mut words = [""; $vocabulary::ALL.len()];
            let mut at = 0;
            #[allow(
                clippy::indexing_slicing,
                reason = "evaluated at compile time, where a slip does not compile"
            )]
            while at < words.len() {
                words[at] = $vocabulary::ALL[at].as_str();
                at += 1;
            }
            words
        };
        &WORDS
    }};
}

/// A required key.
const fn required(name: &'static str, shape: Shape, about: &'static str) -> Key {
    Key {
        name,
        shape,
        presence: Presence::Required,
        about,
    }
}

/// An optional key.
const fn optional(name: &'static str, shape: Shape, about: &'static str) -> Key {
    Key {
        name,
        shape,
        presence: Presence::Optional,
        about,
    }
}

/// An optional key with a default.
const fn with_default(
    name: &'static str,
    shape: Shape,
    default: &'static str,
    about: &'static str,
) -> Key {
    Key {
        name,
        shape,
        presence: Presence::Default(default),
        about,
    }
}

/// The document.
pub(crate) static DOCUMENT: Section = Section {
    header: "",
    about: "",
    keys: &[
        required(
            "dataset",
            Shape::Table(&DATASET),
            "What the dataset is called and where it lives.",
        ),
        required(
            "connections",
            Shape::Tables(&CONNECTION),
            "The sources it is read from.",
        ),
        required(
            "streams",
            Shape::Named(NameKind::Stream, &STREAM),
            "What may be seen.",
        ),
        optional(
            "capabilities",
            Shape::Named(NameKind::Capability, &CAPABILITY),
            "What may be written, where a grant says so.",
        ),
    ],
};

pub(crate) static DATASET: Section = Section {
    header: "[dataset]",
    about: "What the dataset is called and where its records live.",
    keys: &[
        required(
            "name",
            Shape::Name(NameKind::Dataset),
            "The dataset's name: `connector_key` on the wire, and `workup_<name>` with `-` as `_`.",
        ),
        with_default(
            "title",
            Shape::Line(MAX_TITLE_CHARS),
            "the name",
            "A title for people.",
        ),
        optional(
            "description",
            Shape::Prose,
            "What the dataset holds. Agents read it.",
        ),
        required(
            "kind",
            Shape::Word(words!(SourceKind)),
            "The kind of store it is read from. No source of kind `files` or `rdf` can be declared yet.",
        ),
        optional(
            "schema",
            Shape::Identifier,
            "The schema its tables are in. Only for `postgres` and `mysql`, where it is a database.",
        ),
        with_default(
            "iri",
            Shape::IriBase,
            "`urn:wayleave:<name>#`",
            "The base of predicate IRIs. Ends in `#`, `/`, `:`, `=` or `_`.",
        ),
    ],
};

pub(crate) static CONNECTION: Section = Section {
    header: "[[connections]]",
    about: "One source this mapping is read from. The same mapping may serve several, such as \
            one database a region.",
    keys: &[
        required(
            "id",
            Shape::Name(NameKind::Connection),
            "`connection_id` on the wire; the first part of every record's id.",
        ),
        with_default(
            "label",
            Shape::Line(MAX_TITLE_CHARS),
            "the id",
            "A label for people.",
        ),
        required(
            "source",
            Shape::Name(NameKind::Source),
            "The name of a source the operator declared. Never a connection string.",
        ),
    ],
};

pub(crate) static STREAM: Section = Section {
    header: "[streams.<name>]",
    about: "Records of one shape: a table, a view, a set of files, an RDF class.",
    keys: &[
        required(
            "type",
            Shape::Name(NameKind::Type),
            "The class of its records in the knowledge graph: `wayleave://kg/<type>`.",
        ),
        with_default(
            "table",
            Shape::Identifier,
            "the stream's name",
            "The table or view, exactly as the store has it. For `files`, a path or pattern \
             inside the source's folder. For `rdf`, a class.",
        ),
        required(
            "key",
            Shape::Fields { empty: false },
            "The fields that identify a record, in order. Not `number`, not `json`, not `many`.",
        ),
        optional(
            "title",
            Shape::Name(NameKind::Field),
            "The field that names a record for people.",
        ),
        optional(
            "event_time",
            Shape::Name(NameKind::Field),
            "The `date` or `datetime` field that says when a record's event happened.",
        ),
        optional(
            "updated",
            Shape::Name(NameKind::Field),
            "The `datetime` or `integer` field that grows whenever a record changes. Enables \
             `changes_since` and cheap subscriptions.",
        ),
        optional(
            "deleted",
            Shape::Name(NameKind::Field),
            "The `date`, `datetime` or `boolean` field that marks a record as deleted.",
        ),
        with_default(
            "search",
            Shape::Fields { empty: true },
            "none",
            "The `string` fields full-text search reads.",
        ),
        with_default(
            "analyzer",
            Shape::Word(words!(SearchAnalyzer)),
            "`english`",
            "The language whose stems full-text search compares, so that one form of a word finds \
             the others. `none` compares words as they are written, but for case and accents.",
        ),
        with_default(
            "unique",
            Shape::FieldSets,
            "none",
            "Sets of fields that no two records share, besides the key.",
        ),
        optional(
            "description",
            Shape::Prose,
            "What the stream holds. Agents read it.",
        ),
        required(
            "fields",
            Shape::Named(NameKind::Field, &FIELD),
            "The fields of a record.",
        ),
        optional(
            "relations",
            Shape::Named(NameKind::Relation, &RELATION),
            "Edges to other streams.",
        ),
        optional(
            "measures",
            Shape::Measures,
            "What `aggregate` can measure by name: [expressions](#expressions) over aggregates.",
        ),
    ],
};

pub(crate) static FIELD: Section = Section {
    header: "[streams.<stream>.fields.<name>]",
    about: "One property of a record. A column without a field is never shown.",
    keys: &[
        with_default(
            "column",
            Shape::Identifier,
            "the field's name",
            "The column, exactly as the store has it.",
        ),
        optional(
            "compute",
            Shape::Expression,
            "What the field is computed from, in place of a column: an [expression](#expressions).",
        ),
        required(
            "datatype",
            Shape::Word(words!(Datatype)),
            "The datatype of its values. Any column can be read as `string`.",
        ),
        with_default(
            "predicate",
            Shape::Predicate,
            "the field's name",
            "An absolute IRI, or a name that is put after the dataset's `iri`.",
        ),
        optional(
            "description",
            Shape::Prose,
            "What the field means. Agents read it.",
        ),
        with_default(
            "required",
            Shape::Flag,
            "`false`",
            "Whether every record has a value.",
        ),
        with_default(
            "many",
            Shape::Flag,
            "`false`",
            "Whether a record may have many values, such as an array.",
        ),
        with_default(
            "generated",
            Shape::Flag,
            "`false`",
            "Whether the store fills the value in. No capability may write it.",
        ),
        with_default(
            "one_of",
            Shape::Scalars,
            "any value",
            "The closed list of values: strings for `string` and `iri`, numbers for `integer`, \
             numbers or exact strings for `decimal`.",
        ),
        optional(
            "pattern",
            Shape::Pattern,
            "A regular expression that some part of a `string` or `iri` must match; anchor it \
             with `^` and `$` to match all of it.",
        ),
        optional(
            "min_length",
            Shape::Count,
            "The minimum length of a `string` or `iri`, in characters.",
        ),
        optional(
            "max_length",
            Shape::Count,
            "The maximum length, in characters.",
        ),
        optional(
            "min_value",
            Shape::Number,
            "The minimum value of an `integer`, `decimal` or `number`. Exact strings keep every digit.",
        ),
        optional("max_value", Shape::Number, "The maximum value."),
        with_default(
            "filter",
            Shape::Flag,
            "`true`, or `false` for `json` and `many`",
            "Whether filters may name it.",
        ),
        with_default(
            "sort",
            Shape::Flag,
            "`true`, or `false` for `json` and `many`",
            "Whether records may be sorted by it.",
        ),
        with_default(
            "aggregate",
            Shape::Words(words!(AggregateOp)),
            "all that the datatype allows",
            "What aggregates may do with it. An empty list allows nothing.",
        ),
        optional(
            "mask",
            Shape::Mask,
            "What every grant shows of it at most, in place of its values: a [mask](grants.md#masks).",
        ),
    ],
};

pub(crate) static RELATION: Section = Section {
    header: "[streams.<stream>.relations.<name>]",
    about: "A named edge from each record of this stream to records of another.",
    keys: &[
        required(
            "to",
            Shape::Name(NameKind::Stream),
            "The stream it leads to.",
        ),
        required(
            "on",
            Shape::Joins,
            "What joins the two: our column = their field. Our column need not be a field; \
             their field need not be the key.",
        ),
        with_default(
            "type",
            Shape::Name(NameKind::Type),
            "the name in capitals",
            "The edge's type in the knowledge graph.",
        ),
        optional(
            "description",
            Shape::Prose,
            "What the edge means. Agents read it.",
        ),
    ],
};

pub(crate) static CAPABILITY: Section = Section {
    header: "[capabilities.<name>]",
    about: "A validated write: the tool `<dataset>_<name>` (with `-` as `_`) of callers whose grant \
            includes it.",
    keys: &[
        optional(
            "connection",
            Shape::Name(NameKind::Connection),
            "The connection whose records it writes. Needed where the dataset has several.",
        ),
        required(
            "stream",
            Shape::Name(NameKind::Stream),
            "The stream it writes to.",
        ),
        required(
            "action",
            Shape::Word(words!(Action)),
            "What it does to one record.",
        ),
        with_default(
            "fields",
            Shape::Fields { empty: true },
            "none",
            "The fields a caller may give. A `create` must name every `required` field that is \
             not `generated`; an `update` may not name the key; a `delete` takes none.",
        ),
        required(
            "source",
            Shape::Name(NameKind::Source),
            "The source writes go through, declared apart from the ones that are read. It leads to \
             the same database as the connection's.",
        ),
        with_default(
            "idempotency",
            Shape::Flag,
            "`false`",
            "Whether callers may give an `idempotency_key`, so that a repeated call writes once. \
             The source must have the table that `wayleave source prepare` prints.",
        ),
        optional("description", Shape::Prose, "What it does. Agents read it."),
    ],
};

/// Every section with a header, in the order of the reference.
pub(crate) static SECTIONS: &[&Section] = &[
    &DATASET,
    &CONNECTION,
    &STREAM,
    &FIELD,
    &RELATION,
    &CAPABILITY,
];
