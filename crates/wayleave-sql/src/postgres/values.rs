//! Decodes PostgreSQL's binary values, and encodes bound ones.

use std::error::Error;

use bytes::{BufMut, BytesMut};
use tokio_postgres::Row;
use tokio_postgres::types::{Format, FromSql, IsNull, ToSql, Type, to_sql_checked};
use wayleave_model::mapping::Datatype;
use wayleave_plan::plan::Column;
use wayleave_plan::value::{Value, decimal_from_text};
use wayleave_store::{OnMalformed, StoreError};

use crate::compile::{Bind, Output};
use crate::values::{self, Cell};

/// Days from 1970-01-01 to PostgreSQL's epoch, 2000-01-01.
const EPOCH_DAYS: i32 = 10_957;
const EPOCH_MICROS: i64 = EPOCH_DAYS as i64 * 86_400_000_000;

/// Decodes the rows of a statement. Inspects the type of a column once, not for every row.
pub(super) struct RowDecoder<'a> {
    outputs: &'a [Output<'a>],
    /// The types of the selected columns.
    types: &'a [Type],
    /// Each column with its fast path, where the answer consists of columns alone.
    columns: Option<Vec<(&'a Column, FastPath)>>,
    on_malformed: OnMalformed,
}

/// Decodes the most common types without an intermediate cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FastPath {
    Text,
    /// A text that may be only the beginning of a longer one.
    Preview,
    /// A value other than text that may be only the beginning of a longer one.
    PreviewOfOther,
    Decimal,
    Int4,
    Int8,
    Instant,
    /// No fast path.
    None,
}

impl FastPath {
    const fn is_preview(self) -> bool {
        matches!(self, Self::Preview | Self::PreviewOfOther)
    }

    fn new(column: &Column, of: &Type) -> Self {
        let is_text = matches!(*of, Type::TEXT | Type::VARCHAR);
        match (column.datatype, of) {
            _ if column.many => Self::None,
            (Datatype::String | Datatype::Iri, _) if is_text => Self::Text,
            (Datatype::Decimal, _) if is_text => Self::Decimal,
            (Datatype::Integer, &Type::INT4) => Self::Int4,
            (Datatype::Integer, &Type::INT8) => Self::Int8,
            (Datatype::Datetime, &Type::TIMESTAMP | &Type::TIMESTAMPTZ) => Self::Instant,
            _ => Self::None,
        }
    }

    /// The value; `None` where the general path must decode it.
    fn take(self, raw: &[u8]) -> Option<Value> {
        match self {
            Self::Preview if raw.first() == Some(&1) => None,
            Self::Text | Self::Preview => {
                let text = std::str::from_utf8(raw).ok()?;
                Some(Value::Text(text.into()))
            }
            Self::Decimal => decimal_from_text(std::str::from_utf8(raw).ok()?).map(Value::Decimal),
            Self::Int4 => {
                let integer = i32::from_be_bytes(raw.try_into().ok()?);
                Some(Value::Integer(integer.into()))
            }
            Self::Int8 => {
                let integer = i64::from_be_bytes(raw.try_into().ok()?);
                Some(Value::Integer(integer.into()))
            }
            Self::Instant => instant(i64::from_be_bytes(raw.try_into().ok()?)).map(Value::Datetime),
            Self::PreviewOfOther | Self::None => None,
        }
    }
}

impl<'a> RowDecoder<'a> {
    pub(super) fn new(
        outputs: &'a [Output<'a>],
        types: &'a [Type],
        on_malformed: OnMalformed,
    ) -> Result<Self, StoreError> {
        // The driver compares each row with the types.
        if types.len() != outputs.iter().map(Output::width).sum::<usize>() {
            return Err(values::unexpected_answer());
        }
        let column = |(output, of): (&Output<'a>, &Type)| match output {
            Output::Column(column) => Some((*column, FastPath::new(column, of))),
            Output::Preview(column) if column.datatype.is_text() => {
                Some((*column, FastPath::Preview))
            }
            Output::Preview(column) => Some((*column, FastPath::PreviewOfOther)),
            _ => None,
        };
        Ok(Self {
            outputs,
            types,
            columns: {
                let shown = outputs
                    .iter()
                    .zip(types)
                    .filter(|(output, _)| !matches!(output, Output::Witness(_)));
                shown.map(column).collect()
            },
            on_malformed,
        })
    }

    /// The approximate size of a row, where it is known without inspecting a value.
    pub(super) fn row_bytes(&self, row: &Row) -> Option<usize> {
        let columns = self.columns.as_ref()?;
        let is_flat = |(_, fast_path): &(&Column, FastPath)| *fast_path != FastPath::None;
        columns.iter().all(is_flat).then(|| row.raw_size_bytes())
    }

    /// Decodes a row.
    pub(super) fn decode(&self, row: &Row) -> Result<Vec<Value>, StoreError> {
        let cells = self.types.iter().zip(RawValue::all(row));
        let Some(columns) = &self.columns else {
            let cells = cells.map(|(of, raw)| cell(of, raw));
            return values::row(self.outputs, cells, self.on_malformed);
        };
        let mut read = Vec::with_capacity(columns.len());
        for ((column, fast_path), (of, raw)) in columns.iter().zip(cells) {
            let value = match raw {
                None => Some(Value::Null),
                Some(raw) => fast_path.take(raw),
            };
            read.push(match value {
                Some(value) => value,
                None if fast_path.is_preview() => {
                    values::decode_preview(column, cell(of, raw), self.on_malformed)?
                }
                None => values::decode_column(column, cell(of, raw), self.on_malformed)?,
            });
        }
        Ok(read)
    }
}

/// The bytes of a value of any type, as the server sent them; `None` for NULL.
pub(super) struct RawValue<'a>(Option<&'a [u8]>);

impl<'a> RawValue<'a> {
    /// The values of a row, in order.
    pub(super) fn all(row: &'a Row) -> impl Iterator<Item = Option<&'a [u8]>> {
        // Any type is accepted, and the driver has compared the number of values with the columns.
        (0..row.len()).map(|place| row.get::<_, Self>(place).0)
    }
}

impl<'a> FromSql<'a> for RawValue<'a> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(Some(raw)))
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(None))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// Microseconds since 1970 from PostgreSQL's since 2000. The minimum and the maximum stand for
/// infinity, which is not an instant.
fn instant(since_2000: i64) -> Option<i64> {
    since_2000
        .checked_add(EPOCH_MICROS)
        .filter(|_| since_2000 != i64::MIN)
}

/// Converts a value from the server's bytes to a cell.
fn cell<'a>(of: &Type, raw: Option<&'a [u8]>) -> Cell<'a> {
    match raw {
        Some(raw) => Cell::from_sql(of, raw).unwrap_or(Cell::Malformed),
        None => Cell::Null,
    }
}

impl<'a> FromSql<'a> for Cell<'a> {
    fn from_sql(of: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(match *of {
            Type::BOOL => Self::Boolean(bool::from_sql(of, raw)?),
            Type::INT2 => Self::Integer(i16::from_sql(of, raw)?.into()),
            Type::INT4 => Self::Integer(i32::from_sql(of, raw)?.into()),
            Type::INT8 => Self::Integer(i64::from_sql(of, raw)?.into()),
            Type::FLOAT4 => Self::Real(values::from_single(f32::from_sql(of, raw)?)),
            Type::FLOAT8 => Self::Real(f64::from_sql(of, raw)?),
            Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::UNKNOWN => {
                Self::Text(<&str>::from_sql(of, raw)?.into())
            }
            Type::DATE => {
                let days = i32::from_be_bytes(raw.try_into()?);
                // The minimum and the maximum stand for infinity, which is not a day.
                match days.checked_add(EPOCH_DAYS) {
                    Some(days) if raw != i32::MIN.to_be_bytes() => Self::Date(days),
                    _ => Self::Malformed,
                }
            }
            Type::TIMESTAMP | Type::TIMESTAMPTZ => {
                instant(i64::from_be_bytes(raw.try_into()?)).map_or(Self::Malformed, Self::Datetime)
            }
            Type::TEXT_ARRAY => Self::Texts(Vec::from_sql(of, raw)?),
            _ => Self::Bytes(raw.into()),
        })
    }

    fn accepts(_: &Type) -> bool {
        // Types not decoded above are kept as bytes.
        true
    }
}

impl ToSql for Bind {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Text(text) | Self::Literal(text) => out.put_slice(text.as_bytes()),
            Self::Bytes(bytes) => out.put_slice(bytes),
            Self::Integer(integer) => out.put_i64(*integer),
            Self::Unsigned(integer) => out.put_i64(i64::try_from(*integer)?),
            Self::Real(real) => out.put_f64(*real),
            Self::Boolean(boolean) => out.put_u8(u8::from(*boolean)),
            Self::Date(days) => out.put_i32(days.saturating_sub(EPOCH_DAYS)),
            Self::Datetime(micros) => out.put_i64(micros.saturating_sub(EPOCH_MICROS)),
        }
        Ok(IsNull::No)
    }

    fn encode_format(&self, _: &Type) -> Format {
        match self {
            // The server reads it by the rules of the column's type.
            Self::Literal(_) => Format::Text,
            _ => Format::Binary,
        }
    }

    fn accepts(_: &Type) -> bool {
        // Our statements name the type of every value they bind.
        true
    }

    to_sql_checked!();
}
