//! Byte budgets, asserted and printed (`cargo test -- --nocapture`).

use serde_json::{Value as Json, json};
use wayleave_plan::package::Package;

use crate::reading::client::Client;
use crate::reading::fixture::{Files, good, service, wide, wide_sql};

fn within(what: &str, bytes: usize, most: usize) {
    println!("{what}: {bytes} of {most} bytes");
    assert!(
        bytes <= most,
        "{what}: {bytes} bytes, at most {most} allowed"
    );
}

#[tokio::test]
async fn the_tools_fit_their_budget() {
    let files = Files::new(&[]);
    let service = service(&[&wide("one", 1, 2, 1)], &files);
    let tools = Client::from_service(&service, Package::local())
        .await
        .tools()
        .await;
    for tool in tools.as_array().unwrap() {
        println!(
            "  {}: {} bytes",
            tool["name"].as_str().unwrap(),
            tool.to_string().len()
        );
    }
    within("the five tools", tools.to_string().len(), 5_632);
}

#[tokio::test]
async fn fifty_rows_of_eight_fields_fit_their_budget() {
    let mut toml = String::from(
        "[dataset]\nname = \"shop\"\nkind = \"sqlite\"\n[[connections]]\nid = \"shop\"\nsource = \"shop\"\n\
         [streams.orders]\ntype = \"Order\"\nkey = [\"id\"]\n",
    );
    for (field, datatype) in [
        ("id", "integer"),
        ("customer", "string"),
        ("status", "string"),
        ("total", "decimal"),
        ("note", "string"),
        ("paid", "boolean"),
        ("placed_at", "datetime"),
        ("rating", "integer"),
    ] {
        toml += &format!("[streams.orders.fields.{field}]\ndatatype = \"{datatype}\"\n");
    }
    let sql = "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT, status TEXT, total TEXT,
            note TEXT, paid BOOLEAN, placed_at TEXT, rating INTEGER);
        WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 120)
        INSERT INTO orders SELECT n, 'Customer ' || n, 'shipped', n || '.50',
            CASE WHEN n % 2 THEN 'leave it, with the neighbour' END, n % 2,
            '2026-01-01T10:00:00Z', CASE WHEN n % 3 THEN n % 5 END FROM numbers;";
    let files = Files::new(&[("shop", sql)]);
    let service = service(&[&toml], &files);
    let given = json!({ "stream": "orders", "limit": 50, "count": "exact" });
    let reply = good(&service, &Package::local(), "query_records", given).await;
    let rows = reply.structured.value()["data"]["rows"].as_array().unwrap();
    assert_eq!((rows.len(), rows[0].as_array().unwrap().len()), (50, 8));
    assert!(reply.structured.value()["meta"]["next_cursor"].is_string());

    let csv_cell = |value: &Json| match value {
        Json::Null => String::new(),
        Json::String(text) if text.contains([',', '"', '\n']) => {
            format!("\"{}\"", text.replace('"', "\"\""))
        }
        Json::String(text) => text.clone(),
        other => other.to_string(),
    };
    let header = reply.structured.value()["data"]["fields"].clone();
    let csv: String = std::iter::once(&header)
        .chain(rows)
        .map(|row| {
            let cells: Vec<String> = row.as_array().unwrap().iter().map(csv_cell).collect();
            cells.join(",") + "\n"
        })
        .collect();
    let bare = json!(rows).to_string();
    within(
        "50 rows of 8 fields, text",
        reply.text.len(),
        csv.len() * 12 / 10 + 512,
    );
    within(
        "50 rows of 8 fields, structure",
        reply.structured.value().to_string().len(),
        bare.len() * 12 / 10 + 512,
    );
    println!(
        "  as CSV {} bytes, as an array of arrays {} bytes",
        csv.len(),
        bare.len()
    );
}

#[tokio::test]
async fn the_index_fits_its_budget_whatever_the_number_of_streams() {
    let files = Files::new(&[]);
    let four: Vec<String> = ["alpha", "beta", "gamma", "delta"]
        .iter()
        .map(|name| wide(name, 6, 30, 1))
        .collect();
    let four: Vec<&str> = four.iter().map(String::as_str).collect();
    let eighty = wide("eighty", 80, 3, 2);
    let thousand = wide("thousand", 1_000, 2, 1);
    let long = thousand.replace(
        "stream_",
        "a_stream_with_a_name_as_long_as_names_of_streams_may_get_",
    );
    for (what, mappings, most) in [
        ("24 streams", four, 8_000),
        ("80 streams", vec![eighty.as_str()], 18_000),
        ("1,000 streams", vec![thousand.as_str()], 65_536),
        (
            "1,000 streams with names of 61 characters",
            vec![long.as_str()],
            65_536,
        ),
    ] {
        let service = service(&mappings, &files);
        let reply = good(&service, &Package::local(), "schema", json!({})).await;
        within(&format!("schema of {what}"), reply.bytes(), most);
        println!("  text {} bytes", reply.text.len());
    }
}

#[tokio::test]
async fn twenty_four_streams_are_shown_with_all_their_fields() {
    let files = Files::new(&[]);
    // 6 streams of 7 fields and 18 of 6, each with a relation to one record and one to many.
    let mut toml = wide("erp", 6, 7, 1);
    toml += &wide("erp", 24, 6, 0)
        .split_once("[streams.stream_0007]")
        .map(|(_, rest)| format!("[streams.stream_0007]{rest}"))
        .unwrap();
    for n in 2..=24 {
        toml += &format!(
            "[streams.stream_{n:04}.relations.parent]\nto = \"stream_{:04}\"\non = {{ id = \"id\" }}\n\
             [streams.stream_{n:04}.relations.children]\nto = \"stream_{:04}\"\non = {{ id = \"some_field_01\" }}\n\
             [streams.stream_{n:04}.measures]\nhighest = \"max(some_field_01)\"\n",
            n - 1,
            n % 24 + 1
        );
    }
    let service = service(&[&toml], &files);
    let reply = good(&service, &Package::local(), "schema", json!({})).await;
    assert!(
        reply.text.starts_with("24 streams, 150 fields, "),
        "{}",
        reply.text
    );
    within("schema of 24 streams, 150 fields", reply.bytes(), 8_000);
    println!("  text {} bytes", reply.text.len());
    for n in 1..=24 {
        let line = format!("- stream_{n:04} key id; ");
        assert!(reply.text.contains(&line), "{}", reply.text);
    }
    assert!(reply.text.contains(
        "one parent->stream_0001; many children->stream_0003; measures highest=max(some_field_01)"
    ));
}

#[tokio::test]
async fn no_schema_passes_its_hard_bound() {
    let files = Files::new(&[]);
    let name = |n: usize| format!("dataset-with-a-long-name-{n:06}");
    let datasets: Vec<String> = (1..=1_000).map(|n| wide(&name(n), 3, 3, 1)).collect();
    let datasets: Vec<&str> = datasets.iter().map(String::as_str).collect();
    let long = |n: usize| format!("a_field_with_a_name_as_long_as_names_may_get_{n:05}");
    let mut huge = wide("huge", 1, 2, 1);
    for n in 0..1_998 {
        huge += &format!(
            "[streams.stream_0001.fields.{}]\ndatatype = \"string\"\n",
            long(n)
        );
    }
    let crowded = wide("crowded", 2_000, 1, 1);
    let crowded = crowded.replace("stream_", "a_stream_with_a_name_as_long_as_names_may_get_");
    for (what, mappings, given) in [
        ("1,000 datasets", datasets, json!({})),
        ("2,000 streams", vec![crowded.as_str()], json!({})),
        ("2,000 fields", vec![huge.as_str()], json!({})),
        (
            "2,000 fields, described",
            vec![huge.as_str()],
            json!({ "stream": "stream_0001" }),
        ),
        (
            "2,000 fields, in full",
            vec![huge.as_str()],
            json!({ "stream": "stream_0001", "detail": "full" }),
        ),
    ] {
        let service = service(&mappings, &files);
        let reply = good(&service, &Package::local(), "schema", given).await;
        within(&format!("schema of {what}"), reply.bytes(), 64 * 1024);
        let is_whole = what.ends_with("fields") || reply.text.contains(&name(1_000));
        assert!(is_whole || reply.text.contains("\ncut: "), "{}", reply.text);
    }
}

#[tokio::test]
async fn a_stream_of_thirty_fields_fits_its_budget() {
    let files = Files::new(&[("plain", &wide_sql(1, 30))]);
    let plain = wide("plain", 1, 30, 1);
    // The longest texts that a mapping may have.
    let verbose = plain
        .replace("thing that is known about it.", &"long words ".repeat(30))
        .replace(
            "datatype = \"string\"\n",
            &format!(
                "datatype = \"string\"\none_of = [{}]\n",
                (0..40)
                    .map(|n| format!("\"a value like {n}\""))
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
        );
    for (what, toml) in [
        ("30 fields", &plain),
        ("30 fields with much to say", &verbose),
    ] {
        let service = service(&[toml], &files);
        let given = json!({ "stream": "stream_0001", "connection_id": "plain-01" });
        let reply = good(&service, &Package::local(), "schema", given).await;
        within(
            &format!("schema of a stream of {what}"),
            reply.bytes(),
            6_000,
        );
        for n in 1..30 {
            assert!(reply.text.contains(&format!("some_field_{n:02}")));
        }
        let given = json!({ "stream": "stream_0001", "detail": "full" });
        let reply = good(&service, &Package::local(), "schema", given).await;
        println!("  in full: {} bytes", reply.bytes());
    }
}

#[tokio::test]
async fn a_stream_that_very_many_hold_is_described_within_bounds() {
    let files = Files::new(&[]);
    // 200 datasets, each with its own stream of that name; and one over 200 connections.
    let each: Vec<String> = (1..=200)
        .map(|n| wide(&format!("d{n}"), 1, 10, 1))
        .collect();
    let each: Vec<&str> = each.iter().map(String::as_str).collect();
    let alike = wide("alike", 1, 10, 200);
    for (what, mappings) in [
        ("200 datasets", each),
        ("200 connections", vec![alike.as_str()]),
    ] {
        let service = service(&mappings, &files);
        let given = json!({ "stream": "stream_0001" });
        let reply = good(&service, &Package::local(), "schema", given).await;
        within(
            &format!("schema of a stream in {what}"),
            reply.bytes(),
            64 * 1024,
        );
        if what == "200 datasets" {
            for n in 1..=200 {
                assert!(
                    reply.text.contains(&format!(" d{n}-01")),
                    "d{n} is not named"
                );
            }
        }
    }
}
