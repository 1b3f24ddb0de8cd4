//! Questions across relations at a terminal: paths, measures, totals, cursors and corrected
//! commands.

use serde_json::{Value, json};

use crate::session::Session;

/// A project with lines of orders of customers, a computed field and two measures, ratified.
fn shop() -> Session {
    let mut session = Session::in_project();
    let sql = "CREATE TABLE customers (id integer PRIMARY KEY, name text NOT NULL, country text);
        CREATE TABLE orders (id integer PRIMARY KEY, customer_id integer REFERENCES customers, \
          placed_at datetime NOT NULL, status text);
        CREATE TABLE lines (id integer PRIMARY KEY, order_id integer REFERENCES orders, \
          note text, price decimal(10, 2), quantity integer);
        INSERT INTO customers VALUES (1, 'Ana', 'PT'), (2, 'Bo', 'SE'), (3, 'Chidi', 'NG');
        INSERT INTO orders VALUES (10, 1, '2026-01-05T10:00:00Z', 'paid'), \
          (11, 2, '2026-01-20T10:00:00Z', 'open'), (12, 1, '2026-02-01T10:00:00Z', 'paid');
        INSERT INTO lines VALUES (100, 10, 'Lamp', 20.50, 2), (101, 11, 'Chair', 80, 1), \
          (102, 12, 'Desk', 200, 1), (103, 12, 'Émail', 5.25, 4);";
    let path = session.keep_sqlite("shop.db", sql);
    session.set("SHOP_DSN", path.to_str().unwrap());
    let add = [
        "source", "add", "shop", "--kind", "sqlite", "--env", "SHOP_DSN",
    ];
    session.run(&add).exits(0);
    session.run(&["propose", "shop"]).exits(0);
    let draft = session.here().join("mappings/shop.toml");
    let text = std::fs::read_to_string(&draft).unwrap()
        + "\n[streams.lines.fields.amount]\ndatatype = \"decimal\"\ncompute = \"price * quantity\"\n\
           \n[streams.lines.measures]\nrevenue = \"sum(amount)\"\n\
           basket = \"sum(amount) / count_distinct(order_id)\"\n";
    std::fs::write(&draft, text).unwrap();
    for words in [&["ratify", "shop"][..], &["connect", "shop"]] {
        session.run(words).exits(0);
    }
    session
}

fn rows(session: &Session, words: &[&str]) -> Value {
    let words = [words, &["--json"]].concat();
    session.run(&words).exits(0).document()["data"]["rows"].clone()
}

#[test]
fn paths_and_filters_of_related_records_are_one_command() {
    let session = shop();
    let query = [
        "query",
        "lines",
        "--fields",
        "note,order.customer.name",
        "--sort",
        "-order.placed_at",
        "--filter",
        r#"{"order.customer.country": "PT", "amount": {"gt": 21}}"#,
    ];
    assert_eq!(
        rows(&session, &query),
        json!([[102, "Desk", "Ana"], [100, "Lamp", "Ana"]])
    );
    let query = |filter: &str| {
        let words = ["query", "customers", "--fields", "name", "--filter", filter];
        rows(&session, &words)
    };
    assert_eq!(query(r#"{"orders": {"none": {}}}"#), json!([[3, "Chidi"]]));
    let open = r#"{"orders": {"some": {"status": "open"}}, "name": {"ieq": "BO"}}"#;
    assert_eq!(query(open), json!([[2, "Bo"]]));
    let filter = r#"{"note": {"icontains": "éMA"}, "quantity": {"lt": {"field": "price"}}}"#;
    let words = ["query", "lines", "--fields", "note", "--filter", filter];
    assert_eq!(rows(&session, &words), json!([[103, "Émail"]]));
}

#[test]
fn measures_own_filters_having_totals_and_cursors_are_one_command() {
    let session = shop();
    let one = session.run(&["aggregate", "lines", "--metric", "revenue"]);
    assert_eq!(
        one.exits(0).stdout,
        "revenue=342 of lines connection_id shop\n"
    );
    let paid =
        r#"{"op": "sum", "field": "amount", "filter": {"order.status": "paid"}, "as": "paid"}"#;
    let words = [
        "aggregate",
        "lines",
        "--metric",
        "revenue",
        "--metric",
        "basket",
        "--metric",
        paid,
        "--by",
        "order.customer",
        "--having",
        r#"{"revenue": {"gte": 80}}"#,
        "--totals",
        "--limit",
        "1",
    ];
    let told = session.run(&words).exits(0);
    assert!(told.stdout.contains("total revenue=342"), "{}", told.stdout);
    let document = session.run(&[&words[..], &["--json"]].concat()).document();
    assert_eq!(
        document["data"]["fields"],
        json!([
            "order.customer.id",
            "order.customer.name",
            "revenue",
            "basket",
            "paid"
        ])
    );
    assert_eq!(
        document["data"]["rows"],
        json!([[1, "Ana", "262", "131", "262"]])
    );
    assert_eq!(document["meta"]["totals"]["paid"], "262");
    let cursor = document["meta"]["next_cursor"].as_str().unwrap().to_owned();
    let words = [&words[..], &["--cursor", &cursor]].concat();
    assert_eq!(rows(&session, &words), json!([[2, "Bo", "80", "80", null]]));
    let words = [
        "aggregate",
        "lines",
        "--metric",
        "revenue",
        "--by-time",
        "order.placed_at:month",
    ];
    assert_eq!(
        rows(&session, &words),
        json!([["2026-01", "121"], ["2026-02", "221"]])
    );
}

#[test]
fn several_streams_are_described_at_once_and_search_filters_along_paths() {
    let session = shop();
    let told = session.run(&["schema", "lines", "orders"]).exits(0).stdout;
    for words in ["stream lines ", "stream orders ", "revenue", "basket"] {
        assert!(told.contains(words), "{told}");
    }
    session.run(&["index", "rebuild"]).exits(0);
    let found = |filter: &str| {
        let words = [
            "search",
            "lamp desk",
            "--streams",
            "lines",
            "--filter",
            filter,
            "--json",
        ];
        let document = session.run(&words).exits(0).document();
        document["data"]["results"].as_array().unwrap().len()
    };
    assert_eq!(found(r#"{"order.customer.name": "Ana"}"#), 2);
    assert_eq!(found(r#"{"order.customer.name": "Bo"}"#), 0);
}

#[test]
fn a_refused_command_is_answered_with_the_one_that_works() {
    let session = shop();
    let refused = session.run(&[
        "query",
        "lines",
        "--fields",
        "customer.name",
        "--limit",
        "1",
    ]);
    let refused = refused.exits(2);
    let repaired = "wayleave query lines --limit 1 --fields order.customer.name";
    let hint = refused.stderr.lines().find(|it| it.starts_with("hint: "));
    assert_eq!(hint, Some(&*format!("hint: this works: {repaired}")));
    let words: Vec<&str> = repaired.split(' ').skip(1).collect();
    session.run(&words).exits(0).says("Ana");
    session
        .run(&["aggregate", "lines", "--metric", "{\"op\": "])
        .exits(2)
        .says("a metric is a text such as `sum:amount`");
}
