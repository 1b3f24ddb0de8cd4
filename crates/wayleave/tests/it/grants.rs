//! Creating, showing and revoking grants and tokens on the command line.

use serde_json::Value;

use crate::session::Session;

/// The id of the entry in the output of `create --json`.
fn made(document: &Value, what: &str) -> String {
    document[what]["id"].as_str().unwrap().to_owned()
}

fn grant(session: &Session, more: &[&str]) -> String {
    let words = [&["grant", "create", "--dataset", "music", "--json"], more].concat();
    made(&session.run(&words).exits(0).document(), "grant")
}

#[test]
fn a_grant_starts_from_everything_and_is_narrowed_by_what_is_named() {
    let session = Session::with_dataset();
    let whole = session.run(&["grant", "create", "--dataset", "music", "--json"]);
    let whole = whole.exits(0).document();
    let streams = |document: &Value| -> Vec<String> {
        let streams = document["grant"]["terms"]["streams"].as_object().unwrap();
        streams.keys().cloned().collect()
    };
    assert!(streams(&whole).len() > 5);
    let some = session.run(&[
        "grant",
        "create",
        "--dataset",
        "music",
        "--stream",
        "artist=Name",
        "--stream",
        "album",
        "--rows",
        r#"artist={"Name": {"claim": "artist"}}"#,
        "--json",
    ]);
    let some = some.exits(0).document();
    assert_eq!(streams(&some), ["album", "artist"]);
    let artist = &some["grant"]["terms"]["streams"]["artist"];
    // The key is always included, because a record needs its identity.
    assert_eq!(artist["fields"], serde_json::json!(["ArtistId", "Name"]));
    assert_eq!(artist["rows"], r#"{"Name": {"claim": "artist"}}"#);
}

#[test]
fn what_the_dataset_does_not_have_cannot_be_granted_and_the_near_miss_is_named() {
    let session = Session::with_dataset();
    for (words, said) in [
        (&["--stream", "artits"][..], "did you mean `artist`?"),
        (&["--stream", "artist=nmae"], "did you mean `Name`?"),
        (&["--connection", "musc"], "did you mean `music`?"),
        (&["--capability", "hire"], "has no capability `hire`"),
        (
            &["--stream", "album", "--rows", r#"artist={"Name": "x"}"#],
            "which is not granted",
        ),
        (
            &["--rows", r#"artist={"nmae": "x"}"#],
            "did you mean `Name`?",
        ),
        (
            &["--rows", r#"artist={"ArtistId": "x"}"#],
            "takes a whole number",
        ),
        (
            &["--rows", "artist=everything"],
            "a row filter is a JSON object",
        ),
        (&["--stream", "album", "--stream", "album"], "given twice"),
        (&["--expires", "1999-12-31"], "passed already"),
    ] {
        let all = [&["grant", "create", "--dataset", "music"], words].concat();
        session.run(&all).exits(2).says(said);
    }
    let all = [
        "grant",
        "create",
        "--dataset",
        "music",
        "--stream",
        "a=b",
        "--connection",
        "c",
    ];
    session
        .run(&all)
        .exits(2)
        .says("no connection `c`")
        .says("no stream `a`");
    session
        .run(&["grant", "create", "--dataset", "musci"])
        .exits(2)
        .says("did you mean `music`?");
    session
        .run(&["grant", "list"])
        .exits(0)
        .says("nothing is granted");
}

#[test]
fn a_grant_may_be_written_in_a_file() {
    let session = Session::with_dataset();
    let text = "dataset = \"music\"\npurpose = \"the shop\"\n[streams.artist]\nfields = [\"Name\"]\n\
                rows = { Name = { starts_with = \"A\" } }\n";
    std::fs::write(session.here().join("grant.toml"), text).unwrap();
    session
        .run(&["grant", "create", "--file", "grant.toml"])
        .exits(0)
        .says(r#"only rows {"Name":{"starts_with":"A"}}"#);
    std::fs::write(session.here().join("grant.toml"), "dataste = 1").unwrap();
    session
        .run(&["grant", "create", "--file", "grant.toml"])
        .exits(2)
        .says("`grant.toml` is not a grant")
        .says("dataste");
    session
        .run(&["grant", "create", "--file", "none.toml"])
        .exits(2)
        .says("cannot be read");
}

#[test]
fn a_token_is_shown_once_and_found_nowhere_afterwards() {
    let session = Session::with_dataset();
    let issued = session.run(&["token", "create", "--all-of", "music", "--label", "desk"]);
    let issued = issued.exits(0);
    let secret = issued.stdout.trim().to_owned();
    assert!(secret.starts_with("wlc_") && secret.len() == 53, "{secret}");
    assert!(!issued.stderr.contains(&secret));
    let listed = session.run(&["token", "list", "--json"]).exits(0);
    let token = &listed.document()["tokens"][0];
    assert_eq!(token["label"], "desk");
    assert_eq!(token["scopes"], serde_json::json!(["runtime"]));
    let (token, granted) = (&token["id"], &token["grants"][0]);
    let (token, granted) = (token.as_str().unwrap(), granted.as_str().unwrap());
    let mut said = listed.all();
    for words in [
        &["token", "list"][..],
        &["grant", "show", granted],
        &["audit"],
        &["audit", "--json"],
        &["audit", "--verify"],
        &["doctor"],
        &["token", "revoke", token],
    ] {
        said.push_str(&session.run(words).all());
    }
    // Not even if the secret is passed by mistake.
    let mistaken = session.run(&["token", "revoke", &secret]).exits(2);
    said.push_str(&mistaken.says("looks like a token").all());
    assert!(!said.contains(&secret[4..]), "{said}");
    for file in walk(session.here()) {
        let bytes = std::fs::read(&file).unwrap();
        let found = bytes
            .windows(secret.len())
            .any(|it| it == secret.as_bytes());
        assert!(!found, "{}", file.display());
    }
}

fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let found = std::fs::read_dir(folder)
        .unwrap()
        .map(|it| it.unwrap().path());
    found
        .flat_map(|path| {
            if path.is_dir() {
                walk(&path)
            } else {
                vec![path]
            }
        })
        .collect()
}

#[test]
fn a_token_without_a_claim_that_its_grant_asks_for_is_remarked_upon() {
    let session = Session::with_dataset();
    let rows = r#"artist={"any": [{"Name": {"claim": "artist"}}]}"#;
    let id = grant(&session, &["--rows", rows]);
    session
        .run(&["token", "create", "--grant", &id])
        .exits(0)
        .says("asks for the claim `artist`");
    let with = session.run(&["token", "create", "--grant", &id, "--claim", "artist=AC/DC"]);
    assert!(!with.exits(0).all().contains("asks for"));
}

#[test]
fn a_token_that_cannot_be_issued_leaves_no_grants_behind() {
    let session = Session::with_dataset();
    let one = grant(&session, &[]);
    let long = "x".repeat(101);
    for more in [
        &["--grant", &one][..],
        &["--all-of", "music"],
        &["--all-of", "nothing"],
        &["--label", &long],
        &["--claim", "=x"],
        &["--grant", "g_none"],
    ] {
        let words = [&["token", "create", "--all-of", "music"], more].concat();
        session.run(&words).exits(2);
    }
    let listed = session.run(&["grant", "list", "--json"]).document();
    assert_eq!(listed["grants"].as_array().unwrap().len(), 1);
}

#[test]
fn a_token_holds_one_grant_a_connection_and_none_that_ended() {
    let session = Session::with_dataset();
    let (one, two) = (grant(&session, &[]), grant(&session, &[]));
    session
        .run(&["token", "create", "--grant", &one, "--grant", &two])
        .exits(2)
        .says("both of connection `music`");
    session
        .run(&["grant", "revoke", &two])
        .exits(0)
        .says("no token had it");
    session
        .run(&["grant", "revoke", &two])
        .exits(2)
        .says("is revoked");
    session
        .run(&["token", "create", "--grant", &two])
        .exits(2)
        .says("is revoked");
    session
        .run(&["token", "create", "--grant", "g_none"])
        .exits(2)
        .says("no grant `g_none`");
    session
        .run(&["token", "create", "--grant", &one, "--expires", "1h"])
        .exits(0);
    session
        .run(&["grant", "show", &one])
        .exits(0)
        .says("held by: t_");
    session
        .run(&["grant", "revoke", &one, "--note", "enough"])
        .exits(0)
        .says("1 token lost access");
    session
        .run(&["grant", "list"])
        .says("2 grants ended (`--all` shows them)");
    session.run(&["audit"]).says("\"enough\"");
}

#[test]
fn owner_and_control_tokens_carry_nothing_an_agent_could_use() {
    let session = Session::with_dataset();
    for (kind, prefix) in [("owner", "wlo_"), ("control", "wlk_")] {
        let issued = session.run(&["token", "create", "--kind", kind]).exits(0);
        assert!(issued.stdout.starts_with(prefix));
        session
            .run(&["token", "create", "--kind", kind, "--scope", "dev"])
            .exits(2);
        session
            .run(&["token", "create", "--kind", kind, "--all-of", "music"])
            .exits(2);
    }
    session
        .run(&[
            "token",
            "create",
            "--claim",
            "email=a@b.example",
            "--claim",
            "email=x",
        ])
        .exits(2)
        .says("given twice");
}

#[test]
fn retiring_a_dataset_ends_what_was_granted_of_it() {
    let session = Session::with_dataset();
    let id = grant(&session, &[]);
    session
        .run(&["retire", "music", "--who", "Ben"])
        .exits(0)
        .says("takes 1 grant along");
    session.run(&["ratify", "music"]).exits(0);
    session
        .run(&["grant", "show", &id])
        .exits(0)
        .says("revoked by Ben");
}
