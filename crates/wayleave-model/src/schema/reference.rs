//! The reference of mappings, in Markdown.

use std::fmt::{self, Write};

use crate::definitions::{Key, MAX_BYTES, Presence, SECTIONS, Section, Shape};
use crate::mapping::{Datatype, Field};
use crate::names::NameKind;
use crate::ontology::{ENTITY_TYPE, RELATION_TYPE};
use crate::problem::ProblemCode;

/// A complete mapping that uses every key. A test parses it without a problem.
pub const EXAMPLE: &str = include_str!("example.toml");

/// The section on expressions.
const EXPRESSIONS: &str = include_str!("expressions.md");
/// The section on `propose --samples`.
const SAMPLES: &str = include_str!("samples.md");

/// The reference page: every section and key, names, datatypes, problem codes, an example.
pub fn mapping_reference_markdown() -> String {
    let mut page = String::new();
    // Writing to a string cannot fail.
    let _ = write_page(&mut page);
    page
}

fn write_page(out: &mut String) -> fmt::Result {
    writeln!(
        out,
        "# Mapping reference\n\n\
         <!-- Generated from the definitions the parser uses. Do not edit; \
         `WAYLEAVE_BLESS=1 cargo test -p wayleave-model` rewrites it. -->\n\n\
         A mapping is a TOML document of at most {} KiB that says what of a source may be seen, \
         and as what. Unknown keys are errors. [mapping.schema.json](mapping.schema.json) is the \
         same as JSON Schema, for editors.\n",
        MAX_BYTES / 1024
    )?;
    for section in SECTIONS {
        write_section(out, section)?;
    }
    write_datatypes(out)?;
    writeln!(out, "{EXPRESSIONS}")?;
    writeln!(out, "{SAMPLES}")?;
    write_names(out)?;
    writeln!(
        out,
        "## Ontology\n\nAn optional `ontology.toml` closes the vocabulary: when it is present, \
         every `type` of a stream and of a relation must be declared in it, and relations must \
         join the types it says.\n"
    )?;
    for section in [&ENTITY_TYPE, &RELATION_TYPE] {
        write_section(out, section)?;
    }
    write_codes(out)?;
    writeln!(out, "## A whole mapping\n\n```toml\n{EXAMPLE}```")
}

fn write_section(out: &mut String, section: &Section) -> fmt::Result {
    writeln!(out, "## `{}`\n\n{}\n", section.header, section.about)?;
    writeln!(
        out,
        "| key | value | when absent | meaning |\n| --- | --- | --- | --- |"
    )?;
    for key in section.keys {
        writeln!(
            out,
            "| `{}` | {} | {} | {} |",
            key.name,
            value_of(key),
            match key.presence {
                Presence::Required => "refused",
                Presence::Optional => "",
                Presence::Default(means) => means,
            },
            key.about
        )?;
    }
    writeln!(out)
}

fn value_of(key: &Key) -> String {
    let alternatives = |words: &[&str]| {
        words
            .iter()
            .map(|word| format!("`{word}`"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    match key.shape {
        Shape::Name(kind) => kind.noun().to_owned(),
        Shape::Line(most) => format!("one line, at most {most} characters"),
        Shape::Prose => "text".to_owned(),
        Shape::Identifier => "name in the store".to_owned(),
        Shape::IriBase => "IRI".to_owned(),
        Shape::Predicate => "IRI or name".to_owned(),
        Shape::Word(words) => alternatives(words),
        Shape::Words(words) => format!("list of {}", alternatives(words)),
        Shape::Fields { .. } => "list of field names".to_owned(),
        Shape::FieldSets => "list of lists of field names".to_owned(),
        Shape::Flag => "`true` or `false`".to_owned(),
        Shape::Count => "whole number".to_owned(),
        Shape::Number => "number, or exact string".to_owned(),
        Shape::Scalars => "list of strings or numbers".to_owned(),
        Shape::Pattern => "regular expression".to_owned(),
        Shape::Mask => "[mask](grants.md#masks)".to_owned(),
        Shape::Expression => "[expression](#expressions)".to_owned(),
        Shape::Measures => "`{ revenue = \"sum(amount)\" }`".to_owned(),
        Shape::Joins => "`{ our_column = \"their_field\" }`".to_owned(),
        Shape::Table(_) | Shape::Tables(_) => "table".to_owned(),
        Shape::Named(_, section) => {
            format!("`{}`, at most {}", section.header, key.shape.max_entries())
        }
    }
}

fn write_datatypes(out: &mut String) -> fmt::Result {
    writeln!(
        out,
        "## Datatypes\n\n| datatype | filter and sort | aggregates |\n| --- | --- | --- |"
    )?;
    for &datatype in Datatype::ALL {
        let aggregates: Vec<_> = datatype
            .aggregates()
            .iter()
            .map(|op| format!("`{op}`"))
            .collect();
        let scalar = if Field::scalar(datatype, false) {
            "yes"
        } else {
            "no"
        };
        writeln!(
            out,
            "| `{datatype}` | {scalar} | {} |",
            aggregates.join(", ")
        )?;
    }
    writeln!(
        out,
        "\nA field with `many = true` cannot be filtered, sorted or aggregated.\n"
    )
}

fn write_names(out: &mut String) -> fmt::Result {
    writeln!(
        out,
        "## Names\n\nNames end up in tool names, record ids, URIs, filters and cursors, so each \
         kind has one narrow pattern. Reserved: the field `any` (filters use it), the type \
         `types`, and for capabilities the names of Wayleave's own tools and names that begin \
         with `workup_` or `wayleave_`. Names of fields and relations of one stream differ in \
         more than case.\n\n| name | pattern |\n| --- | --- |"
    )?;
    for kind in NameKind::ALL {
        writeln!(out, "| {} | `{}` |", kind.noun(), kind.pattern())?;
    }
    writeln!(out)
}

fn write_codes(out: &mut String) -> fmt::Result {
    writeln!(
        out,
        "## Problem codes\n\n`check` reports every problem at once, each with one of these codes.\n\n\
         | code | severity | meaning |\n| --- | --- | --- |"
    )?;
    for code in ProblemCode::ALL {
        writeln!(
            out,
            "| `{code}` | {} | {} |",
            code.severity(),
            code.meaning()
        )?;
    }
    writeln!(out)
}
