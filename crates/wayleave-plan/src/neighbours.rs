//! Records by id, and whatever is one relation away from them, in both directions.
//!
//! A relation followed backwards, from a record to those that name it, tells no more than the same
//! relation followed forwards: it is followed only where that may be done, and each end is read
//! under its own grant.

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

/// Which way a relation is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// From the stream that has it.
    Outgoing,
    /// To the stream that has it.
    Incoming,
}

/// A relation to follow from the records of a stream.
#[derive(Debug, Clone)]
pub struct Edge {
    /// Which way.
    pub direction: Direction,
    /// The type of the relation.
    pub type_name: String,
    /// The visible fields it joins, of the records it starts from.
    pub near_fields: Vec<String>,
    /// The visible fields it joins, of the records it leads to.
    pub far_fields: Vec<String>,
    /// What to read.
    pub expansion: Expansion,
}

/// How the records of one stream are read, and what is around them.
#[derive(Debug, Clone)]
pub struct Around {
    stream: StreamView,
    layout: Layout,
    /// What the fields are read from besides the stream's own table.
    tables: Arc<Vec<JoinedTable>>,
    edges: Vec<Edge>,
}

impl Around {
    /// The records of a stream alone.
    pub fn alone(connection: &ConnectionView, stream: &StreamView) -> Self {
        let mut scope = PathScope::new(connection, stream);
        Self {
            layout: Layout::whole(&mut scope),
            tables: scope.into_joins(),
            stream: stream.clone(),
            edges: Vec::new(),
        }
    }

    /// The records of a stream, and the relations between them and others of the connection.
    pub fn related(connection: &ConnectionView, stream: &StreamView) -> Self {
        let mut around = Self::alone(connection, stream);
        for relation in stream.relations() {
            let Some(target) = connection.stream(&relation.to) else {
                continue;
            };
            let index = around.edges.len();
            let layout = &mut around.layout;
            if let Ok(it) =
                expand::expansion(connection, stream, relation, target, None, index, layout)
            {
                around.edges.push(Edge {
                    direction: Direction::Outgoing,
                    type_name: relation.type_name.value.clone(),
                    near_fields: pointing(stream, &relation.on),
                    far_fields: pointed_at(&relation.on),
                    expansion: it,
                });
            }
        }
        for from in &connection.streams {
            let ours = from.relations().filter(|it| it.to == stream.name());
            let ours = ours.filter(|it| !is_followed(stream, from, it));
            for relation in ours {
                let index = around.edges.len();
                let layout = &mut around.layout;
                if let Some(it) =
                    expand::incoming(connection, stream, relation, from, index, layout)
                {
                    around.edges.push(Edge {
                        direction: Direction::Incoming,
                        type_name: relation.type_name.value.clone(),
                        near_fields: pointed_at(&relation.on),
                        far_fields: pointing(from, &relation.on),
                        expansion: it,
                    });
                }
            }
        }
        around
    }

    /// The stream.
    pub fn stream(&self) -> &StreamView {
        &self.stream
    }

    /// The fields of a record, in order.
    pub fn header(&self) -> &[String] {
        self.layout.header()
    }

    /// The relations to follow: those of the stream first, then those that lead to it.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// The id of the record with this key, whether there is one or not: the values of a composite
    /// key with commas between them. `None` where it cannot be a key of this stream.
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

    /// Reads the records of these ids, the first [`MAX_CANDIDATES`]; `None` where no id is one of
    /// this stream's.
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
                    self.stream.base(),
                ]),
                order: layout::total(&self.stream, Vec::new()),
                after: None,
                each: None,
                previews: false,
            },
        ))
    }

    /// A row as a record.
    pub fn record(&self, row: Vec<Value>) -> Record {
        self.layout.record(row)
    }
}

/// Whether the stream has the reverse of a relation that leads to it: then that one is followed.
fn is_followed(stream: &StreamView, from: &StreamView, incoming: &Relation) -> bool {
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

/// The fields a relation leads to, which are visible where it may be followed.
fn pointed_at(on: &[Join]) -> Vec<String> {
    on.iter().map(|join| join.field.value.clone()).collect()
}

/// The visible fields a relation starts from; a column that is no field is none of them.
fn pointing(stream: &StreamView, on: &[Join]) -> Vec<String> {
    on.iter()
        .filter_map(|join| stream.field_of_column(&join.column))
        .map(|field| field.name().to_owned())
        .collect()
}
