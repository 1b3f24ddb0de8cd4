//! A masked grant through the whole program: created, shown, served, recorded.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::serving::{hello, issue, over_stdio, served};

/// Queries the artists with the token in the environment.
fn artists(session: &crate::session::Session, arguments: &Value) -> (Value, String) {
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "query_records", "arguments": arguments,
    }});
    let (answers, _, printed) = over_stdio(session, &[hello(None), ready, call]);
    let answer = answers.into_iter().find(|it| it["id"] == 2).unwrap();
    (answer["result"].clone(), printed)
}

/// The files in a folder that contain a text, except for full-text indexes, which contain words of
/// the data.
fn holding(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(holding(&path, text));
        } else if let Ok(bytes) = fs::read(&path)
            && bytes.windows(text.len()).any(|it| it == text.as_bytes())
        {
            found.push(path.display().to_string());
        }
    }
    found
}

#[test]
fn a_masked_field_is_granted_shown_served_and_recorded_masked() {
    let (mut session, _, _) = served();
    let words = [
        "grant",
        "create",
        "--dataset",
        "music",
        "--mask",
        "artist.Name=token",
        "--json",
    ];
    let document = session.run(&words).exits(0).document();
    assert_eq!(
        document["grant"]["terms"]["streams"]["artist"]["masks"],
        json!({ "Name": "token" })
    );
    let grant = document["grant"]["id"].as_str().unwrap().to_owned();
    session
        .run(&["grant", "show", &grant])
        .exits(0)
        .says("Name (masked: token)");
    session
        .run(&["grant", "list"])
        .exits(0)
        .says("1 field masked");
    let (token, _) = issue(&session, &["--grant", &grant]);
    session.set("WAYLEAVE_TOKEN", &token);
    let (page, printed) = artists(&session, &json!({ "stream": "artist" }));
    let told = page.to_string() + &printed;
    assert!(
        told.contains("tok_") && !told.contains("Nightjar"),
        "{told}"
    );
    let rows = &page["structuredContent"]["data"]["rows"];
    let name = rows[0]
        .as_array()
        .unwrap()
        .iter()
        .find_map(|it| it.as_str().filter(|it| it.starts_with("tok_")));
    // The token is the same in another process, and can be compared with.
    let (again, _) = artists(
        &session,
        &json!({ "stream": "artist", "filter": { "Name": name } }),
    );
    assert_eq!(again["structuredContent"]["data"]["rows"], json!([rows[0]]));
    let (refused, _) = artists(&session, &json!({ "stream": "artist", "sort": ["Name"] }));
    assert_eq!(
        refused["structuredContent"]["error"]["code"],
        "invalid_sort"
    );
    assert_eq!(
        holding(&session.here().join(".wayleave"), "Nightjar"),
        Vec::<String>::new()
    );
    session.run(&["audit", "--verify"]).exits(0);
}

#[test]
fn a_mask_that_cannot_be_is_refused_with_what_can() {
    let (session, _, _) = served();
    for (mask, said) in [
        ("artist.Name=blur", "a mask is `redact`"),
        ("artist=token", "write it as"),
        ("artist.Nmae=token", "did you mean `Name`?"),
        ("artist.ArtistId=token", "it is in the key"),
        ("artist.Name=year", "`year` is for"),
    ] {
        let words = ["grant", "create", "--dataset", "music", "--mask", mask];
        session.run(&words).exits(2).says(said);
    }
}
