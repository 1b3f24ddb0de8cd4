//! Messages of PostgreSQL's protocol, as far as they are looked at where they arrived.

use std::io;

use bytes::BytesMut;
use postgres_protocol::message::backend;
use tokio_postgres::error::SqlState;
use tokio_postgres::fallible_iterator::FallibleIterator as _;
use tokio_postgres::types::Type;

/// A tag, and a length that counts itself.
const HEAD: usize = 5;

/// The tag and the length of the message that these bytes begin with, if all of it is there.
#[inline]
pub(super) fn framed(bytes: &[u8]) -> io::Result<Option<(u8, usize)>> {
    let Some((head, _)) = bytes.split_first_chunk::<HEAD>() else {
        return Ok(None);
    };
    let [tag, length @ ..] = *head;
    let length = usize::try_from(i32::from_be_bytes(length)).map_err(|_| strange())? + 1;
    if length < HEAD {
        return Err(strange());
    }
    Ok((bytes.len() >= length).then_some((tag, length)))
}

/// What is said of bytes that are no message.
pub(super) fn strange() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the server's answer is no PostgreSQL message",
    )
}

/// A message from the server.
pub(super) struct Message<'a> {
    pub(super) body: &'a [u8],
    whole: &'a [u8],
}

impl<'a> Message<'a> {
    /// A message that is framed.
    pub(super) fn of(whole: &'a [u8]) -> Self {
        Self {
            body: whole.get(HEAD..).unwrap_or_default(),
            whole,
        }
    }

    fn parsed(&self) -> io::Result<backend::Message> {
        backend::Message::parse(&mut BytesMut::from(self.whole))?.ok_or_else(strange)
    }

    /// What the columns of a statement hold.
    pub(super) fn columns(&self) -> io::Result<Vec<Type>> {
        let backend::Message::RowDescription(described) = self.parsed()? else {
            return Err(strange());
        };
        // What is not known here is read as it was sent.
        let held = |oid| Type::from_oid(oid).unwrap_or(Type::BYTEA);
        described
            .fields()
            .map(|field| Ok(held(field.type_oid())))
            .collect()
    }

    /// The SQLSTATE of a failure, and the server's words for it.
    pub(super) fn failure(&self) -> io::Result<(SqlState, String)> {
        let backend::Message::ErrorResponse(said) = self.parsed()? else {
            return Err(strange());
        };
        let (mut code, mut message) = (SqlState::INTERNAL_ERROR, String::new());
        let mut fields = said.fields();
        while let Some(field) = fields.next()? {
            let value = String::from_utf8_lossy(field.value_bytes());
            match field.type_() {
                b'C' => code = SqlState::from_code(&value),
                b'M' => message = value.into_owned(),
                _ => {}
            }
        }
        Ok((code, message))
    }
}

/// The values of a row, one after the other.
#[derive(Debug, Clone, Copy)]
pub(super) struct DataRow<'a> {
    columns: usize,
    rest: &'a [u8],
}

impl<'a> DataRow<'a> {
    pub(super) fn of(body: &'a [u8]) -> io::Result<Self> {
        let (columns, rest) = body.split_first_chunk::<2>().ok_or_else(strange)?;
        Ok(Self {
            columns: u16::from_be_bytes(*columns).into(),
            rest,
        })
    }

    /// How many there are.
    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    /// How many bytes they take.
    pub(super) fn bytes(&self) -> usize {
        self.rest.len()
    }

    /// The next value as it was sent; `None` for NULL.
    #[inline]
    pub(super) fn value(&mut self) -> io::Result<Option<&'a [u8]>> {
        let (length, rest) = self.rest.split_first_chunk::<4>().ok_or_else(strange)?;
        let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
            self.rest = rest;
            return Ok(None);
        };
        let (value, rest) = rest.split_at_checked(length).ok_or_else(strange)?;
        self.rest = rest;
        Ok(Some(value))
    }
}
