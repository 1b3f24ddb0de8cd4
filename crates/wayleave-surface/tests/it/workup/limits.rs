//! Bytes, time, reads and fan-out are limited, and a workup reports every limit that it reached.

use std::time::Duration;

use serde_json::json;
use wayleave_plan::package::Package;
use wayleave_surface::ReadLimits;

use crate::workup::fixture::{DeploymentParts, NORTH, TABLES, gaps, harbour, statements};

fn texts(gaps: &[(String, Vec<String>)]) -> Vec<&str> {
    gaps.iter().map(|(text, _)| text.as_str()).collect()
}

/// The harbour with a ship that has very many port calls and long remarks.
fn busy() -> DeploymentParts<'static> {
    let mut made = DeploymentParts::harbour();
    let sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
        INSERT INTO calls SELECT 1000 + i, 'IMO9074729', 'quay number ' || i || ' on the far side', 'NO',
            '2025-01-01T00:00:00Z', 7 FROM n;
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
        INSERT INTO reports SELECT 1000 + i, 'Report ' || i, 'The Grey Heron was seen again, ' || i,
            '2025-01-01T00:00:00Z' FROM n;
        UPDATE ships SET remarks = replace(hex(zeroblob(5000)), '00', 'long ');";
    made.sources[0].1 = format!("{TABLES}{NORTH}{sql}");
    made
}

#[tokio::test]
async fn the_text_stays_within_its_budget_and_tells_what_it_left_out() {
    let harbour = busy().deploy().await;
    for budget in [1_024, 2_000, 4_096, 8_192, 65_536] {
        let given = json!({ "entity": "Grey Heron", "budget": budget });
        let reply = harbour.workup(given).await;
        let whole = reply.bytes();
        println!(
            "budget {budget}: {} bytes of text, {whole} in all",
            reply.text.len()
        );
        assert!(reply.text.len() <= budget, "{} bytes", reply.text.len());
        assert_eq!(
            reply.structured.value()["meta"]["text_bytes"],
            reply.text.len()
        );
        assert!(whole <= budget * 6, "{whole} bytes in all");
        let left_out = reply.structured.value()["meta"]["left_out"]
            .as_u64()
            .unwrap();
        let told = texts(&gaps(&reply))
            .iter()
            .any(|it| it.contains("had no room within"));
        assert_eq!(told, left_out > 0, "{budget}");
        assert_eq!(left_out > 0, budget <= 4_096, "{budget}: {left_out}");
    }
    let default = harbour.workup(json!({ "entity": "Grey Heron" })).await;
    assert!(default.text.len() <= 8_192);
    // No section displaces another.
    for section in [
        "record",
        "relations",
        "second_hop",
        "timeline",
        "text",
        "conflicts",
    ] {
        assert!(!statements(&default, section).is_empty(), "{section}");
    }
}

#[tokio::test]
async fn fan_out_is_capped_and_the_cap_is_told() {
    let harbour = busy().deploy().await;
    let reply = harbour
        .workup(json!({ "entity": "Grey Heron", "budget": 65_536 }))
        .await;
    let told = gaps(&reply);
    let told = texts(&told);
    assert!(
        told.contains(&"references from calls as ship: only the first 10 were read"),
        "{told:?}"
    );
    assert!(
        told.contains(&"only the best 12 texts were looked at"),
        "{told:?}"
    );
    assert_eq!(reply.structured.value()["partial"], true);
    let meta = &reply.structured.value()["meta"];
    println!("{meta}");
    assert!(meta["reads"].as_u64().unwrap() <= 60, "{meta}");
    assert!(meta["rows"].as_u64().unwrap() <= 200, "{meta}");
}

#[tokio::test]
async fn a_source_that_is_down_is_a_gap_and_the_rest_is_served() {
    let mut made = DeploymentParts::harbour();
    made.sources.retain(|(name, _)| *name != "south");
    let harbour = made.deploy().await;
    let reply = harbour
        .workup(json!({ "entity": "north/ships:IMO9074729" }))
        .await;
    let told = gaps(&reply);
    let told = texts(&told);
    assert!(
        told.contains(&"south could not be read: unsupported"),
        "{told:?}"
    );
    assert!(
        told.iter()
            .any(|it| it.starts_with("texts of south could not be searched")),
        "{told:?}"
    );
    assert_eq!(reply.structured.value()["partial"], true);
    assert!(!statements(&reply, "second_hop").is_empty());
}

#[tokio::test]
async fn a_source_that_gets_busy_is_told_to_be_busy_whenever_that_happens() {
    let harbour = harbour().await;
    // The name matches only by words, so ids, keys and titles are searched before texts.
    let given = json!({ "entity": "Heron Grey", "sections": ["record", "text"] });
    harbour.files.be_busy_after(usize::MAX);
    let whole = harbour.workup(given.clone()).await;
    assert_eq!(whole.structured.value()["partial"], false, "{}", whole.text);
    let reads = harbour.files.asked("north");
    let (mut refused, mut partial) = (0, 0);
    for patience in 0..reads {
        harbour.files.be_busy_after(patience);
        let reply = harbour.workup_as(&Package::local(), given.clone()).await;
        assert!(!reply.text.contains("index"), "{patience}: {}", reply.text);
        if reply.is_error {
            let error = &reply.structured.value()["error"];
            let told = (&error["code"], &error["reason"], &error["retryable"]);
            let busy = (&json!("rate_limited"), &json!("busy"), &json!(true));
            assert_eq!(told, busy, "{patience}");
            refused += 1;
        } else {
            assert!(reply.text.contains("busy"), "{patience}: {}", reply.text);
            partial += 1;
        }
    }
    println!("busy after 0 to {reads} reads: {refused} refused, {partial} partial");
    assert!(refused > 0 && partial > 0);
}

#[tokio::test]
async fn a_relation_that_leads_nowhere_or_is_not_set_is_a_gap() {
    let harbour = harbour().await;
    let lost = gaps(&harbour.workup(json!({ "entity": "Blue Petrel" })).await);
    let lost = texts(&lost);
    assert!(
        lost.contains(&"relation owner to companies leads to no record that may be read"),
        "{lost:?}"
    );
    let unset = gaps(&harbour.workup(json!({ "entity": "IMO9100002" })).await);
    let unset = texts(&unset);
    assert!(
        unset.contains(&"relation owner to companies is not set"),
        "{unset:?}"
    );
    assert!(
        unset
            .iter()
            .any(|it| it.starts_with("1 other record(s) of north/ships have the same title")),
        "{unset:?}"
    );
}

#[tokio::test]
async fn without_an_index_the_texts_are_a_gap() {
    let mut made = DeploymentParts::harbour();
    made.indexed = false;
    let harbour = made.deploy().await;
    let reply = harbour.workup(json!({ "entity": "Grey Heron" })).await;
    let told = gaps(&reply);
    assert!(
        texts(&told)
            .iter()
            .any(|it| it.contains("could not be searched")),
        "{told:?}"
    );
    assert_eq!(reply.structured.value()["partial"], true);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn time_that_runs_out_leaves_what_was_read_and_says_so() {
    let mut made = DeploymentParts::harbour();
    let endless = "DROP TABLE pilots; CREATE VIEW pilots AS
        WITH RECURSIVE n(i) AS (SELECT 8 UNION ALL SELECT i + 1 FROM n WHERE i < 100000000000)
        SELECT i AS id, 'nobody' AS full_name FROM n;";
    made.sources[0].1 = format!("{TABLES}{NORTH}{endless}");
    made.limits.deadline = Duration::from_millis(1_500);
    let harbour = made.deploy().await;
    let reply = harbour
        .workup(json!({ "entity": "north/ships:IMO9074729" }))
        .await;
    let told = gaps(&reply);
    let told = texts(&told);
    assert!(
        told.contains(&"time ran out before everything was read"),
        "{told:?}"
    );
    assert_eq!(reply.structured.value()["partial"], true);
    assert!(!statements(&reply, "relations").is_empty());
}

#[tokio::test]
async fn a_record_whose_name_does_not_fit_is_refused_and_not_cut() {
    let harbour = harbour().await;
    let long = "x".repeat(900);
    let sql = format!("UPDATE ships SET imo = '{long}' WHERE imo = 'IMO9100003'");
    harbour.files.execute("north", &sql);
    let given = json!({ "entity": "Blue Petrel", "budget": 1_024 });
    let error = harbour.refused(given).await;
    assert_eq!(error["code"], "result_too_large", "{error}");
    assert_eq!(error["retry_with"], "budget");
    let reply = harbour.workup(json!({ "entity": "Blue Petrel" })).await;
    assert!(reply.text.len() <= 8_192);
}

/// A dataset with the given number of streams, each with one record.
fn wide(streams: usize) -> DeploymentParts<'static> {
    let mut toml = "[dataset]\nname = \"harbour\"\nkind = \"sqlite\"\n\
         [[connections]]\nid = \"north\"\nsource = \"north\"\n"
        .to_owned();
    let mut sql = String::new();
    for n in 0..streams {
        toml += &format!(
            "[streams.s{n:03}]\ntype = \"T{n}\"\nkey = [\"id\"]\ntitle = \"name\"\n\
             [streams.s{n:03}.fields.id]\ndatatype = \"string\"\n\
             [streams.s{n:03}.fields.name]\ndatatype = \"string\"\n"
        );
        sql += &format!(
            "CREATE TABLE s{n:03} (id TEXT PRIMARY KEY, name TEXT);
             INSERT INTO s{n:03} VALUES ('k{n}', 'thing {n}');"
        );
    }
    DeploymentParts {
        mappings: vec![toml],
        sources: vec![("north", sql)],
        limits: ReadLimits::default(),
        indexed: false,
    }
}

#[tokio::test]
async fn an_entity_is_looked_up_in_so_many_streams_and_no_more() {
    let harbour = wide(130).deploy().await;
    let near = harbour.workup(json!({ "entity": "thing 7" })).await;
    let told = gaps(&near);
    assert!(
        texts(&told)
            .iter()
            .any(|it| it.starts_with("not everything was read")),
        "{told:?}"
    );
    let reads = near.structured.value()["meta"]["reads"].as_u64().unwrap();
    assert!(reads <= 210, "{reads} reads");
    let far = harbour.refused(json!({ "entity": "thing 120" })).await;
    assert_eq!(far["code"], "result_too_large", "{far}");
    harbour.workup(json!({ "entity": "north/s120:k120" })).await;
}

#[tokio::test]
async fn a_call_without_time_says_so_and_does_not_pretend() {
    let mut made = DeploymentParts::harbour();
    made.limits = ReadLimits {
        deadline: Duration::ZERO,
        ..ReadLimits::default()
    };
    made.indexed = false;
    let harbour = made.deploy().await;
    let error = harbour.refused(json!({ "entity": "Grey Heron" })).await;
    assert_eq!(error["code"], "timeout", "{error}");
    assert_eq!(error["retryable"], true);
}
