//! PostgreSQL's binary values as cells, and bound values as PostgreSQL's.

use std::error::Error;

use bytes::{BufMut, BytesMut};
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

use crate::compile::Bind;
use crate::values::Cell;

/// PostgreSQL counts from 2000-01-01.
const EPOCH_DAYS: i32 = 10_957;
const EPOCH_MICROS: i64 = EPOCH_DAYS as i64 * 86_400_000_000;

/// The cells of a row.
pub(super) fn cells(row: &Row) -> impl Iterator<Item = Cell<'_>> {
    (0..row.len()).map(|index| match row.try_get::<_, Option<Cell<'_>>>(index) {
        Ok(cell) => cell.unwrap_or(Cell::Null),
        Err(_) => Cell::Strange,
    })
}

impl<'a> FromSql<'a> for Cell<'a> {
    fn from_sql(of: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(match *of {
            Type::BOOL => Self::Boolean(bool::from_sql(of, raw)?),
            Type::INT2 => Self::Integer(i16::from_sql(of, raw)?.into()),
            Type::INT4 => Self::Integer(i32::from_sql(of, raw)?.into()),
            Type::INT8 => Self::Integer(i64::from_sql(of, raw)?.into()),
            Type::FLOAT4 => Self::Real(f32::from_sql(of, raw)?.into()),
            Type::FLOAT8 => Self::Real(f64::from_sql(of, raw)?),
            Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::UNKNOWN => {
                Self::Text(<&str>::from_sql(of, raw)?.into())
            }
            Type::DATE => {
                let days = i32::from_be_bytes(raw.try_into()?);
                // The least and the greatest stand for infinity, which is no day.
                match days.checked_add(EPOCH_DAYS) {
                    Some(days) if raw != i32::MIN.to_be_bytes() => Self::Date(days),
                    _ => Self::Strange,
                }
            }
            Type::TIMESTAMP | Type::TIMESTAMPTZ => {
                let micros = i64::from_be_bytes(raw.try_into()?);
                match micros.checked_add(EPOCH_MICROS) {
                    Some(instant) if micros != i64::MIN => Self::Datetime(instant),
                    _ => Self::Strange,
                }
            }
            Type::TEXT_ARRAY => Self::Texts(Vec::from_sql(of, raw)?),
            _ => Self::Bytes(raw.into()),
        })
    }

    fn accepts(_: &Type) -> bool {
        // What is not read above is kept as bytes.
        true
    }
}

impl ToSql for Bind {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Text(text) => out.put_slice(text.as_bytes()),
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

    fn accepts(_: &Type) -> bool {
        // Statements of ours name the type of every value they bind.
        true
    }

    to_sql_checked!();
}
