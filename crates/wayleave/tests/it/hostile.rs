//! A folder of drafts as an attacker or a careless colleague could leave it.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use crate::session::Session;

const SMALL: &str = r#"[dataset]
name = "NAME"
kind = "sqlite"

[[connections]]
id = "NAME"
source = "music"

[streams.genre]
type = "Genre"
table = "Genre"
key = ["GenreId"]

[streams.genre.fields.GenreId]
datatype = "integer"
"#;

fn small(name: &str) -> String {
    SMALL.replace("NAME", name)
}

#[test]
fn no_file_in_the_folder_hides_another() {
    let session = Session::with_draft();
    let folder = session.here().join("mappings");
    session.write("mappings/broken.toml", "[dataset\nname = ");
    session.write("mappings/headless.toml", "[streams.a]\ntable = \"a\"\n");
    session.write("mappings/empty.toml", "");
    session.write("mappings/bytes.toml", [0xff, 0xfe, 0x00, 0x80]);
    session.write("mappings/deep.toml", format!("a = {}", "[".repeat(100_000)));
    session.write("mappings/large.toml", vec![b'#'; 2 * 1024 * 1024]);
    session.write("mappings/evil\u{1b}[2J\nname.toml", "x = 1");
    session.write("mappings/.hidden.toml", "not looked at");
    fs::create_dir(folder.join("folder.toml")).unwrap();
    symlink("/nowhere", folder.join("dangling.toml")).unwrap();
    symlink("loop.toml", folder.join("loop.toml")).unwrap();
    symlink("/dev/zero", folder.join("endless.toml")).unwrap();
    let pipe = Command::new("mkfifo")
        .arg(folder.join("pipe.toml"))
        .status()
        .unwrap();
    assert!(pipe.success());
    session.write("mappings/sound.toml", small("sound"));

    let ran = session.run(&["check"]).exits(1);
    for name in [
        "broken", "headless", "empty", "bytes", "deep", "large", "evil", "folder", "dangling",
        "loop", "endless", "pipe",
    ] {
        assert!(
            ran.stdout.contains(name),
            "`{name}` is not in:\n{}",
            ran.stdout
        );
    }
    assert!(!ran.stdout.contains("hidden") && !ran.stdout.contains('\u{1b}'));
    assert!(ran.stdout.contains("14 drafts, 2 sound"), "{}", ran.stdout);

    let report = session.run(&["check", "--json"]).exits(1).document();
    let sound = report["drafts"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|it| it["sound"] == true);
    let sound: Vec<_> = sound.map(|it| it["dataset"].as_str().unwrap()).collect();
    assert_eq!(sound, ["music", "sound"]);

    // The other drafts still work.
    session.run(&["ratify", "music"]).exits(0);
    session.run(&["ratify", "sound"]).exits(0);
    session
        .run(&["datasets"])
        .exits(0)
        .says("music")
        .says("sound")
        .says("mappings/pipe.toml");
    session.run(&["doctor"]).exits(0).says("mappings/pipe.toml");
    session.run(&["propose", "music"]).exits(0);
    session.run(&["check", "sound"]).exits(0);
    session
        .run(&["check", "headless"])
        .exits(1)
        .says("missing_key");
    session
        .run(&["check", "mappings/broken.toml"])
        .exits(1)
        .says("syntax");
}

#[test]
fn two_drafts_of_one_name_are_both_named_and_neither_is_ratified() {
    let session = Session::with_draft();
    session.write("mappings/copy.toml", session.read("mappings/music.toml"));
    for words in [
        &["check"][..],
        &["check", "music"],
        &["diff", "music"],
        &["ratify", "music"],
    ] {
        session
            .run(words)
            .exits(1)
            .says("dataset `music` is in `mappings/copy.toml` and in `mappings/music.toml`");
    }
    session
        .run(&["propose", "music"])
        .exits(2)
        .says("`mappings/copy.toml`");
    session
        .run(&["datasets"])
        .exits(0)
        .says("2 drafts have this name");

    // The same if one of the two does not check.
    let broken = session
        .read("mappings/copy.toml")
        .replace("kind = \"sqlite\"", "kind = \"paper\"");
    session.write("mappings/copy.toml", broken);
    session
        .run(&["ratify", "music"])
        .exits(1)
        .says("dataset `music` is in `mappings/copy.toml` and in `mappings/music.toml`");
}

#[test]
fn a_connection_that_another_dataset_has_is_not_ratified_twice() {
    let session = Session::with_dataset();
    fs::remove_file(session.here().join("mappings/music.toml")).unwrap();
    session.write(
        "mappings/other.toml",
        small("other").replace("id = \"other\"", "id = \"music\""),
    );
    session.run(&["check"]).exits(0);
    session
        .run(&["ratify", "other"])
        .exits(1)
        .says("connection `music` is in `mappings/other.toml` and in `music`");
}

#[test]
fn an_ontology_is_enforced_when_there_is_one_and_hides_nothing_when_it_is_broken() {
    let session = Session::in_project();
    session.write("mappings/small.toml", small("small"));
    session.run(&["check"]).exits(0);
    session.write("ontology.toml", "[[entity_types]]\nname = \"Album\"\n");
    session
        .run(&["check"])
        .exits(1)
        .says("undeclared_type")
        .says("`Genre`");
    session
        .run(&["ratify", "small", "--offline"])
        .exits(1)
        .says("undeclared_type");
    session.write("ontology.toml", "[[entity_types]]\nname = 7\n");
    let ran = session.run(&["check"]).exits(1);
    assert!(ran.stdout.contains("ontology.toml:2"), "{}", ran.stdout);
    assert!(ran.stdout.contains("1 draft, 1 sound"), "{}", ran.stdout);
    session
        .run(&["ratify", "small", "--offline"])
        .exits(1)
        .says("ontology.toml:2");
    session.write("ontology.toml", "[[entity_types]]\nname = \"Genre\"\n");
    session.run(&["check"]).exits(0);
}

#[test]
fn a_draft_is_checked_by_its_path_too_and_ratified_only_by_its_name() {
    let session = Session::with_draft();
    session.write("music", small("elsewhere"));
    session
        .run(&["check", "music"])
        .exits(0)
        .says("1 draft, 1 sound");
    session.write("elsewhere", small("elsewhere"));
    session.run(&["check", "./elsewhere"]).exits(0);
    session
        .run(&["ratify", "elsewhere"])
        .exits(2)
        .says("no draft is named `elsewhere`");
}

#[test]
fn a_project_is_made_once_and_asked_for_where_there_is_none() {
    let session = Session::in_project();
    session
        .run(&["init"])
        .exits(2)
        .says("is a Wayleave project already")
        .says("wayleave source add");
    let mut elsewhere = Session::new();
    elsewhere
        .run(&["datasets"])
        .exits(2)
        .says("is not a Wayleave project")
        .says("wayleave init");
    elsewhere.run(&["doctor"]).exits(1).says("wayleave init");
    elsewhere.run(&["init", "--project", "there"]).exits(0);
    elsewhere.run(&["datasets", "--project", "there"]).exits(0);
    elsewhere.enter("there");
    elsewhere.write("wayleave.toml", "[serve]\nhtpp = \"x\"\n");
    elsewhere
        .run(&["datasets"])
        .exits(2)
        .says("line 2")
        .says("htpp");
    elsewhere
        .run(&["doctor"])
        .exits(1)
        .says("line 2")
        .says("htpp");
}
