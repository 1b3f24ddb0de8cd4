//! The tables of a statement, and how their columns are named and computed in it.

use std::borrow::Cow;
use std::sync::Arc;

use wayleave_model::expression::Formula;
use wayleave_model::mapping::Datatype;
use wayleave_plan::plan::{Column, ColumnOrigin, JoinedTable, TARGET};
use wayleave_store::StoreError;

use super::dialect::Dialect;
use super::formula;
use super::shape::{NativeColumn, NativeKind, Shape};
use super::sql::Sql;
use crate::compile::PlanParts;
use crate::plan_columns::columns_read_from;

/// The tables of a statement by their numbers, and the values of its groups.
#[derive(Debug, Clone)]
pub(crate) struct Tables<K> {
    shapes: Vec<(u16, Arc<Shape<K>>)>,
    /// The joined tables of which several rows may match a join, each with the columns read from
    /// it.
    multiple: Vec<(u16, Vec<String>)>,
    /// The keys and aggregates of a group in the form for computing; empty without groups.
    groups: Vec<(Sql, NativeColumn<K>)>,
}

/// The expression of a column in a statement, and its native column.
pub(crate) type ColumnExpression<'t, K> = (Sql, Cow<'t, NativeColumn<K>>);

/// The alias of a table in every statement. Every column is qualified with it, because a qualified
/// name is never anything but a column.
pub(super) fn alias(table: u16) -> Cow<'static, str> {
    match table {
        TARGET => Cow::Borrowed("t"),
        other => Cow::Owned(format!("t{other}")),
    }
}

impl<K: NativeKind> Tables<K> {
    /// The tables of a statement that so far reads only the target's own.
    pub(crate) fn new(target: Arc<Shape<K>>) -> Self {
        Self {
            shapes: vec![(TARGET, target)],
            multiple: Vec::new(),
            groups: Vec::new(),
        }
    }

    /// Adds a table that a relation leads to.
    pub(crate) fn join(&mut self, plan: PlanParts<'_>, join: &JoinedTable, shape: Arc<Shape<K>>) {
        if join.is_to_one() && !shape.is_single(join) {
            self.multiple
                .push((join.table, columns_read_from(plan, join.table)));
        }
        self.shapes.push((join.table, shape));
    }

    /// The columns read from a joined table, if several of its rows may match the join.
    pub(super) fn multiple(&self, table: u16) -> Option<&[String]> {
        let mut found = self.multiple.iter();
        let found = found.find(|(number, _)| *number == table);
        found.map(|(_, columns)| columns.as_slice())
    }

    /// Adds the values of groups.
    pub(super) fn with_groups(&self, groups: Vec<(Sql, NativeColumn<K>)>) -> Self {
        Self {
            shapes: self.shapes.clone(),
            multiple: self.multiple.clone(),
            groups,
        }
    }

    /// The native column of a column of the target's own table.
    pub(crate) fn own(&self, column: &Column) -> Option<&NativeColumn<K>> {
        self.target().ok()?.columns.get(column.own_name()?)
    }

    /// The target's own table.
    pub(crate) fn target(&self) -> Result<&Shape<K>, StoreError> {
        self.shape(TARGET)
    }

    pub(super) fn shape(&self, table: u16) -> Result<&Shape<K>, StoreError> {
        let mut shapes = self.shapes.iter();
        let found = shapes.find(|(number, _)| *number == table);
        let found = found.map(|(_, shape)| shape.as_ref());
        found.ok_or_else(crate::values::unexpected_answer)
    }

    /// The native column of a column, a formula or a group value.
    pub(crate) fn column<D: Dialect<Kind = K>>(
        &self,
        dialect: &D,
        column: &Column,
    ) -> Result<Cow<'_, NativeColumn<K>>, StoreError> {
        match &column.origin {
            ColumnOrigin::Stored { table, name } => {
                let native = self.shape(*table)?.stored(name, column)?;
                Ok(in_table(*table, native))
            }
            ColumnOrigin::Computed { formula, .. } => {
                Ok(Cow::Owned(self.computed(dialect, column, formula)?))
            }
            ColumnOrigin::Group { index, .. } => {
                let group = self.groups.get(*index);
                let (_, native) = group.ok_or_else(crate::values::unexpected_answer)?;
                Ok(Cow::Borrowed(native))
            }
        }
    }

    /// The native column of a formula's result.
    fn computed<D: Dialect<Kind = K>>(
        &self,
        dialect: &D,
        column: &Column,
        formula: &Formula<Column>,
    ) -> Result<NativeColumn<K>, StoreError> {
        let kind = dialect.formula_kind(formula, &mut |column| self.kind(dialect, column))?;
        Ok(computed(column.datatype, kind))
    }

    /// The native kind of a column.
    pub(super) fn kind<D: Dialect<Kind = K>>(
        &self,
        dialect: &D,
        column: &Column,
    ) -> Result<K, StoreError> {
        Ok(self.column(dialect, column)?.kind.clone())
    }

    /// The column, quoted and qualified, or the expression that computes it.
    pub(crate) fn name<D: Dialect<Kind = K>>(
        &self,
        dialect: &D,
        column: &Column,
    ) -> Result<Sql, StoreError> {
        self.named(dialect, column).map(|(name, _)| name)
    }

    /// The same, with its native column.
    pub(crate) fn named<D: Dialect<Kind = K>>(
        &self,
        dialect: &D,
        column: &Column,
    ) -> Result<ColumnExpression<'_, K>, StoreError> {
        match &column.origin {
            ColumnOrigin::Stored { table, name } => {
                let shape = self.shape(*table)?;
                let native = shape.stored(name, column)?;
                let alias = alias(*table);
                let mut sql = String::with_capacity(alias.len() + name.len() + 4);
                sql.push_str(&alias);
                sql.push('.');
                shape.quote(dialect, name, &mut sql)?;
                Ok((Sql::text(sql), in_table(*table, native)))
            }
            ColumnOrigin::Computed { formula, .. } => {
                let sql = formula::value(dialect, self, formula)?;
                Ok((sql, Cow::Owned(self.computed(dialect, column, formula)?)))
            }
            ColumnOrigin::Group { index, .. } => {
                let group = self.groups.get(*index);
                let (sql, native) = group.ok_or_else(crate::values::unexpected_answer)?;
                Ok((sql.clone(), Cow::Borrowed(native)))
            }
        }
    }

    /// A stored column of the target's table, quoted but not qualified, for writing statements.
    pub(crate) fn bare_name<D: Dialect<Kind = K>>(
        &self,
        dialect: &D,
        column: &Column,
    ) -> Result<Sql, StoreError> {
        let shape = self.target()?;
        let name = column
            .own_name()
            .ok_or_else(crate::values::unexpected_answer)?;
        shape.stored(name, column)?;
        let mut sql = String::with_capacity(name.len() + 2);
        shape.quote(dialect, name, &mut sql)?;
        Ok(Sql::text(sql))
    }

    /// The target's table, quoted and qualified.
    pub(crate) fn bare_table<D: Dialect<Kind = K>>(&self, dialect: &D) -> Result<Sql, StoreError> {
        let shape = self.target()?;
        self.sibling_table(dialect, &shape.table)
    }

    /// A table of the target's schema, quoted and qualified.
    pub(crate) fn sibling_table<D: Dialect<Kind = K>>(
        &self,
        dialect: &D,
        table: &str,
    ) -> Result<Sql, StoreError> {
        let shape = self.target()?;
        let mut name = String::new();
        if let Some(schema) = &shape.schema {
            shape.quote(dialect, schema, &mut name)?;
            name.push('.');
        }
        shape.quote(dialect, table, &mut name)?;
        Ok(Sql::text(name))
    }

    /// The target's table, quoted, qualified and with its alias.
    pub(crate) fn from<D: Dialect<Kind = K>>(&self, dialect: &D) -> Result<Sql, StoreError> {
        self.table(dialect, TARGET)
    }

    /// A table, quoted, qualified and with its alias.
    pub(crate) fn table<D: Dialect<Kind = K>>(
        &self,
        dialect: &D,
        table: u16,
    ) -> Result<Sql, StoreError> {
        self.shape(table)?.from(dialect, &alias(table))
    }

    /// A condition for the well-formed values of a column, apart from NULL; for a computed column,
    /// that the values it is computed from are well-formed or NULL. `None` if the store allows no
    /// others.
    pub(crate) fn well_formed<D: Dialect<Kind = K>>(
        &self,
        dialect: &D,
        column: &Column,
        comparison: Option<wayleave_plan::plan::Comparison>,
    ) -> Result<Option<Sql>, StoreError> {
        if let ColumnOrigin::Stored { .. } = &column.origin {
            let (name, native) = self.named(dialect, column)?;
            return Ok(dialect.well_formed(column, &native.kind, &name, comparison));
        }
        let mut stored = Vec::new();
        column.for_each_stored(&mut |leaf| stored.push(leaf));
        let mut conditions: Vec<Sql> = Vec::new();
        for leaf in stored {
            let (name, native) = self.named(dialect, leaf)?;
            if let Some(fits) = dialect.well_formed(leaf, &native.kind, &name, None) {
                let fits = Sql::joined([name.within("", " IS NULL"), fits], " OR ");
                let fits = fits.within("(", ")");
                if !conditions.contains(&fits) {
                    conditions.push(fits);
                }
            }
        }
        Ok(if conditions.is_empty() {
            None
        } else {
            Some(Sql::joined(conditions, " AND ").within("(", ")"))
        })
    }

    /// Selects NULL of a stored column's own type, so that the answer's types show whether the
    /// column still has the type that the statement was compiled for.
    pub(crate) fn witness<D: Dialect<Kind = K>>(
        &self,
        dialect: &D,
        column: &Column,
    ) -> Result<Sql, StoreError> {
        let table = column.tables().first().copied().unwrap_or(TARGET);
        let mut sql = self.name(dialect, column)?.within("(SELECT ", " FROM ");
        sql.add(self.table(dialect, table)?);
        sql.push(" LIMIT 0)");
        Ok(sql)
    }

    /// Compares the types of an answer with the cached shapes.
    pub(crate) fn check_witnesses<T>(
        &self,
        witnesses: &[(usize, &Column)],
        types: &[T],
        is_same: impl Fn(&NativeColumn<K>, &T) -> bool,
    ) -> Result<(), StoreError> {
        for (place, column) in witnesses {
            let ColumnOrigin::Stored { table, name } = &column.origin else {
                continue;
            };
            let shape = self.shape(*table)?;
            let native = shape.stored(name, column)?;
            if !types.get(*place).is_some_and(|told| is_same(native, told)) {
                return Err(shape.drift(Some(name)));
            }
        }
        Ok(())
    }
}

/// The native column as a statement sees it: a column of a joined table may be NULL, because the
/// join may find no row.
fn in_table<K: Clone>(table: u16, native: &NativeColumn<K>) -> Cow<'_, NativeColumn<K>> {
    if table == TARGET || !native.not_null {
        return Cow::Borrowed(native);
    }
    Cow::Owned(NativeColumn {
        not_null: false,
        ..native.clone()
    })
}

/// The native column of a computed value.
pub(super) const fn computed<K>(datatype: Datatype, kind: K) -> NativeColumn<K> {
    NativeColumn {
        kind,
        datatype,
        many: false,
        not_null: false,
        type_id: None,
    }
}
