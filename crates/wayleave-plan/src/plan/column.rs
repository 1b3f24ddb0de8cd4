//! Values of rows and groups.

use std::sync::Arc;

use wayleave_model::expression::{Formula, Node};
use wayleave_model::mapping::Datatype;

use super::TARGET;

/// A value of each row or group, and what it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Column {
    /// Where it comes from.
    pub origin: ColumnOrigin,
    /// What it holds.
    pub datatype: Datatype,
    /// Whether it holds many values.
    pub many: bool,
}

/// Where the values of a column come from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ColumnOrigin {
    /// A column of a table.
    Stored {
        /// Which of the plan's tables.
        table: u16,
        /// Its name, exactly as the store has it.
        name: String,
    },
    /// Other columns.
    Computed {
        /// What it is called in messages.
        label: String,
        /// How it is computed.
        formula: Arc<Formula<Column>>,
    },
    /// A value of a group: the key of this index, or, after the keys, the aggregate.
    Group {
        /// Which.
        index: usize,
        /// What it is called in messages.
        label: String,
    },
}

impl Column {
    /// A column of a table.
    pub(crate) fn stored(table: u16, name: impl Into<String>, datatype: Datatype) -> Self {
        Self {
            origin: ColumnOrigin::Stored {
                table,
                name: name.into(),
            },
            datatype,
            many: false,
        }
    }

    /// A value of a group: its key of this index, or, after the keys, its aggregate.
    pub(crate) fn of_group(index: usize, label: impl Into<String>, datatype: Datatype) -> Self {
        Self {
            origin: ColumnOrigin::Group {
                index,
                label: label.into(),
            },
            datatype,
            many: false,
        }
    }

    /// The same value of a group that has no keys, where this one has so many.
    pub(crate) fn without_keys(&self, keys: usize) -> Self {
        let origin = match &self.origin {
            ColumnOrigin::Group { index, label } => ColumnOrigin::Group {
                index: index.saturating_sub(keys),
                label: label.clone(),
            },
            ColumnOrigin::Computed { label, formula } => {
                let moved = formula.map(&mut |leaf: &Self| leaf.without_keys(keys));
                ColumnOrigin::Computed {
                    label: label.clone(),
                    formula: Arc::new(moved),
                }
            }
            ColumnOrigin::Stored { .. } => self.origin.clone(),
        };
        Self {
            origin,
            datatype: self.datatype,
            many: self.many,
        }
    }

    /// The same values as another datatype: integers as decimals, both as numbers.
    pub(crate) fn converted(self, datatype: Datatype) -> Self {
        if self.datatype == datatype || (self.datatype.is_text() && datatype.is_text()) {
            return self;
        }
        let label = self.label().to_owned();
        let leaf = Formula::leaf(self.datatype, self);
        Self {
            origin: ColumnOrigin::Computed {
                label,
                formula: Arc::new(Formula {
                    datatype,
                    node: Node::Convert(Box::new(leaf)),
                }),
            },
            datatype,
            many: false,
        }
    }

    /// What it is called in messages: the name of a stored one, exactly as the store has it.
    pub fn label(&self) -> &str {
        match &self.origin {
            ColumnOrigin::Stored { name, .. } => name,
            ColumnOrigin::Computed { label, .. } | ColumnOrigin::Group { label, .. } => label,
        }
    }

    /// Its name in the target's own table, where it is stored there.
    pub fn own_name(&self) -> Option<&str> {
        match &self.origin {
            ColumnOrigin::Stored {
                table: TARGET,
                name,
            } => Some(name),
            _ => None,
        }
    }

    /// The tables it is read from.
    pub fn tables(&self) -> Vec<u16> {
        let mut tables = Vec::new();
        self.for_each_stored(&mut |column| {
            if let ColumnOrigin::Stored { table, .. } = &column.origin {
                tables.push(*table);
            }
        });
        tables
    }

    /// Calls `visit` for this column, if it is stored, or for the stored ones it is computed from.
    pub fn for_each_stored<'c>(&'c self, visit: &mut dyn FnMut(&'c Self)) {
        match &self.origin {
            ColumnOrigin::Stored { .. } => visit(self),
            ColumnOrigin::Computed { formula, .. } => {
                formula.for_each_leaf(&mut |leaf| leaf.for_each_stored(visit));
            }
            ColumnOrigin::Group { .. } => {}
        }
    }
}
