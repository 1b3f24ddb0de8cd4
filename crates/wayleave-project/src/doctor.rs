//! `doctor`: checks everything a project needs in order to serve, each with what to do.
//!
//! Goes as far as it can: for a project that does not open it still reports why.

mod datasets;

use std::{fs, io, os::unix::fs::PermissionsExt as _, path::Path};

use serde::Serialize;
use wayleave_activity::ActivityLog;
use wayleave_ledger::{Clock as _, FOLDER, GovernanceError, State, SystemClock, Validity, rfc3339};
use wayleave_model::{grant::TokenKind, problem::quoted};
use wayleave_store::Progress;

use crate::{
    activity_log, check, columns,
    explanation::with_causes,
    index_status, keys,
    project::{Project, ProjectError},
    serving_status,
    settings::{self, Settings},
    source_probe::SourceProbe,
    token_rules::{self, UnknownGrant},
    trust::{OWNER_VARIABLE, TrustStore},
};

/// Hint for a SQLite file that is locked against writers while it is read.
const WRITE_AHEAD_LOG: &str = "where programs write to the file while it is served, give it a write-ahead log \
    (`PRAGMA journal_mode = WAL`); without one, slow reads give way to them";

/// Maximum number of files listed by name.
const MAX_NAMED_FILES: usize = 6;

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Grade {
    /// As it should be.
    Ok,
    /// Worth a look.
    Warning,
    /// Something will not work.
    Problem,
}

impl Grade {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

/// The result of one check.
#[derive(Debug, Serialize)]
pub struct Finding {
    /// What was checked: `settings`, `source crm`, …
    pub about: String,
    /// Its severity.
    pub grade: Grade,
    /// What was found.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Finding {
    fn ok(about: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            about: about.into(),
            grade: Grade::Ok,
            message: message.into(),
            hint: None,
        }
    }

    fn warning(about: impl Into<String>, message: impl Into<String>, hint: &str) -> Self {
        Self {
            grade: Grade::Warning,
            hint: Some(hint.to_owned()),
            ..Self::ok(about, message)
        }
    }

    fn problem(
        about: impl Into<String>,
        message: impl Into<String>,
        hint: Option<impl Into<String>>,
    ) -> Self {
        Self {
            grade: Grade::Problem,
            hint: hint.map(Into::into),
            ..Self::ok(about, message)
        }
    }
}

/// Examines the project in `folder`.
pub async fn examine(folder: &Path, probe: &SourceProbe, progress: Progress<'_>) -> Vec<Finding> {
    examine_trusting(folder, &TrustStore::default(), probe, progress).await
}

/// The same, for a project that must match its trust anchor.
pub async fn examine_trusting(
    folder: &Path,
    trust: &TrustStore,
    probe: &SourceProbe,
    progress: Progress<'_>,
) -> Vec<Finding> {
    let mut findings = vec![settings_of(folder)];
    findings.extend(private_folder(folder));
    findings.extend(cursor_keys(folder));
    let project = match Project::open_to_read_trusting(folder, trust) {
        Ok(project) => project,
        // Already reported.
        Err(ProjectError::None { .. } | ProjectError::Settings(_)) => return findings,
        Err(error) => {
            if findings.iter().all(|it| it.grade == Grade::Ok) {
                let hint = error.hint();
                findings.push(Finding::problem("ledger", with_causes(&error), hint));
            }
            return findings;
        }
    };
    if project.governance().is_read_only() {
        findings.push(Finding::warning(
            FOLDER,
            "is read-only: it can be verified, and neither served nor changed",
            "serve from a folder that this user can write",
        ));
    }
    let (ledger, state) = ledger(&project).await;
    findings.extend(ledger);
    findings.push(activity(&project));
    findings.extend(running(&project));
    findings.extend(drafts(&project));
    if let Some(state) = state {
        findings.push(owners(&state, trust));
        findings.extend(token_rules(project.settings(), &state));
        findings.extend(listener(project.settings(), &state));
        findings.extend(clock(&state));
        findings.extend(sources(&state, probe).await);
        findings.extend(datasets::compared(&project, &state, probe, progress).await);
        findings.extend(datasets::indexes(&project, &state).await);
    }
    findings
}

/// Reports the owners who sign decisions, if there are any.
fn owners(state: &State, trust: &TrustStore) -> Finding {
    let about = "owners";
    let Some(first) = state.first_owner() else {
        return Finding::warning(
            about,
            "none, so ratifications are unsigned",
            "register your key with `wayleave owner add`",
        );
    };
    let present = state.owners().values().filter(|it| it.removed.is_none());
    let names: Vec<_> = present.map(|it| it.name.as_str()).collect();
    let signed = format!("decisions are signed, by {}", quoted(&names.join(", ")));
    if trust.names_owner() {
        return Finding::ok(about, format!("{signed}; {first} is trusted by name"));
    }
    Finding {
        hint: Some(format!(
            "set `{OWNER_VARIABLE}` to {first} where the server is started, out of reach of whoever \
             can write the folder"
        )),
        ..Finding::ok(about, signed)
    }
}

fn settings_of(folder: &Path) -> Finding {
    let about = settings::FILE;
    match fs::read_to_string(folder.join(settings::FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let none = ProjectError::None {
                folder: folder.to_owned(),
            };
            Finding::problem(about, none.to_string(), none.hint())
        }
        Err(error) => Finding::problem(
            about,
            format!("cannot be read: {error}"),
            Some("check who owns it"),
        ),
        Ok(text) => match Settings::parse(&text) {
            Ok(settings) => Finding::ok(about, format!("project `{}`", settings.name)),
            Err(error) => Finding::problem(about, error.to_string(), error.hint()),
        },
    }
}

fn private_folder(folder: &Path) -> Option<Finding> {
    let mode = |path: &Path| Some(fs::metadata(path).ok()?.permissions().mode() & 0o7777);
    let own = folder.join(FOLDER);
    let found = mode(&own)?;
    if found & 0o077 != 0 {
        let message = format!("is open to other users (mode {found:o})");
        let hint = format!("close it: `chmod 700 {FOLDER}`");
        return Some(Finding::problem(FOLDER, message, Some(hint)));
    }
    let open = exposed_files(&own);
    Some(if open.is_empty() {
        Finding::ok(FOLDER, "private to you")
    } else {
        let further = open.len().saturating_sub(MAX_NAMED_FILES);
        let first: Vec<String> = open.into_iter().take(MAX_NAMED_FILES).collect();
        let mut files = first.join(", ");
        if further > 0 {
            files = format!("{files} and {further} more");
        }
        let message = format!("other users could read {files} if the folder opened");
        Finding::warning(FOLDER, message, "close them: `chmod 600` each")
    })
}

/// Files of the private folder that only the folder's mode protects, by their path in it. Indexes
/// are skipped, because their own folder protects them.
fn exposed_files(private: &Path) -> Vec<String> {
    let mut open = Vec::new();
    let mut folders = vec![private.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for path in entries.flatten().map(|entry| entry.path()) {
            let Ok(found) = fs::symlink_metadata(&path) else {
                continue;
            };
            let name = path.strip_prefix(private).unwrap_or(&path);
            if found.is_dir() {
                if name != Path::new(index_status::INDEX_FOLDER) {
                    folders.push(path);
                }
            } else if found.is_file() && found.permissions().mode() & 0o077 != 0 {
                open.push(quoted(&name.to_string_lossy()));
            }
        }
    }
    open.sort();
    open
}

/// Checks the keys that seal cursors; nothing is served without them.
fn cursor_keys(folder: &Path) -> Option<Finding> {
    let error = keys::check(&folder.join(FOLDER)).err()?;
    Some(Finding::problem(
        "cursor keys",
        with_causes(&error),
        Some(error.hint()),
    ))
}

/// Checks whether calls can be recorded.
fn activity(project: &Project) -> Finding {
    const ABOUT: &str = "activity log";
    if let Err(error) = ActivityLog::check_folder(&activity_log::log_folder(project)) {
        return Finding::problem(ABOUT, with_causes(&error), Some(error.hint()));
    }
    let settings = project.settings().audit;
    if !settings.required {
        return Finding::warning(
            ABOUT,
            "calls are served even if they are not recorded",
            "take `required = false` out of `[audit]`",
        );
    }
    Finding::ok(ABOUT, "calls are recorded before they are answered")
}

/// Reports the status of the project's running servers.
fn running(project: &Project) -> Vec<Finding> {
    let mut findings = Vec::new();
    for status in serving_status::running(project.folder()) {
        let about = format!("server {}", status.pid);
        for it in &status.suspended {
            let stream = format!("{}/{}", it.connection_id, it.stream);
            findings.push(Finding::problem(
                about.as_str(),
                format!("has suspended {stream}: {}", it.problems.join("; ")),
                Some("it resumes by itself once the source fits the live mapping"),
            ));
        }
        for it in &status.not_in_force {
            findings.push(Finding::warning(
                about.as_str(),
                format!(
                    "`{}` is changed but not in force: it is {}, and the file says {}",
                    it.name, it.in_force, it.written
                ),
                "restart the server to apply it",
            ));
        }
        if let Some(refused) = &status.settings_refused {
            findings.push(Finding::problem(
                about.as_str(),
                format!("rejected the settings file and keeps the previous settings: {refused}"),
                Some("fix the line; the server reads the file again by itself"),
            ));
        }
        if findings.iter().all(|it| it.about != about) {
            findings.push(Finding::ok(about, "runs with the settings in the file"));
        }
    }
    findings
}

/// Checks whether the server may listen where the settings say.
fn listener(settings: &Settings, state: &State) -> Option<Finding> {
    let now = state.now(SystemClock.now());
    let mut tokens = state.tokens().values();
    let is_issued =
        tokens.any(|it| it.kind == TokenKind::Client && it.validity(now) == Validity::Live);
    let asked = settings.tokens || settings.jwt.is_some() || is_issued;
    let error = settings.check_listener(settings.http, asked).err()?;
    let about = format!("serve.http {}", settings.http);
    Some(Finding::problem(about, error.to_string(), error.hint()))
}

/// Reports a clock behind the ledger: expiry follows the ledger's time.
fn clock(state: &State) -> Option<Finding> {
    let clock = SystemClock.now();
    let latest = state.now(clock);
    (latest > clock).then(|| {
        let message = format!(
            "the clock is behind the latest ledger entry ({}); expiry is judged by that entry's time",
            rfc3339(latest)
        );
        Finding::warning("clock", message, "set the clock of this machine")
    })
}

async fn ledger(project: &Project) -> (Vec<Finding>, Option<std::sync::Arc<State>>) {
    let governance = project.governance();
    let mut findings = Vec::new();
    match governance.audit(None).await {
        Err(error) => findings.push(governance_problem("ledger", &error)),
        Ok(report) => {
            let (entries, frozen) = (report.ledger.good, report.mappings);
            findings.push(match report.ledger.problem {
                None => Finding::ok("ledger", format!("{entries} entries, intact")),
                Some(problem) => {
                    let hint = "keep the folder as evidence, and restore it whole from a backup";
                    Finding::problem("ledger", problem.to_string(), Some(hint))
                }
            });
            for error in &frozen {
                findings.push(governance_problem("frozen mappings", error));
            }
        }
    }
    (findings, governance.ledger().state().await.ok())
}

fn governance_problem(about: &str, error: &GovernanceError) -> Finding {
    Finding::problem(about, with_causes(error), error.hint())
}

fn drafts(project: &Project) -> Vec<Finding> {
    let report = match check::check(project, &[]) {
        Ok(report) => report,
        Err(error) => {
            let hint = Some(error.hint());
            return vec![Finding::problem("drafts", with_causes(&error), hint)];
        }
    };
    let hint = "`wayleave check` shows what and where";
    let mut findings = Vec::new();
    if let Some(ontology) = &report.ontology {
        let wrong = ontology.problems.len() + usize::from(ontology.file.bytes.is_err());
        if wrong > 0 {
            let message = format!("has {}", columns::count(wrong, "problem"));
            findings.push(Finding::problem("ontology.toml", message, Some(hint)));
        }
    }
    for conflict in &report.name_conflicts {
        findings.push(Finding::problem("drafts", conflict.to_string(), Some(hint)));
    }
    for draft in report.drafts.iter().filter(|it| !it.is_sound()) {
        let message = draft.unreadable().map_or_else(
            || format!("has {}", columns::count(draft.problems.len(), "problem")),
            crate::draft::ReadDraftError::reason,
        );
        let about = format!("draft {}", quoted(&draft.file.shown));
        findings.push(Finding::warning(about, message, hint));
    }
    if findings.is_empty() {
        let count = report.drafts.len();
        findings.push(Finding::ok("drafts", format!("{count} checked")));
    }
    findings
}

/// Reports grants that the settings name for access tokens but that do not exist.
fn token_rules(settings: &Settings, state: &State) -> Vec<Finding> {
    let unknown = token_rules::unknown_grants(settings, state);
    let finding = |it: &UnknownGrant| Finding::warning(settings::FILE, it.to_string(), &it.hint());
    unknown.iter().map(finding).collect()
}

async fn sources(state: &State, probe: &SourceProbe) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, source) in state.sources() {
        let about = format!("source {name}");
        let waits = async || {
            probe
                .reads_block_writers(state, name)
                .await
                .unwrap_or(false)
        };
        findings.push(match probe.ping(state, name).await {
            Ok(took) => Finding {
                hint: waits().await.then(|| WRITE_AHEAD_LOG.to_owned()),
                ..Finding::ok(
                    about,
                    format!(
                        "{} in `{}` answered in {} ms, read-only",
                        source.kind,
                        source.env,
                        took.as_millis()
                    ),
                )
            },
            Err(error) => Finding::problem(about, with_causes(&error), Some(error.hint())),
        });
    }
    if findings.is_empty() {
        let hint = "declare one: `wayleave source add NAME --kind KIND --env VARIABLE`";
        findings.push(Finding::warning("sources", "none is declared", hint));
    }
    findings
}
