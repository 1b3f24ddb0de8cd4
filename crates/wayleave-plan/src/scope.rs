//! Resolves the names of one read, and collects the tables that it joins along to-one relations.
//!
//! A name is a field of the stream, or a path along its relations: `album.artist.Name`. The grant
//! applies to every hop. A stream, field or relation that is not granted does not exist, so a path
//! through it is an unknown field; a related record that its own grant hides is absent, so values
//! behind it are NULL.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use wayleave_model::expression::{Formula, MAX_FOLLOWED_RELATIONS, MAX_HOPS, Node, Path};
use wayleave_model::mapping::{Datatype, Relation};

use crate::mask::Masking;
use crate::plan::{Column, ColumnOrigin, JoinedTable, Predicate, TARGET};
use crate::refusal::{Code, Refusal};
use crate::view::{ConnectionView, FieldView, StreamView};

/// Maximum number of tables of one read. MySQL joins at most 61 tables in a statement. The computed
/// fields of a stream follow at most [`MAX_FOLLOWED_RELATIONS`] relations, so no ratified mapping
/// reaches this limit by itself.
const MAX_TABLES: u16 = 48;
const _: () = assert!(
    MAX_FOLLOWED_RELATIONS + MAX_HOPS < MAX_TABLES as usize,
    "a path to a stream, and all that is computed in it, are one read"
);

/// A field with the name that a read gives it.
#[derive(Debug, Clone)]
pub(crate) struct NamedColumn {
    /// The name as the caller wrote it: a field's name, or a path.
    pub(crate) name: String,
    /// The field at the end of the path.
    pub(crate) field: FieldView,
    /// The column that a store reads for it.
    pub(crate) column: Column,
    /// Whether it is behind a path. Then it may be NULL although every record of its stream has it.
    pub(crate) is_path: bool,
}

/// The tables of a read: that of a stream, and those joined along its to-one relations.
#[derive(Debug)]
pub(crate) struct PathScope<'v> {
    connection: &'v ConnectionView,
    stream: &'v StreamView,
    table: u16,
    joins: Vec<JoinedTable>,
    reached: Vec<FollowedRelation<'v>>,
    /// The number of the next table. Shared by all parts of the read.
    next: Rc<Cell<u16>>,
}

/// A relation that the read already follows.
#[derive(Debug)]
struct FollowedRelation<'v> {
    from: u16,
    relation: String,
    table: u16,
    stream: &'v StreamView,
}

impl<'v> PathScope<'v> {
    /// The scope of a read of a stream.
    pub(crate) fn new(connection: &'v ConnectionView, stream: &'v StreamView) -> Self {
        Self {
            connection,
            stream,
            table: TARGET,
            joins: Vec::new(),
            reached: Vec::new(),
            next: Rc::new(Cell::new(TARGET + 1)),
        }
    }

    /// The stream of the read.
    pub(crate) fn stream(&self) -> &'v StreamView {
        self.stream
    }

    /// Refuses a read that follows more relations than a statement can join.
    pub(crate) fn check_size(&self) -> Result<(), Refusal> {
        if self.next.get() <= MAX_TABLES {
            return Ok(());
        }
        let message = format!(
            "this call follows more than {} relations; request fewer fields or paths",
            MAX_TABLES - 1
        );
        Err(Refusal::new(Code::InvalidRequest, message))
    }

    /// The joined tables, once all names are resolved.
    pub(crate) fn into_joins(self) -> Arc<Vec<JoinedTable>> {
        Arc::new(self.joins)
    }

    /// Resolves a name that a caller wrote, wherever a request names a field: in a projection, a
    /// filter, a sort, a group, a measure or a search. Nothing else maps a caller's text to a
    /// field.
    pub(crate) fn resolve(&mut self, name: &str) -> Option<NamedColumn> {
        let mut hops: Vec<&str> = name.split('.').collect();
        let last = hops.pop()?;
        if hops.len() > MAX_HOPS {
            return None;
        }
        // Check the whole path first, so that an invalid one adds no join.
        let (_, end) = self.walk(self.stream, &hops)?;
        let field = end.field(last)?.clone();
        let (table, end) = self.follow(self.table, self.stream, &hops)?;
        let column = self.shown(table, end, &field)?;
        Some(NamedColumn {
            name: name.to_owned(),
            field,
            column,
            is_path: !hops.is_empty(),
        })
    }

    /// A visible field of the stream itself.
    #[expect(clippy::expect_used, reason = "a default would drop a field silently")]
    pub(crate) fn own(&mut self, field: &FieldView) -> NamedColumn {
        let column = self.shown(self.table, self.stream, field);
        NamedColumn {
            name: field.name().to_owned(),
            field: field.clone(),
            column: column.expect("a view shows a computed field with all of its paths"),
            is_path: false,
        }
    }

    /// Whether a path consists of to-one relations only.
    pub(crate) fn leads_to_one(&self, path: &str) -> bool {
        let hops: Vec<&str> = path.split('.').collect();
        hops.len() <= MAX_HOPS && self.walk(self.stream, &hops).is_some()
    }

    /// The longest valid prefix of a path: the last stream it reaches, the prefix with its dot, and
    /// the rest.
    pub(crate) fn longest_valid_prefix<'n>(
        &self,
        path: &'n str,
    ) -> (&'v StreamView, &'n str, &'n str) {
        let mut found = (self.stream, "", path);
        for (at, _) in path.match_indices('.').take(MAX_HOPS) {
            let (hops, _) = path.split_at(at);
            let hops: Vec<&str> = hops.split('.').collect();
            let Some((_, stream)) = self.walk(self.stream, &hops) else {
                break;
            };
            let (prefix, rest) = path.split_at(at + 1);
            found = (stream, prefix, rest.trim_start_matches('.'));
        }
        found
    }

    /// Resolves a path that ends in a relation of any kind, after to-one relations: the stream it
    /// leads to, and the last relation.
    pub(crate) fn relation(&self, path: &str) -> Option<(&'v StreamView, &'v Relation)> {
        let mut hops: Vec<&str> = path.split('.').collect();
        if hops.len() > MAX_HOPS {
            return None;
        }
        let last = hops.pop()?;
        let (_, from) = self.walk(self.stream, &hops)?;
        let relation = from.relation(last)?;
        Some((self.connection.stream(&relation.to)?, relation))
    }

    /// Opens a scope for a condition on the records that a relation at the end of a path leads to.
    /// Also returns the join to them.
    pub(crate) fn related(&mut self, path: &str) -> Option<(JoinedTable, Self)> {
        let mut hops: Vec<&str> = path.split('.').collect();
        let last = hops.pop()?;
        let (from, stream) = self.follow(self.table, self.stream, &hops)?;
        let relation = stream.relation(last)?;
        let target = self.connection.stream(&relation.to)?;
        let table = self.number();
        let joined = joined_table(from, stream, relation, table, target)?;
        let inner = Self {
            connection: self.connection,
            stream: target,
            table,
            joins: Vec::new(),
            reached: Vec::new(),
            next: Rc::clone(&self.next),
        };
        Some((joined, inner))
    }

    /// The joined tables of a condition on related records.
    pub(crate) fn take_joins(self) -> Vec<JoinedTable> {
        self.joins
    }

    fn number(&self) -> u16 {
        let number = self.next.get();
        self.next.set(number.saturating_add(1));
        number
    }

    /// Resolves a path along to-one relations without joining.
    fn walk(&self, from: &'v StreamView, hops: &[&str]) -> Option<(usize, &'v StreamView)> {
        let mut stream = from;
        for hop in hops {
            let relation = stream.relation(hop)?;
            if !stream.mapping.is_to_one(relation) {
                return None;
            }
            stream = self.connection.stream(&relation.to)?;
        }
        Some((hops.len(), stream))
    }

    /// Joins along a path of to-one relations, and reuses joins that exist.
    fn follow(
        &mut self,
        table: u16,
        stream: &'v StreamView,
        hops: &[&str],
    ) -> Option<(u16, &'v StreamView)> {
        let (mut table, mut stream) = (table, stream);
        for hop in hops {
            let known = self
                .reached
                .iter()
                .find(|it| it.from == table && it.relation == *hop);
            (table, stream) = match known {
                Some(known) => (known.table, known.stream),
                None => self.join(table, stream, hop)?,
            };
        }
        Some((table, stream))
    }

    fn join(
        &mut self,
        from: u16,
        stream: &'v StreamView,
        name: &str,
    ) -> Option<(u16, &'v StreamView)> {
        let relation = stream.relation(name)?;
        if !stream.mapping.is_to_one(relation) {
            return None;
        }
        let target = self.connection.stream(&relation.to)?;
        let table = self.number();
        let mut joined = joined_table(from, stream, relation, table, target)?;
        let ordered =
            |it: &&FieldView| !it.is_many() && it.datatype() != Datatype::Json && !it.is_masked();
        let ordered = target.fields().filter(ordered);
        joined.first_by = ordered.filter_map(|it| it.stored(table)).collect();
        self.joins.push(joined);
        self.reached.push(FollowedRelation {
            from,
            relation: name.to_owned(),
            table,
            stream: target,
        });
        Some((table, target))
    }

    /// The column for a field that a caller may name. A redacted field is not read: the record's
    /// key stands in for it.
    fn shown(&mut self, table: u16, stream: &'v StreamView, field: &FieldView) -> Option<Column> {
        if field.masking().is_some_and(Masking::is_redact) {
            return stream.key_fields().first()?.stored(table);
        }
        self.column(table, stream, field)
    }

    /// The column of a field of one of the tables.
    fn column(&mut self, table: u16, stream: &'v StreamView, field: &FieldView) -> Option<Column> {
        if let Some(column) = field.stored(table) {
            return Some(column);
        }
        self.computed_at(table, stream, field.name(), field.formula()?)
    }

    /// The column of a formula over the stream's fields.
    pub(crate) fn computed(&mut self, label: &str, formula: &Formula<Path>) -> Option<Column> {
        self.computed_at(self.table, self.stream, label, formula)
    }

    fn computed_at(
        &mut self,
        table: u16,
        stream: &'v StreamView,
        label: &str,
        formula: &Formula<Path>,
    ) -> Option<Column> {
        let formula = formula.try_replace(&mut |path: &Path| {
            let leaf = self.leaf(table, stream, path).ok_or(())?;
            Ok::<_, ()>(Formula::leaf(leaf.datatype, leaf))
        });
        let formula = formula.ok()?;
        if let Node::Leaf(column) = formula.node {
            return Some(column);
        }
        Some(Column {
            datatype: formula.datatype,
            origin: ColumnOrigin::Computed {
                label: label.to_owned(),
                formula: Arc::new(formula),
            },
            many: false,
        })
    }

    /// The column of a stored field that a computed one names. A field of the record itself need
    /// not be granted: granting the computed field includes what it reveals of its operands.
    fn leaf(&mut self, table: u16, stream: &'v StreamView, path: &Path) -> Option<Column> {
        let (last, hops) = path.0.split_last()?;
        if hops.is_empty() {
            let mut stored = FieldView::all(&stream.mapped);
            return stored.find(|it| it.name() == last)?.stored(table);
        }
        let hops: Vec<&str> = hops.iter().map(String::as_str).collect();
        let (table, end) = self.follow(table, stream, &hops)?;
        end.field(last)?.stored(table)
    }
}

/// Whether a computed field only uses granted paths. Fields of the record itself need not be
/// granted: granting the computed field includes what it reveals of its operands. None may be
/// masked, because the result would reveal the value.
pub(crate) fn is_computable(
    streams: &[StreamView],
    stream: &StreamView,
    formula: &Formula<Path>,
) -> bool {
    all_paths_visible(streams, stream, formula, false)
}

/// Whether everything a measure uses is granted. A grant names no measures, so it cannot include
/// what one would reveal of a hidden field.
pub(crate) fn is_measurable(
    streams: &[StreamView],
    stream: &StreamView,
    formula: &Formula<Path>,
) -> bool {
    all_paths_visible(streams, stream, formula, true)
}

fn all_paths_visible(
    streams: &[StreamView],
    stream: &StreamView,
    formula: &Formula<Path>,
    own_too: bool,
) -> bool {
    let mut all = true;
    formula.for_each_leaf(&mut |path: &Path| {
        let Some((last, hops)) = path.0.split_last() else {
            all = false;
            return;
        };
        let end = streams_along(streams, stream, hops).last().flatten();
        let is_own = hops.is_empty() && !own_too;
        all &= is_own || end.is_some_and(|end| end.field(last).is_some());
        all &= end.is_some_and(|end| !end.is_field_masked(last));
    });
    all
}

/// Whether a computed field has the same value for every caller: the grant shows all records of the
/// streams along its paths.
pub(crate) fn reads_only_whole_streams(
    streams: &[StreamView],
    stream: &StreamView,
    formula: &Formula<Path>,
) -> bool {
    let mut all = true;
    formula.for_each_leaf(&mut |path: &Path| {
        let hops = path.0.split_last().map_or(&[][..], |(_, hops)| hops);
        let mut reached = streams_along(streams, stream, hops).skip(1);
        all &= reached.all(|it| it.is_some_and(StreamView::is_whole));
    });
    all
}

/// The streams along a path, this one first, one for each hop; `None` from the first invalid hop
/// on.
fn streams_along<'s>(
    streams: &'s [StreamView],
    stream: &'s StreamView,
    hops: &'s [String],
) -> impl Iterator<Item = Option<&'s StreamView>> {
    let named = |name: &str| streams.iter().find(|it| it.name() == name);
    let mut end = Some(stream);
    let reached = hops.iter().map(move |hop| {
        let relation = end.and_then(|it| it.relation(hop));
        end = relation.and_then(|relation| named(&relation.to));
        end
    });
    std::iter::once(Some(stream)).chain(reached)
}

/// The join along a relation to a table, limited to its visible rows.
fn joined_table(
    from: u16,
    stream: &StreamView,
    relation: &Relation,
    table: u16,
    target: &StreamView,
) -> Option<JoinedTable> {
    let mut on = Vec::with_capacity(relation.on.len());
    for join in &relation.on {
        let theirs = target.field(&join.field)?.stored(table)?;
        let ours = join_column(from, stream, &join.column, theirs.datatype);
        on.push((ours, theirs));
    }
    let rows = target.visible_rows();
    Some(JoinedTable {
        table,
        schema: target.target.schema.clone(),
        name: target.target.table.clone(),
        suspended: target.target.suspended.clone(),
        on,
        rows: rows.with_table(table),
        first_by: Vec::new(),
    })
}

/// The column that a relation starts from. If no field maps it, it gets the datatype of the column
/// it is joined with.
pub(crate) fn join_column(
    table: u16,
    stream: &StreamView,
    column: &str,
    datatype: Datatype,
) -> Column {
    let field = stream.field_of_column(column);
    let field = field.and_then(|field| field.stored(table));
    field.unwrap_or_else(|| Column::stored(table, column, datatype))
}

impl Predicate {
    /// Moves the predicate to another table. Only for predicates of grants, which name stored
    /// columns of one table.
    fn with_table(self, table: u16) -> Self {
        let moved = |mut column: Column| {
            if let ColumnOrigin::Stored { table: at, .. } = &mut column.origin {
                *at = table;
            }
            column
        };
        let each = |parts: Vec<Self>| parts.into_iter().map(|it| it.with_table(table)).collect();
        match self {
            Self::True | Self::False | Self::Exists { .. } => self,
            Self::And(parts) => Self::And(each(parts)),
            Self::Or(parts) => Self::Or(each(parts)),
            Self::Granted(inner) => Self::Granted(Box::new(inner.with_table(table))),
            Self::Compare {
                column,
                comparison,
                value,
            } => Self::Compare {
                column: moved(column),
                comparison,
                value,
            },
            Self::CompareColumns {
                left,
                comparison,
                right,
            } => Self::CompareColumns {
                left: moved(left),
                comparison,
                right: moved(right),
            },
            Self::In {
                column,
                values,
                negated,
            } => Self::In {
                column: moved(column),
                values,
                negated,
            },
            Self::Like {
                column,
                text,
                place,
                fold,
            } => Self::Like {
                column: moved(column),
                text,
                place,
                fold,
            },
            Self::IsNull { column, negated } => Self::IsNull {
                column: moved(column),
                negated,
            },
        }
    }
}
