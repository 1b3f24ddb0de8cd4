//! Columns that hold personal data, and the mask to weigh for each.
//!
//! A proposal only says so: whether a field is served plain, masked or not at all is for the human.
//! Numbers of identity papers, cards and accounts are left out before this is asked.

use super::naming;
use super::person;
use crate::catalogue::{Column, Table};
use crate::mapping::Datatype;

/// What a column tells of a person, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Personal {
    Name,
    Mail,
    Phone,
    Birth,
    Address,
}

/// Words of names, without `_`, in several languages; a word or two neighbours make one.
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

/// Words beside which a word says something of a thing, not of a person.
const OF_THINGS: &[&str] = &[
    "id", "ip", "mac", "count", "type", "kind", "status", "verified", "at",
];

/// The remark on a column that holds personal data.
pub(super) fn note(table: &Table, column: &Column) -> Option<&'static str> {
    let words = naming::words(&column.name);
    let is_thing = words.iter().any(|it| OF_THINGS.contains(&it.as_str()));
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
        Personal::Birth if is_time => "personal data: a birth; weigh `mask = \"year\"`",
        _ if is_time || is_number => return None,
        Personal::Birth => "personal data: a birth; weigh `mask = \"redact\"`",
        Personal::Name => "personal data: a name; weigh `mask = \"redact\"`",
        Personal::Mail => "personal data: a mail address; weigh `mask = \"token\"`",
        Personal::Phone => "personal data: a phone number; weigh `mask = \"last4\"`",
        Personal::Address => "personal data: an address; weigh `mask = \"redact\"`",
    })
}
