//! The SQL functions of ours that statements call.
//!
//! They are deterministic, cannot be called from a schema, and fail for a malformed value rather
//! than compare it as something else.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::functions::{Aggregate, Context, FunctionFlags};
use rusqlite::types::{Value as SqlValue, ValueRef};
use rusqlite::{Connection, Error, Result};
use wayleave_model::mapping::Datatype;
use wayleave_plan::calendar::{Calendar, UnknownZone};
use wayleave_plan::plan::Granularity;
use wayleave_plan::value::{Exact, PREVIEW_CHARACTERS, Value, average, fold, rounded};

use super::dialect::functions;
use super::dialect::program::ExactProgram;
use super::values::cell;
use crate::compile::PREVIEW as BEGINNING;
use crate::decimal_key;
use crate::values::{Cell, datetime, decimal, scalar, text};

const FLAGS: FunctionFlags = FunctionFlags::SQLITE_UTF8
    .union(FunctionFlags::SQLITE_DETERMINISTIC)
    .union(FunctionFlags::SQLITE_DIRECTONLY);

/// Prefix of the error for a malformed value; the datatype follows.
pub(super) const MALFORMED: &str = "wayleave: not of datatype ";

/// Error of a statement that cannot decide whether a row matches.
pub(super) const UNDECIDED: &str = "wayleave: a value is not of its datatype";

/// Registers both forms of a function. With one argument it fails for a malformed value, or returns
/// NULL while `lenient` is set; with two it returns the second one instead.
fn register_read(
    connection: &Connection,
    lenient: &Arc<AtomicBool>,
    name: &str,
    datatype: Datatype,
    read: fn(Cell<'_>) -> Option<SqlValue>,
) -> Result<()> {
    let is_lenient = Arc::clone(lenient);
    connection.create_scalar_function(name, 1, FLAGS, move |call| {
        or_null(convert(call, datatype, read), &is_lenient)
    })?;
    connection.create_scalar_function(name, 2, FLAGS, move |call| {
        let held = cell(call.get_raw(0));
        match held {
            Cell::Null => Ok(SqlValue::Null),
            held => read(held).map_or_else(|| call.get(1), Ok),
        }
    })
}

/// The number of characters that a value is shown with, and the first of them.
fn preview(call: &Context<'_>) -> Result<String> {
    let most = usize::try_from(PREVIEW_CHARACTERS).unwrap_or(usize::MAX);
    let (characters, start) = match cell(call.get_raw(0)) {
        Cell::Text(text) => (text.chars().count(), text.chars().take(most).collect()),
        Cell::Bytes(bytes) => {
            // Two digits for each byte, after `\\x`.
            let shown = bytes.get(..most / 2 - 1).unwrap_or(&bytes);
            let start =
                text(Cell::Bytes(shown.into())).ok_or_else(|| malformed(Datatype::String))?;
            (2 + 2 * bytes.len(), start.to_string())
        }
        other => {
            let start: String = text(other)
                .ok_or_else(|| malformed(Datatype::String))?
                .into();
            (start.chars().count(), start)
        }
    };
    Ok(format!("{BEGINNING}{characters}:{start}"))
}

/// Whether a value other than NULL is of the datatype that a word names.
fn fits(call: &Context<'_>) -> Result<bool> {
    let datatype = Datatype::from_word(word(call, 1)?).ok_or_else(unknown_word)?;
    Ok(match cell(call.get_raw(0)) {
        Cell::Null => false,
        held => scalar(datatype, held).is_some(),
    })
}

/// Registers all functions on a session. While `lenient` is set, those that convert or compute
/// return NULL for a malformed value.
pub(crate) fn register(connection: &Connection, lenient: &Arc<AtomicBool>) -> Result<()> {
    let flags = FLAGS;
    let is_lenient = Arc::clone(lenient);
    connection.create_scalar_function(functions::TEXT, 1, flags, move |call| {
        let value = convert(call, Datatype::String, |cell| text(cell).map(String::from));
        or_null(value, &is_lenient)
    })?;
    let boolean = |cell: Cell<'_>| match scalar(Datatype::Boolean, cell) {
        Some(Value::Boolean(boolean)) => Some(SqlValue::Integer(i64::from(boolean))),
        _ => None,
    };
    let integer = |cell: Cell<'_>| match scalar(Datatype::Integer, cell) {
        Some(Value::Integer(integer)) => Some(
            i64::try_from(integer)
                .map_or_else(|_| SqlValue::Text(integer.to_string()), SqlValue::Integer),
        ),
        _ => None,
    };
    let number = |cell: Cell<'_>| match scalar(Datatype::Number, cell) {
        Some(Value::Number(number)) => Some(SqlValue::Real(number)),
        _ => None,
    };
    let micros = |cell: Cell<'_>| datetime(&cell).map(SqlValue::Integer);
    let key = |cell: Cell<'_>| decimal(cell).map(|it| SqlValue::Blob(decimal_key::encode(&it)));
    let register = |name: &str, datatype, read: fn(Cell<'_>) -> Option<SqlValue>| {
        register_read(connection, lenient, name, datatype, read)
    };
    register(functions::BOOLEAN, Datatype::Boolean, boolean)?;
    register(functions::INTEGER, Datatype::Integer, integer)?;
    register(functions::NUMBER, Datatype::Number, number)?;
    register(functions::DATETIME, Datatype::Datetime, micros)?;
    register(functions::DECIMAL, Datatype::Decimal, key)?;
    connection.create_scalar_function(functions::PREVIEW, 1, flags, preview)?;
    connection.create_scalar_function(functions::FITS, 2, flags, fits)?;
    connection.create_scalar_function(functions::DECIDED, 1, flags, |call| {
        match call.get_raw(0) {
            ValueRef::Integer(0) => Ok(true),
            _ => Err(Error::UserFunctionError(UNDECIDED.into())),
        }
    })?;
    connection.create_scalar_function(functions::PERIOD, 3, flags, period)?;
    connection.create_scalar_function(functions::DATE_PERIOD, 2, flags, date_period)?;
    connection.create_scalar_function(functions::MEAN, 2, flags, mean)?;
    connection.create_scalar_function(functions::ROUNDED, 1, flags, |call| {
        Ok(call.get::<Option<f64>>(0)?.map(rounded))
    })?;
    connection.create_scalar_function(functions::FOLD, 1, flags, |call| {
        Ok(match cell(call.get_raw(0)) {
            Cell::Text(text) => Some(fold(&text)),
            _ => None,
        })
    })?;
    connection.create_scalar_function(functions::FINITE, 1, flags, |call| {
        let number = call.get::<Option<f64>>(0)?;
        Ok(number.filter(|it| it.is_finite()))
    })?;
    let is_lenient = Arc::clone(lenient);
    connection.create_scalar_function(functions::COMPUTE, -1, flags, move |call| {
        or_null(compute(call), &is_lenient)
    })?;
    connection.create_aggregate_function(functions::SUM, 1, flags, Sum)
}

/// Runs a program of exact arithmetic over its arguments.
fn compute(call: &Context<'_>) -> Result<Option<SqlValue>> {
    // The program is a constant of the statement, so it is parsed once.
    let steps = call.get_or_create_aux(0, |program| -> std::result::Result<_, &'static str> {
        let program = program.as_str().ok().and_then(ExactProgram::read);
        program.ok_or("no program of exact arithmetic")
    })?;
    let argument = |place: usize| match call.get_raw(place + 1) {
        ValueRef::Null => Ok(None),
        ValueRef::Integer(integer) => Ok(Some(Exact::new(i128::from(integer), 0))),
        // The minimum or maximum of decimals that SQLite does not store as numbers is a key.
        ValueRef::Blob(bytes) => {
            let exact = decimal_key::decode(bytes).and_then(|text| text.parse().ok());
            exact.map(Some).ok_or_else(|| malformed(Datatype::Decimal))
        }
        other => exact(cell(other)).map(Some),
    };
    let result = steps.run(argument)?.map(|it| it.to_string());
    Ok(result.map(|text| match text.parse::<i64>() {
        Ok(integer) => SqlValue::Integer(integer),
        Err(_) => SqlValue::Text(text),
    }))
}

fn exact(cell: Cell<'_>) -> Result<Exact> {
    let exact = decimal(cell).and_then(|text| text.parse().ok());
    exact.ok_or_else(|| malformed(Datatype::Decimal))
}

fn malformed(datatype: Datatype) -> Error {
    Error::UserFunctionError(format!("{MALFORMED}{datatype}").into())
}

fn or_null<T>(value: Result<Option<T>>, is_lenient: &AtomicBool) -> Result<Option<T>> {
    match value {
        Err(_) if is_lenient.load(Ordering::Relaxed) => Ok(None),
        value => value,
    }
}

/// Applies a conversion to one value; NULL stays NULL.
fn convert<T>(
    call: &Context<'_>,
    datatype: Datatype,
    read: impl Fn(Cell<'_>) -> Option<T>,
) -> Result<Option<T>> {
    match cell(call.get_raw(0)) {
        Cell::Null => Ok(None),
        held => read(held).map(Some).ok_or_else(|| malformed(datatype)),
    }
}

/// The granularity that a word names, as the dialect writes it.
fn granularity(word: &str) -> Result<Granularity> {
    Granularity::from_word(word).ok_or_else(unknown_word)
}

/// A word that the dialect writes for an argument.
fn word<'a>(call: &'a Context<'_>, place: usize) -> Result<&'a str> {
    Ok(call.get_raw(place).as_str()?)
}

fn unknown_word() -> Error {
    Error::UserFunctionError("a statement of ours has an unknown word".into())
}

fn period(call: &Context<'_>) -> Result<Option<i64>> {
    let Some(micros) = call.get::<Option<i64>>(0)? else {
        return Ok(None);
    };
    // The zone is a constant of the statement, so it is looked up once.
    let calendar = call.get_or_create_aux(2, |zone| -> std::result::Result<_, UnknownZone> {
        Calendar::new(zone.as_str().unwrap_or_default())
    })?;
    let granularity = granularity(word(call, 1)?)?;
    Ok(number(
        &calendar.period(&Value::Datetime(micros), granularity),
    ))
}

fn date_period(call: &Context<'_>) -> Result<Option<i64>> {
    let date = convert(call, Datatype::Date, |cell| scalar(Datatype::Date, cell));
    let Some(date) = date? else {
        return Ok(None);
    };
    // A date is the same in every zone.
    let calendar = Calendar::new("UTC").map_err(|error| Error::UserFunctionError(error.into()))?;
    Ok(number(
        &calendar.period(&date, granularity(word(call, 1)?)?),
    ))
}

fn number(value: &Value) -> Option<i64> {
    match value {
        Value::Date(days) => Some(i64::from(*days)),
        Value::Datetime(micros) => Some(*micros),
        _ => None,
    }
}

fn mean(call: &Context<'_>) -> Result<Option<String>> {
    let Some(sum) = call.get::<Option<String>>(0)? else {
        return Ok(None);
    };
    let count = call.get::<i64>(1)?;
    let count = u64::try_from(count).map_err(|error| Error::UserFunctionError(error.into()))?;
    Ok(average(&Value::Decimal(sum.into()), count).to_text())
}

/// The exact sum; NULL when there are no values.
struct Sum;

impl Aggregate<Option<Exact>, Option<String>> for Sum {
    fn init(&self, _: &mut Context<'_>) -> Result<Option<Exact>> {
        Ok(None)
    }

    fn step(&self, call: &mut Context<'_>, total: &mut Option<Exact>) -> Result<()> {
        let addend = match cell(call.get_raw(0)) {
            Cell::Null => return Ok(()),
            Cell::Integer(integer) => Exact::new(integer, 0),
            other => exact(other)?,
        };
        *total = Some(match total {
            Some(total) => total.add(&addend),
            None => addend,
        });
        Ok(())
    }

    fn finalize(
        &self,
        _: &mut Context<'_>,
        total: Option<Option<Exact>>,
    ) -> Result<Option<String>> {
        Ok(total.flatten().map(|total| total.to_string()))
    }
}
