//! Derives valid names for a mapping from the names in a store.
//!
//! A valid name is kept. Others are transliterated to ASCII; equal results are numbered. Fields and
//! relations of a stream differ in more than case.

use std::collections::{BTreeMap, BTreeSet};

use crate::catalogue::Table;
use crate::names::NameKind;

/// Names given by a person or an earlier proposal.
#[derive(Debug, Default)]
pub(super) struct ExistingNames {
    /// The stream of each table.
    pub(super) streams: BTreeMap<String, String>,
    /// The field of each table and column.
    pub(super) fields: BTreeMap<(String, String), String>,
    /// The names of all streams.
    pub(super) taken_streams: BTreeSet<String>,
    /// Names of relations, computed fields and measures, by table.
    pub(super) other_names: BTreeMap<String, BTreeSet<String>>,
    /// The relations of each table's stream.
    pub(super) relations: BTreeMap<String, Vec<ExistingRelation>>,
}

impl ExistingNames {
    /// The name of the existing relation of a table with this target and these joins.
    pub(super) fn relation(
        &self,
        table: &str,
        to: &str,
        on: &[(String, String)],
    ) -> Option<&String> {
        let same = |it: &&ExistingRelation| {
            it.to == to && it.on.len() == on.len() && on.iter().all(|pair| it.on.contains(pair))
        };
        let found = self.relations.get(table)?.iter().find(same);
        found.map(|it| &it.name)
    }
}

/// A relation already in the document.
#[derive(Debug)]
pub(super) struct ExistingRelation {
    pub(super) name: String,
    pub(super) to: String,
    /// Our columns and their fields.
    pub(super) on: Vec<(String, String)>,
}

/// Names in use, compared without case.
#[derive(Debug, Default)]
pub(super) struct UsedNames(BTreeSet<String>);

impl UsedNames {
    /// Marks a name as used. Returns whether it was free.
    pub(super) fn take(&mut self, name: &str) -> bool {
        self.0.insert(name.to_ascii_lowercase())
    }

    /// Whether a name is free.
    pub(super) fn is_free(&self, name: &str) -> bool {
        !self.0.contains(&name.to_ascii_lowercase())
    }

    /// Takes the preferred name if it is valid and free, else a similar one.
    pub(super) fn claim(&mut self, kind: NameKind, preferred: &str) -> String {
        let fit = |name: &str| kind.accepts(name);
        if fit(preferred) && self.take(preferred) {
            return preferred.to_owned();
        }
        // Leave room for a number after the name.
        let stem: String = preferred.chars().take(56).collect();
        let stem = stem.trim_end_matches(['_', '-']);
        let mut number = if fit(stem) { 2_u64 } else { 1 };
        loop {
            let name = format!("{stem}_{number}");
            if fit(&name) && self.take(&name) {
                return name;
            }
            number += 1;
        }
    }
}

/// The stream name of each table, in the tables' order.
pub(super) fn streams(tables: &[Table], given: &ExistingNames) -> Vec<String> {
    let mut taken = UsedNames::default();
    for name in given.streams.values().chain(&given.taken_streams) {
        taken.take(name);
    }
    let kept: Vec<Option<String>> = tables
        .iter()
        .map(|table| {
            let mut fit = || NameKind::Stream.accepts(&table.name) && taken.take(&table.name);
            match given.streams.get(&table.name) {
                Some(name) => Some(name.clone()),
                None => fit().then(|| table.name.clone()),
            }
        })
        .collect();
    let named = kept.into_iter().zip(tables);
    named
        .map(|(kept, table)| {
            kept.unwrap_or_else(|| taken.claim(NameKind::Stream, &stream(&table.name)))
        })
        .collect()
}

/// The field name of each column, in the columns' order.
///
/// The exact name of a column is never used for another column's field: a reader of `on` would
/// confuse the two.
pub(super) fn fields(table: &Table, given: &ExistingNames) -> Vec<String> {
    let mut taken = UsedNames::default();
    let set = |column: &str| given.fields.get(&(table.name.clone(), column.to_owned()));
    for column in &table.columns {
        if let Some(name) = set(&column.name) {
            taken.take(name);
        }
    }
    for name in given.other_names.get(&table.name).into_iter().flatten() {
        taken.take(name);
    }
    let kept: Vec<Option<String>> = table
        .columns
        .iter()
        .map(|column| {
            let mut fit = || NameKind::Field.accepts(&column.name) && taken.take(&column.name);
            match set(&column.name) {
                Some(name) => Some(name.clone()),
                None => fit().then(|| column.name.clone()),
            }
        })
        .collect();
    for column in &table.columns {
        taken.take(&column.name);
    }
    let named = kept.into_iter().zip(&table.columns);
    named
        .map(|(kept, column)| {
            kept.unwrap_or_else(|| taken.claim(NameKind::Field, &field(&column.name)))
        })
        .collect()
}

/// The type of each stream's records: `order_lines` holds an `OrderLine`.
pub(super) fn types(tables: &[Table]) -> Vec<String> {
    let mut taken = UsedNames::default();
    tables
        .iter()
        .map(|table| taken.claim(NameKind::Type, &type_name(&table.name)))
        .collect()
}

/// A dataset's name from a source's.
pub(super) fn dataset(source: &str) -> String {
    let joined: String = words(source).join("-").chars().take(32).collect();
    let name = joined.trim_end_matches('-');
    let name = if name.starts_with(|c: char| c.is_ascii_digit()) {
        ""
    } else {
        name
    };
    if name.is_empty() {
        "dataset".to_owned()
    } else {
        name.to_owned()
    }
}

/// The words of a name, in lower case ASCII: `HTTPSPort` is `https`, `port`.
pub(super) fn words(name: &str) -> Vec<String> {
    let spelled: Vec<char> = ascii(name).chars().collect();
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    for (at, &c) in spelled.iter().enumerate() {
        let before = at
            .checked_sub(1)
            .and_then(|at| spelled.get(at))
            .copied()
            .unwrap_or(' ');
        let after = spelled.get(at + 1).copied().unwrap_or(' ');
        let begins = c.is_ascii_uppercase()
            && (before.is_ascii_lowercase()
                || before.is_ascii_digit()
                || (before.is_ascii_uppercase() && after.is_ascii_lowercase()));
        if (begins || !c.is_ascii_alphanumeric()) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if c.is_ascii_alphanumeric() {
            word.push(c.to_ascii_lowercase());
        }
    }
    words.extend(Some(word).filter(|it| !it.is_empty()));
    words
}

/// The words of a name, joined by `_`.
pub(super) fn snake(name: &str) -> String {
    words(name).join("_")
}

/// The singular of a word: `category` for `categories`.
pub(super) fn singular(word: &str) -> String {
    match word {
        "people" => return "person".to_owned(),
        "children" => return "child".to_owned(),
        _ => {}
    }
    let ending = |end: &str| word.strip_suffix(end).filter(|stem| stem.len() > 1);
    if let Some(stem) = ending("ies") {
        return format!("{stem}y");
    }
    if ["sses", "shes", "ches", "xes", "zes"]
        .iter()
        .any(|end| ending(end).is_some())
    {
        return ending("es").unwrap_or(word).to_owned();
    }
    match ending("s") {
        Some(stem) if !stem.ends_with(['s', 'u', 'i']) => stem.to_owned(),
        _ => word.to_owned(),
    }
}

/// The plural of a word: `categories` for `category`.
pub(super) fn plural(word: &str) -> String {
    match word {
        "person" => return "people".to_owned(),
        "child" => return "children".to_owned(),
        "data" | "metadata" | "media" | "news" | "staff" | "info" | "information" | "equipment"
        | "history" | "feedback" => return word.to_owned(),
        _ => {}
    }
    if !word.ends_with(|c: char| c.is_ascii_alphabetic()) {
        return word.to_owned();
    }
    if let Some(stem) = word.strip_suffix("is") {
        return format!("{stem}es");
    }
    if ["s", "x", "z", "ch", "sh"]
        .iter()
        .any(|end| word.ends_with(end))
    {
        return format!("{word}es");
    }
    match word.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
        _ => format!("{word}s"),
    }
}

/// The name in snake case, its last word in the singular: `order_line` for `order_lines`.
pub(super) fn singular_snake(name: &str) -> String {
    ending_as(name, singular)
}

/// The name in snake case, its last word in the plural: `order_lines` for `OrderLine`.
pub(super) fn plural_snake(name: &str) -> String {
    ending_as(name, |word| plural(&singular(word)))
}

fn ending_as(name: &str, change: impl Fn(&str) -> String) -> String {
    let mut words = words(name);
    if let Some(last) = words.last_mut() {
        *last = change(last);
    }
    words.join("_")
}

fn stream(table: &str) -> String {
    lettered(&snake(table), "stream")
}

fn field(column: &str) -> String {
    let spelled = ascii(column);
    let parts = spelled
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|it| !it.is_empty());
    lettered(&parts.collect::<Vec<_>>().join("_"), "field")
}

fn type_name(table: &str) -> String {
    let mut words = words(table);
    if let Some(last) = words.last_mut() {
        *last = singular(last);
    }
    let capital = |word: &String| {
        let mut letters = word.chars();
        letters
            .next()
            .map(|it| it.to_ascii_uppercase())
            .into_iter()
            .chain(letters)
            .collect()
    };
    let joined: String = words.iter().map(capital).collect::<Vec<String>>().concat();
    lettered(&joined, "Record")
}

/// The name, with a prefix if it does not start with a letter.
fn lettered(name: &str, otherwise: &str) -> String {
    let name: String = name.chars().take(64).collect();
    if name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        name
    } else if name.is_empty() {
        otherwise.to_owned()
    } else {
        format!("{otherwise}_{name}").chars().take(64).collect()
    }
}

/// Transliterates a name to ASCII: drops accents, and replaces other scripts by spaces.
fn ascii(name: &str) -> String {
    let mut spelled = String::with_capacity(name.len());
    for c in name.chars() {
        if c.is_ascii() {
            spelled.push(c);
        } else if !('\u{300}'..='\u{36f}').contains(&c) {
            let lower = c.to_lowercase().next().unwrap_or(c);
            let letters = latin(lower).unwrap_or(" ");
            if lower == c {
                spelled.push_str(letters);
            } else {
                spelled.push_str(&letters.to_ascii_uppercase());
            }
        }
    }
    spelled
}

/// The ASCII letters for a Latin letter with a diacritic.
fn latin(c: char) -> Option<&'static str> {
    Some(match c {
        'à'..='å' | 'ā' | 'ă' | 'ą' => "a",
        'æ' => "ae",
        'ç' | 'ć' | 'ĉ' | 'ċ' | 'č' => "c",
        'ď' | 'đ' | 'ð' => "d",
        'è'..='ë' | 'ē' | 'ĕ' | 'ė' | 'ę' | 'ě' => "e",
        'ĝ' | 'ğ' | 'ġ' | 'ģ' => "g",
        'ĥ' | 'ħ' => "h",
        'ì'..='ï' | 'ĩ' | 'ī' | 'ĭ' | 'į' | 'ı' => "i",
        'ĵ' => "j",
        'ķ' => "k",
        'ĺ' | 'ļ' | 'ľ' | 'ŀ' | 'ł' => "l",
        'ñ' | 'ń' | 'ņ' | 'ň' => "n",
        'ò'..='ö' | 'ø' | 'ō' | 'ŏ' | 'ő' => "o",
        'œ' => "oe",
        'ŕ' | 'ŗ' | 'ř' => "r",
        'ś' | 'ŝ' | 'ş' | 'š' | 'ș' => "s",
        'ß' => "ss",
        'ţ' | 'ť' | 'ŧ' | 'ț' => "t",
        'þ' => "th",
        'ù'..='ü' | 'ũ' | 'ū' | 'ŭ' | 'ů' | 'ű' | 'ų' => "u",
        'ŵ' => "w",
        'ý' | 'ÿ' | 'ŷ' => "y",
        'ź' | 'ż' | 'ž' => "z",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_end_where_people_end_them() {
        for (name, expected) in [
            ("HTTPSPort", "https_port"),
            ("orderLines", "order_lines"),
            ("Order Details", "order_details"),
            ("ČÁSTKA_kc", "castka_kc"),
            ("address2Line", "address2_line"),
            ("顧客", ""),
        ] {
            assert_eq!(snake(name), expected, "{name}");
        }
    }

    #[test]
    fn many_become_one() {
        for (many, one) in [
            ("categories", "category"),
            ("addresses", "address"),
            ("boxes", "box"),
            ("orders", "order"),
            ("status", "status"),
            ("class", "class"),
            ("analysis", "analysis"),
            ("artist", "artist"),
            ("people", "person"),
        ] {
            assert_eq!(singular(many), one);
        }
    }

    #[test]
    fn one_becomes_many() {
        for (name, expected) in [
            ("category", "categories"),
            ("days", "days"),
            ("addresses", "addresses"),
            ("box", "boxes"),
            ("InvoiceLine", "invoice_lines"),
            ("Order Details", "order_details"),
            ("status", "statuses"),
            ("analysis", "analyses"),
            ("person", "people"),
            ("people", "people"),
            ("movies", "movies"),
            ("staff", "staff"),
            ("log_2024", "log_2024"),
        ] {
            assert_eq!(plural_snake(name), expected, "{name}");
        }
    }

    #[test]
    fn a_taken_or_unfit_name_is_numbered() {
        let mut taken = UsedNames::default();
        assert_eq!(taken.claim(NameKind::Field, "name"), "name");
        assert_eq!(taken.claim(NameKind::Field, "NAME"), "NAME_2");
        assert_eq!(taken.claim(NameKind::Field, "name"), "name_3");
        assert_eq!(taken.claim(NameKind::Field, "any"), "any_1");
        let long = "x".repeat(80);
        assert!(NameKind::Field.accepts(&taken.claim(NameKind::Field, &long)));
    }

    #[test]
    fn a_dataset_is_named_after_its_source() {
        for (source, expected) in [("crm_eu", "crm-eu"), ("shop", "shop"), ("1", "dataset")] {
            assert_eq!(dataset(source), expected);
        }
    }
}
