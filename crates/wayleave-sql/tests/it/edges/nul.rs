//! Texts that contain NUL, in stores that can hold them.

use wayleave_model::mapping::{Datatype, SourceKind};

use super::drawn::{DrawnTable, Edge};
use super::values::texts;

/// Some differ only in the number of NULs at their end.
const HELD: [&str; 8] = ["", "\0", "\0\0", "a", "a\0", "a\0b", "a\u{1}", "b"];

#[tokio::test]
async fn a_nul_counts_like_any_other_character() {
    for (kind, declared) in [
        (SourceKind::Mysql, "varchar(20)"),
        (SourceKind::Mysql, "text CHARACTER SET latin1"),
        (SourceKind::Sqlite, "TEXT"),
        (SourceKind::Sqlite, "TEXT COLLATE NOCASE"),
        (SourceKind::Sqlite, "UUID"),
    ] {
        let edge = || Edge::new("name", Datatype::String, declared, texts(kind, &HELD));
        DrawnTable::new(kind, "", vec![edge()])
            .await
            .check(20)
            .await;
        if kind == SourceKind::Sqlite {
            let drawn = DrawnTable::new(kind, "", vec![edge()]).await;
            drawn.indexed().await.check(20).await;
        }
    }
}
