//! A value together with the bytes of the document it was read from.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Deref, Range};

/// A value and where in the document it stands.
///
/// Two spanned values are equal when the values are: where something is written does not
/// change what it says. A value that was not written, such as a default, points at the entry
/// that implies it.
#[derive(Clone)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// Its bytes in the document; empty at zero when the value came from no document.
    pub span: Range<usize>,
}

impl<T> Spanned<T> {
    /// A value at a place.
    pub fn new(value: T, span: Range<usize>) -> Self {
        Self { value, span }
    }

    /// A value that comes from no document.
    pub fn unplaced(value: T) -> Self {
        Self { value, span: 0..0 }
    }

    /// Another value at the same place.
    pub fn with<U>(&self, value: U) -> Spanned<U> {
        Spanned {
            value,
            span: self.span.clone(),
        }
    }
}

impl<T> From<T> for Spanned<T> {
    fn from(value: T) -> Self {
        Self::unplaced(value)
    }
}

impl From<&str> for Spanned<String> {
    fn from(value: &str) -> Self {
        Self::unplaced(value.to_owned())
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
