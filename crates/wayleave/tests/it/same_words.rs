//! The command line prints what `wayleave-project` renders, byte for byte, so that tools and the
//! console show the same.

use std::collections::BTreeMap;

use wayleave_ledger::{Clock as _, SystemClock};
use wayleave_project::{
    Project, Rendering, check, doctor,
    overview::overview,
    render,
    review::Review,
    source::EnvironmentVariables,
    source_probe::{MappingComparison, SourceProbe},
};

use crate::session::{CommandOutput, Session};

mod acts;

/// Runs a command, and compares both forms of its output, its remarks and its exit status with the
/// rendering.
#[track_caller]
fn same(session: &Session, words: &[&str], rendering: &Rendering) {
    let json: Vec<_> = words.iter().copied().chain(["--json"]).collect();
    for (words, is_json) in [(words, false), (&json, true)] {
        printed(session, &session.run(words), rendering, is_json);
    }
}

/// Compares the output of a command, its remarks and its exit status with the rendering.
#[track_caller]
fn printed(session: &Session, ran: &CommandOutput, rendering: &Rendering, is_json: bool) {
    assert_eq!(ran.stdout.starts_with('{'), is_json, "{}", ran.all());
    let rendered = if is_json {
        rendering.json()
    } else {
        rendering.text()
    };
    assert_eq!(
        session.normal(&ran.stdout),
        session.normal(&line(&rendered))
    );
    for remark in rendering.remarks() {
        assert!(ran.stderr.contains(&line(&remark)), "{}", ran.stderr);
    }
    let status = i32::from(rendering.has_findings());
    assert_eq!(ran.status, status, "{}", ran.all());
}

fn line(text: &str) -> String {
    format!("{}\n", text.trim_end_matches('\n'))
}

#[tokio::test]
async fn commands_print_what_the_project_crate_renders() {
    let session = Session::with_dataset();
    let issue = ["token", "create", "--all-of", "music"];
    session.run(&issue).exits(0);
    let draft = session.read("mappings/music.toml");
    session.write("mappings/music.toml", format!("{draft}# edited\n"));
    session.write("mappings/broken.toml", "[dataset]\nname = \"broken\"\n");
    let project = Project::open(session.here()).unwrap();
    let dsn = session.variable("MUSIC_DSN").to_owned();
    let probe = SourceProbe {
        environment: EnvironmentVariables::with(BTreeMap::from([("MUSIC_DSN".to_owned(), dsn)])),
        ..SourceProbe::default()
    };
    let ledger = project.governance().ledger();
    let state = ledger.state().await.unwrap();

    let lines = overview(&project).await.unwrap();
    same(&session, &["datasets"], &render::datasets::overview(&lines));

    let mut report = check::check(&project, &[]).unwrap();
    let rendering = render::check::report_with_settings(&report, &[], &[]);
    assert!(rendering.has_findings());
    same(&session, &["check"], &rendering);
    report.compare(&probe, &state, &|_| {}).await;
    let rendering = render::check::report_with_settings(&report, &[], &[]);
    same(&session, &["check", "--live"], &rendering);

    let review = Review::load(&project, "music").await.unwrap();
    same(
        &session,
        &["diff", "music"],
        &render::review::review(&review),
    );
    let error = Review::load(&project, "broken").await.unwrap_err();
    let refusal = render::review::refusal(error).unwrap();
    same(&session, &["diff", "broken"], &refusal);

    let catalogue = probe.catalogue(&state, "music", None, &|_| {}).await;
    let rendering = render::catalogue::catalogue("music", &catalogue.unwrap());
    same(&session, &["introspect", "music"], &rendering);

    let findings = doctor::examine(session.here(), &probe, &|_| {}).await;
    same(&session, &["doctor"], &render::doctor::findings(&findings));

    let now = state.now(SystemClock.now());
    let sources = render::sources::list(&state, &probe.environment);
    same(&session, &["source", "list"], &sources);
    let tokens = render::tokens::list(&state, now, false);
    same(&session, &["token", "list"], &tokens);
    let grants = render::grants::list(&state, now, false);
    same(&session, &["grant", "list"], &grants);
    let mapping = project.governance().load("music").await.unwrap();
    for grant in state.grants().values() {
        let rendering = render::grants::grant(&state, grant, Ok(&mapping), now);
        same(&session, &["grant", "show", &grant.id], &rendering);
    }

    let total = ledger.epoch().await.unwrap();
    let entries = ledger.entries(0, 20).await.unwrap();
    let rendering = render::audit::entries(total, 0, &entries);
    same(&session, &["audit"], &rendering);
    let report = project.governance().audit(None).await.unwrap();
    same(
        &session,
        &["audit", "--verify"],
        &render::audit::verification(report),
    );
}

#[tokio::test]
async fn drift_is_told_in_the_same_words_beside_the_answer() {
    let mut session = Session::with_dataset();
    let sql = "CREATE TABLE other (id integer PRIMARY KEY);";
    let path = session.keep_sqlite("other.db", sql);
    session.set("MUSIC_DSN", path.to_str().unwrap());
    let project = Project::open(session.here()).unwrap();
    let dsn = path.to_str().unwrap().to_owned();
    let probe = SourceProbe {
        environment: EnvironmentVariables::with(BTreeMap::from([("MUSIC_DSN".to_owned(), dsn)])),
        ..SourceProbe::default()
    };
    let governance = project.governance();
    let state = governance.ledger().state().await.unwrap();
    let mapping = governance.load("music").await.unwrap();
    let text = String::from_utf8_lossy(mapping.bytes());
    let mut comparison = MappingComparison::new(&probe, &state);
    let compared = comparison.compare(&mapping, &text, &|_| {}).await;
    let told = render::activation::drift("music", mapping.bytes(), &compared);
    assert!(!told.is_empty());
    let ran = session.run(&["connect", "music"]).exits(1);
    for text in told {
        assert!(ran.stderr.contains(text.trim_end()), "{}", ran.stderr);
    }
}
