//! The SQLite dialect.
//!
//! A column may hold any value whatever its declared type, and there are no dates, decimals or
//! booleans. Functions of ours, registered on every session, convert stored values to the mapped
//! datatype; where the raw column compares correctly, as [`raw_domain`] decides, it is used
//! instead, so that an index can serve.

pub(crate) mod bytes;
mod compute;
mod expression;
pub(crate) mod form;
pub(crate) mod functions;
pub(crate) mod probe;
pub(crate) mod program;
pub(crate) mod raw_domain;

use std::collections::HashMap;

use wayleave_model::mapping::Datatype;
use wayleave_plan::plan::{Column, Comparison, Granularity};
use wayleave_plan::value::{MAX_WHOLE_BYTES, Value};

use self::bytes::{NonTextValue, spelled};
use self::expression::{
    as_real, binary, call, call_or, compare_decimal, compare_text, differing, satisfying,
};
use self::form::Form;
use self::raw_domain::{RawDomain, looks_numeric, near};
use super::types::Affinity;
use crate::compile::dialect::{ComparisonSql, Dialect};
use crate::compile::numbers::{beyond_all, compare_nearest};
use crate::compile::shape::NativeColumn;
use crate::compile::sql::{Bind, Placeholder, Sql};
use crate::values::MIN_INEXACT_INTEGER;

/// The collation by code point, which every session has, for files whose texts are UTF-16: SQLite's
/// own collations compare encoded bytes.
pub(crate) const BY_CODE_POINT: &str = "wayleave_code_point";

/// The dialect, with what is known of the columns.
#[derive(Debug, Default)]
pub(crate) struct SqliteDialect {
    /// Whether the file's texts are UTF-16.
    wide: bool,
    skips_undecided: bool,
    domains: HashMap<String, RawDomain>,
    /// By column, a text of the cursor and the stored value that it stands for.
    cursor_values: HashMap<String, (String, NonTextValue)>,
}

impl SqliteDialect {
    /// With the raw domains of columns, by name, in the snapshot of the read.
    pub(crate) fn with_domains(domains: HashMap<String, RawDomain>) -> Self {
        Self {
            domains,
            ..Self::default()
        }
    }

    /// For a file whose texts are UTF-16, or are not.
    pub(crate) fn wide(self, wide: bool) -> Self {
        Self { wide, ..self }
    }

    /// For a read that marks malformed values, or for one that fails at them.
    pub(crate) fn marking(self, marks: bool) -> Self {
        Self {
            skips_undecided: marks,
            ..self
        }
    }

    /// The collation that texts are sorted with.
    fn by_code_point(&self) -> String {
        let collation = if self.wide { BY_CODE_POINT } else { "BINARY" };
        format!(" COLLATE {collation}")
    }

    /// Records that the cursor's row holds a value that is only shown as this text.
    pub(crate) fn set_cursor_value(&mut self, column: &Column, text: &str, stored: NonTextValue) {
        if let Some(name) = column.own_name() {
            let value = (text.to_owned(), stored);
            self.cursor_values.insert(name.to_owned(), value);
        }
    }

    /// The raw domain of a column.
    pub(crate) fn raw_domain(&self, column: &Column) -> RawDomain {
        let domain = column.own_name().and_then(|name| self.domains.get(name));
        domain.copied().unwrap_or_default()
    }

    /// Whether a column is compared and sorted as it is stored, so that an index can serve.
    pub(crate) fn is_raw(&self, column: &Column, affinity: Affinity) -> bool {
        if affinity == Affinity::Computed {
            return !matches!(column.datatype, Datatype::Integer | Datatype::Decimal);
        }
        match column.datatype {
            Datatype::String | Datatype::Iri => {
                affinity.is_text() || self.raw_domain(column) == RawDomain::Texts
            }
            Datatype::Integer | Datatype::Decimal => affinity.holds_numbers(),
            Datatype::Datetime => matches!(self.raw_domain(column), RawDomain::Written(_)),
            Datatype::Number => {
                affinity == Affinity::Real || self.raw_domain(column) == RawDomain::Numbers
            }
            Datatype::Date => true,
            Datatype::Boolean | Datatype::Json => false,
        }
    }

    /// Compares a time by our function, within a range of raw values if all are of one kind.
    fn compare_time(
        &self,
        column: &Column,
        name: Sql,
        comparison: Comparison,
        micros: i64,
    ) -> ComparisonSql {
        let domain = self.raw_domain(column);
        if let RawDomain::Written(form) = domain {
            return Self::compare_written(form, name, comparison, micros);
        }
        let right = Sql::bind(Bind::Integer(micros));
        let (least, greatest) = ("-9223372036854775808", "9223372036854775807");
        let instead = satisfying(comparison, &right, least, greatest);
        ComparisonSql::With {
            hint: near(domain, &name, comparison, micros),
            left: call_or(functions::DATETIME, name, instead),
            comparison,
            right,
        }
    }

    /// Compares a time as text, in a column whose texts have one form.
    fn compare_written(
        form: Form,
        name: Sql,
        comparison: Comparison,
        micros: i64,
    ) -> ComparisonSql {
        match form.write(micros) {
            Some((text, side)) => compare_nearest(name, comparison, binary(text), side),
            None => beyond_all(comparison, micros > 0),
        }
    }
}

impl Dialect for SqliteDialect {
    fn quote(&self) -> char {
        '"'
    }

    fn placeholder(&self) -> Placeholder {
        Placeholder::NumberedQuestion
    }

    fn has_row_values(&self) -> bool {
        true
    }

    fn skips_undecided(&self) -> bool {
        self.skips_undecided
    }

    fn needs_witness(&self, _: &NativeColumn<Affinity>) -> bool {
        false
    }

    fn select(&self, _column: &Column, _kind: &Affinity, name: Sql) -> Sql {
        name
    }

    fn preview(&self, column: &Column, kind: &Affinity, name: Sql) -> Option<Sql> {
        // The expression would be computed once for each time it is mentioned.
        if *kind == Affinity::Computed {
            return None;
        }
        let may_be_long = matches!(
            column.datatype,
            Datatype::String | Datatype::Iri | Datatype::Json
        );
        if !may_be_long {
            return None;
        }
        let mut sql = Sql::text("CASE WHEN octet_length(");
        let mut then = |text: &str| {
            sql.add(name.clone());
            sql.push(text);
        };
        then(&format!(
            ") > {MAX_WHOLE_BYTES} THEN {}(",
            functions::PREVIEW
        ));
        then(") WHEN ");
        then(" >= char(1) COLLATE BINARY AND ");
        then(" < char(2) COLLATE BINARY THEN char(1) || 'T' || ");
        then(" ELSE ");
        then(" END");
        Some(sql)
    }

    fn key(&self, column: &Column, kind: &Affinity, name: Sql) -> Sql {
        match (column.datatype, kind) {
            (Datatype::String | Datatype::Iri, Affinity::Computed) => {
                name.within("", &self.by_code_point())
            }
            (Datatype::Date, Affinity::Computed) => name.within("", " COLLATE BINARY"),
            (Datatype::Integer | Datatype::Decimal, Affinity::Computed) => {
                call(functions::DECIMAL, name)
            }
            (_, Affinity::Computed) => name,
            (Datatype::Date | Datatype::Datetime, _) if self.is_raw(column, *kind) => {
                name.within("", " COLLATE BINARY")
            }
            (Datatype::String | Datatype::Iri, _) if self.is_raw(column, *kind) => {
                name.within("", &self.by_code_point())
            }
            (Datatype::String | Datatype::Iri, _) if self.wide => {
                call(functions::TEXT, name).within("", &self.by_code_point())
            }
            (Datatype::String | Datatype::Iri, _) => call(functions::TEXT, name),
            (Datatype::Integer | Datatype::Decimal, affinity) if !affinity.holds_numbers() => {
                call(functions::DECIMAL, name)
            }
            (Datatype::Boolean, _) => call(functions::BOOLEAN, name),
            (Datatype::Datetime, _) => call(functions::DATETIME, name),
            // Several large integers are the same float.
            (Datatype::Number, affinity) if !self.is_raw(column, *kind) => {
                if affinity.holds_numbers() {
                    as_real(name)
                } else {
                    call(functions::NUMBER, name)
                }
            }
            _ => name,
        }
    }

    fn select_key(&self, _column: &Column, key: Sql) -> Sql {
        key
    }

    /// A column's collation does not carry over from an inner query.
    fn grouped(&self, column: &Column, key: Sql) -> Sql {
        match column.datatype {
            Datatype::String | Datatype::Iri => key.within("", &self.by_code_point()),
            Datatype::Date => key.within("", " COLLATE BINARY"),
            _ => key,
        }
    }

    fn compare(
        &self,
        column: &Column,
        kind: &Affinity,
        name: Sql,
        comparison: Comparison,
        value: &Value,
    ) -> ComparisonSql {
        if *kind == Affinity::Computed {
            return self.compare_computed(column, name, comparison, value);
        }
        // A collation on the value's side takes effect too, and leaves the column to its index.
        let left = match (column.datatype, kind) {
            (Datatype::Date, _) => name.clone(),
            (Datatype::String | Datatype::Iri, affinity) => match value {
                // Otherwise it would be compared as the number it looks like.
                Value::Text(text) if affinity.holds_numbers() && looks_numeric(text) => {
                    call(functions::TEXT, name.clone())
                }
                _ if self.is_raw(column, *affinity) => name.clone(),
                _ => call(functions::TEXT, name.clone()),
            },
            _ => self.key(column, kind, name.clone()),
        };
        let right = match value {
            Value::Text(text) => {
                let raw = self.is_raw(column, *kind);
                let equality = matches!(comparison, Comparison::Eq | Comparison::Ne);
                if let Some(bytes) = spelled(text).filter(|_| equality) {
                    return bytes::compare(&name, comparison, text, bytes);
                }
                let cursor_value = column.own_name();
                let cursor_value = cursor_value.and_then(|it| self.cursor_values.get(it));
                if let Some((shown, stored)) = cursor_value
                    && raw
                    && shown == text
                {
                    let right = stored.bound().within("", &self.by_code_point());
                    return ComparisonSql::with(name, comparison, right);
                }
                if self.wide && !equality {
                    let right = Sql::bind(Bind::Text(text.to_string()));
                    let right = right.within("", &self.by_code_point());
                    return ComparisonSql::with(left, comparison, right);
                }
                return compare_text(*kind, raw, &name, left, comparison, text);
            }
            Value::Integer(integer) if !kind.holds_numbers() => {
                return compare_decimal(*kind, name, comparison, &integer.to_string());
            }
            Value::Integer(integer) => match i64::try_from(*integer) {
                Ok(integer) => Bind::Integer(integer),
                Err(_) => return beyond_all(comparison, *integer > 0),
            },
            Value::Decimal(text) => return compare_decimal(*kind, name, comparison, text),
            Value::Number(number) if !kind.holds_numbers() => {
                let right = Sql::bind(Bind::Real(*number));
                let instead = differing(comparison, &right, "-9e999", "9e999");
                let left = call_or(functions::NUMBER, name, instead);
                return ComparisonSql::with(left, comparison, right);
            }
            Value::Number(number) if number.abs() < MIN_INEXACT_INTEGER => {
                return ComparisonSql::with(name, comparison, Sql::bind(Bind::Real(*number)));
            }
            Value::Number(number) => Bind::Real(*number),
            Value::Boolean(boolean) => {
                let right = Sql::bind(Bind::Integer(i64::from(*boolean)));
                let instead = satisfying(comparison, &right, "-1", "2");
                let left = call_or(functions::BOOLEAN, name, instead);
                return ComparisonSql::with(left, comparison, right);
            }
            Value::Date(_) => {
                #[expect(clippy::expect_used, reason = "a default would match other rows")]
                let text = value.to_text().expect("a date has a text");
                return ComparisonSql::with(left, comparison, binary(text));
            }
            Value::Datetime(micros) => return self.compare_time(column, name, comparison, *micros),
            // No plan compares with these.
            Value::Null
            | Value::Json(_)
            | Value::List(_)
            | Value::Preview(_)
            | Value::Malformed => {
                return ComparisonSql::Never;
            }
        };
        ComparisonSql::with(left, comparison, Sql::bind(right))
    }

    /// A value that equals a number or a date is well-formed.
    fn well_formed(
        &self,
        column: &Column,
        kind: &Affinity,
        name: &Sql,
        comparison: Option<Comparison>,
    ) -> Option<Sql> {
        if *kind == Affinity::Computed {
            return None;
        }
        let needs_no_check = match column.datatype {
            Datatype::String | Datatype::Iri => true,
            _ if column.many || *kind == Affinity::RowNumber => true,
            Datatype::Integer | Datatype::Decimal | Datatype::Number | Datatype::Date => {
                comparison == Some(Comparison::Eq)
            }
            Datatype::Boolean | Datatype::Datetime | Datatype::Json => false,
        };
        if needs_no_check {
            return None;
        }
        let word = Sql::text(format!("'{}'", column.datatype));
        let fits = call_or(functions::FITS, name.clone(), word);
        Some(match column.datatype {
            // Most values are integers, and this test takes no call.
            Datatype::Integer | Datatype::Decimal | Datatype::Number => {
                let integer = name.clone().within("typeof(", ") = 'integer'");
                Sql::joined([integer, fits], " OR ").within("(", ")")
            }
            _ => fits,
        })
    }

    fn fails_to_compute(&self) -> bool {
        true
    }

    fn fail_where(&self, flag: Sql) -> Sql {
        call(functions::DECIDED, flag)
    }

    /// Before `IN`, only the column's own collation counts.
    fn listed(&self, column: &Column, left: Sql) -> Sql {
        match column.datatype {
            Datatype::String | Datatype::Iri | Datatype::Date => left.within("", " COLLATE BINARY"),
            _ => left,
        }
    }

    fn list_hint(
        &self,
        _column: &Column,
        kind: &Affinity,
        name: &Sql,
        values: &[Value],
    ) -> Option<Sql> {
        let text = |value: &Value| match value {
            Value::Text(text) => Some(Sql::bind(Bind::Text(text.to_string()))),
            _ => None,
        };
        let texts: Option<Vec<Sql>> = values.iter().map(text).collect();
        let texts = texts.filter(|_| *kind == Affinity::TextFolded)?;
        let list = Sql::joined(texts, ", ").within(" COLLATE NOCASE IN (", ")");
        Some(Sql::joined([name.clone(), list], ""))
    }

    fn contains(&self, column: &Column, kind: &Affinity, name: Sql, text: &str) -> Sql {
        let key = self.key(column, kind, name);
        let text = Sql::bind(Bind::Text(text.to_owned()));
        Sql::joined([key, text], ", ").within("instr(", ") > 0")
    }

    fn order(&self, key: Sql, descending: bool, nullable: bool) -> Sql {
        key.within(
            "",
            match (descending, nullable) {
                (false, false) => "",
                (false, true) => " NULLS LAST",
                // Descending, NULLs are last already.
                (true, _) => " DESC",
            },
        )
    }

    fn period(
        &self,
        column: &Column,
        kind: &Affinity,
        name: Sql,
        granularity: Granularity,
        zone: &str,
    ) -> Sql {
        let unit = Bind::Text(granularity.as_str().to_owned());
        let unit = Sql::bind(unit);
        if column.datatype == Datatype::Date {
            return call(functions::DATE_PERIOD, Sql::joined([name, unit], ", "));
        }
        let micros = match kind {
            Affinity::Computed => name,
            _ => call(functions::DATETIME, name),
        };
        let zone = Sql::bind(Bind::Text(zone.to_owned()));
        call(functions::PERIOD, Sql::joined([micros, unit, zone], ", "))
    }

    fn checks_periods(&self) -> bool {
        true
    }

    fn join_hint(
        &self,
        (ours, our_kind, our_name): (&Column, &Affinity, &Sql),
        (theirs, their_kind, their_name): (&Column, &Affinity, &Sql),
    ) -> Option<(Sql, bool)> {
        let equal = || Sql::joined([their_name.clone(), our_name.clone()], " = ");
        let numbers = |column: &Column, kind: &Affinity| {
            kind.holds_numbers() && matches!(column.datatype, Datatype::Integer | Datatype::Decimal)
        };
        if numbers(ours, our_kind) && numbers(theirs, their_kind) {
            // A value that is no number equals no number, and numbers compare by value.
            return Some((equal(), true));
        }
        let texts = |column: &Column, kind: &Affinity| kind.is_text() && column.datatype.is_text();
        // The collation of the left side decides, and equal texts are equal in any collation.
        (texts(ours, our_kind) && texts(theirs, their_kind)).then(|| (equal(), false))
    }

    fn compare_period(&self, period: Sql, comparison: Comparison, value: &Value) -> ComparisonSql {
        let number = match value {
            Value::Date(days) => i64::from(*days),
            Value::Datetime(micros) => *micros,
            _ => return ComparisonSql::Never,
        };
        ComparisonSql::with(period, comparison, Sql::bind(Bind::Integer(number)))
    }
}
