//! Sample calls to record.

use std::path::Path;

use wayleave_activity::{
    Activity, ActivityFilter, ActivityId, ActivityLog, ActivityReader, Agent, ArgumentRecord,
    CallOutcome, CallTransport, GrantUse, LogOptions, RecordList, SealedArguments, TraceParent,
};

/// A point read of realistic size.
pub(crate) fn point_read(key: u64) -> Activity {
    Activity {
        id: ActivityId::now(),
        micros: 180 + key % 50,
        transport: CallTransport {
            http: true,
            session: false,
        },
        method: "tools/call".to_owned(),
        target: Some("query_records".to_owned()),
        agent: Agent {
            token: format!("tok_{:08}", key % 7),
            client: Some("claude-code".to_owned()),
            version: Some("2.1.4".to_owned()),
        },
        grants: vec![GrantUse {
            grant: "grt_0123456789".to_owned(),
            connection: "crm-eu".to_owned(),
            dataset: "crm".to_owned(),
            mapping: [7; 32],
        }],
        streams: vec!["crm-eu/people".to_owned()],
        arguments: ArgumentRecord {
            digest: key.to_le_bytes().repeat(2).try_into().unwrap(),
            shape: "{stream:s,filter:{id:n},fields:[s]3}".to_owned(),
            sealed: Some(SealedArguments {
                key: 1,
                bytes: key.to_le_bytes().repeat(12),
            }),
        },
        used: RecordList {
            ids: vec![format!("crm-eu/people:{key}")],
            total: 1,
            digest: None,
        },
        generated: RecordList::default(),
        rows: 1,
        bytes: 412,
        answer: Some([9; 16]),
        outcome: CallOutcome::Completed,
        trace: None,
        suppressed: 0,
    }
}

/// Calls of every outcome, with every part of a record filled in.
pub(crate) fn varied(key: u64) -> Activity {
    let outcome = match key % 6 {
        0 => CallOutcome::Completed,
        1 => CallOutcome::ToolError {
            code: Some("unknown_field".to_owned()),
        },
        2 => CallOutcome::Failed { code: -32603 },
        3 => CallOutcome::Cancelled,
        4 => CallOutcome::Abandoned,
        _ => CallOutcome::Refused {
            reason: "budget".to_owned(),
        },
    };
    let ids: Vec<String> = (0..key % 5)
        .map(|at| format!("crm-eu/größe:{}", key + at))
        .collect();
    Activity {
        outcome,
        method: if key.is_multiple_of(4) {
            "x/y"
        } else {
            "resources/read"
        }
        .to_owned(),
        used: RecordList {
            total: ids.len() as u64 + key % 3,
            digest: (!key.is_multiple_of(3)).then_some([3; 32]),
            ids,
        },
        trace: TraceParent::parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
            .filter(|_| key.is_multiple_of(2)),
        suppressed: key % 2,
        ..point_read(key)
    }
}

pub(crate) fn log_in(folder: &Path) -> ActivityLog {
    ActivityLog::new(LogOptions::new(folder))
}

pub(crate) fn record(log: &ActivityLog, activity: &Activity) {
    log.append(activity).wait_blocking().unwrap();
}

pub(crate) fn all(folder: &Path) -> Vec<Activity> {
    let mut found = Vec::new();
    let reader = ActivityReader::new(folder);
    reader
        .each(&ActivityFilter::default(), |it| found.push(it))
        .unwrap();
    found
}
