//! Searches calls by the records and streams they used.

use std::fs;
use std::time::{Duration, SystemTime};

use wayleave_activity::{ActivityFilter, ActivityLog, ActivityReader, LogOptions};

use crate::calls::{point_read, record, varied};

#[test]
fn every_filter_finds_what_a_scan_finds_in_open_and_packed_segments() {
    let folder = tempfile::tempdir().unwrap();
    let log = ActivityLog::new(LogOptions {
        segment_bytes: 40 * 1024,
        ..LogOptions::new(folder.path())
    });
    let calls: Vec<_> = (0..600)
        .map(|at| {
            if at % 3 == 0 {
                varied(at)
            } else {
                point_read(at)
            }
        })
        .collect();
    for call in &calls {
        record(&log, call);
    }
    drop(log);
    let text = |text: &str| Some(text.to_owned());
    let middle = calls[300].id;
    let filters = [
        ActivityFilter::default(),
        ActivityFilter {
            id: Some(middle),
            ..Default::default()
        },
        ActivityFilter {
            record: text("crm-eu/people:301"),
            ..Default::default()
        },
        ActivityFilter {
            record: text("crm-eu/people:nobody"),
            ..Default::default()
        },
        ActivityFilter {
            token: text("tok_00000003"),
            ..Default::default()
        },
        ActivityFilter {
            dataset: text("crm"),
            outcome: text("cancelled"),
            ..Default::default()
        },
        ActivityFilter {
            stream: text("people"),
            outcome: text("refused"),
            ..Default::default()
        },
        ActivityFilter {
            stream: text("crm-eu/people"),
            target: text("none"),
            ..Default::default()
        },
        ActivityFilter {
            since_ms: Some(middle.started_ms()),
            ..Default::default()
        },
        ActivityFilter {
            until_ms: Some(middle.started_ms()),
            ..Default::default()
        },
    ];
    let reader = ActivityReader::new(folder.path());
    for filter in filters {
        let mut wanted: Vec<_> = calls
            .iter()
            .filter(|it| filter.matches(it))
            .cloned()
            .collect();
        let mut found = Vec::new();
        reader.each(&filter, |it| found.push(it)).unwrap();
        assert_eq!(found, wanted, "{filter:?}");
        wanted.reverse();
        wanted.truncate(7);
        assert_eq!(reader.latest(&filter, 7).unwrap(), wanted, "{filter:?}");
    }
}

#[test]
fn the_recent_calls_are_the_newest_of_all_writers() {
    let folder = tempfile::tempdir().unwrap();
    let open = || {
        ActivityLog::new(LogOptions {
            segment_bytes: 4 * 1024,
            ..LogOptions::new(folder.path())
        })
    };
    // Two programs at once: the first is busy early, the second later.
    let (first, second) = (open(), open());
    (0..100).for_each(|at| record(&first, &point_read(at)));
    (100..200).for_each(|at| record(&second, &point_read(at)));
    drop((first, second));
    // A segment may be packed, or its file restored, long after its calls.
    let mut writers: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|it| it.unwrap().path())
        .filter(|it| it.is_dir())
        .collect();
    writers.sort();
    let mut packed = 0;
    for file in fs::read_dir(&writers[0])
        .unwrap()
        .map(|it| it.unwrap().path())
    {
        if file.extension().is_some_and(|it| it == "arc") {
            let opened = fs::File::options().append(true).open(&file).unwrap();
            opened
                .set_modified(SystemTime::now() + Duration::from_hours(1))
                .unwrap();
            packed += 1;
        }
    }
    assert!(packed > 1, "{packed}");
    let reader = ActivityReader::new(folder.path());
    let newest = reader.latest(&ActivityFilter::default(), 20).unwrap();
    let mut recent = Vec::new();
    let whole = reader.recent(&ActivityFilter::default(), 50, |it| recent.push(it.id));
    assert!(!whole.unwrap());
    assert!((50..200).contains(&recent.len()), "{}", recent.len());
    for call in newest {
        assert!(recent.contains(&call.id), "a newest call was passed over");
    }
    let mut all = 0;
    let whole = reader.recent(&ActivityFilter::default(), 500, |_| all += 1);
    assert!(whole.unwrap());
    assert_eq!(all, 200);
}
