//! `wayleave doctor`: what a project needs in order to serve, looked at.

use std::{fmt::Write as _, path::Path, process::ExitCode};

use serde_json::json;
use wayleave_project::doctor::{Finding, Grade, examine};

use crate::{
    columns,
    failure::{Failure, Status},
    output::Output,
    progress::Spinner,
};

pub(crate) async fn run(project: Option<&Path>, output: Output) -> Result<ExitCode, Failure> {
    let folder = project.unwrap_or(Path::new("."));
    let spinner = Spinner::start("looking");
    let findings = examine(folder, &super::source_probe(), &|step| spinner.hear(step)).await;
    drop(spinner);
    let problems = findings
        .iter()
        .filter(|it| it.grade == Grade::Problem)
        .count();
    let document = json!({ "ok": problems == 0, "findings": findings });
    output.answer(&document, text(&findings, problems));
    Ok(if problems == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(Status::Findings as u8)
    })
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
        // What is the same for several is said once, after the last.
        let next = findings.get(place + 1).and_then(|next| next.hint.as_ref());
        if let Some(hint) = it.hint.as_ref().filter(|hint| next != Some(hint)) {
            let _ = writeln!(text, "         hint: {hint}");
        }
    }
    let verdict = match problems {
        0 => "nothing stands in the way".to_owned(),
        many => columns::count(many, "problem"),
    };
    text + &verdict
}
