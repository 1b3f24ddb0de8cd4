//! Risk notes on a proposal's changes. Derived by rule from names, datatypes and the difference
//! alone, so that the same proposal always has the same notes.

use wayleave_model::{
    diff::{Change, ChangeKind, Risk},
    mapping::Mapping,
};

use crate::visible_text;

/// A risk note on one change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RiskNote {
    /// The index of the change in the difference.
    pub change: usize,
    /// The kind of risk.
    pub title: &'static str,
    /// Why it matters.
    pub text: String,
    /// A short description of the affected entry.
    pub about: String,
}

/// Words that indicate personal data, and what kind.
const PERSONAL: &[(&[&str], &str)] = &[
    (
        &[
            "email",
            "mail",
            "phone",
            "mobile",
            "telephone",
            "fax",
            "skype",
        ],
        "an address at which a person can be reached",
    ),
    (
        &["birth", "birthdate", "birthday", "dob", "born"],
        "a date of birth",
    ),
    (
        &[
            "firstname",
            "lastname",
            "surname",
            "fullname",
            "givenname",
            "familyname",
            "maiden",
        ],
        "a person's name",
    ),
    (
        &[
            "street",
            "postcode",
            "postalcode",
            "zip",
            "zipcode",
            "homeaddress",
            "address",
        ],
        "where a person lives or works",
    ),
    (
        &[
            "gender",
            "religion",
            "ethnicity",
            "nationality",
            "disability",
            "diagnosis",
            "health",
        ],
        "a sensitive attribute of a person",
    ),
    (
        &["salary", "wage", "income", "compensation"],
        "what a person earns",
    ),
    (
        &["latitude", "longitude", "geolocation", "ipaddress", "ip"],
        "where a person is",
    ),
];

/// All risk notes on a difference, in its order.
pub fn risk_notes(changes: &[Change], mapping: &Mapping) -> Vec<RiskNote> {
    let mut notes = Vec::new();
    for (at, change) in changes.iter().enumerate() {
        let about = about(&change.path);
        let mut note = |title, text: String| {
            notes.push(RiskNote {
                change: at,
                title,
                text,
                about: about.clone(),
            });
        };
        for risk in &change.risks {
            let (title, text) = describe_risk(risk);
            note(title, text);
        }
        let field = field(&change.path);
        if let Some(what) = field
            .filter(|_| {
                matches!(
                    change.kind,
                    ChangeKind::FieldAdded | ChangeKind::ColumnChanged
                )
            })
            .and_then(|(stream, field)| personal_field(mapping, stream, field))
        {
            let text = format!("By its name, {what}. No token has it until you grant it.");
            note("Personal data", text);
        }
        if !visible_text::spoofed(&change.words).is_empty() {
            let text = "It holds characters that hide, turn text around or look like others. They \
                        are shown by their number here, and never as they would look.";
            note("A name made to look like another", text.to_owned());
        }
    }
    notes
}

fn describe_risk(risk: &Risk) -> (&'static str, String) {
    match risk {
        Risk::Secret { name, reason } => (
            "Looks secret",
            format!(
                "By its name, `{name}` {reason}. Propose leaves such columns out; this one was put in by hand."
            ),
        ),
        Risk::Write => (
            "A write",
            "A grant may let agents change data in the source.".to_owned(),
        ),
        Risk::LostConstraint => (
            "Less is checked than before",
            "Values that were refused would be served.".to_owned(),
        ),
        Risk::Source => (
            "Comes from somewhere else under the same name",
            "Whoever reads this name will read other records.".to_owned(),
        ),
        Risk::Identity => (
            "Ids of records change",
            "Links, cursors and subscriptions break.".to_owned(),
        ),
        Risk::Prompt => (
            "Agents read this text",
            "To a model, a description is close to an instruction. Read it as one.".to_owned(),
        ),
        Risk::DeletedShown => (
            "Deleted records are shown",
            "Records that the source marks as deleted would be served.".to_owned(),
        ),
        Risk::Unmasked => (
            "Less is masked than before",
            "Grants may show what was masked for everyone.".to_owned(),
        ),
        Risk::HiddenJoin => (
            "A hidden column can be learnt",
            "A column that is not shown can be learnt from the records it joins.".to_owned(),
        ),
    }
}

/// The kind of personal data in a field, by its name and datatype.
fn personal_field(mapping: &Mapping, stream: &str, field: &str) -> Option<&'static str> {
    let found = mapping
        .stream(stream)?
        .fields
        .iter()
        .find(|it| it.name == field);
    let is_text = found.is_none_or(|it| {
        let kind = it.datatype.as_str();
        matches!(
            kind,
            "string" | "date" | "datetime" | "integer" | "decimal" | "number"
        )
    });
    is_text.then(|| personal(field)).flatten()
}

/// The kind of personal data a name indicates.
pub(crate) fn personal(name: &str) -> Option<&'static str> {
    let words = words(name);
    let has = |wanted: &str| {
        words.iter().any(|it| it == wanted) || words.windows(2).any(|pair| pair.concat() == wanted)
    };
    let found = PERSONAL
        .iter()
        .find(|(names, _)| names.iter().any(|it| has(it)));
    found.map(|(_, what)| *what)
}

/// The words of a name, in lower case: `BirthDate`, `birth_date`.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut was_lower = false;
    for c in name.chars() {
        if !c.is_alphanumeric() {
            words.push(String::new());
            was_lower = false;
            continue;
        }
        if c.is_uppercase() && was_lower {
            words.push(String::new());
        }
        if words.is_empty() {
            words.push(String::new());
        }
        was_lower = c.is_lowercase();
        if let Some(last) = words.last_mut() {
            last.extend(c.to_lowercase());
        }
    }
    words.retain(|it| !it.is_empty());
    words
}

/// The stream and field of a path such as `streams.people.fields.email`.
fn field(path: &str) -> Option<(&str, &str)> {
    let mut parts = path.split('.');
    let named = parts.next() == Some("streams");
    let (stream, section, field) = (parts.next()?, parts.next()?, parts.next()?);
    (named && section == "fields").then_some((stream, field))
}

/// A path in words: `Email` of `customer`.
fn about(path: &str) -> String {
    let mut parts = path.split('.');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some("streams"), Some(stream), Some(_), Some(entry)) => format!("`{entry}` of `{stream}`"),
        (Some("streams"), Some(stream), ..) => format!("`{stream}`"),
        (Some(first), Some(name), ..) if first != "dataset" => format!("`{name}`"),
        _ => "the dataset".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn personal_names_are_known_in_every_spelling() {
        for name in [
            "Email",
            "customer_email",
            "BirthDate",
            "birth_date",
            "HomePhone",
            "LastName",
        ] {
            assert!(personal(name).is_some(), "{name}");
        }
        for name in [
            "Total",
            "Title",
            "mailbox_count",
            "quantity",
            "addressee_id_kind",
        ] {
            assert!(personal(name).is_none(), "{name}");
        }
    }
}
