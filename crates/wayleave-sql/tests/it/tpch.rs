//! The questions of TPC-H, each as one call, compared with the SQL of the specification.
//!
//! PostgreSQL runs the specification's statements; every store answers the calls. Questions without
//! a call are listed in the reference of the read tools: Q2, Q11, Q13 and Q20 to Q22, whose
//! conditions compare a record with an aggregate over others.

use serde_json::{Map, Value as Json};
use tokio_postgres::{NoTls, SimpleQueryMessage};
use wayleave_model::mapping::SourceKind;
use wayleave_plan::value::{Exact, Value};
use wayleave_store::Store;
use wayleave_store::conformance::ServedMapping;

use crate::stores::{LoadedDatabase, all, arguments, patient};
use wayleave_test::tpch::{self, Question, questions};

const SCALE: f64 = 0.01;

fn mapping(kind: SourceKind) -> String {
    let streams = tpch::STREAMS;
    format!(
        "[dataset]\nname = \"conformance\"\nkind = \"{kind}\"\n\n\
         [[connections]]\nid = \"main\"\nsource = \"main\"\n\n{streams}"
    )
}

/// The answers of PostgreSQL to the specification's statements.
async fn expected(loaded: &LoadedDatabase) -> Vec<Vec<Vec<String>>> {
    let (client, connection) = tokio_postgres::connect(&loaded.dsn, NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    let mut answers = Vec::new();
    for question in questions() {
        let messages = client.simple_query(question.sql).await.unwrap();
        let rows = messages.into_iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => {
                let values = (0..row.len()).map(|place| plain(row.get(place).unwrap_or("null")));
                Some(values.collect::<Vec<String>>())
            }
            _ => None,
        });
        answers.push(rows.collect());
    }
    drop(client);
    connection.abort();
    answers
}

/// Normalizes a value to a form common to both sides: numbers rounded as means are.
fn plain(text: &str) -> String {
    match text.parse::<Exact>() {
        Ok(exact) => exact.round(6).to_string(),
        Err(_) => text.to_owned(),
    }
}

/// The answer of a store to a question, over all pages.
async fn answered(
    served: &ServedMapping,
    store: &dyn Store,
    question: &Question,
) -> Vec<Vec<String>> {
    let mut call: Map<String, Json> = arguments(question.call.clone());
    let limit = call.get("limit").and_then(Json::as_u64).unwrap_or(100);
    call.insert("limit".to_owned(), limit.into());
    let mut found = Vec::new();
    loop {
        let plan = served.aggregate(&call).unwrap();
        let rows = all(store, plan.groups(), &patient()).await.unwrap();
        let (shown, more) = plan.answer(&rows);
        let text = |value: &Value| plain(&value.to_text().unwrap_or_else(|| "null".to_owned()));
        found.extend(
            shown
                .iter()
                .map(|row| row.iter().map(text).collect::<Vec<_>>()),
        );
        match shown.last().filter(|_| more && question.is_walked) {
            Some(last) => {
                let cursor = plan.cursor(last, served.seal()).unwrap();
                call.insert("cursor".to_owned(), cursor.into());
            }
            None => return found,
        }
    }
}

async fn answers_as_expected(loaded: &LoadedDatabase, expected: &[Vec<Vec<String>>]) {
    let store = loaded.store();
    let served = ServedMapping::new(&mapping(loaded.kind)).unwrap();
    for (question, expected) in questions().iter().zip(expected) {
        let answer = answered(&served, store.as_ref(), question).await;
        assert!(
            !expected.is_empty() || question.may_be_empty,
            "{}: nothing to compare",
            question.name
        );
        assert_eq!(answer, *expected, "{}: {}", loaded.kind, question.name);
    }
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_store_answers_tpc_h_as_its_specification_does() {
    let sql = |kind| {
        let analyze = if kind == SourceKind::Mysql {
            ""
        } else {
            "ANALYZE;"
        };
        format!("{}{analyze}", tpch::sql(SCALE))
    };
    let postgres = SourceKind::Postgres;
    let postgres = LoadedDatabase::new(postgres, &sql(postgres)).await;
    let expected = expected(&postgres).await;
    answers_as_expected(&postgres, &expected).await;
    for kind in [SourceKind::Sqlite, SourceKind::Mysql] {
        answers_as_expected(&LoadedDatabase::new(kind, &sql(kind)).await, &expected).await;
    }
    if let Some(mysql) = LoadedDatabase::on_mysql(&sql(SourceKind::Mysql)).await {
        answers_as_expected(&mysql, &expected).await;
    }
}

#[test]
fn the_reference_lists_which_questions_are_one_call() {
    let page = include_str!("../../../../docs/reference/tools.md");
    let (_, page) = page.split_once("| question | one call with |").unwrap();
    let (answered, missing) = page.split_once("| question | missing |").unwrap();
    let listed = |part: &str| -> Vec<String> {
        let rows = part.lines().filter_map(|line| line.strip_prefix("| Q"));
        let names = rows.filter_map(|row| row.split_once(" |"));
        names.map(|(name, _)| name.to_owned()).collect()
    };
    let tested = questions().into_iter();
    let tested = tested.map(|it| it.name.replacen(": ", " ", 1).replacen('Q', "", 1));
    assert_eq!(listed(answered), tested.collect::<Vec<_>>());
    let of = |name: &String| name.split(' ').next().unwrap().parse::<u32>().unwrap();
    let mut all: Vec<u32> = [listed(answered), listed(missing)]
        .concat()
        .iter()
        .map(of)
        .collect();
    all.sort_unstable();
    assert_eq!(all, (1..=22).collect::<Vec<_>>());
}
