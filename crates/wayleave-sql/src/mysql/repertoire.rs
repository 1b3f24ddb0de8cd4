//! The character repertoire of a text column. The server refuses to compare it with other characters.

/// The characters that a column can hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Repertoire {
    /// Every one.
    All,
    /// Those of the first plane.
    Basic,
    /// Those of ASCII.
    Ascii,
    /// Those of some other character set; with the end of a call of `CONVERT` to it, if it has a
    /// plain name.
    Other(Option<String>),
}

/// Whether a column can hold a text.
pub(super) enum Encodable<'a> {
    Yes,
    No,
    /// If converting it with this leaves it the same.
    IfConverted(Option<&'a str>),
}

impl Repertoire {
    /// Those of a character set, in a column of that collation.
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
                // With the column's own collation, or its index would not serve.
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
