//! Changes by someone with write access to the database, and how `verify` reports them.
#![allow(
    clippy::disallowed_methods,
    reason = "tests open the ledger's file themselves"
)]

use std::fs;
use std::path::Path;

use crate::project::{NOW, ledger_of, source, tamper};
use rusqlite::{Connection, params};
use sha2::{Digest as _, Sha256};
use wayleave_ledger::{EntryHash, Head, Ledger as _, LedgerError, Problem, SqliteLedger, Witness};

const ENTRIES: i64 = 6;

fn change(folder: &Path, sql: &str) {
    tamper(folder, |conn| {
        conn.execute_batch(sql).unwrap();
    });
}

async fn problem(ledger: &SqliteLedger) -> Option<Problem> {
    ledger.verify(None).await.unwrap().problem
}

#[tokio::test]
async fn a_flipped_byte_in_any_column_is_found_at_its_entry() {
    let (dir, ledger) = ledger_of(6).await;
    let folder = dir.path().join(".wayleave");
    let conn = Connection::open(folder.join("ledger.db")).unwrap();
    for seq in 1..=ENTRIES {
        for column in ["kind", "body", "prev_hash", "hash"] {
            let sql = format!("SELECT CAST({column} AS BLOB) FROM entries WHERE seq = ?1");
            let whole: Vec<u8> = conn.query_row(&sql, [seq], |row| row.get(0)).unwrap();
            // One bit of each byte, in rotation; the unit tests flip all bits in memory.
            for place in 0..whole.len() {
                let mut bytes = whole.clone();
                bytes[place] ^= 1 << (place % 8);
                put(&folder, seq, column, &bytes);
                let found = problem(&ledger).await.and_then(|problem| problem.seq());
                assert_eq!(
                    found,
                    u64::try_from(seq).ok(),
                    "{column} of {seq}, byte {place}"
                );
            }
            put(&folder, seq, column, &whole);
        }
    }
    assert_eq!(problem(&ledger).await, None);
}

fn put(folder: &Path, seq: i64, column: &str, bytes: &[u8]) {
    let text = matches!(column, "kind" | "body");
    let value = if text { "CAST(?1 AS TEXT)" } else { "?1" };
    tamper(folder, |conn| {
        let sql = format!("UPDATE entries SET {column} = {value} WHERE seq = ?2");
        conn.execute(&sql, params![bytes, seq]).unwrap();
    });
}

#[tokio::test]
async fn each_deed_is_named_with_its_first_bad_entry() {
    let renumber = "UPDATE entries SET seq = -seq; UPDATE entries SET seq = 1 - seq;";
    for (deed, expected) in [
        (
            "UPDATE entries SET at = at + 1 WHERE seq = 4",
            Problem::Altered { seq: 4 },
        ),
        (
            "DELETE FROM entries WHERE seq = 1",
            Problem::Gap { seq: 1, found: 2 },
        ),
        (
            "DELETE FROM entries WHERE seq = 3",
            Problem::Gap { seq: 3, found: 4 },
        ),
        (
            "UPDATE entries SET seq = 9 WHERE seq = 6",
            Problem::Gap { seq: 6, found: 9 },
        ),
        (
            "UPDATE entries SET seq = -1 WHERE seq = 2",
            Problem::Gap { seq: 1, found: 0 },
        ),
        (
            "DELETE FROM entries WHERE seq = 2; UPDATE entries SET seq = seq - 1 WHERE seq > 2",
            Problem::Altered { seq: 2 },
        ),
        (renumber, Problem::Gap { seq: 1, found: 2 }),
        (
            "UPDATE entries SET seq = 7 - seq",
            Problem::Altered { seq: 1 },
        ),
        (
            "UPDATE entries SET body = (SELECT body FROM entries WHERE seq = 5) WHERE seq = 4",
            Problem::Altered { seq: 4 },
        ),
    ] {
        let (dir, ledger) = ledger_of(6).await;
        let deed = deed.replace("UPDATE entries SET seq = 7 - seq", REVERSE);
        change(&dir.path().join(".wayleave"), &deed);
        assert_eq!(problem(&ledger).await, Some(expected.clone()), "{deed}");
        drop(ledger);
        assert_refuses(&crate::project::ledger(&dir.path().join(".wayleave"))).await;
    }
}

#[tokio::test]
async fn an_entry_altered_under_a_running_process_is_not_handed_out() {
    let (dir, ledger) = ledger_of(6).await;
    ledger.state().await.unwrap();
    change(
        &dir.path().join(".wayleave"),
        "UPDATE entries SET at = at + 1 WHERE seq = 4",
    );
    let error = ledger.entries(2, 10).await.unwrap_err();
    assert!(error.to_string().contains("entry 4 was altered"), "{error}");
    assert_eq!(ledger.entries(4, 10).await.unwrap().len(), 2);
}

const REVERSE: &str =
    "UPDATE entries SET seq = -seq; UPDATE entries SET seq = 7 + seq WHERE seq < 0";

async fn assert_refuses(ledger: &SqliteLedger) {
    let read = ledger.state().await.unwrap_err();
    assert!(matches!(read, LedgerError::Tampered { .. }), "{read}");
    let written = ledger.append(NOW, source("more")).await.unwrap_err();
    assert!(matches!(written, LedgerError::Tampered { .. }), "{written}");
}

#[tokio::test]
async fn a_cut_tail_is_found_by_the_head_file_and_never_papered_over() {
    for kept in 0..ENTRIES {
        let (dir, ledger) = ledger_of(6).await;
        let folder = dir.path().join(".wayleave");
        let before = fs::read(folder.join("ledger.head")).unwrap();
        change(&folder, &format!("DELETE FROM entries WHERE seq > {kept}"));
        let found = problem(&ledger).await.unwrap();
        assert_eq!(found.seq(), u64::try_from(kept + 1).ok());
        assert!(
            matches!(
                found,
                Problem::Truncated {
                    witness: Witness::HeadFile,
                    ..
                }
            ),
            "{found}"
        );
        drop(ledger);
        let ledger = crate::project::ledger(&folder);
        assert_refuses(&ledger).await;
        assert_eq!(fs::read(folder.join("ledger.head")).unwrap(), before);
    }
}

#[tokio::test]
async fn an_emptied_ledger_without_its_head_file_is_found() {
    let (dir, ledger) = ledger_of(6).await;
    let folder = dir.path().join(".wayleave");
    drop(ledger);
    change(&folder, "DELETE FROM entries");
    fs::remove_file(folder.join("ledger.head")).unwrap();
    let ledger = crate::project::ledger(&folder);
    assert_eq!(problem(&ledger).await, Some(Problem::Empty));
    assert_refuses(&ledger).await;
}

#[tokio::test]
async fn a_damaged_head_file_is_found() {
    let (dir, ledger) = ledger_of(3).await;
    let path = dir.path().join(".wayleave/ledger.head");
    let whole = fs::read(&path).unwrap();
    for bit in 0..whole.len() * 8 {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, &bytes).unwrap();
        let found = problem(&ledger).await;
        assert!(
            matches!(
                found,
                Some(Problem::HeadDamaged | Problem::Rewritten { .. } | Problem::Truncated { .. })
            ),
            "bit {bit}: {found:?}"
        );
    }
    for bytes in [
        b"".as_slice(),
        &whole[..whole.len() - 1],
        &[&whole[..], b"\n"].concat(),
    ] {
        fs::write(&path, bytes).unwrap();
        assert_eq!(problem(&ledger).await, Some(Problem::HeadDamaged));
    }
}

#[tokio::test]
async fn a_dropped_or_altered_guard_is_found() {
    for (deed, object) in [
        ("DROP TRIGGER entries_never_change", "entries_never_change"),
        ("CREATE INDEX quick ON entries (at)", "quick"),
        (
            "DROP TRIGGER entries_never_go; CREATE TRIGGER entries_never_go \
             BEFORE DELETE ON entries BEGIN SELECT 1; END",
            "entries_never_go",
        ),
    ] {
        let (dir, ledger) = ledger_of(2).await;
        let conn = Connection::open(dir.path().join(".wayleave/ledger.db")).unwrap();
        conn.execute_batch(deed).unwrap();
        let object = object.to_owned();
        assert_eq!(
            problem(&ledger).await,
            Some(Problem::SchemaAltered { object }),
            "{deed}"
        );
    }
}

#[tokio::test]
async fn a_ledger_cut_under_a_running_process_is_refused_by_it() {
    let (dir, ledger) = ledger_of(6).await;
    let folder = dir.path().join(".wayleave");
    ledger.state().await.unwrap();
    rebuild(&folder, 4, |_| {});
    assert!(
        problem(&ledger).await.is_none(),
        "the folder alone looks whole"
    );
    let error = ledger.state().await.unwrap_err();
    assert!(
        error.to_string().contains("this process knows entry 6"),
        "{error}"
    );
}

/// Keeps the first entries, changes them by `deed`, and recomputes every hash and the head file, as
/// someone with write access to the whole folder can. Repeats the encoding here, as its
/// specification.
fn rebuild(folder: &Path, keep: i64, deed: impl FnOnce(&Connection)) {
    tamper(folder, |conn| {
        conn.execute("DELETE FROM entries WHERE seq > ?1", [keep])
            .unwrap();
        deed(conn);
        let mut prev = [0_u8; 32];
        for seq in 1..=keep {
            let (at, kind, body): (i64, String, String) = conn
                .query_row(
                    "SELECT at, kind, body FROM entries WHERE seq = ?1",
                    [seq],
                    |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
                )
                .unwrap();
            let mut sha = Sha256::new();
            for field in [
                b"wayleave ledger entry 1".as_slice(),
                &prev,
                &seq.to_be_bytes(),
                &at.to_be_bytes(),
                kind.as_bytes(),
                body.as_bytes(),
            ] {
                sha.update((field.len() as u64).to_be_bytes());
                sha.update(field);
            }
            let hash: [u8; 32] = sha.finalize().into();
            let sql = "UPDATE entries SET prev_hash = ?1, hash = ?2 WHERE seq = ?3";
            conn.execute(sql, params![prev, hash, seq]).unwrap();
            prev = hash;
        }
        let head = Head {
            seq: keep.unsigned_abs(),
            hash: EntryHash::from_bytes(prev),
        };
        fs::write(
            folder.join("ledger.head"),
            format!("wayleave-ledger-head 1 {head}\n"),
        )
        .unwrap();
    });
}

fn backdate(conn: &Connection) {
    conn.execute("UPDATE entries SET at = 0 WHERE seq = 3", [])
        .unwrap();
}

#[tokio::test]
async fn a_chain_rebuilt_without_the_head_file_is_found_by_it() {
    let (dir, ledger) = ledger_of(6).await;
    let folder = dir.path().join(".wayleave");
    let head = fs::read(folder.join("ledger.head")).unwrap();
    rebuild(&folder, ENTRIES, backdate);
    fs::write(folder.join("ledger.head"), head).unwrap();
    let found = problem(&ledger).await.unwrap();
    assert!(
        matches!(
            found,
            Problem::Rewritten {
                witness: Witness::HeadFile,
                ..
            }
        ),
        "{found}"
    );
}

#[tokio::test]
async fn a_chain_rebuilt_with_its_head_file_is_found_only_by_a_head_kept_elsewhere() {
    let (dir, ledger) = ledger_of(6).await;
    let folder = dir.path().join(".wayleave");
    let anchor = ledger.verify(None).await.unwrap().head.unwrap();
    assert!(ledger.verify(Some(anchor)).await.unwrap().is_ok());
    rebuild(&folder, ENTRIES, backdate);
    // The documented limit of detection.
    assert_eq!(problem(&ledger).await, None);
    let found = ledger.verify(Some(anchor)).await.unwrap().problem.unwrap();
    assert_eq!(
        found,
        Problem::Rewritten {
            known: anchor,
            witness: Witness::Anchor
        }
    );

    rebuild(&folder, 4, |_| {});
    let found = ledger.verify(Some(anchor)).await.unwrap().problem.unwrap();
    assert_eq!(
        found,
        Problem::Truncated {
            last: 4,
            known: anchor,
            witness: Witness::Anchor
        }
    );
}

#[tokio::test]
async fn an_older_anchor_still_holds_when_the_ledger_has_grown() {
    let (_dir, ledger) = ledger_of(3).await;
    let anchor = ledger.verify(None).await.unwrap().head;
    ledger.append(NOW, source("later")).await.unwrap();
    assert!(ledger.verify(anchor).await.unwrap().is_ok());
}
