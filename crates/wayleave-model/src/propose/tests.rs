//! Golden drafts of catalogues, and rules that no golden can show.

mod person;
mod reverse;
mod samples;

use std::path::PathBuf;

use proptest::prelude::*;

use super::*;
use crate::catalogue::{Column, ForeignKey, Table, TableKind};
use crate::mapping::{Datatype, SourceKind};
use crate::parse::parse;

fn column(name: &str, native_type: &str, datatype: Datatype) -> Column {
    Column {
        name: name.to_owned(),
        native_type: native_type.trim_end_matches('?').to_owned(),
        datatype,
        many: false,
        nullable: native_type.ends_with('?'),
        one_of: Vec::new(),
        max_length: None,
        generated: false,
        comment: None,
    }
}

fn table(name: &str, columns: Vec<Column>) -> Table {
    Table {
        name: name.to_owned(),
        kind: TableKind::Table,
        primary_key: columns
            .first()
            .map(|it| it.name.clone())
            .into_iter()
            .collect(),
        columns,
        unique: Vec::new(),
        foreign_keys: Vec::new(),
        row_estimate: None,
        comment: None,
    }
}

fn text(name: &str) -> Column {
    column(name, "text?", Datatype::String)
}

fn id(name: &str) -> Column {
    column(name, "integer", Datatype::Integer)
}

/// A small shop.
fn shop() -> Catalogue {
    let mut people = table(
        "people",
        vec![
            id("id"),
            text("full_name"),
            text("password"),
            column("updated_at", "timestamptz", Datatype::Datetime),
        ],
    );
    people.comment = Some("who buys".to_owned());
    let mut orders = table(
        "orders",
        vec![
            id("id"),
            id("person_id"),
            column("placed_at", "timestamptz?", Datatype::Datetime),
            text("note"),
        ],
    );
    orders.foreign_keys.push(ForeignKey {
        columns: vec!["person_id".to_owned()],
        to_table: "people".to_owned(),
        to_columns: vec!["id".to_owned()],
    });
    Catalogue {
        kind: SourceKind::Postgres,
        schema: Some("public".to_owned()),
        tables: vec![orders, people],
    }
}

fn options() -> ProposeOptions {
    ProposeOptions::for_source("shop")
}

/// Compares with a file beside this one; `WAYLEAVE_BLESS=1` rewrites it.
fn golden(name: &str, actual: &str) {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "src/propose/golden", name]
        .iter()
        .collect();
    if std::env::var_os("WAYLEAVE_BLESS").is_some_and(|it| it == "1") {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, actual).unwrap();
    }
    let agreed = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        agreed, actual,
        "{name} differs; WAYLEAVE_BLESS=1 accepts it"
    );
}

/// Merges, and checks what holds for every merge.
fn merged(existing: &str, catalogue: &Catalogue) -> Merge {
    let merge = repropose(existing, catalogue, &options()).unwrap();
    let again = repropose(&merge.text, catalogue, &options()).unwrap();
    assert_eq!(again.text, merge.text, "the second merge changed something");
    assert!(again.changes.iter().all(is_lasting), "{:?}", again.changes);
    merge
}

/// Missing parts are reported every time; new ones, once.
fn is_lasting(change: &Change) -> bool {
    matches!(
        change,
        Change::GoneTable { .. } | Change::GoneColumn { .. } | Change::NothingSeen { .. }
    )
}

fn told(merge: &Merge) -> String {
    let lines: Vec<String> = merge.changes.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

#[test]
fn a_proposal_is_as_agreed_and_checks() {
    let proposal = propose(&shop(), &options());
    golden("shop.toml", &proposal.text);
    assert_eq!(parse(proposal.text.as_bytes()).err(), None);
    let left_out: Vec<String> = proposal
        .left_out
        .iter()
        .map(|it| {
            format!(
                "{}.{} {}",
                it.table,
                it.column.as_deref().unwrap_or("*"),
                it.reason
            )
        })
        .collect();
    assert_eq!(left_out, ["people.password looks like a password"]);
}

#[test]
fn proposing_again_over_the_same_catalogue_changes_no_byte() {
    let text = propose(&shop(), &options()).text;
    let merge = merged(&text, &shop());
    assert_eq!(merge.text, text);
    assert_eq!(merge.changes, []);
}

#[test]
fn times_kept_as_text_are_not_searched() {
    let mut visits = shop();
    let columns = ["note", "updated_at", "birth_date", "start time"];
    visits.tables = vec![table(
        "visits",
        [id("id")].into_iter().chain(columns.map(text)).collect(),
    )];
    let draft = propose(&visits, &options()).text;
    assert!(draft.contains("search = [\"note\"]"), "{draft}");
}

#[test]
fn human_edits_stay_and_what_the_source_gained_or_lost_shows() {
    let edited = propose(&shop(), &options())
        .text
        .replace(
            "title = \"full_name\"  # guess: by its name\n",
            "# I know better.\n",
        )
        .replace("[streams.people]", "[streams.customers]")
        .replace("[streams.people.", "[streams.customers.")
        .replace("to = \"people\"", "to = \"customers\"")
        .replace("note = { datatype = \"string\" }\n", "")
        .replace(
            "search = [\"note\"]  # guess: the columns that hold words\n",
            "",
        );
    let mut later = shop();
    let people = &mut later.tables[1];
    people.columns.remove(1);
    people.columns[2].native_type = "timestamp".to_owned();
    people.columns.push(text("city"));
    people.columns.push(text("api_token"));
    people.columns.push(id("first_order"));
    people.foreign_keys.push(ForeignKey {
        columns: vec!["first_order".to_owned()],
        to_table: "orders".to_owned(),
        to_columns: vec!["id".to_owned()],
    });
    let mut refunds = table("refunds", vec![id("id"), id("order_id")]);
    refunds.foreign_keys.push(ForeignKey {
        columns: vec!["order_id".to_owned()],
        to_table: "orders".to_owned(),
        to_columns: vec!["id".to_owned()],
    });
    later.tables.push(refunds);
    later.tables.push(Table {
        primary_key: Vec::new(),
        ..table("keyless", vec![text("a")])
    });
    later.tables.sort_by(|a, b| a.name.cmp(&b.name));
    let merge = merged(&edited, &later);
    golden("edited.toml", &merge.text);
    golden("edited.changes.txt", &(told(&merge) + "\n"));
    assert_eq!(parse(merge.text.as_bytes()).err(), None);
}

#[test]
fn a_gone_table_is_marked_and_unmarked_when_it_is_back() {
    let text = propose(&shop(), &options()).text;
    let mut without = shop();
    without.tables.remove(0);
    let marked = merged(&text, &without);
    assert_eq!(told(&marked), "table `orders` of stream `orders` is gone");
    assert!(marked.text.contains(
        "# gone from the source: table `orders` is not there any more\n[streams.orders]"
    ));
    assert_eq!(merged(&marked.text, &shop()).text, text);
}

#[test]
fn what_a_person_took_out_stays_out() {
    let text = propose(&shop(), &options()).text;
    let start = text.find("\n[streams.orders]").unwrap();
    let end = text.find("\n# the store says: who buys").unwrap();
    let shorter = format!("{}{}", &text[..start], &text[end..]);
    let merge = merged(&shorter, &shop());
    assert_eq!(merge.text, shorter);
    assert_eq!(merge.changes, []);
}

#[test]
fn a_draft_that_was_written_by_hand_gains_nothing_unasked() {
    let by_hand = "[dataset]\nname = \"shop\"\nkind = \"postgres\"\n\n[[connections]]\nid = \"a\"\nsource = \"a\"\n\n\
        [streams.people]\ntype = \"Person\"\nkey = [\"id\"]\n\n[streams.people.fields.id]\ndatatype = \"integer\"\n";
    let merge = merged(by_hand, &shop());
    assert!(merge.text.starts_with(by_hand));
    assert!(
        told(&merge).contains("1 tables and 3 columns are not in it"),
        "{}",
        told(&merge)
    );
    // From now on it remembers.
    let mut later = shop();
    later.tables[1].columns.push(text("city"));
    let merge = merged(&merge.text, &later);
    assert_eq!(
        told(&merge),
        "column `city` of `people` is new: added as field `city`"
    );
    assert!(
        merge
            .text
            .contains("[streams.people.fields.city]\ndatatype = \"string\"\n"),
        "{}",
        merge.text
    );
    assert_eq!(parse(merge.text.as_bytes()).err(), None);
}

#[test]
fn a_draft_that_is_not_toml_is_refused_without_its_secrets() {
    let error = repropose("a = postgres://u:hunter2@h/db", &shop(), &options()).unwrap_err();
    assert!(!format!("{error} {error:?}").contains("hunter2"));
}

#[test]
fn a_comment_of_the_store_cannot_become_part_of_the_document() {
    let mut hostile = shop();
    let remark =
        "x\n[streams.evil]\r\nkey = [\"a\"]\u{2028}\u{85}[y]\u{202e} postgres://u:hunter2@h/db";
    hostile.tables[0].comment = Some(remark.to_owned());
    hostile.tables[0].columns[3].comment = Some(remark.to_owned());
    let text = propose(&hostile, &options()).text;
    let mapping = parse(text.as_bytes()).unwrap();
    assert_eq!(mapping.streams.len(), 2);
    assert!(!text.contains("hunter2"));
}

/// Names as stores allow them: any text.
fn any_name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zA-Z_ ]{1,12}",
        "\\PC{1,8}",
        "(?s).{1,8}",
        Just("any".to_owned()),
        "[a-c]{1,2}"
    ]
}

proptest! {
    #[test]
    fn every_catalogue_gives_a_draft_that_checks(
        tables in prop::collection::btree_map(
            any_name(),
            prop::collection::btree_map(any_name(), 0..9_usize, 1..6),
            1..5,
        ),
    ) {
        let datatypes = [
            Datatype::String, Datatype::Integer, Datatype::Decimal, Datatype::Number,
            Datatype::Boolean, Datatype::Date, Datatype::Datetime, Datatype::Json, Datatype::String,
        ];
        let mut catalogue = Catalogue { kind: SourceKind::Sqlite, schema: None, tables: Vec::new() };
        for (name, columns) in &tables {
            let columns = columns.iter().map(|(name, of)| column(name, "text", datatypes[*of]));
            let mut table = table(name, columns.collect());
            // Every table refers to every table by its key.
            for (to, columns) in &tables {
                table.foreign_keys.push(ForeignKey {
                    columns: table.primary_key.clone(),
                    to_table: to.clone(),
                    to_columns: columns.keys().take(1).cloned().collect(),
                });
            }
            table.comment = Some(name.clone());
            catalogue.tables.push(table);
        }
        let proposal = propose(&catalogue, &options());
        if !proposal.notes.contains(&Note::NoStreams) {
            prop_assert_eq!(parse(proposal.text.as_bytes()).err(), None, "{}", proposal.text);
        }
        let merge = repropose(&proposal.text, &catalogue, &options()).unwrap();
        prop_assert_eq!(&merge.text, &proposal.text);
        // Parts that a source gains later are joined to existing parts, and to no others.
        let mut before = catalogue.clone();
        before.tables.truncate(tables.len().div_ceil(2));
        for table in &mut before.tables {
            table.columns.truncate(table.columns.len().div_ceil(2));
        }
        let first = propose(&before, &options());
        let merge = repropose(&first.text, &catalogue, &options()).unwrap();
        if !first.notes.contains(&Note::NoStreams) {
            prop_assert_eq!(parse(merge.text.as_bytes()).err(), None, "{}", merge.text);
        }
        let again = repropose(&merge.text, &catalogue, &options()).unwrap();
        prop_assert_eq!(&again.text, &merge.text);
    }
}
