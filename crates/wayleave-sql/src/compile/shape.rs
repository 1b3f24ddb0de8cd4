//! A table as the store has it, and how it and its columns are named in statements.

use std::collections::BTreeMap;

use wayleave_model::drift::fits;
use wayleave_model::mapping::{Datatype, SourceKind};
use wayleave_plan::plan::Column;
use wayleave_store::StoreError;

use super::dialect::Dialect;
use super::sql::Sql;

/// The name every statement gives the table it reads, so that each column is written with it: a
/// qualified name is never anything but a column.
const ALIAS: &str = "t";

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
