//! A fragment of SQL that carries its bound values, so that fragments combine in any order and no
//! value is ever part of the text.

use std::fmt::Write as _;

/// A value to bind.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Bind {
    Text(String),
    /// The text of a value whose type the store infers from the column it is written to.
    Literal(String),
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

/// How a dialect writes the placeholder of a bound value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placeholder {
    /// `?`
    Question,
    /// `?1`
    NumberedQuestion,
    /// `$1`
    Dollar,
}

/// Appends a name in quotes; `None` for one with a NUL in it, which no store has and where a driver
/// might end the statement.
pub(crate) fn push_quoted(out: &mut String, quote: char, name: &str) -> Option<()> {
    if name.contains('\0') {
        return None;
    }
    out.push(quote);
    for (index, part) in name.split(quote).enumerate() {
        if index > 0 {
            out.extend([quote, quote]);
        }
        out.push_str(part);
    }
    out.push(quote);
    Some(())
}

/// A name in quotes, as [`push_quoted`] writes it.
pub(crate) fn quoted(quote: char, name: &str) -> Option<String> {
    let mut out = String::new();
    push_quoted(&mut out, quote, name)?;
    Some(out)
}

/// A fragment of SQL.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Sql {
    text: String,
    /// Each value with the offset in the text where its placeholder goes, in order.
    binds: Vec<(usize, Bind)>,
}

impl Sql {
    /// Text written by this crate. Never a caller's.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            binds: Vec::new(),
        }
    }

    /// A bound value.
    pub(crate) fn bind(bind: Bind) -> Self {
        Self {
            text: String::new(),
            binds: vec![(0, bind)],
        }
    }

    /// Whether the fragment is exactly this text and binds nothing.
    pub(crate) fn is(&self, text: &str) -> bool {
        self.text == text && self.binds.is_empty()
    }

    /// Appends another fragment.
    pub(crate) fn add(&mut self, other: Self) {
        let end = self.text.len();
        self.text.push_str(&other.text);
        // Most fragments bind nothing.
        for (at, bind) in other.binds {
            self.binds.push((end + at, bind));
        }
    }

    /// Appends text written by this crate.
    pub(crate) fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Wraps the fragment between `before` and `after`.
    pub(crate) fn within(mut self, before: &str, after: &str) -> Self {
        if before.is_empty() {
            self.push(after);
            return self;
        }
        let length = before.len() + self.text.len() + after.len();
        let mut sql = Self::text(String::with_capacity(length));
        sql.push(before);
        sql.add(self);
        sql.push(after);
        sql
    }

    /// Joins the parts with `separator`.
    pub(crate) fn joined(parts: impl IntoIterator<Item = Self>, separator: &str) -> Self {
        let mut parts = parts.into_iter();
        let mut sql = parts.next().unwrap_or_default();
        for (place, part) in parts.enumerate() {
            if place == 0 {
                // More parts of about this length will follow.
                sql.text.reserve(8 * (sql.text.len() + separator.len()));
            }
            sql.push(separator);
            sql.add(part);
        }
        sql
    }

    /// The text with placeholders, and the values to bind in placeholder order.
    pub(crate) fn render(self, placeholder: Placeholder) -> (String, Vec<Bind>) {
        let mut text = String::with_capacity(self.text.len() + 4 * self.binds.len());
        let mut binds = Vec::with_capacity(self.binds.len());
        let mut rest = self.text.as_str();
        let mut written = 0;
        for (at, bind) in self.binds {
            #[expect(
                clippy::expect_used,
                reason = "a misplaced placeholder would change the statement"
            )]
            let (before, after) = at
                .checked_sub(written)
                .and_then(|length| rest.split_at_checked(length))
                .expect("bind offsets ascend and lie within the text");
            text.push_str(before);
            (rest, written) = (after, at);
            binds.push(bind);
            let number = binds.len();
            // Writing to a string cannot fail.
            let _ = match placeholder {
                Placeholder::Question => write!(text, "?"),
                Placeholder::NumberedQuestion => write!(text, "?{number}"),
                Placeholder::Dollar => write!(text, "${number}"),
            };
        }
        text.push_str(rest);
        (text, binds)
    }
}
