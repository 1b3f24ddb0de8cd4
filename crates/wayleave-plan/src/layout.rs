//! The columns of a read and their use: some are shown; others only order rows, join or mark
//! deleted records, and are dropped before any result.

use std::collections::HashSet;
use std::sync::Arc;

use crate::id::RecordId;
use crate::mask::Masking;
use crate::plan::{AuthorizedPlan, Column, JoinedTable, OrderBy, Read, Rows, Target};
use crate::refusal::{Code, Refusal, quoted};
use crate::request::SortKey;
use crate::scope::{NamedColumn, PathScope};
use crate::value::Value;
use crate::view::{FieldView, StreamView};

/// One record of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    show: Arc<ShownFields>,
    /// The values of the header's fields. A deleted record has only those of the key, and NULL
    /// otherwise.
    pub values: Vec<Value>,
    /// Whether the record is a tombstone.
    pub deleted: bool,
    /// The values of each expansion's join columns.
    pub(crate) joins: Vec<Vec<Value>>,
}

impl Record {
    /// The values of its key, in key order. Every record contains them.
    pub fn key(&self) -> impl Iterator<Item = &Value> + Clone {
        self.show.key.iter().map(|place| at(&self.values, *place))
    }

    /// The value of a field, if the header contains it.
    pub fn value(&self, field: &str) -> Option<&Value> {
        let place = self.show.header.iter().position(|name| name == field)?;
        Some(at(&self.values, place))
    }

    /// Its id: `connection_id/stream:key`.
    pub fn id(&self) -> String {
        RecordId::text_of(&self.show.connection_id, &self.show.stream, self.key())
    }

    /// Its key as its id spells it.
    pub fn key_text(&self) -> String {
        RecordId::key_text(self.key())
    }

    /// Whether its id spells the key differently from its values, because some characters are
    /// percent-encoded.
    pub fn is_key_encoded(&self) -> bool {
        self.key().any(RecordId::is_encoded)
    }
}

/// The role of each column of a read. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    pub(crate) columns: Arc<Vec<Column>>,
    /// The mask of each column. A column that is shown masked and also joined on appears twice.
    masks: Arc<Vec<Option<Masking>>>,
    show: Arc<ShownFields>,
    order: Vec<usize>,
    deleted: Option<usize>,
    joins: Vec<Vec<usize>>,
}

/// The shown fields of a stream.
#[derive(Debug, PartialEq)]
struct ShownFields {
    connection_id: String,
    stream: String,
    header: Vec<String>,
    /// The column index of each header field.
    fields: Vec<usize>,
    /// Whether two header fields share a column.
    repeats: bool,
    /// Whether the header fields are the first columns, in the same order.
    as_read: bool,
    /// The header index of each key field.
    key: Vec<usize>,
}

/// The value at an index of a row.
#[expect(
    clippy::expect_used,
    reason = "rows are as wide as their plan has columns, which stores' answers are checked for"
)]
fn at(row: &[Value], place: usize) -> &Value {
    row.get(place).expect("a value for each column of the plan")
}

/// Takes the value at an index of a row, and leaves NULL.
#[expect(clippy::expect_used, reason = "as above")]
fn take(row: &mut [Value], place: usize) -> Value {
    let value = row.get_mut(place);
    std::mem::replace(
        value.expect("a value for each column of the plan"),
        Value::Null,
    )
}

impl Layout {
    /// A layout that shows the requested fields, or all.
    pub(crate) fn with_fields(
        scope: &mut PathScope<'_>,
        fields: Option<&[String]>,
    ) -> Result<Self, Refusal> {
        match fields {
            None => Ok(Self::whole(scope)),
            Some(fields) => {
                let shown = requested_columns(scope, fields)?;
                Ok(Self::new(scope, shown))
            }
        }
    }

    /// A layout that shows all fields, in the mapping's order. Cached in the view unless a field is
    /// computed.
    pub(crate) fn whole(scope: &mut PathScope<'_>) -> Self {
        let view = scope.stream();
        let mut all = || {
            let shown = view.fields().map(|field| scope.own(field));
            let shown = shown.collect();
            Self::new(scope, shown)
        };
        if view.fields().any(FieldView::is_computed) {
            return all();
        }
        view.whole.get_or_init(all).clone()
    }

    /// A layout that shows these fields, and any missing key fields after them.
    pub(crate) fn new(scope: &mut PathScope<'_>, mut shown: Vec<NamedColumn>) -> Self {
        let view = scope.stream();
        let mut key = Vec::with_capacity(view.key_fields().len());
        for field in view.key_fields() {
            let known = shown.iter().position(|one| one.name == field.name());
            key.push(known.unwrap_or(shown.len()));
            if known.is_none() {
                shown.push(scope.own(field));
            }
        }
        let mut columns = Vec::with_capacity(shown.len());
        let mut masks = Vec::with_capacity(shown.len());
        let fields = shown.iter().map(|it| {
            let masking = it.field.masking();
            known(&columns, &masks, &it.column, masking).unwrap_or_else(|| {
                columns.push(it.column.clone());
                masks.push(masking.cloned());
                columns.len() - 1
            })
        });
        let fields: Vec<usize> = fields.collect();
        let show = ShownFields {
            connection_id: view.connection_id().to_owned(),
            stream: view.name().to_owned(),
            header: shown.into_iter().map(|it| it.name).collect(),
            repeats: columns.len() < fields.len(),
            as_read: fields.iter().copied().eq(0..columns.len()),
            fields,
            key,
        };
        Self {
            columns: Arc::new(columns),
            masks: Arc::new(masks),
            show: Arc::new(show),
            order: Vec::new(),
            deleted: None,
            joins: Vec::new(),
        }
    }

    /// The names of the shown fields, in order.
    pub(crate) fn header(&self) -> &[String] {
        &self.show.header
    }

    /// Adds the columns of an order, to build cursors.
    pub(crate) fn ordered(mut self, order: &[OrderBy]) -> Self {
        self.order = order.iter().map(|by| self.place(&by.column)).collect();
        self
    }

    /// Adds the column that marks deleted records.
    pub(crate) fn with_deleted(mut self, field: Option<&FieldView>) -> Self {
        self.deleted = field.map(|field| self.place(&field.own_column()));
        self
    }

    /// Whether records can be tombstones.
    pub(crate) fn marks_deleted(&self) -> bool {
        self.deleted.is_some()
    }

    /// Adds the columns that one expansion joins on.
    pub(crate) fn joined(&mut self, columns: &[Column]) {
        let places = columns.iter().map(|column| self.place(column)).collect();
        self.joins.push(places);
    }

    /// The index of an unmasked column, which is added if missing.
    fn place(&mut self, wanted: &Column) -> usize {
        known(&self.columns, &self.masks, wanted, None).unwrap_or_else(|| {
            let columns = Arc::make_mut(&mut self.columns);
            columns.push(wanted.clone());
            Arc::make_mut(&mut self.masks).push(None);
            columns.len() - 1
        })
    }

    /// The plan of a read of these columns.
    pub(crate) fn plan(
        &self,
        target: Arc<Target>,
        tables: Arc<Vec<JoinedTable>>,
        rows: Rows,
    ) -> AuthorizedPlan {
        AuthorizedPlan::new(target, tables, Read::Rows(rows)).masked(Arc::clone(&self.masks))
    }

    /// The values of the order's columns in a row: its position in the order.
    pub(crate) fn position(&self, row: &[Value]) -> impl Iterator<Item = Value> {
        self.order.iter().map(|place| at(row, *place).clone())
    }

    /// Whether a record's shown values determine its position in the order.
    pub(crate) fn shows_order(&self) -> bool {
        let shown = self.show.fields.len();
        self.show.as_read && self.deleted.is_none() && self.order.iter().all(|it| *it < shown)
    }

    /// Number of columns in the order.
    pub(crate) fn order_len(&self) -> usize {
        self.order.len()
    }

    /// Converts a row of the store to a record.
    pub(crate) fn record(&self, mut row: Vec<Value>) -> Record {
        let show = &*self.show;
        let deleted = self
            .deleted
            .is_some_and(|place| !matches!(at(&row, place), Value::Null | Value::Boolean(false)));
        let values = |places: &Vec<usize>| places.iter().map(|it| at(&row, *it).clone()).collect();
        let joins = self.joins.iter().map(values).collect();
        let values = if show.as_read && !deleted {
            row.truncate(show.fields.len());
            row
        } else {
            show.taken(&mut row, deleted)
        };
        Record {
            show: Arc::clone(&self.show),
            values,
            deleted,
            joins,
        }
    }
}

impl ShownFields {
    /// Takes the shown values out of a row; for a deleted record, only those of its key.
    fn taken(&self, row: &mut [Value], deleted: bool) -> Vec<Value> {
        let taken = |(index, place): (usize, &usize)| {
            if deleted && !self.is_of_key(*place) {
                return Value::Null;
            }
            // Two fields may show one column.
            let mut later = self.fields.iter().skip(index + 1);
            if self.repeats && later.any(|it| it == place) {
                return at(row, *place).clone();
            }
            take(row, *place)
        };
        self.fields.iter().enumerate().map(taken).collect()
    }

    /// Whether a column is part of the key.
    fn is_of_key(&self, column: usize) -> bool {
        let mut key = self.key.iter();
        key.any(|place| self.fields.get(*place) == Some(&column))
    }
}

/// The index of a column with this mask, if there is one.
fn known(
    columns: &[Column],
    masks: &[Option<Masking>],
    wanted: &Column,
    masking: Option<&Masking>,
) -> Option<usize> {
    let mut all = columns.iter().zip(masks);
    all.position(|(column, mask)| column == wanted && mask.as_ref() == masking)
}

/// The fields to show: the key, because it identifies every record, then the requested fields in
/// the caller's order.
fn requested_columns(
    scope: &mut PathScope<'_>,
    fields: &[String],
) -> Result<Vec<NamedColumn>, Refusal> {
    let keys = scope.stream().key_fields().iter();
    let mut names: HashSet<&str> = keys.clone().map(FieldView::name).collect();
    let mut shown: Vec<NamedColumn> = keys.map(|field| scope.own(field)).collect();
    for name in fields {
        if names.insert(name) {
            shown.push(named_column(scope, name, "fields")?);
            scope.check_size()?;
        }
    }
    Ok(shown)
}

/// Resolves a field that a caller names in a parameter, or refuses the name.
pub(crate) fn named_column(
    scope: &mut PathScope<'_>,
    name: &str,
    param: &str,
) -> Result<NamedColumn, Refusal> {
    let found = scope.resolve(name);
    found.ok_or_else(|| unknown_field(scope, name, param))
}

/// The refusal of an unknown field, with the fields of the stream where its path ends.
pub(crate) fn unknown_field(scope: &PathScope<'_>, name: &str, param: &str) -> Refusal {
    let (end, prefix, rest) = scope.longest_valid_prefix(name);
    let stream = end.name();
    let first = rest.split('.').next().unwrap_or(rest);
    let message = match end.relation(first) {
        Some(relation) if !end.is_to_one(relation) && rest != first => format!(
            "`{prefix}{first}` leads to many `{}`; filter with {{\"{prefix}{first}\": {{\"some\": {{…}}}}}}, or `expand` it",
            relation.to
        ),
        Some(relation) if rest == first => format!(
            "`{prefix}{first}` is a relation to `{}`, not a field; name one of its fields: `{prefix}{first}.…`",
            relation.to
        ),
        _ => format!("stream `{stream}` has no field {}", quoted(rest)),
    };
    let fields = end
        .fields()
        .map(|field| format!("{prefix}{}", field.name()));
    Refusal::new(Code::UnknownField, message)
        .param(param)
        .allowed(fields)
        .near(name)
}

/// The order of a read: the requested one, or the default; made total by the key.
pub(crate) fn order(scope: &mut PathScope<'_>, sort: &[SortKey]) -> Result<Vec<OrderBy>, Refusal> {
    let view = scope.stream();
    if sort.is_empty() {
        return Ok(default_order(view));
    }
    let mut order: Vec<OrderBy> = Vec::new();
    for key in sort {
        let named = named_column(scope, &key.name, "sort")?;
        if !named.field.can_sort() {
            let message = format!("records cannot be sorted by `{}`", key.name);
            let sortable = view.fields().filter(|field| field.can_sort());
            return Err(Refusal::new(Code::InvalidSort, message)
                .param("sort")
                .allowed(sortable.map(FieldView::name)));
        }
        order.push(by(view, named, key.descending));
    }
    Ok(total(view, order))
}

/// The order of a read without a `sort`: latest first if the stream has an event time, then by key.
pub(crate) fn default_order(view: &StreamView) -> Vec<OrderBy> {
    let time = view.event_time().filter(|field| field.can_sort());
    let latest = time.map(|field| OrderBy {
        column: field.own_column(),
        descending: true,
        nullable: !is_always_there(view, field),
    });
    total(view, latest.into_iter().collect())
}

/// An order that ends with the key.
pub(crate) fn total(view: &StreamView, mut order: Vec<OrderBy>) -> Vec<OrderBy> {
    for field in view.key_fields() {
        let column = field.own_column();
        if !order.iter().any(|one| one.column == column) {
            order.push(OrderBy {
                column,
                descending: false,
                nullable: false,
            });
        }
    }
    order
}

fn by(view: &StreamView, named: NamedColumn, descending: bool) -> OrderBy {
    OrderBy {
        nullable: named.is_path || !is_always_there(view, &named.field),
        column: named.column,
        descending,
    }
}

/// Whether every record of the stream has a value of the field.
pub(crate) fn is_always_there(view: &StreamView, field: &FieldView) -> bool {
    view.key_fields().contains(field) || (field.is_required() && !field.is_computed())
}
