//! Proposes a draft that passes the checks from a live store, for every fixture on every store.

use std::fmt::Write;

use crate::fixtures::every_fixture;
use wayleave_model::parse::parse;
use wayleave_model::propose::{Omission, ProposeOptions, propose, repropose};
use wayleave_test::assert_golden;
use wayleave_test::fixture::Dialect;

async fn golden(dialect: Dialect) {
    for (fixture, catalogue) in every_fixture(dialect).await {
        let options = ProposeOptions::for_source(fixture.name());
        let proposal = propose(&catalogue, &options);
        let folder =
            format!("{}/tests/golden/{dialect:?}", env!("CARGO_MANIFEST_DIR")).to_lowercase();
        assert_golden(format!("{folder}/{}.toml", fixture.name()), &proposal.text);
        let mut left_out = String::new();
        for Omission {
            table,
            column,
            reason,
        } in &proposal.left_out
        {
            let column = column.as_deref().unwrap_or("*");
            writeln!(left_out, "{table:?} {column:?}: {reason}").unwrap();
        }
        assert_golden(
            format!("{folder}/{}.left_out.txt", fixture.name()),
            &left_out,
        );
        assert_eq!(
            parse(proposal.text.as_bytes()).err(),
            None,
            "{dialect:?} {}",
            fixture.name()
        );
        let merge = repropose(&proposal.text, &catalogue, &options).unwrap();
        assert_eq!(merge.text, proposal.text);
        assert_eq!(merge.changes, []);
    }
}

#[tokio::test]
async fn sqlite_proposals_are_as_agreed_and_check() {
    golden(Dialect::Sqlite).await;
}

#[tokio::test]
async fn postgres_proposals_are_as_agreed_and_check() {
    golden(Dialect::Postgres).await;
}

#[tokio::test]
async fn mariadb_proposals_are_as_agreed_and_check() {
    golden(Dialect::Mysql).await;
}
