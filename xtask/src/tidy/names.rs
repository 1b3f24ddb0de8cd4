//! Checks that names tell a newcomer what they stand for.
//!
//! Bans a short list of meaningless words and constructors named `of`, and requires that a name
//! stands for one type in the whole workspace, and that a limit is named `MAX_*` or `MIN_*`.

use std::collections::BTreeMap;

use regex::Regex;

use crate::finding::Finding;

/// Words that may not name a type: bare participles and household metaphors.
const TYPE_WORDS: &[&str] = &[
    "Absent",
    "Again",
    "Aggregated",
    "Asked",
    "Bell",
    "Broken",
    "Claimed",
    "Compared",
    "Compiled",
    "Counted",
    "Cut",
    "Desk",
    "Desks",
    "Disturbed",
    "Door",
    "Dossier",
    "Followed",
    "Found",
    "Given",
    "Granted",
    "Guest",
    "Guests",
    "Heard",
    "Held",
    "Holds",
    "How",
    "Inferred",
    "Inside",
    "Joined",
    "Joining",
    "Judged",
    "Kept",
    "Known",
    "Lent",
    "Listed",
    "Lost",
    "Made",
    "Measured",
    "Met",
    "Missing",
    "Named",
    "News",
    "Paired",
    "Parsed",
    "Ran",
    "Reached",
    "Referred",
    "Related",
    "Roster",
    "Scored",
    "Seen",
    "Sent",
    "Served",
    "Shelf",
    "Shown",
    "Subscribed",
    "Supervised",
    "Taken",
    "Talk",
    "Told",
    "Tray",
    "TurnedAway",
    "Unfit",
    "Unreadable",
    "Wanted",
    "Watched",
    "Weighed",
    "Whole",
    "Whose",
    "Why",
    "Wish",
    "Withheld",
    "World",
];

/// Words that may not name a module.
const MODULE_WORDS: &[&str] = &[
    "around", "bell", "citing", "desk", "door", "held", "lent", "long", "plain", "quick", "shelf",
    "talk", "tray", "who", "wish", "world",
];

/// Type names allowed in several crates, each with the number of crates and its reason.
const SAME_NAME: &[(&str, usize, &str)] = &[
    (
        "Action",
        2,
        "what a capability does, and what a command does",
    ),
    (
        "Call",
        2,
        "a tool call as it came, and one that is offered as the next",
    ),
    ("Change", 2, "of a mapping, and of a document in an index"),
    (
        "Code",
        2,
        "the codes of read tools, and those of dataset tools",
    ),
    ("Column", 2, "of a catalogue, and of a plan"),
    (
        "Connection",
        2,
        "of a dataset to a source, and of a client to a listener",
    ),
    ("Dataset", 3, "as mapped, as recorded, and as listed"),
    (
        "Detail",
        2,
        "how much a schema tells, and what a driver said",
    ),
    (
        "Entry",
        3,
        "of a ledger, of a document, and of a settings file",
    ),
    ("Key", 2, "of a table in a document, and of an issuer"),
    ("Kind", 2, "of a column, and of a word"),
    (
        "Limits",
        3,
        "of connections, of reads, and of introspection: the words of each crate's settings",
    ),
    ("Options", 2, "of a server, and of the conformance suite"),
    ("Output", 2, "of a statement, and of a command"),
    ("Page", 2, "of a list, and of records"),
    ("Problem", 2, "of a mapping, and of a ledger"),
    (
        "Proposal",
        2,
        "a draft with its notes, and what the server makes of one",
    ),
    ("Read", 2, "of a resource, and of a plan"),
    (
        "Refusal",
        3,
        "of a request, of an entry, and of a credential",
    ),
    ("Report", 2, "of a doctor, and of the conformance suite"),
    (
        "Revocation",
        2,
        "of a grant in the ledger, and of a caller that is served",
    ),
    ("Rows", 2, "that are asked for, and that are answered"),
    ("Section", 2, "of a definition, and of a workup"),
    (
        "Server",
        3,
        "of MCP, of a database, and in a client's settings",
    ),
    ("Shape", 2, "of a definition, and of a table"),
    ("Table", 2, "of a catalogue, and of a reply"),
];

/// The names found in the sources so far.
pub(super) struct Names {
    declared: Regex,
    alias: Regex,
    module: Regex,
    constructor: Regex,
    constant: Regex,
    /// For each name, the crates with a visible type or alias of that name, and where.
    types: BTreeMap<String, BTreeMap<String, (String, usize)>>,
}

impl Names {
    pub(super) fn new() -> anyhow::Result<Self> {
        Ok(Self {
            declared: Regex::new(
                r"^\s*(pub(?:\([a-z:]+\))? )?(?:struct|enum|trait|union) ([A-Z]\w*)",
            )?,
            // An indented alias without `pub` is an associated type, or local to a function.
            alias: Regex::new(r"^(?:\s*(pub(?:\([a-z:]+\))? ))?type ([A-Z]\w*)")?,
            module: Regex::new(r"^\s*(?:pub(?:\([a-z:]+\))? )?mod (\w+)\s*[;{]")?,
            constructor: Regex::new(r"^\s*(?:pub(?:\([a-z:]+\))? )?(?:const )?fn of\s*[(<]")?,
            constant: Regex::new(
                r"^\s*(?:pub(?:\([a-z:]+\))? )?(?:const|static) ([A-Z][A-Z0-9_]*)\s*:",
            )?,
            types: BTreeMap::new(),
        })
    }

    /// Checks the names of one source file.
    pub(super) fn read(&mut self, file: &str, text: &str) -> Vec<Finding> {
        let mut findings = Vec::new();
        let code = super::code_lines(text);
        let mut doc = None;
        for (index, line) in text.lines().take(code).enumerate() {
            let number = index + 1;
            if let Some(comment) = line.trim_start().strip_prefix("/// ") {
                doc = doc.or(Some(comment));
                continue;
            }
            let doc = doc.take();
            if let Some(found) = self.constant.captures(line)
                && let Some(prefix) = doc.and_then(|doc| limit_prefix(doc, &found[1]))
            {
                let message = format!("`{}` is a limit, and not named `{prefix}*`", &found[1]);
                findings.push(finding(file, number, message));
            }
            let declared = self.declared.captures(line);
            if let Some(found) = declared.or_else(|| self.alias.captures(line)) {
                let name = &found[2];
                if TYPE_WORDS.contains(&name) {
                    let message = format!("`{name}` does not say what the type is");
                    findings.push(finding(file, number, message));
                }
                let visible = found
                    .get(1)
                    .is_some_and(|it| matches!(it.as_str(), "pub " | "pub(crate) "));
                // Types of tests are navigated to within their crate.
                let shareable = visible && !super::is_test_file(file);
                if let Some(in_crate) = crate_of(file).filter(|_| shareable) {
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

    /// Reports types that have the same name in several crates.
    pub(super) fn shared(&self) -> Vec<Finding> {
        let allowed = |name: &str| {
            let listed = SAME_NAME.iter().find(|(listed, ..)| *listed == name);
            listed.map_or(1, |(_, crates, _)| *crates)
        };
        let several = self
            .types
            .iter()
            .filter(|(name, places)| places.len() > allowed(name));
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

/// The prefix that a constant lacks, if its documentation begins like that of a limit.
fn limit_prefix(doc: &str, name: &str) -> Option<&'static str> {
    let first = doc.split(' ').next()?;
    let prefix = match first {
        "Maximum" | "Largest" | "Longest" => "MAX_",
        "Minimum" | "Smallest" | "Shortest" => "MIN_",
        _ => return None,
    };
    // A deadline is a maximum and an interval a minimum by another name; a benchmark has aims.
    let is_named = [prefix, "AIM"].iter().any(|it| name.starts_with(it))
        || ["_TIMEOUT", "_INTERVAL", "_AIM"]
            .iter()
            .any(|it| name.ends_with(it));
    (!is_named).then_some(prefix)
}

fn finding(file: &str, line: usize, message: String) -> Finding {
    let hint = "use a noun of the field; `new`, `from_*`, `with_*`, `parse` for constructors; `MAX_*`, \
        `MIN_*` for limits";
    Finding::failure(file, line, message, hint)
}

/// The crate that a source file belongs to.
fn crate_of(file: &str) -> Option<&str> {
    file.strip_prefix("crates/")?.split('/').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(files: &[(&str, &str)]) -> Vec<String> {
        let mut names = Names::new().unwrap();
        let mut found = Vec::new();
        for (file, text) in files {
            found.extend(names.read(file, text));
        }
        found.extend(names.shared());
        found.iter().map(|it| it.message().to_owned()).collect()
    }

    #[test]
    fn words_that_say_nothing_are_found() {
        let text = "struct Kept;\npub(crate) enum Held {}\nmod quick;\nstruct KeptPage;\n";
        assert_eq!(
            messages(&[("crates/a/src/lib.rs", text)]),
            [
                "`Kept` does not say what the type is",
                "`Held` does not say what the type is",
                "`quick` does not say what the module holds",
            ]
        );
    }

    #[test]
    fn an_alias_is_a_type_and_an_associated_type_is_not() {
        let text = "type Kept = u8;\npub(crate) type Held<'a, K> = &'a K;\n\
            mod inner {\n    pub type Sent = u8;\n}\n\
            impl A for B {\n    type Found = u8;\n}\ntrait C {\n    type Lost: Send;\n}\n";
        assert_eq!(
            messages(&[("crates/a/src/lib.rs", text)]),
            [
                "`Kept` does not say what the type is",
                "`Held` does not say what the type is",
                "`Sent` does not say what the type is",
            ]
        );
    }

    #[test]
    fn a_constructor_says_how_a_value_is_made() {
        let text = "impl A {\n    pub(crate) fn of(b: B) -> Self {}\n    fn offer() {}\n}\n";
        assert_eq!(
            messages(&[("crates/a/src/lib.rs", text)]),
            ["`fn of` does not say how the value is made"]
        );
    }

    #[test]
    fn a_limit_is_named_for_one() {
        let text = "/// Maximum size of a page,\n/// in bytes.\nconst PAGE: usize = 1;\n\
            /// Maximum size.\nconst MAX_SIZE: u8 = 1;\n/// Longest wait.\nconst WAIT_TIMEOUT: D = D;\n\
            /// Minimum share.\npub(crate) const SHARE: u8 = 1;\n/// The page.\nconst PAGE: u8 = 1;\n";
        assert_eq!(
            messages(&[("crates/a/src/lib.rs", text)]),
            [
                "`PAGE` is a limit, and not named `MAX_*`",
                "`SHARE` is a limit, and not named `MIN_*`",
            ]
        );
    }

    #[test]
    fn one_name_is_one_type_unless_there_is_a_reason() {
        let one = (
            "crates/a/src/lib.rs",
            "pub struct Hit;\npub struct Column;\n",
        );
        let other = (
            "crates/b/src/lib.rs",
            "pub(crate) struct Hit;\npub struct Column;\n",
        );
        assert_eq!(messages(&[one, other]), ["`Hit` is a type in a and b"]);
        let third = ("crates/c/src/lib.rs", "pub struct Column;\n");
        let message = "`Column` is a type in a and b and c".to_owned();
        assert!(messages(&[one, other, third]).contains(&message));
        let alias = ("crates/b/src/lib.rs", "pub type Hit = u8;\n");
        assert_eq!(messages(&[one, alias]), ["`Hit` is a type in a and b"]);
        for private in ["struct Hit;\n", "type Hit = u8;\n"] {
            let private = ("crates/b/src/lib.rs", private);
            assert_eq!(messages(&[one, private]), Vec::<String>::new());
        }
    }
}
