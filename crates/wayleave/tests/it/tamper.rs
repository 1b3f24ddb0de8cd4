//! A flipped bit, and the reports of every reader of the file. The ledger's own tests flip every
//! bit.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::session::Session;

fn flip_a_bit(session: &Session) -> String {
    let file = session.frozen();
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&file, bytes).unwrap();
    file.file_name().unwrap().to_str().unwrap().to_owned()
}

#[test]
fn one_flipped_bit_of_a_frozen_mapping_is_refused_by_name_everywhere() {
    let session = Session::with_dataset();
    session.run(&["connect", "music"]).exits(0);
    let file = flip_a_bit(&session);
    for words in [
        &["datasets"][..],
        &["doctor"],
        &["audit", "--verify"],
        &["connect", "music"],
        &["connect", "music", "--offline"],
    ] {
        session.run(words).exits(1).says(&file);
    }
    let listed = session.run(&["datasets", "--json"]).exits(1).document();
    assert!(
        listed["datasets"][0]["refused"]
            .as_str()
            .unwrap()
            .contains(&file)
    );
}

#[test]
fn a_frozen_mapping_that_is_gone_is_named_and_can_be_ratified_again() {
    let session = Session::with_dataset();
    let file = session.frozen();
    let name = file.file_name().unwrap().to_str().unwrap().to_owned();
    fs::remove_file(&file).unwrap();
    session
        .run(&["datasets"])
        .exits(1)
        .says(&name)
        .says("missing");
    session.run(&["audit", "--verify"]).exits(1).says(&name);
    // The draft equals the ratified mapping, so write another one.
    session.write(
        "mappings/music.toml",
        session.read("mappings/music.toml") + "# again\n",
    );
    session
        .run(&["ratify", "music"])
        .exits(0)
        .says("cannot be read, so everything looks new");
    session.run(&["connect", "music"]).exits(0);
}

#[test]
fn a_damaged_mapping_that_is_live_is_told_also_when_another_is_ratified() {
    let session = Session::with_dataset();
    session.run(&["connect", "music"]).exits(0);
    let file = flip_a_bit(&session);
    session.write(
        "mappings/music.toml",
        session.read("mappings/music.toml") + "# again\n",
    );
    session.run(&["ratify", "music"]).exits(0);
    session.run(&["datasets"]).exits(1).says(&file);
    session
        .run(&["doctor"])
        .exits(1)
        .says("dataset music, as active");
    session.run(&["connect", "music"]).exits(0);
    session.run(&["datasets"]).exits(0);
}

#[test]
fn a_damaged_dataset_can_still_be_retired() {
    let session = Session::with_dataset();
    flip_a_bit(&session);
    session
        .run(&["retire", "music", "--note", "damaged"])
        .exits(0);
    session.run(&["datasets"]).exits(0).says("retired");
}

#[test]
fn a_head_kept_elsewhere_shows_a_ledger_that_was_rebuilt() {
    let session = Session::with_dataset();
    let report = session
        .run(&["audit", "--verify", "--json"])
        .exits(0)
        .document();
    let head = report["ledger"]["head"].as_str().unwrap().to_owned();
    session.run(&["audit", "--head", &head]).exits(0);
    // Another ledger in its place is valid by itself.
    fs::remove_dir_all(session.here().join(".wayleave")).unwrap();
    session.run(&["audit", "--verify"]).exits(0);
    session
        .run(&["audit", "--head", &head])
        .exits(1)
        .says("it was truncated");
}

#[test]
fn a_private_folder_that_others_may_enter_is_told_with_the_cure() {
    let session = Session::with_dataset();
    let folder = session.here().join(".wayleave");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    for words in [&["doctor"][..], &["datasets"], &["ratify", "music"]] {
        let ran = session
            .run(words)
            .says("open to other users")
            .says("chmod 700");
        assert_ne!(ran.status, 0);
    }
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    session.run(&["doctor"]).exits(0);
}
