//! The database schema, as migration steps. A released step never changes; new ones are appended.

use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::verify::Problem;

/// Step `n` (from 1) brings a database from `user_version` `n - 1` to `n`, and sets it.
const STEPS: &[&str] = &[
    include_str!("schema/1.sql"),
    include_str!("schema/2.sql"),
    include_str!("schema/3.sql"),
    include_str!("schema/4.sql"),
];

/// `PRAGMA application_id` of a ledger: `WLLG`.
pub(super) const APPLICATION_ID: i64 = 0x574c_4c47;

/// The newest schema version this program knows.
#[expect(clippy::expect_used, reason = "the steps are written out above")]
pub(super) fn newest() -> i64 {
    i64::try_from(STEPS.len()).expect("a few steps")
}

/// The schema version of a database.
pub(super) fn version(conn: &Connection) -> rusqlite::Result<i64> {
    conn.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Applies the missing steps in one transaction.
pub(super) fn migrate(conn: &Connection) -> rusqlite::Result<()> {
    take(conn, STEPS)
}

#[expect(
    clippy::disallowed_methods,
    reason = "steps are constants of this program, and several statements each"
)]
fn take(conn: &Connection, steps: &'static [&'static str]) -> rusqlite::Result<()> {
    let tx = Transaction::new_unchecked(conn, TransactionBehavior::Immediate)?;
    // Read under the lock: another process may have just migrated.
    let done = usize::try_from(version(&tx)?).unwrap_or(usize::MAX);
    for step in steps.iter().skip(done) {
        tx.execute_batch(step)?;
    }
    tx.commit()
}

/// Checks that the tables and triggers are those that the steps create.
pub(super) fn check(conn: &Connection) -> rusqlite::Result<Result<(), Problem>> {
    let model = Connection::open_in_memory()?;
    migrate(&model)?;
    let (made, found) = (objects(&model)?, objects(conn)?);
    let missing = made.iter().find(|object| !found.contains(object));
    let odd = missing.or_else(|| found.iter().find(|object| !made.contains(object)));
    Ok(match odd {
        Some((object, _)) => Err(Problem::SchemaAltered {
            object: object.clone(),
        }),
        None => Ok(()),
    })
}

fn objects(conn: &Connection) -> rusqlite::Result<Vec<(String, Option<String>)>> {
    conn.prepare("SELECT name, sql FROM sqlite_schema ORDER BY name")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_sets_its_own_version() {
        for taken in 0..=STEPS.len() {
            let conn = Connection::open_in_memory().unwrap();
            take(&conn, &STEPS[..taken]).unwrap();
            assert_eq!(version(&conn).unwrap(), i64::try_from(taken).unwrap());
        }
    }

    #[test]
    fn a_ledger_can_be_told_from_other_databases() {
        let conn = Connection::open_in_memory().unwrap();
        migrate(&conn).unwrap();
        let id: i64 = conn
            .query_row("PRAGMA application_id", [], |row| row.get(0))
            .unwrap();
        assert_eq!(id, APPLICATION_ID);
    }

    #[test]
    fn only_missing_steps_are_taken_and_a_failing_one_undoes_them_all() {
        const GOOD: &[&str] = &[
            "CREATE TABLE a (x); INSERT INTO a VALUES (1); PRAGMA user_version = 1;",
            "ALTER TABLE a ADD COLUMN y; PRAGMA user_version = 2;",
        ];
        const BAD: &[&str] = &[
            "this step was taken and must not be taken again",
            "ALTER TABLE a ADD COLUMN y; PRAGMA user_version = 2;",
            "CREATE TABLE b (x); this is not SQL;",
        ];
        let conn = Connection::open_in_memory().unwrap();
        take(&conn, &GOOD[..1]).unwrap();
        take(&conn, BAD).unwrap_err();
        assert_eq!(version(&conn).unwrap(), 1);
        assert_eq!(objects(&conn).unwrap().len(), 1);
        take(&conn, GOOD).unwrap();
        take(&conn, GOOD).unwrap();
        assert_eq!(version(&conn).unwrap(), 2);
        let row: (i64, Option<i64>) = conn
            .query_row("SELECT x, y FROM a", [], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .unwrap();
        assert_eq!(row, (1, None));
    }
}
