//! Many concurrent workups stay within their budgets, and never read another dataset.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use serde_json::json;

use crate::workup::fixture::{CANARY, DeploymentParts};

const WORKUPS: usize = 500;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_workups_at_once_stay_within_budget_and_within_the_dataset() {
    let mut made = DeploymentParts::harbour();
    // Several times what all of them take on two busy cores. A workup that waits longer for the
    // others ends early and reports it, which fails the check below.
    made.limits.deadline = Duration::from_secs(30);
    let harbour = Arc::new(made.deploy().await);
    // Building the indexes reads every dataset; the workups must not.
    let before = harbour.files.asked("vault");
    let entities = [
        "Grey Heron",
        "IMO9074729",
        "Blue Petrel",
        "Kraken Holding",
        "petrel",
    ];
    let expected = harbour.workup(json!({ "entity": "Grey Heron" })).await.text;
    let most = harbour.files.asked("north");
    let workups = (0..WORKUPS).map(|n| {
        let harbour = Arc::clone(&harbour);
        let given = json!({ "entity": entities[n % entities.len()] });
        tokio::spawn(async move { harbour.workup(given).await })
    });
    let mut reads = Vec::new();
    for (n, reply) in join_all(workups).await.into_iter().enumerate() {
        let reply = reply.unwrap();
        assert!(reply.text.len() <= 8_192, "{} bytes", reply.text.len());
        let all = format!("{}{}", reply.text, reply.structured.value());
        assert!(!all.contains(CANARY) && !all.contains("vault"), "{all}");
        let meta = &reply.structured.value()["meta"];
        assert!(meta["rows"].as_u64().unwrap() <= 200, "{meta}");
        assert_eq!(reply.structured.value()["partial"], false, "{}", reply.text);
        reads.push(meta["reads"].as_u64().unwrap());
        if n % entities.len() == 0 {
            assert_eq!(reply.text, expected);
        }
    }
    let (least, greatest) = (reads.iter().min().unwrap(), reads.iter().max().unwrap());
    println!("{WORKUPS} workups, {least} to {greatest} reads each");
    assert!(*greatest <= 60, "{greatest} reads");
    assert_eq!(
        harbour.files.asked("vault"),
        before,
        "the dataset beside it was read"
    );
    assert!(harbour.files.asked("north") > most);
}
