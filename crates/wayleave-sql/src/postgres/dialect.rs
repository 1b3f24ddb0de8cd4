//! The PostgreSQL dialect.

mod compute;

use tokio_postgres::types::Type;
use wayleave_model::mapping::Datatype;
use wayleave_plan::plan::{Column, ColumnOrigin, Comparison, Granularity};
use wayleave_plan::value::{MAX_WHOLE_BYTES, PREVIEW_CHARACTERS, Value};

use super::types::Kind;
use crate::compile::dialect::{ComparisonSql, Dialect, is_within_a_day};
use crate::compile::numbers::{beyond_all, compare_nearest, nearest_single};
use crate::compile::shape::NativeColumn;
use crate::compile::sql::{Bind, Placeholder, Sql};

/// The dialect.
#[derive(Debug, Clone, Default)]
pub(crate) struct PostgresDialect {
    /// Whether the database's encoding is not UTF-8: it may lack characters, and may sort
    /// differently.
    pub(crate) encoded: bool,
    pub(crate) skips_undecided: bool,
}

fn is_text(column: &Column) -> bool {
    column.datatype.is_text()
}

/// A bound value, cast to a type.
fn typed(bind: Bind, cast: &str) -> Sql {
    Sql::bind(bind).within("", cast)
}

impl PostgresDialect {
    fn text(name: Sql) -> Sql {
        name.within("(", "::text)")
    }

    /// A text as bytes of UTF-8, which sort as code points do.
    fn bytes(name: Sql) -> Sql {
        Self::text(name).within("convert_to(", ", 'UTF8')")
    }

    fn compare_text(
        &self,
        column: &Column,
        kind: Kind,
        name: Sql,
        comparison: Comparison,
        text: &str,
    ) -> ComparisonSql {
        if kind == Kind::Uuid && is_canonical_uuid(text) {
            // UUIDs sort like their text form, and an index has that order.
            let right = typed(Bind::Text(text.to_owned()), "::text::uuid");
            return ComparisonSql::with(name, comparison, right);
        }
        // PostgreSQL's texts hold no NUL; the nearest one ends before it.
        let (kept, side) = match text.split_once('\0') {
            Some((kept, _)) => (kept, std::cmp::Ordering::Less),
            None => (text, std::cmp::Ordering::Equal),
        };
        let equality = matches!(comparison, Comparison::Eq | Comparison::Ne);
        if self.encoded && !(equality && kept.is_ascii()) {
            let right = typed(Bind::Bytes(kept.as_bytes().to_vec()), "::bytea");
            return compare_nearest(Self::bytes(name), comparison, right, side);
        }
        let right = typed(Bind::Text(kept.to_owned()), "::text");
        let left = self.key(column, &kind, name.clone());
        let compared = compare_nearest(left, comparison, right.clone(), side);
        match compared {
            // The same text is equal in every collation, and an index has the column's own.
            ComparisonSql::With {
                left,
                comparison: Comparison::Eq,
                right,
                ..
            } if matches!(kind, Kind::Text(_)) => ComparisonSql::With {
                hint: Some(Sql::joined([name, right.clone()], " = ")),
                left,
                comparison: Comparison::Eq,
                right,
            },
            other => other,
        }
    }
}

impl Dialect for PostgresDialect {
    fn quote(&self) -> char {
        '"'
    }

    fn placeholder(&self) -> Placeholder {
        Placeholder::Dollar
    }

    fn has_row_values(&self) -> bool {
        true
    }

    fn skips_undecided(&self) -> bool {
        self.skips_undecided
    }

    fn needs_witness(&self, native: &NativeColumn<Kind>) -> bool {
        // The driver would look up a user-defined type with statements of its own, which a pooler
        // may leave on another client's session.
        native.type_id.is_none_or(|id| Type::from_oid(id).is_some())
    }

    fn select(&self, column: &Column, kind: &Kind, name: Sql) -> Sql {
        if column.many {
            return name.within("(", "::text[])");
        }
        match (kind, column.datatype) {
            (Kind::Text(_), _) => name,
            // As text whatever the column's type, so that infinity and NaN have a form too.
            (_, Datatype::String | Datatype::Iri) => Self::text(name),
            (Kind::Numeric, Datatype::Number) => name.within("(", "::float8)"),
            (Kind::Uuid | Kind::Other | Kind::Numeric | Kind::Json | Kind::Array, _) => {
                Self::text(name)
            }
            (Kind::Oid, _) => name.within("(", "::int8)"),
            _ => name,
        }
    }

    fn preview(&self, column: &Column, kind: &Kind, name: Sql) -> Option<Sql> {
        let may_be_long = matches!(
            (kind, column.datatype),
            (
                Kind::Text(_) | Kind::Other | Kind::Json | Kind::Array,
                Datatype::String | Datatype::Iri | Datatype::Json
            )
        );
        if !may_be_long {
            return None;
        }
        let text = self.select(column, kind, name);
        let mut sql = Sql::text("CASE WHEN octet_length(");
        let mut then = |more: &str| {
            sql.add(text.clone());
            sql.push(more);
        };
        then(&format!(
            ") > {MAX_WHOLE_BYTES} THEN chr(1) || 'P' || length("
        ));
        then(") || ':' || left(");
        then(&format!(", {PREVIEW_CHARACTERS}) WHEN ascii("));
        then(") = 1 THEN chr(1) || 'T' || ");
        then(" ELSE ");
        then(" END");
        Some(sql)
    }

    fn key(&self, column: &Column, kind: &Kind, name: Sql) -> Sql {
        match (column.datatype, kind) {
            (Datatype::String | Datatype::Iri, Kind::Text(order)) => {
                name.within("", order.clause())
            }
            (Datatype::String | Datatype::Iri, _) => Self::text(name).within("", " COLLATE \"C\""),
            (Datatype::Decimal, Kind::Integer | Kind::Oid) => name.within("(", "::numeric)"),
            (Datatype::Number, Kind::Integer | Kind::Oid | Kind::Numeric) => {
                name.within("(", "::float8)")
            }
            (Datatype::Integer, Kind::Oid) => name.within("(", "::int8)"),
            _ => name,
        }
    }

    fn sort(&self, column: &Column, kind: &Kind, name: Sql) -> Sql {
        if *kind == Kind::Uuid && is_text(column) {
            name
        } else if self.encoded && is_text(column) {
            Self::bytes(name)
        } else {
            self.key(column, kind, name)
        }
    }

    fn select_key(&self, column: &Column, key: Sql) -> Sql {
        let is_stored = matches!(column.origin, ColumnOrigin::Stored { .. });
        match column.datatype {
            Datatype::Decimal => Self::text(key),
            Datatype::Integer if !is_stored => Self::text(key),
            _ => key,
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
        if let Value::Text(text) = value {
            return self.compare_text(column, *kind, name, comparison, text);
        }
        let left = self.key(column, kind, name);
        let right = match value {
            Value::Integer(integer) => match i64::try_from(*integer) {
                Ok(integer) => typed(Bind::Integer(integer), "::int8"),
                Err(_) => return beyond_all(comparison, *integer > 0),
            },
            Value::Decimal(text) => typed(Bind::Text(text.to_string()), "::text::numeric"),
            Value::Number(number) if *kind == Kind::Single => {
                let (nearest, side) = nearest_single(*number);
                let right = typed(Bind::Real(nearest), "::float8::float4");
                return compare_nearest(left, comparison, right, side);
            }
            Value::Number(number) => typed(Bind::Real(*number), "::float8"),
            Value::Boolean(boolean) => typed(Bind::Boolean(*boolean), "::bool"),
            Value::Date(days) => typed(Bind::Date(*days), "::date"),
            Value::Datetime(micros) if *kind == Kind::Timestamp => {
                typed(Bind::Datetime(*micros), "::timestamp")
            }
            Value::Datetime(micros) => typed(Bind::Datetime(*micros), "::timestamptz"),
            // No plan compares with these.
            Value::Null
            | Value::Text(_)
            | Value::Json(_)
            | Value::List(_)
            | Value::Preview(_)
            | Value::Malformed => {
                return ComparisonSql::Never;
            }
        };
        ComparisonSql::with(left, comparison, right)
    }

    fn list_hint(&self, _: &Column, kind: &Kind, name: &Sql, values: &[Value]) -> Option<Sql> {
        let text = |value: &Value| match value {
            Value::Text(text) => Some(typed(Bind::Text(text.to_string()), "::text")),
            _ => None,
        };
        let texts: Option<Vec<Sql>> = values.iter().map(text).collect();
        let texts = texts.filter(|_| matches!(kind, Kind::Text(_)) && !self.encoded)?;
        let list = Sql::joined(texts, ", ").within(" IN (", ")");
        Some(Sql::joined([name.clone(), list], ""))
    }

    /// Infinity and NaN belong to no datatype. No well-formed value equals them.
    fn well_formed(
        &self,
        column: &Column,
        kind: &Kind,
        name: &Sql,
        comparison: Option<Comparison>,
    ) -> Option<Sql> {
        if is_text(column) || column.many || comparison == Some(Comparison::Eq) {
            return None;
        }
        match kind {
            Kind::Date | Kind::Timestamp | Kind::TimestampTz => {
                Some(name.clone().within("", " NOT IN ('infinity', '-infinity')"))
            }
            // Infinity minus itself is NaN, and so is NaN minus itself.
            Kind::Numeric | Kind::Float | Kind::Single => {
                let less = Sql::joined([name.clone(), name.clone()], " - ");
                Some(less.within("(", ") <> 'NaN'"))
            }
            _ => None,
        }
    }

    /// The planner evaluates constants early, but a flag never is one.
    fn fail_where(&self, flag: Sql) -> Sql {
        flag.within("(1 / (1 - ", ")) IS NOT NULL")
    }

    fn contains(&self, column: &Column, kind: &Kind, name: Sql, text: &str) -> Sql {
        if text.contains('\0') {
            return Sql::text("1 = 0");
        }
        if self.encoded && !text.is_ascii() {
            let text = typed(Bind::Bytes(text.as_bytes().to_vec()), "::bytea");
            return Sql::joined([text, Self::bytes(name)], " IN ").within("position(", ") > 0");
        }
        // By code point whatever the collation, because some collations cannot search.
        let key = match kind {
            Kind::Text(_) => name.within("", " COLLATE \"C\""),
            _ => self.key(column, kind, name),
        };
        let text = typed(Bind::Text(text.to_owned()), "::text");
        Sql::joined([key, text], ", ").within("strpos(", ") > 0")
    }

    fn order(&self, key: Sql, descending: bool, nullable: bool) -> Sql {
        // Ascending, NULLs are last already.
        key.within(
            "",
            match (descending, nullable) {
                (false, _) => "",
                (true, false) => " DESC",
                (true, true) => " DESC NULLS LAST",
            },
        )
    }

    fn period(
        &self,
        column: &Column,
        kind: &Kind,
        name: Sql,
        granularity: Granularity,
        zone: &str,
    ) -> Sql {
        let unit = granularity.as_str();
        let truncate = format!("date_trunc('{unit}', ");
        if column.datatype == Datatype::Date {
            return name.within(&truncate, "::timestamp)::date");
        }
        let instant = match kind {
            Kind::Timestamp => name.within("(", " AT TIME ZONE 'UTC')"),
            _ => name,
        };
        let zone = typed(Bind::Text(zone.to_owned()), "::text");
        let local = Sql::joined([instant.clone(), zone], " AT TIME ZONE ").within("(", ")");
        let begin = local.clone().within(&truncate, ")");
        if is_within_a_day(granularity) {
            let passed = Sql::joined([local, begin], " - ").within("(", ")");
            Sql::joined([instant, passed], " - ").within("(", ")")
        } else {
            begin.within("", "::date")
        }
    }

    fn join_hint(
        &self,
        (ours, our_kind, our_name): (&Column, &Kind, &Sql),
        (theirs, their_kind, their_name): (&Column, &Kind, &Sql),
    ) -> Option<(Sql, bool)> {
        let is_same = ours.datatype == theirs.datatype && our_kind == their_kind;
        let equal = |ours: Sql| Sql::joined([their_name.clone(), ours], " = ");
        match their_kind {
            Kind::Integer
            | Kind::Numeric
            | Kind::Boolean
            | Kind::Date
            | Kind::Timestamp
            | Kind::TimestampTz
                if is_same =>
            {
                Some((equal(our_name.clone()), true))
            }
            Kind::Uuid if is_same => Some((equal(our_name.clone()), true)),
            // Equal texts are equal in the database's own collation, which their index most likely
            // has.
            Kind::Text(_) if matches!(our_kind, Kind::Text(_)) && !self.encoded => {
                let ours = Self::text(our_name.clone()).within("(", " COLLATE \"default\")");
                Some((equal(ours), false))
            }
            _ => None,
        }
    }
}

/// Whether a text is how PostgreSQL writes a UUID.
fn is_canonical_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(place, byte)| match place {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
        })
}
