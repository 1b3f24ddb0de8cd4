//! Acts of an operator: what was done is told in the words of `wayleave-project`.

use std::{path::Path, sync::Arc, time::Duration};

use serde_json::{Map, json};
use wayleave_activity::ActivityFilter;
use wayleave_ledger::{
    Clock as _, Entry, GrantEntry, GrantRequest, State, SystemClock, TokenEntry, TokenRequest,
};
use wayleave_model::mapping::SourceKind;
use wayleave_project::{
    Explanation, Project, activity_log,
    inbox::Proposer,
    keys::Rotation,
    meta::{MetaContext, MetaRegistry, OperationId},
    ratified_mappings::RatifiedMappings,
    render::{self, activity::ArgumentDetail},
    review::Review,
    source::EnvironmentVariables,
    source_probe::SourceProbe,
};

use super::{line, printed, same};
use crate::{
    serving::{Serving, served},
    session::{Session, program},
};

/// The options of each form of output, and whether it is JSON.
const FORMS: [(&[&str], bool); 2] = [(&[], false), (&["--json"], true)];

/// The project as it is now, and its state.
async fn opened(session: &Session) -> (Project, Arc<State>) {
    let project = Project::open(session.here()).unwrap();
    let state = project.governance().ledger().state().await.unwrap();
    (project, state)
}

/// The entry that was recorded last.
async fn last(project: &Project) -> Entry {
    let ledger = project.governance().ledger();
    let epoch = ledger.epoch().await.unwrap();
    ledger.entries(epoch - 1, 1).await.unwrap().remove(0)
}

fn newest_grant(state: &State) -> &GrantEntry {
    state.grants().values().max_by_key(|it| it.seq).unwrap()
}

fn newest_token(state: &State) -> &TokenEntry {
    state.tokens().values().max_by_key(|it| it.seq).unwrap()
}

fn request(grant: &GrantEntry) -> GrantRequest {
    GrantRequest {
        terms: grant.terms.clone(),
        expires: grant.expires,
        purpose: grant.purpose.clone(),
    }
}

#[tokio::test]
async fn grants_are_made_narrowed_and_revoked_in_these_words() {
    let session = Session::with_dataset();
    for (form, is_json) in FORMS {
        let words = ["grant", "create", "--dataset", "music", "--expires", "30d"];
        let ran = session.run(&[&words, form].concat());
        let (_, state) = opened(&session).await;
        let wider = newest_grant(&state).clone();
        let granted = render::granting::granted(&wider.id, &request(&wider), &wider.who);
        printed(&session, &ran, &granted, is_json);

        let issue = ["token", "create", "--grant", &wider.id];
        session.run(&issue).exits(0);
        let narrow = [
            "grant",
            "narrow",
            &wider.id,
            "--stream",
            "artist=Name",
            "--expires",
            "1d",
        ];
        let ran = session.run(&[&narrow[..], form].concat());
        let (_, state) = opened(&session).await;
        let narrower = newest_grant(&state).clone();
        let now = state.now(SystemClock.now());
        let holders = render::grants::holders(&state, &narrower.id, now);
        assert_eq!(holders.len(), 1);
        let rendering = render::granting::narrowed(
            &narrower.id,
            &wider,
            &request(&narrower),
            &narrower.who,
            &holders,
        );
        printed(&session, &ran, &rendering, is_json);
        ran.says("all of it from");

        let ran = session.run(&[&["grant", "revoke", &narrower.id], form].concat());
        let (project, _) = opened(&session).await;
        let entry = last(&project).await;
        let revoked = render::granting::revoked(&narrower.id, &narrower.who, &entry, &holders);
        printed(&session, &ran, &revoked, is_json);
    }
}

#[tokio::test]
async fn a_token_is_issued_and_revoked_in_these_words() {
    let session = Session::with_dataset();
    let rows = r#"artist={"Name": {"claim": "artist"}}"#;
    let grant = ["grant", "create", "--dataset", "music", "--rows", rows];
    session.run(&grant).exits(0);
    for (form, is_json) in FORMS {
        let (_, state) = opened(&session).await;
        let grant = newest_grant(&state).id.clone();
        let ran = session.run(&[&["token", "create", "--grant", &grant], form].concat());
        let (_, state) = opened(&session).await;
        let token = newest_token(&state);
        let asked = TokenRequest {
            kind: token.kind,
            scopes: token.scopes,
            grants: token.grants.clone(),
            claims: token.claims.clone(),
            label: token.label.clone(),
            expires: token.expires,
        };
        let now = state.now(SystemClock.now());
        let issued = render::issuing::issued(&state, &token.id, &asked, &token.who, now);
        let remarks: String = issued.remarks().map(|it| line(&it)).collect();
        assert!(remarks.contains("the claim `artist`"), "{remarks}");
        assert_eq!(ran.stderr, format!("{}{remarks}", line(&issued.text())));
        if is_json {
            let mut document = ran.document();
            assert!(document.as_object_mut().unwrap().remove("secret").is_some());
            assert_eq!(document, issued.document());
        }

        let ran = session.run(&[&["token", "revoke", &token.id], form].concat());
        let (project, _) = opened(&session).await;
        let revoked = render::issuing::revoked(&token.id, &token.who, &last(&project).await);
        printed(&session, &ran, &revoked, is_json);
    }
}

#[test]
fn a_project_is_created_in_these_words() {
    let session = Session::new();
    for (folder, (form, is_json)) in ["first", "second"].into_iter().zip(FORMS) {
        let ran = session.run(&[&["init", folder], form].concat());
        let created = render::init::created(Path::new(folder));
        printed(&session, &ran, &created, is_json);
    }
}

#[tokio::test]
async fn a_person_is_asked_to_ratify_in_these_words() {
    let session = Session::with_draft();
    let project = Project::open(session.here()).unwrap();
    let review = Review::load(&project, "music").await.unwrap();
    let decision = render::review::decision("music", review.proposed.digest());
    let words = format!("{} ratify music", program().display());
    session
        .on_terminal(&words, "no\n")
        .exits(1)
        .says(&format!("to {decision}, type its name: "));
}

#[tokio::test]
async fn a_dataset_is_retired_in_these_words() {
    let session = Session::with_dataset();
    session.run(&["connect", "music"]).exits(0);
    session
        .run(&["grant", "create", "--dataset", "music"])
        .exits(0);
    let (_, state) = opened(&session).await;
    let ratified = state.ratified("music").unwrap();
    let before = render::retirement::announcement(&state, ratified);
    assert!(before.ends_with("ends for every client; it takes 1 grant along"));
    let ran = session.run(&["retire", "music"]).exits(0);
    let (project, _) = opened(&session).await;
    let retired = render::retirement::retired(ratified, &ratified.act.who, &last(&project).await);
    let told = format!("{}{}", line(&before), line(&retired.text()));
    assert_eq!(session.normal(&ran.stdout), session.normal(&told));
    let refused = session.run(&["retire", "music"]).exits(2);
    let why = render::retirement::not_ratified("music");
    refused.says(&format!(
        "error: {}\nhint: {}",
        why.message,
        why.hint.unwrap()
    ));
}

#[tokio::test]
async fn sources_are_declared_and_withdrawn_in_these_words() {
    let session = Session::with_dataset();
    let environment = EnvironmentVariables::process();
    let (_, state) = opened(&session).await;
    let kind = state.sources()["music"].kind;
    let table = render::sources::idempotency_table("music", kind, None).unwrap();
    same(&session, &["source", "prepare", "music"], &table);
    let answered = render::sources::answered("music", SourceKind::Sqlite, Duration::ZERO);
    let ran = session.run(&["source", "test", "music"]);
    printed(&session, &ran, &answered, false);
    for (form, is_json) in FORMS {
        let add = [
            "source",
            "add",
            "other",
            "--kind",
            "sqlite",
            "--env",
            "OTHER_UNSET_DSN",
        ];
        let ran = session.run(&[&add[..], form].concat());
        let (_, state) = opened(&session).await;
        let added = render::sources::added("other", &state.sources()["other"], &environment);
        assert_eq!(added.remarks().count(), 1);
        printed(&session, &ran, &added, is_json);
        let ran = session.run(&[&["source", "remove", "other"], form].concat());
        let (project, state) = opened(&session).await;
        let ratified = RatifiedMappings::load(&project, &state).await;
        printed(
            &session,
            &ran,
            &render::sources::removed("other", &ratified),
            is_json,
        );
    }
}

#[tokio::test]
async fn a_dataset_that_cannot_be_read_is_told_of_with_its_grants_and_its_source() {
    let session = Session::with_dataset();
    session
        .run(&["grant", "create", "--dataset", "music"])
        .exits(0);
    let frozen = session.frozen();
    let text = std::fs::read_to_string(&frozen).unwrap();
    std::fs::remove_file(&frozen).unwrap();
    std::fs::write(&frozen, format!("{text}# altered\n")).unwrap();
    // The same path as here, which the cause names.
    let here = session.here().to_str().unwrap();
    let (project, state) = opened(&session).await;
    let mapping = project.governance().load("music").await;
    let grant = newest_grant(&state);
    let now = state.now(SystemClock.now());
    let shown = render::grants::grant(&state, grant, mapping.as_deref(), now);
    assert!(shown.document()["no_longer_there"].is_null());
    let words = ["grant", "show", &grant.id, "--project", here];
    same(&session, &words, &shown);
    let ran = session.run(&["source", "remove", "music", "--project", here]);
    let (project, state) = opened(&session).await;
    let ratified = RatifiedMappings::load(&project, &state).await;
    assert_eq!(ratified.unreadable_names(), ["music"]);
    let removed = render::sources::removed("music", &ratified);
    assert_eq!(removed.remarks().count(), 1);
    printed(&session, &ran, &removed, false);
}

#[tokio::test]
async fn owners_come_and_go_in_these_words() {
    let session = Session::with_dataset();
    let passphrase = "seven small boats in a row";
    std::fs::write(session.home().join("passphrase"), passphrase).unwrap();
    let key = |name: &str| session.home().join(name).display().to_string();
    // Here the public key cannot be written.
    std::fs::create_dir(session.home().join("owner.key.pub")).unwrap();
    let first = key("owner.key");
    let add = ["owner", "add", "ana", "--new-key", &first];
    let ran = session.agree(&add, &format!("ana\n{passphrase}\n{passphrase}"));
    let (_, state) = opened(&session).await;
    let ana = &state.owners()["ana"];
    printed(&session, &ran, &render::owners::added(&state, ana), false);
    let ran = ran.says("the public key could not be written");
    assert!(ran.stderr.contains(&ana.key.to_string()), "{}", ran.stderr);

    let signing = session.signing();
    let signing: Vec<&str> = signing.iter().map(String::as_str).collect();
    let other = key("other.key");
    let add = [&["owner", "add", "ben", "--new-key", &other][..], &signing].concat();
    let ran = session.agree(&add, &format!("{passphrase}\n{passphrase}"));
    let (_, state) = opened(&session).await;
    let ben = &state.owners()["ben"];
    printed(&session, &ran, &render::owners::added(&state, ben), false);
    let ran = session.run(&[&["owner", "remove", "ben"][..], &signing].concat());
    let (project, _) = opened(&session).await;
    let removed = render::owners::removed("ben", &ben.who, &last(&project).await);
    printed(&session, &ran, &removed, false);
}

#[test]
fn keys_are_rotated_in_these_words() {
    let session = Session::with_dataset();
    for (id, (form, is_json)) in (2..).zip(FORMS) {
        let ran = session.run(&[&["keys", "rotate"], form].concat());
        let older = usize::from(id) - 1;
        printed(
            &session,
            &ran,
            &render::keys::rotated(&Rotation { id, older }),
            is_json,
        );
    }
}

#[test]
fn leftovers_are_removed_in_these_words() {
    let session = Session::with_dataset();
    // The same path as here, which the document names.
    let here = session.here().to_str().unwrap();
    let gc = ["gc", "--project", here];
    same(&session, &gc, &render::upkeep::leftovers_removed(&[]));
    let orphan = session
        .frozen()
        .with_file_name(format!("{}.toml", "ab".repeat(32)));
    let removed = render::upkeep::leftovers_removed(std::slice::from_ref(&orphan));
    for (form, is_json) in FORMS {
        std::fs::write(&orphan, "x").unwrap();
        let ran = session.run(&[&gc, form].concat());
        printed(&session, &ran, &removed, is_json);
    }
}

#[test]
fn the_key_of_recorded_arguments_is_destroyed_in_these_words() {
    let session = Session::with_dataset();
    for (number, (form, is_json)) in (2..).zip(FORMS) {
        let ran = session.run(&[&["audit", "destroy-key"], form].concat());
        let destroyed = render::activity::key_destroyed(number);
        printed(&session, &ran, &destroyed, is_json);
    }
}

#[test]
fn arguments_that_are_not_in_the_record_are_told_of_in_these_words() {
    let (session, token, _) = served();
    let server = Serving::start(&session);
    let names: Vec<String> = (0..100)
        .map(|n| format!("{n}{}", "x".repeat(400)))
        .collect();
    let arguments = json!({ "stream": "artist", "filter": { "Name": { "in": names } } });
    let (status, answer) = server.call("/mcp", Some(&token), "query_records", &arguments);
    assert_eq!(status, 200, "{answer}");
    server.stop();
    let project = Project::open(session.here()).unwrap();
    let calls = activity_log::reader(&project).latest(&ActivityFilter::default(), 1);
    let call = calls.unwrap().remove(0);
    let shown = render::activity::show(&call, ArgumentDetail::Unrecorded);
    assert_eq!(shown.remarks().count(), 1);
    let id = call.id.to_string();
    same(&session, &["audit", "show", &id, "--arguments"], &shown);
}

#[tokio::test]
async fn a_refused_authoring_operation_is_told_in_these_words() {
    let session = Session::with_dataset();
    let (project, _) = opened(&session).await;
    let caller = Proposer {
        token: None,
        name: "ana".to_owned(),
    };
    let context = MetaContext::new(project, SourceProbe::default(), caller);
    let registry = MetaRegistry::built_in().unwrap();
    let id = OperationId::parse("wayleave.meta.mapping.propose").unwrap();
    // A problem without a place has none in words either.
    let text = "[dataset]\nname = \"empty\"\n";
    let input = json!({ "dataset": "empty", "text": text, "reason": "to look" });
    let given: Map<_, _> = input.as_object().unwrap().clone();
    let refusal = registry.get(&id).unwrap().run(context, given).await;
    let refusal = refusal.unwrap_err();
    let why = Explanation::from(&refusal);
    assert!(!why.causes.is_empty());
    let words = ["meta", "mapping", "propose", "--input", &input.to_string()];
    let ran = session.run(&words).exits(1);
    let lines = why.lines().into_iter();
    let lines = lines.map(|(kind, text)| line(&format!("{kind}: {text}")));
    let told = lines.collect::<String>();
    assert_eq!(ran.stderr, told);
    assert!(!told.contains("0:0"), "{told}");
}
