//! Guesses the role of a column from its name and type.

use super::draft::Guess;
use super::naming;
use super::person;
use crate::catalogue::{Column, Table};
use crate::mapping::Datatype;

/// Names of columns that hold a record's title, best first.
const TITLES: &[&str] = &[
    "title",
    "name",
    "full_name",
    "display_name",
    "label",
    "subject",
    "headline",
    "company_name",
    "user_name",
    "username",
    "summary",
];

/// Names of columns that hold the time of an event, best first.
const EVENTS: &[&str] = &[
    "event_time",
    "event_date",
    "event_at",
    "occurred_at",
    "happened_at",
    "timestamp",
    "date",
];

/// Names of columns that hold a record's creation time, if nothing better is known.
const CREATED: &[&str] = &[
    "created_at",
    "created_on",
    "created",
    "create_time",
    "created_date",
    "date_created",
    "creation_date",
    "inserted_at",
    "added_at",
    "registered_at",
];

const UPDATED: &[&str] = &[
    "updated_at",
    "updated_on",
    "updated",
    "update_time",
    "last_updated",
    "last_update",
    "modified_at",
    "modified_on",
    "modified",
    "last_modified",
    "last_modified_at",
    "modified_date",
    "changed_at",
    "date_updated",
    "date_modified",
];

const DELETED: &[&str] = &[
    "deleted_at",
    "deleted_on",
    "deleted",
    "is_deleted",
    "removed_at",
    "is_removed",
    "date_deleted",
];

/// Words in names of times that are not event times.
const NO_EVENT: &[&str] = &[
    "birth",
    "born",
    "dob",
    "expires",
    "expiry",
    "expiration",
    "due",
    "until",
    "end",
    "ends",
    "valid",
];

/// Last words of names of text that is not worth searching.
const NOT_SEARCHED: &[&str] = &[
    "id",
    "code",
    "key",
    "hash",
    "url",
    "uri",
    "link",
    "path",
    "phone",
    "fax",
    "mobile",
    "zip",
    "postcode",
    "postal",
    "country",
    "currency",
    "locale",
    "language",
    "lang",
    "ip",
    "mime",
    "extension",
    "color",
    "colour",
    "uuid",
    "guid",
    "slug",
    "version",
    "status",
    "type",
    "at",
    "on",
    "date",
    "time",
    "timestamp",
    "day",
    "month",
    "year",
];

/// Text shorter than this is more often a code than prose.
const MIN_SEARCHED_CHARS: u32 = 20;

/// A column that may have a role, and its field.
pub(super) struct Candidate<'a> {
    pub(super) column: &'a Column,
    pub(super) field: &'a str,
    /// Whether a foreign key uses it.
    pub(super) refers: bool,
    /// Whether the stream's key uses it.
    pub(super) in_key: bool,
    /// Whether its values are a closed list.
    pub(super) is_listed: bool,
}

impl Candidate<'_> {
    fn snake(&self) -> String {
        naming::snake(&self.column.name)
    }

    fn is_time(&self) -> bool {
        !self.column.many && matches!(self.column.datatype, Datatype::Date | Datatype::Datetime)
    }

    pub(super) fn is_free_text(&self) -> bool {
        let text = self.column.datatype == Datatype::String && !self.column.many;
        text && !self.is_listed && !self.refers && holds_text(&self.column.native_type)
    }
}

/// The field with a record's title for people.
pub(super) fn title(table: &Table, all: &[Candidate<'_>]) -> Option<Guess> {
    let of_table =
        |suffix: &str| naming::snake(&format!("{}_{suffix}", naming::singular_snake(&table.name)));
    let own = [of_table("name"), of_table("title")];
    let names = || TITLES.iter().copied().chain(own.iter().map(String::as_str));
    let fits = |it: &Candidate<'_>| {
        it.is_free_text() && !person::is_personal_title(table, &it.column.name)
    };
    let exact = named(all, names(), fits);
    let ending = || {
        all.iter().find(|it| {
            let snake = it.snake();
            fits(it) && (snake.ends_with("_name") || snake.ends_with("_title"))
        })
    };
    let found = exact.or_else(ending)?;
    Some(guess(found, "guess: by its name"))
}

/// The field with the time of a record's event.
pub(super) fn event_time(all: &[Candidate<'_>]) -> Option<Guess> {
    let fits = |it: &Candidate<'_>| it.is_time() && !is_other_time(&it.snake());
    let happened = |it: &&Candidate<'_>| {
        let snake = it.snake();
        fits(it)
            && !CREATED.contains(&snake.as_str())
            && ["_at", "_on", "_date", "_time"]
                .iter()
                .any(|end| snake.ends_with(end))
    };
    let by_name = named(all, EVENTS.iter().copied(), fits).or_else(|| all.iter().find(happened));
    if let Some(found) = by_name {
        return Some(guess(found, "guess: by its name"));
    }
    if let Some(found) = named(all, CREATED.iter().copied(), fits) {
        return Some(guess(
            found,
            "guess: the creation time; another column may hold the event's time",
        ));
    }
    let mut times = all.iter().filter(|it| fits(it));
    match (times.next(), times.next()) {
        (Some(only), None) => Some(guess(only, "guess: the only time there is")),
        _ => None,
    }
}

/// The field that increases whenever a record changes.
pub(super) fn updated(all: &[Candidate<'_>]) -> Option<Guess> {
    let fits = |it: &Candidate<'_>| !it.column.many && it.column.datatype == Datatype::Datetime;
    let found = named(all, UPDATED.iter().copied(), fits)?;
    Some(guess(
        found,
        if found.column.nullable {
            "guess: right only if every write sets it; it may be NULL, and such a record never shows as changed"
        } else {
            "guess: right only if every write sets it"
        },
    ))
}

/// The field that marks a record as deleted.
pub(super) fn deleted(all: &[Candidate<'_>]) -> Option<Guess> {
    let fits = |it: &Candidate<'_>| {
        it.is_time() || (!it.column.many && it.column.datatype == Datatype::Boolean)
    };
    let found = named(all, DELETED.iter().copied(), fits)?;
    Some(guess(
        found,
        "guess: records marked by it are served as deleted",
    ))
}

/// The fields that full-text search covers.
pub(super) fn search(all: &[Candidate<'_>]) -> Vec<String> {
    let worth = |it: &&Candidate<'_>| {
        let words = naming::words(&it.column.name);
        let last = words.last().map_or("", String::as_str);
        it.is_free_text()
            && !it.in_key
            && !NOT_SEARCHED.contains(&last)
            && it
                .column
                .max_length
                .is_none_or(|it| it >= MIN_SEARCHED_CHARS)
    };
    all.iter()
        .filter(worth)
        .map(|it| it.field.to_owned())
        .take(64)
        .collect()
}

/// Whether the store's type is one for words, not for numbers or codes that happen to be text.
pub(super) fn holds_text(native_type: &str) -> bool {
    let native = native_type.to_ascii_lowercase();
    ["char", "text", "clob", "string"]
        .iter()
        .any(|it| native.contains(it))
}

fn is_other_time(snake: &str) -> bool {
    UPDATED.contains(&snake)
        || DELETED.contains(&snake)
        || snake.split('_').any(|word| NO_EVENT.contains(&word))
}

/// The fitting column whose name is earliest in the list.
fn named<'c, 'a>(
    all: &'c [Candidate<'a>],
    names: impl Iterator<Item = &'c str>,
    fits: impl Fn(&Candidate<'a>) -> bool,
) -> Option<&'c Candidate<'a>> {
    names
        .into_iter()
        .find_map(|name| all.iter().find(|it| it.snake() == name && fits(it)))
}

fn guess(candidate: &Candidate<'_>, note: &'static str) -> Guess {
    Guess {
        field: candidate.field.to_owned(),
        note,
    }
}
