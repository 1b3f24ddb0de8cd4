//! Records with malformed values are counted, and do not delay the indexing of others.

use serde_json::json;
use wayleave_model::mapping::SourceKind;
use wayleave_plan::package::Package;

use super::library::Library;
use super::notes::{TABLE, ids, notes, search};
use crate::reading::database::Database;
use crate::reading::fixture::{Files, service};

/// Values of `updated_at` in one kind of store, as SQL literals.
struct Case {
    kind: SourceKind,
    datatype: &'static str,
    /// In ascending order.
    good: [&'static str; 4],
    malformed: [&'static str; 3],
}

impl Case {
    fn mapping(&self) -> String {
        let updated = "[streams.notes.fields.updated_at]\ndatatype = ";
        notes(1)
            .replace("kind = \"sqlite\"", &format!("kind = \"{}\"", self.kind))
            .replace(
                &format!("{updated}\"datetime\""),
                &format!("{updated}\"{}\"", self.datatype),
            )
    }

    fn table(&self) -> String {
        let (time, lax) = match self.kind {
            SourceKind::Sqlite => ("", ""),
            SourceKind::Postgres => ("timestamptz", ""),
            // Otherwise the server refuses the zero date.
            _ => ("DATETIME(6)", "SET sql_mode = '';\n"),
        };
        let table = TABLE
            .replace(
                "sent_at TEXT, updated_at TEXT",
                "sent_at TIMESTAMP NULL, updated_at TIME_TYPE",
            )
            .replace("TIME_TYPE", time);
        let table = match self.kind {
            SourceKind::Postgres => table.replace("BOOLEAN DEFAULT 0", "BOOLEAN DEFAULT false"),
            _ => table,
        };
        format!("{lax}{table}\n")
    }

    fn insert(id: usize, updated: &str) -> String {
        format!(
            "INSERT INTO notes (id, body, updated_at) VALUES ({id}, 'anchor n{id}', {updated});\n"
        )
    }

    /// Indexes two valid records and three malformed ones, then another valid one, then a repaired
    /// one.
    async fn check(&self, more: &str) {
        let mut sql = self.table() + more;
        let values = self.good.iter().take(2).chain(&self.malformed);
        for (id, updated) in values.enumerate() {
            sql += &Self::insert(id + 1, updated);
        }
        let database = Database::new(self.kind, &sql).await;
        let service = database.service(&self.mapping());
        let library = Library::from_service(&service, &[]).await;
        let case = format!("{} {} {more}", self.kind, self.datatype);
        let counted = || {
            let indexes = library.indexes.lock().unwrap();
            let index = indexes.values().next().unwrap();
            assert!(index.stamp().bookmark.is_some(), "{case}");
            (index.documents(), index.stamp().malformed())
        };
        let found = async |q: &str| {
            let found = search(&service, &Package::local(), json!({ "q": q })).await;
            ids(&found).len()
        };
        // Their words are readable, and are found.
        assert_eq!(counted(), (5, 3), "{case}");
        assert_eq!(found("anchor").await, 5, "{case}");
        database.execute(&Self::insert(6, self.good[2])).await;
        // Each record is counted once, however often the index is refreshed.
        for _ in 0..2 {
            library.index_all(&service, &[]).await;
            assert_eq!(found("n6").await, 1, "{case}");
            assert_eq!(counted(), (6, 3), "{case}");
        }
        let repaired = format!(
            "UPDATE notes SET body = 'repaired', updated_at = {} WHERE id = 4",
            self.good[3]
        );
        database.execute(&repaired).await;
        library.index_all(&service, &[]).await;
        assert_eq!(found("repaired").await, 1, "{case}");
        assert_eq!(counted(), (6, 2), "{case}");
        database.store.close().await;
    }
}

const TIMES: [&str; 4] = [
    "'2026-02-01 00:00:00'",
    "'2026-02-02 00:00:00'",
    "'2026-02-03 00:00:00'",
    "'2026-02-04 00:00:00'",
];

#[tokio::test]
async fn a_record_whose_update_time_is_malformed_is_counted_and_holds_up_no_other() {
    let kind = SourceKind::Sqlite;
    for more in ["", "CREATE INDEX by_updated ON notes (updated_at);\n"] {
        for malformed in [
            ["'garbage'", "1e300", "x'00'"],
            ["'2026-02-02T99:99:99Z'", "''", "'2027-05-05 nonsense'"],
        ] {
            let case = Case {
                kind,
                datatype: "datetime",
                good: TIMES,
                malformed,
            };
            case.check(more).await;
        }
        let case = Case {
            kind,
            datatype: "integer",
            good: ["1", "2", "3", "4"],
            malformed: ["'unknown'", "x'ff'", "'2?'"],
        };
        case.check(more).await;
    }
}

#[tokio::test]
async fn a_time_without_end_in_postgres_and_a_day_zero_in_mariadb_hold_up_no_index() {
    let case = Case {
        kind: SourceKind::Postgres,
        datatype: "datetime",
        good: TIMES,
        malformed: ["'infinity'", "'-infinity'", "'infinity'"],
    };
    case.check("").await;
    let case = Case {
        kind: SourceKind::Mysql,
        datatype: "datetime",
        good: TIMES,
        malformed: ["'0000-00-00'", "'2026-00-00'", "'2026-02-00'"],
    };
    case.check("").await;
}

#[tokio::test]
async fn a_record_whose_key_is_malformed_is_skipped_and_counted() {
    let mut sql = TABLE.replace("id INTEGER PRIMARY KEY", "id");
    for id in ["1", "2", "'x'", "x'00'"] {
        sql += &format!(
            "INSERT INTO notes (id, body, updated_at) VALUES ({id}, 'anchor', {});\n",
            TIMES[0]
        );
    }
    let files = Files::new(&[("s00", &sql)]);
    let service = service(&[&notes(1)], &files);
    let library = Library::from_service(&service, &[]).await;
    let found = search(&service, &Package::local(), json!({ "q": "anchor" })).await;
    assert_eq!(ids(&found), ["c00/notes:1", "c00/notes:2"]);
    let indexes = library.indexes.lock().unwrap();
    let index = indexes.values().next().unwrap();
    assert_eq!((index.documents(), index.stamp().malformed()), (2, 2));
}
