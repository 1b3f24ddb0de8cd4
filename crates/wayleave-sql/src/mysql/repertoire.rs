//! The character repertoire of a text column. The server refuses comparisons with other characters.

/// The characters that a column can hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Repertoire {
    /// Every character.
    All,
    /// Characters of the Basic Multilingual Plane.
    Basic,
    /// ASCII characters.
    Ascii,
    /// Characters of another character set, with the end of the `CONVERT` call that converts to it
    /// if its name is plain.
    Other(Option<String>),
}

/// Whether a column can hold a given text.
pub(super) enum Encodable<'a> {
    Yes,
    No,
    /// It can if this conversion leaves the text unchanged.
    IfConverted(Option<&'a str>),
}

impl Repertoire {
    /// The repertoire of a character set, in a column with that collation.
    pub(crate) fn from_charset(charset: &str, collation: &str) -> Self {
        let plain = |name: &str| {
            name.bytes()
                .all(|it| it.is_ascii_alphanumeric() || it == b'_')
        };
        match charset {
            "utf8mb4" | "utf16" | "utf16le" | "utf32" => Self::All,
            "utf8mb3" | "utf8" | "ucs2" => Self::Basic,
            "ascii" => Self::Ascii,
            _ => {
                let known = plain(charset) && plain(collation);
                // Name the column's own collation; otherwise its index could not be used.
                Self::Other(known.then(|| format!(" USING {charset}) COLLATE {collation}")))
            }
        }
    }

    pub(super) fn can_encode(&self, text: &str) -> Encodable<'_> {
        match self {
            _ if text.is_ascii() => Encodable::Yes,
            Self::All => Encodable::Yes,
            Self::Basic if text.chars().all(|it| it <= '\u{FFFF}') => Encodable::Yes,
            Self::Basic | Self::Ascii => Encodable::No,
            Self::Other(converted) => Encodable::IfConverted(converted.as_deref()),
        }
    }
}
