//! Appends calls to a log, and prints the id of each once it is recorded: `append FOLDER COUNT
//! [sync] [rotate]`.
//!
//! Tests kill this program and make its system calls fail.
#![allow(clippy::print_stderr, reason = "it is what it does")]

use std::{env, io::Write as _, process::ExitCode};

use wayleave_activity::{
    Activity, ActivityId, ActivityLog, Agent, ArgumentRecord, CallOutcome, CallTransport,
    LogOptions, RecordList,
};

fn activity(number: usize) -> Activity {
    Activity {
        id: ActivityId::now(),
        micros: 250,
        transport: CallTransport {
            http: true,
            session: false,
        },
        method: "tools/call".to_owned(),
        target: Some("fetch".to_owned()),
        agent: Agent::default(),
        grants: Vec::new(),
        streams: Vec::new(),
        arguments: ArgumentRecord::default(),
        used: RecordList {
            ids: vec![format!("crm/people:{number}")],
            total: 1,
            digest: None,
        },
        generated: RecordList::default(),
        rows: 1,
        bytes: 100,
        answer: None,
        outcome: CallOutcome::Completed,
        trace: None,
        suppressed: 0,
    }
}

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let [folder, count, flags @ ..] = words.as_slice() else {
        return ExitCode::from(2);
    };
    let has = |flag: &str| flags.iter().any(|it| it == flag);
    let log = ActivityLog::new(LogOptions {
        sync: has("sync"),
        ..LogOptions::new(folder)
    });
    for number in 0..count.parse().unwrap_or(0) {
        let activity = activity(number);
        let id = activity.id;
        if let Err(error) = log.append(&activity).wait_blocking() {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
        let mut out = std::io::stdout();
        if let Err(error) = writeln!(out, "{id}").and_then(|()| out.flush()) {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
        if has("rotate")
            && let Err(error) = log.rotate()
        {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
