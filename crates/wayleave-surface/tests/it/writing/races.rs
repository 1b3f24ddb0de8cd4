//! Many concurrent writers of the same records.

use std::sync::Arc;

use serde_json::json;

use crate::writing::laboratory::{KINDS, Laboratory, count, fields, writer};

const RECORDS: usize = 16;

fn seed() -> String {
    let people: Vec<String> = (1..=RECORDS)
        .map(|n| format!("({n}, 'Ann', 'proposed', 'eu', 0, '2026-01-01 00:00:00')"))
        .collect();
    format!(
        "INSERT INTO people (id, name, status, region, age, changed) VALUES {};",
        people.join(", ")
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_update_of_64_writers_is_lost() {
    for kind in KINDS {
        let laboratory = Arc::new(Laboratory::new(kind, &seed()).await);
        let rounds = count(2, 8);
        let mut writers = tokio::task::JoinSet::new();
        for number in 0..64_usize {
            let laboratory = Arc::clone(&laboratory);
            writers.spawn(async move {
                let mut successes = 0_i64;
                for round in 0..rounds {
                    let id = (number + round * 5) % RECORDS + 1;
                    let people = laboratory.records("people").await;
                    let person = people.iter().find(|it| it["id"] == json!(id)).unwrap();
                    let given = json!({
                        "id": id,
                        "age": person["age"].as_i64().unwrap() + 1,
                        "if_updated": person["changed"],
                    });
                    match laboratory.call(&writer(), "crm_change", &given).await {
                        Ok(_) => successes += 1,
                        Err(error) => {
                            let told = fields(&error);
                            let codes: Vec<&str> = told.iter().map(|it| it.1.as_str()).collect();
                            assert!(
                                matches!(codes[..], ["conflict" | "serialization"]),
                                "{told:?}"
                            );
                        }
                    }
                }
                successes
            });
        }
        let successes: i64 = writers.join_all().await.into_iter().sum();
        let people = laboratory.records("people").await;
        let changes: i64 = people.iter().map(|it| it["age"].as_i64().unwrap()).sum();
        println!("{kind}: {successes} updates of {}", 64 * rounds);
        assert_eq!(successes, changes, "{kind}");
        assert!(successes >= 16, "{kind}: {successes}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_key_that_many_use_at_once_is_one_write() {
    for kind in KINDS {
        let laboratory = Arc::new(Laboratory::new(kind, "").await);
        let mut writers = tokio::task::JoinSet::new();
        for _ in 0..16 {
            let laboratory = Arc::clone(&laboratory);
            writers.spawn(async move {
                let given = json!({ "name": "Ann", "status": "proposed", "region": "eu", "idempotency_key": "one" });
                let done = laboratory.call(&writer(), "crm_hire", &given).await;
                done.map(|it| it["data"]["id"].clone())
            });
        }
        let ids = writers.join_all().await;
        let people = laboratory.records("people").await;
        assert_eq!(people.len(), 1, "{kind}: {ids:?}");
        let id = json!(format!("crm/people:{}", people[0]["id"]));
        for told in ids {
            match told {
                Ok(told) => assert_eq!(told, id, "{kind}"),
                Err(error) => {
                    assert_eq!(fields(&error)[0].1, "serialization");
                }
            }
        }
    }
}

#[tokio::test]
async fn two_records_of_one_set_cannot_be_made_at_once() {
    for kind in KINDS {
        // Here the store itself keeps only the key unique.
        let sql = crate::writing::laboratory::tables(kind).replace(", UNIQUE (name, country)", "");
        let mapping = crate::writing::laboratory::mapping(kind);
        let laboratory = Arc::new(Laboratory::with(kind, &sql, &mapping).await);
        let mut writers = tokio::task::JoinSet::new();
        for id in 0..12 {
            let laboratory = Arc::clone(&laboratory);
            writers.spawn(async move {
                let given = json!({ "id": id, "name": "Acme", "country": "NO", "region": "eu" });
                laboratory.call(&writer(), "crm_open", &given).await.is_ok()
            });
        }
        let successes = writers
            .join_all()
            .await
            .into_iter()
            .filter(|it| *it)
            .count();
        assert_eq!(successes, 1, "{kind}");
        assert_eq!(laboratory.records("orgs").await.len(), 1, "{kind}");
    }
}
