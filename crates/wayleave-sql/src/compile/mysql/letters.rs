//! The characters that a column of text can hold. The server refuses to compare it with others.

/// The characters of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Letters {
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
pub(super) enum Held<'a> {
    Surely,
    Never,
    /// If it is still the same after this.
    Once(Option<&'a str>),
}

impl Letters {
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

    pub(super) fn hold(&self, text: &str) -> Held<'_> {
        match self {
            _ if text.is_ascii() => Held::Surely,
            Self::All => Held::Surely,
            Self::Basic if text.chars().all(|it| it <= '\u{FFFF}') => Held::Surely,
            Self::Basic | Self::Ascii => Held::Never,
            Self::Other(converted) => Held::Once(converted.as_deref()),
        }
    }
}
