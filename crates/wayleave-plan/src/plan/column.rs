//! Columns of rows and groups.

use std::sync::Arc;

use wayleave_model::expression::{Formula, Node};
use wayleave_model::mapping::Datatype;

use super::TARGET;

/// A column of rows or groups: a value's origin and type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Column {
    /// The origin of the values.
    pub origin: ColumnOrigin,
    /// The datatype of the values.
    pub datatype: Datatype,
    /// Whether a value is a list.
    pub many: bool,
}

/// The origin of a column's values.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ColumnOrigin {
    /// A column of a table.
    Stored {
        /// The number of the plan's table.
        table: u16,
        /// Its name, exactly as the store has it.
        name: String,
    },
    /// A formula over other columns.
    Computed {
        /// The name for messages.
        label: String,
        /// The formula.
        formula: Arc<Formula<Column>>,
    },
    /// A value of a group: the key with this index, or, after the keys, an aggregate.
    Group {
        /// The index.
        index: usize,
        /// The name for messages.
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

    /// A value of a group: the key with this index, or, after the keys, an aggregate.
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

    /// The same column for a group without keys, given the number of keys here.
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

    /// Converts to another datatype: integers to decimals, and both to numbers.
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

    /// The name for messages. For a stored column, the name exactly as the store has it.
    pub fn label(&self) -> &str {
        match &self.origin {
            ColumnOrigin::Stored { name, .. } => name,
            ColumnOrigin::Computed { label, .. } | ColumnOrigin::Group { label, .. } => label,
        }
    }

    /// The name of a column stored in the target's own table; `None` for any other column.
    pub fn own_name(&self) -> Option<&str> {
        match &self.origin {
            ColumnOrigin::Stored {
                table: TARGET,
                name,
            } => Some(name),
            _ => None,
        }
    }

    /// The numbers of the tables it is read from.
    pub fn tables(&self) -> Vec<u16> {
        let mut tables = Vec::new();
        self.for_each_stored(&mut |column| {
            if let ColumnOrigin::Stored { table, .. } = &column.origin {
                tables.push(*table);
            }
        });
        tables
    }

    /// Calls `visit` for this column if it is stored, else for the stored columns it is computed
    /// from.
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
