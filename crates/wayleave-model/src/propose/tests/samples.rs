//! Closed lists guessed from sampled values.

use super::*;

fn orders() -> Catalogue {
    let mut catalogue = shop();
    let columns = &mut catalogue.tables[0].columns;
    columns.extend(["status", "customer_name", "api_token", "channel"].map(text));
    columns.last_mut().unwrap().max_length = Some(30);
    catalogue
}

fn sampled(column: &str, values: &[&str], rows: u64) -> ProposeOptions {
    let values = values.iter().map(|it| (*it).to_owned()).collect();
    let mut options = options();
    options
        .samples
        .insert("orders", column, ColumnSample { values, rows });
    options
}

/// The line of a field of the draft.
fn line(column: &str, values: &[&str], rows: u64) -> String {
    let text = propose(&orders(), &sampled(column, values, rows)).text;
    parse(text.as_bytes()).unwrap();
    let begins = format!("{column} = ");
    let found = text.lines().find(|it| it.starts_with(&begins));
    found.unwrap_or_default().to_owned()
}

#[test]
fn few_values_of_a_column_are_listed_where_they_were_sampled() {
    assert_eq!(
        line("status", &["paid", "open", "sent back"], 100),
        "status = { datatype = \"string\", one_of = [\"open\", \"paid\", \"sent back\"] }  \
         # guess: sampled, not declared; filters refuse any other value"
    );
    let text = propose(&orders(), &sampled("channel", &["web", "shop"], 500)).text;
    assert!(text.contains("channel = { datatype = \"string\", one_of = [\"shop\", \"web\"] }"));
    assert!(
        text.contains("search = [\"note\", \"customer_name\"]"),
        "{text}"
    );
    assert!(!propose(&orders(), &options()).text.contains("one_of"));
}

#[test]
fn what_is_no_closed_list_is_not_listed() {
    let many: Vec<String> = (0..13).map(|it| format!("v{it}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let long = "x".repeat(41);
    for (column, values, rows) in [
        ("status", &many[..], 1000),
        // Too few rows to conclude that there are no other values.
        ("status", &["open", "paid"], 99),
        ("status", &["open"], 1000),
        ("status", &["open", ""], 1000),
        ("status", &["open", "one of five words here"], 1000),
        ("status", &["open", long.as_str()], 1000),
        ("status", &["open", "ana@example.com"], 1000),
        ("status", &["open", "line\nbreak"], 1000),
        ("status", &["open", "postgres://u:hunter2@h/db"], 1000),
        ("customer_name", &["Ana", "Bo"], 1000),
        ("note", &["yes", "no"], 1000),
        ("api_token", &["a", "b"], 1000),
        ("person_id", &["1", "2"], 1000),
    ] {
        let line = line(column, values, rows);
        assert!(!line.contains("one_of"), "{line}");
    }
}

#[test]
fn only_columns_that_may_be_listed_are_to_be_read() {
    let mut catalogue = orders();
    let mut view = table("view", vec![id("id"), text("status")]);
    view.kind = TableKind::View;
    let mut people = table("staff", vec![id("id")]);
    people
        .columns
        .extend(["first_name", "kind", "code", "state"].map(text));
    people.columns[4].one_of = vec!["a".to_owned()];
    people.unique.push(vec!["code".to_owned()]);
    catalogue.tables.extend([view, people]);
    let found: Vec<String> = columns_to_sample(&catalogue)
        .into_iter()
        .map(|it| format!("{}.{}", it.table, it.column))
        .collect();
    assert_eq!(found, ["orders.status", "orders.channel", "staff.kind"]);
}

#[test]
fn sampling_over_a_draft_lists_the_values_once() {
    let mut later = orders();
    later.tables[0].columns.push(text("flavour"));
    let mut options = sampled("status", &["open", "paid"], 1000);
    let values = vec!["sweet".to_owned(), "sour".to_owned()];
    options
        .samples
        .insert("orders", "flavour", ColumnSample { values, rows: 100 });
    let first = propose(&orders(), &super::options())
        .text
        .replace("status = {", "# Mine.\nstatus = {");
    let merge = repropose(&first, &later, &options).unwrap();
    assert!(
        merge.text.contains(
            "flavour = { datatype = \"string\", one_of = [\"sour\", \"sweet\"] }  # guess: sampled"
        ),
        "{}",
        merge.text
    );
    assert!(
        merge.text.contains(
            "# Mine.\n# guess: sampled, not declared; filters refuse any other value\n\
             status = { datatype = \"string\", one_of = [\"open\", \"paid\"] }\n"
        ),
        "{}",
        merge.text
    );
    assert_eq!(
        told(&merge),
        "column `status` of `orders` holds few values: listed in field `status`\n\
         column `flavour` of `orders` is new: added as field `flavour`"
    );
    assert_eq!(parse(merge.text.as_bytes()).err(), None);
    let again = repropose(&merge.text, &later, &options).unwrap();
    assert_eq!(again.text, merge.text);
    assert_eq!(again.changes, []);
    // Nothing is listed without samples, or if a person has constrained the values.
    let merge = repropose(&first, &orders(), &super::options()).unwrap();
    assert_eq!(merge.text, first);
    let said = first.replace(
        "status = { datatype = \"string\" }",
        "status = { datatype = \"string\", pattern = \"^[a-z]+$\" }",
    );
    let merge = repropose(&said, &orders(), &options).unwrap();
    assert_eq!(merge.text, said);
}
