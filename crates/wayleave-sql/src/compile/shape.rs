//! The definitions of tables and columns in a store.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use wayleave_model::drift::fits;
use wayleave_model::mapping::{Datatype, SourceKind};
use wayleave_plan::plan::{Column, JoinedTable};
use wayleave_store::StoreError;

use super::common_datatype;
use super::dialect::Dialect;
use super::sql::{Sql, push_quoted};

/// A table in the store.
#[derive(Debug, Clone)]
pub(crate) struct Shape<K> {
    /// Its schema, if the store has schemas.
    pub(crate) schema: Option<String>,
    /// Its name.
    pub(crate) table: String,
    /// The schema version it was read at, if the store counts them.
    pub(crate) version: Option<i64>,
    /// Its columns by name. They are few, so finding one is quicker than hashing its name.
    pub(crate) columns: BTreeMap<String, NativeColumn<K>>,
    /// The sets of columns that the store keeps unique. Only joins need them, so the first join
    /// reads them.
    pub(crate) unique: OnceLock<Vec<Vec<String>>>,
}

/// A column in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NativeColumn<K> {
    /// Its native kind.
    pub(crate) kind: K,
    /// The datatype of that kind, by the same rules as introspection's.
    pub(crate) datatype: Datatype,
    /// Whether it holds a list of values.
    pub(crate) many: bool,
    /// Whether the store forbids NULL in it.
    pub(crate) not_null: bool,
    /// The number of its declared type in answers; `None` if answers do not number types.
    pub(crate) type_id: Option<u32>,
}

impl<K: NativeKind> Shape<K> {
    /// The stored column of that name. A column whose type no longer fits the mapped datatype has
    /// drifted, like a missing one: the store would compare it by conversion rules of its own.
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

    /// Whether a unique key keeps more than one row from matching a join.
    pub(super) fn is_single(&self, join: &JoinedTable) -> bool {
        let is_compared = |column: &String| {
            join.on.iter().any(|(ours, theirs)| {
                let native = self.columns.get(column);
                theirs.label() == column
                    && native.is_some_and(|it| it.keeps_apart(theirs.datatype))
                    && (theirs.datatype == Datatype::Number
                        || common_datatype(ours, theirs).is_ok_and(|it| it != Datatype::Number))
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

    /// The table, quoted, qualified and with its alias.
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
        push_quoted(out, dialect.quote(), name).ok_or_else(|| self.drift(None))
    }
}

impl<K: NativeKind> NativeColumn<K> {
    /// Whether values of this column can be read as the mapped datatype.
    fn reads_as(&self, column: &Column) -> bool {
        if column.many {
            // Lists are never compared, and each is checked when it is decoded.
            return true;
        }
        if self.many {
            return column.datatype.is_text();
        }
        K::reads_as(self.datatype, column.datatype)
    }

    /// Whether values that differ in the store also differ when read as the datatype.
    fn keeps_apart(&self, datatype: Datatype) -> bool {
        let is_exact = match datatype {
            Datatype::Boolean => self.datatype == Datatype::Boolean,
            Datatype::Number => self.datatype == Datatype::Number,
            _ => true,
        };
        is_exact && self.kind.keeps_apart(datatype)
    }
}

/// The native kind of a column: its type, as far as it matters to a statement.
pub(crate) trait NativeKind: Clone {
    /// The kind of store.
    const STORE: SourceKind;

    /// Whether values of a column of one native datatype can be read as another.
    fn reads_as(native: Datatype, mapped: Datatype) -> bool {
        fits(Self::STORE, native, mapped)
    }

    /// Whether values of this kind that differ in the store also differ when read as the datatype.
    fn keeps_apart(&self, _datatype: Datatype) -> bool {
        true
    }
}
