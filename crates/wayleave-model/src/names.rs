//! Names: the pattern that each kind of name must match.
//!
//! Names end up in tool names, in record ids (`connection_id/stream:key`), in resource URIs, in
//! filters and inside cursors. No pattern admits `/`, `\`, `:`, `.`, `?`, `#`, `%`, `@`, quotes,
//! white space or anything beyond ASCII, so no name can break out of any of those.

/// What a name identifies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NameKind {
    /// A dataset: `connector_key`, and the tail of `workup_<name>`.
    Dataset,
    /// A connection: `connection_id`.
    Connection,
    /// A source the operator declared.
    Source,
    /// A stream.
    Stream,
    /// A field.
    Field,
    /// A relation.
    Relation,
    /// A capability: the tail of a tool's name.
    Capability,
    /// A class of the knowledge graph, or a type of edge.
    Type,
}

/// Names of tools that any deployment may list; a capability cannot use them.
const TOOLS: &[&str] = &[
    "schema",
    "query_records",
    "aggregate",
    "search",
    "fetch",
    "list_datasets",
    "connect_dataset",
    "disconnect_dataset",
    "workup",
    "check_citations",
];

impl NameKind {
    /// Every kind.
    pub const ALL: &'static [Self] = &[
        Self::Dataset,
        Self::Connection,
        Self::Source,
        Self::Stream,
        Self::Field,
        Self::Relation,
        Self::Capability,
        Self::Type,
    ];

    /// The word for it in messages.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Dataset => "dataset name",
            Self::Connection => "connection id",
            Self::Source => "source name",
            Self::Stream => "stream name",
            Self::Field => "field name",
            Self::Relation => "relation name",
            Self::Capability => "capability name",
            Self::Type => "type name",
        }
    }

    /// The pattern, as a regular expression.
    pub const fn pattern(self) -> &'static str {
        match self {
            Self::Dataset => "^[a-z][a-z0-9-]{0,31}$",
            Self::Connection | Self::Source | Self::Stream => "^[a-z][a-z0-9_-]{0,63}$",
            Self::Field | Self::Relation => "^[A-Za-z][A-Za-z0-9_]{0,63}$",
            Self::Capability => "^[a-z][a-z0-9_]{0,63}$",
            Self::Type => "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
        }
    }

    const fn max_bytes(self) -> usize {
        match self {
            Self::Dataset => 32,
            _ => 64,
        }
    }

    /// Whether a name matches the pattern. Hand-written, so that no regular expression can fail to
    /// compile here; a test compares the two.
    pub fn matches(self, name: &str) -> bool {
        let capitals = matches!(self, Self::Field | Self::Relation | Self::Type);
        let underscore = !matches!(self, Self::Dataset);
        let hyphen = !matches!(self, Self::Field | Self::Relation | Self::Capability);
        let letter = |c: u8| c.is_ascii_lowercase() || (capitals && c.is_ascii_uppercase());
        name.len() <= self.max_bytes()
            && name.bytes().next().is_some_and(letter)
            && name.bytes().all(|c| {
                letter(c)
                    || c.is_ascii_digit()
                    || (underscore && c == b'_')
                    || (hyphen && c == b'-')
            })
    }

    /// Why a capability's tool cannot have this name; `None` if it can.
    pub fn reserved_tool(name: &str) -> Option<&'static str> {
        if TOOLS.contains(&name) {
            Some("a tool of Wayleave has that name")
        } else if name.starts_with("workup_") {
            Some("tools that begin with `workup_` belong to datasets")
        } else if name.starts_with("wayleave_") {
            Some("tools that begin with `wayleave_` belong to Wayleave")
        } else {
            None
        }
    }

    /// Why the name is reserved, if it is.
    pub fn reserved(self, name: &str) -> Option<&'static str> {
        match self {
            Self::Field if name == "any" => Some("filters use `any` for alternatives"),
            Self::Type if name == "types" => Some("`wayleave://kg/types` lists the types"),
            Self::Capability if TOOLS.contains(&name) => Some("a tool of Wayleave has that name"),
            Self::Capability if name.starts_with("workup_") => {
                Some("names that begin with `workup_` belong to datasets")
            }
            Self::Capability if name.starts_with("wayleave_") => {
                Some("names that begin with `wayleave_` belong to Wayleave")
            }
            _ => None,
        }
    }

    /// Whether a name may be used: it matches the pattern and is not reserved.
    pub fn accepts(self, name: &str) -> bool {
        self.matches(name) && self.reserved(name).is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_name_matches_exactly_when_its_published_pattern_does(
            name in r"([a-zA-Z0-9_./:\\ \n-]{0,3}|[a-z][a-z0-9_-]{28,70}|[A-Za-z][A-Za-z0-9_]{0,70}|\PC{0,4})",
        ) {
            for &kind in NameKind::ALL {
                let regex = regex::Regex::new(&kind.pattern().replace('$', r"\z")).unwrap();
                prop_assert_eq!(kind.matches(&name), regex.is_match(&name), "{:?} {:?}", kind, name);
            }
        }
    }

    #[test]
    fn no_pattern_admits_a_character_that_means_something_elsewhere() {
        for &kind in NameKind::ALL {
            for c in [
                '/', '\\', ':', '.', '?', '#', '%', '@', '"', '\'', ' ', '\n', '\0', 'é',
            ] {
                assert!(!kind.matches(&format!("a{c}b")), "{kind:?} admits {c:?}");
            }
            assert!(!kind.matches(".."));
            assert!(!kind.matches(""));
        }
    }
}
