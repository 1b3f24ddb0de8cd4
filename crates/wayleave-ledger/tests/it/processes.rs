//! Several processes that change one project at the same time.

use std::collections::BTreeMap;

use crate::project::{act, governance};
use wayleave_ledger::Event;

#[tokio::test]
async fn two_processes_of_200_entries_each_make_one_chain_of_400() {
    let dir = tempfile::tempdir().unwrap();
    // No ledger exists yet, so they also race to create it.
    let children: Vec<_> = ["a", "b"]
        .into_iter()
        .map(|prefix| {
            act()
                .arg("sources")
                .arg(dir.path())
                .args([prefix, "200"])
                .spawn()
                .unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let governance = governance(dir.path());
    let report = governance.audit(None).await.unwrap();
    assert!(report.is_ok(), "{report:?}");
    assert_eq!(report.ledger.good, 1 + 400);

    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    for entry in governance.ledger().entries(1, 1_000).await.unwrap() {
        let Event::SourceAdded { name, .. } = entry.event else {
            panic!("{entry:?}")
        };
        let (prefix, number) = name.split_once('-').unwrap();
        let last = seen.entry(prefix.to_owned()).or_default();
        *last += 1;
        assert_eq!(
            number,
            last.to_string(),
            "each process's entries keep their order"
        );
    }
    assert_eq!(
        seen.into_iter().collect::<Vec<_>>(),
        [("a".into(), 200), ("b".into(), 200)]
    );

    // The head file has the last writer's head: it never goes back.
    let head = std::fs::read_to_string(dir.path().join(".wayleave/ledger.head")).unwrap();
    assert!(head.contains(" 401:"), "{head}");
}
