use super::*;
use crate::catalogue::TableKind;
use crate::mapping::SourceKind;

const MAPPING: &str = r#"# A person wrote this.
[dataset]
name = "shop"
kind = "postgres"

[[connections]]
id = "shop"
source = "shop"

[streams.people]
type = "Person"
key = ["id"]
title = "name"
search = ["name", "bio"]
unique = [["mail"]]

[streams.people.fields]
id = { datatype = "integer" }  # the key
name = { datatype = "string", required = true }
bio = { datatype = "string" }
mail = { datatype = "string" }
age = { datatype = "integer", min_value = 0 }
org_id = { datatype = "integer" }

[streams.people.relations.employer]
to = "orgs"
on = { org_id = "id" }

[streams.orgs]
type = "Org"
key = ["id"]

[streams.orgs.fields]
id = { datatype = "integer" }
"#;

fn column(name: &str, datatype: Datatype) -> Column {
    Column {
        name: name.to_owned(),
        native_type: datatype.to_string(),
        datatype,
        many: false,
        nullable: false,
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
        primary_key: vec!["id".to_owned()],
        unique: vec![vec!["mail".to_owned()]],
        columns,
        foreign_keys: Vec::new(),
        row_estimate: None,
        comment: None,
    }
}

fn catalogue(tables: Vec<Table>) -> Catalogue {
    Catalogue {
        kind: SourceKind::Postgres,
        schema: None,
        tables,
    }
}

fn people(change: impl FnOnce(&mut Vec<Column>)) -> Table {
    let mut columns = vec![
        column("id", Datatype::Integer),
        column("name", Datatype::String),
        column("bio", Datatype::String),
        column("mail", Datatype::String),
        column("age", Datatype::Integer),
        column("org_id", Datatype::Integer),
    ];
    change(&mut columns);
    table("people", columns)
}

fn orgs() -> Table {
    Table {
        unique: Vec::new(),
        ..table("orgs", vec![column("id", Datatype::Integer)])
    }
}

/// Fits the mapping, and checks that the draft parses and has no drift.
fn fits(catalogue: &Catalogue) -> Merge {
    let fit = fit(MAPPING, catalogue).unwrap();
    let mapping =
        parse::parse(fit.text.as_bytes()).unwrap_or_else(|it| panic!("{it:?}\n{}", fit.text));
    let left = drift(&mapping, catalogue);
    assert_eq!(left, [], "{}", fit.text);
    assert!(fit.text.starts_with("# A person wrote this.\n"));
    fit
}

#[test]
fn a_mapping_that_fits_stays_byte_for_byte() {
    let fit = fits(&catalogue(vec![orgs(), people(|_| {})]));
    assert_eq!(fit.text, MAPPING);
    assert_eq!(fit.changes, []);
}

#[test]
fn a_dropped_column_takes_along_what_names_it() {
    let fit = fits(&catalogue(vec![
        orgs(),
        people(|it| it.retain(|it| it.name != "bio")),
    ]));
    assert!(fit.text.contains("search = [\"name\"]"), "{}", fit.text);
    assert!(!fit.text.contains("bio"), "{}", fit.text);
    assert!(fit.text.contains("# the key"));
}

#[test]
fn a_dropped_table_takes_its_stream_and_the_relations_to_it() {
    let fit = fits(&catalogue(vec![people(|_| {})]));
    assert!(!fit.text.contains("orgs"), "{}", fit.text);
    assert_eq!(fit.changes.len(), 2, "{:?}", fit.changes);
}

#[test]
fn a_renamed_column_is_followed_and_the_change_says_that_it_is_a_guess() {
    let renamed = people(|it| it[1].name = "full_name".to_owned());
    let fit = fits(&catalogue(vec![orgs(), renamed]));
    assert!(fit.text.contains("column = \"full_name\""), "{}", fit.text);
    assert!(
        fit.changes[0].to_string().contains("check"),
        "{:?}",
        fit.changes
    );
}

#[test]
fn a_retyped_column_loses_what_was_said_of_its_values() {
    let retyped = people(|it| it[4].datatype = Datatype::String);
    let fit = fits(&catalogue(vec![orgs(), retyped]));
    assert!(!fit.text.contains("min_value"), "{}", fit.text);
}

#[test]
fn what_is_not_kept_unique_or_filled_any_more_is_not_claimed() {
    let mut loose = people(|it| it[1].nullable = true);
    loose.unique.clear();
    let fit = fits(&catalogue(vec![orgs(), loose]));
    assert!(
        !fit.text.contains("required") && !fit.text.contains("unique"),
        "{}",
        fit.text
    );
}

#[test]
fn a_draft_that_does_not_parse_is_left_alone() {
    let broken = MAPPING.replace("title = \"name\"", "title = \"nmae\"");
    let fit = fit(&broken, &catalogue(vec![])).unwrap();
    assert_eq!(fit.text, broken);
}

#[test]
fn a_field_whose_name_begins_with_a_setting_is_fitted_like_any_other() {
    let mapping = MAPPING.replace(
        "bio = { datatype = \"string\" }",
        "one_of_us = { datatype = \"string\", column = \"bio\", one_of = [\"a\", \"b\"] }",
    );
    let mapping = mapping.replace("search = [\"name\", \"bio\"]", "search = [\"name\"]");
    let narrower = people(|columns| columns[2].one_of = vec!["a".to_owned()]);
    let fit = fit(&mapping, &catalogue(vec![orgs(), narrower])).unwrap();
    let parsed = parse::parse(fit.text.as_bytes()).unwrap();
    assert_eq!(
        parsed
            .stream("people")
            .unwrap()
            .field("one_of_us")
            .unwrap()
            .one_of
            .len(),
        1
    );
}

/// The key of the stream that fits a table where `id` is not unique any more.
fn new_key(mapping: &str, table: Table) -> Vec<String> {
    let fit = fit(mapping, &catalogue(vec![orgs(), table])).unwrap();
    let parsed = parse::parse(fit.text.as_bytes()).unwrap();
    let key = parsed.stream("people").unwrap().key.iter();
    key.map(|it| it.value.clone()).collect()
}

#[test]
fn a_new_key_is_one_that_every_row_has() {
    // Of the unique sets only the last is never NULL.
    let table = Table {
        primary_key: Vec::new(),
        unique: vec![vec!["mail".to_owned()], vec!["name".to_owned()]],
        ..people(|columns| columns[3].nullable = true)
    };
    assert_eq!(new_key(MAPPING, table), ["name"]);
}

#[test]
fn a_new_key_holds_no_masked_field() {
    let masked = "mail = { datatype = \"string\", mask = \"redact\" }";
    let mapping = MAPPING.replace("mail = { datatype = \"string\" }", masked);
    assert!(mapping.contains(masked));
    let table = Table {
        primary_key: vec!["mail".to_owned()],
        unique: vec![vec!["name".to_owned()]],
        ..people(|_| {})
    };
    assert_eq!(new_key(&mapping, table), ["name"]);
}

#[test]
fn a_nullable_column_of_the_primary_key_makes_no_other_key() {
    let unmapped = "age = { datatype = \"integer\", min_value = 0 }\n";
    let mapping = MAPPING.replace(unmapped, "");
    assert_ne!(mapping, MAPPING);
    let table = Table {
        primary_key: vec!["mail".to_owned(), "age".to_owned()],
        unique: vec![vec!["mail".to_owned()], vec!["name".to_owned()]],
        ..people(|columns| columns[3].nullable = true)
    };
    assert_eq!(new_key(&mapping, table), ["name"]);
}

#[test]
fn a_primary_key_that_may_be_null_is_a_new_key() {
    let table = Table {
        primary_key: vec!["mail".to_owned()],
        unique: vec![vec!["name".to_owned()]],
        ..people(|columns| columns[3].nullable = true)
    };
    assert_eq!(new_key(MAPPING, table), ["mail"]);
}
