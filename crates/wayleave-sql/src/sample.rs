//! The statements that read the distinct values of one column, for a proposal that lists them.
//!
//! Names come from the catalogue and are quoted; nothing else is variable. The first statement
//! reads a bounded number of rows, so that a column of many values is recognized without reading
//! its table.

use std::time::{Duration, Instant};

use wayleave_model::propose::{ColumnSample, MAX_SAMPLED_VALUES, MIN_SAMPLED_ROWS, SampledColumn};
use wayleave_store::{Limits, SampleError, StoreError};

use crate::compile::sql::quoted;

/// Number of rows that the first statement reads.
const FIRST_ROWS: u64 = 1_000;
/// Maximum number of characters read of a value. Longer values are not listed.
const MAX_CHARS: usize = 65;
/// Time limit of all columns together, in statement timeouts.
const TOTAL_STATEMENTS: u32 = 4;

/// The parts of the statements that differ between stores.
pub(crate) struct SampleDialect {
    /// The quote around a name; doubled inside it.
    pub(crate) quote: char,
    /// The first characters of a column, comparable byte for byte.
    pub(crate) text: fn(column: &str, chars: usize) -> String,
}

/// The statements that sample one column.
pub(crate) struct SampleStatements {
    /// Distinct values of the first rows that have one, each with its number of rows.
    pub(crate) first: String,
    /// Distinct values of all rows.
    pub(crate) all: String,
}

impl SampleStatements {
    /// Builds the statements; `None` for a name that no store can have.
    pub(crate) fn new(
        dialect: &SampleDialect,
        schema: Option<&str>,
        column: &SampledColumn,
    ) -> Option<Self> {
        let quote = |name: &str| quoted(dialect.quote, name);
        let table = match schema {
            Some(schema) => format!("{}.{}", quote(schema)?, quote(&column.table)?),
            None => quote(&column.table)?,
        };
        // Qualified: SQLite takes a quoted name that is no column for a text.
        let name = format!("t.{}", quote(&column.column)?);
        let text = (dialect.text)(&name, MAX_CHARS);
        let limit = MAX_SAMPLED_VALUES + 1;
        let from = format!("FROM {table} AS t WHERE {name} IS NOT NULL");
        Some(Self {
            first: format!(
                "SELECT v, count(*) FROM (SELECT {text} AS v {from} LIMIT {FIRST_ROWS}) AS s \
                 GROUP BY v LIMIT {limit}"
            ),
            all: format!("SELECT DISTINCT {text} AS v {from} LIMIT {limit}"),
        })
    }
}

/// The sample of the first rows, and whether all rows must be read to complete it.
pub(crate) fn first_rows(counted: Vec<(String, u64)>) -> (ColumnSample, bool) {
    let rows = counted.iter().map(|(_, rows)| rows).sum();
    let values: Vec<String> = counted.into_iter().map(|(value, _)| value).collect();
    let is_partial = values.len() <= MAX_SAMPLED_VALUES && rows >= FIRST_ROWS;
    (ColumnSample { values, rows }, is_partial)
}

// Fewer rows would not show whether the values are believable.
const _: () = assert!(FIRST_ROWS >= MIN_SAMPLED_ROWS);

/// The time budget of sampling a source.
pub(crate) struct SampleClock {
    deadline: Option<Instant>,
}

impl SampleClock {
    pub(crate) fn start(limits: Limits) -> Self {
        let total: Duration = limits.statement.saturating_mul(TOTAL_STATEMENTS);
        Self {
            deadline: Instant::now().checked_add(total),
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.deadline.is_some_and(|it| Instant::now() >= it)
    }
}

/// The reason why a column was not sampled. Drops the store's message, which may quote values.
pub(crate) fn unsampled(error: &StoreError) -> SampleError {
    match error {
        StoreError::Timeout { .. } => SampleError::Timeout,
        _ => SampleError::Unreadable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(table: &str, column: &str) -> SampledColumn {
        SampledColumn {
            table: table.to_owned(),
            column: column.to_owned(),
        }
    }

    #[test]
    fn names_are_quoted_and_a_name_with_nul_is_refused() {
        let dialect = SampleDialect {
            quote: '"',
            text: |name, chars| format!("substr({name}, 1, {chars})"),
        };
        let statements =
            SampleStatements::new(&dialect, Some("a\"b"), &column("t; --", "c\"\"d")).unwrap();
        assert_eq!(
            statements.all,
            "SELECT DISTINCT substr(t.\"c\"\"\"\"d\", 1, 65) AS v FROM \"a\"\"b\".\"t; --\" AS t \
             WHERE t.\"c\"\"\"\"d\" IS NOT NULL LIMIT 13"
        );
        assert!(SampleStatements::new(&dialect, None, &column("t", "a\0b")).is_none());
    }

    #[test]
    fn all_rows_are_read_only_where_the_first_leave_a_doubt() {
        let counted = |values: u64, each: u64| {
            let values = (0..values).map(|it| (it.to_string(), each));
            first_rows(values.collect()).1
        };
        assert!(!counted(3, 10));
        assert!(!counted(13, 100));
        assert!(counted(4, 250));
    }
}
