//! Detects columns that probably hold personal data, and suggests a mask for each.
//!
//! A proposal only comments: the human decides whether a field is served plain, masked or not at
//! all. Numbers of identity papers, cards and accounts are left out before this module is called.

use super::naming;
use super::person;
use crate::catalogue::{Column, Table};
use crate::mapping::Datatype;

/// The kind of personal data in a column, judged by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Personal {
    Name,
    Mail,
    Phone,
    Birth,
    Address,
}

/// Words of column names, in several languages. A word, or two adjacent words joined, matches an
/// entry.
const WORDS: &[(Personal, &[&str])] = &[
    (
        Personal::Mail,
        &[
            "email",
            "mail",
            "emailaddress",
            "mailaddress",
            "courriel",
            "correo",
        ],
    ),
    (
        Personal::Phone,
        &[
            "phone",
            "phonenumber",
            "telephone",
            "telefon",
            "telefono",
            "tel",
            "mobile",
            "cell",
            "handy",
            "fax",
            "msisdn",
        ],
    ),
    (
        Personal::Birth,
        &[
            "birth",
            "birthdate",
            "birthday",
            "dateofbirth",
            "dob",
            "born",
            "geburtsdatum",
            "naissance",
            "nacimiento",
        ],
    ),
    (
        Personal::Address,
        &[
            "address",
            "addressline",
            "street",
            "streetaddress",
            "adresse",
            "anschrift",
            "strasse",
            "direccion",
            "postcode",
            "postalcode",
            "zip",
            "zipcode",
            "plz",
        ],
    ),
];

/// Words that make a name describe a thing, not a person.
const THING_WORDS: &[&str] = &[
    "id", "ip", "mac", "count", "type", "kind", "status", "verified", "at",
];

/// The note on a column that probably holds personal data.
pub(super) fn note(table: &Table, column: &Column) -> Option<&'static str> {
    let words = naming::words(&column.name);
    let is_thing = words.iter().any(|it| THING_WORDS.contains(&it.as_str()));
    if is_thing || column.datatype == Datatype::Boolean || column.datatype == Datatype::Json {
        return None;
    }
    let has = |wanted: &&str| {
        words.iter().any(|it| it == wanted) || words.windows(2).any(|it| it.concat() == **wanted)
    };
    let mut kinds = WORDS.iter();
    let by_word = kinds.find(|(_, names)| names.iter().any(&has));
    let kind = by_word.map(|(kind, _)| *kind);
    let kind = kind.or_else(|| person::is_name(table, &column.name).then_some(Personal::Name))?;
    let is_time = matches!(column.datatype, Datatype::Date | Datatype::Datetime);
    let is_number = matches!(column.datatype, Datatype::Number);
    Some(match kind {
        Personal::Birth if is_time => "personal data: a birth date; consider `mask = \"year\"`",
        _ if is_time || is_number => return None,
        Personal::Birth => "personal data: a birth date; consider `mask = \"redact\"`",
        Personal::Name => "personal data: a name; consider `mask = \"redact\"`",
        Personal::Mail => "personal data: a mail address; consider `mask = \"token\"`",
        Personal::Phone => "personal data: a phone number; consider `mask = \"last4\"`",
        Personal::Address => "personal data: an address; consider `mask = \"redact\"`",
    })
}
