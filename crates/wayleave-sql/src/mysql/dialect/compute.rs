//! Arithmetic of the MySQL and MariaDB dialect.

use wayleave_model::expression::{Arithmetic, Formula, QUOTIENT_DIGITS};
use wayleave_model::mapping::{AggregateOp, Datatype};
use wayleave_plan::plan::{Column, TextMatch};
use wayleave_plan::value::Value;
use wayleave_store::StoreError;

use super::super::digits::{self, Digits, MAX_DIGITS, MAX_SCALE, QUOTIENT_SCALE};
use super::super::repertoire::Repertoire;
use super::super::types::Kind;
use super::{MysqlDialect, bytes_operand};
use crate::compile::compute::{Compute, DigitLimit, KindLookup, Magnitude, folded_bytes};
use crate::compile::dialect::Dialect;
use crate::compile::formula::sign;
use crate::compile::sql::{Bind, Sql};

/// Matches a text with a character that a server may fold differently from plans: any outside the
/// folded blocks and some blocks without capitals.
const FOLDED_DIFFERENTLY: &str = r"(?-i)[^\x{0}-\x{12F}\x{131}-\x{17F}\x{374}-\x{3CE}\x{400}-\x{45F}\x{590}-\x{FFF}\x{1E00}-\x{1E95}\x{1EA0}-\x{1EF9}\x{2000}-\x{20CF}\x{3000}-\x{9FFF}\x{AC00}-\x{D7A3}\x{1F300}-\x{1FAFF}]";

impl Compute for MysqlDialect {
    type Kind = Kind;

    fn addend(&self, column: &Column, kind: &Kind, name: Sql) -> Sql {
        match kind {
            Kind::Single => shortest(&name),
            _ => self.key(column, kind, name),
        }
    }

    fn sum(&self, _column: &Column, addend: Sql) -> Sql {
        addend.within("SUM(", ")")
    }

    fn sum_order(&self, _column: &Column, addend: Sql) -> Sql {
        addend.within("SUM(", ")")
    }

    /// Rounded half away from zero to six digits, in whole millionths. The dividend is a multiple
    /// of the divisor, because quotients are truncated.
    fn mean_order(&self, column: &Column, addend: Sql) -> Sql {
        if column.datatype == Datatype::Number {
            return addend.within("AVG(", ")");
        }
        let sum = addend.clone().within("SUM(", ")");
        let count = addend.within("COUNT(", ")");
        let twice = count.clone().within("(2 * ", ")");
        let scaled = Sql::joined([sum.clone().within("ABS(", ") * 2000000"), count], " + ");
        let rest = Sql::joined([scaled.clone(), twice.clone()], ", ").within("MOD(", ")");
        let whole = Sql::joined([scaled, rest], " - ").within("(", ")");
        let quotient = Sql::joined([whole, twice], " / ").within("(", ")");
        Sql::joined([sum.within("SIGN(", ")"), quotient], " * ")
    }

    fn computed_kind(&self, datatype: Datatype) -> Kind {
        match datatype {
            Datatype::Integer | Datatype::Decimal => Kind::Decimal(Digits::UNKNOWN),
            Datatype::Number => Kind::Float,
            Datatype::Boolean => Kind::Integer,
            Datatype::Date => Kind::Date,
            Datatype::Datetime => Kind::Datetime,
            Datatype::Json => Kind::Json,
            Datatype::String | Datatype::Iri => Kind::Text {
                by_code_point: None,
                repertoire: Repertoire::All,
                collation: String::new(),
            },
        }
    }

    fn formula_kind(
        &self,
        formula: &Formula<Column>,
        kinds: KindLookup<'_, Kind>,
    ) -> Result<Kind, StoreError> {
        match self.computed_kind(formula.datatype) {
            Kind::Decimal(_) => digits::digits(formula, kinds).map(Kind::Decimal),
            kind => Ok(kind),
        }
    }

    fn aggregate_kind(&self, op: AggregateOp, datatype: Datatype, kind: &Kind) -> Kind {
        match self.computed_kind(datatype) {
            Kind::Decimal(_) => Kind::Decimal(Digits::of_kind(kind).of_aggregate(op)),
            kind => kind,
        }
    }

    fn digit_limit(
        &self,
        formula: &Formula<Column>,
        kinds: KindLookup<'_, Kind>,
    ) -> Result<Option<DigitLimit>, StoreError> {
        digits::limit(formula, kinds)
    }

    fn limited(&self, limit: DigitLimit, [left, right]: [Sql; 2], value: Sql) -> Sql {
        let absolute = |it: Sql| it.within("ABS(", " + 0e0)");
        let magnitude = match limit.magnitude {
            Magnitude::Value => absolute(left),
            Magnitude::Sum => Sql::joined([absolute(left), absolute(right)], " + "),
            Magnitude::Product => {
                let factor = |it: Sql| absolute(it).within("GREATEST(", ", 1e0)");
                Sql::joined([factor(left), factor(right)], " * ")
            }
            Magnitude::Quotient => {
                let divided = absolute(left);
                let room = limit.exponent - (MAX_DIGITS - QUOTIENT_SCALE) + 1;
                let scaled = divided.clone().within("", &format!(" * 1e{room}"));
                let by = absolute(right).within("NULLIF(", ", 0)");
                let quotient = Sql::joined([divided, by], " / ");
                Sql::joined([scaled, quotient], ", ").within("GREATEST(", ")")
            }
        };
        let limit = format!(" >= 1e{})) WHEN 1 THEN ", limit.exponent);
        let mut sql = magnitude.within("(CASE EXP(20000 * (", &limit);
        sql.add(value);
        sql.push(" END)");
        sql
    }

    fn operand(&self, column: &Column, kind: &Kind, name: Sql) -> Sql {
        match column.datatype {
            Datatype::Integer => decimal(self.key(column, kind, name)),
            Datatype::String | Datatype::Iri => match kind {
                Kind::Binary | Kind::Bit => self.select(column, kind, name),
                _ => Self::text(name),
            },
            Datatype::Number => self.addend(column, kind, name),
            Datatype::Decimal | Datatype::Boolean => self.key(column, kind, name),
            Datatype::Date | Datatype::Datetime | Datatype::Json => name,
        }
    }

    fn constant(&self, datatype: Datatype, value: &Value) -> Sql {
        let decimal = |text: &str| {
            let scale = text.split_once('.').map_or(0, |(_, after)| after.len());
            let cast = format!(
                " AS DECIMAL({MAX_DIGITS}, {}))",
                scale.min(usize::from(MAX_SCALE))
            );
            Sql::bind(Bind::Text(text.to_owned())).within("CAST(", &cast)
        };
        match value {
            Value::Integer(integer) => decimal(&integer.to_string()),
            Value::Decimal(text) => decimal(text),
            Value::Text(text) => Self::text(Sql::bind(Bind::Text(text.to_string()))),
            Value::Number(number) => Sql::bind(Bind::Real(*number)),
            Value::Boolean(boolean) => Sql::bind(Bind::Integer(i64::from(*boolean))),
            Value::Date(days) => Sql::bind(Bind::Date(*days)).within("CAST(", " AS DATE)"),
            Value::Datetime(micros) => {
                Sql::bind(Bind::Datetime(*micros)).within("CAST(", " AS DATETIME(6))")
            }
            _ => Sql::text(match datatype {
                Datatype::Integer | Datatype::Decimal => "CAST(NULL AS DECIMAL(65, 0))",
                Datatype::Date => "CAST(NULL AS DATE)",
                Datatype::Datetime => "CAST(NULL AS DATETIME(6))",
                Datatype::String | Datatype::Iri => "CONVERT(NULL USING utf8mb4)",
                _ => "NULL",
            }),
        }
    }

    fn convert(&self, _from: Datatype, to: Datatype, value: Sql) -> Sql {
        match to {
            Datatype::Number => value.within("(", " + 0e0)"),
            Datatype::String => Self::text(value),
            _ => value,
        }
    }

    /// Quotients are truncated, so rounding one with more digits gives the rounded exact quotient.
    fn arithmetic(&self, datatype: Datatype, op: Arithmetic, left: Sql, right: Sql) -> Sql {
        if op != Arithmetic::Divide {
            return Sql::joined([left, right], sign(op)).within("(", ")");
        }
        let right = right.within("NULLIF(", ", 0)");
        if datatype == Datatype::Number {
            return Sql::joined([left, right], sign(op)).within("(", ")");
        }
        let left = left.within(
            "CAST(",
            &format!(" AS DECIMAL({MAX_DIGITS}, {QUOTIENT_SCALE}))"),
        );
        Sql::joined([left, right], sign(op)).within("ROUND(", &format!(", {QUOTIENT_DIGITS})"))
    }

    fn round(&self, value: Sql, digits: u8) -> Sql {
        value.within("ROUND(", &format!(", {digits})"))
    }

    fn concat(&self, parts: Vec<Sql>) -> Sql {
        Sql::joined(parts, ", ").within("CONCAT(", ")")
    }

    fn truth(&self) -> (&'static str, &'static str) {
        ("1", "0")
    }

    /// The server folds letters that plans do not, and which ones depends on its version. A text
    /// that may hold one has its letters replaced one by one, as bytes.
    fn folded(&self, text: Sql) -> Sql {
        let mut bytes = text.clone().within("CAST(", " AS BINARY)");
        for (capital, small) in folded_bytes() {
            let pair = format!(", 0x{capital}, 0x{small})");
            bytes = bytes.within("REPLACE(", &pair);
        }
        let mut sql = text
            .clone()
            .within("(CASE WHEN LENGTH(", ") = CHAR_LENGTH(");
        sql.add(text.clone().within("", ") OR "));
        sql.add(text.clone().within("", " NOT REGEXP "));
        sql.add(Sql::bind(Bind::Text(FOLDED_DIFFERENTLY.to_owned())));
        sql.add(text.within(" THEN CAST(LOWER(", ") AS BINARY) ELSE "));
        sql.add(bytes.within("", " END)"));
        sql
    }

    fn like_folded(&self, folded: Sql, text: &str, place: TextMatch) -> Sql {
        let text = bytes_operand(text);
        match place {
            TextMatch::Whole => Sql::joined([folded, text], " = "),
            TextMatch::Beginning => Sql::joined([text, folded], ", ").within("LOCATE(", ") = 1"),
            TextMatch::Anywhere => Sql::joined([text, folded], ", ").within("LOCATE(", ") > 0"),
        }
    }

    fn count_value(&self, count: Sql) -> Sql {
        decimal(count)
    }

    fn sum_value(&self, column: &Column, addend: Sql) -> Sql {
        self.sum(column, addend)
    }

    fn mean_value(&self, column: &Column, addend: Sql) -> Sql {
        let mean = self.mean_order(column, addend);
        match column.datatype {
            Datatype::Number => mean,
            _ => mean.within("((", ") * 0.000001)"),
        }
    }

    fn extreme_value(&self, column: &Column, _kind: &Kind, extreme: Sql) -> Sql {
        match column.datatype {
            Datatype::String | Datatype::Iri => Self::text(extreme),
            Datatype::Integer => decimal(extreme),
            _ => extreme,
        }
    }
}

/// An integer as a decimal: a computed value may exceed machine integers.
fn decimal(integer: Sql) -> Sql {
    integer.within("CAST(", &format!(" AS DECIMAL({MAX_DIGITS}, 0))"))
}

/// The number that a single-precision float stands for: the float rounded to the fewest digits that
/// are still nearest to it. Six digits are never too many and nine are always enough. The server's
/// own text has no more than six.
fn shortest(name: &Sql) -> Sql {
    let rounded = |digits: u8| {
        let mut sql = name.clone().within("ROUND(", "");
        sql.push(&format!(", {} - FLOOR(LOG10(ABS(", digits - 1));
        sql.add(name.clone().within("", "))))"));
        sql
    };
    let mut sql = Sql::text("CASE");
    for digits in 6..9 {
        sql.add(name.clone().within(" WHEN ", " = CAST("));
        sql.add(rounded(digits));
        sql.add(rounded(digits).within(" AS FLOAT) THEN ", ""));
    }
    // The logarithm of zero is NULL.
    sql.add(rounded(9).within(" ELSE COALESCE(", ", "));
    sql.add(name.clone().within("", ") END"));
    sql
}
