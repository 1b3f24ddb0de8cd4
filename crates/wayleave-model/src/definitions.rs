//! The table of all sections and keys of a mapping.
//!
//! The parser, the JSON Schema and the reference take the keys and their shapes from here: what is
//! not in this table does not exist in any of them.

mod sections;

pub(crate) use sections::{DOCUMENT, SECTIONS};

use crate::names::NameKind;

/// Maximum size of a document, in bytes.
pub(crate) const MAX_BYTES: usize = 1024 * 1024;
/// Maximum length of a description, in characters.
pub(crate) const MAX_DESCRIPTION_CHARS: usize = 4000;
/// Maximum length of a title or label, in characters.
pub(crate) const MAX_TITLE_CHARS: usize = 200;
/// Maximum length of the name of a table or column, in characters.
pub(crate) const MAX_IDENTIFIER_CHARS: usize = 255;
/// Maximum length of a pattern, in characters.
pub(crate) const MAX_PATTERN_CHARS: usize = 1000;
/// Maximum size of a compiled pattern, in bytes.
pub(crate) const MAX_COMPILED_PATTERN_BYTES: usize = 256 * 1024;
/// Maximum length of an IRI, in characters.
pub(crate) const MAX_IRI_CHARS: usize = 1000;
/// Maximum length of a number in quotes, in bytes.
pub(crate) const MAX_NUMBER_BYTES: usize = 400;

/// A table of the document.
#[derive(Debug)]
pub(crate) struct Section {
    /// Its header.
    pub(crate) header: &'static str,
    /// Its description, in Markdown.
    pub(crate) about: &'static str,
    /// Its keys, in canonical order.
    pub(crate) keys: &'static [Key],
}

impl Section {
    /// The key of that name.
    pub(crate) fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }
}

/// One key of a table.
#[derive(Debug)]
pub(crate) struct Key {
    /// Its name.
    pub(crate) name: &'static str,
    /// The shape of its value.
    pub(crate) shape: Shape,
    /// Whether it must be present, and its default.
    pub(crate) presence: Presence,
    /// Its description, in Markdown.
    pub(crate) about: &'static str,
}

/// Whether a key must be present.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Presence {
    /// It must be present.
    Required,
    /// It may be absent.
    Optional,
    /// It may be absent, and then has this default, in Markdown.
    Default(&'static str),
}

/// The shape of a value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape {
    /// A name.
    Name(NameKind),
    /// One line of text of at most this many characters.
    Line(usize),
    /// Multi-line text.
    Prose,
    /// The name of a table or column, as in the store.
    Identifier,
    /// An IRI to which names can be appended.
    IriBase,
    /// An IRI, or a name to append to the base.
    Predicate,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A list of these words.
    Words(&'static [&'static str]),
    /// A list of field names.
    Fields {
        /// Whether it may be empty.
        empty: bool,
    },
    /// A list of lists of field names.
    FieldSets,
    /// True or false.
    Flag,
    /// A non-negative whole number.
    Count,
    /// A number, as TOML number or as exact text.
    Number,
    /// A list of texts or numbers.
    Scalars,
    /// A regular expression.
    Pattern,
    /// A mask.
    Mask,
    /// An expression.
    Expression,
    /// Named expressions.
    Measures,
    /// Columns of this stream's table, each with a field of the other stream.
    Joins,
    /// A table.
    Table(&'static Section),
    /// A list of tables.
    Tables(&'static Section),
    /// Named tables.
    Named(NameKind, &'static Section),
}

impl Shape {
    /// What is expected, in words.
    pub(crate) const fn expected(self) -> &'static str {
        match self {
            Self::Name(_)
            | Self::Line(_)
            | Self::Prose
            | Self::Identifier
            | Self::IriBase
            | Self::Predicate
            | Self::Word(_)
            | Self::Pattern
            | Self::Mask
            | Self::Expression => "a string",
            Self::Measures => "a table such as `{ revenue = \"sum(amount)\" }`",
            Self::Words(_) | Self::Fields { .. } => "a list of strings",
            Self::FieldSets => "a list of lists of strings",
            Self::Flag => "`true` or `false`",
            Self::Count => "a whole number",
            Self::Number => "a number",
            Self::Scalars => "a list of strings or numbers",
            Self::Joins => "a table such as `{ our_column = \"their_field\" }`",
            Self::Table(_) => "a table",
            Self::Tables(_) => "a list of tables",
            Self::Named(..) => "tables under names of their own",
        }
    }

    /// Maximum number of entries in a value of this shape.
    pub(crate) const fn max_entries(self) -> usize {
        match self {
            Self::Named(NameKind::Stream | NameKind::Field, _) => 2000,
            Self::Named(..) => 500,
            Self::Tables(_) => 200,
            Self::Scalars => 1000,
            Self::Joins | Self::FieldSets => 16,
            _ => 64,
        }
    }
}
