//! Checks that decision records are numbered without gaps and listed in their index.

use anyhow::Context as _;

use crate::finding::Finding;
use crate::repository::Repository;

const FOLDER: &str = "docs/adr/";
const INDEX: &str = "docs/adr/README.md";

/// Reports records that are missing from the index, and gaps in the numbers.
pub(super) fn check(repository: &Repository) -> anyhow::Result<Vec<Finding>> {
    let records: Vec<&str> = repository
        .files()
        .iter()
        .filter_map(|file| file.strip_prefix(FOLDER))
        .filter(|name| *name != "README.md")
        .collect();
    if records.is_empty() {
        return Ok(Vec::new());
    }
    let index = repository
        .text_of(INDEX)
        .context("cannot read the index of decisions")?;
    Ok(faults(&records, index.as_deref().unwrap_or_default()))
}

fn faults(records: &[&str], index: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (at, record) in records.iter().enumerate() {
        let expected = format!("{:04}-", at + 1);
        if !record.starts_with(&expected) {
            findings.push(Finding::failure(
                format!("{FOLDER}{record}"),
                1,
                format!("the next decision is numbered `{expected}`"),
                "number the records from 0001 without gaps or repeats",
            ));
            break;
        }
    }
    for record in records.iter().filter(|record| !index.contains(**record)) {
        findings.push(Finding::failure(
            INDEX,
            1,
            format!("decision `{record}` is not listed"),
            "add a line that links to it",
        ));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(records: &[&str], index: &str) -> Vec<String> {
        faults(records, index)
            .iter()
            .map(|finding| finding.message().to_owned())
            .collect()
    }

    #[test]
    fn listed_records_without_gaps_are_well() {
        let index = "- [one](0001-one.md)\n- [two](0002-two.md)\n";
        assert_eq!(
            messages(&["0001-one.md", "0002-two.md"], index),
            Vec::<String>::new()
        );
    }

    #[test]
    fn a_gap_and_a_missing_line_are_both_reported() {
        assert_eq!(
            messages(&["0001-one.md", "0003-three.md"], "- [one](0001-one.md)\n"),
            [
                "the next decision is numbered `0002-`",
                "decision `0003-three.md` is not listed"
            ]
        );
    }

    #[test]
    fn a_repeated_number_is_a_fault() {
        let index = "0001-a.md 0001-b.md";
        assert_eq!(
            messages(&["0001-a.md", "0001-b.md"], index),
            ["the next decision is numbered `0002-`"]
        );
    }
}
