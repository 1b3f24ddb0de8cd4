//! `check_citations`: whether a note keeps to the evidence of the workup it was written from.

use std::collections::BTreeSet;

use serde_json::{Map, Value as Json, json};
use wayleave_plan::package::Package;
use wayleave_plan::refusal::{Code, Refusal};
use wayleave_plan::request::CitationsRequest;
use wayleave_plan::workup_ref::Reference;

use super::prose::{self, Sentence};
use crate::escape;
use crate::reply::Reply;
use crate::service::ReadService;

/// Maximum number of entries shown in a list.
const MAX_LISTED: usize = 64;
/// Maximum length of a sentence, in characters.
const MAX_SENTENCE_CHARS: usize = 200;

impl ReadService {
    /// Checks that every citation of a note leads to evidence of a workup, and that every claim has
    /// one.
    pub fn check_citations(&self, caller: &Package, arguments: &Map<String, Json>) -> Reply {
        let call = self.context(caller, 0);
        let checked = CitationsRequest::parse(arguments).and_then(|request| {
            let opened = Reference::open(&request.workup, call.view.subject(), call.seal.keys);
            let reference = opened.ok_or_else(not_ours)?;
            Ok(report(&request.note, &reference))
        });
        checked.unwrap_or_else(Reply::from)
    }
}

fn not_ours() -> Refusal {
    let message = "`workup` is not the reference of one of your workups; copy it from the \
        `workup=` line of the workup";
    Refusal::new(Code::InvalidRequest, message)
        .param("workup")
        .retry_with("workup")
}

fn report(note: &str, reference: &Reference) -> Reply {
    let sentences = prose::sentences(note);
    let known = |id: &str| {
        let number = id.strip_prefix('g').and_then(|it| it.parse::<u32>().ok());
        number.filter(|number| {
            (1..=reference.evidence).contains(number) && id == format!("g{number}")
        })
    };
    let mut cited: BTreeSet<u32> = BTreeSet::new();
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let mut dangling: Vec<String> = Vec::new();
    for id in sentences.iter().flat_map(|sentence| &sentence.cites) {
        match known(id) {
            Some(number) => {
                cited.insert(number);
            }
            None if seen.insert(id) => dangling.push(id.clone()),
            None => {}
        }
    }
    let unused: Vec<u32> = (1..=reference.evidence)
        .filter(|it| !cited.contains(it))
        .collect();
    let uncited: Vec<&Sentence> = sentences
        .iter()
        .filter(|sentence| sentence.is_claim && !sentence.is_covered)
        .collect();
    let ids = |numbers: Vec<u32>| numbers.into_iter().map(|it| format!("g{it}")).collect();
    let report = Report {
        ok: dangling.is_empty() && uncited.is_empty(),
        cited: ids(cited.into_iter().collect()),
        dangling,
        unused: ids(unused),
        uncited,
    };
    Reply::done(report.text(), report.structure(reference))
}

struct Report<'a> {
    ok: bool,
    cited: Vec<String>,
    dangling: Vec<String>,
    unused: Vec<String>,
    uncited: Vec<&'a Sentence>,
}

impl Report<'_> {
    fn text(&self) -> String {
        let mut text = format!("ok={}\n", self.ok);
        for (name, ids) in [
            ("cited", &self.cited),
            ("dangling", &self.dangling),
            ("unused", &self.unused),
        ] {
            let shown: Vec<&str> = ids.iter().take(MAX_LISTED).map(String::as_str).collect();
            let more = if ids.len() > MAX_LISTED { " …" } else { "" };
            say!(text, "{name}={} {}{more}\n", ids.len(), shown.join(" "));
        }
        say!(text, "uncited={}\n", self.uncited.len());
        for sentence in self.uncited.iter().take(MAX_LISTED) {
            let shown = escape::inline(&sentence.text, MAX_SENTENCE_CHARS);
            say!(text, "- line {}: {shown}\n", sentence.line);
        }
        text
    }

    fn structure(&self, reference: &Reference) -> Json {
        let uncited: Vec<Json> = self
            .uncited
            .iter()
            .take(MAX_LISTED)
            .map(|it| json!({ "line": it.line, "text": escape::inline(&it.text, MAX_SENTENCE_CHARS) }))
            .collect();
        json!({
            "ok": self.ok,
            "cited": self.cited,
            "dangling": self.dangling.iter().take(MAX_LISTED).collect::<Vec<_>>(),
            "unused": self.unused,
            "uncited": uncited,
            "meta": {
                "dataset": reference.dataset,
                "entity": reference.entity,
                "evidence": reference.evidence,
                "dangling_total": self.dangling.len(),
                "uncited_total": self.uncited.len(),
            },
        })
    }
}
