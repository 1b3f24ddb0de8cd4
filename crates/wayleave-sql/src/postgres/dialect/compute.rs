//! Arithmetic of the PostgreSQL dialect.

use wayleave_model::expression::{Arithmetic, QUOTIENT_DIGITS};
use wayleave_model::mapping::Datatype;
use wayleave_plan::plan::{Column, TextMatch};
use wayleave_plan::value::{Value, folded_letters};

use super::super::types::{Kind, Order};
use super::{PostgresDialect, typed};
use crate::compile::compute::{Compute, folded_bytes};
use crate::compile::dialect::Dialect;
use crate::compile::formula::sign;
use crate::compile::sql::{Bind, Sql};

impl Compute for PostgresDialect {
    type Kind = Kind;

    fn addend(&self, column: &Column, kind: &Kind, name: Sql) -> Sql {
        match kind {
            // The shortest text is the number that it stands for; a sum of `float4` would be a
            // `float4` too.
            Kind::Single => Self::text(name).within("", "::float8"),
            _ => self.key(column, kind, name),
        }
    }

    fn sum(&self, column: &Column, addend: Sql) -> Sql {
        match column.datatype {
            Datatype::Number => addend.within("SUM(", ")"),
            _ => addend.within("SUM(", ")::text"),
        }
    }

    fn sum_order(&self, _column: &Column, addend: Sql) -> Sql {
        addend.within("SUM(", ")")
    }

    /// Rounded half away from zero to six digits, in whole millionths: `div` is exact, `/` is not.
    fn mean_order(&self, column: &Column, addend: Sql) -> Sql {
        if column.datatype == Datatype::Number {
            return addend.within("AVG(", ")");
        }
        let sum = addend.clone().within("SUM(", ")::numeric");
        let count = addend.within("COUNT(", ")::numeric");
        let mut sql = sum.clone().within("sign(", ") * div(abs(");
        sql.add(sum.within("", ") * 2000000 + "));
        sql.add(count.clone());
        sql.add(count.within(", nullif(2 * ", ", 0))"));
        sql
    }

    fn computed_kind(&self, datatype: Datatype) -> Kind {
        match datatype {
            Datatype::Integer | Datatype::Decimal => Kind::Numeric,
            Datatype::Number => Kind::Float,
            Datatype::Boolean => Kind::Boolean,
            Datatype::Date => Kind::Date,
            Datatype::Datetime => Kind::TimestampTz,
            Datatype::Json => Kind::Json,
            Datatype::String | Datatype::Iri => Kind::Text(Order::C),
        }
    }

    fn operand(&self, column: &Column, kind: &Kind, name: Sql) -> Sql {
        match (column.datatype, kind) {
            (Datatype::Integer | Datatype::Decimal, Kind::Numeric) => name,
            (Datatype::Integer | Datatype::Decimal, _) => name.within("(", "::numeric)"),
            (Datatype::Number, _) => self.addend(column, kind, name),
            (Datatype::Datetime, Kind::Timestamp) => name.within("(", " AT TIME ZONE 'UTC')"),
            // Named here, because texts of two collations have no common one.
            (Datatype::String | Datatype::Iri, _) => {
                Self::text(name).within("(", " COLLATE \"C\")")
            }
            _ => name,
        }
    }

    fn constant(&self, datatype: Datatype, value: &Value) -> Sql {
        let cast = match datatype {
            Datatype::Integer | Datatype::Decimal => "::text::numeric",
            Datatype::Number => "::float8",
            Datatype::Boolean => "::bool",
            Datatype::Date => "::date",
            Datatype::Datetime => "::timestamptz",
            Datatype::Json | Datatype::String | Datatype::Iri => "::text",
        };
        match value {
            Value::Integer(integer) => typed(Bind::Text(integer.to_string()), cast),
            Value::Decimal(text) | Value::Text(text) => typed(Bind::Text(text.to_string()), cast),
            Value::Number(number) => typed(Bind::Real(*number), cast),
            Value::Boolean(boolean) => typed(Bind::Boolean(*boolean), cast),
            Value::Date(days) => typed(Bind::Date(*days), cast),
            Value::Datetime(micros) => typed(Bind::Datetime(*micros), cast),
            _ => Sql::text(format!("NULL{}", cast.trim_start_matches("::text"))),
        }
    }

    fn convert(&self, _from: Datatype, to: Datatype, value: Sql) -> Sql {
        match to {
            Datatype::Number => value.within("(", "::float8)"),
            Datatype::String => Self::text(value),
            _ => value,
        }
    }

    /// A quotient has as many digits after the point as its dividend, so the dividend is given so
    /// many that rounding twice gives the same as rounding once.
    fn arithmetic(&self, datatype: Datatype, op: Arithmetic, left: Sql, right: Sql) -> Sql {
        if op != Arithmetic::Divide {
            return Sql::joined([left, right], sign(op)).within("(", ")");
        }
        let right = right.within("NULLIF(", ", 0)");
        if datatype == Datatype::Number {
            return Sql::joined([left, right], sign(op)).within("(", ")");
        }
        let left = left.within("round(", ", 60)");
        Sql::joined([left, right], sign(op)).within("round(", &format!(", {QUOTIENT_DIGITS})"))
    }

    fn round(&self, value: Sql, digits: u8) -> Sql {
        value.within("round(", &format!(", {digits})"))
    }

    fn truth(&self) -> (&'static str, &'static str) {
        ("TRUE", "FALSE")
    }

    /// A text of ASCII alone is folded by `lower`: `translate` would search its table of all
    /// letters for each character.
    fn folded(&self, text: Sql) -> Sql {
        if self.encoded {
            return folded_by_character(&text);
        }
        let (capitals, small): (String, String) = folded_letters().unzip();
        let plain = text.clone().within("lower(", " COLLATE \"C\")");
        let mut sql = Sql::text("CASE WHEN octet_length(");
        sql.add(text.clone());
        sql.add(text.clone().within(") = char_length(", ") THEN "));
        sql.add(plain);
        sql.add(text.within(" ELSE translate(", ", "));
        sql.add(typed(Bind::Text(capitals), "::text"));
        sql.add(typed(Bind::Text(small), "::text").within(", ", ") END"));
        sql.within("(", ") COLLATE \"C\"")
    }

    fn like_folded(&self, folded: Sql, text: &str, place: TextMatch) -> Sql {
        if text.contains('\0') {
            return Sql::text("1 = 0");
        }
        let length = text.len();
        let text = if self.encoded {
            typed(Bind::Bytes(text.as_bytes().to_vec()), "::bytea")
        } else {
            typed(Bind::Text(text.to_owned()), "::text")
        };
        match place {
            TextMatch::Whole => Sql::joined([folded, text], " = "),
            TextMatch::Beginning if self.encoded => {
                let beginning = folded.within("substring(", &format!(" FROM 1 FOR {length})"));
                Sql::joined([beginning, text], " = ")
            }
            TextMatch::Anywhere if self.encoded => {
                Sql::joined([text, folded], " IN ").within("position(", ") > 0")
            }
            TextMatch::Beginning => Sql::joined([folded, text], ", ").within("starts_with(", ")"),
            TextMatch::Anywhere => Sql::joined([folded, text], ", ").within("strpos(", ") > 0"),
        }
    }

    fn count_value(&self, count: Sql) -> Sql {
        count.within("", "::numeric")
    }

    fn sum_value(&self, column: &Column, addend: Sql) -> Sql {
        match column.datatype {
            Datatype::Number => addend.within("SUM(", ")"),
            _ => addend.within("SUM(", ")::numeric"),
        }
    }

    fn mean_value(&self, column: &Column, addend: Sql) -> Sql {
        let mean = self.mean_order(column, addend);
        match column.datatype {
            Datatype::Number => mean,
            _ => mean.within("((", ") * 0.000001)"),
        }
    }

    fn extreme_value(&self, column: &Column, kind: &Kind, extreme: Sql) -> Sql {
        match (column.datatype, kind) {
            // A text key is in that form already.
            (Datatype::String | Datatype::Iri, _) => extreme,
            _ => self.operand(column, kind, extreme),
        }
    }
}

/// A folded text as bytes of UTF-8, character by character: an encoding that lacks some letters
/// cannot represent the table of all.
fn folded_by_character(text: &Sql) -> Sql {
    let list = |letters: Vec<String>| {
        typed(Bind::Text(letters.join(",")), "::text").within("string_to_array(", ", ',')")
    };
    let (capitals, small) = folded_bytes().unzip();
    let bytes = || text.clone().within("convert_to(", ", 'UTF8')");
    let mut sql = Sql::text("(CASE WHEN octet_length(");
    sql.add(bytes());
    sql.add(text.clone().within(") = char_length(", ") THEN "));
    sql.add(
        text.clone()
            .within("convert_to(lower(", " COLLATE \"C\"), 'UTF8')"),
    );
    sql.push(
        " ELSE (SELECT string_agg(coalesce(decode(m.small, 'hex'), convert_to(c.letter, 'UTF8')), \
         ''::bytea ORDER BY c.place) FROM unnest(string_to_array(",
    );
    sql.add(text.clone());
    sql.push(", NULL)) WITH ORDINALITY AS c(letter, place) LEFT JOIN unnest(");
    sql.add(Sql::joined([list(capitals), list(small)], ", "));
    sql.push(
        ") AS m(capital, small) ON m.capital = encode(convert_to(c.letter, 'UTF8'), 'hex')) END)",
    );
    sql
}
