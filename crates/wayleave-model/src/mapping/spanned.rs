//! A value together with its byte range in the document.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Deref, Range};

/// A value and its byte range in the document.
///
/// Equality ignores the range: where something is written does not change its meaning. A value that
/// was not written, such as a default, points at the entry that implies it.
#[derive(Clone)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// Its byte range in the document; `0..0` if it does not come from a document.
    pub span: Range<usize>,
}

impl<T> Spanned<T> {
    /// A value with its byte range.
    pub fn new(value: T, span: Range<usize>) -> Self {
        Self { value, span }
    }

    /// A value that comes from no document.
    pub fn without_span(value: T) -> Self {
        Self { value, span: 0..0 }
    }

    /// Another value with the same byte range.
    pub fn with<U>(&self, value: U) -> Spanned<U> {
        Spanned {
            value,
            span: self.span.clone(),
        }
    }
}

impl<T> From<T> for Spanned<T> {
    fn from(value: T) -> Self {
        Self::without_span(value)
    }
}

impl From<&str> for Spanned<String> {
    fn from(value: &str) -> Self {
        Self::without_span(value.to_owned())
    }
}

impl<T> Deref for Spanned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: PartialEq> PartialEq for Spanned<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<T: Eq> Eq for Spanned<T> {}

impl PartialEq<str> for Spanned<String> {
    fn eq(&self, other: &str) -> bool {
        self.value == other
    }
}

impl PartialEq<&str> for Spanned<String> {
    fn eq(&self, other: &&str) -> bool {
        self.value == *other
    }
}

impl<T: Hash> Hash for Spanned<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.value.hash(state);
    }
}

impl<T: fmt::Debug> fmt::Debug for Spanned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

impl<T: fmt::Display> fmt::Display for Spanned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}
