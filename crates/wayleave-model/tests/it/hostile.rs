//! Hostile input always gives a typed problem, never a panic, and no message repeats a secret.

use std::fmt::Write as _;

use proptest::prelude::*;
use wayleave_model::check::check;
use wayleave_model::diff::diff;
use wayleave_model::ontology;
use wayleave_model::parse::parse;
use wayleave_model::problem::{ProblemCode, Style, render};
use wayleave_model::schema::EXAMPLE;

fn codes(bytes: &[u8]) -> Vec<ProblemCode> {
    let problems = parse(bytes).expect_err("hostile input has problems");
    let text = render(
        &problems,
        "case.toml",
        &String::from_utf8_lossy(bytes),
        Style::Colour,
    );
    assert!(!text.is_empty());
    problems.iter().map(|problem| problem.code).collect()
}

#[test]
fn hostile_documents_are_refused_with_a_code() {
    let deep = format!("a = {}{}", "[".repeat(10_000), "]".repeat(10_000));
    let deep_tables = format!("a = {}1{}", "{ a = ".repeat(5_000), " }".repeat(5_000));
    let dotted = format!("{}x = 1", "a.".repeat(10_000));
    let headers = format!("[{}a]\n", "a.".repeat(100_000));
    for (bytes, code) in [
        (&b"\0"[..], ProblemCode::Syntax),
        (b"name = \"a\0b\"", ProblemCode::Syntax),
        (b"\xff\xfe", ProblemCode::NotUtf8),
        (b"[dataset]\nname = \"\xc3\x28\"", ProblemCode::NotUtf8),
        (b"", ProblemCode::MissingKey),
        ("\u{feff}[dataset]".as_bytes(), ProblemCode::InvalidText),
        (deep.as_bytes(), ProblemCode::TooDeep),
        (deep_tables.as_bytes(), ProblemCode::TooDeep),
        (dotted.as_bytes(), ProblemCode::TooDeep),
        (headers.as_bytes(), ProblemCode::TooDeep),
        (&vec![b'#'; 1024 * 1024 + 1], ProblemCode::TooLarge),
        (b"a = 1\na = 2", ProblemCode::DuplicateKey),
        (b"[dataset]\n[dataset]", ProblemCode::DuplicateKey),
        (b"\r\r\r", ProblemCode::Syntax),
    ] {
        let found = codes(bytes);
        assert!(found.contains(&code), "{code} is not in {found:?}");
    }
}

#[test]
fn a_document_full_of_problems_is_answered_shortly() {
    let many: Vec<_> = (0..50_000).map(|at| format!("k{at} = 1")).collect();
    let found = codes(many.join("\n").as_bytes());
    assert!(found.len() <= 501, "{} problems", found.len());
    assert_eq!(found.last(), Some(&ProblemCode::TooMany));
}

/// Pastes a password into every position of the example in turn.
#[test]
fn a_connection_string_pasted_anywhere_is_refused_and_never_repeated() {
    let dsn = "postgres://crm:hunter2@db.example.org/crm";
    let mut tried = 0;
    for (at, line) in EXAMPLE.lines().enumerate() {
        let Some((key, _)) = line.split_once(" = ") else {
            continue;
        };
        for value in [
            format!("\"{dsn}\""),
            format!("[\"{dsn}\"]"),
            dsn.to_owned(),
            format!("1 # {dsn}"),
        ] {
            let mut lines: Vec<String> = EXAMPLE.lines().map(str::to_owned).collect();
            lines[at] = format!("{key} = {value}");
            assert_secret(&lines.join("\n"));
            lines[at] = format!("{value} = {key}");
            assert_secret(&lines.join("\n"));
            tried += 2;
        }
    }
    assert!(tried > 100);
    for disguised in [
        r#"[dataset]
name = "postgres:\u002F/crm:hunter2@db""#,
        "[\"postgres://crm:hunter2@db\"]\nx = 1",
        "[dataset]\ndescription = \"host=db password=hunter2\"",
        "[dataset]\ndescription = \"\"\"\nhost=db\npassword = hunter2\"\"\"",
        "# psql postgres://crm:hunter2@db",
        "[dataset]\npassword = \"hunter2\"",
    ] {
        let problems = parse(disguised.as_bytes()).unwrap_err();
        assert_silent(&problems, disguised);
    }
}

fn assert_secret(document: &str) {
    let problems = parse(document.as_bytes()).unwrap_err();
    assert!(
        problems
            .iter()
            .any(|problem| problem.code == ProblemCode::ConnectionString),
        "{document}\n{problems:#?}"
    );
    assert_silent(&problems, document);
}

fn assert_silent(problems: &[wayleave_model::problem::Problem], document: &str) {
    assert!(!problems.is_empty());
    for style in [Style::Plain, Style::Colour] {
        let text = render(problems, "case.toml", document, style);
        assert!(!text.contains("hunter2"), "{text}");
    }
    let json = serde_json::to_string(problems).unwrap();
    assert!(!json.contains("hunter2"), "{json}");
    assert!(!format!("{problems:?}").contains("hunter2"));
}

#[test]
fn one_look_shows_every_problem() {
    let document = EXAMPLE
        .replace("kind = \"postgres\"", "kind = \"postgre\"")
        .replace("title = \"full_name\"", "title = \"fullname\"")
        .replace("required = true\none_of", "requierd = true\none_of")
        .replace("to = \"orgs\"", "to = \"org\"")
        .replace("min_length = 6", "min_length = 9")
        .replace("action = \"delete\"", "action = \"destroy\"");
    let mut found = codes(document.as_bytes());
    found.sort();
    assert_eq!(
        found,
        [
            ProblemCode::UnknownKey,
            ProblemCode::UnknownWord,
            ProblemCode::UnknownWord,
            ProblemCode::EmptyRange,
            ProblemCode::UnknownField,
            ProblemCode::UnknownStream,
        ]
    );
}

/// A mapping with a stream of `relations` relations to another, a computed field that follows each,
/// and optionally a measure that follows the last.
fn following(relations: usize, in_measure: bool) -> String {
    let mut text = String::from(
        "[dataset]\nname = \"shop\"\nkind = \"sqlite\"\n\n[[connections]]\nid = \"shop\"\nsource = \"shop\"\n\n\
         [streams.places]\ntype = \"Place\"\nkey = [\"id\"]\n\n[streams.places.fields]\n\
         id = { datatype = \"integer\" }\n\n[streams.orders]\ntype = \"Order\"\nkey = [\"id\"]\n\n\
         [streams.orders.fields]\nid = { datatype = \"integer\" }\n",
    );
    let count = relations - usize::from(in_measure);
    for place in 0..count {
        let _ = writeln!(
            text,
            "c{place} = {{ datatype = \"integer\", compute = \"r{place}.id + 1\" }}"
        );
    }
    for place in 0..relations {
        let _ = write!(
            text,
            "\n[streams.orders.relations.r{place}]\nto = \"places\"\non = {{ place_{place} = \"id\" }}\n"
        );
    }
    if in_measure {
        let _ = write!(
            text,
            "\n[streams.orders.measures]\nfar = \"sum(c0 + r{count}.id)\"\n"
        );
    }
    text
}

#[test]
fn what_a_stream_computes_follows_no_more_relations_than_a_read_can_join() {
    for in_measure in [false, true] {
        let text = following(24, in_measure);
        assert!(
            check(text.as_bytes(), None).is_ok(),
            "{:?}",
            check(text.as_bytes(), None)
        );
        let text = following(25, in_measure);
        let problems = check(text.as_bytes(), None).unwrap_err();
        let [problem] = problems.as_slice() else {
            panic!("{problems:?}");
        };
        assert_eq!(problem.code, ProblemCode::InvalidExpression);
        let written = &text[problem.span.clone().unwrap()];
        let expected = if in_measure {
            "sum(c0 + r24.id)"
        } else {
            "r24.id + 1"
        };
        assert_eq!(written, expected, "{problem:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_the_parser_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let problems = parse(&bytes).unwrap_err();
        let _ = render(&problems, "x", &String::from_utf8_lossy(&bytes), Style::Plain);
        let _ = ontology::parse(&bytes);
    }

    #[test]
    fn no_damage_to_a_mapping_makes_anything_panic(
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..6, "[\\PC\n]{0,3}"), 1..8),
    ) {
        let mut text: Vec<char> = EXAMPLE.chars().collect();
        for (at, length, put) in edits {
            let at = at.index(text.len());
            let end = (at + length).min(text.len());
            text.splice(at..end, put.chars());
        }
        let text: String = text.into_iter().collect();
        match check(text.as_bytes(), None) {
            Ok(mapping) => {
                let old = parse(EXAMPLE.as_bytes()).unwrap();
                let _ = diff(Some(&old), &mapping);
            }
            Err(problems) => {
                prop_assert!(!problems.is_empty());
                let rendered = render(&problems, "x", &text, Style::Plain);
                prop_assert!(!rendered.is_empty());
                for problem in problems {
                    if let Some(span) = problem.span {
                        prop_assert!(span.start <= span.end && span.end <= text.len(), "{:?}", span);
                        prop_assert!(problem.position.is_some());
                    }
                }
            }
        }
    }
}
