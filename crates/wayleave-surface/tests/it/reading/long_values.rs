//! Values too long for a result: shown truncated with a note, and read in full in pieces.

use std::fmt::Write as _;

use serde_json::{Value as Json, json};
use wayleave_plan::package::Package;
use wayleave_surface::{ReadLimits, ReadService};

use crate::reading::fixture::{CRM, CRM_SQL, Files, crm, good, refused, service, service_within};

/// Length of the body of document 21, in characters.
const BODY: usize = 200_000;

fn local() -> Package {
    Package::local()
}

async fn page(service: &ReadService, given: Json) -> (String, Json) {
    let reply = good(service, &local(), "query_records", given).await;
    assert!(reply.text.len() <= ReadLimits::default().text_bytes);
    (reply.text, reply.structured.into_value())
}

#[tokio::test]
async fn a_record_that_exceeds_a_page_is_shown_with_its_long_values_cut_and_the_walk_goes_on() {
    let sql = format!(
        "{CRM_SQL} INSERT INTO documents VALUES (22, 'short', 'after'), (23, 'short', 'last');"
    );
    let files = Files::new(&[("crm_eu", &sql), ("crm_us", CRM_SQL)]);
    let service = service(&[CRM], &files);
    let filter = json!({ "id": { "gte": 20 } });
    for limit in [1, 2, 25] {
        let mut given = json!({
            "stream": "documents", "connection_id": "crm-eu", "filter": filter, "limit": limit,
        });
        let mut seen = Vec::new();
        loop {
            let (text, structured) = page(&service, given.clone()).await;
            let rows = structured["data"]["rows"].as_array().unwrap().clone();
            let long = rows.iter().position(|row| row[0] == 21);
            assert_eq!(
                long.is_some(),
                structured["meta"]["cut"].is_array(),
                "{text}"
            );
            if let Some(place) = long {
                assert_eq!(place, 0);
                let cut = json!([{ "row": 0, "field": "body", "shown": 1_000, "of": BODY }]);
                assert_eq!(structured["meta"]["cut"], cut);
                let said =
                    "\ncut: body of row 1 shows 1000 of 200000 characters; fetch reads all\n";
                assert!(text.contains(said), "{text}");
                assert_eq!(rows[0][1], "Too long for any result");
                assert_eq!(rows[0][2], "0".repeat(1_000) + "…");
            }
            seen.extend(rows.iter().map(|row| row[0].as_i64().unwrap()));
            match structured["meta"]["next_cursor"].as_str() {
                Some(cursor) => given["cursor"] = cursor.into(),
                None => break,
            }
        }
        assert_eq!(seen, [20, 21, 22, 23], "limit {limit}");
    }
}

#[tokio::test]
async fn a_document_longer_than_a_result_is_read_in_pieces_that_make_the_whole() {
    let (service, _files) = crm();
    let mut given = json!({ "id": "crm-eu/documents:21", "fields": ["body"] });
    let (mut whole, mut pieces) = (String::new(), 0);
    loop {
        let reply = good(&service, &local(), "fetch", given.clone()).await;
        assert_eq!(
            serde_json::from_str::<Json>(&reply.text).unwrap(),
            *reply.structured.value()
        );
        let piece = reply.structured.value()["text"].as_str().unwrap();
        assert!(piece.len() <= ReadLimits::default().document_bytes);
        whole.push_str(piece);
        pieces += 1;
        let metadata = &reply.structured.value()["metadata"];
        assert_eq!(
            metadata["characters"],
            json!("id: 21\nbody: \n".len() + BODY)
        );
        match metadata["next_offset"].as_u64() {
            Some(next) => given["offset"] = next.into(),
            None => break,
        }
    }
    assert_eq!(whole, format!("id: 21\nbody: {}\n", "0".repeat(BODY)));
    assert_eq!(pieces, 4);
    // A document that fits is complete, and has no additional metadata.
    let given = json!({ "id": "crm-eu/documents:20", "offset": 0 });
    let reply = good(&service, &local(), "fetch", given).await;
    assert!(reply.structured.value()["text"].as_str().unwrap().len() > 5_000);
    assert_eq!(reply.structured.value()["metadata"].get("characters"), None);
}

#[tokio::test]
async fn an_offset_that_is_none_is_refused_with_what_would_be_right() {
    let (service, _files) = crm();
    for (offset, says) in [
        (json!(1_000_000), "has 24 characters"),
        (json!(-1), "whole number from 0"),
        (json!(1.5), "whole number from 0"),
        (json!("5"), "whole number from 0"),
    ] {
        let given = json!({ "id": "crm-eu/orgs:1", "fields": ["id", "name"], "offset": offset });
        let error = refused(&service, &local(), "fetch", given).await;
        let told = (&error["code"], &error["param"]);
        assert_eq!(told, (&json!("invalid_request"), &json!("offset")));
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(says), "{message}");
    }
}

#[tokio::test]
async fn a_record_of_too_many_values_is_refused_with_a_call_that_answers_the_same_question() {
    let (mut toml, mut columns, mut values) = (
        "[dataset]\nname = \"hr\"\nkind = \"sqlite\"\n[[connections]]\nid = \"hr-main\"\n\
         source = \"hr\"\n[streams.wide]\ntype = \"Wide\"\nkey = [\"id\"]\n\
         [streams.wide.fields.id]\ndatatype = \"integer\"\n"
            .to_owned(),
        String::new(),
        String::new(),
    );
    for n in 0..200 {
        writeln!(toml, "[streams.wide.fields.f{n}]\ndatatype = \"string\"").unwrap();
        write!(columns, ", f{n} TEXT").unwrap();
        values.push_str(", hex(zeroblob(100))");
    }
    let sql = format!(
        "CREATE TABLE wide (id INTEGER PRIMARY KEY{columns});
         INSERT INTO wide VALUES (1{values}), (2{values});"
    );
    let files = Files::new(&[("hr", &sql)]);
    let service = service_within(&[&toml], &files, ReadLimits::default());
    let given = json!({ "stream": "wide", "filter": { "id": 2 }, "sort": ["-id"] });
    let error = refused(&service, &local(), "query_records", given).await;
    assert_eq!(
        (&error["code"], &error["retry_with"]),
        (&json!("result_too_large"), &json!("fields"))
    );
    let next = error["next"]["arguments"].clone();
    let (_, structured) = page(&service, next).await;
    assert_eq!(structured["data"]["rows"], json!([[2]]));
}
