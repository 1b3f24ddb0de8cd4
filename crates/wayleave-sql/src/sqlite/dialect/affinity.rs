//! What SQLite makes of a value that a column is given.

/// The affinity of a column, which decides what SQLite makes of what it is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Affinity {
    Text,
    /// Text, and the index that begins with it takes small letters for large ones.
    TextFolded,
    Integer,
    /// An integer that is the row's own number, and so never anything else.
    RowNumber,
    Real,
    Numeric,
    Blob,
}

impl Affinity {
    /// SQLite's own rules, in its order.
    pub(crate) fn from_declared(declared: &str) -> Self {
        let declared = declared.to_ascii_uppercase();
        let holds = |words: &[&str]| words.iter().any(|word| declared.contains(word));
        if holds(&["INT"]) {
            Self::Integer
        } else if holds(&["CHAR", "CLOB", "TEXT"]) {
            Self::Text
        } else if declared.is_empty() || holds(&["BLOB"]) {
            Self::Blob
        } else if holds(&["REAL", "FLOA", "DOUB"]) {
            Self::Real
        } else {
            Self::Numeric
        }
    }

    pub(crate) const fn is_text(self) -> bool {
        matches!(self, Self::Text | Self::TextFolded)
    }

    pub(super) const fn holds_numbers(self) -> bool {
        matches!(
            self,
            Self::Integer | Self::RowNumber | Self::Real | Self::Numeric
        )
    }
}
