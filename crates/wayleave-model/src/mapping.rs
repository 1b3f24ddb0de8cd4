//! The mapping: which data of a source may be seen, and under which names.
//!
//! The types of a mapping document, with defaults filled in. They are plain values: holding one
//! proves nothing about who agreed to it. [`crate::parse`] reads them, [`crate::print`] writes
//! them, and only [`crate::ratify`] makes one ratified.

mod computed;
mod exact;
mod spanned;
mod vocabulary;

use std::fmt;
use std::sync::Arc;

pub use computed::{Expression, NamedMeasure, Origin};
pub use exact::{ExactNumber, ParseExactNumberError};
pub use spanned::Spanned;
pub use vocabulary::{Action, AggregateOp, Datatype, SearchAnalyzer, SourceKind};

use crate::mask::Mask;

/// A whole mapping document.
///
/// Streams, fields, relations, connections and capabilities keep the document's order, in which
/// people and agents see them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// The dataset's name, kind and schema.
    pub dataset: Dataset,
    /// The sources it is read from, one connection each.
    pub connections: Vec<Connection>,
    /// The streams.
    pub streams: Vec<Arc<Stream>>,
    /// The writes a grant may include.
    pub capabilities: Vec<Capability>,
}

impl Mapping {
    /// The stream of that name.
    pub fn stream(&self, name: &str) -> Option<&Stream> {
        let found = self.streams.iter().find(|stream| stream.name == name);
        found.map(Arc::as_ref)
    }

    /// The connection of that id.
    pub fn connection(&self, id: &str) -> Option<&Connection> {
        self.connections
            .iter()
            .find(|connection| connection.id == id)
    }

    /// The capability of that name.
    pub fn capability(&self, name: &str) -> Option<&Capability> {
        self.capabilities
            .iter()
            .find(|capability| capability.name == name)
    }

    /// The connection whose records a capability writes.
    pub fn connection_of(&self, capability: &Capability) -> Option<&Connection> {
        match &capability.connection {
            Some(id) => self.connection(id),
            None => match self.connections.as_slice() {
                [only] => Some(only),
                _ => None,
            },
        }
    }

    /// The predicate IRI of one of this mapping's fields.
    pub fn predicate_iri(&self, field: &Field) -> String {
        field.predicate_iri(&self.dataset.iri)
    }
}

/// `[dataset]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dataset {
    /// The dataset's name: `connector_key` on the wire.
    pub name: Spanned<String>,
    /// A title for people; absent means the name.
    pub title: Option<Spanned<String>>,
    /// What the dataset holds, for people and agents.
    pub description: Option<Spanned<String>>,
    /// The kind of store it is read from.
    pub kind: Spanned<SourceKind>,
    /// The schema of its tables, if the store has schemas.
    pub schema: Option<Spanned<String>>,
    /// The base of predicate IRIs. Default: `urn:wayleave:<name>#`.
    pub iri: Spanned<String>,
}

impl Dataset {
    /// The default base of predicate IRIs.
    pub fn default_iri(name: &str) -> String {
        format!("urn:wayleave:{name}#")
    }

    /// The name of the dataset's own work-up tool: `workup_<name>`, with `-` as `_`.
    ///
    /// Dataset names contain no `_`, so no two datasets share a tool name.
    pub fn workup_tool(&self) -> String {
        workup_tool(&self.name)
    }
}

/// The name of a dataset's work-up tool.
pub fn workup_tool(dataset: &str) -> String {
    format!("workup_{}", dataset.replace('-', "_"))
}

/// One of `[[connections]]`: this mapping over one source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection {
    /// `connection_id` on the wire.
    pub id: Spanned<String>,
    /// A label for people; absent means the id.
    pub label: Option<Spanned<String>>,
    /// The name of a source the operator declared.
    pub source: Spanned<String>,
}

impl Connection {
    /// The label, or the id if there is none.
    pub fn display_label(&self) -> &str {
        self.label
            .as_ref()
            .map_or(self.id.as_str(), |label| label.as_str())
    }
}

/// `[streams.<name>]`: records of one shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stream {
    /// The stream's name.
    pub name: Spanned<String>,
    /// `type`: the knowledge-graph class of its records.
    pub type_name: Spanned<String>,
    /// The table, view, file set or class it is read from. Default: the stream's name.
    pub table: Spanned<String>,
    /// The fields that identify a record, in key order; never empty.
    pub key: Vec<Spanned<String>>,
    /// The field with a record's title for people.
    pub title: Option<Spanned<String>>,
    /// The field with the time of a record's event.
    pub event_time: Option<Spanned<String>>,
    /// The field that increases whenever a record changes.
    pub updated: Option<Spanned<String>>,
    /// The field that marks a record as deleted.
    pub deleted: Option<Spanned<String>>,
    /// The fields that full-text search covers.
    pub search: Vec<Spanned<String>>,
    /// The analyzer of these fields; absent means [`SearchAnalyzer::English`].
    pub analyzer: Option<Spanned<SearchAnalyzer>>,
    /// Sets of fields that are unique across records, besides the key.
    pub unique: Vec<Spanned<Vec<Spanned<String>>>>,
    /// What the stream holds, for people and agents.
    pub description: Option<Spanned<String>>,
    /// The fields; never empty.
    pub fields: Vec<Arc<Field>>,
    /// The relations.
    pub relations: Vec<Arc<Relation>>,
    /// The named measures.
    pub measures: Vec<Arc<NamedMeasure>>,
}

impl Stream {
    /// The analyzer of its searched fields, or the default.
    pub fn search_analyzer(&self) -> SearchAnalyzer {
        let declared = self.analyzer.as_ref();
        declared.map_or_else(SearchAnalyzer::default, |it| it.value)
    }

    /// The field of that name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        let found = self.fields.iter().find(|field| field.name == name);
        found.map(Arc::as_ref)
    }

    /// The field that reads that column.
    pub fn field_of_column(&self, column: &str) -> Option<&Field> {
        let found = self
            .fields
            .iter()
            .find(|field| field.column().is_some_and(|it| *it == column));
        found.map(Arc::as_ref)
    }

    /// The relation of that name.
    pub fn relation(&self, name: &str) -> Option<&Relation> {
        let found = self.relations.iter().find(|it| it.name == name);
        found.map(Arc::as_ref)
    }

    /// The measure of that name.
    pub fn measure(&self, name: &str) -> Option<&NamedMeasure> {
        let found = self.measures.iter().find(|it| it.name == name);
        found.map(Arc::as_ref)
    }

    /// The key's fields, in key order.
    pub fn key_fields(&self) -> impl Iterator<Item = &Field> {
        self.key.iter().filter_map(|name| self.field(name))
    }
}

/// `[streams.<stream>.fields.<name>]`: one property of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// The field's name.
    pub name: Spanned<String>,
    /// The column it is read from, or the expression it is computed from.
    pub origin: Origin,
    /// The datatype of its values.
    pub datatype: Spanned<Datatype>,
    /// An absolute IRI, or a name appended to the dataset's `iri`. Default: the field's name.
    pub predicate: Spanned<String>,
    /// What the field means, for people and agents.
    pub description: Option<Spanned<String>>,
    /// Whether every record has a value. Default: false.
    pub required: Spanned<bool>,
    /// Whether a record may have many values. Default: false.
    pub many: Spanned<bool>,
    /// Whether the store computes the value, so that no write may set it. Default: false.
    pub generated: Spanned<bool>,
    /// The closed list of values; empty if any value is allowed.
    pub one_of: Spanned<Vec<Spanned<Scalar>>>,
    /// A regular expression that some part of the text must match.
    pub pattern: Option<Spanned<String>>,
    /// Minimum length of the text, in characters.
    pub min_length: Option<Spanned<u32>>,
    /// Maximum length of the text, in characters.
    pub max_length: Option<Spanned<u32>>,
    /// Minimum of a number.
    pub min_value: Option<Spanned<ExactNumber>>,
    /// Maximum of a number.
    pub max_value: Option<Spanned<ExactNumber>>,
    /// Whether filters may name it. Default: true for scalars.
    pub filter: Spanned<bool>,
    /// Whether records may be sorted by it. Default: true for scalars.
    pub sort: Spanned<bool>,
    /// The aggregates it offers, in canonical order. Default: all its datatype allows.
    pub aggregate: Spanned<Vec<AggregateOp>>,
    /// The mask required of every grant: a grant may only apply one that reveals no more.
    pub mask: Option<Spanned<Mask>>,
}

impl Field {
    /// A field with this name and datatype, and defaults for everything else.
    pub fn new(name: Spanned<String>, datatype: Spanned<Datatype>) -> Self {
        let scalar = Self::scalar(datatype.value, false);
        Self {
            origin: Origin::Column(name.clone()),
            predicate: name.clone(),
            description: None,
            required: name.with(false),
            many: name.with(false),
            generated: name.with(false),
            one_of: name.with(Vec::new()),
            pattern: None,
            min_length: None,
            max_length: None,
            min_value: None,
            max_value: None,
            filter: name.with(scalar),
            sort: name.with(scalar),
            aggregate: name.with(Self::default_aggregate(datatype.value, false)),
            mask: None,
            name,
            datatype,
        }
    }

    /// The column it is read from, unless it is computed.
    pub fn column(&self) -> Option<&Spanned<String>> {
        match &self.origin {
            Origin::Column(column) => Some(column),
            Origin::Computed(_) => None,
        }
    }

    /// The expression it is computed from, unless it is read from a column.
    pub fn compute(&self) -> Option<&Spanned<Expression>> {
        match &self.origin {
            Origin::Column(_) => None,
            Origin::Computed(expression) => Some(expression),
        }
    }

    /// Whether a record holds at most one comparable value.
    pub fn is_scalar(&self) -> bool {
        Self::scalar(self.datatype.value, self.many.value)
    }

    /// Whether such a field holds single, comparable values: the default of `filter` and `sort`.
    pub fn scalar(datatype: Datatype, many: bool) -> bool {
        !many && datatype != Datatype::Json
    }

    /// The default aggregates of such a field.
    pub fn default_aggregate(datatype: Datatype, many: bool) -> Vec<AggregateOp> {
        if many {
            Vec::new()
        } else {
            datatype.aggregates().to_vec()
        }
    }

    /// The field's predicate IRI, given the dataset's base.
    pub fn predicate_iri(&self, base: &str) -> String {
        if self.predicate.contains(':') {
            self.predicate.value.clone()
        } else {
            format!("{base}{}", self.predicate)
        }
    }
}

/// A value listed in `one_of`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Scalar {
    /// Text, of `string` and `iri` fields.
    Text(String),
    /// A number, of `integer` and `decimal` fields.
    Number(ExactNumber),
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Number(number) => number.fmt(f),
        }
    }
}

/// `[streams.<stream>.relations.<name>]`: a named edge to another stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relation {
    /// The relation's name.
    pub name: Spanned<String>,
    /// The stream it leads to.
    pub to: Spanned<String>,
    /// The pairs of columns and fields that join the two; never empty.
    pub on: Vec<Join>,
    /// `type`: the edge's name in the knowledge graph. Default: the name in capitals.
    pub type_name: Spanned<String>,
    /// What the edge means, for people and agents.
    pub description: Option<Spanned<String>>,
}

impl Relation {
    /// The default type of an edge.
    pub fn default_type(name: &str) -> String {
        name.to_ascii_uppercase()
    }

    /// Whether it joins exactly these pairs of columns: of its own table, and of the table of `to`,
    /// the stream it leads to.
    pub fn joins_columns<'a>(
        &self,
        to: &Stream,
        mut pairs: impl ExactSizeIterator<Item = (&'a str, &'a str)>,
    ) -> bool {
        pairs.len() == self.on.len()
            && pairs.all(|(ours, theirs)| {
                self.on.iter().any(|join| {
                    let column = to.field(&join.field).and_then(Field::column);
                    join.column == *ours && column.is_some_and(|it| *it == *theirs)
                })
            })
    }
}

/// One pair of `on`: a column of this stream equals a field of the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Join {
    /// A column of this stream's table, mapped as a field or not.
    pub column: Spanned<String>,
    /// A field of the other stream.
    pub field: Spanned<String>,
}

/// `[capabilities.<name>]`: a validated write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capability {
    /// The capability's name. For its tool's, see [`tool_name`](Self::tool_name).
    pub name: Spanned<String>,
    /// The connection whose records it writes; `None` means the dataset's only one.
    pub connection: Option<Spanned<String>>,
    /// The stream it writes to.
    pub stream: Spanned<String>,
    /// The kind of write.
    pub action: Spanned<Action>,
    /// The fields a caller may set; empty for `delete`.
    pub fields: Vec<Spanned<String>>,
    /// The source for writes, declared separately from the one that is read.
    pub source: Spanned<String>,
    /// Whether callers may give an idempotency key, which is stored in the source. Default: false.
    pub idempotency: Spanned<bool>,
    /// What it does, for people and agents.
    pub description: Option<Spanned<String>>,
}

/// Arguments of a capability's tool that are not fields. No field that a caller sets may have one
/// of these names.
pub const WRITE_OPTIONS: [&str; 3] = ["dry_run", "idempotency_key", "if_updated"];

impl Capability {
    /// The name of its tool in a dataset: `<dataset>_<capability>`, with `-` as `_`.
    pub fn tool_name(&self, dataset: &Dataset) -> String {
        format!("{}_{}", dataset.name.replace('-', "_"), self.name)
    }

    /// Whether a caller may set this field.
    pub fn writes(&self, field: &str) -> bool {
        self.fields.iter().any(|name| name.as_str() == field)
    }
}
