use std::sync::Mutex;

use super::fixture::{governance, live, mapping, ratify, state, tamper, write};
use super::*;

/// Counts the mappings it loads.
struct Counting<'a> {
    governance: &'a Governance,
    read: Mutex<Vec<String>>,
}

impl FrozenMappingLoader for Counting<'_> {
    async fn load(&self, act: &Ratification) -> Result<Ratified<Mapping>, GovernanceError> {
        self.read.lock().unwrap().push(act.dataset.clone());
        self.governance.load_as(act).await
    }
}

fn names(live: &ServedDatasets) -> Vec<&str> {
    live.mappings().map(|it| it.dataset.name.as_str()).collect()
}

#[tokio::test]
async fn only_what_changed_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let governance = governance(folder.path());
    for name in ["ales", "boats", "cats"] {
        live(&governance, &mapping(name, name, "")).await;
    }
    let frozen = Counting {
        governance: &governance,
        read: Mutex::default(),
    };
    let one = ServedDatasets::default()
        .follow(&*state(&governance).await, &frozen)
        .await;
    assert_eq!(*frozen.read.lock().unwrap(), ["ales", "boats", "cats"]);
    frozen.read.lock().unwrap().clear();

    live(&governance, &mapping("dogs", "dogs", "")).await;
    governance.deactivate("ales", "ana").await.unwrap();
    let two = one.follow(&*state(&governance).await, &frozen).await;
    assert_eq!(*frozen.read.lock().unwrap(), ["dogs"]);
    assert_eq!(names(&two), ["boats", "cats", "dogs"]);
    assert!(!two.serves_as(&one));
    let again = two.follow(&*state(&governance).await, &frozen).await;
    assert!(again.serves_as(&two));
}

#[tokio::test]
async fn what_was_activated_is_served_not_what_was_ratified_since() {
    let folder = tempfile::tempdir().unwrap();
    let governance = governance(folder.path());
    let first = live(&governance, &mapping("boats", "boats", "one")).await;
    let since = ratify(&governance, &mapping("boats", "boats", "two")).await;
    let now = ServedDatasets::default()
        .follow(&*state(&governance).await, &governance)
        .await;
    assert_eq!(now.served("boats").unwrap().mapping.digest(), first);
    governance.activate(&since, "ana").await.unwrap();
    let now = now.follow(&*state(&governance).await, &governance).await;
    assert_eq!(
        now.served("boats").unwrap().mapping.digest(),
        since.digest()
    );
    assert_eq!(now.served("boats").unwrap().revision, 2);
}

#[tokio::test]
async fn a_bad_new_mapping_leaves_the_last_good_one_in_service() {
    let folder = tempfile::tempdir().unwrap();
    let governance = governance(folder.path());
    let good = live(&governance, &mapping("boats", "boats", "one")).await;
    live(&governance, &mapping("cats", "cats", "")).await;
    let now = ServedDatasets::default()
        .follow(&*state(&governance).await, &governance)
        .await;
    let bad = live(&governance, &mapping("boats", "boats", "two")).await;
    let was = tamper(&governance, bad);
    let now = now.follow(&*state(&governance).await, &governance).await;
    assert_eq!(names(&now), ["boats", "cats"]);
    assert_eq!(now.served("boats").unwrap().mapping.digest(), good);
    let fault = now.fault("boats").unwrap();
    assert_eq!((fault.digest, fault.fallback), (bad, Some(good)));
    assert!(now.fault("cats").is_none());
    // Once restored, it is served without any act.
    write(&governance.frozen_path(bad), &was);
    let now = now.follow(&*state(&governance).await, &governance).await;
    assert_eq!(now.served("boats").unwrap().mapping.digest(), bad);
    assert!(now.faults().next().is_none());
}

#[tokio::test]
async fn what_was_never_good_is_withheld_and_the_others_are_served() {
    let folder = tempfile::tempdir().unwrap();
    let governance = governance(folder.path());
    let bad = live(&governance, &mapping("boats", "boats", "")).await;
    live(&governance, &mapping("cats", "cats", "")).await;
    tamper(&governance, bad);
    let now = ServedDatasets::default()
        .follow(&*state(&governance).await, &governance)
        .await;
    assert_eq!(names(&now), ["cats"]);
    assert_eq!(now.fault("boats").unwrap().fallback, None);
}

#[tokio::test]
async fn of_two_that_contradict_each_other_the_first_to_be_active_is_served() {
    let folder = tempfile::tempdir().unwrap();
    let governance = governance(folder.path());
    // In name order the second would come first.
    live(&governance, &mapping("cats", "shared", "")).await;
    live(&governance, &mapping("ales", "shared", "")).await;
    let now = ServedDatasets::default()
        .follow(&*state(&governance).await, &governance)
        .await;
    assert_eq!(names(&now), ["cats"]);
    let reason = now.fault("ales").unwrap().reason.to_string();
    assert_eq!(
        reason,
        "connection `shared` is in dataset `cats` and in dataset `ales`"
    );
    governance.deactivate("cats", "ana").await.unwrap();
    let now = now.follow(&*state(&governance).await, &governance).await;
    assert_eq!(names(&now), ["ales"]);
}

#[tokio::test]
async fn a_retired_dataset_is_served_no_more_even_when_its_file_is_bad() {
    let folder = tempfile::tempdir().unwrap();
    let governance = governance(folder.path());
    let digest = live(&governance, &mapping("boats", "boats", "")).await;
    let now = ServedDatasets::default()
        .follow(&*state(&governance).await, &governance)
        .await;
    tamper(&governance, digest);
    governance.retire("boats", "ana", "sold").await.unwrap();
    let now = now.follow(&*state(&governance).await, &governance).await;
    assert!(names(&now).is_empty() && now.faults().next().is_none());
}
