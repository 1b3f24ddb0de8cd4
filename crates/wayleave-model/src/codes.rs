//! Declares closed lists of codes, each with a word and a meaning.
//!
//! The lists are where they are used; this module knows none of the codes.

/// Declares an enum of codes with `ALL`, `as_str` and `meaning`. A code is its word in text and
/// JSON.
macro_rules! codes {
    (
        $(#[$about:meta])*
        pub enum $name:ident {
            $($variant:ident => $word:literal: $meaning:literal,)+
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $(#[doc = $meaning] $variant,)+
        }

        impl $name {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The code's word, in text and JSON.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// What it means, in a sentence for the reference.
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Self::$variant => $meaning,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    };
}

pub(crate) use codes;
