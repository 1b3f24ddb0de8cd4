//! Golden cases: text files of `=== name` sections, the last of which is `=== expected`.
//!
//! Inside a section `{{byte ff}}`, `{{char 202e}}` and `{{repeat 3 text}}` stand for content that a
//! text file cannot contain well.

use std::fs;
use std::path::{Path, PathBuf};

use wayleave_model::catalogue::{Catalogue, Column, ForeignKey, Table, TableKind};
use wayleave_model::mapping::{Datatype, SourceKind};

/// Whether to rewrite the golden files.
pub(crate) fn bless() -> bool {
    std::env::var_os("WAYLEAVE_BLESS").is_some()
}

/// The path of a file of the crate.
pub(crate) fn crate_path(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Compares a file with the expected content; rewrites it when blessing.
pub(crate) fn assert_file(path: &Path, expected: &str) {
    let found = fs::read_to_string(path).unwrap_or_default();
    if found == expected {
        return;
    }
    if bless() {
        fs::write(path, expected).unwrap();
        return;
    }
    panic!(
        "{} is out of date; `WAYLEAVE_BLESS=1 cargo test -p wayleave-model` rewrites it\n\
         --- found\n{found}\n--- expected\n{expected}",
        path.display()
    );
}

/// One golden case.
pub(crate) struct Case {
    pub(crate) path: PathBuf,
    sections: Vec<(String, String)>,
}

impl Case {
    fn read(path: PathBuf) -> Self {
        let text = fs::read_to_string(&path).unwrap();
        let mut sections: Vec<(String, String)> = Vec::new();
        for line in text.split_inclusive('\n') {
            if let Some(name) = line.strip_prefix("=== ") {
                sections.push((name.trim().to_owned(), String::new()));
            } else if let Some((_, body)) = sections.last_mut() {
                body.push_str(line);
            }
        }
        Self { path, sections }
    }

    /// The bytes of a section.
    pub(crate) fn section(&self, name: &str) -> Option<Vec<u8>> {
        let (_, body) = self.sections.iter().find(|(section, _)| section == name)?;
        Some(expand(body))
    }

    /// Compares the last section; rewrites it when blessing.
    pub(crate) fn assert_expected(&self, expected: &str) {
        let mut text = String::new();
        for (name, body) in self.sections.iter().filter(|(name, _)| name != "expected") {
            text += &["=== ", name, "\n", body].concat();
        }
        text += &["=== expected\n", expected].concat();
        assert_file(&self.path, &text);
    }
}

/// The cases in a folder, sorted by name.
pub(crate) fn cases(folder: &str) -> Vec<Case> {
    let folder = crate_path(&format!("tests/golden/{folder}"));
    let mut paths: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    assert!(!paths.is_empty());
    paths.into_iter().map(Case::read).collect()
}

fn expand(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        let (directive, after) = after.split_once("}}").unwrap();
        out.extend_from_slice(before.as_bytes());
        let words: Vec<_> = directive.splitn(3, ' ').collect();
        match words[..] {
            ["byte", hex] => out.push(u8::from_str_radix(hex, 16).unwrap()),
            ["char", hex] => {
                let c = char::from_u32(u32::from_str_radix(hex, 16).unwrap()).unwrap();
                out.extend_from_slice(c.to_string().as_bytes());
            }
            ["repeat", times, text] => {
                out.extend_from_slice(text.repeat(times.parse().unwrap()).as_bytes());
            }
            _ => panic!("unknown directive {directive}"),
        }
        rest = after;
    }
    out.extend_from_slice(rest.as_bytes());
    out
}

/// Parses a catalogue from lines:
///
/// ```text
/// postgres public
/// table people                  (or `view people`)
///   column id integer           (datatype, then any of: many null native=… values=a|b)
///   primary id
///   unique name,country
///   foreign country countries code
/// ```
pub(crate) fn catalogue(text: &str) -> Catalogue {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let mut header = lines.next().unwrap().split_whitespace();
    let mut catalogue = Catalogue {
        kind: SourceKind::from_word(header.next().unwrap()).unwrap(),
        schema: header.next().map(str::to_owned),
        tables: Vec::new(),
    };
    for line in lines {
        let words: Vec<_> = line.split_whitespace().collect();
        let list = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
        match words[..] {
            ["table", name] => catalogue.tables.push(table(name, TableKind::Table)),
            ["view", name] => catalogue.tables.push(table(name, TableKind::View)),
            ["column", name, datatype, ref rest @ ..] => {
                let column = column(name, datatype, rest);
                catalogue.tables.last_mut().unwrap().columns.push(column);
            }
            ["primary", columns] => {
                catalogue.tables.last_mut().unwrap().primary_key = list(columns);
            }
            ["unique", columns] => {
                catalogue
                    .tables
                    .last_mut()
                    .unwrap()
                    .unique
                    .push(list(columns));
            }
            ["foreign", columns, to_table, to_columns] => {
                let keys = &mut catalogue.tables.last_mut().unwrap().foreign_keys;
                keys.push(ForeignKey {
                    columns: list(columns),
                    to_table: to_table.to_owned(),
                    to_columns: list(to_columns),
                });
            }
            _ => panic!("unknown line {line}"),
        }
    }
    catalogue
}

fn table(name: &str, kind: TableKind) -> Table {
    Table {
        name: name.to_owned(),
        kind,
        columns: Vec::new(),
        primary_key: Vec::new(),
        unique: Vec::new(),
        foreign_keys: Vec::new(),
        row_estimate: None,
        comment: None,
    }
}

fn column(name: &str, datatype: &str, rest: &[&str]) -> Column {
    let value = |key: &str| rest.iter().find_map(|word| word.strip_prefix(key));
    Column {
        name: name.to_owned(),
        native_type: value("native=").unwrap_or(datatype).to_owned(),
        datatype: Datatype::from_word(datatype).unwrap(),
        many: rest.contains(&"many"),
        nullable: rest.contains(&"null"),
        one_of: value("values=")
            .map(|values| values.split('|').map(str::to_owned).collect())
            .unwrap_or_default(),
        max_length: None,
        generated: false,
        comment: None,
    }
}
