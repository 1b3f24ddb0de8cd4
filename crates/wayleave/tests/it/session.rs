//! A terminal session: commands run in a project folder, and their output.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use regex::Regex;
use wayleave_test::fixture::{Dialect, Fixture};
use wayleave_test::sqlite_file;

/// The home folder as shown in every transcript.
const HOME: &str = "/data";

/// The passphrase of the owner's key.
const PASSPHRASE: &str = "seven small boats in a row";

/// The program under test.
pub(crate) fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_wayleave"))
}

/// A temporary home folder, variables, and a transcript.
pub(crate) struct Session {
    home: tempfile::TempDir,
    here: PathBuf,
    variables: Vec<(String, String)>,
    /// Ids of grants and tokens in order of appearance. Transcripts show their numbers.
    ids: Vec<String>,
    transcript: String,
}

/// The result of a command.
pub(crate) struct CommandOutput {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl CommandOutput {
    pub(crate) fn from_output(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("output is UTF-8");
        Self {
            status: output.status.code().unwrap_or(-1),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        }
    }

    /// All of its output.
    pub(crate) fn all(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }

    #[track_caller]
    pub(crate) fn exits(self, status: i32) -> Self {
        assert_eq!(self.status, status, "{}", self.all());
        self
    }

    #[track_caller]
    pub(crate) fn says(self, words: &str) -> Self {
        let all = self.all();
        assert!(all.contains(words), "`{words}` is not in:\n{all}");
        self
    }

    #[track_caller]
    pub(crate) fn document(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}:\n{}", self.all()))
    }
}

impl Session {
    /// A session in an empty home folder.
    pub(crate) fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let here = home.path().to_owned();
        Self {
            home,
            here,
            variables: Vec::new(),
            ids: Vec::new(),
            transcript: String::new(),
        }
    }

    /// A session in a new project.
    pub(crate) fn in_project() -> Self {
        let mut session = Self::new();
        session.run(&["init", "project"]).exits(0);
        session.enter("project");
        session
    }

    /// A session in a new project with a music store declared as source `music`, and a draft over
    /// it.
    pub(crate) fn with_draft() -> Self {
        let mut session = Self::in_project();
        let path = session.keep_sqlite("music.db", Fixture::Music.sql(Dialect::Sqlite));
        session.set("MUSIC_DSN", path.to_str().unwrap());
        session
            .run(&[
                "source",
                "add",
                "music",
                "--kind",
                "sqlite",
                "--env",
                "MUSIC_DSN",
            ])
            .exits(0);
        session.run(&["propose", "music"]).exits(0);
        session
    }

    /// Like [`with_draft`](Self::with_draft), with the draft ratified.
    pub(crate) fn with_dataset() -> Self {
        let session = Self::with_draft();
        session.run(&["ratify", "music"]).exits(0);
        session
    }

    /// Makes `ana` the first owner of the project, with a key file in the home.
    pub(crate) fn add_owner(&self) {
        let key = self.home().join("owner.key");
        self.write_home("passphrase", PASSPHRASE);
        let words = ["owner", "add", "ana", "--new-key", key.to_str().unwrap()];
        let lines = format!("ana\n{PASSPHRASE}\n{PASSPHRASE}");
        self.agree(&words, &lines).exits(0);
    }

    /// The words that sign with the owner's key.
    pub(crate) fn signing(&self) -> [String; 4] {
        let path = |name: &str| self.home().join(name).display().to_string();
        let (key, file) = (path("owner.key"), path("passphrase"));
        ["--key".into(), key, "--passphrase-file".into(), file]
    }

    fn write_home(&self, name: &str, text: &str) {
        std::fs::write(self.home().join(name), text).unwrap();
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// The current folder.
    pub(crate) fn here(&self) -> &Path {
        &self.here
    }

    pub(crate) fn enter(&mut self, folder: &str) {
        self.here.push(folder);
    }

    pub(crate) fn here_is_home(&mut self) {
        self.here = self.home.path().to_owned();
    }

    pub(crate) fn set(&mut self, variable: &str, value: &str) {
        self.variables.retain(|(name, _)| name != variable);
        self.variables.push((variable.to_owned(), value.to_owned()));
    }

    pub(crate) fn unset(&mut self, variable: &str) {
        self.variables.retain(|(name, _)| name != variable);
    }

    pub(crate) fn variable(&self, variable: &str) -> &str {
        let found = self.variables.iter().find(|(name, _)| name == variable);
        &found.expect("the variable is set").1
    }

    /// Creates a SQLite file in the home folder.
    pub(crate) fn keep_sqlite(&self, name: &str, sql: &str) -> PathBuf {
        let (_folder, made) = sqlite_file(sql).unwrap();
        let kept = self.home().join(name);
        std::fs::copy(made, &kept).unwrap();
        kept
    }

    pub(crate) fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.here.join(path), text).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.here.join(path)).unwrap()
    }

    /// The path of the only frozen mapping.
    pub(crate) fn frozen(&self) -> PathBuf {
        let folder = std::fs::read_dir(self.here.join(".wayleave/mappings")).unwrap();
        let files: Vec<_> = folder.map(|it| it.unwrap().path()).collect();
        assert_eq!(files.len(), 1, "{files:?}");
        files[0].clone()
    }

    /// A command in the current folder, with only `PATH`, `HOME` and the session's variables.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        let path = std::env::var("PATH").unwrap_or_default();
        let beside = self::program().parent().unwrap().display().to_string();
        command
            .current_dir(&self.here)
            .env_clear()
            .env("PATH", format!("{beside}:{path}"))
            .env("HOME", self.home())
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null());
        command
    }

    /// Runs `wayleave` with these arguments. Answers its questions like a person: see
    /// [`Session::agree`]. Drops `--yes`, which is not an option of the program.
    pub(crate) fn run(&self, words: &[&str]) -> CommandOutput {
        let words: Vec<&str> = words.iter().copied().filter(|it| *it != "--yes").collect();
        let is_named = words.contains(&"--key");
        match words[..] {
            ["ratify" | "retire", name, ..] if !is_named && !name.starts_with('-') => {
                self.agree(&words, name)
            }
            _ => self.run_unattended(&words),
        }
    }

    /// Runs `wayleave` with these arguments, without a terminal.
    pub(crate) fn run_unattended(&self, words: &[&str]) -> CommandOutput {
        CommandOutput::from_output(&self.command(program()).args(words).output().unwrap())
    }

    /// Runs `wayleave` on its own terminal, and types a line there. Its output goes to pipes, as
    /// without a terminal.
    pub(crate) fn agree(&self, words: &[&str], line: &str) -> CommandOutput {
        let output = self.home().join(".ran");
        let quoted = |word: &str| format!("'{}'", word.replace('\'', r"'\''"));
        let mut command = quoted(program().to_str().unwrap());
        for word in words {
            command.push(' ');
            command.push_str(&quoted(word));
        }
        let (out, err) = (output.with_extension("out"), output.with_extension("err"));
        let shell = format!("{command} >{} 2>{}", out.display(), err.display());
        let ran = self.on_terminal(&shell, &format!("{line}\n"));
        let read = |path: &Path| std::fs::read_to_string(path).unwrap();
        CommandOutput {
            status: ran.status,
            stdout: read(&out),
            stderr: read(&err),
        }
    }

    /// Runs a shell line on its own terminal, and types keys there. The output is what the terminal
    /// shows.
    pub(crate) fn on_terminal(&self, line: &str, keys: &str) -> CommandOutput {
        let mut child = self
            .command("script")
            .args(["--quiet", "--return", "--command", line, "/dev/null"])
            .env("TERM", "dumb")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("`script` runs; else install the package `bsdutils`");
        let mut input = child.stdin.take().unwrap();
        // The program may end before it asks anything.
        let _ = input.write_all(keys.as_bytes());
        // At the end of its input `script` closes the terminal, so keep the input open.
        let output = child.wait_with_output().unwrap();
        drop(input);
        CommandOutput::from_output(&output)
    }

    /// Runs a shell line as shown in a guide, and adds it to the transcript, with its exit code
    /// after the output unless that is 0.
    pub(crate) fn type_line(&mut self, line: &str) {
        self.transcript.extend(["$ ", line, "\n"]);
        if let Some(folder) = line.strip_prefix("cd ") {
            return self.enter(folder);
        }
        let mut line = line.replace(HOME, self.home().to_str().unwrap());
        for (place, id) in self.ids.iter().enumerate() {
            line = line.replace(&told(id, place), id);
        }
        if let Some(assignment) = line.strip_prefix("export ") {
            let (name, value) = assignment.split_once('=').unwrap();
            // The guide shows an example value; the test has set the real one.
            if !self.variables.iter().any(|(known, _)| known == name) {
                self.set(name, value);
            }
            return;
        }
        let ran = match person_in(&line) {
            None => {
                let line = format!("{{ {line}; }} 2>&1");
                CommandOutput::from_output(
                    &self.command("sh").args(["-c", &line]).output().unwrap(),
                )
            }
            Some(name) => {
                let shown = self.home().join(".shown");
                let line = format!("{{ {line}; }} >{} 2>&1", shown.display());
                let asked = self.on_terminal(&line, &format!("{name}\n"));
                CommandOutput {
                    stdout: std::fs::read_to_string(shown).unwrap(),
                    ..asked
                }
            }
        };
        let printed = self.named(self.normal(&ran.stdout));
        self.transcript.push_str(&printed);
        if !printed.is_empty() && !printed.ends_with('\n') {
            self.transcript.push('\n');
        }
        if ran.status != 0 {
            let exits = format!("[exits {}]\n", ran.status);
            self.transcript.push_str(&exits);
        }
    }

    /// Replaces ids that differ between runs by their numbers.
    fn named(&mut self, mut text: String) -> String {
        let id = Regex::new(r"\b[gt]_[a-z2-9]{10}\b").unwrap();
        for found in id.find_iter(&text) {
            if !self.ids.iter().any(|known| known == found.as_str()) {
                self.ids.push(found.as_str().to_owned());
            }
        }
        for (place, id) in self.ids.iter().enumerate() {
            text = text.replace(id, &told(id, place));
        }
        text
    }

    /// Takes the transcript; the next one is empty.
    pub(crate) fn take_transcript(&mut self) -> String {
        std::mem::take(&mut self.transcript)
    }

    /// Replaces the parts of a text that differ between runs.
    pub(crate) fn normal(&self, text: &str) -> String {
        let user = Command::new("id").arg("-un").output().unwrap();
        let user = String::from_utf8(user.stdout).unwrap();
        let program = self::program().display().to_string();
        let mut text = text
            .replace(self.home().to_str().unwrap(), HOME)
            .replace(&program, "/usr/local/bin/wayleave");
        for (pattern, instead) in [
            (format!(r"\bby {}\b", user.trim()), "by ana"),
            (format!(r"(?m)  {}(  |$)", user.trim()), "  ana$1"),
            (
                r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z".to_owned(),
                "2026-01-02T03:04:05Z",
            ),
            (r"\bin \d+ ms\b".to_owned(), "in 2 ms"),
            (r"\bhead: (\d+):[0-9a-f]{64}\b".to_owned(), "head: $1:5eed…"),
            (r"about \d+ rows".to_owned(), "about 2 rows"),
            (r"\bwl([cok])_[0-9A-Za-z]{49}".to_owned(), "wl${1}_…"),
            (r"\bbak-\d{8}T\d{6}Z".to_owned(), "bak-20260102T030405Z"),
        ] {
            let pattern = Regex::new(&pattern).unwrap();
            text = pattern.replace_all(&text, instead).into_owned();
        }
        text
    }
}

/// The name that a person must type to agree to a command.
fn person_in(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace().skip_while(|it| *it != "wayleave");
    words.next()?;
    matches!(words.next()?, "ratify" | "retire").then_some(())?;
    words.next()
}

/// The placeholder of an id in transcripts.
fn told(id: &str, place: usize) -> String {
    format!("{}example{:03}", &id[..2], place + 1)
}
