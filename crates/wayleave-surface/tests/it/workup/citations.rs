//! Checks whether a note is supported by its evidence.

use serde_json::{Value as Json, json};
use wayleave_plan::package::Package;

use crate::workup::fixture::{Harbour, arguments, harbour};

struct CheckedWorkup {
    harbour: Harbour,
    workup: String,
    text: String,
    evidence: usize,
}

impl CheckedWorkup {
    async fn new() -> Self {
        let harbour = harbour().await;
        let reply = harbour.workup(json!({ "entity": "Grey Heron" })).await;
        Self {
            workup: reply.structured.value()["workup"]
                .as_str()
                .unwrap()
                .to_owned(),
            evidence: reply.structured.value()["evidence"]
                .as_array()
                .unwrap()
                .len(),
            text: reply.text,
            harbour,
        }
    }

    fn check(&self, note: &str) -> Json {
        let given = arguments(json!({ "note": note, "workup": self.workup }));
        let reply = self
            .harbour
            .service
            .check_citations(&Package::local(), &given);
        assert!(!reply.is_error, "{}", reply.text);
        reply.structured.into_value()
    }

    /// The claims of a note that have no citation.
    fn uncited(&self, note: &str) -> Vec<String> {
        let report = self.check(note);
        let uncited = report["uncited"].as_array().unwrap().iter();
        uncited
            .map(|it| it["text"].as_str().unwrap().to_owned())
            .collect()
    }
}

#[tokio::test]
async fn a_workup_itself_passes_and_uses_all_its_evidence() {
    let checked = CheckedWorkup::new().await;
    let report = checked.check(&checked.text);
    assert_eq!(report["ok"], true, "{report}");
    assert_eq!(report["unused"], json!([]));
    assert_eq!(report["cited"].as_array().unwrap().len(), checked.evidence);
    assert_eq!(report["meta"]["entity"], "north/ships:IMO9074729");
    assert!(
        checked
            .text
            .contains(&format!("\nworkup={}\n", checked.workup))
    );
}

#[tokio::test]
async fn a_citation_that_leads_nowhere_dangles_and_unused_evidence_alone_is_fine() {
    let checked = CheckedWorkup::new().await;
    let report = checked.check("The ship flies the flag of Norway [g1].");
    assert_eq!(report["ok"], true, "{report}");
    assert_eq!(report["cited"], json!(["g1"]));
    assert_eq!(
        report["unused"].as_array().unwrap().len(),
        checked.evidence - 1
    );
    let report = checked.check("The ship flies the flag of Norway [g1]. It sank [g99][g0][g01].");
    assert_eq!(report["ok"], false);
    assert_eq!(report["dangling"], json!(["g99", "g0", "g01"]));
    assert_eq!(report["uncited"], json!([]));
}

#[tokio::test]
async fn a_trailing_citation_covers_what_stands_before_it_in_its_paragraph_or_item() {
    let checked = CheckedWorkup::new().await;
    let uncited = |note: &str| checked.uncited(note);
    assert!(uncited("It was built in 1996. It is owned by Fjord Lines [g1, g2].").is_empty());
    assert!(uncited("It was built in 1996. [g1] It sails on. [cite:g2]").is_empty());
    assert!(uncited("It was built in 1996\nand sails\nto this day [g1].").is_empty());
    assert_eq!(
        uncited("It was built in 1996 [g1]. It is owned by Fjord Lines."),
        ["It is owned by Fjord Lines."]
    );
    assert_eq!(
        uncited("- It was built in 1996.\n- It is owned by Fjord Lines [g1]."),
        ["It was built in 1996."]
    );
    assert_eq!(
        uncited("It was built in 1996.\n\nIt is owned by Fjord Lines [g1]."),
        ["It was built in 1996."]
    );
    assert_eq!(
        uncited("Dr. A. Berg of Fjord Lines Ltd. paid 1.5 million.").len(),
        1
    );
}

#[tokio::test]
async fn what_makes_no_claim_needs_no_citation() {
    let checked = CheckedWorkup::new().await;
    for note in [
        "# The ship sank in a storm",
        "| ship | fate |\n| --- | --- |\n| Grey Heron | it sank |",
        "These are the findings so far:\n- it sails [g1]",
        "## Gaps & caveats\n\nThe owner never answered our letters.\n\n### Later\n\nNobody wrote again.",
        "## Provenance\n\nAll of it was read on Monday.",
        "There is no evidence of a collision.",
        "Who paid for it could not be established.",
        "Did the ship leave without lights?",
        "```\nThe ship sank in a storm.\n```",
        "**Key findings**",
        "---",
    ] {
        assert_eq!(checked.uncited(note), [""; 0], "{note}");
    }
    // A section ends where the next begins.
    assert_eq!(
        checked.uncited(
            "## Gaps\n\nNothing more was asked.\n\n## Summary\n\nThe ship sank in a storm."
        ),
        ["The ship sank in a storm."]
    );
}

#[tokio::test]
async fn an_escaped_citation_and_one_inside_code_are_none() {
    let checked = CheckedWorkup::new().await;
    let report = checked.check("The remark says \\[g1\\] and [g1 or so](x).\n\n```\n[g1]\n```");
    assert_eq!(report["cited"], json!([]), "{report}");
    assert_eq!(report["ok"], false);
}

#[tokio::test]
async fn a_reference_is_good_for_its_own_caller_alone_on_every_node() {
    let (checked, node) = (CheckedWorkup::new().await, harbour().await);
    let given = arguments(json!({ "note": "It sails [g1].", "workup": checked.workup }));
    let elsewhere = node.service.check_citations(&Package::local(), &given);
    assert_eq!(elsewhere.structured.value()["ok"], true);
    let other = Package {
        subject: "another".to_owned(),
        ..Package::local()
    };
    let refused = node.service.check_citations(&other, &given);
    assert_eq!(refused.structured.value()["error"]["param"], "workup");
    for at in 0..checked.workup.len() {
        let mut forged = checked.workup.clone().into_bytes();
        forged[at] = if forged[at] == b'A' { b'B' } else { b'A' };
        let forged = String::from_utf8(forged).unwrap();
        let given = arguments(json!({ "note": "x", "workup": forged }));
        let refused = node.service.check_citations(&Package::local(), &given);
        assert!(refused.is_error, "{at}");
    }
}

#[tokio::test]
async fn any_note_is_answered() {
    let checked = CheckedWorkup::new().await;
    for note in [
        "[",
        "[g",
        "[g1",
        "]",
        "[]",
        "[,]",
        "..",
        ". . .",
        "é[g1]é.",
        "\\",
        "[[g1]]",
        "> [g1]",
        "#",
        "`",
        "1. ",
    ] {
        let report = checked.check(note);
        assert!(report["ok"].is_boolean(), "{note}");
    }
    // The author of a note must not control how long checking it takes.
    for part in [
        "[",
        ".",
        "[g1",
        "a.",
        ".\"",
        "\\",
        "[g1]",
        "- ",
        ". ",
        "[,]",
        "# ",
        "[g123456], ",
        ".[g1]",
    ] {
        let note = part.repeat(200_000 / part.len());
        assert!(checked.check(&note)["ok"].is_boolean());
    }
    let ids: String = (0..25_000).map(|n| format!("[g{n}]")).collect();
    assert_eq!(
        checked.check(&ids)["meta"]["dangling_total"],
        25_000 - checked.evidence
    );
    let long = "The ship sank in a storm. ".repeat(9_000);
    let given = arguments(json!({ "note": long, "workup": checked.workup }));
    let reply = checked
        .harbour
        .service
        .check_citations(&Package::local(), &given);
    assert_eq!(reply.structured.value()["meta"]["uncited_total"], 9_000);
    println!("{} bytes", reply.bytes());
    assert!(reply.bytes() <= 16 * 1_024);
}
