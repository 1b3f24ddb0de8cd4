//! Detects tables of people, and their columns with first and last names.

use super::draft::ComputedField;
use super::guess::Candidate;
use super::naming::{self, UsedNames};
use crate::catalogue::Table;
use crate::names::NameKind;

/// Column names for a first name, in several languages, without `_`.
const FIRST_NAMES: &[&str] = &[
    "firstname",
    "givenname",
    "forename",
    "fname",
    "vorname",
    "prenom",
    "voornaam",
    "fornamn",
    "fornavn",
    "imie",
];

/// Column names that mean a first name only beside a last name.
const FIRST_NAMES_IN_A_PAIR: &[&str] = &["nombre", "nombres", "nome", "jmeno", "name"];

/// Column names for a last name.
const LAST_NAMES: &[&str] = &[
    "lastname",
    "familyname",
    "surname",
    "lname",
    "nachname",
    "familienname",
    "achternaam",
    "efternamn",
    "etternavn",
    "efternavn",
    "apellido",
    "apellidos",
    "cognome",
    "sobrenome",
    "nazwisko",
    "prijmeni",
    "nomdefamille",
];

/// Column names that mean a last name only beside a first name.
const LAST_NAMES_IN_A_PAIR: &[&str] = &["nom"];

/// Column names for a full name.
const FULL_NAMES: &[&str] = &["fullname", "displayname"];

/// Column names for titles of people, which are not titles of records.
const PERSONAL_TITLES: &[&str] = &[
    "jobtitle",
    "worktitle",
    "positiontitle",
    "professionaltitle",
    "contacttitle",
    "courtesytitle",
    "titleofcourtesy",
    "academictitle",
    "nametitle",
    "persontitle",
];

/// Whether the records of a table are people.
pub(super) fn is_person(table: &Table) -> bool {
    let has = |names: &[&str]| {
        let mut columns = table.columns.iter();
        columns.any(|it| prefix(table, &it.name, names).is_some())
    };
    has(FIRST_NAMES) || has(LAST_NAMES)
}

/// Whether a column holds a person's name, or a part of one.
pub(super) fn is_name(table: &Table, column: &str) -> bool {
    [FIRST_NAMES, LAST_NAMES, FULL_NAMES]
        .iter()
        .any(|names| prefix(table, column, names).is_some())
}

/// Whether a column holds a person's title, such as a job title.
pub(super) fn is_personal_title(table: &Table, column: &str) -> bool {
    let words = naming::words(column);
    PERSONAL_TITLES.contains(&words.concat().as_str())
        || (words.last().is_some_and(|it| it == "title") && is_person(table))
}

/// A computed field with a person's full name, if first and last name have separate columns and no
/// column holds both.
pub(super) fn full_name(
    table: &Table,
    all: &[Candidate<'_>],
    taken: &mut UsedNames,
) -> Option<ComputedField> {
    let texts = || all.iter().filter(|it| it.is_free_text());
    let whole = |it: &Candidate<'_>| prefix(table, &it.column.name, FULL_NAMES).is_some();
    if !is_person(table) || texts().any(whole) {
        return None;
    }
    let (first, last) = [
        (FIRST_NAMES, LAST_NAMES),
        (FIRST_NAMES_IN_A_PAIR, LAST_NAMES),
        (FIRST_NAMES, LAST_NAMES_IN_A_PAIR),
    ]
    .into_iter()
    .find_map(|(first_names, last_names)| {
        texts().find_map(|first| {
            let ours = prefix(table, &first.column.name, first_names)?;
            let last = texts().find(|last| {
                let theirs = prefix(table, &last.column.name, last_names);
                theirs.is_some_and(|theirs| theirs == ours)
            })?;
            Some((first, last))
        })
    })?;
    Some(ComputedField {
        name: taken.claim(NameKind::Field, "full_name"),
        expression: joined(first, last),
        note: "computed from the first and the last name",
    })
}

/// An expression for both names, or for the one that is not null.
fn joined(first: &Candidate<'_>, last: &Candidate<'_>) -> String {
    let (a, b) = (first.field, last.field);
    let both = format!("{a} || ' ' || {b}");
    match (first.column.nullable, last.column.nullable) {
        (false, false) => both,
        (true, false) => format!("coalesce({both}, {b})"),
        (false, true) => format!("coalesce({both}, {a})"),
        (true, true) => format!("coalesce({both}, {a}, {b})"),
    }
}

/// The prefix of a column's name before one of `names`: empty, or the beginning of the table's
/// name, as in `emp_first_name` of `employees`. `None` if the name ends with none of them.
fn prefix(table: &Table, column: &str, names: &[&str]) -> Option<String> {
    let words = naming::words(column);
    let of_table = naming::words(&table.name).concat();
    (0..words.len()).find_map(|at| {
        let (before, rest) = words.split_at_checked(at)?;
        let before = before.concat();
        (names.contains(&rest.concat().as_str()) && of_table.starts_with(&before)).then_some(before)
    })
}
