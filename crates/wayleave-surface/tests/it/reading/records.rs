//! The presentation of records to a caller.
//!
//! `discovery.rs` explains the names of the tests.

use serde_json::{Value as Json, json};
use wayleave_plan::package::Package;

use crate::reading::fixture::{
    CRM, CRM_SQL, Files, crm, good, package, refused, service, stream_grant,
};

fn local() -> Package {
    Package::local()
}

/// The cells of a row of text.
fn cells(row: &str) -> Vec<String> {
    let row = row[1..].replace("\\|", "\u{1}");
    row.split('|').map(str::to_owned).collect()
}

/// The ids of a page, assembled from its text as a reader would.
fn ids_in_text(text: &str) -> Vec<String> {
    let first = text.lines().next().unwrap();
    let pattern = first.rsplit_once("fetch id ").unwrap().1;
    let mut rows = text.lines().filter(|line| line.starts_with('|'));
    let header = cells(rows.next().unwrap());
    rows.map(|row| {
        let named = header.iter().zip(cells(row));
        named.fold(pattern.to_owned(), |id, (name, cell)| {
            if id == *name {
                cell
            } else {
                id.replace(&format!("{{{name}}}"), &cell)
            }
        })
    })
    .collect()
}

/// The value of a handle in the text of a page.
fn handle(text: &str, name: &str) -> Option<String> {
    let beginning = format!("{name}=");
    let line = text.lines().find(|line| line.starts_with(&beginning))?;
    Some(line[beginning.len()..].to_owned())
}

#[tokio::test]
async fn an_id_read_from_text_alone_fetches_its_record() {
    let (service, _files) = crm();
    for given in [
        json!({ "stream": "tickets", "connection_id": "crm-eu", "limit": 2, "sort": ["id"] }),
        json!({ "stream": "notes", "connection_id": "crm-us" }),
    ] {
        let reply = good(&service, &local(), "query_records", given).await;
        let found = ids_in_text(&reply.text);
        assert_eq!(found.len(), 2, "{}", reply.text);
        for id in found {
            let document = good(&service, &local(), "fetch", json!({ "id": id })).await;
            assert_eq!(document.structured.value()["id"], json!(id));
        }
    }
}

#[tokio::test]
async fn a_fetched_document_is_five_members_and_its_text_is_the_same() {
    let (service, _files) = crm();
    let reply = good(
        &service,
        &local(),
        "fetch",
        json!({ "id": "crm-eu/people:1" }),
    )
    .await;
    let members: Vec<&String> = reply
        .structured
        .value()
        .as_object()
        .unwrap()
        .keys()
        .collect();
    assert_eq!(members, ["id", "title", "text", "url", "metadata"]);
    assert_eq!(
        serde_json::from_str::<Json>(&reply.text).unwrap(),
        *reply.structured.value()
    );
    assert_eq!(reply.structured.value()["title"], "Worker 1");
    // A record without a title is labelled by its key, in readable form.
    let note = json!({ "id": "crm-eu/notes:call%2Fin,2026-01-01T08%3A30%3A00Z" });
    let note = good(&service, &local(), "fetch", note).await;
    let title = "Note call/in, 2026-01-01T08:30:00Z";
    assert_eq!(note.structured.value()["title"], title);
    assert_eq!(
        reply.structured.value()["url"],
        "wayleave://kg/Person/crm-eu%2Fpeople:1"
    );
    let metadata = json!({
        "connection_id": "crm-eu", "connector_key": "crm", "label": "CRM, Europe",
        "stream": "people", "type": "Person", "record_id": "1",
    });
    assert_eq!(reply.structured.value()["metadata"], metadata);
    let text = reply.structured.value()["text"].as_str().unwrap();
    assert!(
        text.contains("full_name: Worker 1\n") && text.contains("salary: 1001.25\n"),
        "{text}"
    );
}

#[tokio::test]
async fn a_projected_fetch_says_nothing_else() {
    let (service, _files) = crm();
    let given = json!({ "id": "crm-eu/people:1", "fields": ["id"] });
    let reply = good(&service, &local(), "fetch", given).await;
    assert!(reply.bytes() < 2_500);
    for hidden in ["Worker 1", "1001.25", "accepted", "Likes", "2026-01"] {
        assert!(
            !reply.text.contains(hidden),
            "`{hidden}` is in {}",
            reply.text
        );
    }
    // The title is hidden too: only the type and the key remain.
    assert_eq!(reply.structured.value()["title"], "Person 1");
    assert_eq!(reply.structured.value()["metadata"]["stream"], "people");
    assert_eq!(
        reply.structured.value()["metadata"]["connection_id"],
        "crm-eu"
    );
}

#[tokio::test]
async fn cursors_and_counts_in_the_text_walk_every_record_once() {
    let (service, _files) = crm();
    let mut given = json!({
        "stream": "people", "connection_id": "crm-eu", "limit": 90, "count": "exact",
        "fields": ["full_name"],
    });
    let mut seen = Vec::new();
    loop {
        let reply = good(&service, &local(), "query_records", given.clone()).await;
        assert!(reply.text.contains("count=195 exact"), "{}", reply.text);
        let count = json!({ "value": 195, "kind": "exact" });
        assert_eq!(reply.structured.value()["meta"]["count"], count);
        seen.extend(ids_in_text(&reply.text));
        let cursor = handle(&reply.text, "next_cursor");
        assert_eq!(
            cursor.as_deref(),
            reply.structured.value()["meta"]["next_cursor"].as_str()
        );
        match cursor {
            Some(cursor) => given["cursor"] = cursor.into(),
            None => break,
        }
    }
    let all = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!((all, seen.len()), (195, 195));
}

#[tokio::test]
async fn bookmarks_in_the_text_follow_changes_and_deletions() {
    let (service, _files) = crm();
    let mut given = json!({
        "stream": "people", "connection_id": "crm-eu", "limit": 100,
        "changes_since": "beginning", "fields": ["full_name"],
    });
    let first = good(&service, &local(), "query_records", given.clone()).await;
    let early = handle(&first.text, "next_changes_since");
    assert_eq!(early, None, "only the last page has a bookmark");
    given["cursor"] = handle(&first.text, "next_cursor").unwrap().into();
    let last = good(&service, &local(), "query_records", given.clone()).await;
    let tombstones = [&first, &last].map(|it| it.text.matches("||true\n").count());
    assert_eq!(tombstones.iter().sum::<usize>(), 5, "{}", last.text);
    let bookmark = handle(&last.text, "next_changes_since").unwrap();
    let given = json!({ "stream": "people", "connection_id": "crm-eu", "changes_since": bookmark });
    let later = good(&service, &local(), "query_records", given).await;
    assert_eq!(later.structured.value()["data"]["rows"], json!([]));
}

#[tokio::test]
async fn the_deleted_are_marked_only_where_the_mapping_has_a_mark() {
    let (with_mark, _files) = crm();
    let files = Files::new(&[("crm_eu", CRM_SQL), ("crm_us", CRM_SQL)]);
    let without_mark = service(&[&CRM.replace("deleted = \"deleted_at\"\n", "")], &files);
    let given = json!({
        "stream": "people", "connection_id": "crm-eu", "changes_since": "beginning",
        "fields": ["full_name"],
    });
    for (service, fields) in [
        (with_mark, json!(["id", "full_name", "@deleted"])),
        (without_mark, json!(["id", "full_name"])),
    ] {
        let reply = good(&service, &local(), "query_records", given.clone()).await;
        assert_eq!(reply.structured.value()["data"]["fields"], fields);
        assert_eq!(reply.text.contains("@deleted"), fields[2] == "@deleted");
    }
}

#[tokio::test]
async fn a_text_to_compare_with_is_bounded() {
    let (service, _files) = crm();
    let asked =
        |filter: Json| json!({ "stream": "people", "connection_id": "crm-eu", "filter": filter });
    let (longest, longer) = ("x".repeat(4_096), "x".repeat(4_097));
    let given = asked(json!({ "full_name": longest }));
    good(&service, &local(), "query_records", given).await;
    for filter in [
        json!({ "full_name": longer }),
        json!({ "full_name": { "contains": longer } }),
        json!({ "full_name": ["a", longer] }),
        json!({ "hired_at": { "gt": longer } }),
    ] {
        let error = refused(&service, &local(), "query_records", asked(filter)).await;
        assert_eq!(error["code"], "invalid_filter", "{error}");
        assert!(error["message"].as_str().unwrap().contains("4096 bytes"));
    }
}

#[tokio::test]
async fn relations_are_followed_within_the_grant_and_shown_beside_their_record() {
    let (service, _files) = crm();
    let given = json!({
        "stream": "people", "connection_id": "crm-eu", "sort": ["id"], "limit": 2,
        "fields": ["full_name", "employer.name", "tickets.amount"], "expand": ["employer", "tickets"],
    });
    let reply = good(&service, &local(), "query_records", given).await;
    let data = &reply.structured.value()["data"];
    assert_eq!(
        data["fields"],
        json!(["id", "full_name", "employer", "tickets"])
    );
    assert_eq!(data["rows"][0][2], json!([2, "Bolt"]));
    assert_eq!(data["rows"][0][3].as_array().unwrap().len(), 10);
    assert_eq!(data["expand"]["tickets"]["more_in_rows"], json!([0]));
    let header = "|id|full_name|employer[id,name]|tickets[id,amount]\n";
    assert!(reply.text.contains(header), "{}", reply.text);
    assert!(reply.text.contains("more tickets than shown in rows 1"));
    assert!(!reply.text.contains("secret_rating") && !reply.text.contains("Ticket "));

    let narrowed = package(
        "t",
        vec![(
            "crm-eu",
            vec![
                ("people", stream_grant(&[], None)),
                (
                    "orgs",
                    stream_grant(&["id", "name"], Some(json!({ "name": { "ne": "Bolt" } }))),
                ),
            ],
        )],
    );
    let given = json!({
        "stream": "people", "sort": ["id"], "limit": 2, "fields": ["full_name"],
        "expand": ["employer"],
    });
    let reply = good(&service, &narrowed, "query_records", given).await;
    let rows = json!([[1, "Worker 1", null], [2, "Worker 2", [3, "Crane"]]]);
    assert_eq!(reply.structured.value()["data"]["rows"], rows);
}

#[tokio::test]
async fn fat_records_end_a_page_early_and_the_walk_still_sees_each_once() {
    let (service, _files) = crm();
    let mut given = json!({
        "stream": "documents", "connection_id": "crm-eu", "filter": { "id": { "lte": 20 } },
    });
    let mut seen = Vec::new();
    let mut pages = 0;
    loop {
        let reply = good(&service, &local(), "query_records", given.clone()).await;
        assert!(reply.text.len() <= 16 * 1024, "{} bytes", reply.text.len());
        let rows = reply.structured.value()["data"]["rows"].as_array().unwrap();
        let lines = reply
            .text
            .lines()
            .filter(|line| line.starts_with('|'))
            .count();
        assert_eq!(rows.len(), lines - 1);
        seen.extend(rows.iter().map(|row| row[0].as_i64().unwrap()));
        pages += 1;
        match reply.structured.value()["meta"]["next_cursor"].as_str() {
            Some(cursor) => given["cursor"] = cursor.into(),
            None => break,
        }
    }
    assert_eq!(seen, (1..=20).collect::<Vec<i64>>());
    assert!(pages > 5, "{pages}");
}

#[tokio::test]
async fn data_cannot_forge_lines_in_the_text() {
    let (service, _files) = crm();
    let given = json!({ "stream": "notes", "connection_id": "crm-eu" });
    let reply = good(&service, &local(), "query_records", given).await;
    assert_eq!(handle(&reply.text, "next_cursor"), None, "{}", reply.text);
    let lines = reply
        .text
        .lines()
        .filter(|line| line.starts_with('|'))
        .count();
    assert_eq!(lines, 3, "{}", reply.text);
    assert!(reply.text.contains("first line\\nnext_cursor=forged"));
    assert!(reply.text.contains("\\|id\\|forged\\u{202e}\\u{2028}"));
    let row = &reply.structured.value()["data"]["rows"][0];
    assert_eq!(row[2], "first line\nnext_cursor=forged");
    let document = good(&service, &local(), "fetch", json!({ "id": row[3] })).await;
    let text = document.structured.value()["text"].as_str().unwrap();
    assert!(
        text.contains("said: first line\n  next_cursor=forged\n"),
        "{text}"
    );
}

#[tokio::test]
async fn aggregates_answer_as_tables_and_say_when_there_is_more() {
    let (service, _files) = crm();
    let given = json!({
        "stream": "people", "connection_id": "crm-eu", "group_by": ["status"],
        "metrics": [{ "op": "count" }, { "op": "sum", "field": "salary" }], "limit": 2,
    });
    let reply = good(&service, &local(), "aggregate", given).await;
    let data = &reply.structured.value()["data"];
    assert_eq!(data["fields"], json!(["status", "count", "sum_salary"]));
    assert_eq!(data["rows"].as_array().unwrap().len(), 2);
    assert_eq!(reply.structured.value()["meta"]["more"], true);
    let head = "2 groups of people, connection_id crm-eu\n|status|count|sum_salary\n";
    assert!(reply.text.starts_with(head), "{}", reply.text);
    let cursor = handle(&reply.text, "next_cursor").unwrap();
    assert_eq!(
        reply.structured.value()["meta"]["next_cursor"],
        json!(cursor)
    );
    let given = json!({
        "stream": "tickets", "connection_id": "crm-eu", "metrics": [{ "op": "count" }],
        "group_by_time": { "field": "opened_at", "granularity": "month" },
    });
    let reply = good(&service, &local(), "aggregate", given).await;
    let months = json!([["2026-01", 20], ["2026-02", 20], ["2026-03", 20]]);
    assert_eq!(reply.structured.value()["data"]["rows"], months);
}
