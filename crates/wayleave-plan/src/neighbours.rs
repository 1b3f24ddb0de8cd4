//! Reads records by id, and their neighbours: records one relation away, in either direction.
//!
//! Following a relation backwards, from a record to those that refer to it, reveals no more than
//! following it forwards: it requires the same permission, and each end is read under its own
//! grant.

use std::sync::Arc;

use wayleave_model::mapping::{Join, Relation};

use crate::expand::{self, Expansion};
use crate::id::RecordId;
use crate::layout::{self, Layout, Record};
use crate::plan::{AuthorizedPlan, JoinedTable, Predicate, Rows};
use crate::scope::PathScope;
use crate::search::{MAX_CANDIDATES, key_of, one_of};
use crate::value::Value;
use crate::view::{ConnectionView, StreamView};

/// The direction in which a relation is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// From the stream that declares it.
    Outgoing,
    /// To the stream that declares it.
    Incoming,
}

/// A relation to follow from the records of a stream.
#[derive(Debug, Clone)]
pub struct Edge {
    /// The direction.
    pub direction: Direction,
    /// The type of the relation.
    pub type_name: String,
    /// The visible join fields of the records it starts from.
    pub near_fields: Vec<String>,
    /// The visible join fields of the records it leads to.
    pub far_fields: Vec<String>,
    /// The read of the related records.
    pub expansion: Expansion,
}

/// The read of a stream's records, and of their neighbours.
#[derive(Debug, Clone)]
pub struct NeighbourPlan {
    stream: StreamView,
    layout: Layout,
    /// The tables that the fields are read from, besides the stream's own.
    tables: Arc<Vec<JoinedTable>>,
    edges: Vec<Edge>,
}

impl NeighbourPlan {
    /// Reads records of a stream without neighbours.
    pub fn new(connection: &ConnectionView, stream: &StreamView) -> Self {
        let mut scope = PathScope::new(connection, stream);
        Self {
            layout: Layout::whole(&mut scope),
            tables: scope.into_joins(),
            stream: stream.clone(),
            edges: Vec::new(),
        }
    }

    /// Reads records of a stream, and their neighbours in the connection.
    pub fn with_neighbours(connection: &ConnectionView, stream: &StreamView) -> Self {
        let mut plan = Self::new(connection, stream);
        for relation in stream.relations() {
            let Some(target) = connection.stream(&relation.to) else {
                continue;
            };
            let index = plan.edges.len();
            let layout = &mut plan.layout;
            if let Ok(it) =
                expand::expansion(connection, stream, relation, target, None, index, layout)
            {
                plan.edges.push(Edge {
                    direction: Direction::Outgoing,
                    type_name: relation.type_name.value.clone(),
                    near_fields: source_fields(stream, &relation.on),
                    far_fields: target_fields(&relation.on),
                    expansion: it,
                });
            }
        }
        for from in &connection.streams {
            let ours = from.relations().filter(|it| it.to == stream.name());
            let ours = ours.filter(|it| !has_reverse_relation(stream, from, it));
            for relation in ours {
                let index = plan.edges.len();
                let layout = &mut plan.layout;
                if let Some(it) =
                    expand::reverse_expansion(connection, stream, relation, from, index, layout)
                {
                    plan.edges.push(Edge {
                        direction: Direction::Incoming,
                        type_name: relation.type_name.value.clone(),
                        near_fields: target_fields(&relation.on),
                        far_fields: source_fields(from, &relation.on),
                        expansion: it,
                    });
                }
            }
        }
        plan
    }

    /// The stream.
    pub fn stream(&self) -> &StreamView {
        &self.stream
    }

    /// The fields of a record, in order.
    pub fn header(&self) -> &[String] {
        self.layout.header()
    }

    /// The relations to follow: the stream's own first, then those that lead to it.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// Builds the id of the record with this key, whether or not the record exists. Commas separate
    /// the values of a composite key. `None` if the text cannot be a key of this stream.
    pub fn id_of(&self, key: &str) -> Option<String> {
        let parts = self.stream.key_fields().len();
        let key: Vec<String> = if parts == 1 {
            vec![key.to_owned()]
        } else {
            key.split(',').map(|it| it.trim().to_owned()).collect()
        };
        let id = RecordId {
            connection_id: self.stream.connection_id().to_owned(),
            stream: self.stream.name().to_owned(),
            key,
        };
        let nul = id.key.iter().any(|it| it.contains('\0'));
        let id = id.to_string();
        (!nul && key_of(&self.stream, &id).is_some()).then_some(id)
    }

    /// Plans a read of these ids' records, up to [`MAX_CANDIDATES`]; `None` if no id belongs to
    /// this stream.
    pub fn rows<'a>(&self, ids: impl IntoIterator<Item = &'a str>) -> Option<AuthorizedPlan> {
        let known: Vec<Vec<Value>> = ids
            .into_iter()
            .take(MAX_CANDIDATES)
            .filter_map(|id| key_of(&self.stream, id))
            .collect();
        if known.is_empty() {
            return None;
        }
        Some(self.layout.plan(
            self.stream.target(),
            Arc::clone(&self.tables),
            Rows {
                columns: Arc::clone(&self.layout.columns),
                limit: u32::try_from(known.len()).unwrap_or(u32::MAX),
                predicate: Predicate::all([
                    one_of(self.stream.key_fields(), known),
                    self.stream.visible_rows(),
                ]),
                order: layout::total(&self.stream, Vec::new()),
                after: None,
                per_parent: None,
                previews: false,
            },
        ))
    }

    /// Converts a row to a record.
    pub fn record(&self, row: Vec<Value>) -> Record {
        self.layout.record(row)
    }
}

/// Whether the stream has a relation that is the reverse of this one, and is followed instead.
fn has_reverse_relation(stream: &StreamView, from: &StreamView, incoming: &Relation) -> bool {
    let mirrors = |relation: &&Relation| {
        relation.to == from.name()
            && relation.on.len() == incoming.on.len()
            && relation.on.iter().all(|pair| {
                let their = from.field(&pair.field);
                incoming.on.iter().any(|other| {
                    let our = stream.field(&other.field);
                    our.is_some_and(|it| it.is_read_from(&pair.column))
                        && their.is_some_and(|it| it.is_read_from(&other.column))
                })
            })
    };
    stream.relations().any(|it| mirrors(&it))
}

/// The fields that a relation leads to. They are visible if it may be followed.
fn target_fields(on: &[Join]) -> Vec<String> {
    on.iter().map(|join| join.field.value.clone()).collect()
}

/// The visible fields that a relation starts from, without columns that no field maps.
fn source_fields(stream: &StreamView, on: &[Join]) -> Vec<String> {
    on.iter()
        .filter_map(|join| stream.field_of_column(&join.column))
        .map(|field| field.name().to_owned())
        .collect()
}
