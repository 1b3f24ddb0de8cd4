//! Common mistakes of models: the answer to each contains the caller's own call, corrected only
//! where it was wrong, and the corrected call works.

use serde_json::{Value as Json, json};
use wayleave_plan::package::Package;

use crate::reading::analysis::shop;
use crate::reading::fixture::{crm, good, package, refused, stream_grant};

/// A call of a tool, and the corrected arguments.
type Mistake = (&'static str, Json, Json);

fn of_names() -> Vec<Mistake> {
    vec![
        // Wrong case of a field.
        (
            "query_records",
            json!({ "stream": "tracks", "fields": ["song", "unitprice"], "limit": 3 }),
            json!({ "stream": "tracks", "fields": ["Song", "UnitPrice"], "limit": 3 }),
        ),
        (
            "query_records",
            json!({ "stream": "sales", "filter": { "country": "Norway" } }),
            json!({ "stream": "sales", "filter": { "Country": "Norway" } }),
        ),
        // Snake case.
        (
            "query_records",
            json!({ "stream": "sales", "sort": ["-sold_at"], "limit": 1 }),
            json!({ "stream": "sales", "sort": ["-SoldAt"], "limit": 1 }),
        ),
        // A typing error.
        (
            "query_records",
            json!({ "stream": "sales", "fields": ["Quantiy"] }),
            json!({ "stream": "sales", "fields": ["Quantity"] }),
        ),
        // A missing hop.
        (
            "query_records",
            json!({ "stream": "albums", "filter": { "Name": "AC/DC" } }),
            json!({ "stream": "albums", "filter": { "artist.Name": "AC/DC" } }),
        ),
        (
            "aggregate",
            json!({ "stream": "sales", "metrics": ["revenue"], "group_by": ["artist.Name"] }),
            json!({ "stream": "sales", "metrics": ["revenue"], "group_by": ["track.album.artist.Name"] }),
        ),
        // The name of a stream instead of the relation.
        (
            "query_records",
            json!({ "stream": "tracks", "fields": ["Song", "albums.Title"] }),
            json!({ "stream": "tracks", "fields": ["Song", "album.Title"] }),
        ),
        // A relation where a field is expected.
        (
            "query_records",
            json!({ "stream": "tracks", "fields": ["Song", "genre"] }),
            json!({ "stream": "tracks", "fields": ["Song", "genre.Label"] }),
        ),
        // A field qualified by its table.
        (
            "query_records",
            json!({ "stream": "tracks", "fields": ["tracks.Song"] }),
            json!({ "stream": "tracks", "fields": ["Song"] }),
        ),
        // A path through a relation to many.
        (
            "query_records",
            json!({ "stream": "albums", "filter": { "tracks.Song": "Song 4" } }),
            json!({ "stream": "albums", "filter": { "tracks": { "some": { "Song": "Song 4" } } } }),
        ),
        (
            "query_records",
            json!({ "stream": "artists", "fields": ["Name", "albums.Title"] }),
            json!({ "stream": "artists", "fields": ["Name", "albums.Title"], "expand": ["albums"] }),
        ),
        // Singular or plural, case, and schema of a stream.
        (
            "query_records",
            json!({ "stream": "album", "limit": 2 }),
            json!({ "stream": "albums", "limit": 2 }),
        ),
        (
            "aggregate",
            json!({ "stream": "public.Tracks", "metrics": ["count"] }),
            json!({ "stream": "tracks", "metrics": ["count"] }),
        ),
        (
            "schema",
            json!({ "streams": ["Sale", "track"] }),
            json!({ "streams": ["sales", "tracks"] }),
        ),
    ]
}

fn of_sql() -> Vec<Mistake> {
    vec![
        (
            "aggregate",
            json!({ "stream": "sales", "metrics": ["SUM(amount)"], "group_by": ["Country"], "sort": ["SUM(amount) DESC"] }),
            json!({ "stream": "sales", "metrics": ["sum:amount"], "group_by": ["Country"], "sort": ["-sum_amount"] }),
        ),
        (
            "aggregate",
            json!({ "stream": "sales", "metrics": ["count(*)"], "group_by": ["Country"] }),
            json!({ "stream": "sales", "metrics": ["count"], "group_by": ["Country"] }),
        ),
        (
            "aggregate",
            json!({ "stream": "sales", "metrics": ["COUNT(DISTINCT Country) AS countries"] }),
            json!({ "stream": "sales", "metrics": [{ "op": "count_distinct", "field": "Country", "as": "countries" }] }),
        ),
        (
            "aggregate",
            json!({ "stream": "sales", "metrics": [{ "op": "average", "column": "quantity" }] }),
            json!({ "stream": "sales", "metrics": [{ "op": "avg", "field": "Quantity" }] }),
        ),
        (
            "aggregate",
            json!({ "stream": "sales", "metrics": "revenue", "group_by": "Country" }),
            json!({ "stream": "sales", "metrics": ["revenue"], "group_by": ["Country"] }),
        ),
        (
            "aggregate",
            json!({ "stream": "sales", "metrics": ["count"], "group_by": ["YEAR(SoldAt)"] }),
            json!({ "stream": "sales", "metrics": ["count"], "group_by_time": { "field": "SoldAt", "granularity": "year" } }),
        ),
        (
            "aggregate",
            json!({ "stream": "sales", "metrics": ["count"], "group_by_time": { "field": "SoldAt", "interval": "monthly" } }),
            json!({ "stream": "sales", "metrics": ["count"], "group_by_time": { "field": "SoldAt", "granularity": "month" } }),
        ),
        (
            "aggregate",
            json!({ "stream": "sales", "metrics": ["count"], "group_by": ["Country"], "having": { "count(*)": { ">": 5 } } }),
            json!({ "stream": "sales", "metrics": ["count"], "group_by": ["Country"], "having": { "count": { "gt": 5 } } }),
        ),
        (
            "query_records",
            json!({ "stream": "sales", "metrics": ["revenue"], "group_by": ["Country"] }),
            json!({ "stream": "sales", "metrics": ["revenue"], "group_by": ["Country"] }),
        ),
        (
            "query_records",
            json!({ "stream": "sales", "sort": "SoldAt desc, SaleId", "limit": 5 }),
            json!({ "stream": "sales", "sort": ["-SoldAt", "SaleId"], "limit": 5 }),
        ),
        (
            "query_records",
            json!({ "table": "sales", "where": { "Quantity": { ">=": 3 } }, "order_by": "Quantity DESC" }),
            json!({ "stream": "sales", "filter": { "Quantity": { "gte": 3 } }, "sort": ["-Quantity"] }),
        ),
        (
            "query_records",
            json!({ "stream": "sales", "filter": "Country = 'Norway' AND Quantity > 2" }),
            json!({ "stream": "sales", "filter": { "Country": { "eq": "Norway" }, "Quantity": { "gt": 2 } } }),
        ),
        (
            "query_records",
            json!({ "stream": "tracks", "filter": { "Song": { "like": "Song 1%" } } }),
            json!({ "stream": "tracks", "filter": { "Song": { "starts_with": "Song 1" } } }),
        ),
        (
            "query_records",
            json!({ "stream": "sales", "filter": { "Quantity": { "between": [2, 3] } } }),
            json!({ "stream": "sales", "filter": { "Quantity": { "gte": 2, "lte": 3 } } }),
        ),
        (
            "query_records",
            json!({ "stream": "sales", "filter": { "$or": [{ "Country": "Peru" }, { "Quantity": { "$gt": 3 } }] } }),
            json!({ "stream": "sales", "filter": { "any": [{ "Country": "Peru" }, { "Quantity": { "gt": 3 } }] } }),
        ),
        (
            "query_records",
            json!({ "stream": "sales", "filter": [{ "field": "Country", "op": "=", "value": "Peru" }] }),
            json!({ "stream": "sales", "filter": { "Country": { "eq": "Peru" } } }),
        ),
        (
            "query_records",
            json!({ "stream": "sales", "fields": "SaleId, Country", "limit": 500 }),
            json!({ "stream": "sales", "fields": ["SaleId", "Country"], "limit": 100 }),
        ),
    ]
}

fn of_values() -> Vec<Mistake> {
    vec![
        (
            "query_records",
            json!({ "stream": "sales", "filter": { "SoldAt": "2021-03-05" } }),
            json!({ "stream": "sales", "filter": { "SoldAt": { "gte": "2021-03-05", "lt": "2021-03-06" } } }),
        ),
        (
            "aggregate",
            json!({ "stream": "sales", "metrics": ["revenue"], "filter": { "SoldAt": 2021 } }),
            json!({ "stream": "sales", "metrics": ["revenue"], "filter": { "SoldAt": { "gte": "2021-01-01", "lt": "2022-01-01" } } }),
        ),
        (
            "query_records",
            json!({ "stream": "sales", "filter": { "Quantity": "> 3" } }),
            json!({ "stream": "sales", "filter": { "Quantity": { "gt": 3 } } }),
        ),
        (
            "query_records",
            json!({ "stream": "sales", "filter": { "Country": null } }),
            json!({ "stream": "sales", "filter": { "Country": { "is_null": true } } }),
        ),
        (
            "query_records",
            json!({ "stream": "tracks", "filter": {}, "count": true }),
            json!({ "stream": "tracks", "count": "exact" }),
        ),
    ]
}

#[tokio::test]
async fn every_natural_mistake_is_answered_with_the_call_that_was_meant() {
    let (service, _files) = shop();
    let all = [of_names(), of_sql(), of_values()].concat();
    println!("{} mistakes", all.len());
    assert!(all.len() >= 30);
    for (tool, given, wanted) in all {
        let error = refused(&service, &Package::local(), tool, given.clone()).await;
        let next = &error["next"];
        assert_eq!(next["arguments"], wanted, "{tool} {given}: {error}");
        let tool = next["tool"].as_str().unwrap();
        good(&service, &Package::local(), tool, wanted).await;
    }
}

#[tokio::test]
async fn a_stream_of_several_connections_is_offered_as_the_callers_own_call() {
    let (service, _files) = crm();
    let given = json!({ "stream": "people", "filter": { "status": "accepted" }, "limit": 1 });
    let error = refused(&service, &Package::local(), "query_records", given.clone()).await;
    let mut wanted = given;
    wanted["connection_id"] = "crm-eu".into();
    assert_eq!(error["next"]["arguments"], wanted);
}

#[tokio::test]
async fn what_cannot_be_repaired_is_not_answered_with_another_question() {
    let (service, _files) = shop();
    for given in [
        json!({ "stream": "sales", "filter": { "weather": "sunny" } }),
        json!({ "stream": "sales", "filter": "Country LIKE something strange" }),
        json!({ "stream": "sales", "filter": { "Country": "Peru" }, "flavour": 1 }),
    ] {
        let error = refused(&service, &Package::local(), "query_records", given).await;
        assert_ne!(error["next"]["tool"], "query_records", "{error}");
    }
}

#[tokio::test]
async fn a_connection_string_in_a_call_does_not_come_back_in_the_next() {
    let (service, _files) = shop();
    let given = json!({ "stream": "sales", "filter": { "country": "postgres://u:hunter2@h/db" } });
    let error = refused(&service, &Package::local(), "query_records", given).await;
    assert!(!error.to_string().contains("hunter2"), "{error}");
}

#[tokio::test]
async fn a_hop_to_what_is_not_granted_is_not_repaired() {
    let (service, _files) = shop();
    // If artists are not granted, no name of an artist may be suggested.
    let some = |fields: &[&str]| stream_grant(fields, None);
    let narrow = package(
        "t",
        vec![("shop", vec![("albums", some(&[])), ("tracks", some(&[]))])],
    );
    let given = json!({ "stream": "albums", "filter": { "Name": "AC/DC" } });
    let error = refused(&service, &narrow, "query_records", given).await;
    assert!(!error.to_string().contains("artist."), "{error}");
}

#[tokio::test]
async fn a_call_of_any_size_is_refused_at_once() {
    let (service, _files) = shop();
    let many: serde_json::Map<String, Json> = (0..20_000)
        .map(|n| (format!("artist.nothing_{n}"), json!({ "like": "%" })))
        .collect();
    let long = "tracks.".repeat(100_000);
    let started = std::time::Instant::now();
    for given in [
        json!({ "stream": "tracks", "filter": many }),
        json!({ "stream": "tracks", "fields": [long] }),
        json!({ "stream": "tracks", "fields": ["tracks.".repeat(100)] }),
        json!({ "stream": "tracks", "sort": [long.replace('.', " ")] }),
        json!({ "stream": long }),
    ] {
        let error = refused(&service, &Package::local(), "query_records", given).await;
        assert_ne!(error["next"]["tool"], "query_records", "{error}");
    }
    assert!(started.elapsed().as_secs() < 5, "{:?}", started.elapsed());
}
