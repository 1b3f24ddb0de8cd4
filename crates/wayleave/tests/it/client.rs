//! `wayleave client install`: adding a server to each client's settings.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::session::{CommandOutput, Session, program};

/// A client under test.
pub(crate) struct Client {
    pub(crate) word: &'static str,
    /// The path of its settings, relative to the home folder.
    pub(crate) settings: &'static str,
    /// Settings with another server in them, and a comment if the format has comments.
    pub(crate) others: &'static str,
    /// The parts of those settings that must stay, byte for byte.
    stays: &'static [&'static str],
    broken: &'static str,
}

const JSON: &str = r#"{
  "theme": "dark",
  "mcpServers": {
    "other": { "command": "x", "env": { "KEY": "hunter2" } }
  }
}
"#;
const COMMENTED: &str = r#"{
    // mine
    "mcpServers": {
        "other": { "command": "x", "env": { "KEY": "hunter2" } }, /* odd */
    },
}
"#;
const OTHER: &str = r#""other": { "command": "x", "env": { "KEY": "hunter2" } }"#;

pub(crate) const CLIENTS: &[Client] = &[
    Client {
        word: "claude-code",
        settings: ".claude.json",
        others: JSON,
        stays: &[OTHER, r#""theme": "dark""#],
        broken: "{\n  \"mcpServers\": {\n",
    },
    Client {
        word: "claude-desktop",
        settings: ".config/Claude/claude_desktop_config.json",
        others: JSON,
        stays: &[OTHER, r#""theme": "dark""#],
        broken: "mcpServers: {}\n",
    },
    Client {
        word: "cursor",
        settings: ".cursor/mcp.json",
        others: COMMENTED,
        stays: &[OTHER, "// mine", "/* odd */"],
        broken: "{ \"mcpServers\": [] }\n",
    },
    Client {
        word: "vscode",
        settings: ".config/Code/User/mcp.json",
        others: "{\r\n\t\"inputs\": [],\r\n\t\"servers\": {\r\n\t\t// mine\r\n\t\t\"other\": {\"url\": \"https://x.org\"}\r\n\t}\r\n}\r\n",
        stays: &["// mine\r\n", "\"other\": {\"url\": \"https://x.org\"}"],
        broken: "{ \"servers\": {}, \"servers\": {} }\n",
    },
    Client {
        word: "codex",
        settings: ".codex/config.toml",
        others: "# mine\nmodel = \"o9\"  # odd\n\n[mcp_servers.other]\ncommand = \"x\"\nenv = { KEY = \"hunter2\" }\n",
        stays: &[
            "# mine\nmodel = \"o9\"  # odd\n\n[mcp_servers.other]\ncommand = \"x\"\nenv = { KEY = \"hunter2\" }\n",
        ],
        broken: "model = o9\n",
    },
    Client {
        word: "gemini",
        settings: ".gemini/settings.json",
        others: COMMENTED,
        stays: &[OTHER, "// mine", "/* odd */"],
        broken: "{ \"mcpServers\": { } ]\n",
    },
];

impl Client {
    pub(crate) fn path(&self, session: &Session) -> PathBuf {
        session.home().join(self.settings)
    }

    /// Writes the client's settings before a test.
    pub(crate) fn had(&self, session: &Session, text: &str) -> PathBuf {
        let path = self.path(session);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn install(&self, session: &Session, more: &[&str]) -> CommandOutput {
        let words: Vec<_> = ["client", "install", self.word]
            .iter()
            .chain(more)
            .copied()
            .collect();
        session.run(&words)
    }

    pub(crate) fn print(&self, session: &Session, more: &[&str]) -> CommandOutput {
        let words: Vec<_> = ["client", "print", self.word]
            .iter()
            .chain(more)
            .copied()
            .collect();
        session.run(&words).exits(0)
    }

    /// Parses the entry of `server` from settings of any format.
    pub(crate) fn entry(&self, settings: &str, server: &str) -> Value {
        let settings: Value = match self.word {
            "codex" => toml_of(settings),
            _ => serde_json::from_str(&plain(settings)).expect(settings),
        };
        let servers = match self.word {
            "codex" => "mcp_servers",
            "vscode" => "servers",
            _ => "mcpServers",
        };
        settings[servers][server].clone()
    }
}

fn toml_of(text: &str) -> Value {
    let document: toml_edit::DocumentMut = text.parse().unwrap();
    let text = |item: &toml_edit::Item| -> Value {
        match item.as_array() {
            Some(values) => values.iter().filter_map(toml_edit::Value::as_str).collect(),
            None => item.as_str().into(),
        }
    };
    let mut servers = serde_json::Map::new();
    for (name, entry) in document["mcp_servers"].as_table().unwrap() {
        let members = entry.as_table().unwrap().iter();
        let members = members.map(|(name, item)| (name.to_owned(), text(item)));
        servers.insert(name.to_owned(), Value::Object(members.collect()));
    }
    serde_json::json!({ "mcp_servers": servers })
}

/// Removes JSON extensions that only some clients allow.
fn plain(text: &str) -> String {
    let comments = regex::Regex::new(r"//[^\n\x22]*\n|/\*.*?\*/").unwrap();
    let commas = regex::Regex::new(r",(\s*[}\]])").unwrap();
    let text = comments.replace_all(text, "\n");
    commas.replace_all(&text, "$1").into_owned()
}

/// A project named `shop` over a SQLite file, with its DSN in a variable.
pub(crate) fn shop() -> Session {
    let mut session = Session::new();
    session.run(&["init", "shop"]).exits(0);
    session.enter("shop");
    session.write("wayleave.toml", "[project]\nname = \"shop\"\n");
    let path = session.keep_sqlite(
        "shop.db",
        "CREATE TABLE a (id integer PRIMARY KEY, b text);",
    );
    session.set("SHOP_DSN", path.to_str().unwrap());
    let declare = [
        "source", "add", "shop", "--kind", "sqlite", "--env", "SHOP_DSN",
    ];
    session.run(&declare).exits(0);
    session
}

/// The names of everything in a folder.
fn names(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = files
        .map(|it| it.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_client_without_settings_gets_them_only_when_told_to() {
    let session = shop();
    for client in CLIENTS {
        let path = client.path(&session);
        let shown = client.install(&session, &[]).exits(0);
        assert!(
            shown.stdout.contains("nothing is written yet"),
            "{}",
            shown.all()
        );
        assert!(!path.exists(), "{}", client.word);
        client
            .install(&session, &["--write"])
            .exits(0)
            .says("wrote");
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text, client.print(&session, &[]).stdout);
        assert_eq!(mode(&path), 0o600, "{}", client.word);
        let before = names(path.parent().unwrap());
        client
            .install(&session, &["--write"])
            .exits(0)
            .says("already set up");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        assert_eq!(names(path.parent().unwrap()), before, "{}", client.word);
    }
}

#[test]
fn other_servers_comments_mode_and_a_copy_are_kept() {
    let session = shop();
    for client in CLIENTS {
        let path = client.had(&session, client.others);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let done = client.install(&session, &["--write", "--json"]).exits(0);
        assert!(!done.all().contains("hunter2"), "{}", done.all());
        let text = fs::read_to_string(&path).unwrap();
        for words in client.stays {
            assert!(text.contains(words), "{words} is not in {text}");
        }
        assert!(client.entry(&text, "shop").is_object(), "{text}");
        assert!(client.entry(&text, "other").is_object(), "{text}");
        let kept = done.document()["backup"].as_str().unwrap().to_owned();
        assert_eq!(fs::read_to_string(&kept).unwrap(), client.others);
        assert_eq!((mode(&path), mode(Path::new(&kept))), (0o640, 0o640));
        let before = names(path.parent().unwrap());
        let again = client.install(&session, &["--write", "--json"]).exits(0);
        assert_eq!(again.document()["change"], "none");
        assert_eq!(names(path.parent().unwrap()), before, "{}", client.word);
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}

#[test]
fn an_outdated_entry_is_repaired_and_what_a_person_added_stays() {
    let session = shop();
    let here = program().display().to_string();
    for client in CLIENTS {
        let path = client.had(&session, client.others);
        client.install(&session, &["--write"]).exits(0);
        let whole = fs::read_to_string(&path).unwrap();
        let old = whole.replace(&here, "/old/wayleave");
        let old = match client.word {
            "codex" => format!("{old}startup_timeout_sec = 20\n"),
            _ => old.replace("\"/old/wayleave\",", "\"/old/wayleave\", \"timeout\": 20,"),
        };
        assert!(old.contains("20"), "{old}");
        fs::write(&path, &old).unwrap();
        let shown = client.install(&session, &[]).exits(0);
        assert!(shown.stdout.contains("/old/wayleave"), "{}", shown.stdout);
        assert_eq!(fs::read_to_string(&path).unwrap(), old, "only shown");
        client.install(&session, &["--write"]).exits(0);
        let repaired = fs::read_to_string(&path).unwrap();
        assert_eq!(repaired, old.replace("/old/wayleave", &here));
    }
}

#[test]
fn what_cannot_be_edited_is_refused_with_what_to_paste() {
    let session = shop();
    for client in CLIENTS {
        let path = client.had(&session, client.broken);
        for more in [&[][..], &["--write"], &["--write", "--replace"]] {
            let words: Vec<_> = more.iter().copied().chain(["--json"]).collect();
            let refused = client.install(&session, &words).exits(2);
            let snippet = refused.document()["snippet"].as_str().unwrap().to_owned();
            assert_eq!(snippet, client.print(&session, &[]).stdout);
            assert!(
                refused.stderr.contains("is left as it is"),
                "{}",
                refused.stderr
            );
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), client.broken);
        fs::write(&path, [0xff, 0xfe]).unwrap();
        client
            .install(&session, &["--write"])
            .exits(2)
            .says("UTF-8");
        assert_eq!(fs::read(&path).unwrap(), [0xff, 0xfe]);
        let folder = path.parent().unwrap();
        let file = path.file_name().unwrap().to_str().unwrap();
        let beside = names(folder).into_iter().filter(|name| name.contains(file));
        assert_eq!(beside.collect::<Vec<_>>(), [file]);
    }
}

#[test]
fn a_read_only_file_is_left_alone() {
    let session = shop();
    for client in CLIENTS {
        let path = client.had(&session, client.others);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
        client
            .install(&session, &["--write"])
            .exits(2)
            .says("read-only");
        assert_eq!(fs::read_to_string(&path).unwrap(), client.others);
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_link_stays_a_link_and_a_link_to_nothing_is_refused() {
    let session = shop();
    for client in CLIENTS {
        let path = client.had(&session, "");
        fs::remove_file(&path).unwrap();
        let kept = session.home().join(format!("dotfiles-{}", client.word));
        fs::create_dir(&kept).unwrap();
        let target = kept.join("settings");
        symlink(&target, &path).unwrap();
        client
            .install(&session, &["--write"])
            .exits(2)
            .says("a link to nothing");
        fs::write(&target, client.others).unwrap();
        client.install(&session, &["--write"]).exits(0);
        assert!(fs::symlink_metadata(&path).unwrap().is_symlink());
        assert_ne!(fs::read_to_string(&target).unwrap(), client.others);
        assert_eq!(names(&kept).len(), 2, "the settings and what they were");
    }
}

#[test]
fn a_link_that_leads_out_of_the_folder_is_not_followed() {
    let session = shop();
    for (client, file) in CLIENTS.iter().zip(IN_FOLDER) {
        let Some(file) = file else { continue };
        let home = session.home().join(client.word);
        let (folder, outside) = (home.join("work"), home.join("outside"));
        let settings = folder.join(file);
        fs::create_dir_all(settings.parent().unwrap()).unwrap();
        fs::create_dir(&outside).unwrap();
        let words = ["--write", "--folder", folder.to_str().unwrap()];
        // The file itself is a link.
        let elsewhere = outside.join("settings");
        fs::write(&elsewhere, client.others).unwrap();
        symlink(&elsewhere, &settings).unwrap();
        client
            .install(&session, &words)
            .exits(2)
            .says("leads out of");
        let shown = client.install(&session, &words[1..]).exits(2);
        assert!(!shown.all().contains("hunter2"), "{}", shown.all());
        assert_eq!(fs::read_to_string(&elsewhere).unwrap(), client.others);
        fs::remove_file(&settings).unwrap();
        // Its folder is a link, with or without a file there.
        if let Some((inner, name)) = file.split_once('/') {
            fs::remove_dir(folder.join(inner)).unwrap();
            symlink(&outside, folder.join(inner)).unwrap();
            client
                .install(&session, &words)
                .exits(2)
                .says("leads out of");
            fs::write(outside.join(name), client.others).unwrap();
            client
                .install(&session, &words)
                .exits(2)
                .says("leads out of");
            fs::remove_file(outside.join(name)).unwrap();
            fs::remove_file(folder.join(inner)).unwrap();
            fs::create_dir(folder.join(inner)).unwrap();
        }
        assert_eq!(names(&outside), ["settings"]);
        // A link that stays within the folder is allowed, and so is a link to the folder.
        fs::write(folder.join("ours"), client.others).unwrap();
        symlink(folder.join("ours"), &settings).unwrap();
        let alias = home.join("alias");
        symlink(&folder, &alias).unwrap();
        let words = ["--write", "--folder", alias.to_str().unwrap()];
        client.install(&session, &words).exits(0).says("wrote");
        assert_ne!(
            fs::read_to_string(folder.join("ours")).unwrap(),
            client.others
        );
    }
}

#[test]
fn a_folder_in_the_place_of_a_file_is_refused() {
    let session = shop();
    for client in CLIENTS {
        fs::create_dir_all(client.path(&session)).unwrap();
        client
            .install(&session, &["--write"])
            .exits(2)
            .says("no file");
    }
}

#[test]
fn another_server_of_the_same_name_is_not_pushed_out_by_mistake() {
    let mut session = shop();
    for client in CLIENTS {
        client.install(&session, &["--write"]).exits(0);
    }
    session.here_is_home();
    session.run(&["init", "second"]).exits(0);
    session.enter("second");
    session.write("wayleave.toml", "[project]\nname = \"shop\"\n");
    for client in CLIENTS {
        let path = client.path(&session);
        let before = fs::read_to_string(&path).unwrap();
        client
            .install(&session, &["--write"])
            .exits(2)
            .says("another server is called `shop`");
        assert_eq!(fs::read_to_string(&path).unwrap(), before);
        client
            .install(&session, &["--write", "--name", "second"])
            .exits(0);
        let both = fs::read_to_string(&path).unwrap();
        assert!(client.entry(&both, "shop").is_object());
        assert!(client.entry(&both, "second").is_object());
        client.install(&session, &["--write", "--replace"]).exits(0);
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(
            client.entry(&text, "shop")["args"],
            client.entry(&text, "second")["args"]
        );
    }
}

/// The path of each client's settings in a project folder, if it has such settings.
const IN_FOLDER: [Option<&str>; 6] = [
    Some(".mcp.json"),
    None,
    Some(".cursor/mcp.json"),
    Some(".vscode/mcp.json"),
    Some(".codex/config.toml"),
    Some(".gemini/settings.json"),
];

#[test]
fn a_folders_own_settings_are_edited_when_it_is_named() {
    let session = shop();
    fs::create_dir(session.home().join("work")).unwrap();
    let folder = session.home().join("work").display().to_string();
    for (client, file) in CLIENTS.iter().zip(IN_FOLDER) {
        let done = client.install(&session, &["--write", "--folder", &folder]);
        match file {
            Some(file) => {
                done.exits(0);
                let text = fs::read_to_string(Path::new(&folder).join(file)).unwrap();
                assert!(client.entry(&text, "shop").is_object(), "{text}");
            }
            None => {
                done.exits(2).says("has no settings of a folder");
            }
        }
        assert!(!client.path(&session).exists());
    }
}
