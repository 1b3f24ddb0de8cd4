//! Case-insensitive comparison: every store folds the same letters.

use serde_json::json;
use wayleave_model::mapping::SourceKind;
use wayleave_plan::value::{fold, is_folded};
use wayleave_store::conformance::ServedMapping;

use crate::stores::{KINDS, LoadedDatabase, all, arguments, mapping, patient, text_literal};

/// The letters that plans fold, the letters that a server may fold to one of them, and a share of
/// all others that have another case in some table of Unicode.
fn letters() -> Vec<char> {
    let cased = |c: &char| !c.to_lowercase().eq([*c]) || !c.to_uppercase().eq([*c]);
    let is_near = |c: char| {
        let mut forms = c.to_lowercase().chain(c.to_uppercase()).chain([c]);
        forms.any(|it| is_folded(it) || is_folded(it.to_ascii_uppercase()))
    };
    let all = ('!'..=char::MAX).filter(cased).enumerate();
    let some = all.filter(|(place, c)| place % 16 == 0 || is_near(*c));
    some.map(|(_, c)| c).chain("日ß×÷ªﬀ'\\%_".chars()).collect()
}

fn sql(kind: SourceKind, letters: &[char]) -> String {
    let text = match kind {
        SourceKind::Mysql => "varchar(20) CHARACTER SET utf8mb4",
        _ => "varchar(20)",
    };
    let rows = letters.iter().enumerate().map(|(id, letter)| {
        let text = text_literal(kind, &format!("x{letter}y"));
        format!("({id}, {text})")
    });
    let rows: Vec<String> = rows.collect();
    format!(
        "CREATE TABLE things (id integer PRIMARY KEY, name {text}); INSERT INTO things VALUES {};",
        rows.join(", ")
    )
}

/// Filters by the folded form of many letters at once.
async fn check(loaded: &LoadedDatabase, letters: &[char]) {
    let store = loaded.store();
    let served = ServedMapping::new(&mapping(loaded.kind, &[("things", &[("name", "string")])]));
    let served = served.unwrap();
    for batch in letters.chunks(40) {
        let any = batch
            .iter()
            .map(|it| json!({"name": {"ieq": format!("X{it}Y")}}));
        let any: Vec<_> = any.collect();
        let asked = json!({"stream": "things", "fields": ["name"], "sort": ["id"], "limit": 100,
            "filter": {"any": any}});
        let plan = served.query(&arguments(asked)).unwrap();
        let found = all(store.as_ref(), plan.rows(), &patient()).await.unwrap();
        let found: Vec<String> = found
            .iter()
            .filter_map(|row| {
                row.iter()
                    .find_map(|it| it.to_text().filter(|it| it.contains('x')))
            })
            .collect();
        let folded: Vec<String> = batch.iter().map(|it| fold(&format!("x{it}y"))).collect();
        let expected = letters.iter().map(|it| format!("x{it}y"));
        let expected: Vec<String> = expected.filter(|it| folded.contains(&fold(it))).collect();
        assert_eq!(found, expected, "{}", loaded.kind);
    }
    store.close().await;
}

#[tokio::test]
async fn every_store_folds_the_same_letters() {
    let letters = letters();
    for kind in KINDS {
        check(
            &LoadedDatabase::new(kind, &sql(kind, &letters)).await,
            &letters,
        )
        .await;
    }
    if let Some(loaded) = LoadedDatabase::on_mysql(&sql(SourceKind::Mysql, &letters)).await {
        check(&loaded, &letters).await;
    }
}

/// A database in another encoding lacks some letters, and is asked for all of them.
#[tokio::test]
async fn postgres_folds_letters_of_another_encoding() {
    let letters: Vec<char> = ('!'..='~').chain('\u{C0}'..='\u{FF}').collect();
    let loaded = LoadedDatabase::encoded("LATIN1", &sql(SourceKind::Postgres, &letters)).await;
    check(&loaded, &letters).await;
}
