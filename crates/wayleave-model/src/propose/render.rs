//! Renders a draft as TOML.

use std::fmt::Write;

use super::ProposeOptions;
use super::comment;
use super::draft::{ComputedField, Draft, Entry, Field, ForwardRelation, Guess, Relation, Stream};
use super::seen_columns;
use crate::catalogue::Catalogue;

/// The whole document.
pub(super) fn document(draft: &Draft, catalogue: &Catalogue, options: &ProposeOptions) -> String {
    let mut text = head(catalogue, options);
    for table in &catalogue.tables {
        if let Some(stream) = draft.streams.iter().find(|it| it.table == table.name) {
            text.push_str(&block(stream));
        } else {
            let (name, why) = (
                comment::name(&table.name),
                super::OmissionReason::Unnameable,
            );
            push(&mut text, format_args!("\n# left out: {name} {why}"));
        }
    }
    text + &seen_columns::block(catalogue)
}

fn head(catalogue: &Catalogue, options: &ProposeOptions) -> String {
    let mut text = String::from(
        "# A draft: it serves nothing until a person has ratified it.\n\
         # Comments that begin with `guess` or `review` mark what to look at first.\n\n\
         [dataset]\n",
    );
    pair(&mut text, "name", &options.dataset);
    if let Some(title) = &options.title {
        pair(&mut text, "title", title);
    }
    pair(&mut text, "kind", catalogue.kind.as_str());
    let schema = catalogue
        .schema
        .as_ref()
        .filter(|_| catalogue.kind.has_schemas());
    if let Some(schema) = schema {
        pair(&mut text, "schema", schema);
    }
    text.push_str("# description = \"…\"  # agents read it: say what this dataset holds\n");
    text.push_str("\n[[connections]]\n");
    pair(&mut text, "id", &options.connection);
    if let Some(label) = &options.label {
        pair(&mut text, "label", label);
    }
    pair(&mut text, "source", &options.source);
    text
}

fn pair(text: &mut String, key: &str, value: &str) {
    push(text, format_args!("{key} = {}", string(value)));
}

/// A stream with the empty line before it; commented out if it cannot be served.
pub(super) fn block(stream: &Stream) -> String {
    let mut text = String::from("\n");
    if let Some(remark) = &stream.remark {
        push(
            &mut text,
            format_args!("# the store says: {}", comment::words(remark)),
        );
    }
    let Some(why) = &stream.unserved else {
        return text + &tables(stream);
    };
    push(
        &mut text,
        format_args!("# left out: {} {why}.", comment::name(&stream.table)),
    );
    if *why == super::OmissionReason::NoFields {
        return text;
    }
    text.push_str("# To serve it, fix that, uncomment the lines below and check again.\n");
    for line in tables(stream).lines() {
        push(
            &mut text,
            format_args!("{}", format!("# {line}").trim_end()),
        );
    }
    text
}

fn tables(stream: &Stream) -> String {
    let mut text = String::new();
    let name = &stream.name;
    push(&mut text, format_args!("[streams.{name}]"));
    push(
        &mut text,
        format_args!("type = {}", string(&stream.type_name)),
    );
    // Written even if it equals the stream's name, so that a person may rename the stream.
    pair(&mut text, "table", &stream.table);
    let note = stream
        .key_note
        .as_ref()
        .map(|note| format!("  # review: {note}"));
    let note = note.unwrap_or_default();
    push(
        &mut text,
        format_args!("key = {}{note}", strings(&stream.key)),
    );
    part(&mut text, "title", stream.title.as_ref());
    part(&mut text, "event_time", stream.event_time.as_ref());
    part(&mut text, "updated", stream.updated.as_ref());
    part(&mut text, "deleted", stream.deleted.as_ref());
    if !stream.search.is_empty() {
        let fields = strings(&stream.search);
        push(
            &mut text,
            format_args!("search = {fields}  # guess: the columns that hold words"),
        );
    }
    if !stream.unique.is_empty() {
        let sets: Vec<String> = stream.unique.iter().map(|it| strings(it)).collect();
        push(&mut text, format_args!("unique = [{}]", sets.join(", ")));
    }
    push(&mut text, format_args!("\n[streams.{name}.fields]"));
    for entry in &stream.fields {
        text.push_str(&entry_lines(entry));
    }
    if !stream.relations.is_empty() || !stream.unrelated.is_empty() {
        text.push('\n');
    }
    if !stream.relations.is_empty() {
        push(&mut text, format_args!("[streams.{name}.relations]"));
    }
    for relation in &stream.relations {
        let note = relation.reverse_of.as_ref().map(reverse_note);
        let note = note.map(|it| format!("  # {it}")).unwrap_or_default();
        push(
            &mut text,
            format_args!("{} = {}{note}", relation.name, relation_value(relation)),
        );
    }
    for (columns, why) in &stream.unrelated {
        let columns = comment::names(columns.iter().map(String::as_str));
        push(
            &mut text,
            format_args!("# left out: a relation on {columns}, because {why}"),
        );
    }
    text
}

fn part(text: &mut String, key: &str, guess: Option<&Guess>) {
    if let Some(Guess { field, note }) = guess {
        push(text, format_args!("{key} = {}  # {note}", string(field)));
    }
}

fn entry_lines(entry: &Entry) -> String {
    let mut text = String::new();
    match entry {
        Entry::Field(field) => {
            if let Some(remark) = &field.remark {
                push(
                    &mut text,
                    format_args!("# the store says: {}", comment::words(remark)),
                );
            }
            let note = field
                .note
                .map(|note| format!("  # {note}"))
                .unwrap_or_default();
            push(
                &mut text,
                format_args!("{} = {}{note}", field.name, field_value(field)),
            );
        }
        Entry::Computed(field) => {
            let value = computed_value(field);
            push(
                &mut text,
                format_args!("{} = {value}  # {}", field.name, field.note),
            );
        }
        Entry::LeftOut { column, why } => {
            push(
                &mut text,
                format_args!("# left out: {} {why}", comment::name(column)),
            );
        }
    }
    text
}

/// A field on one line.
pub(super) fn field_value(field: &Field) -> String {
    let mut parts = Vec::new();
    if field.column != field.name {
        parts.push(format!("column = {}", string(&field.column)));
    }
    parts.push(format!("datatype = {}", string(field.datatype.as_str())));
    let flags = [
        ("many", field.many),
        ("required", field.required),
        ("generated", field.generated),
    ];
    parts.extend(
        flags
            .iter()
            .filter(|it| it.1)
            .map(|(flag, _)| format!("{flag} = true")),
    );
    if !field.one_of.is_empty() {
        parts.push(format!("one_of = {}", strings(&field.one_of)));
    }
    parts.extend(field.max_length.map(|most| format!("max_length = {most}")));
    format!("{{ {} }}", parts.join(", "))
}

fn computed_value(field: &ComputedField) -> String {
    format!(
        "{{ datatype = \"string\", compute = {} }}",
        string(&field.expression)
    )
}

/// The comment on a reverse relation, which names the relation it reverses.
pub(super) fn reverse_note(forward: &ForwardRelation) -> String {
    format!("the reverse of {}.{}", forward.stream, forward.relation)
}

/// A relation on one line.
pub(super) fn relation_value(relation: &Relation) -> String {
    let pair = |(ours, theirs): &(String, String)| format!("{} = {}", key(ours), string(theirs));
    let on: Vec<String> = relation.on.iter().map(pair).collect();
    format!(
        "{{ to = {}, on = {{ {} }} }}",
        string(&relation.to),
        on.join(", ")
    )
}

/// A basic string, with every character escaped that could confuse a reader or a parser.
pub(super) fn string(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            c if c.is_control() || crate::sensitive::is_hidden(c) => {
                let code = u32::from(c);
                let escape = if code > 0xffff {
                    format!("\\U{code:08X}")
                } else {
                    format!("\\u{code:04X}")
                };
                quoted.push_str(&escape);
            }
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

/// A key, without quotes if possible.
pub(super) fn key(text: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !text.is_empty() && text.chars().all(bare) {
        text.to_owned()
    } else {
        string(text)
    }
}

fn strings(all: &[String]) -> String {
    let all: Vec<String> = all.iter().map(|it| string(it)).collect();
    format!("[{}]", all.join(", "))
}

fn push(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing into a `String` cannot fail.
    let _ = writeln!(text, "{line}");
}
