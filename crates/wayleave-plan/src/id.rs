//! The self-contained id of a record, `connection_id/stream:key`.
//!
//! The values of a composite key are joined by commas. Within a value `/`, `:`, `,`, `%`, quotes,
//! backslashes, white space and control characters are percent-encoded, so an id is one word and
//! parses in only one way.

use std::fmt;

use wayleave_model::names::NameKind;

use crate::value::Value;

/// The id of a record.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RecordId {
    /// The connection.
    pub connection_id: String,
    /// The stream.
    pub stream: String,
    /// The values of the key as text, in key order; never empty.
    pub key: Vec<String>,
}

/// The error for a text that is not a record id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an id is `connection_id/stream:key`")]
pub struct ParseRecordIdError;

impl RecordId {
    /// The id of the record with these key values, as text.
    pub(crate) fn text_of<'a>(
        connection_id: &str,
        stream: &str,
        key: impl IntoIterator<Item = &'a Value>,
    ) -> String {
        let mut text = String::with_capacity(connection_id.len() + stream.len() + 24);
        text.push_str(connection_id);
        text.push('/');
        text.push_str(stream);
        text.push(':');
        push_key(&mut text, key);
        text
    }

    /// The key with these values, as written in an id.
    pub(crate) fn key_text<'a>(key: impl IntoIterator<Item = &'a Value>) -> String {
        let mut text = String::new();
        push_key(&mut text, key);
        text
    }

    /// Whether an id spells a key value differently from results, because a character is
    /// percent-encoded.
    pub(crate) fn is_encoded(value: &Value) -> bool {
        match value {
            Value::Integer(_) | Value::Boolean(_) | Value::Date(_) => false,
            Value::Text(text) => text.contains(is_special),
            other => other
                .to_text()
                .is_some_and(|text| text.contains(is_special)),
        }
    }

    /// Parses an id.
    pub fn parse(text: &str) -> Result<Self, ParseRecordIdError> {
        let (connection_id, rest) = text.split_once('/').ok_or(ParseRecordIdError)?;
        let (stream, key) = rest.split_once(':').ok_or(ParseRecordIdError)?;
        if !NameKind::Connection.matches(connection_id)
            || !NameKind::Stream.matches(stream)
            || key.contains(['/', ':'])
        {
            return Err(ParseRecordIdError);
        }
        Ok(Self {
            connection_id: connection_id.to_owned(),
            stream: stream.to_owned(),
            key: key.split(',').map(decoded).collect::<Result<_, _>>()?,
        })
    }
}

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}:", self.connection_id, self.stream)?;
        for (index, value) in self.key.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            encode_all(value, f)?;
        }
        Ok(())
    }
}

fn push_key<'a>(text: &mut String, key: impl IntoIterator<Item = &'a Value>) {
    for (place, value) in key.into_iter().enumerate() {
        if place > 0 {
            text.push(',');
        }
        // Writing to a string cannot fail.
        let _ = match value {
            Value::Text(value) => encode_all(value, text),
            Value::Integer(integer) => {
                text.push_str(itoa::Buffer::new().format(*integer));
                Ok(())
            }
            // A NULL key value has no text.
            other => other
                .to_text()
                .map_or(Ok(()), |value| encode_all(&value, text)),
        };
    }
}

fn encode_all(value: &str, out: &mut impl fmt::Write) -> fmt::Result {
    // Each part but the last ends with one character to encode.
    for part in value.split_inclusive(is_special) {
        let special = part.chars().next_back().filter(|c| is_special(*c));
        let plain = part.len() - special.map_or(0, char::len_utf8);
        let (plain, special) = part.split_at(plain);
        out.write_str(plain)?;
        for byte in special.bytes() {
            write!(out, "%{byte:02X}")?;
        }
    }
    Ok(())
}

fn is_special(c: char) -> bool {
    matches!(c, '/' | ':' | ',' | '%' | '"' | '\'' | '\\' | '`')
        || c.is_control()
        || c.is_whitespace()
}

fn decoded(text: &str) -> Result<String, ParseRecordIdError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
            let high = digit(rest.next()).ok_or(ParseRecordIdError)?;
            let low = digit(rest.next()).ok_or(ParseRecordIdError)?;
            bytes.push(u8::try_from(high * 16 + low).map_err(|_| ParseRecordIdError)?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).map_err(|_| ParseRecordIdError)
}
