//! Names that tell a newcomer what is behind them.
//!
//! A short list of words that said nothing, constructors that are named like constructors, and one
//! name for one type in the whole workspace.

use std::collections::BTreeMap;

use regex::Regex;

use crate::finding::Finding;

/// Words that are no name for a type: participles that say that something happened, and things of
/// a household.
const TYPE_WORDS: &[&str] = &[
    "Asked",
    "Bell",
    "Desk",
    "Desks",
    "Door",
    "Found",
    "Held",
    "Kept",
    "Known",
    "Lent",
    "Listed",
    "Roster",
    "Seen",
    "Served",
    "Shelf",
    "Shown",
    "Talk",
    "Tray",
    "Whose",
    "Wish",
    "ActiveDatasets",
];

/// Words that are no name for a module.
const MODULE_WORDS: &[&str] = &[
    "around", "bell", "citing", "desk", "door", "held", "lent", "long", "plain", "quick", "shelf",
    "talk", "tray", "who", "wish", "world",
];

/// Types of one name in several crates, each with its reason.
const SAME_NAME: &[(&str, &str)] = &[];

/// Names that are still to be replaced: nothing may be added here, and what is gone must leave.
const PENDING: &[(&str, &str)] = &[];

/// What was found in the sources so far.
pub(super) struct Names {
    declared: Regex,
    module: Regex,
    constructor: Regex,
    /// By name, the crates that have a type of it which others can see, and where.
    types: BTreeMap<String, BTreeMap<String, (String, usize)>>,
}

impl Names {
    pub(super) fn new() -> anyhow::Result<Self> {
        Ok(Self {
            declared: Regex::new(
                r"^\s*(pub(?:\([a-z:]+\))? )?(?:struct|enum|trait|union) ([A-Z]\w*)",
            )?,
            module: Regex::new(r"^\s*(?:pub(?:\([a-z:]+\))? )?mod (\w+)\s*[;{]")?,
            constructor: Regex::new(r"^\s*(?:pub(?:\([a-z:]+\))? )?(?:const )?fn of\s*[(<]")?,
            types: BTreeMap::new(),
        })
    }

    /// Looks at the names of one source file.
    pub(super) fn read(&mut self, file: &str, text: &str) -> Vec<Finding> {
        let mut findings = Vec::new();
        let code = super::code_lines(text);
        for (index, line) in text.lines().take(code).enumerate() {
            let number = index + 1;
            if let Some(found) = self.declared.captures(line) {
                let name = &found[2];
                if TYPE_WORDS.contains(&name) {
                    let message = format!("`{name}` does not say what the type is");
                    findings.push(finding(file, number, message));
                }
                let visible = found
                    .get(1)
                    .is_some_and(|it| matches!(it.as_str(), "pub " | "pub(crate) "));
                if let Some(in_crate) = crate_of(file).filter(|_| visible) {
                    let places = self.types.entry(name.to_owned()).or_default();
                    places
                        .entry(in_crate.to_owned())
                        .or_insert_with(|| (file.to_owned(), number));
                }
            }
            if let Some(found) = self.module.captures(line)
                && MODULE_WORDS.contains(&&found[1])
            {
                let message = format!("`{}` does not say what the module holds", &found[1]);
                findings.push(finding(file, number, message));
            }
            if self.constructor.is_match(line) {
                let message = "`fn of` does not say how the value is made".to_owned();
                findings.push(finding(file, number, message));
            }
        }
        findings
    }

    /// The types that have one name in several crates.
    pub(super) fn shared(&self) -> Vec<Finding> {
        let allowed = |name: &str| SAME_NAME.iter().any(|(allowed, _)| *allowed == name);
        let several = self
            .types
            .iter()
            .filter(|(name, places)| places.len() > 1 && !allowed(name));
        several
            .filter_map(|(name, places)| {
                let (file, line) = places.values().last()?;
                let crates: Vec<&str> = places.keys().map(String::as_str).collect();
                let message = format!("`{name}` is a type in {}", crates.join(" and "));
                Some(finding(file, *line, message))
            })
            .collect()
    }
}

fn finding(file: &str, line: usize, message: String) -> Finding {
    let hint = "use a noun of the field; `new`, `from_*`, `with_*` and `parse` for constructors";
    Finding::failure(file, line, message, hint)
}

/// The crate that a source file belongs to.
fn crate_of(file: &str) -> Option<&str> {
    file.strip_prefix("crates/")?.split('/').next()
}
