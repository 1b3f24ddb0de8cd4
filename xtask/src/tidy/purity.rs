//! Finds names that the pure crates must not use, and statements that bind no values.
//!
//! `edges` checks which crates a crate depends on. Every crate may use the standard library, so its
//! impure parts are searched for in the text. The patterns are written so that they do not find
//! themselves.

use regex::Regex;

use super::{code_lines, is_test_file};
use crate::finding::Finding;

/// Sources of crates without async, clock, file, environment, process, thread or network.
const PURE: &[&str] = &["crates/wayleave-model/src/", "crates/wayleave-plan/src/"];

/// Names banned in pure crates: a pattern, and a description of the match.
const IMPURE: &[(&str, &str)] = &[
    (
        r"\b(?:SystemTime|Instant|UNIX_EPOCH)\b|\b(?:Timestamp|Zoned)::now\b",
        "a clock",
    ),
    (
        r"\bstd::(?:fs|env|net|process|thread|io::std\w+)\b|\bfs::(?:read|write|File)\b|\bFile::(?:open|create)\b",
        "a file, the environment, a process, a thread or the network",
    ),
    (
        r"^\s*(?:pub )?use std::\{(?:[^}]*[\s,{])?(?:fs|env|net|process|thread)\b",
        "a file, the environment, a process, a thread or the network",
    ),
    (r"\basync\b|\.await\b", "async code"),
    (r"\b(?:getrandom|rand)::", "randomness"),
];

/// Calls that send SQL text without parameters: it may contain several statements, and binds no
/// value.
const UNBOUND: &str = r"\.(?:simple_query|simple_query_raw|batch_execute|execute_batch|query_drop|query_iter|query_fold|query_stream|query_text)\(";

/// Number of lines above a call in which the lint exception, with its reason, may stand.
const NEAR: usize = 16;

/// The finders, compiled.
pub(super) struct Purity {
    impure: Vec<(Regex, &'static str)>,
    unbound: Regex,
}

impl Purity {
    pub(super) fn compile() -> Result<Self, regex::Error> {
        let impure = IMPURE
            .iter()
            .map(|(pattern, what)| Ok((Regex::new(pattern)?, *what)));
        Ok(Self {
            impure: impure.collect::<Result<_, regex::Error>>()?,
            unbound: Regex::new(UNBOUND)?,
        })
    }

    /// Reports clocks, files, environment and the like in the code of pure crates.
    pub(super) fn impurities(&self, file: &str, text: &str) -> Vec<Finding> {
        if is_test_file(file) || !PURE.iter().any(|folder| file.starts_with(folder)) {
            return Vec::new();
        }
        let mut findings = Vec::new();
        for (at, line) in text.lines().take(code_lines(text)).enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            let found = self.impure.iter().find(|(it, _)| it.is_match(code));
            if let Some((_, what)) = found {
                let message = format!("{what} in a pure crate");
                let hint = "let the caller supply it as a value";
                findings.push(Finding::failure(file, at + 1, message, hint));
            }
        }
        findings
    }

    /// Reports statements sent without binding values, unless the lint is excepted with a reason.
    pub(super) fn unbound_statements(&self, file: &str, text: &str) -> Vec<Finding> {
        let is_product = file.starts_with("crates/") && !file.starts_with("crates/wayleave-test/");
        if !is_product || is_test_file(file) {
            return Vec::new();
        }
        let lines: Vec<&str> = text.lines().take(code_lines(text)).collect();
        let mut findings = Vec::new();
        for (at, line) in lines.iter().enumerate() {
            let above = lines.get(at.saturating_sub(NEAR)..at).unwrap_or_default();
            let excepted = above
                .iter()
                .any(|line| line.contains("clippy::disallowed_methods"));
            if self.unbound.is_match(line) && !excepted {
                let message = "a statement that binds no value";
                let hint = "prepare one statement and bind its values; a constant needs \
                            `#[expect(clippy::disallowed_methods, reason = \"…\")]`";
                findings.push(Finding::failure(file, at + 1, message, hint));
            }
        }
        findings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn impurities(file: &str, text: &str) -> usize {
        Purity::compile().unwrap().impurities(file, text).len()
    }

    fn unbound(file: &str, text: &str) -> usize {
        let purity = Purity::compile().unwrap();
        purity.unbound_statements(file, text).len()
    }

    #[test]
    fn clocks_files_environment_and_async_are_found_in_pure_crates_only() {
        for planted in [
            "let now = SystemTime::now();",
            "let began = Instant::now();",
            "use std::time::{Duration, Instant};",
            "let at = jiff::Timestamp::now();",
            "let text = std::fs::read_to_string(path)?;",
            "use std::{collections::BTreeMap, fs};",
            "use std::{env, fmt};",
            "let dsn = std::env::var(name);",
            "let stream = std::net::TcpStream::connect(at);",
            "std::process::Command::new(\"id\");",
            "std::thread::spawn(work);",
            "let mut text = File::open(path)?;",
            "pub async fn read() {}",
            "let rows = store.read(plan).await;",
            "getrandom::fill(&mut key)?;",
        ] {
            for crate_name in ["wayleave-model", "wayleave-plan"] {
                let file = format!("crates/{crate_name}/src/lib.rs");
                assert_eq!(impurities(&file, planted), 1, "{planted}");
            }
            assert_eq!(impurities("crates/wayleave-sql/src/lib.rs", planted), 0);
            assert_eq!(
                impurities("crates/wayleave-plan/tests/it/main.rs", planted),
                0
            );
        }
    }

    #[test]
    fn words_that_only_resemble_what_is_impure_are_not_found() {
        for plain in [
            "// no async, clock, file or std::fs here",
            "use std::{collections::BTreeMap, fmt, sync::Arc};",
            "use std::time::Duration;",
            "let instant = 3; let environment = 4;",
            "pub struct InstantValue;",
            "fn a() {}\n#[cfg(test)]\nmod tests {\n    use std::fs;\n}",
        ] {
            assert_eq!(
                impurities("crates/wayleave-model/src/lib.rs", plain),
                0,
                "{plain}"
            );
        }
    }

    #[test]
    fn a_statement_without_bound_values_needs_its_reason() {
        let file = "crates/wayleave-sql/src/postgres/read.rs";
        for name in [
            "simple_query",
            "batch_execute",
            "execute_batch",
            "query_drop",
            "query_iter",
        ] {
            let call = format!("client.{name}(text).await?;");
            assert_eq!(unbound(file, &call), 1, "{call}");
            let reasoned =
                format!("#[expect(clippy::disallowed_methods, reason = \"a constant\")]\n{call}");
            assert_eq!(unbound(file, &reasoned), 0, "{call}");
            assert_eq!(unbound("crates/wayleave-test/src/sqlite.rs", &call), 0);
            assert_eq!(unbound("crates/wayleave-sql/tests/it/main.rs", &call), 0);
        }
        assert_eq!(unbound(file, "client.query(&statement, &values)"), 0);
    }
}
