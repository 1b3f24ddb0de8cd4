//! Reverse relations along foreign keys.

use super::*;

fn refers(mut table: Table, column: &str, to: &str) -> Table {
    table.foreign_keys.push(ForeignKey {
        columns: vec![column.to_owned()],
        to_table: to.to_owned(),
        to_columns: vec!["id".to_owned()],
    });
    table
}

fn store(tables: Vec<Table>) -> Catalogue {
    Catalogue {
        kind: SourceKind::Postgres,
        schema: None,
        tables,
    }
}

/// The lines of a stream's relations.
fn relations<'t>(text: &'t str, stream: &str) -> Vec<&'t str> {
    let header = format!("[streams.{stream}.relations]\n");
    let Some((_, rest)) = text.split_once(&header) else {
        return Vec::new();
    };
    rest.lines().take_while(|it| !it.is_empty()).collect()
}

fn proposed(catalogue: &Catalogue) -> String {
    let text = propose(catalogue, &options()).text;
    assert_eq!(parse(text.as_bytes()).err(), None, "{text}");
    assert_eq!(merged(&text, catalogue).text, text);
    text
}

#[test]
fn a_way_back_is_named_after_the_many_that_refer() {
    let lines = refers(
        table("OrderLine", vec![id("id"), id("order_id")]),
        "order_id",
        "orders",
    );
    let orders = table("orders", vec![id("id")]);
    let text = proposed(&store(vec![lines, orders]));
    assert_eq!(
        relations(&text, "orders"),
        [
            "order_lines = { to = \"order_line\", on = { id = \"order_id\" } }  # the reverse of order_line.order"
        ]
    );
}

#[test]
fn a_way_back_to_at_most_one_record_is_named_for_one() {
    let mut details = refers(
        table("order_details", vec![id("id"), id("order_id")]),
        "order_id",
        "orders",
    );
    details.unique.push(vec!["order_id".to_owned()]);
    let text = proposed(&store(vec![details, table("orders", vec![id("id")])]));
    let mapping = parse(text.as_bytes()).unwrap();
    let orders = mapping.stream("orders").unwrap();
    assert!(mapping.is_to_one(orders.relation("order_detail").unwrap()));
}

#[test]
fn several_ways_from_one_table_and_to_itself_are_told_apart() {
    let flights = table("flights", vec![id("id"), id("origin_id"), id("target_id")]);
    let flights = refers(
        refers(flights, "origin_id", "places"),
        "target_id",
        "places",
    );
    let places = refers(
        table("places", vec![id("id"), id("parent_id")]),
        "parent_id",
        "places",
    );
    let text = proposed(&store(vec![flights, places]));
    assert_eq!(
        relations(&text, "places"),
        [
            "parent = { to = \"places\", on = { parent_id = \"id\" } }",
            "flights_by_origin = { to = \"flights\", on = { id = \"origin_id\" } }  # the reverse of flights.origin",
            "flights_by_target = { to = \"flights\", on = { id = \"target_id\" } }  # the reverse of flights.target",
            "places_by_parent = { to = \"places\", on = { id = \"parent_id\" } }  # the reverse of places.parent",
        ]
    );
}

#[test]
fn a_way_back_takes_no_name_of_the_stream() {
    let lines = refers(
        table("lines", vec![id("id"), id("order_id")]),
        "order_id",
        "orders",
    );
    // One column has the short name; the other, of bytes, would have the long one.
    let orders = table(
        "orders",
        vec![
            id("id"),
            id("Lines"),
            column("lines_by_order", "bytea", Datatype::String),
        ],
    );
    let text = proposed(&store(vec![lines, orders]));
    let found = relations(&text, "orders");
    assert!(found[0].starts_with("lines_by_order_2 = "), "{found:?}");
}

#[test]
fn a_column_that_is_not_served_gives_no_way_back() {
    // The forward relation joins the column itself; its reverse would need a field.
    let secret = refers(
        table("a", vec![id("id"), id("password")]),
        "password",
        "people",
    );
    let mut keyless = refers(table("b", vec![id("person_id")]), "person_id", "people");
    keyless.primary_key.clear();
    let people = table("people", vec![id("id")]);
    let text = proposed(&store(vec![secret, keyless, people]));
    assert_eq!(relations(&text, "a").len(), 1, "{text}");
    assert_eq!(relations(&text, "people"), [""; 0]);
}

#[test]
fn a_foreign_key_that_names_a_column_twice_joins_only_where_it_can() {
    let key = |columns: [&str; 2], to_columns: [&str; 2]| ForeignKey {
        columns: columns.map(str::to_owned).to_vec(),
        to_table: "b".to_owned(),
        to_columns: to_columns.map(str::to_owned).to_vec(),
    };
    let mut a = table("a", vec![id("id"), id("x"), id("y")]);
    a.foreign_keys = vec![key(["x", "x"], ["id", "z"]), key(["x", "y"], ["id", "id"])];
    let text = proposed(&store(vec![a, table("b", vec![id("id"), id("z")])]));
    assert_eq!(
        relations(&text, "a"),
        [
            "b = { to = \"b\", on = { x = \"id\", y = \"id\" } }",
            "# left out: a relation on `x`, `x`, because it names `x` twice",
        ]
    );
    assert_eq!(relations(&text, "b"), [""; 0]);
}

#[test]
fn a_way_back_that_a_person_took_out_stays_out() {
    let text = propose(&shop(), &options()).text;
    let start = text.find("[streams.people.relations]\n").unwrap();
    let end = text.find("# What the source held").unwrap();
    let shorter = format!("{}{}", &text[..start], &text[end..]);
    let merge = merged(&shorter, &shop());
    assert_eq!(merge.text, shorter);
    // A table that refers to it later brings its own reverse relation.
    let mut later = shop();
    later.tables.push(refers(
        table("visits", vec![id("id"), id("person_id")]),
        "person_id",
        "people",
    ));
    let merge = merged(&merge.text, &later);
    assert_eq!(
        relations(&merge.text, "people"),
        [
            "# new in the source: review it before ratifying",
            "visits = { to = \"visits\", on = { id = \"person_id\" } }  # the reverse of visits.person",
        ]
    );
    assert_eq!(parse(merge.text.as_bytes()).err(), None);
}

#[test]
fn a_new_table_and_the_new_column_that_refers_to_it_are_joined_both_ways() {
    let text = propose(&shop(), &options()).text;
    let mut later = shop();
    later.tables[0].columns.push(id("region_id"));
    let orders = refers(later.tables.remove(0), "region_id", "regions");
    later.tables.insert(0, orders);
    later.tables.push(table("regions", vec![id("id")]));
    let merge = merged(&text, &later);
    let mapping = parse(merge.text.as_bytes()).unwrap();
    let joins = |stream: &str, relation: &str| {
        let stream = mapping.stream(stream).unwrap();
        stream.relation(relation).is_some()
    };
    assert!(
        joins("orders", "region") && joins("regions", "orders"),
        "{}",
        merge.text
    );
}
