//! Merges the answers of a few set-based statements into one catalogue.
//!
//! Knows no dialect. References to objects that the role cannot see are dropped here, and only
//! here.

use std::collections::HashMap;

use wayleave_model::catalogue::{Catalogue, Column, ForeignKey, Table, TableKind};
use wayleave_model::mapping::{Datatype, SourceKind};

use crate::check_constraints::ClosedList;

/// The tables added so far.
#[derive(Default)]
pub(crate) struct TableAssembler {
    tables: Vec<Table>,
    places: HashMap<String, usize>,
}

impl TableAssembler {
    /// Adds a table without columns.
    pub(crate) fn table(
        &mut self,
        name: String,
        kind: TableKind,
        row_estimate: Option<u64>,
        comment: Option<String>,
    ) {
        self.places.insert(name.clone(), self.tables.len());
        self.tables.push(Table {
            name,
            kind,
            columns: Vec::new(),
            primary_key: Vec::new(),
            unique: Vec::new(),
            foreign_keys: Vec::new(),
            row_estimate,
            comment: comment.filter(|it| !it.trim().is_empty()),
        });
    }

    /// The tables added so far, in no particular order.
    pub(crate) fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// The table of that name, if it was added.
    pub(crate) fn get_mut(&mut self, name: &str) -> Option<&mut Table> {
        self.places
            .get(name)
            .and_then(|&place| self.tables.get_mut(place))
    }

    /// Adds a column to its table; drops it if the table was not added.
    pub(crate) fn column(&mut self, table: &str, column: Column) {
        if let Some(table) = self.get_mut(table) {
            table.columns.push(column);
        }
    }

    /// Adds a unique key, or sets the primary one.
    pub(crate) fn key(&mut self, table: &str, primary: bool, columns: Vec<String>) {
        match self.get_mut(table) {
            Some(table) if primary => table.primary_key = columns,
            Some(table) => table.unique.push(columns),
            None => {}
        }
    }

    /// Adds a foreign key.
    pub(crate) fn foreign_key(&mut self, table: &str, key: ForeignKey) {
        if let Some(table) = self.get_mut(table) {
            table.foreign_keys.push(key);
        }
    }

    /// Sets the list of a CHECK as the allowed values of its column, which `same` finds. Only text
    /// columns take one.
    pub(crate) fn closed_list(
        &mut self,
        table: &str,
        list: ClosedList,
        same: fn(&str, &str) -> bool,
    ) {
        let column = self.get_mut(table).and_then(|table| {
            table
                .columns
                .iter_mut()
                .find(|it| same(&it.name, &list.column))
        });
        if let Some(column) = column
            && column.datatype == Datatype::String
            && column.one_of.is_empty()
        {
            column.one_of = list.values;
        }
    }

    /// The sorted catalogue, without references to tables or columns that are not in it.
    pub(crate) fn finish(mut self, kind: SourceKind, schema: Option<String>) -> Catalogue {
        self.tables.retain(|table| !table.columns.is_empty());
        self.tables.sort_by(|a, b| a.name.cmp(&b.name));
        let known: HashMap<String, Vec<String>> = self
            .tables
            .iter()
            .map(|table| {
                (
                    table.name.clone(),
                    table.columns.iter().map(|it| it.name.clone()).collect(),
                )
            })
            .collect();
        let holds = |table: &str, columns: &[String]| {
            known
                .get(table)
                .is_some_and(|all| columns.iter().all(|it| all.contains(it)))
        };
        for table in &mut self.tables {
            let name = table.name.as_str();
            if !holds(name, &table.primary_key) {
                table.primary_key.clear();
            }
            let primary = &table.primary_key;
            table
                .unique
                .retain(|it| !it.is_empty() && it != primary && holds(name, it));
            table.unique.sort();
            table.unique.dedup();
            table.foreign_keys.retain(|key| {
                key.columns.len() == key.to_columns.len()
                    && holds(name, &key.columns)
                    && holds(&key.to_table, &key.to_columns)
            });
            table.foreign_keys.sort();
            table.foreign_keys.dedup();
        }
        Catalogue {
            kind,
            schema,
            tables: self.tables,
        }
    }
}
