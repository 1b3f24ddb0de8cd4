//! The records that a workup has reached, each once, and their names.

use std::collections::BTreeMap;

use wayleave_model::mapping::Datatype;
use wayleave_plan::Record;
use wayleave_plan::value::Value;
use wayleave_plan::view::{FieldView, StreamView};

use super::quote;

/// The index of the record that the workup is about.
pub(super) const SUBJECT: usize = 0;
/// Maximum length of a title, in characters.
const MAX_TITLE_CHARS: usize = 96;
/// Microseconds in a day.
const DAY_MICROS: i64 = 86_400_000_000;

/// A record that was read, complete as far as it is granted.
#[derive(Debug, Clone)]
pub(super) struct Node<'a> {
    pub(super) stream: &'a StreamView,
    pub(super) record: Record,
    id: String,
}

impl<'a> Node<'a> {
    pub(super) fn new(stream: &'a StreamView, record: Record) -> Self {
        let id = record.id();
        Self { stream, record, id }
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// The text of the key, as written in its id.
    pub(super) fn key(&self) -> String {
        self.record.key_text()
    }

    /// The fields and their values, in mapping order.
    pub(super) fn fields(&self) -> impl Iterator<Item = (&FieldView, &Value)> {
        self.stream.fields().zip(&self.record.values)
    }

    pub(super) fn value(&self, field: &str) -> Option<&Value> {
        let mut fields = self.fields();
        let found = fields.find(|(known, _)| known.name() == field);
        found.map(|(_, value)| value)
    }

    /// The exact title, if there is a meaningful one.
    pub(super) fn title(&self) -> Option<String> {
        let title = self.value(self.stream.title()?.name())?.to_text()?;
        (!title.trim().is_empty()).then_some(title)
    }

    /// Its name in a statement: its class and title, or its id.
    pub(super) fn name(&self) -> String {
        let class = self.stream.type_name();
        match self.title() {
            Some(title) => format!("{class} {}", quote::quoted(&title, MAX_TITLE_CHARS)),
            None => format!("{class} {}", self.id()),
        }
    }

    /// The fields that [`name`](Self::name) shows.
    pub(super) fn name_fields(&self) -> Vec<String> {
        match (self.title(), self.stream.title()) {
            (Some(_), Some(title)) => vec![title.name().to_owned()],
            _ => self.key_names().collect(),
        }
    }

    /// The names of its key fields.
    pub(super) fn key_names(&self) -> impl Iterator<Item = String> {
        let key = self.stream.key_fields().iter();
        key.map(|field| field.name().to_owned())
    }

    /// When its event happened, if known.
    pub(super) fn time(&self) -> Option<EventTime<'_>> {
        let field = self.stream.event_time()?.name();
        let value = self.value(field)?;
        let micros = match value {
            Value::Datetime(micros) => *micros,
            Value::Date(days) => i64::from(*days) * DAY_MICROS,
            _ => return None,
        };
        Some(EventTime {
            field,
            micros,
            text: value.to_text()?,
        })
    }

    /// Whether its key was assigned by its store, as numbers are, and means nothing elsewhere.
    pub(super) fn has_local_key(&self) -> bool {
        let mut keys = self.stream.key_fields().iter();
        keys.all(|field| field.datatype() == Datatype::Integer)
    }
}

/// When the event of a record happened.
pub(super) struct EventTime<'a> {
    pub(super) field: &'a str,
    /// In microseconds since 1970.
    pub(super) micros: i64,
    /// As written.
    pub(super) text: String,
}

/// The records that were reached, in that order.
#[derive(Default)]
pub(super) struct ReachedRecords<'a> {
    nodes: Vec<Node<'a>>,
    places: BTreeMap<String, usize>,
}

impl<'a> ReachedRecords<'a> {
    /// Adds a record, if it is new, and returns its index.
    pub(super) fn add(&mut self, node: Node<'a>) -> usize {
        if let Some(place) = self.places.get(node.id()) {
            return *place;
        }
        self.places.insert(node.id().to_owned(), self.nodes.len());
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// The record at an index that [`add`](Self::add) returned.
    #[expect(
        clippy::expect_used,
        reason = "evidence must not be missing from a statement"
    )]
    pub(super) fn get(&self, place: usize) -> &Node<'a> {
        self.nodes.get(place).expect("a record that was reached")
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn place(&self, id: &str) -> Option<usize> {
        self.places.get(id).copied()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (usize, &Node<'a>)> {
        self.nodes.iter().enumerate()
    }
}
