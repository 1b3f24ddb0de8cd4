//! The closed list of problem codes, each with its meaning for the reference.

use std::fmt;

use serde::Serialize;

use crate::codes::codes;

/// The severity of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The mapping cannot be ratified, or the stream cannot be served.
    Error,
    /// A human should review it, and may continue.
    Warning,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
        })
    }
}

codes! {
    /// The kind of a problem. The meaning of a code never changes.
    pub enum ProblemCode {
        // The document as text.
        TooLarge => "too_large": "The document is larger than 1 MiB.",
        NotUtf8 => "not_utf8": "The document is not UTF-8.",
        Syntax => "syntax": "The document is not TOML.",
        TooDeep => "too_deep": "Arrays or tables are nested too deeply.",
        DuplicateKey => "duplicate_key": "A key or table is written twice.",
        UnknownKey => "unknown_key": "The table has no such key.",
        MissingKey => "missing_key": "A required key is missing.",
        WrongType => "wrong_type": "A value has the wrong TOML type.",
        TooMany => "too_many": "There are more entries than a mapping may have.",
        // Single values.
        InvalidName => "invalid_name": "A name does not match its pattern.",
        ReservedName => "reserved_name": "A name is taken by Wayleave itself.",
        DuplicateName => "duplicate_name": "Two entries share a name, or differ only in case.",
        DuplicateValue => "duplicate_value": "A list or a stream uses one value twice.",
        UnknownWord => "unknown_word": "A value is not one of the words allowed there.",
        InvalidText => "invalid_text": "A text is empty, too long, or holds control or hidden characters.",
        InvalidIri => "invalid_iri": "A text is not an IRI that can stand there.",
        InvalidNumber => "invalid_number": "A number is not of the kind or size allowed there.",
        ConnectionString => "connection_string": "A text looks like a connection string or holds a password. It is not repeated in the output.",
        EmptyList => "empty_list": "A list that must have an entry has none.",
        // Constraints.
        InvalidPattern => "invalid_pattern": "A pattern is not a valid regular expression, or is too large.",
        InvalidExpression => "invalid_expression": "The expression of a field or measure cannot be parsed, refers to something that does not exist, or has another datatype than declared.",
        UnfitConstraint => "unfit_constraint": "A constraint does not apply to the field's datatype.",
        EmptyRange => "empty_range": "A minimum is above its maximum, so no value is allowed.",
        UnfitValue => "unfit_value": "A value of `one_of` is not of the field's datatype, or breaks another constraint of it.",
        UnfitAggregate => "unfit_aggregate": "An aggregate is impossible for the field's datatype.",
        NeedlessKey => "needless_key": "A key has no effect beside another one.",
        // Entries that refer to one another.
        UnknownField => "unknown_field": "A name is not a field of the stream.",
        UnknownStream => "unknown_stream": "A name is not a stream of the mapping.",
        UnknownConnection => "unknown_connection": "A name is not a connection of the mapping.",
        UnfitField => "unfit_field": "A field cannot have the role it is given.",
        RelationColumn => "relation_column": "A relation joins on a field's name where a column is meant.",
        RelationDatatype => "relation_datatype": "A relation joins values that can never be equal.",
        MissingRequired => "missing_required": "A create leaves out a field that every record must have.",
        UnwritableField => "unwritable_field": "A capability writes a field that nobody may write.",
        SharedSource => "shared_source": "A capability writes through a source that is also read from.",
        // The ontology.
        UndeclaredType => "undeclared_type": "A stream's type is not in the ontology.",
        UndeclaredRelation => "undeclared_relation": "A relation's type is not in the ontology.",
        DomainMismatch => "domain_mismatch": "A relation starts at a type the ontology does not allow.",
        RangeMismatch => "range_mismatch": "A relation leads to a type the ontology does not allow.",
        // The live source.
        KindMismatch => "kind_mismatch": "The source is of another kind than the mapping says.",
        SchemaMismatch => "schema_mismatch": "The source was read in another schema than the mapping says.",
        MissingTable => "missing_table": "A stream's table is not in the source.",
        MissingColumn => "missing_column": "A column is not in its table.",
        RenamedColumn => "renamed_column": "A column is gone and another of the same type stands in its place.",
        RetypedColumn => "retyped_column": "A column's type no longer fits the field's datatype.",
        NullableColumn => "nullable_column": "A column may be NULL though its field is required or in the key.",
        KeyNotUnique => "key_not_unique": "Nothing in the source keeps the key's columns unique.",
        ValuesRemoved => "values_removed": "The source no longer allows a value that `one_of` lists.",
        ValuesAdded => "values_added": "The source allows a value that `one_of` does not list.",
        UnmappedReference => "unmapped_reference": "A capability affects a foreign key that no relation describes.",
    }
}

impl ProblemCode {
    /// Its severity.
    pub const fn severity(self) -> Severity {
        match self {
            // A mapping may list fewer values than the store allows on purpose; and where one
            // reference is not described, the rest of the capability works.
            Self::ValuesAdded | Self::UnmappedReference => Severity::Warning,
            _ => Severity::Error,
        }
    }
}
