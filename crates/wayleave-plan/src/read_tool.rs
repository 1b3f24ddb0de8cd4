//! The read tools, by name.

/// A tool that reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadTool {
    /// `schema`.
    Schema,
    /// `query_records`.
    QueryRecords,
    /// `aggregate`.
    Aggregate,
    /// `search`.
    Search,
    /// `fetch`.
    Fetch,
}

impl ReadTool {
    /// Every read tool, in the order in which lists show them.
    pub const ALL: [Self; 5] = [
        Self::Schema,
        Self::QueryRecords,
        Self::Aggregate,
        Self::Search,
        Self::Fetch,
    ];

    /// The tool's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Schema => "schema",
            Self::QueryRecords => "query_records",
            Self::Aggregate => "aggregate",
            Self::Search => "search",
            Self::Fetch => "fetch",
        }
    }

    /// The tool of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.as_str() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::ReadTool;

    #[test]
    fn a_name_is_one_tool_and_an_unknown_name_is_none() {
        for tool in ReadTool::ALL {
            assert_eq!(ReadTool::parse(tool.as_str()), Some(tool));
        }
        for name in ["", "Fetch", "workup", "fetch "] {
            assert_eq!(ReadTool::parse(name), None, "{name}");
        }
    }
}
