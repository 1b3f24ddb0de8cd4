//! The sections of a mapping and their keys.

use super::{AbsentKey, Key, MAX_TITLE, Section, Shape};
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
const fn must(name: &'static str, shape: Shape, about: &'static str) -> Key {
    Key {
        name,
        shape,
        absent: AbsentKey::Refused,
        about,
    }
}

/// An optional key.
const fn may(name: &'static str, shape: Shape, about: &'static str) -> Key {
    Key {
        name,
        shape,
        absent: AbsentKey::Nothing,
        about,
    }
}

/// An optional key with a default.
const fn default(
    name: &'static str,
    shape: Shape,
    means: &'static str,
    about: &'static str,
) -> Key {
    Key {
        name,
        shape,
        absent: AbsentKey::Means(means),
        about,
    }
}

/// The document.
pub(crate) static DOCUMENT: Section = Section {
    header: "",
    about: "",
    keys: &[
        must(
            "dataset",
            Shape::Table(&DATASET),
            "What the dataset is called and where it lives.",
        ),
        must(
            "connections",
            Shape::Tables(&CONNECTION),
            "The sources it is read from.",
        ),
        must(
            "streams",
            Shape::Named(NameKind::Stream, &STREAM),
            "What may be seen.",
        ),
        may(
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
        must(
            "name",
            Shape::Name(NameKind::Dataset),
            "The dataset's name: `connector_key` on the wire, and `workup_<name>` with `-` as `_`.",
        ),
        default(
            "title",
            Shape::Line(MAX_TITLE),
            "the name",
            "A title for people.",
        ),
        may(
            "description",
            Shape::Prose,
            "What the dataset holds. Agents read it.",
        ),
        must(
            "kind",
            Shape::Word(words!(SourceKind)),
            "The kind of store it is read from. No source of kind `files` or `rdf` can be declared yet.",
        ),
        may(
            "schema",
            Shape::Identifier,
            "The schema its tables are in. Only for `postgres` and `mysql`, where it is a database.",
        ),
        default(
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
        must(
            "id",
            Shape::Name(NameKind::Connection),
            "`connection_id` on the wire; the first part of every record's id.",
        ),
        default(
            "label",
            Shape::Line(MAX_TITLE),
            "the id",
            "A label for people.",
        ),
        must(
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
        must(
            "type",
            Shape::Name(NameKind::Type),
            "The class of its records in the knowledge graph: `wayleave://kg/<type>`.",
        ),
        default(
            "table",
            Shape::Identifier,
            "the stream's name",
            "The table or view, exactly as the store has it. For `files`, a path or pattern \
             inside the source's folder. For `rdf`, a class.",
        ),
        must(
            "key",
            Shape::Fields { empty: false },
            "The fields that identify a record, in order. Not `number`, not `json`, not `many`.",
        ),
        may(
            "title",
            Shape::Name(NameKind::Field),
            "The field that names a record for people.",
        ),
        may(
            "event_time",
            Shape::Name(NameKind::Field),
            "The `date` or `datetime` field that says when a record's event happened.",
        ),
        may(
            "updated",
            Shape::Name(NameKind::Field),
            "The `datetime` or `integer` field that grows whenever a record changes. Enables \
             `changes_since` and cheap subscriptions.",
        ),
        may(
            "deleted",
            Shape::Name(NameKind::Field),
            "The `date`, `datetime` or `boolean` field that marks a record as deleted.",
        ),
        default(
            "search",
            Shape::Fields { empty: true },
            "none",
            "The `string` fields full-text search reads.",
        ),
        default(
            "analyzer",
            Shape::Word(words!(SearchAnalyzer)),
            "`english`",
            "The language whose stems full-text search compares, so that one form of a word finds \
             the others. `none` compares words as they are written, but for case and accents.",
        ),
        default(
            "unique",
            Shape::FieldSets,
            "none",
            "Sets of fields that no two records share, besides the key.",
        ),
        may(
            "description",
            Shape::Prose,
            "What the stream holds. Agents read it.",
        ),
        must(
            "fields",
            Shape::Named(NameKind::Field, &FIELD),
            "What a record says.",
        ),
        may(
            "relations",
            Shape::Named(NameKind::Relation, &RELATION),
            "Edges to other streams.",
        ),
        may(
            "measures",
            Shape::Measures,
            "What `aggregate` can measure by name: [expressions](#expressions) over aggregates.",
        ),
    ],
};

pub(crate) static FIELD: Section = Section {
    header: "[streams.<stream>.fields.<name>]",
    about: "One thing a record says. A column without a field is never read.",
    keys: &[
        default(
            "column",
            Shape::Identifier,
            "the field's name",
            "The column, exactly as the store has it.",
        ),
        may(
            "compute",
            Shape::Expression,
            "What the field is computed from, in place of a column: an [expression](#expressions).",
        ),
        must(
            "datatype",
            Shape::Word(words!(Datatype)),
            "The datatype of its values. Any column can be read as `string`.",
        ),
        default(
            "predicate",
            Shape::Predicate,
            "the field's name",
            "An absolute IRI, or a name that is put after the dataset's `iri`.",
        ),
        may(
            "description",
            Shape::Prose,
            "What the field says. Agents read it.",
        ),
        default(
            "required",
            Shape::Flag,
            "`false`",
            "Whether every record has a value.",
        ),
        default(
            "many",
            Shape::Flag,
            "`false`",
            "Whether a record may have many values, such as an array.",
        ),
        default(
            "generated",
            Shape::Flag,
            "`false`",
            "Whether the store fills the value in. No capability may write it.",
        ),
        default(
            "one_of",
            Shape::Scalars,
            "any value",
            "The closed list of values: strings for `string` and `iri`, numbers for `integer`, \
             numbers or exact strings for `decimal`.",
        ),
        may(
            "pattern",
            Shape::Pattern,
            "A regular expression that some part of a `string` or `iri` must match; anchor it \
             with `^` and `$` to match all of it.",
        ),
        may(
            "min_length",
            Shape::Count,
            "The least length of a `string` or `iri`, in characters.",
        ),
        may(
            "max_length",
            Shape::Count,
            "The greatest length, in characters.",
        ),
        may(
            "min_value",
            Shape::Number,
            "The least value of an `integer`, `decimal` or `number`. Exact strings keep every digit.",
        ),
        may("max_value", Shape::Number, "The greatest value."),
        default(
            "filter",
            Shape::Flag,
            "`true`, or `false` for `json` and `many`",
            "Whether filters may name it.",
        ),
        default(
            "sort",
            Shape::Flag,
            "`true`, or `false` for `json` and `many`",
            "Whether records may be sorted by it.",
        ),
        default(
            "aggregate",
            Shape::Words(words!(AggregateOp)),
            "all that the datatype allows",
            "What aggregates may do with it. An empty list allows nothing.",
        ),
        may(
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
        must(
            "to",
            Shape::Name(NameKind::Stream),
            "The stream it leads to.",
        ),
        must(
            "on",
            Shape::Joins,
            "What joins the two: our column = their field. Our column need not be a field; \
             their field need not be the key.",
        ),
        default(
            "type",
            Shape::Name(NameKind::Type),
            "the name in capitals",
            "The edge's type in the knowledge graph.",
        ),
        may(
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
        may(
            "connection",
            Shape::Name(NameKind::Connection),
            "The connection whose records it writes. Needed where the dataset has several.",
        ),
        must(
            "stream",
            Shape::Name(NameKind::Stream),
            "The stream it writes to.",
        ),
        must(
            "action",
            Shape::Word(words!(Action)),
            "What it does to one record.",
        ),
        default(
            "fields",
            Shape::Fields { empty: true },
            "none",
            "The fields a caller may give. A `create` must name every `required` field that is \
             not `generated`; an `update` may not name the key; a `delete` takes none.",
        ),
        must(
            "source",
            Shape::Name(NameKind::Source),
            "The source writes go through, declared apart from the ones that are read. It leads to \
             the same database as the connection's.",
        ),
        default(
            "idempotency",
            Shape::Flag,
            "`false`",
            "Whether callers may give an `idempotency_key`, so that a repeated call writes once. \
             The source must have the table that `wayleave source prepare` prints.",
        ),
        may("description", Shape::Prose, "What it does. Agents read it."),
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
