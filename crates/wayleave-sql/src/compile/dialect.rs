//! The differences between the SQL of the stores.

use wayleave_model::mapping::Datatype;
use wayleave_plan::plan::{Column, Comparison, Granularity};
use wayleave_plan::value::Value;

use super::compute::Compute;
use super::shape::NativeColumn;
use super::sql::{Placeholder, Sql};

/// Prefix of a selected text that is only the beginning of a longer one.
pub(crate) const PREVIEW: &str = "\u{1}P";
/// Prefix of a selected text that is whole although it looks like a beginning.
pub(crate) const WHOLE: &str = "\u{1}T";

/// Whether periods of that length begin at a time of day instead of a day.
pub(crate) fn is_within_a_day(granularity: Granularity) -> bool {
    matches!(granularity, Granularity::Minute | Granularity::Hour)
}

/// A comparison with a value, adapted to the values that the store can represent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ComparisonSql {
    /// No value of the column satisfies it.
    Never,
    /// Every value of the column except NULL satisfies it.
    Always,
    /// The values for which this condition holds satisfy it.
    With {
        /// The column's side.
        left: Sql,
        /// The operator.
        comparison: Comparison,
        /// The value's side.
        right: Sql,
        /// A condition that an index can answer and that holds for every row that satisfies the
        /// comparison.
        hint: Option<Sql>,
    },
}

impl ComparisonSql {
    /// A comparison without a hint.
    pub(crate) fn with(left: Sql, comparison: Comparison, right: Sql) -> Self {
        Self::With {
            left,
            comparison,
            right,
            hint: None,
        }
    }
}

/// The SQL of one dialect. Its arithmetic is in [`Compute`].
///
/// `name` is always the column, quoted and qualified.
pub(crate) trait Dialect: Compute {
    /// The character around identifiers; doubled inside them.
    fn quote(&self) -> char;

    /// The placeholders of bound values.
    fn placeholder(&self) -> Placeholder;

    /// The clause that locks the selected rows until the transaction ends; empty if the store
    /// serializes transactions without one.
    fn row_lock(&self) -> &'static str {
        ""
    }

    /// Whether `(a, b) > (x, y)` begins in the middle of an index instead of scanning it.
    fn has_row_values(&self) -> bool;

    /// Whether a statement must select a witness of this column's type. It need not if the store's
    /// schema version was compared before, or if the type is not one that is compared.
    fn needs_witness(&self, native: &NativeColumn<Self::Kind>) -> bool;

    /// A column as it is selected.
    fn select(&self, column: &Column, kind: &Self::Kind, name: Sql) -> Sql;

    /// A column as it is selected, with a text of more than [`MAX_WHOLE_BYTES`] replaced by a
    /// preview: [`PREVIEW`], its number of characters, a colon and the first of them. A whole text
    /// that could pass for a preview comes after [`WHOLE`]. `None` if no text is that long.
    ///
    /// [`MAX_WHOLE_BYTES`]: wayleave_plan::value::MAX_WHOLE_BYTES
    fn preview(&self, column: &Column, kind: &Self::Kind, name: Sql) -> Option<Sql>;

    /// The key form of a column: keys are equal exactly if the values are, and `MIN` and `MAX` are
    /// right.
    fn key(&self, column: &Column, kind: &Self::Kind, name: Sql) -> Sql;

    /// A column in a form that the store sorts correctly.
    fn sort(&self, column: &Column, kind: &Self::Kind, name: Sql) -> Sql {
        self.key(column, kind, name)
    }

    /// A second sort key of a column, for a store that sorts different values as equal.
    fn then(&self, _column: &Column, _kind: &Self::Kind, _name: &Sql) -> Option<Sql> {
        None
    }

    /// The select-list form of a key that is grouped by or aggregated.
    fn select_key(&self, column: &Column, key: Sql) -> Sql;

    /// A key from the inner query, as the outer query groups and sorts by it.
    fn grouped(&self, _column: &Column, key: Sql) -> Sql {
        key
    }

    /// One part of `GROUP BY`.
    fn group_by(&self, _column: &Column, grouped: Sql) -> Sql {
        grouped
    }

    /// Compares a column with a value. Malformed values, which are not of the column's datatype,
    /// may satisfy it or not: see [`Dialect::well_formed`].
    fn compare(
        &self,
        column: &Column,
        kind: &Self::Kind,
        name: Sql,
        comparison: Comparison,
        value: &Value,
    ) -> ComparisonSql;

    /// A condition for the well-formed values of a column, apart from NULL; `None` if the store
    /// allows no others, or if only well-formed values satisfy the comparison.
    fn well_formed(
        &self,
        column: &Column,
        kind: &Self::Kind,
        name: &Sql,
        comparison: Option<Comparison>,
    ) -> Option<Sql>;

    /// Whether rows that a malformed value leaves undecided are skipped instead of failing the
    /// read.
    fn skips_undecided(&self) -> bool;

    /// Whether computing with a malformed value fails the statement.
    fn fails_to_compute(&self) -> bool {
        false
    }

    /// A condition that holds where a flag is 0, and fails the statement where it is 1.
    fn fail_where(&self, flag: Sql) -> Sql;

    /// The left side of a comparison, as it is written before `IN`.
    fn listed(&self, _column: &Column, left: Sql) -> Sql {
        left
    }

    /// A condition that an index can answer and that holds wherever a column equals one of these
    /// values, for comparisons that hide the column from the index.
    fn list_hint(
        &self,
        _column: &Column,
        _kind: &Self::Kind,
        _name: &Sql,
        _values: &[Value],
    ) -> Option<Sql> {
        None
    }

    /// Whether a text column contains a text.
    fn contains(&self, column: &Column, kind: &Self::Kind, name: Sql, text: &str) -> Sql;

    /// Whether a column holds NULL.
    fn is_null(&self, _native: &NativeColumn<Self::Kind>, name: Sql) -> Sql {
        name.within("", " IS NULL")
    }

    /// One part of `ORDER BY`; NULLs come last in either direction.
    fn order(&self, key: Sql, descending: bool, nullable: bool) -> Sql;

    /// The beginning of the period that contains a time.
    fn period(
        &self,
        column: &Column,
        kind: &Self::Kind,
        name: Sql,
        granularity: Granularity,
        zone: &str,
    ) -> Sql;

    /// Whether [`Dialect::period`] fails for a malformed value.
    fn checks_periods(&self) -> bool {
        false
    }

    /// A condition on the two columns of a join that an index can answer and that holds wherever
    /// they are equal, and whether it holds nowhere else. `None` if there is no such condition.
    fn join_hint(
        &self,
        ours: (&Column, &Self::Kind, &Sql),
        theirs: (&Column, &Self::Kind, &Sql),
    ) -> Option<(Sql, bool)>;

    /// Compares the beginning of a period with a date or datetime.
    fn compare_period(&self, period: Sql, comparison: Comparison, value: &Value) -> ComparisonSql {
        let datatype = match value {
            Value::Date(_) => Datatype::Date,
            _ => Datatype::Datetime,
        };
        let column = super::formula::of_datatype(datatype);
        self.compare(
            &column,
            &self.computed_kind(datatype),
            period,
            comparison,
            value,
        )
    }
}
