//! The dialect of MySQL and MariaDB.

mod compute;

use std::collections::HashMap;

use wayleave_model::mapping::Datatype;
use wayleave_plan::plan::{Column, ColumnOrigin, Comparison, Granularity};
use wayleave_plan::value::{MAX_WHOLE_BYTES, PREVIEW_CHARACTERS, Value};

use super::digits::{MAX_DIGITS, MAX_SCALE};
use super::repertoire::Encodable;
use super::types::Kind;
use crate::compile::dialect::{ComparisonSql, Dialect, is_within_a_day};
use crate::compile::numbers::{beyond_all, compare_nearest, cut, nearest_single};
use crate::compile::shape::NativeColumn;
use crate::compile::sql::{Bind, Placeholder, Sql};

/// The offsets of a time zone from UTC: when they changed, and the seconds ahead of UTC from then
/// on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Offsets {
    /// Seconds ahead of UTC before the first change.
    pub(crate) before: i64,
    /// Changes: microseconds since 1970-01-01T00:00:00Z, and the seconds from then on.
    pub(crate) changes: Vec<(i64, i64)>,
}

/// The dialect. The server's own zone tables may be empty or old, so a statement binds our offsets
/// of the zones it needs.
#[derive(Default)]
pub(crate) struct MysqlDialect {
    /// Whether texts that the server sorts as equal are sorted by their length.
    pub(crate) by_length: bool,
    pub(crate) skips_undecided: bool,
    /// Whether `INSERT` supports `RETURNING`.
    pub(crate) returns_rows: bool,
    pub(crate) zones: HashMap<(Column, String), Offsets>,
}

/// The beginning of a condition that fails the statement.
pub(crate) const FAILS: &str = "EXP(10000 * ";

impl MysqlDialect {
    /// UTF-8 bytes, which sort as code points do and have no padding.
    fn bytes(name: Sql) -> Sql {
        Self::text(name).within("CAST(", " AS BINARY)")
    }

    /// The server's own text form, which the zero date has too.
    fn text(name: Sql) -> Sql {
        name.within("CONVERT(", " USING utf8mb4)")
    }

    /// A bit field or a year as a number.
    fn bits(name: Sql) -> Sql {
        name.within("(", " + 0)")
    }

    fn local(&self, column: &Column, name: &Sql, zone: &str) -> Sql {
        let key = (column.clone(), zone.to_owned());
        let offset = if is_utc(zone) {
            Sql::text("0")
        } else {
            #[expect(clippy::expect_used, reason = "a default offset would shift the time")]
            let offsets = self
                .zones
                .get(&key)
                .expect("the offsets of every zone are given");
            offset(name, offsets.before, &offsets.changes)
        };
        Sql::joined([offset, name.clone()], ", ").within("TIMESTAMPADD(SECOND, ", ")")
    }
}

/// Whether a zone is UTC, in which the server holds times.
pub(super) fn is_utc(zone: &str) -> bool {
    matches!(zone, "UTC" | "Etc/UTC")
}

/// The offset of a time, by binary search.
fn offset(name: &Sql, before: i64, changes: &[(i64, i64)]) -> Sql {
    let (earlier, [(change, from), later @ ..]) = changes.split_at(changes.len() / 2) else {
        return Sql::bind(Bind::Integer(before));
    };
    let mut sql = name.clone().within("IF(", " < ");
    sql.add(Sql::bind(Bind::Datetime(*change)));
    sql.add(offset(name, before, earlier).within(", ", ""));
    sql.add(offset(name, *from, later).within(", ", ")"));
    sql
}

impl Dialect for MysqlDialect {
    fn quote(&self) -> char {
        '`'
    }

    fn row_lock(&self) -> &'static str {
        " FOR UPDATE"
    }

    fn placeholder(&self) -> Placeholder {
        Placeholder::Question
    }

    /// MySQL has row values, but reads the whole index for them.
    fn has_row_values(&self) -> bool {
        false
    }

    fn skips_undecided(&self) -> bool {
        self.skips_undecided
    }

    fn needs_witness(&self, _: &NativeColumn<Kind>) -> bool {
        true
    }

    fn select(&self, column: &Column, kind: &Kind, name: Sql) -> Sql {
        let is_text = column.datatype.is_text();
        match kind {
            Kind::Text { .. } => name,
            Kind::Binary => name.within("CONCAT(CHAR(92), 'x', LOWER(HEX(", ")))"),
            Kind::Bit if is_text => Self::text(Self::bits(name)),
            Kind::Bit => Self::bits(name),
            _ if is_text => Self::text(name),
            _ => name,
        }
    }

    fn preview(&self, column: &Column, kind: &Kind, name: Sql) -> Option<Sql> {
        let may_be_long = matches!(
            (kind, column.datatype),
            (
                Kind::Text { .. } | Kind::Binary | Kind::Json,
                Datatype::String | Datatype::Iri | Datatype::Json
            )
        );
        if !may_be_long {
            return None;
        }
        let text = match kind {
            Kind::Json => Self::text(name),
            _ => self.select(column, kind, name),
        };
        let mut sql = Sql::text("CASE WHEN OCTET_LENGTH(");
        let mut then = |more: &str| {
            sql.add(text.clone());
            sql.push(more);
        };
        let mark = "CHAR(1 USING utf8mb4)";
        then(&format!(
            ") > {MAX_WHOLE_BYTES} THEN CONCAT({mark}, 'P', CHAR_LENGTH("
        ));
        then("), ':', LEFT(");
        then(&format!(", {PREVIEW_CHARACTERS})) WHEN ORD("));
        then(&format!(") = 1 THEN CONCAT({mark}, 'T', "));
        then(") ELSE ");
        then(" END");
        Some(sql)
    }

    fn key(&self, column: &Column, kind: &Kind, name: Sql) -> Sql {
        match (column.datatype, kind) {
            (
                Datatype::String | Datatype::Iri,
                Kind::Text {
                    by_code_point: Some(_),
                    ..
                },
            ) => name,
            (Datatype::String | Datatype::Iri, Kind::Binary | Kind::Bit) => self
                .select(column, kind, name)
                .within("CAST(", " AS BINARY)"),
            (Datatype::String | Datatype::Iri, _) => Self::bytes(name),
            (Datatype::Boolean, _) => name.within("(", " <> 0)"),
            (Datatype::Integer, Kind::Bit | Kind::Year) | (Datatype::Decimal, Kind::Year) => {
                Self::bits(name)
            }
            (Datatype::Number, Kind::Integer | Kind::Year | Kind::Bit | Kind::Decimal(_)) => {
                name.within("(", " + 0e0)")
            }
            _ => name,
        }
    }

    /// The server pads sort keys with NULs, so of two texts that differ only in NULs at the end,
    /// the longer one must be sorted last by its length. A column that an index may sort is left to
    /// the index, until a text ends in NUL.
    fn then(&self, column: &Column, kind: &Kind, name: &Sql) -> Option<Sql> {
        let filled = match kind {
            Kind::Text { by_code_point, .. } => by_code_point.is_none() || self.by_length,
            _ => false,
        };
        (filled && column.datatype.is_text()).then(|| name.clone().within("LENGTH(", ")"))
    }

    fn select_key(&self, _column: &Column, key: Sql) -> Sql {
        key
    }

    /// MariaDB takes groups in sort order, and does not see that NULL comes after a computed
    /// decimal.
    fn group_by(&self, column: &Column, grouped: Sql) -> Sql {
        let is_stored = matches!(column.origin, ColumnOrigin::Stored { .. });
        match column.datatype {
            Datatype::Integer | Datatype::Decimal if !is_stored => {
                let null = grouped.clone().within("", " IS NULL");
                Sql::joined([null, grouped], ", ")
            }
            _ => grouped,
        }
    }

    fn compare(
        &self,
        column: &Column,
        kind: &Kind,
        name: Sql,
        comparison: Comparison,
        value: &Value,
    ) -> ComparisonSql {
        let left = self.key(column, kind, name.clone());
        let right = match value {
            Value::Text(text) => return compare_text(kind, &name, left, comparison, text),
            Value::Integer(integer) => match (i64::try_from(*integer), u64::try_from(*integer)) {
                (Ok(integer), _) => Bind::Integer(integer),
                (_, Ok(integer)) => Bind::Unsigned(integer),
                _ => return beyond_all(comparison, *integer > 0),
            },
            Value::Decimal(text) => return compare_decimal(left, comparison, text),
            Value::Number(number) if *kind == Kind::Single => {
                let (nearest, side) = nearest_single(*number);
                return compare_nearest(left, comparison, Sql::bind(Bind::Real(nearest)), side);
            }
            Value::Number(number) => Bind::Real(*number),
            Value::Boolean(boolean) => Bind::Integer(i64::from(*boolean)),
            Value::Date(days) => Bind::Date(*days),
            Value::Datetime(micros) => Bind::Datetime(*micros),
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

    /// A date may lack a month or a day, or have a day that its month does not have.
    fn well_formed(
        &self,
        column: &Column,
        kind: &Kind,
        name: &Sql,
        comparison: Option<Comparison>,
    ) -> Option<Sql> {
        if column.datatype.is_text() || column.many {
            return None;
        }
        match kind {
            Kind::Date | Kind::Datetime if comparison != Some(Comparison::Eq) => {
                let mut fits = name.clone().within("DAYOFMONTH(", ") BETWEEN 1 AND ");
                fits.add(name.clone().within("DAYOFMONTH(LAST_DAY(", "))"));
                Some(fits.within("COALESCE(", ", 0)"))
            }
            Kind::Text { .. } if column.datatype == Datatype::Json => {
                Some(name.clone().within("JSON_VALID(", ")"))
            }
            _ => None,
        }
    }

    /// The power exceeds every float, and the server refuses to compute it.
    fn fail_where(&self, flag: Sql) -> Sql {
        flag.within(FAILS, ") = 1")
    }

    fn contains(&self, column: &Column, kind: &Kind, name: Sql, text: &str) -> Sql {
        let key = match kind {
            Kind::Text { .. } => Self::bytes(name),
            _ => self.key(column, kind, name),
        };
        Sql::joined([bytes_operand(text), key], ", ").within("LOCATE(", ") > 0")
    }

    /// The zero date satisfies `IS NULL` in a `NOT NULL` column, but its text does not.
    fn is_null(&self, native: &NativeColumn<Kind>, name: Sql) -> Sql {
        let tested = match native.kind {
            Kind::Date | Kind::Datetime if native.not_null => Self::text(name),
            _ => name,
        };
        tested.within("", " IS NULL")
    }

    fn order(&self, key: Sql, descending: bool, nullable: bool) -> Sql {
        let direction = if descending { " DESC" } else { "" };
        if nullable && !descending {
            let nulls = key.clone().within("", " IS NULL");
            Sql::joined([nulls, key], ", ")
        } else {
            // Descending, NULLs are last already.
            key.within("", direction)
        }
    }

    fn period(
        &self,
        column: &Column,
        _kind: &Kind,
        name: Sql,
        granularity: Granularity,
        zone: &str,
    ) -> Sql {
        let local = if column.datatype == Datatype::Date {
            name.clone()
        } else {
            self.local(column, &name, zone)
        };
        let of = |call: &str, after: &str| local.clone().within(call, after);
        if is_within_a_day(granularity) {
            let mut passed = of("-(SECOND(", ") * 1000000");
            passed.add(of(" + MICROSECOND(", ")"));
            if granularity == Granularity::Hour {
                passed.add(of(" + MINUTE(", ") * 60000000"));
            }
            passed.push(")");
            return Sql::joined([passed, name], ", ").within("TIMESTAMPADD(MICROSECOND, ", ")");
        }
        let day = of("DATE(", ")");
        let less = |day: Sql, days: Sql| {
            Sql::joined([day, days], ", INTERVAL ").within("DATE_SUB(", " DAY)")
        };
        match granularity {
            Granularity::Week => less(day, of("WEEKDAY(", ")")),
            Granularity::Year => less(day, of("DAYOFYEAR(", ") - 1")),
            Granularity::Month => less(day, of("DAYOFMONTH(", ") - 1")),
            Granularity::Quarter => {
                let month = less(day, of("DAYOFMONTH(", ") - 1"));
                let months = of("MOD(MONTH(", ") - 1, 3)");
                Sql::joined([month, months], ", INTERVAL ").within("DATE_SUB(", " MONTH)")
            }
            Granularity::Day | Granularity::Hour | Granularity::Minute => day,
        }
    }

    fn join_hint(
        &self,
        (ours, our_kind, our_name): (&Column, &Kind, &Sql),
        (theirs, their_kind, their_name): (&Column, &Kind, &Sql),
    ) -> Option<(Sql, bool)> {
        let equal = || Sql::joined([their_name.clone(), our_name.clone()], " = ");
        let is_same = ours.datatype == theirs.datatype
            && std::mem::discriminant(our_kind) == std::mem::discriminant(their_kind);
        match their_kind {
            Kind::Integer | Kind::Decimal(_) | Kind::Date | Kind::Datetime if is_same => {
                Some((equal(), true))
            }
            // Equal texts are equal in a shared collation.
            Kind::Text { collation, .. } => match our_kind {
                Kind::Text {
                    collation: other, ..
                } if collation == other => Some((equal(), false)),
                _ => None,
            },
            _ => None,
        }
    }
}

fn bytes_operand(text: &str) -> Sql {
    Sql::bind(Bind::Text(text.to_owned())).within("CAST(", " AS BINARY)")
}

fn compare_text(
    kind: &Kind,
    name: &Sql,
    left: Sql,
    comparison: Comparison,
    text: &str,
) -> ComparisonSql {
    let bound = || Sql::bind(Bind::Text(text.to_owned()));
    let hint = match kind {
        Kind::Text {
            by_code_point,
            repertoire,
            ..
        } => match (repertoire.can_encode(text), by_code_point) {
            // The server refuses to compare the two.
            (Encodable::No, _) => return compare_unencodable(name, comparison, text),
            // Named in the statement, so that the column's own collation never decides.
            (Encodable::Yes, Some((charset, collation))) => {
                let collated = format!(" USING {charset}) COLLATE {collation}");
                let right = bound().within("CONVERT(", &collated);
                return ComparisonSql::with(left, comparison, right);
            }
            // The same text is equal in every collation.
            (Encodable::Yes, None) => Some(bound()),
            // Characters that the conversion loses are not in the column either.
            (Encodable::IfConverted(converted), _) => {
                converted.map(|it| bound().within("CONVERT(", it))
            }
        },
        // The same bytes have the same digits.
        Kind::Binary => from_hexadecimal(text).map(|bytes| Sql::bind(Bind::Bytes(bytes))),
        _ => None,
    };
    let left = match kind {
        Kind::Text { .. } => MysqlDialect::bytes(name.clone()),
        _ => left,
    };
    let hint = hint.filter(|_| comparison == Comparison::Eq);
    ComparisonSql::With {
        left,
        comparison,
        right: bytes_operand(text),
        hint: hint.map(|it| Sql::joined([name.clone(), it], " = ")),
    }
}

/// Compares with a text that a column cannot hold. Only equality is decided without reading: if the
/// column has changed meanwhile, the read merely finds no row.
fn compare_unencodable(name: &Sql, comparison: Comparison, text: &str) -> ComparisonSql {
    match comparison {
        Comparison::Eq => ComparisonSql::Never,
        _ => ComparisonSql::with(
            MysqlDialect::bytes(name.clone()),
            comparison,
            bytes_operand(text),
        ),
    }
}

/// The bytes that `\x` and hexadecimal digits spell.
fn from_hexadecimal(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("\\x")?;
    let pairs = digits.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}

/// A decimal must be cast: with a text, the server would compare floats.
fn compare_decimal(left: Sql, comparison: Comparison, text: &str) -> ComparisonSql {
    let digits = text.trim_start_matches('-');
    let whole = digits.split('.').next().map_or(0, str::len);
    let most = usize::from(MAX_DIGITS);
    let scale = usize::from(MAX_SCALE).min(most.saturating_sub(whole));
    let Some((kept, side)) = cut(text, most, scale) else {
        return beyond_all(comparison, !text.starts_with('-'));
    };
    let scale = kept.split_once('.').map_or(0, |(_, after)| after.len());
    let cast = format!(" AS DECIMAL({MAX_DIGITS}, {scale}))");
    let right = Sql::bind(Bind::Text(kept)).within("CAST(", &cast);
    compare_nearest(left, comparison, right, side)
}
