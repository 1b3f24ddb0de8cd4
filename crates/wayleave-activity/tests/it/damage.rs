//! Verification finds every change of a log, and names the first changed record.

use std::fs;
use std::path::{Path, PathBuf};

use wayleave_activity::{ActivityReader, LogReport};
use wayleave_test::crash::copy_tree;

use crate::calls::{log_in, point_read, record, varied};

/// A log of three segments, two of them packed, with four records each.
fn log() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let log = log_in(folder.path());
    for at in 0..12 {
        record(&log, &varied(at));
        if at % 4 == 3 && at < 11 {
            log.rotate().unwrap();
        }
    }
    drop(log);
    assert!(verified(folder.path()).is_sound());
    folder
}

fn verified(folder: &Path) -> LogReport {
    ActivityReader::new(folder).verify(&[]).unwrap()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(folder.join("00"))
        .unwrap()
        .map(|it| it.unwrap().path())
        .collect();
    files.retain(|it| it.file_name() != Some("lock".as_ref()));
    files.sort();
    files
}

/// Number of the first record of a segment file; 0 for the head file.
fn first_record(file: &Path) -> u64 {
    match file.file_stem().unwrap().to_str().unwrap() {
        "00000001" => 1,
        "00000002" => 5,
        "00000003" => 9,
        _ => 0,
    }
}

fn share(full: usize) -> usize {
    if wayleave_test::is_full() { 1 } else { full }
}

#[test]
fn every_flipped_bit_is_found_and_no_record_before_it_is_blamed() {
    let log = log();
    let mut flips = 0;
    for file in files(log.path()) {
        let bytes = fs::read(&file).unwrap();
        for at in (0..bytes.len()).step_by(share(3)) {
            let bit = if share(2) == 1 {
                0..8
            } else {
                at % 8..at % 8 + 1
            };
            for bit in bit {
                let mut flipped = bytes.clone();
                flipped[at] ^= 1 << bit;
                fs::write(&file, flipped).unwrap();
                let report = verified(log.path());
                let damage = report.damages().next();
                let damage =
                    damage.unwrap_or_else(|| panic!("{} byte {at} bit {bit}", file.display()));
                assert!(damage.record >= first_record(&file), "{damage}");
                flips += 1;
            }
        }
        fs::write(&file, bytes).unwrap();
    }
    eprintln!("{flips} bits flipped");
    assert!(verified(log.path()).is_sound());
}

#[test]
fn every_truncation_is_found() {
    let log = log();
    for file in files(log.path()) {
        let bytes = fs::read(&file).unwrap();
        for length in (0..bytes.len()).step_by(share(2)) {
            fs::write(&file, &bytes[..length]).unwrap();
            assert!(
                !verified(log.path()).is_sound(),
                "{} {length}",
                file.display()
            );
        }
        fs::write(&file, bytes).unwrap();
    }
}

/// Splits an open segment into its header and its frames.
fn frames(bytes: &[u8]) -> (Vec<u8>, Vec<Vec<u8>>) {
    let (header, mut rest) = bytes.split_at(96);
    let mut frames = Vec::new();
    while !rest.is_empty() {
        let length = u32::from_le_bytes(rest[..4].try_into().unwrap()) as usize;
        let (frame, after) = rest.split_at(4 + length + 16);
        frames.push(frame.to_vec());
        rest = after;
    }
    (header.to_vec(), frames)
}

#[test]
fn every_dropped_swapped_and_repeated_record_is_found_and_named() {
    let log = log();
    let file = log.path().join("00/00000003.log");
    let bytes = fs::read(&file).unwrap();
    let (header, all) = frames(&bytes);
    let write = |frames: Vec<Vec<u8>>| {
        fs::write(&file, [header.clone(), frames.concat()].concat()).unwrap();
    };
    let named = || {
        let report = verified(log.path());
        report.damages().next().unwrap().record
    };
    assert_eq!(all.len(), 4);
    for at in 0..all.len() {
        let mut dropped = all.clone();
        dropped.remove(at);
        write(dropped);
        assert_eq!(named(), 9 + at as u64, "dropped {at}");
        for other in at + 1..all.len() {
            let mut swapped = all.clone();
            swapped.swap(at, other);
            write(swapped);
            assert_eq!(named(), 9 + at as u64, "swapped {at} {other}");
        }
        for to in 0..=all.len() {
            let mut repeated = all.clone();
            repeated.insert(to, all[at].clone());
            write(repeated);
            // Of a copy next to its original, the second of the two is damaged.
            let wanted = if to == at { at + 1 } else { to };
            assert_eq!(named(), 9 + wanted as u64, "repeated {at} at {to}");
        }
    }
    fs::write(&file, bytes).unwrap();
    assert!(verified(log.path()).is_sound());
}

#[test]
fn every_dropped_swapped_and_repeated_segment_is_found() {
    let log = log();
    let segments: Vec<_> = files(log.path())
        .into_iter()
        .filter(|it| first_record(it) > 0)
        .collect();
    assert_eq!(segments.len(), 3);
    let tampered = |change: &dyn Fn(&Path)| {
        let copy = tempfile::tempdir().unwrap();
        copy_tree(log.path(), copy.path());
        change(&copy.path().join("00"));
        verified(copy.path())
    };
    for one in &segments {
        let name = one.file_name().unwrap();
        let report = tampered(&|folder| fs::remove_file(folder.join(name)).unwrap());
        assert!(!report.is_sound(), "dropped {name:?}");
        for other in &segments {
            let to = other.file_name().unwrap();
            if one != other {
                let report = tampered(&|folder| {
                    fs::copy(folder.join(name), folder.join(to))
                        .map(drop)
                        .unwrap();
                });
                assert!(!report.is_sound(), "{name:?} in place of {to:?}");
            }
        }
        let report = tampered(&|folder| {
            let beyond = folder
                .join("00000004")
                .with_extension(one.extension().unwrap());
            fs::copy(folder.join(name), beyond).map(drop).unwrap();
        });
        assert!(!report.is_sound(), "{name:?} repeated");
    }
}

#[test]
fn a_shortened_log_that_is_written_on_stays_a_finding() {
    let log = log();
    let file = log.path().join("00/00000003.log");
    let (header, all) = frames(&fs::read(&file).unwrap());
    fs::write(&file, [header, all[..2].concat()].concat()).unwrap();
    let writing = log_in(log.path());
    record(&writing, &point_read(1));
    drop(writing);
    let report = verified(log.path());
    assert!(!report.is_sound());
    let damage = report.damages().next().unwrap();
    assert_eq!(damage.record, 11, "{damage}");
}

#[test]
fn drawn_damage_in_a_large_log_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let log = log_in(folder.path());
    for at in 0..3_000 {
        record(&log, &point_read(at));
        if at % 1_000 == 999 {
            log.rotate().unwrap();
        }
    }
    drop(log);
    let mut drawn = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..60 / share(3) {
        drawn = drawn
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let files = files(folder.path());
        let file = &files[(drawn >> 33) as usize % files.len()];
        let bytes = fs::read(file).unwrap();
        let mut flipped = bytes.clone();
        let at = (drawn >> 17) as usize % bytes.len();
        flipped[at] ^= 1 << (drawn % 8);
        fs::write(file, flipped).unwrap();
        assert!(
            !verified(folder.path()).is_sound(),
            "{} {at}",
            file.display()
        );
        fs::write(file, bytes).unwrap();
    }
    assert!(verified(folder.path()).is_sound());
}
