//! SQLite.
//!
//! A column may hold any value whatever its declared type, and there are no dates, decimals or
//! booleans. Functions of ours, registered on every session, read what is there as the mapping
//! says it is meant; where the raw column compares right, it is used, so that an index is too.
//! What it takes to know that is in [`held`].

pub(crate) mod bytes;
pub(crate) mod form;
pub(crate) mod held;
pub(crate) mod probe;

use std::collections::HashMap;

use wayleave_model::mapping::Datatype;
use wayleave_plan::plan::{Column, Comparison, Granularity};
use wayleave_plan::value::Value;

use self::bytes::{Odd, spelled};
use self::form::Form;
use self::held::{Held, looks_numeric, near, near_text};
use super::dialect::{Compared, Dialect};
use super::numbers::{beside, beyond_all, nearest_float};
use super::sql::{Bind, Placeholder, Sql};
use crate::values::EXACT;

/// The functions every session has. Their names are the contract between statements and sessions.
pub(crate) mod functions {
    /// Any value as text: numbers as they are written, bytes as `\x` and hexadecimal digits.
    pub(crate) const TEXT: &str = "wayleave_text";
    /// A text or number as microseconds since 1970-01-01T00:00:00Z.
    pub(crate) const DATETIME: &str = "wayleave_datetime";
    /// A text or number as bytes that sort as decimals do.
    pub(crate) const DECIMAL: &str = "wayleave_decimal";
    /// The beginning of the period of a datetime: `(micros, granularity, zone)`.
    pub(crate) const PERIOD: &str = "wayleave_period";
    /// The beginning of the period of a date: `(text, granularity)`.
    pub(crate) const DATE_PERIOD: &str = "wayleave_date_period";
    /// The exact sum of integers and decimals, as text.
    pub(crate) const SUM: &str = "wayleave_sum";
    /// The mean of an exact sum and a count, as text.
    pub(crate) const MEAN: &str = "wayleave_mean";
    /// A floating-point number as answers round it.
    pub(crate) const ROUNDED: &str = "wayleave_rounded";

    /// All of them, for the authorizer.
    pub(crate) const ALL: [&str; 8] = [
        TEXT,
        DATETIME,
        DECIMAL,
        PERIOD,
        DATE_PERIOD,
        SUM,
        MEAN,
        ROUNDED,
    ];
}

/// The order of code points, which every session has, for files whose texts are UTF-16: SQLite
/// compares the bytes of what it holds.
pub(crate) const BY_CODE_POINT: &str = "wayleave_code_point";

/// The affinity of a column, which decides what SQLite makes of what it is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Affinity {
    Text,
    /// Text, and the index that begins with it takes small letters for large ones.
    TextFolded,
    Integer,
    Real,
    Numeric,
    Blob,
}

impl Affinity {
    /// SQLite's own rules, in its order.
    pub(crate) fn of(declared: &str) -> Self {
        let declared = declared.to_ascii_uppercase();
        let holds = |words: &[&str]| words.iter().any(|word| declared.contains(word));
        if holds(&["INT"]) {
            Self::Integer
        } else if holds(&["CHAR", "CLOB", "TEXT"]) {
            Self::Text
        } else if declared.is_empty() || holds(&["BLOB"]) {
            Self::Blob
        } else if holds(&["REAL", "FLOA", "DOUB"]) {
            Self::Real
        } else {
            Self::Numeric
        }
    }

    pub(crate) const fn is_text(self) -> bool {
        matches!(self, Self::Text | Self::TextFolded)
    }

    const fn holds_numbers(self) -> bool {
        matches!(self, Self::Integer | Self::Real | Self::Numeric)
    }
}

/// The dialect, and what is known of the columns.
#[derive(Debug, Default)]
pub(crate) struct Sqlite {
    /// Whether the file's texts are UTF-16.
    wide: bool,
    held: HashMap<String, Held>,
    /// What a text stands for in the row that a page begins after, by column.
    odd: HashMap<String, (String, Odd)>,
}

impl Sqlite {
    /// With what columns, by name, hold at the moment of the read.
    pub(crate) fn knowing(held: HashMap<String, Held>) -> Self {
        Self {
            held,
            ..Self::default()
        }
    }

    /// Of a file whose texts are UTF-16, or are not.
    pub(crate) fn wide(self, wide: bool) -> Self {
        Self { wide, ..self }
    }

    /// How texts are put in order.
    fn by_code_point(&self) -> String {
        let collation = if self.wide { BY_CODE_POINT } else { "BINARY" };
        format!(" COLLATE {collation}")
    }

    /// Knowing that where a page begins, a column holds what the text shows, and not the text.
    pub(crate) fn standing_at(&mut self, column: &Column, text: &str, odd: Odd) {
        let shown = (text.to_owned(), odd);
        self.odd.insert(column.name.clone(), shown);
    }

    /// What a column holds.
    pub(crate) fn held(&self, column: &Column) -> Held {
        self.held.get(&column.name).copied().unwrap_or_default()
    }

    /// Whether a column is compared and sorted as it is stored, so that an index serves.
    pub(crate) fn is_raw(&self, column: &Column, affinity: Affinity) -> bool {
        match column.datatype {
            Datatype::String | Datatype::Iri => {
                affinity.is_text() || self.held(column) == Held::Texts
            }
            Datatype::Decimal => affinity.holds_numbers(),
            Datatype::Datetime => matches!(self.held(column), Held::Written(_)),
            Datatype::Number => affinity == Affinity::Real || self.held(column) == Held::Numbers,
            Datatype::Integer | Datatype::Date => true,
            Datatype::Boolean | Datatype::Json => false,
        }
    }

    /// A time of one form, as its text.
    fn compare_written(form: Form, name: Sql, comparison: Comparison, micros: i64) -> Compared {
        match form.write(micros) {
            Some((text, side)) => beside(name, comparison, binary(text), side),
            None => beyond_all(comparison, micros > 0),
        }
    }
}

/// What is read as true, as false; other numbers are true.
const TRUE_WORDS: &str = "('true', 't', 'TRUE', 'True', 'T')";
const FALSE_WORDS: &str = "('false', 'f', 'FALSE', 'False', 'F')";

fn call(function: &str, argument: Sql) -> Sql {
    argument.within(&format!("{function}("), ")")
}

impl Dialect for Sqlite {
    type Kind = Affinity;

    fn quote(&self) -> char {
        '"'
    }

    fn placeholder(&self) -> Placeholder {
        Placeholder::NumberedQuestion
    }

    fn has_row_values(&self) -> bool {
        true
    }

    fn select(&self, _column: &Column, _kind: &Affinity, name: Sql) -> Sql {
        name
    }

    fn key(&self, column: &Column, kind: &Affinity, name: Sql) -> Sql {
        match (column.datatype, kind) {
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
            (Datatype::Decimal, affinity) if !affinity.holds_numbers() => {
                call(functions::DECIMAL, name)
            }
            (Datatype::Boolean, _) => {
                let mut sql = name
                    .clone()
                    .within("(CASE WHEN ", &format!(" IN {TRUE_WORDS} THEN 1 WHEN "));
                sql.add(
                    name.clone()
                        .within("", &format!(" IN {FALSE_WORDS} THEN 0 ELSE ")),
                );
                sql.add(name.within("", " <> 0 END)"));
                sql
            }
            (Datatype::Datetime, _) => call(functions::DATETIME, name),
            // Several large integers are one number.
            (Datatype::Number, _) if !self.is_raw(column, *kind) => as_real(name),
            _ => name,
        }
    }

    fn select_key(&self, _column: &Column, key: Sql) -> Sql {
        key
    }

    /// The collation of a column does not reach through an inner query.
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
    ) -> Compared {
        // A collation on the value's side decides too, and leaves the column to its index.
        let left = match (column.datatype, kind) {
            (Datatype::Date, _) => name.clone(),
            (Datatype::String | Datatype::Iri, affinity) => match value {
                // Else it would be compared as the number it looks like.
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
                if let Some((shown, odd)) = self.odd.get(&column.name)
                    && raw
                    && shown == text
                {
                    let right = odd.bound().within("", &self.by_code_point());
                    return Compared::with(name, comparison, right);
                }
                if self.wide && !equality {
                    let right = Sql::bind(Bind::Text(text.to_string()));
                    let right = right.within("", &self.by_code_point());
                    return Compared::with(left, comparison, right);
                }
                return compare_text(*kind, raw, &name, left, comparison, text);
            }
            Value::Integer(integer) => match i64::try_from(*integer) {
                Ok(integer) => Bind::Integer(integer),
                Err(_) => return beyond_all(comparison, *integer > 0),
            },
            Value::Decimal(text) => return compare_decimal(*kind, left, comparison, text),
            Value::Number(number) if number.abs() < EXACT => {
                return Compared::with(name, comparison, Sql::bind(Bind::Real(*number)));
            }
            Value::Number(number) => Bind::Real(*number),
            Value::Boolean(boolean) => Bind::Integer(i64::from(*boolean)),
            Value::Date(_) => {
                let text = value.to_text().unwrap_or_default();
                return Compared::with(left, comparison, binary(text));
            }
            Value::Datetime(micros) => {
                let held = self.held(column);
                if let Held::Written(form) = held {
                    return Self::compare_written(form, name, comparison, *micros);
                }
                return Compared::With {
                    left,
                    comparison,
                    right: Sql::bind(Bind::Integer(*micros)),
                    hint: near(held, &name, comparison, *micros),
                };
            }
            // No plan compares with these.
            Value::Null | Value::Json(_) | Value::List(_) | Value::Malformed => {
                return Compared::Never;
            }
        };
        Compared::with(left, comparison, Sql::bind(right))
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
        _kind: &Affinity,
        name: Sql,
        granularity: Granularity,
        zone: &str,
    ) -> Sql {
        let unit = Bind::Text(format!("{granularity:?}"));
        let unit = Sql::bind(unit);
        if column.datatype == Datatype::Date {
            return call(functions::DATE_PERIOD, Sql::joined([name, unit], ", "));
        }
        let micros = call(functions::DATETIME, name);
        let zone = Sql::bind(Bind::Text(zone.to_owned()));
        call(functions::PERIOD, Sql::joined([micros, unit, zone], ", "))
    }

    fn addend(&self, column: &Column, _kind: &Affinity, name: Sql) -> Sql {
        match column.datatype {
            Datatype::Number => as_real(name),
            _ => name,
        }
    }

    fn sum(&self, column: &Column, addend: Sql) -> Sql {
        match column.datatype {
            Datatype::Number => addend.within("SUM(", ")"),
            _ => call(functions::SUM, addend),
        }
    }

    fn sum_order(&self, column: &Column, addend: Sql) -> Sql {
        let sum = self.sum(column, addend);
        match column.datatype {
            Datatype::Number => call(functions::ROUNDED, sum),
            _ => call(functions::DECIMAL, sum),
        }
    }

    fn mean_order(&self, column: &Column, addend: Sql) -> Sql {
        if column.datatype == Datatype::Number {
            return call(functions::ROUNDED, addend.within("AVG(", ")"));
        }
        let count = addend.clone().within("COUNT(", ")");
        let sum = self.sum(column, addend);
        let mean = call(functions::MEAN, Sql::joined([sum, count], ", "));
        call(functions::DECIMAL, mean)
    }
}

fn as_real(name: Sql) -> Sql {
    name.within("CAST(", " AS REAL)")
}

/// A text compared by code point, whatever the column's collation.
fn binary(text: String) -> Sql {
    Sql::bind(Bind::Text(text)).within("", " COLLATE BINARY")
}

fn compare_text(
    kind: Affinity,
    raw: bool,
    name: &Sql,
    left: Sql,
    comparison: Comparison,
    text: &str,
) -> Compared {
    let right = binary(text.to_owned());
    // Equal text forms are equal values, but for bytes, which are no text, and for numbers where
    // the column does not take a text for one.
    let indexed = comparison == Comparison::Eq
        && !text.starts_with('\\')
        && match kind {
            Affinity::Text | Affinity::TextFolded => false,
            Affinity::Blob => text.parse::<f64>().is_err(),
            Affinity::Integer | Affinity::Real | Affinity::Numeric => true,
        };
    let hint = if kind == Affinity::TextFolded && comparison == Comparison::Eq {
        // What is the same letter by letter is so when letters are folded.
        let folded = Sql::bind(Bind::Text(text.to_owned())).within("", " COLLATE NOCASE");
        Some(Sql::joined([name.clone(), folded], " = "))
    } else if left == *name {
        None
    } else if indexed {
        Some(Sql::joined([name.clone(), right.clone()], " = "))
    } else {
        raw.then(|| near_text(name, comparison, text)).flatten()
    };
    Compared::With {
        left,
        comparison,
        right,
        hint,
    }
}

/// Numbers are held as integers or as floats, and a float stands for the decimal it is written
/// as; texts are compared by a key of ours.
fn compare_decimal(kind: Affinity, left: Sql, comparison: Comparison, text: &str) -> Compared {
    if !kind.holds_numbers() {
        let right = call(functions::DECIMAL, Sql::bind(Bind::Text(text.to_owned())));
        return Compared::with(left, comparison, right);
    }
    if let Ok(integer) = text.parse::<i64>() {
        return Compared::with(left, comparison, Sql::bind(Bind::Integer(integer)));
    }
    match nearest_float(text) {
        Some((float, side)) => beside(left, comparison, Sql::bind(Bind::Real(float)), side),
        None => beyond_all(comparison, !text.starts_with('-')),
    }
}
