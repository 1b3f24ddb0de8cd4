//! Which columns a plan reads and what becomes of them: some are shown, some only order rows,
//! join or mark the deleted, and are dropped before any result.

use std::sync::Arc;

use wayleave_model::mapping::{Datatype, Field};

use crate::id::RecordId;
use crate::plan::{Column, OrderBy};
use crate::refusal::{Code, Refusal, quoted};
use crate::request::SortKey;
use crate::value::Value;
use crate::view::{StreamView, column};

/// One record of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// `connection_id/stream:key`. Empty on a page that is only to be
    /// [shown](crate::query::QueryPlan::shown) and tells it by the key.
    pub id: String,
    /// The values of the header's fields; of a deleted record only the key's, NULL the rest.
    pub values: Vec<Value>,
    /// Whether the record is a tombstone.
    pub deleted: bool,
    /// Values of each expansion's joining columns.
    pub(crate) joins: Vec<Vec<Value>>,
}

/// Which column is which. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    pub(crate) columns: Arc<Vec<Column>>,
    show: Arc<Show>,
    order: Vec<usize>,
    deleted: Option<usize>,
    joins: Vec<Vec<usize>>,
}

/// What is shown of which stream.
#[derive(Debug)]
struct Show {
    connection_id: String,
    stream: String,
    header: Vec<String>,
    /// Where each field of the header is among the columns.
    fields: Vec<usize>,
    /// Whether two of them are in one place.
    repeats: bool,
    /// Whether they are the first columns, in their order.
    as_read: bool,
    key: Vec<usize>,
}

impl Layout {
    /// A layout that shows the fields that are asked for, or all.
    pub(crate) fn with_fields(
        view: &StreamView,
        fields: Option<&[String]>,
    ) -> Result<Self, Refusal> {
        match fields {
            None => Ok(Self::whole(view)),
            Some(fields) => Ok(Self::new(view, &projected(view, fields)?)),
        }
    }

    /// A layout that shows all fields, in the mapping's order; made once for each view.
    pub(crate) fn whole(view: &StreamView) -> Self {
        let all = || Self::new(view, &view.fields().collect::<Vec<_>>());
        view.whole.get_or_init(all).clone()
    }

    /// A layout that shows these fields.
    pub(crate) fn new(view: &StreamView, shown: &[&Field]) -> Self {
        let mut columns = Vec::with_capacity(shown.len());
        let fields = shown.iter().map(|f| place(&mut columns, &column(f)));
        let fields: Vec<usize> = fields.collect();
        let read = columns.len();
        let key = view.key_fields().map(|f| place(&mut columns, &column(f)));
        let key = key.collect();
        let show = Show {
            connection_id: view.connection_id().to_owned(),
            stream: view.name().to_owned(),
            header: shown.iter().map(|field| field.name.value.clone()).collect(),
            repeats: read < fields.len(),
            as_read: fields.iter().copied().eq(0..read),
            fields,
            key,
        };
        Self {
            columns: Arc::new(columns),
            show: Arc::new(show),
            order: Vec::new(),
            deleted: None,
            joins: Vec::new(),
        }
    }

    /// The connection that is read.
    pub(crate) fn connection_id(&self) -> &str {
        &self.show.connection_id
    }

    /// The stream that is read.
    pub(crate) fn stream(&self) -> &str {
        &self.show.stream
    }

    /// The fields that are shown, in order.
    pub(crate) fn header(&self) -> &[String] {
        &self.show.header
    }

    /// Reads an order's columns too, to know where a page ends.
    pub(crate) fn ordered(mut self, order: &[OrderBy]) -> Self {
        self.order = order.iter().map(|by| self.place(&by.column)).collect();
        self
    }

    /// Reads the mark of the deleted too.
    pub(crate) fn with_deleted(mut self, field: Option<&Field>) -> Self {
        self.deleted = field.map(|field| self.place(&column(field)));
        self
    }

    /// Whether records can be tombstones.
    pub(crate) fn marks_deleted(&self) -> bool {
        self.deleted.is_some()
    }

    /// Reads the columns one expansion joins on too.
    pub(crate) fn joined(&mut self, columns: &[Column]) {
        let places = columns.iter().map(|column| self.place(column)).collect();
        self.joins.push(places);
    }

    /// Where a column is, asking for it if need be.
    fn place(&mut self, wanted: &Column) -> usize {
        match known(&self.columns, wanted) {
            Some(place) => place,
            None => place(Arc::make_mut(&mut self.columns), wanted),
        }
    }

    /// The values of the order's columns: where a row is in it.
    pub(crate) fn position(&self, row: &[Value]) -> impl Iterator<Item = Value> {
        let at = |place: &usize| row.get(*place).map_or(Value::Null, Value::clone);
        self.order.iter().map(at)
    }

    /// Whether the values of a record tell where it is in the order.
    pub(crate) fn shows_order(&self) -> bool {
        let shown = self.show.fields.len();
        self.show.as_read && self.deleted.is_none() && self.order.iter().all(|it| *it < shown)
    }

    /// How many columns the order has.
    pub(crate) fn order_len(&self) -> usize {
        self.order.len()
    }

    /// A row of the store as a record.
    pub(crate) fn record(&self, row: &[Value]) -> Record {
        self.record_of(row.to_vec())
    }

    /// Whether the values of a row's key are in its id as they are shown.
    pub(crate) fn is_plainly_keyed(&self, row: &[Value]) -> bool {
        let key = self.show.key.iter().filter_map(|place| row.get(*place));
        key.into_iter().all(RecordId::is_plain)
    }

    /// The same, of a row that nobody needs any more.
    pub(crate) fn record_of(&self, row: Vec<Value>) -> Record {
        let key = self.show.key.iter().filter_map(|place| row.get(*place));
        let id = RecordId::text_of(self.connection_id(), self.stream(), key);
        self.named(id, row)
    }

    /// The same, under this id.
    pub(crate) fn named(&self, id: String, mut row: Vec<Value>) -> Record {
        let show = &*self.show;
        let at = |place: &usize| row.get(*place).cloned().unwrap_or(Value::Null);
        let deleted = match self.deleted.map(|place| at(&place)) {
            None | Some(Value::Null | Value::Boolean(false)) => false,
            Some(_) => true,
        };
        let mut joins = Vec::new();
        for join in &self.joins {
            joins.push(join.iter().map(at).collect());
        }
        if show.as_read && !deleted {
            row.truncate(show.fields.len());
            return Record {
                id,
                values: row,
                deleted,
                joins,
            };
        }
        let mut taken = |(index, place): (usize, &usize)| {
            if deleted && !show.key.contains(place) {
                return Value::Null;
            }
            let later = show.fields.get(index + 1..).unwrap_or_default();
            match row.get_mut(*place) {
                // Two fields may show one column.
                Some(value) if show.repeats && later.contains(place) => value.clone(),
                Some(value) => std::mem::replace(value, Value::Null),
                None => Value::Null,
            }
        };
        let values = show.fields.iter().enumerate().map(&mut taken).collect();
        Record {
            id,
            values,
            deleted,
            joins,
        }
    }
}

/// Where a column is, if it is asked for.
fn known(columns: &[Column], wanted: &Column) -> Option<usize> {
    columns.iter().position(|column| column.name == wanted.name)
}

/// Where a column is among these, or is put.
fn place(columns: &mut Vec<Column>, wanted: &Column) -> usize {
    known(columns, wanted).unwrap_or_else(|| {
        columns.push(wanted.clone());
        columns.len() - 1
    })
}

/// The fields to show: the key, which every record is known by, then those that are asked for,
/// in the caller's order.
fn projected<'a>(view: &'a StreamView, fields: &[String]) -> Result<Vec<&'a Field>, Refusal> {
    let mut shown: Vec<&Field> = view.key_fields().collect();
    for name in fields {
        let field = view
            .field(name)
            .ok_or_else(|| unknown_field(view, name, "fields"))?;
        if !shown.iter().any(|one| one.name == field.name) {
            shown.push(field);
        }
    }
    Ok(shown)
}

/// The refusal of a field that is not there. One of a related stream can be had, but not here.
pub(crate) fn unknown_field(view: &StreamView, name: &str, param: &str) -> Refusal {
    let message = match view.relation_of(name) {
        None => format!("stream `{}` has no field {}", view.name(), quoted(name)),
        Some(relation) => format!(
            "{} is of stream `{}`, and here are only fields of `{}`",
            quoted(name),
            relation.to,
            view.name()
        ),
    };
    Refusal::new(Code::UnknownField, message)
        .param(param)
        .allowed(view.fields().map(|field| field.name.as_str()))
        .near(name)
}

/// The order of a read: what is asked for, or the latest first where the stream has a time;
/// always made total by the key.
pub(crate) fn order(view: &StreamView, sort: &[SortKey]) -> Result<Vec<OrderBy>, Refusal> {
    let mut order: Vec<OrderBy> = Vec::new();
    for key in sort {
        let field = view
            .field(&key.name)
            .ok_or_else(|| unknown_field(view, &key.name, "sort"))?;
        if !sortable(field) {
            let message = format!("records cannot be sorted by `{}`", key.name);
            let names = view.fields().filter(|field| sortable(field));
            return Err(Refusal::new(Code::InvalidSort, message)
                .param("sort")
                .allowed(names.map(|field| field.name.as_str())));
        }
        order.push(by(view, field, key.descending));
    }
    if sort.is_empty()
        && let Some(field) = view.event_time().filter(|field| sortable(field))
    {
        order.push(by(view, field, true));
    }
    Ok(total(view, order))
}

/// An order that ends with the key.
pub(crate) fn total(view: &StreamView, mut order: Vec<OrderBy>) -> Vec<OrderBy> {
    for field in view.key_fields() {
        let is_there = |one: &OrderBy| one.column.name == field.column.value;
        if !order.iter().any(is_there) {
            order.push(by(view, field, false));
        }
    }
    order
}

pub(crate) fn by(view: &StreamView, field: &Field, descending: bool) -> OrderBy {
    let is_key = view.key_fields().any(|key| key.name == field.name);
    OrderBy {
        column: column(field),
        descending,
        nullable: !is_key && !field.required.value,
    }
}

fn sortable(field: &Field) -> bool {
    field.sort.value && field.is_scalar() && field.datatype.value != Datatype::Json
}
