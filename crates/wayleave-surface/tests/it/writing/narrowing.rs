//! Two worlds that differ only in data that a grant hides answer every write alike, and no write
//! changes hidden data.

use serde_json::{Map, Value as Json, json};
use wayleave_model::mapping::SourceKind;
use wayleave_store::conformance::SeededRng;

use crate::writing::laboratory::{Laboratory, count, narrow, org};

const VISIBLE: &str = "INSERT INTO orgs (id, name, country, region) VALUES \
      (1, 'Acme', 'NO', 'eu'), (2, 'Umbrella', 'DE', 'eu'), (3, 'Vogon', NULL, 'eu'); \
    INSERT INTO people (id, name, status, badge, org_id, region, secret) VALUES \
      (1, 'Ann', 'proposed', 'B-10', 1, 'eu', 'x'), (2, 'Bob', 'accepted', NULL, NULL, 'eu', 'x'), \
      (3, 'Cid', 'rejected', 'B-12', 2, 'eu', 'x');";

/// The hidden rows of each world.
const HIDDEN: [&str; 2] = [
    "INSERT INTO orgs (id, name, country, region) VALUES (4, 'Hidden', 'NO', 'us'), (5, 'Acme', 'DE', 'us'); \
     INSERT INTO people (id, name, status, badge, org_id, region, secret) VALUES \
       (4, 'Dan', 'proposed', 'B-13', 4, 'us', 'one'), (5, 'Eve', 'accepted', 'B-14', 1, 'us', 'one');",
    "INSERT INTO orgs (id, name, country, region) VALUES (6, 'Other', 'SE', 'us'); \
     INSERT INTO people (id, name, status, badge, org_id, region, secret) VALUES \
       (6, 'Fay', 'rejected', 'B-15', 6, 'us', 'two');",
];

/// Makes both worlds generate the same keys.
pub fn sequence(kind: SourceKind) -> &'static str {
    match kind {
        SourceKind::Sqlite => "UPDATE sqlite_sequence SET seq = 1000 WHERE name = 'people';",
        SourceKind::Postgres => "ALTER TABLE people ALTER COLUMN id RESTART WITH 1001;",
        _ => "ALTER TABLE people AUTO_INCREMENT = 1001;",
    }
}

#[tokio::test]
async fn worlds_of_sqlite_that_differ_in_hidden_records_answer_alike_and_keep_them() {
    narrowing(SourceKind::Sqlite).await;
}

#[tokio::test]
async fn worlds_of_postgres_that_differ_in_hidden_records_answer_alike_and_keep_them() {
    narrowing(SourceKind::Postgres).await;
}

#[tokio::test]
async fn worlds_of_mariadb_that_differ_in_hidden_records_answer_alike_and_keep_them() {
    narrowing(SourceKind::Mysql).await;
}

async fn narrowing(kind: SourceKind) {
    let mut worlds = Vec::new();
    for hidden in HIDDEN {
        let sql = format!("{VISIBLE}{hidden}{}", sequence(kind));
        worlds.push(Laboratory::new(kind, &sql).await);
    }
    let kept = [hidden(&worlds[0]).await, hidden(&worlds[1]).await];
    let mut rng = SeededRng::new(11);
    let mut accepted = 0;
    let cases = count(120, 8_100);
    for case in 0..cases {
        let (tool, given) = draw(&mut rng);
        let one = worlds[0].call(&narrow(), tool, &given).await.map(timeless);
        let other = worlds[1].call(&narrow(), tool, &given).await.map(timeless);
        // Trace ids are random; no error here has one.
        assert_eq!(one, other, "{kind} {case} {tool} {given}");
        accepted += usize::from(one.is_ok());
        if case % 20 == 0 || case + 1 == cases {
            for (world, kept) in worlds.iter().zip(&kept) {
                assert_eq!(hidden(world).await, *kept, "{kind} {case} {tool} {given}");
            }
        }
    }
    println!("{kind}: {accepted} of {cases} accepted");
    assert!(accepted > cases / 20, "{accepted}");
}

/// Everything that the grant hides.
async fn hidden(world: &Laboratory) -> String {
    let is_hidden = |it: &Map<String, Json>| it["region"] != "eu";
    let mut records = world.records("orgs").await;
    records.extend(world.records("people").await);
    // A visible record has a hidden field too.
    let secrets = |it: &Map<String, Json>| {
        it.get("secret")
            .is_some_and(|it| it != "x" && !it.is_null())
    };
    let found = records.iter().filter(|it| is_hidden(it) || secrets(it));
    json!(found.collect::<Vec<_>>()).to_string()
}

/// An answer without the time of the write.
pub fn timeless(mut answer: Json) -> Json {
    if let Some(record) = answer["data"]["record"].as_object_mut() {
        record.remove("changed");
    }
    if let Some(changed) = answer["data"]["changed"].as_object_mut() {
        changed.remove("changed");
    }
    answer
}

fn draw(rng: &mut SeededRng) -> (&'static str, Json) {
    let tool = *rng.one_of(&[
        "crm_open",
        "crm_rename",
        "crm_close",
        "crm_hire",
        "crm_change",
        "crm_forget",
    ]);
    let number = i64::try_from(rng.below(8)).unwrap() + 1;
    let mut given = Map::new();
    let mut put = |name: &str, value: Json| drop(given.insert(name.to_owned(), value));
    let names = ["Acme", "Hidden", "Other", "Umbrella", "New"];
    let countries = [json!("NO"), json!("DE"), json!("SE")];
    let regions = ["eu", "eu", "eu", "us"];
    match tool {
        "crm_open" => {
            put("id", number.into());
            put("name", (*rng.one_of(&names)).into());
            put("country", rng.one_of(&countries).clone());
            put("region", (*rng.one_of(&regions)).into());
        }
        "crm_rename" => {
            put("id", number.into());
            put("name", (*rng.one_of(&names)).into());
        }
        "crm_hire" => {
            put("name", (*rng.one_of(&names)).into());
            put("status", "proposed".into());
            put("region", (*rng.one_of(&regions)).into());
        }
        "crm_change" => {
            put("id", number.into());
            match rng.below(4) {
                0 => put("region", (*rng.one_of(&regions)).into()),
                1 => put(
                    "status",
                    (*rng.one_of(&["proposed", "accepted", "odd"])).into(),
                ),
                2 => put("age", (rng.below(200)).into()),
                _ => put("name", (*rng.one_of(&names)).into()),
            }
        }
        _ => put("id", number.into()),
    }
    if matches!(tool, "crm_hire" | "crm_change") {
        if rng.below(3) == 0 {
            put("org_id", org(i64::try_from(rng.below(8)).unwrap() + 1));
        }
        if rng.below(4) == 0 {
            put("badge", format!("B-1{}", rng.below(8)).into());
        }
    }
    if rng.below(8) == 0 {
        put("dry_run", true.into());
    }
    if tool == "crm_hire" && rng.below(8) == 0 {
        put("idempotency_key", format!("key {}", rng.below(5)).into());
    }
    (tool, Json::Object(given))
}
