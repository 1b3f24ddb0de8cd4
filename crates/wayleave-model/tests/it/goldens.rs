//! One case per file: the exact output of `check`, `drift` and `diff`.

use std::collections::BTreeSet;

use wayleave_model::check::check;
use wayleave_model::diff::{self, ChangeKind};
use wayleave_model::drift::drift;
use wayleave_model::ontology;
use wayleave_model::parse::parse;
use wayleave_model::problem::{self, Problem, ProblemCode, Style, render};

use crate::case::{Case, cases, catalogue};

fn check_case(case: &Case) -> Vec<Problem> {
    let mapping = case.section("mapping");
    let ontology_bytes = case.section("ontology");
    let ontology = ontology_bytes.as_ref().map(|bytes| ontology::parse(bytes));
    let (bytes, file, answer) = match (&mapping, &ontology) {
        (Some(bytes), Some(ontology)) => {
            let ontology = ontology.as_ref().unwrap();
            (
                bytes,
                "mappings/case.toml",
                check(bytes, Some(ontology)).map(drop),
            )
        }
        (Some(bytes), None) => (bytes, "mappings/case.toml", check(bytes, None).map(drop)),
        (None, Some(ontology)) => (
            ontology_bytes.as_ref().unwrap(),
            "ontology.toml",
            ontology.clone().map(drop),
        ),
        (None, None) => panic!("{} has no input", case.path.display()),
    };
    let problems = answer.err().unwrap_or_default();
    let text = render(
        &problems,
        file,
        &String::from_utf8_lossy(bytes),
        Style::Plain,
    );
    let text = if problems.is_empty() {
        "no problems\n".to_owned()
    } else {
        text
    };
    case.assert_expected(&text);
    problems
}

fn drift_case(case: &Case) -> Vec<Problem> {
    let bytes = case.section("mapping").unwrap();
    let source = String::from_utf8(bytes).unwrap();
    let mapping = parse(source.as_bytes())
        .unwrap_or_else(|problems| panic!("{}: {problems:#?}", case.path.display()));
    let live = catalogue(&String::from_utf8(case.section("catalogue").unwrap()).unwrap());
    let mut problems = drift(&mapping, &live);
    problem::locate(&mut problems, &source);
    let text = render(&problems, "mappings/case.toml", &source, Style::Plain);
    let text = if problems.is_empty() {
        "no drift\n".to_owned()
    } else {
        text
    };
    case.assert_expected(&text);
    problems
}

#[test]
fn every_problem_is_reported_in_the_words_of_its_golden_file() {
    let mut seen: BTreeSet<ProblemCode> = BTreeSet::new();
    for case in cases("check") {
        seen.extend(check_case(&case).iter().map(|problem| problem.code));
    }
    for case in cases("drift") {
        seen.extend(drift_case(&case).iter().map(|problem| problem.code));
    }
    let missing: Vec<_> = ProblemCode::ALL
        .iter()
        .filter(|code| !seen.contains(code))
        .collect();
    assert!(missing.is_empty(), "no golden file shows {missing:?}");
}

#[test]
fn every_change_is_told_in_the_words_of_its_golden_file() {
    let mut kinds: BTreeSet<ChangeKind> = BTreeSet::new();
    let mut risks: BTreeSet<&str> = BTreeSet::new();
    for case in cases("diff") {
        let read = |name| {
            case.section(name).map(|bytes| {
                parse(&bytes).unwrap_or_else(|problems| {
                    panic!("{}, {name}: {problems:#?}", case.path.display())
                })
            })
        };
        let changes = diff::diff(read("old").as_ref(), &read("new").unwrap());
        kinds.extend(changes.iter().map(|change| change.kind));
        for risk in changes.iter().flat_map(|change| &change.risks) {
            risks.insert(risk.as_str());
        }
        let text = diff::render(&changes);
        case.assert_expected(if text.is_empty() {
            "no changes\n"
        } else {
            &text
        });
    }
    let missing: Vec<_> = ChangeKind::ALL
        .iter()
        .filter(|kind| !kinds.contains(kind))
        .collect();
    assert!(missing.is_empty(), "no golden file shows {missing:?}");
    assert_eq!(risks.len(), 9, "every risk is shown: {risks:?}");
}
