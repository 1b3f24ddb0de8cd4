//! Questions of an analyst: paths, measures, periods, totals, and the notes on an empty page.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value as Json, json};
use wayleave_plan::package::Package;
use wayleave_surface::ReadService;

use crate::reading::fixture::{Files, good, package, service, stream_grant};

pub const SHOP: &str = include_str!("fixtures/shop.toml");
pub const SHOP_SQL: &str = include_str!("fixtures/shop.sql");

pub fn shop() -> (ReadService, Arc<Files>) {
    let files = Files::new(&[("shop", SHOP_SQL)]);
    (service(&[SHOP], &files), files)
}

async fn answered(service: &ReadService, tool: &str, given: Json) -> (String, Json) {
    let reply = good(service, &Package::local(), tool, given).await;
    let structured = reply.structured.value().clone();
    (reply.text, structured)
}

#[tokio::test]
async fn one_value_is_one_short_line() {
    let (service, _files) = shop();
    let given = json!({ "stream": "sales", "metrics": ["revenue"] });
    let (text, structured) = answered(&service, "aggregate", given).await;
    println!("one value: {} of 80 bytes", text.len());
    assert!(text.len() <= 80 && text.lines().count() == 1, "{text}");
    assert_eq!(text, "revenue=989.5 of sales connection_id shop\n");
    assert_eq!(
        structured["data"],
        json!({ "fields": ["revenue"], "rows": [["989.5"]] })
    );
    let given = json!({ "stream": "sales", "metrics": ["sum:amount"], "filter": { "SaleId": 0 } });
    let (text, structured) = answered(&service, "aggregate", given).await;
    assert_eq!(text, "sum_amount=null of sales connection_id shop\n");
    assert_eq!(structured["data"]["rows"], json!([[null]]));
}

#[tokio::test]
async fn a_period_is_labelled_in_text_and_in_structure() {
    let (service, _files) = shop();
    for (granularity, first) in [
        ("year", "2020"),
        ("quarter", "2020-Q1"),
        ("month", "2020-01"),
        ("week", "2020-W01"),
        ("day", "2020-01-05"),
        ("hour", "2020-01-05T12:00:00Z"),
    ] {
        let given = json!({
            "stream": "sales", "metrics": ["count"], "limit": 1,
            "group_by_time": { "field": "SoldAt", "granularity": granularity },
        });
        let (text, structured) = answered(&service, "aggregate", given).await;
        let label = &structured["data"]["rows"][0][0];
        assert_eq!(*label, json!(first));
        let label = label.as_str().unwrap();
        assert!(text.contains(&format!("\n|{label}|")), "{text}");
    }
}

#[tokio::test]
async fn a_walk_of_groups_shows_each_once_whatever_ends_a_page() {
    let (service, _files) = shop();
    let mut given = json!({
        "stream": "sales", "metrics": ["revenue", "count"], "limit": 7, "totals": true,
        "group_by": ["track.album.artist.Name", "TrackId"],
    });
    let mut seen = BTreeSet::new();
    let mut pages = 0;
    loop {
        let (text, structured) = answered(&service, "aggregate", given.clone()).await;
        pages += 1;
        assert!(
            text.starts_with("7 groups of sales") || text.starts_with("5 groups"),
            "{text}"
        );
        assert!(text.contains("|track.album.artist.Name|TrackId|revenue|count\n"));
        assert!(text.contains("\ntotal revenue=989.5|count=300\n"), "{text}");
        assert_eq!(
            structured["meta"]["totals"],
            json!({ "revenue": "989.5", "count": 300 })
        );
        for row in structured["data"]["rows"].as_array().unwrap() {
            assert!(seen.insert(row[1].as_i64().unwrap()), "{row} came twice");
        }
        let cursor = structured["meta"]["next_cursor"].as_str();
        assert_eq!(structured["meta"]["more"], cursor.is_some());
        let Some(cursor) = cursor else { break };
        assert!(text.contains(&format!("next_cursor={cursor}\n")));
        given["cursor"] = json!(cursor);
    }
    assert_eq!((seen.len(), pages), (40, 6));
}

#[tokio::test]
async fn a_metric_is_a_text_or_an_object_also_as_text() {
    let (service, _files) = shop();
    let object = json!({ "op": "count", "filter": { "Country": "Peru" }, "as": "peru" });
    for metric in [object.clone(), json!(object.to_string())] {
        let given = json!({ "stream": "sales", "metrics": ["count", metric], "group_by": ["Country"],
            "having": { "peru": { "gt": 0 } } });
        let (text, _) = answered(&service, "aggregate", given).await;
        assert!(
            text.contains("|Country|count|peru\n|Peru|100|100\n"),
            "{text}"
        );
    }
}

#[tokio::test]
async fn a_tie_at_the_limit_is_told() {
    let (service, _files) = shop();
    let of = |limit: u32, filter: Json| {
        json!({ "stream": "tracks", "metrics": ["count"], "group_by": ["genre"],
            "limit": limit, "filter": filter })
    };
    let all = json!({ "TrackId": { "gt": 0 } });
    let (text, structured) = answered(&service, "aggregate", of(1, all.clone())).await;
    assert!(text.contains("\ntie: "), "{text}");
    assert!(
        text.contains("|genre.GenreId|genre.Label|count\n"),
        "{text}"
    );
    assert_eq!(structured["meta"]["tie"], true);
    for given in [of(2, all), of(1, json!({ "TrackId": { "gt": 1 } }))] {
        let (text, structured) = answered(&service, "aggregate", given).await;
        assert!(!text.contains("tie"), "{text}");
        assert!(structured["meta"]["tie"].is_null());
    }
}

#[tokio::test]
async fn paths_are_columns_of_records() {
    let (service, _files) = shop();
    let given = json!({
        "stream": "tracks", "fields": ["Song", "album.artist.Name"], "limit": 2,
        "filter": { "album.artist.Name": { "icontains": "ac/" } }, "sort": ["-album.Title", "TrackId"],
    });
    let (text, structured) = answered(&service, "query_records", given).await;
    assert_eq!(
        structured["data"]["fields"],
        json!(["TrackId", "Song", "album.artist.Name"])
    );
    assert!(
        text.contains("|TrackId|Song|album.artist.Name\n|3|Song 3|AC/DC\n"),
        "{text}"
    );
}

#[tokio::test]
async fn the_first_line_tells_the_order_nobody_asked_for() {
    let (service, _files) = shop();
    for (given, wanted) in [
        (
            json!({ "stream": "sales" }),
            Some("25 rows of sales, newest first by SoldAt, connection_id shop"),
        ),
        (
            json!({ "stream": "tracks" }),
            Some("25 rows of tracks, by key TrackId, connection_id shop"),
        ),
        (json!({ "stream": "tracks", "sort": ["Song"] }), None),
    ] {
        let (text, _) = answered(&service, "query_records", given).await;
        let first = text.lines().next().unwrap();
        match wanted {
            Some(wanted) => assert!(first.starts_with(wanted), "{first}"),
            None => assert!(
                first.starts_with("25 rows of tracks, connection_id"),
                "{first}"
            ),
        }
    }
}

#[tokio::test]
async fn an_empty_page_tells_what_another_case_would_find() {
    let (service, files) = shop();
    for (filter, found) in [
        (json!({ "Country": "norway" }), 100),
        (
            json!({ "Country": { "eq": "NORWAY" }, "Quantity": { "gte": 1 } }),
            100,
        ),
        (json!({ "Country": { "contains": "NOR" } }), 100),
        (json!({ "Country": { "starts_with": "nor" } }), 100),
        (json!({ "Country": ["chile", "peru"] }), 200),
        (json!({ "Country": { "in": ["chile"] } }), 100),
        (
            json!({ "any": [{ "Country": "peru" }, { "SaleId": 0 }] }),
            100,
        ),
        (json!({ "track.album.artist.Name": "ac/dc" }), 150),
    ] {
        let given = json!({ "stream": "sales", "filter": filter, "limit": 1 });
        let (text, structured) = answered(&service, "query_records", given.clone()).await;
        let hint = &structured["meta"]["case"];
        assert_eq!(hint["count"], found, "{filter}: {text}");
        assert!(
            text.contains("\ncase: no record matches as written"),
            "{text}"
        );
        let next = hint["next"]["arguments"].clone();
        let (text, structured) = answered(&service, "query_records", next).await;
        assert!(text.starts_with("1 row of sales"), "{text}");
        assert!(structured["meta"]["case"].is_null());
    }
    // There is no note if rows are found, or if case makes no difference.
    for filter in [
        json!({ "Country": "Norway" }),
        json!({ "SaleId": 0 }),
        json!({ "SoldAt": { "gte": "2030-01-01" } }),
        json!({ "Country": { "ieq": "nowhere" } }),
    ] {
        let before = files.asked();
        let given = json!({ "stream": "sales", "filter": filter, "limit": 1 });
        let (text, _) = answered(&service, "query_records", given).await;
        assert_eq!(files.asked() - before, 1, "{filter}: {text}");
    }
    let given =
        json!({ "stream": "albums", "filter": { "tracks": { "some": { "Song": "song 4" } } } });
    let (_, structured) = answered(&service, "query_records", given).await;
    assert_eq!(structured["meta"]["case"]["count"], 1);
}

#[tokio::test]
async fn a_measure_of_no_record_tells_what_another_case_would_find() {
    let (service, files) = shop();
    for grouped in [json!(null), json!(["TrackId"])] {
        let given = json!({ "stream": "sales", "metrics": ["count"], "group_by": grouped,
            "filter": { "Country": "norway" } });
        let (text, structured) = answered(&service, "aggregate", given).await;
        let hint = &structured["meta"]["case"];
        assert_eq!(hint["count"], 100, "{text}");
        assert!(text.contains("\ncase: "), "{text}");
        assert_eq!(hint["next"]["tool"], "aggregate");
        let next = hint["next"]["arguments"].clone();
        let (text, _) = answered(&service, "aggregate", next).await;
        assert!(
            text.starts_with("count=100 ") || text.contains("groups of sales"),
            "{text}"
        );
    }
    for (filter, having) in [
        (json!({ "Country": "Norway" }), json!(null)),
        (
            json!({ "Country": "norway" }),
            json!({ "count": { "gt": 900 } }),
        ),
    ] {
        let before = files.asked();
        let given = json!({ "stream": "sales", "metrics": ["count"], "group_by": ["TrackId"],
            "filter": filter, "having": having });
        answered(&service, "aggregate", given).await;
        assert_eq!(files.asked() - before, 1);
    }
}

#[tokio::test]
async fn what_a_grant_hides_is_found_in_no_case() {
    let (service, _files) = shop();
    let rows = Some(json!({ "Country": "Chile" }));
    let narrow = package(
        "t",
        vec![("shop", vec![("sales", stream_grant(&[], rows))])],
    );
    for (tool, given) in [
        (
            "query_records",
            json!({ "stream": "sales", "filter": { "Country": "norway" } }),
        ),
        (
            "aggregate",
            json!({ "stream": "sales", "metrics": ["count"], "filter": { "Country": "norway" }, "totals": true }),
        ),
    ] {
        let reply = good(&service, &narrow, tool, given).await;
        assert!(!reply.text.contains("case:"), "{}", reply.text);
        assert!(reply.structured.value()["meta"]["case"].is_null());
    }
}
