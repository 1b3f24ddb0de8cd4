//! A piece of SQL that carries the values bound in it, so that pieces can be put together in any
//! order and no value is ever part of a text.

use std::fmt::Write as _;

/// A value to bind.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Bind {
    Text(String),
    Bytes(Vec<u8>),
    Integer(i64),
    Unsigned(u64),
    Real(f64),
    Boolean(bool),
    /// Days since 1970-01-01.
    Date(i32),
    /// Microseconds since 1970-01-01T00:00:00Z.
    Datetime(i64),
}

/// How a dialect writes the place of a bound value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placeholder {
    /// `?`
    Question,
    /// `?1`
    NumberedQuestion,
    /// `$1`
    Dollar,
}

#[derive(Debug, Clone, PartialEq)]
enum Piece {
    Text(String),
    Bind(Bind),
}

/// A piece of SQL.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Sql {
    pieces: Vec<Piece>,
}

impl Sql {
    /// Words of ours. Never a caller's.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self {
            pieces: vec![Piece::Text(text.into())],
        }
    }

    /// A bound value.
    pub(crate) fn bind(bind: Bind) -> Self {
        Self {
            pieces: vec![Piece::Bind(bind)],
        }
    }

    /// This, then that.
    pub(crate) fn add(&mut self, other: Self) {
        self.pieces.extend(other.pieces);
    }

    /// This, then words of ours.
    pub(crate) fn push(&mut self, text: &str) {
        if let Some(Piece::Text(last)) = self.pieces.last_mut() {
            last.push_str(text);
        } else {
            self.pieces.push(Piece::Text(text.to_owned()));
        }
    }

    /// `before`, this, `after`.
    pub(crate) fn within(self, before: &str, after: &str) -> Self {
        let mut sql = Self::text(before);
        sql.add(self);
        sql.push(after);
        sql
    }

    /// All of these with `separator` between them.
    pub(crate) fn joined(parts: impl IntoIterator<Item = Self>, separator: &str) -> Self {
        let mut sql = Self::default();
        for (index, part) in parts.into_iter().enumerate() {
            if index > 0 {
                sql.push(separator);
            }
            sql.add(part);
        }
        sql
    }

    /// The text with placeholders, and what to bind in their order.
    pub(crate) fn render(self, placeholder: Placeholder) -> (String, Vec<Bind>) {
        let mut text = String::new();
        let mut binds = Vec::new();
        for piece in self.pieces {
            match piece {
                Piece::Text(piece) => text.push_str(&piece),
                Piece::Bind(bind) => {
                    binds.push(bind);
                    let number = binds.len();
                    // Writing to a string cannot fail.
                    let _ = match placeholder {
                        Placeholder::Question => write!(text, "?"),
                        Placeholder::NumberedQuestion => write!(text, "?{number}"),
                        Placeholder::Dollar => write!(text, "${number}"),
                    };
                }
            }
        }
        (text, binds)
    }
}
