//! PostgreSQL databases whose encoding is not UTF-8.

use serde_json::json;
use wayleave_model::mapping::Datatype::{Integer, String};
use wayleave_model::mapping::SourceKind;

use super::drawn::{DrawnTable, Edge};
use super::values::{plain, texts};

const KIND: SourceKind = SourceKind::Postgres;

/// Characters outside the encoding match no text, and cause no error.
#[tokio::test]
async fn postgres_is_asked_for_texts_that_its_encoding_does_not_have() {
    for (encoding, held) in [
        ("LATIN1", ["", "a", "A", "é", "É", "ß", "a "]),
        ("WIN1251", ["", "a", "A", "д", "Д", "ж", "a "]),
    ] {
        let strange = || ["日本", "😀", "Ā", "ж", "é"].map(|it| json!(it));
        let column = |field, declared, held: &[&str]| {
            Edge::new(field, String, declared, texts(KIND, held)).asked(strange())
        };
        let edges = vec![
            column("text", "text", &held),
            column("padded", "char(9)", &["a", "b"]),
            Edge::new("number", String, "int", plain(String, &["1", "10", "9"])).asked(strange()),
            Edge::new("size", Integer, "int", plain(Integer, &["1", "10", "9"])),
        ];
        DrawnTable::encoded(encoding, edges).await.check(30).await;
    }
}

/// An encoding may have another order; walks still sort by code point.
#[tokio::test]
async fn postgres_sorts_by_code_point_whatever_its_encoding() {
    let letters = texts(KIND, &["ё", "я", "Ё", "А", "а", "z"]);
    let edges = vec![Edge::new("letter", String, "text", letters)];
    DrawnTable::encoded("WIN1251", edges).await.sorts().await;
}
