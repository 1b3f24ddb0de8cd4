//! Proposed titles for tables of people.

use super::*;

/// Text columns, after an `id`. `!` marks one that is never NULL.
fn columns(all: &[&str]) -> Vec<Column> {
    let of = |name: &&str| {
        let mut column = text(name.trim_end_matches('!'));
        column.nullable = !name.ends_with('!');
        column
    };
    [id("id")].into_iter().chain(all.iter().map(of)).collect()
}

/// The title and the computed fields that are proposed for a table.
fn proposed(name: &str, all: &[&str]) -> (Option<String>, Vec<(String, String)>) {
    let catalogue = Catalogue {
        kind: SourceKind::Sqlite,
        schema: None,
        tables: vec![table(name, columns(all))],
    };
    let text = propose(&catalogue, &options()).text;
    assert_eq!(merged(&text, &catalogue).text, text);
    let mapping = parse(text.as_bytes()).unwrap();
    let stream = &mapping.streams[0];
    let computed = stream.fields.iter().filter_map(|field| {
        let expression = field.compute()?.text().to_owned();
        Some((field.name.value.clone(), expression))
    });
    let title = stream.title.as_ref().map(|it| it.value.clone());
    (title, computed.collect())
}

fn full_name(expression: &str) -> (Option<String>, Vec<(String, String)>) {
    let name = || "full_name".to_owned();
    (Some(name()), vec![(name(), expression.to_owned())])
}

#[test]
fn northwind_people_are_called_by_both_names() {
    let employees = proposed(
        "Employees",
        &[
            "LastName!",
            "FirstName!",
            "Title",
            "TitleOfCourtesy",
            "Address",
            "City",
            "Notes",
        ],
    );
    assert_eq!(employees, full_name("FirstName || ' ' || LastName"));
    let customers = proposed(
        "Customers",
        &["CompanyName!", "ContactName", "ContactTitle", "Address"],
    );
    assert_eq!(customers, (Some("CompanyName".to_owned()), Vec::new()));
}

#[test]
fn chinook_people_are_called_by_both_names_and_artists_by_theirs() {
    let employee = proposed(
        "Employee",
        &["LastName!", "FirstName!", "Title", "Address", "Email"],
    );
    assert_eq!(employee, full_name("FirstName || ' ' || LastName"));
    let customer = proposed(
        "Customer",
        &["FirstName!", "LastName!", "Company", "Address", "Email!"],
    );
    assert_eq!(customer, full_name("FirstName || ' ' || LastName"));
    let artist = proposed("Artist", &["Name"]);
    assert_eq!(artist, (Some("Name".to_owned()), Vec::new()));
    let album = proposed("Album", &["Title!"]);
    assert_eq!(album, (Some("Title".to_owned()), Vec::new()));
}

#[test]
fn a_missing_part_leaves_the_other() {
    for (columns, expression) in [
        (
            ["first_name", "last_name"],
            "coalesce(first_name || ' ' || last_name, first_name, last_name)",
        ),
        (
            ["first_name", "last_name!"],
            "coalesce(first_name || ' ' || last_name, last_name)",
        ),
        (
            ["first_name!", "last_name"],
            "coalesce(first_name || ' ' || last_name, first_name)",
        ),
    ] {
        assert_eq!(proposed("people", &columns), full_name(expression));
    }
}

#[test]
fn both_names_are_known_in_many_words() {
    for pair in [
        ["given_name!", "family_name!"],
        ["GivenName!", "Surname!"],
        ["forename!", "surname!"],
        ["name!", "surname!"],
        ["Vorname!", "Nachname!"],
        ["FIRSTNAME!", "LASTNAME!"],
        ["prénom!", "nom!"],
        ["nombre!", "apellidos!"],
        ["cust_first_name!", "cust_last_name!"],
    ] {
        let (title, computed) = proposed("customers", &pair);
        assert_eq!(title.as_deref(), Some("full_name"), "{pair:?}");
        assert_eq!(computed.len(), 1);
    }
}

#[test]
fn what_is_no_pair_of_names_computes_nothing() {
    for (columns, title) in [
        // Somebody at the company.
        (
            vec!["company_name", "contact_first_name", "contact_last_name"],
            Some("company_name"),
        ),
        (
            vec!["full_name", "first_name", "last_name"],
            Some("full_name"),
        ),
        (vec!["title", "last_name"], Some("last_name")),
        (vec!["job_title", "salary"], None),
        (vec!["title_of_courtesy"], None),
        (vec!["name", "nom"], Some("name")),
    ] {
        let (found, computed) = proposed("companies", &columns);
        assert_eq!(found.as_deref(), title, "{columns:?}");
        assert_eq!(computed, [], "{columns:?}");
    }
}

#[test]
fn a_computed_name_takes_no_name_of_the_stream() {
    let mut people = table("people", columns(&["first_name!", "last_name!"]));
    people
        .columns
        .push(column("full_name", "blob", Datatype::String));
    let mut catalogue = shop();
    catalogue.tables = vec![people];
    let text = propose(&catalogue, &options()).text;
    assert!(text.contains("title = \"full_name_2\""), "{text}");
    assert_eq!(parse(text.as_bytes()).err(), None);
}

#[test]
fn a_computed_name_that_a_person_took_out_or_renamed_stays_so() {
    let mut catalogue = shop();
    catalogue.tables = vec![table("people", columns(&["first_name!", "last_name!"]))];
    let text = propose(&catalogue, &options()).text;
    let renamed = text.replace("full_name", "called");
    assert_eq!(merged(&renamed, &catalogue).text, renamed);
    let without: String = text
        .split_inclusive('\n')
        .filter(|it| !it.contains("full_name"))
        .collect();
    assert_eq!(merged(&without, &catalogue).text, without);
    // A column with the computed field's name gets another field name.
    catalogue.tables[0].columns.push(super::text("Called"));
    let merge = merged(&renamed, &catalogue);
    assert_eq!(parse(merge.text.as_bytes()).err(), None, "{}", merge.text);
}
