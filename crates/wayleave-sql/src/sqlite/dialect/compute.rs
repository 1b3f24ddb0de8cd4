//! Arithmetic of the SQLite dialect.

use wayleave_model::expression::{Arithmetic, Formula, Node};
use wayleave_model::mapping::Datatype;
use wayleave_plan::plan::{Column, Comparison, TextMatch};
use wayleave_plan::value::Value;
use wayleave_store::StoreError;

use super::super::types::Affinity;
use super::expression::{call, unless_typed};
use super::program::Program;
use super::{SqliteDialect, functions};
use crate::compile::compute::Compute;
use crate::compile::dialect::{ComparisonSql, Dialect};
use crate::compile::formula::sign;
use crate::compile::sql::{Bind, Sql};

impl SqliteDialect {
    /// Compares the result of a formula with a value.
    pub(super) fn compare_computed(
        &self,
        column: &Column,
        name: Sql,
        comparison: Comparison,
        value: &Value,
    ) -> ComparisonSql {
        let left = self.key(column, &Affinity::Computed, name);
        let right = match value {
            Value::Null
            | Value::Json(_)
            | Value::List(_)
            | Value::Preview(_)
            | Value::Malformed => return ComparisonSql::Never,
            value => self.constant(column.datatype, value),
        };
        let right = match column.datatype {
            Datatype::Integer | Datatype::Decimal => call(functions::DECIMAL, right),
            _ => right,
        };
        ComparisonSql::with(left, comparison, right)
    }
}

impl Compute for SqliteDialect {
    type Kind = Affinity;

    fn addend(&self, column: &Column, kind: &Affinity, name: Sql) -> Sql {
        match column.datatype {
            _ if *kind == Affinity::Computed => name,
            // A cast would accept any text as a number, and a sum any number as an integer.
            Datatype::Number => unless_typed("real", functions::NUMBER, name),
            Datatype::Integer => unless_typed("integer", functions::INTEGER, name),
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

    fn computed_kind(&self, _: Datatype) -> Affinity {
        Affinity::Computed
    }

    fn operand(&self, column: &Column, kind: &Affinity, name: Sql) -> Sql {
        match column.datatype {
            Datatype::String | Datatype::Iri if kind.is_text() => name,
            Datatype::String | Datatype::Iri => call(functions::TEXT, name),
            Datatype::Number if *kind == Affinity::Real => name,
            Datatype::Number => call(functions::NUMBER, name),
            Datatype::Boolean => call(functions::BOOLEAN, name),
            Datatype::Datetime => call(functions::DATETIME, name),
            // Exact numbers are decoded by the function that computes with them.
            Datatype::Integer | Datatype::Decimal | Datatype::Date | Datatype::Json => name,
        }
    }

    fn constant(&self, _: Datatype, value: &Value) -> Sql {
        match value {
            Value::Integer(integer) => match i64::try_from(*integer) {
                Ok(integer) => Sql::bind(Bind::Integer(integer)),
                Err(_) => Sql::bind(Bind::Text(integer.to_string())),
            },
            Value::Decimal(text) | Value::Text(text) => Sql::bind(Bind::Text(text.to_string())),
            Value::Number(number) => Sql::bind(Bind::Real(*number)),
            Value::Boolean(boolean) => Sql::bind(Bind::Integer(i64::from(*boolean))),
            Value::Datetime(micros) => Sql::bind(Bind::Integer(*micros)),
            Value::Date(_) => value
                .to_text()
                .map_or_else(|| Sql::text("NULL"), |text| Sql::bind(Bind::Text(text))),
            _ => Sql::text("NULL"),
        }
    }

    fn convert(&self, _from: Datatype, to: Datatype, value: Sql) -> Sql {
        match to {
            Datatype::Number => call(functions::NUMBER, value),
            Datatype::String => call(functions::TEXT, value),
            _ => value,
        }
    }

    /// Float arithmetic; exact arithmetic is in [`exact`](Self::exact).
    fn arithmetic(&self, _: Datatype, op: Arithmetic, left: Sql, right: Sql) -> Sql {
        let right = match op {
            Arithmetic::Divide => right.within("NULLIF(", ", 0)"),
            _ => right,
        };
        let result = Sql::joined([left, right], sign(op)).within("(", ")");
        call(functions::FINITE, result)
    }

    fn round(&self, value: Sql, digits: u8) -> Sql {
        let program = Sql::bind(Bind::Text(format!("0 r{digits}")));
        call(functions::COMPUTE, Sql::joined([program, value], ", "))
    }

    fn truth(&self) -> (&'static str, &'static str) {
        ("1", "0")
    }

    fn exact(
        &self,
        formula: &Formula<Column>,
        part: &mut dyn FnMut(&Formula<Column>) -> Result<Sql, StoreError>,
    ) -> Result<Option<Sql>, StoreError> {
        let is_exact = matches!(formula.datatype, Datatype::Integer | Datatype::Decimal);
        let computes = matches!(
            formula.node,
            Node::Arithmetic { .. } | Node::Round { .. } | Node::Convert(_)
        );
        if !is_exact || !computes {
            return Ok(None);
        }
        let mut program = Program::default();
        program.add(formula, part)?;
        Ok(Some(program.call()))
    }

    fn folded(&self, text: Sql) -> Sql {
        call(functions::FOLD, text)
    }

    fn like_folded(&self, folded: Sql, text: &str, place: TextMatch) -> Sql {
        let text = Sql::bind(Bind::Text(text.to_owned()));
        match place {
            TextMatch::Whole => Sql::joined([folded, text], " = ").within("", " COLLATE BINARY"),
            TextMatch::Beginning => Sql::joined([folded, text], ", ").within("instr(", ") = 1"),
            TextMatch::Anywhere => Sql::joined([folded, text], ", ").within("instr(", ") > 0"),
        }
    }

    fn count_value(&self, count: Sql) -> Sql {
        count
    }

    fn sum_value(&self, column: &Column, addend: Sql) -> Sql {
        let sum = self.sum(column, addend);
        match column.datatype {
            Datatype::Number => call(functions::ROUNDED, sum),
            _ => sum,
        }
    }

    fn mean_value(&self, column: &Column, addend: Sql) -> Sql {
        if column.datatype == Datatype::Number {
            return call(functions::ROUNDED, addend.within("AVG(", ")"));
        }
        let count = addend.clone().within("COUNT(", ")");
        let sum = self.sum(column, addend);
        call(functions::MEAN, Sql::joined([sum, count], ", "))
    }

    fn extreme_value(&self, column: &Column, kind: &Affinity, extreme: Sql) -> Sql {
        match column.datatype {
            Datatype::Datetime if *kind == Affinity::Computed => extreme,
            Datatype::Datetime if !self.is_raw(column, *kind) => extreme,
            Datatype::Datetime => call(functions::DATETIME, extreme),
            // The minimum or maximum is a decimal key there, which a program decodes.
            Datatype::Integer | Datatype::Decimal if !kind.holds_numbers() => {
                let program = Sql::bind(Bind::Text("0".to_owned()));
                call(functions::COMPUTE, Sql::joined([program, extreme], ", "))
            }
            _ => extreme,
        }
    }
}
