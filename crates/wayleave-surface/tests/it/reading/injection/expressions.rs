//! Hostile expressions are refused when a mapping is checked, with a position in their text, or
//! they give the defined value on every store.

use std::collections::BTreeSet;

use serde_json::json;
use wayleave_model::mapping::SourceKind;
use wayleave_model::ratify::Draft;
use wayleave_plan::package::Package;

use super::PAYLOADS;
use crate::reading::database::Database;
use crate::reading::fixture::call;

fn mapping(kind: SourceKind, fields: &str, measures: &str) -> String {
    format!(
        "[dataset]\nname = \"odd\"\nkind = \"{kind}\"\n\
         [[connections]]\nid = \"odd-main\"\nsource = \"main\"\n\
         [streams.rows]\ntype = \"Row\"\nkey = [\"id\"]\n\
         [streams.rows.fields]\nid = {{ datatype = \"integer\" }}\nup = {{ datatype = \"integer\" }}\n\
         big = {{ datatype = \"integer\" }}\nd = {{ datatype = \"decimal\" }}\n\
         z = {{ datatype = \"integer\" }}\ns = {{ datatype = \"string\" }}\n{fields}\n\
         [streams.rows.relations]\nparent = {{ to = \"rows\", on = {{ up = \"id\" }} }}\n\
         [streams.rows.measures]\n{measures}\n"
    )
}

/// Quotes a text for TOML.
fn toml(text: &str) -> String {
    let escaped: String = text
        .chars()
        .map(|c| match c {
            '"' | '\\' => format!("\\{c}"),
            c if c.is_control() => format!("\\u{:04X}", u32::from(c)),
            c => c.to_string(),
        })
        .collect();
    format!("\"{escaped}\"")
}

/// The problems of a mapping with this expression; empty if it can be ratified.
fn problems(fields: &str, measures: &str) -> Vec<String> {
    let mapping = mapping(SourceKind::Sqlite, fields, measures);
    match Draft::new(&*mapping).propose(None) {
        Ok(_) => Vec::new(),
        Err(rejected) => {
            let problems = rejected.problems.iter();
            let told = problems.map(|it| {
                if let Some(span) = &it.span {
                    assert!(mapping.get(span.clone()).is_some(), "{it:?}");
                }
                it.code.to_string()
            });
            told.collect()
        }
    }
}

#[test]
fn a_hostile_text_is_no_expression() {
    let (mut refused, mut fine) = (0, Vec::new());
    for payload in PAYLOADS {
        for text in [
            (*payload).to_owned(),
            format!("s || {payload}"),
            format!("'{payload}"),
            format!("parent.{payload}"),
            format!("coalesce(s, {payload})"),
            format!("if({payload}, s, s)"),
        ] {
            for datatype in ["string", "integer", "boolean"] {
                let field = format!(
                    "odd = {{ datatype = \"{datatype}\", compute = {} }}",
                    toml(&text)
                );
                if problems(&field, "").is_empty() {
                    fine.push(text.clone());
                } else {
                    refused += 1;
                }
            }
            let measures = [
                text.clone(),
                format!("sum({text})"),
                format!("count_distinct({text})"),
            ];
            for measure in measures {
                if problems("", &format!("odd = {}", toml(&measure))).is_empty() {
                    fine.push(measure);
                } else {
                    refused += 1;
                }
            }
        }
    }
    fine.sort();
    fine.dedup();
    println!("{refused} refused; these are expressions: {fine:?}");
    // The rest are constants, comments in other syntaxes, and names in the stream.
    let sql = [
        "select", "drop", ";", "--", "/*", "\"", "`", "$", "\\", "@", "\0",
    ];
    for text in &fine {
        let lower = text.to_lowercase();
        let quoted = lower.split('\'').step_by(2).collect::<String>();
        assert!(!sql.iter().any(|it| quoted.contains(it)), "{text}");
    }
}

#[test]
fn long_and_deep_expressions_are_refused() {
    let deep = |open: &str, inner: &str, close: &str, times: usize| {
        format!("{}{inner}{}", open.repeat(times), close.repeat(times))
    };
    let long = format!("'{}'", "x".repeat(10_000));
    for text in [
        long.clone(),
        format!("s || {long}"),
        "s || ".repeat(2_000) + "s",
        "é".repeat(10_000),
        "(".repeat(1_000),
        "'".repeat(1_000),
        "''".repeat(500),
        deep("(", "s", ")", 1_000),
        deep("(", "s", ")", 300),
        deep("-", "id", "", 999),
        deep("- ", "id", "", 300),
        deep("not ", "true", "", 200),
        deep("if(true,", "s", ",s)", 80),
        deep("if(true,", "s", ",s)", 1_000),
        deep("coalesce(", "s", ",s)", 80),
        deep("coalesce(", "s", ",s)", 1_000),
        deep("round(", "d", ")", 120),
        deep("(s || ", "s", ")", 100),
        "parent.".repeat(5) + "s",
        "parent.".repeat(1_000) + "s",
        format!("{}s", "parent.".repeat(140)),
        "9".repeat(999),
        "round(d, 13)".to_owned(),
        "round(d, 99999999999999999999)".to_owned(),
        "round(d, -1)".to_owned(),
        "round(d, id)".to_owned(),
        "1e400".to_owned(),
        "'a\0b'".to_owned(),
        "s || 'a\0b'".to_owned(),
        "\u{feff}s".to_owned(),
        "ｓ".to_owned(),
        "id + ".to_owned(),
        String::new(),
        " ".to_owned(),
    ] {
        for datatype in ["string", "decimal", "boolean"] {
            let field = format!(
                "odd = {{ datatype = \"{datatype}\", compute = {} }}",
                toml(&text)
            );
            let short: String = text.chars().take(60).collect();
            assert!(!problems(&field, "").is_empty(), "{short}");
            for measure in [text.clone(), format!("sum({text})")] {
                let measure = format!("odd = {}", toml(&measure));
                assert!(!problems("", &measure).is_empty(), "{short}");
            }
        }
    }
}

/// Computed fields may depend on one another only to a limited depth.
#[test]
fn chains_of_computed_fields_are_bounded() {
    let chain = |length: usize, step: &dyn Fn(&str) -> String| {
        let mut fields = String::new();
        for n in 0..length {
            let before = if n == 0 {
                "id".to_owned()
            } else {
                format!("f{}", n - 1)
            };
            fields += &format!(
                "f{n} = {{ datatype = \"integer\", compute = {} }}\n",
                toml(&step(&before))
            );
        }
        problems(&fields, "")
    };
    let negated = |before: &str| format!("{}{before}{}", "(".repeat(30), ")".repeat(30));
    for length in [500, 1_000] {
        assert!(!chain(length, &|before| format!("{before} + 1")).is_empty());
        assert!(!chain(length, &negated).is_empty());
    }
    assert!(!chain(40, &|before| format!("{before} + {before}")).is_empty());
    // A doubling constant depends on no field.
    let constant = "c = { datatype = \"integer\", compute = \"1\" }\n".to_owned();
    let doubled = (0..30).fold(constant, |fields, n| {
        let before = if n == 0 {
            "c".to_owned()
        } else {
            format!("c{}", n - 1)
        };
        fields
            + &format!("c{n} = {{ datatype = \"integer\", compute = \"{before} + {before}\" }}\n")
    });
    assert!(!problems(&doubled, "").is_empty());
    assert!(chain(30, &|before| format!("{before} + 1")).is_empty());
    assert!(!chain(40, &|before| format!("{before} + 1")).is_empty());
    let circle = "a = { datatype = \"integer\", compute = \"b\" }\nb = { datatype = \"integer\", compute = \"a\" }";
    assert!(!problems(circle, "").is_empty());
    let itself = "a = { datatype = \"integer\", compute = \"parent.a + 1\" }";
    assert!(!problems(itself, "").is_empty());
}

/// Expressions at the limits of their datatypes, each with its datatype.
const EDGES: &[(&str, &str)] = &[
    ("integer", "big + 1"),
    ("integer", "big - 1"),
    ("integer", "-big"),
    ("integer", "big * big"),
    ("integer", "big * big * big"),
    ("integer", "big * big * big * big"),
    ("decimal", "d + big"),
    ("decimal", "d * d"),
    ("decimal", "d * d * d"),
    ("decimal", "d / 3"),
    ("decimal", "big / 7"),
    ("decimal", "id / big"),
    ("decimal", "d / z"),
    ("decimal", "id / 0"),
    ("decimal", "z / z"),
    ("decimal", "0 / d"),
    ("decimal", "round(d, 12)"),
    ("decimal", "round(d, 0)"),
    ("decimal", "round(d * d, 6)"),
    ("integer", "round(big, 0)"),
    ("decimal", "round(-d, 2)"),
    ("decimal", "99999999999999999999999999999999999 * d"),
    ("decimal", "0.0000000000000000000000000000001 * d"),
    ("decimal", "coalesce(d / 0, d)"),
    ("decimal", "if(z = 0, 0, d / z)"),
    ("decimal", "if(d / z > 1, 1, 2)"),
    ("boolean", "d / z = d / z"),
    ("boolean", "big + 1 > big"),
    ("boolean", "not (d / z > 1)"),
    ("string", "big || '/' || id"),
    ("string", "s || 'é👩‍👩‍👧‍👦''\"`\\'"),
    ("string", "coalesce(s, '') || ''"),
    ("string", "s || big * big"),
    ("boolean", "s < 'ａ' or s >= 'Z'"),
    ("boolean", "s = 'É'"),
];

/// Expressions that may need more digits than a decimal of MySQL and MariaDB has: 65, or 30 after
/// the point. Only these may fail.
const WIDE: &[&str] = &[
    "big * big * big * big",
    "d * d",
    "d * d * d",
    "round(d * d, 6)",
    "99999999999999999999999999999999999 * d",
    "0.0000000000000000000000000000001 * d",
];

fn rows(kind: SourceKind) -> String {
    let text = match kind {
        SourceKind::Mysql => "LONGTEXT CHARACTER SET utf8mb4",
        _ => "TEXT",
    };
    let decimal = match kind {
        SourceKind::Sqlite => "TEXT",
        _ => "DECIMAL(40, 18)",
    };
    format!(
        "CREATE TABLE rows_ (id BIGINT PRIMARY KEY, up BIGINT, big BIGINT, d {decimal}, z BIGINT, s {text});
         INSERT INTO rows_ VALUES
         (1, 2, 9223372036854775807, '0.000000000000000001', 0, 'É'),
         (2, 3, -9223372036854775808, '-9999999999999999999999.999999999999999999', 1, 'a'),
         (3, 4, 0, '9999999999999999999999.999999999999999999', -1, ''),
         (4, 9, 1, '0.5', NULL, 'Z'),
         (5, NULL, -1, '-0.5', 0, NULL),
         (6, 1, NULL, NULL, 7, 'é'),
         (7, 2, 4611686018427387904, '2.675000000000000000', 3, 'ａ');"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn expressions_at_the_edges_give_one_value_on_every_store() {
    let mut fields = String::new();
    for (n, (datatype, text)) in EDGES.iter().enumerate() {
        fields += &format!(
            "e{n} = {{ datatype = \"{datatype}\", compute = {} }}\n",
            toml(text)
        );
    }
    let measures = "bigs = \"sum(big * big)\"\nmean = \"sum(d) / count()\"\nnone = \"sum(d) / (count() - count())\"\n\
                    most = \"max(big) + max(big)\"\nkinds = \"count_distinct(big * 2)\"";
    let mut services = Vec::new();
    for kind in [SourceKind::Sqlite, SourceKind::Postgres, SourceKind::Mysql] {
        let database = Database::new(kind, &rows(kind)).await;
        let mapping = mapping(kind, &fields, measures);
        let mapping = mapping.replace("key = [\"id\"]", "table = \"rows_\"\nkey = [\"id\"]");
        services.push((kind, database.service(&mapping)));
    }
    let (mut differ, mut beyond, mut failed) = (Vec::new(), 0, BTreeSet::new());
    let mut calls = Vec::new();
    for (n, (datatype, text)) in EDGES.iter().enumerate() {
        let name = format!("e{n}");
        calls.push((
            "query_records",
            json!({ "stream": "rows", "fields": [name], "sort": ["id"] }),
            *text,
        ));
        calls.push((
            "query_records",
            json!({ "stream": "rows", "fields": [name], "sort": [format!("-{name}"), "id"] }),
            text,
        ));
        calls.push(("query_records", json!({ "stream": "rows", "fields": ["id", format!("parent.{name}")], "sort": [format!("parent.{name}"), "id"] }), text));
        calls.push((
            "aggregate",
            json!({ "stream": "rows", "metrics": ["count"], "group_by": [name], "sort": [name] }),
            text,
        ));
        calls.push(("aggregate", json!({ "stream": "rows", "metrics": [format!("count_distinct:{name}"), format!("min:{name}"), format!("max:{name}")] }), text));
        if matches!(*datatype, "integer" | "decimal") {
            calls.push(("aggregate", json!({ "stream": "rows", "metrics": [format!("sum:{name}"), format!("avg:{name}")] }), text));
            for operand in [
                "0",
                "1",
                "-1",
                "9223372036854775807",
                "0.000001",
                "99999999999999999999999999999999999999",
            ] {
                let operand = match (*datatype, operand.parse::<i64>()) {
                    ("integer", Ok(operand)) => json!(operand),
                    ("integer", _) => continue,
                    _ => json!(operand),
                };
                for op in ["gt", "eq", "lte"] {
                    calls.push(("query_records", json!({ "stream": "rows", "fields": ["id"], "filter": { &name: { op: operand } }, "sort": ["id"] }), text));
                }
            }
        }
    }
    for measure in ["bigs", "mean", "none", "most", "kinds"] {
        calls.push((
            "aggregate",
            json!({ "stream": "rows", "metrics": [measure] }),
            measure,
        ));
    }
    let many = calls.len();
    for (tool, given, text) in calls {
        let mut told: Vec<(SourceKind, String)> = Vec::new();
        for (kind, service) in &services {
            let reply = call(service, &Package::local(), tool, given.clone()).await;
            told.push((*kind, reply.text));
        }
        let is_beyond = told[2].1.contains("\"reason\":\"out_of_range\"");
        if is_beyond {
            assert!(WIDE.contains(&text), "{text}\n{tool} {given}\n{told:#?}");
            failed.insert(text);
        }
        let compared = if is_beyond { &told[..2] } else { &told[..] };
        beyond += usize::from(is_beyond);
        if compared.iter().any(|it| it.1 != told[0].1) {
            differ.push(format!("{text}\n{tool} {given}\n{told:#?}"));
        }
    }
    println!("{many} calls on three stores, {beyond} of them beyond MariaDB's digits");
    assert_eq!(
        failed,
        WIDE.iter().copied().collect(),
        "each fails, none is rounded"
    );
    assert!(
        differ.is_empty(),
        "{} differ:\n{}",
        differ.len(),
        differ.join("\n\n")
    );
}
