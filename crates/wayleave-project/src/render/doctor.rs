//! The findings of the doctor.

use std::fmt::Write as _;

use serde_json::json;

use crate::{
    Rendering, columns,
    doctor::{Finding, Grade},
};

/// The findings, each with what to do about it.
pub fn findings(findings: &[Finding]) -> Rendering {
    let problems = findings
        .iter()
        .filter(|it| it.grade == Grade::Problem)
        .count();
    let document = json!({ "ok": problems == 0, "findings": findings });
    Rendering::new(document, text(findings, problems)).with_findings(problems > 0)
}

fn text(findings: &[Finding], problems: usize) -> String {
    let rows: Vec<_> = findings
        .iter()
        .map(|it| {
            let grade = it.grade.as_str().to_owned();
            vec![grade, it.about.clone(), it.message.replace('\n', " ")]
        })
        .collect();
    let mut text = String::new();
    let aligned = columns::align(&rows);
    for (place, (line, it)) in aligned.lines().zip(findings).enumerate() {
        let _ = writeln!(text, "{line}");
        // A hint shared by several findings is printed once, after the last.
        let next = findings.get(place + 1).and_then(|next| next.hint.as_ref());
        if let Some(hint) = it.hint.as_ref().filter(|hint| next != Some(hint)) {
            let _ = writeln!(text, "         hint: {hint}");
        }
    }
    let verdict = match problems {
        0 => "no problems found".to_owned(),
        many => columns::count(many, "problem"),
    };
    text + &verdict
}
