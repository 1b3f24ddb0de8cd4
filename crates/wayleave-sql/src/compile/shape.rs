//! A table as the store has it.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use wayleave_model::drift::fits;
use wayleave_model::mapping::{Datatype, SourceKind};
use wayleave_plan::plan::{Column, JoinedTable};
use wayleave_store::StoreError;

use super::common_datatype;
use super::dialect::Dialect;
use super::sql::Sql;

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
    /// The sets of columns that the store keeps unique. Only joins need them, so they are read with the
    /// first one.
    pub(crate) unique: OnceLock<Vec<Vec<String>>>,
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
    /// What the store says of the column of that name. One whose type no longer fits the mapped
    /// datatype has drifted as much as one that is gone: the store would compare it by guesses of its
    /// own.
    pub(crate) fn stored(
        &self,
        name: &str,
        column: &Column,
    ) -> Result<&NativeColumn<K>, StoreError> {
        self.columns
            .get(name)
            .filter(|native| native.reads_as(column))
            .ok_or_else(|| self.drift(Some(name)))
    }

    /// Whether the store keeps more than one row from meeting a join.
    pub(super) fn is_single(&self, join: &JoinedTable) -> bool {
        let is_compared = |column: &String| {
            join.on.iter().any(|(ours, theirs)| {
                let native = self.columns.get(column);
                theirs.label() == column
                    && native.is_some_and(|it| it.keeps_apart(theirs.datatype))
                    && (theirs.datatype == Datatype::Number
                        || common_datatype(ours.datatype, theirs.datatype) != Datatype::Number)
            })
        };
        let mut sets = self.unique.get().into_iter().flatten();
        sets.any(|set| !set.is_empty() && set.iter().all(is_compared))
    }

    pub(super) fn drift(&self, column: Option<&str>) -> StoreError {
        StoreError::SchemaDrift {
            table: self.table.clone(),
            column: column.map(str::to_owned),
        }
    }

    /// The table, quoted, qualified and named.
    pub(super) fn from<D: Dialect<Kind = K>>(
        &self,
        dialect: &D,
        alias: &str,
    ) -> Result<Sql, StoreError> {
        let mut from = String::new();
        if let Some(schema) = &self.schema {
            self.quote(dialect, schema, &mut from)?;
            from.push('.');
        }
        self.quote(dialect, &self.table, &mut from)?;
        from.push_str(" AS ");
        from.push_str(alias);
        Ok(Sql::text(from))
    }

    pub(super) fn quote<D: Dialect<Kind = K>>(
        &self,
        dialect: &D,
        name: &str,
        out: &mut String,
    ) -> Result<(), StoreError> {
        // No store has a name with a NUL in it, and a driver might end the statement there.
        if name.contains('\0') {
            return Err(self.drift(None));
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

    /// Whether values that the store takes for different are different when they are read as the
    /// datatype.
    fn keeps_apart(&self, datatype: Datatype) -> bool {
        let is_exact = match datatype {
            Datatype::Boolean => self.datatype == Datatype::Boolean,
            Datatype::Number => self.datatype == Datatype::Number,
            _ => true,
        };
        is_exact && self.kind.keeps_apart(datatype)
    }
}

/// What a store says a column holds.
pub(crate) trait NativeKind: Clone {
    /// The kind of store.
    const STORE: SourceKind;

    /// Whether values of a column of one datatype, by the store's word, can be read as another.
    fn reads_as(native: Datatype, mapped: Datatype) -> bool {
        fits(Self::STORE, native, mapped)
    }

    /// Whether values of this kind that the store takes for different are different when they are read
    /// as the datatype.
    fn keeps_apart(&self, _datatype: Datatype) -> bool {
        true
    }
}
