//! Records are read back as written, and a writer continues the log of an earlier one.

use std::{
    fs,
    time::{Duration, Instant},
};

use wayleave_activity::{ActivityFilter, ActivityLog, ActivityReader, LogOptions, SegmentSeal};

use crate::calls::{all, log_in, point_read, record, varied};

#[test]
fn everything_a_record_holds_is_read_back_before_and_after_packing() {
    let folder = tempfile::tempdir().unwrap();
    let calls: Vec<_> = (0..60).map(varied).collect();
    let log = log_in(folder.path());
    for (at, call) in calls.iter().enumerate() {
        record(&log, call);
        if at % 17 == 0 {
            log.rotate().unwrap();
        }
    }
    drop(log);
    assert_eq!(all(folder.path()), calls);
    let packed = fs::read_dir(folder.path().join("00")).unwrap();
    let packed =
        packed.filter(|it| it.as_ref().unwrap().path().extension() == Some("arc".as_ref()));
    assert_eq!(packed.count(), 4);
    let report = ActivityReader::new(folder.path()).verify(&[]).unwrap();
    assert!(report.is_sound(), "{report:?}");
    assert_eq!(report.writers[0].records, 60);
}

#[test]
fn a_writer_continues_the_chain_of_the_one_before_it() {
    let folder = tempfile::tempdir().unwrap();
    for at in 0..5 {
        let log = log_in(folder.path());
        record(&log, &point_read(at));
    }
    assert_eq!(all(folder.path()).len(), 5);
    let report = ActivityReader::new(folder.path()).verify(&[]).unwrap();
    assert!(report.is_sound(), "{report:?}");
    assert_eq!((report.writers.len(), report.writers[0].segments), (1, 1));
}

#[test]
fn two_writers_at_a_time_have_a_chain_each() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (log_in(folder.path()), log_in(folder.path()));
    for at in 0..10 {
        record(&one, &point_read(at));
        record(&other, &point_read(at + 100));
    }
    let report = ActivityReader::new(folder.path()).verify(&[]).unwrap();
    assert!(report.is_sound(), "{report:?}");
    assert_eq!(report.writers.len(), 2);
    let found = ActivityReader::new(folder.path())
        .latest(&ActivityFilter::default(), 3)
        .unwrap();
    assert_eq!(found.len(), 3);
    assert!(found.is_sorted_by(|one, next| one.id > next.id));
}

#[test]
fn callers_on_many_threads_are_recorded_once_each_in_both_modes() {
    for sync in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let log = ActivityLog::new(LogOptions {
            sync,
            segment_bytes: 8 * 1024,
            ..LogOptions::new(folder.path())
        });
        std::thread::scope(|scope| {
            for thread in 0..8_u64 {
                let log = &log;
                scope.spawn(move || {
                    for at in 0..40 {
                        record(log, &point_read(thread * 1_000 + at));
                    }
                });
            }
        });
        drop(log);
        let mut ids: Vec<_> = all(folder.path())
            .iter()
            .map(|it| it.used.ids.clone())
            .collect();
        assert_eq!(ids.len(), 320);
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 320);
        let report = ActivityReader::new(folder.path()).verify(&[]).unwrap();
        assert!(report.is_sound(), "{report:?}");
        assert!(report.writers[0].segments > 5);
    }
}

#[test]
fn retention_drops_old_segments_and_leaves_a_proof() {
    let folder = tempfile::tempdir().unwrap();
    let log = log_in(folder.path());
    for at in 0..6 {
        record(&log, &point_read(at));
        log.rotate().unwrap();
    }
    drop(log);
    // Wait until the records are older than the retention period.
    let recorded = Instant::now();
    while recorded.elapsed() < Duration::from_millis(20) {
        std::thread::yield_now();
    }
    let keeping = LogOptions {
        keep: Some(Duration::from_millis(1)),
        ..LogOptions::new(folder.path())
    };
    let log = ActivityLog::new(keeping);
    record(&log, &point_read(100));
    drop(log);
    let left = all(folder.path());
    assert_eq!(left.len(), 1, "{left:?}");
    let reader = ActivityReader::new(folder.path());
    let report = reader.verify(&[]).unwrap();
    assert!(report.is_sound(), "{report:?}");
    assert_eq!(report.writers[0].dropped, 6);
    // Without the proof the same folder is damaged.
    let other = tempfile::tempdir().unwrap();
    let log = log_in(other.path());
    for at in 0..3 {
        record(&log, &point_read(at));
        log.rotate().unwrap();
    }
    drop(log);
    fs::remove_file(other.path().join("00/00000001.arc")).unwrap();
    let report = ActivityReader::new(other.path()).verify(&[]).unwrap();
    assert_eq!(report.writers[0].damage.as_ref().unwrap().record, 1);
}

#[test]
fn a_chain_rewritten_with_its_head_is_found_by_the_seals_kept_elsewhere() {
    let (folder, forged) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for (folder, key) in [(&folder, 0), (&forged, 50)] {
        let log = log_in(folder.path());
        record(&log, &point_read(key));
        log.rotate().unwrap();
        record(&log, &point_read(key + 1));
    }
    let seals: Vec<SegmentSeal> = ActivityReader::new(folder.path()).seals().unwrap();
    assert_eq!(seals.len(), 1);
    let sound = ActivityReader::new(folder.path()).verify(&seals).unwrap();
    assert!(sound.is_sound(), "{sound:?}");
    let forged = ActivityReader::new(forged.path()).verify(&seals).unwrap();
    assert!(!forged.is_sound());
    // The same chain, with its end and its head removed.
    fs::remove_file(folder.path().join("00/00000001.arc")).unwrap();
    fs::remove_file(folder.path().join("00/00000002.log")).unwrap();
    fs::remove_file(folder.path().join("00/head")).unwrap();
    assert!(
        !ActivityReader::new(folder.path())
            .verify(&seals)
            .unwrap()
            .is_sound()
    );
}

#[test]
fn a_million_point_reads_take_at_most_400_bytes_each() {
    let full = wayleave_test::is_full();
    let count = if full { 1_000_000 } else { 20_000 };
    let folder = tempfile::tempdir().unwrap();
    let log = ActivityLog::new(LogOptions {
        segment_bytes: if full {
            LogOptions::SEGMENT_BYTES
        } else {
            1 << 20
        },
        ..LogOptions::new(folder.path())
    });
    for at in 0..count {
        record(&log, &point_read(at));
    }
    drop(log);
    let files = fs::read_dir(folder.path().join("00")).unwrap();
    let bytes: u64 = files.map(|it| it.unwrap().metadata().unwrap().len()).sum();
    eprintln!("{} bytes a call", bytes / count);
    assert!(bytes / count <= 400, "{} bytes a call", bytes / count);
}
