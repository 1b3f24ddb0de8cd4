//! A change that a mask hides is reported to nobody who sees the mask.

use std::collections::BTreeMap;

use wayleave_model::mapping::SourceKind;
use wayleave_plan::package::{FieldScope, Package, RelationScope, StreamGrant, StreamScope};

use super::{feed, look, options, package, ships, told, watch};

fn masked(subject: &str, masks: &[(&str, &str)]) -> Package {
    let masks = masks
        .iter()
        .map(|(field, mask)| ((*field).to_owned(), mask.parse().unwrap()));
    let stream = StreamGrant {
        fields: FieldScope::All,
        relations: RelationScope::All,
        rows: None,
        masks: masks.collect(),
    };
    let streams = BTreeMap::from([("ships".to_owned(), stream)]);
    package(subject, StreamScope::Only(streams))
}

#[tokio::test]
async fn a_change_within_a_mask_is_told_only_to_who_sees_it() {
    let kind = SourceKind::Sqlite;
    let (database, feed) = feed(kind, &ships(6), false, options()).await;
    let packages = [
        Package::local(),
        masked("redacted", &[("name", "redact"), ("tons", "redact")]),
        masked("bucketed", &[("name", "last4"), ("tons", "bucket:10")]),
        masked("tokens", &[("name", "token"), ("tons", "token")]),
    ];
    let mut watches = Vec::new();
    for package in &packages {
        watches.push(watch(&feed, package.clone(), "ships").await);
    }
    for (sql, expected) in [
        // A masked name of six characters does not change, and 4.75 is in the same range as 4.5.
        (
            "UPDATE ships SET name = 'barge4', tons = 4.75 WHERE id = 4",
            [1, 0, 0, 1],
        ),
        ("UPDATE ships SET tons = 14.75 WHERE id = 4", [1, 0, 1, 1]),
        ("UPDATE ships SET port = 'Bodø' WHERE id = 4", [1, 1, 1, 1]),
        ("UPDATE ships SET name = NULL WHERE id = 2", [1, 0, 1, 1]),
    ] {
        database.execute(sql).await;
        for package in &packages {
            look(&feed, package.clone()).await;
        }
        let heard: Vec<usize> = watches.iter_mut().map(|it| told(it).len()).collect();
        assert_eq!(heard, expected, "{sql}");
    }
}
