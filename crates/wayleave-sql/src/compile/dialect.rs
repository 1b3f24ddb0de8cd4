//! What differs between the stores.

use std::collections::BTreeMap;

use wayleave_model::drift::fits;
use wayleave_model::mapping::{Datatype, SourceKind};
use wayleave_plan::plan::{Column, Comparison, Granularity};
use wayleave_plan::value::Value;
use wayleave_store::StoreError;

use super::sql::{Placeholder, Sql};

/// The name every statement gives the table it reads, so that each column is written with it: a
/// qualified name is never anything but a column.
const ALIAS: &str = "t";

/// What a selected text begins with that is the beginning of a longer one.
pub(crate) const PREVIEW: &str = "\u{1}P";
/// What a selected text begins with that is whole although it looks like such a one.
pub(crate) const WHOLE: &str = "\u{1}T";

/// A table as the store has it.
#[derive(Debug, Clone)]
pub(crate) struct Shape<K> {
    /// The schema it is in, where the store has schemas.
    pub(crate) schema: Option<String>,
    /// Its name.
    pub(crate) table: String,
    /// The version of the schema it was read from, where the store counts them.
    pub(crate) version: Option<i64>,
    /// Its columns by name. Few as they are, finding one is quicker than hashing its name.
    pub(crate) columns: BTreeMap<String, NativeColumn<K>>,
}

/// A column as the store has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NativeColumn<K> {
    /// What the store says it holds.
    pub(crate) kind: K,
    /// The datatype that is, by the same rules as introspection's.
    pub(crate) datatype: Datatype,
    /// Whether it holds many values.
    pub(crate) many: bool,
    /// Whether the store keeps NULL out of it.
    pub(crate) not_null: bool,
    /// The type it was declared with, by the number that answers name it by; `None` where they do
    /// not.
    pub(crate) type_id: Option<u32>,
}

impl<K: NativeKind> Shape<K> {
    /// What the store says of a column. One whose type no longer fits the mapped datatype has
    /// drifted as much as one that is gone: the store would compare it by guesses of its own.
    pub(crate) fn column(&self, column: &Column) -> Result<&NativeColumn<K>, StoreError> {
        self.columns
            .get(&column.name)
            .filter(|native| native.reads_as(column))
            .ok_or_else(|| StoreError::SchemaDrift {
                table: self.table.clone(),
                column: Some(column.name.clone()),
            })
    }

    /// The column, quoted and qualified.
    pub(crate) fn name<D: Dialect<Kind = K>>(
        &self,
        dialect: &D,
        column: &Column,
    ) -> Result<Sql, StoreError> {
        self.named(dialect, column).map(|(name, _)| name)
    }

    /// The column, quoted and qualified, and what the store says of it.
    pub(crate) fn named<D: Dialect<Kind = K>>(
        &self,
        dialect: &D,
        column: &Column,
    ) -> Result<(Sql, &NativeColumn<K>), StoreError> {
        let native = self.column(column)?;
        let mut name = String::with_capacity(ALIAS.len() + column.name.len() + 4);
        name.push_str(ALIAS);
        name.push('.');
        self.quote(dialect, &column.name, &mut name)?;
        Ok((Sql::text(name), native))
    }

    /// The table, quoted, qualified and named.
    pub(crate) fn from<D: Dialect<Kind = K>>(&self, dialect: &D) -> Result<Sql, StoreError> {
        let mut from = String::new();
        if let Some(schema) = &self.schema {
            self.quote(dialect, schema, &mut from)?;
            from.push('.');
        }
        self.quote(dialect, &self.table, &mut from)?;
        from.push_str(" AS ");
        from.push_str(ALIAS);
        Ok(Sql::text(from))
    }

    /// Selects NULL of a column's own type, so that the answer's types show whether the column
    /// still has the type that the statement was compiled for.
    pub(crate) fn witness<D: Dialect<Kind = K>>(
        &self,
        dialect: &D,
        column: &Column,
    ) -> Result<Sql, StoreError> {
        let mut sql = self.name(dialect, column)?.within("(SELECT ", " FROM ");
        sql.add(self.from(dialect)?);
        sql.push(" LIMIT 0)");
        Ok(sql)
    }

    /// Compares the types of an answer with the cached shape.
    pub(crate) fn check_witnesses<T>(
        &self,
        witnesses: &[(usize, &Column)],
        types: &[T],
        is_same: impl Fn(&NativeColumn<K>, &T) -> bool,
    ) -> Result<(), StoreError> {
        for (place, column) in witnesses {
            let native = self.column(column)?;
            if !types.get(*place).is_some_and(|told| is_same(native, told)) {
                return Err(StoreError::SchemaDrift {
                    table: self.table.clone(),
                    column: Some(column.name.clone()),
                });
            }
        }
        Ok(())
    }

    fn quote<D: Dialect<Kind = K>>(
        &self,
        dialect: &D,
        name: &str,
        out: &mut String,
    ) -> Result<(), StoreError> {
        // No store has a name with a NUL in it, and a driver might end the statement there.
        if name.contains('\0') {
            return Err(StoreError::SchemaDrift {
                table: self.table.clone(),
                column: None,
            });
        }
        let quote = dialect.quote();
        out.push(quote);
        for (index, part) in name.split(quote).enumerate() {
            if index > 0 {
                out.extend([quote, quote]);
            }
            out.push_str(part);
        }
        out.push(quote);
        Ok(())
    }
}

impl<K: NativeKind> NativeColumn<K> {
    /// Whether values of this column can be read as the mapping says.
    fn reads_as(&self, column: &Column) -> bool {
        if column.many {
            // Lists are never compared, and each one is looked at when it is read.
            return true;
        }
        if self.many {
            return column.datatype.is_text();
        }
        K::reads_as(self.datatype, column.datatype)
    }
}

/// What a store says a column holds.
pub(crate) trait NativeKind {
    /// The kind of store.
    const STORE: SourceKind;

    /// Whether values of a column of one datatype, by the store's word, can be read as another.
    fn reads_as(native: Datatype, mapped: Datatype) -> bool {
        fits(Self::STORE, native, mapped)
    }
}

/// Whether periods of that length begin at a time of day, and not with a day.
pub(crate) fn is_within_a_day(granularity: Granularity) -> bool {
    matches!(granularity, Granularity::Minute | Granularity::Hour)
}

/// A comparison with a value, once the store's own reach is considered.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ComparisonSql {
    /// No value of the column satisfies it.
    Never,
    /// Every value of the column but NULL does.
    Always,
    /// Those do for which this holds.
    With {
        /// The column's side.
        left: Sql,
        /// How.
        comparison: Comparison,
        /// The value's side.
        right: Sql,
        /// Holds for every row that satisfies the comparison, and an index can answer it.
        hint: Option<Sql>,
    },
}

impl ComparisonSql {
    /// A plain comparison.
    pub(crate) fn with(left: Sql, comparison: Comparison, right: Sql) -> Self {
        Self::With {
            left,
            comparison,
            right,
            hint: None,
        }
    }
}

/// What one dialect writes.
///
/// `name` is always the column, quoted and qualified.
pub(crate) trait Dialect {
    /// What the store says a column holds.
    type Kind: NativeKind;

    /// The character around identifiers; doubled inside them.
    fn quote(&self) -> char;

    /// How bound values are written.
    fn placeholder(&self) -> Placeholder;

    /// Whether `(a, b) > (x, y)` begins in the middle of an index.
    fn has_row_values(&self) -> bool;

    /// Whether a statement must ask what type this column has. Where it need not, the store's own
    /// version of the schema was compared before, or the type is not one that is compared.
    fn needs_witness(&self, native: &NativeColumn<Self::Kind>) -> bool;

    /// A column as it is selected.
    fn select(&self, column: &Column, kind: &Self::Kind, name: Sql) -> Sql;

    /// A column as it is selected, where a text of more than [`MAX_WHOLE_BYTES`] is answered by its
    /// beginning: [`PREVIEW`], its number of characters, a colon and the first of them. A text that
    /// itself begins as such a one does comes after [`WHOLE`]. `None` where no text is that long.
    ///
    /// [`MAX_WHOLE_BYTES`]: wayleave_plan::value::MAX_WHOLE_BYTES
    fn preview(&self, column: &Column, kind: &Self::Kind, name: Sql) -> Option<Sql>;

    /// A column such that equal values, and only they, are equal, and `MIN` and `MAX` are right.
    fn key(&self, column: &Column, kind: &Self::Kind, name: Sql) -> Sql;

    /// A column such that the store sorts it right.
    fn sort(&self, column: &Column, kind: &Self::Kind, name: Sql) -> Sql {
        self.key(column, kind, name)
    }

    /// What else a column is sorted by, where the store takes different values for one when it
    /// sorts.
    fn then(&self, _column: &Column, _kind: &Self::Kind, _name: &Sql) -> Option<Sql> {
        None
    }

    /// The select-list form of a key that is grouped by or aggregated.
    fn select_key(&self, column: &Column, key: Sql) -> Sql;

    /// A grouped key as it is grouped by and sorted.
    fn grouped(&self, _column: &Column, key: Sql) -> Sql {
        key
    }

    /// A column compared with a value. A value of the column that is not of its datatype may
    /// satisfy it or not: see [`Dialect::well_formed`].
    fn compare(
        &self,
        column: &Column,
        kind: &Self::Kind,
        name: Sql,
        comparison: Comparison,
        value: &Value,
    ) -> ComparisonSql;

    /// A condition for values of a column that are of its datatype, NULL apart; `None` where the
    /// store keeps all others out, or where whatever satisfies the comparison is of it.
    fn well_formed(
        &self,
        column: &Column,
        kind: &Self::Kind,
        name: &Sql,
        comparison: Option<Comparison>,
    ) -> Option<Sql>;

    /// Whether rows that a malformed value leaves undecided are passed over, and do not fail the read.
    fn skips_undecided(&self) -> bool;

    /// A condition that holds where a flag is 0, and fails the statement where it is 1.
    fn fail_where(&self, flag: Sql) -> Sql;

    /// The column's side of a comparison, as it is written before `IN`.
    fn listed(&self, _column: &Column, left: Sql) -> Sql {
        left
    }

    /// A condition that holds wherever a column equals one of these values, and that an index
    /// answers, where the comparison itself hides it.
    fn list_hint(
        &self,
        _column: &Column,
        _kind: &Self::Kind,
        _name: &Sql,
        _values: &[Value],
    ) -> Option<Sql> {
        None
    }

    /// Whether a text column holds a text somewhere.
    fn contains(&self, column: &Column, kind: &Self::Kind, name: Sql, text: &str) -> Sql;

    /// Whether a column holds NULL.
    fn is_null(&self, _native: &NativeColumn<Self::Kind>, name: Sql) -> Sql {
        name.within("", " IS NULL")
    }

    /// One part of `ORDER BY`; NULLs come last in either direction.
    fn order(&self, key: Sql, descending: bool, nullable: bool) -> Sql;

    /// The beginning of the period that a time is in.
    fn period(
        &self,
        column: &Column,
        kind: &Self::Kind,
        name: Sql,
        granularity: Granularity,
        zone: &str,
    ) -> Sql;

    /// Whether [`Dialect::period`] fails for a value that is not of its datatype.
    fn checks_periods(&self) -> bool {
        false
    }

    /// A numeric column as it is added up.
    fn addend(&self, column: &Column, kind: &Self::Kind, name: Sql) -> Sql;

    /// The exact sum of addends, as it is selected.
    fn sum(&self, column: &Column, addend: Sql) -> Sql;

    /// The sum, as groups are sorted by it.
    fn sum_order(&self, column: &Column, addend: Sql) -> Sql;

    /// The mean, rounded as the answer is, as groups are sorted by it.
    fn mean_order(&self, column: &Column, addend: Sql) -> Sql;
}
