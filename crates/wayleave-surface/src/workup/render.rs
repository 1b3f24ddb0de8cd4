//! Renders statements as Markdown within a budget of bytes, and as structure.
//!
//! Room is shared out in rounds, one statement of each section per round, so that no section
//! starves another. Records are numbered in the order in which the text first cites them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};
use wayleave_plan::request::{Section, address};

use super::gap::Gap;
use super::node::{ReachedRecords, SUBJECT};
use super::statement::{RecordUse, Statement};

/// Bytes reserved for the note about room, and for the headings that are always there.
const RESERVED_BYTES: usize = 140;
/// Size of a citation with the longest possible number, in bytes.
const CITATION_BYTES: usize = "[g9999]".len();
/// Sections in the order in which they get room.
const PRIORITY: [Section; 6] = [
    Section::Record,
    Section::Conflicts,
    Section::Relations,
    Section::Text,
    Section::SecondHop,
    Section::Timeline,
];

/// The content of a workup before it is numbered.
pub(super) struct WorkupContent<'a> {
    pub(super) reached: &'a ReachedRecords<'a>,
    /// The lines under the heading.
    pub(super) opening: Statement,
    pub(super) statements: Vec<Statement>,
    pub(super) gaps: Vec<Gap>,
    /// Size of the closing text, in bytes.
    pub(super) ending: usize,
    pub(super) budget: usize,
}

/// A workup that is numbered and fits.
pub(super) struct NumberedWorkup {
    pub(super) text: String,
    pub(super) sections: Json,
    pub(super) gaps: Json,
    /// The records cited, in the order of their numbers.
    pub(super) cited: Vec<CitedRecord>,
    /// Number of statements that did not fit.
    pub(super) left_out: usize,
}

/// A record that is cited.
pub(super) struct CitedRecord {
    pub(super) node: usize,
    pub(super) fields: BTreeSet<String>,
}

impl CitedRecord {
    /// The evidence as structure; `number` counts from 1.
    pub(super) fn to_json(
        &self,
        number: usize,
        reached: &ReachedRecords<'_>,
        activity: &str,
    ) -> Json {
        let node = reached.get(self.node);
        json!({
            "id": format!("g{number}"),
            "record_id": node.id(),
            "uri": address::record(node.stream.type_name(), node.id()),
            "stream": node.stream.name(),
            "connection_id": node.stream.connection_id(),
            "fields": self.fields,
            "activity": activity,
        })
    }
}

impl WorkupContent<'_> {
    /// The workup as text and structure; `None` where not even its opening fits.
    pub(super) fn render(mut self) -> Option<NumberedWorkup> {
        let Selection {
            statements,
            gaps,
            left_out,
        } = self.choose()?;
        let dropped = self.gaps.len() - gaps.len();
        let mut index = 0;
        self.gaps.retain(|_| {
            index += 1;
            gaps.contains(&(index - 1))
        });
        if left_out + dropped > 0 {
            let what = format!("{left_out} statement(s) and {dropped} gap(s)");
            let text = format!("{what} had no room within {} bytes", self.budget);
            self.gaps.push(Gap::shown("budget", text, Vec::new()));
        }
        let mut writer = CitationWriter::default();
        self.head(&mut writer);
        let sections = self.body(&statements, &mut writer);
        let gaps = self.tail(&mut writer);
        let written = NumberedWorkup {
            text: writer.text,
            sections,
            gaps,
            cited: writer.cited,
            left_out,
        };
        (written.text.len() + self.ending <= self.budget).then_some(written)
    }

    fn head(&self, writer: &mut CitationWriter) {
        let name = self.reached.get(SUBJECT).name();
        say!(writer.text, "# {name}");
        writer.cite(&self.opening.uses);
        say!(writer.text, "\n\n{}", self.opening.text);
        writer.cite(&self.opening.uses);
        writer.text.push_str(".\n");
    }

    fn body(&self, chosen: &BTreeSet<usize>, writer: &mut CitationWriter) -> Json {
        let mut sections = Vec::new();
        for section in Section::ALL {
            let statements = self.statements.iter().enumerate();
            let statements: Vec<&Statement> = statements
                .filter(|(at, statement)| statement.section == section && chosen.contains(at))
                .map(|(_, statement)| statement)
                .collect();
            if statements.is_empty() {
                continue;
            }
            say!(writer.text, "\n## {}\n\n", heading(section));
            let cited: Vec<Json> = statements
                .into_iter()
                .map(|statement| {
                    say!(writer.text, "- {}", statement.text);
                    let cites = writer.cite(&statement.uses);
                    writer.text.push('\n');
                    json!({ "text": statement.text, "cites": cites })
                })
                .collect();
            sections.push(json!({
                "key": section.as_str(),
                "title": heading(section),
                "statements": cited,
            }));
        }
        Json::Array(sections)
    }

    fn tail(&self, writer: &mut CitationWriter) -> Json {
        let mut told = Vec::new();
        if !self.gaps.is_empty() {
            writer.text.push_str("\n## Gaps\n\n");
        }
        for gap in &self.gaps {
            say!(writer.text, "- {}", gap.text);
            let cites = writer.cite(&gap.uses);
            writer.text.push('\n');
            told.push(json!({ "code": gap.code, "text": gap.text, "cites": cites }));
        }
        writer.text.push_str("\n## Provenance\n\n");
        for (index, cited) in writer.cited.iter().enumerate() {
            let id = self.reached.get(cited.node).id();
            say!(writer.text, "- g{}: {id}\n", index + 1);
        }
        Json::Array(told)
    }

    /// Selects what fits; `None` where nothing does.
    fn choose(&self) -> Option<Selection> {
        let name = self.reached.get(SUBJECT).name().len();
        let fixed = name + 2 * CITATION_BYTES + self.ending + RESERVED_BYTES;
        let mut room = SizeBudget {
            reached: self.reached,
            left: self.budget.checked_sub(fixed)?,
            nodes: BTreeSet::new(),
        };
        if !room.take(self.opening.text.len(), &self.opening.uses, 0) {
            return None;
        }
        let mut chosen = Selection::default();
        // Gaps may take a quarter; statements get the rest.
        let floor = room.left - room.left / 4;
        for (at, gap) in self.gaps.iter().enumerate() {
            if room.left > floor && room.take(gap.text.len(), &gap.uses, 0) {
                chosen.gaps.insert(at);
            }
        }
        self.share_out(room, &mut chosen);
        Some(chosen)
    }

    /// Takes one statement of each section in turn, as long as there is room.
    fn share_out(&self, mut room: SizeBudget<'_>, chosen: &mut Selection) {
        let mut waiting: Vec<(Section, Vec<usize>)> = PRIORITY
            .into_iter()
            .map(|section| {
                let all = self.statements.iter().enumerate().rev();
                let ours = all.filter(|(_, it)| it.section == section);
                (section, ours.map(|(at, _)| at).collect())
            })
            .collect();
        let mut begun = BTreeSet::new();
        while waiting.iter().any(|(_, statements)| !statements.is_empty()) {
            for (section, statements) in &mut waiting {
                let next = statements.pop();
                let Some((at, statement)) =
                    next.and_then(|at| Some((at, self.statements.get(at)?)))
                else {
                    continue;
                };
                let title = "\n## \n\n".len() + heading(*section).len();
                let first = if begun.contains(section) { 0 } else { title };
                if room.take(statement.text.len(), &statement.uses, first) {
                    chosen.statements.insert(at);
                    begun.insert(*section);
                } else {
                    chosen.left_out += 1;
                }
            }
        }
    }
}

/// The selected statements and gaps, by index.
#[derive(Default)]
struct Selection {
    statements: BTreeSet<usize>,
    gaps: BTreeSet<usize>,
    /// Number of statements that do not fit.
    left_out: usize,
}

/// The remaining room.
struct SizeBudget<'a> {
    reached: &'a ReachedRecords<'a>,
    left: usize,
    /// The records that already have their line of provenance.
    nodes: BTreeSet<usize>,
}

impl SizeBudget<'_> {
    /// Takes room for a line and for its citations, if there is enough.
    fn take(&mut self, text: usize, uses: &[RecordUse], heading: usize) -> bool {
        let mut needed = "- . \n".len() + text + heading + uses.len() * CITATION_BYTES;
        let mut new = BTreeSet::new();
        for used in uses.iter().filter(|it| !self.nodes.contains(&it.node)) {
            if new.insert(used.node) {
                let id = self.reached.get(used.node).id().len();
                needed += "- g9999: \n".len() + id;
            }
        }
        if needed > self.left {
            return false;
        }
        self.left -= needed;
        self.nodes.extend(new);
        true
    }
}

/// Writes statements, and numbers the records they cite.
#[derive(Default)]
struct CitationWriter {
    text: String,
    cited: Vec<CitedRecord>,
    numbers: BTreeMap<usize, usize>,
}

impl CitationWriter {
    /// Appends citations, and returns their ids.
    fn cite(&mut self, uses: &[RecordUse]) -> Vec<String> {
        let mut ids: Vec<String> = Vec::new();
        for used in uses {
            let next = self.cited.len();
            let at = *self.numbers.entry(used.node).or_insert(next);
            if at == next {
                self.cited.push(CitedRecord {
                    node: used.node,
                    fields: BTreeSet::new(),
                });
            }
            if let Some(cited) = self.cited.get_mut(at) {
                cited.fields.extend(used.fields.iter().cloned());
            }
            let id = format!("g{}", at + 1);
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        if !ids.is_empty() {
            self.text.push(' ');
        }
        for id in &ids {
            say!(self.text, "[{id}]");
        }
        ids
    }
}

fn heading(section: Section) -> &'static str {
    match section {
        Section::Record => "Record",
        Section::Relations => "Relations",
        Section::SecondHop => "Two relations away",
        Section::Timeline => "Timeline",
        Section::Text => "Texts that name it",
        Section::Conflicts => "Conflicts",
    }
}
