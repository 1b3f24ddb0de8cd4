//! What differs between the stores.

use wayleave_model::mapping::Datatype;
use wayleave_plan::plan::{Column, Comparison, Granularity};
use wayleave_plan::value::Value;

use super::compute::Compute;
use super::shape::NativeColumn;
use super::sql::{Placeholder, Sql};

/// What a selected text begins with that is the beginning of a longer one.
pub(crate) const PREVIEW: &str = "\u{1}P";
/// What a selected text begins with that is whole although it looks like such a one.
pub(crate) const WHOLE: &str = "\u{1}T";

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

/// What one dialect writes. What it computes is in [`Compute`].
///
/// `name` is always the column, quoted and qualified.
pub(crate) trait Dialect: Compute {
    /// The character around identifiers; doubled inside them.
    fn quote(&self) -> char;

    /// How bound values are written.
    fn placeholder(&self) -> Placeholder;

    /// What locks the selected rows until the transaction ends; empty where the store serializes
    /// transactions without it.
    fn row_lock(&self) -> &'static str {
        ""
    }

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

    /// One part of `GROUP BY`.
    fn group_by(&self, _column: &Column, grouped: Sql) -> Sql {
        grouped
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

    /// Whether computing with a malformed value fails the statement.
    fn fails_to_compute(&self) -> bool {
        false
    }

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

    /// A condition on the two columns of a join that an index answers and that holds wherever they
    /// are equal, and whether it holds nowhere else. `None` where there is none such.
    fn join_hint(
        &self,
        ours: (&Column, &Self::Kind, &Sql),
        theirs: (&Column, &Self::Kind, &Sql),
    ) -> Option<(Sql, bool)>;

    /// The beginning of a period compared with a date or datetime.
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
