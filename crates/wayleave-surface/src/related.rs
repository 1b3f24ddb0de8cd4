//! Relations expanded by a read, shown as cells beside their record.

use serde_json::{Map, Value as Json, json};
use wayleave_plan::Record;
use wayleave_plan::expand::{Expansion, RelatedRecords};
use wayleave_plan::refusal::Refusal;
use wayleave_plan::value::Value;

use crate::call_context::CallContext;

/// The related records, by expansion and then by record.
#[derive(Default)]
pub(crate) struct Relations {
    found: Vec<Vec<RelatedRecords>>,
    /// Number of records whose relations are known.
    pub(crate) parents: usize,
}

/// Follows the expansions from these records, or from as many of the first ones as give at most
/// `most` bytes.
pub(crate) async fn follow(
    call: &CallContext<'_>,
    expansions: &[Expansion],
    records: &[Record],
    most: usize,
) -> Result<Relations, Refusal> {
    let mut parents = records.len();
    'fewer: loop {
        let (from, _) = records.split_at(parents);
        let mut found = Vec::with_capacity(expansions.len());
        for expansion in expansions {
            let rows = match expansion.plan(from) {
                None => Vec::new(),
                Some(plan) => {
                    let read = call.rows(&plan, most).await?;
                    if read.cut {
                        // Related records come in their own order, so those of one record are
                        // complete only when all are read.
                        parents /= 2;
                        continue 'fewer;
                    }
                    read.rows
                }
            };
            found.push(expansion.attach(from, &rows));
        }
        let related = found.iter().flatten();
        call.note_records(related.flat_map(|one: &RelatedRecords| &one.records));
        return Ok(Relations { found, parents });
    }
}

/// The column of a relation: its name and, in text, also the fields of its target.
pub(crate) fn heading(expansion: &Expansion) -> (String, String) {
    let name = expansion.relation().to_owned();
    let heading = format!("{name}[{}]", expansion.header().join(","));
    (name, heading)
}

/// The values of a related record.
pub(crate) fn values(record: &Record) -> Json {
    Json::Array(record.values.iter().map(Value::to_json).collect())
}

impl Relations {
    /// The related records of one record, in the order of the expansions.
    #[expect(
        clippy::expect_used,
        reason = "what was not read must not pass for what is not related"
    )]
    pub(crate) fn for_record(&self, index: usize) -> impl Iterator<Item = &RelatedRecords> {
        self.found.iter().map(move |all| {
            let related = all.get(index);
            related.expect("a record that relations were followed from")
        })
    }

    /// The cells of one record: its single related record, or a list of them.
    pub(crate) fn cells(&self, expansions: &[Expansion], index: usize) -> Vec<Json> {
        expansions
            .iter()
            .zip(self.for_record(index))
            .map(|(expansion, related)| {
                let records = &related.records;
                if expansion.is_to_one() {
                    records.first().map_or(Json::Null, values)
                } else {
                    Json::Array(records.iter().map(values).collect())
                }
            })
            .collect()
    }

    /// The rows with more related records than are shown, counted from 0.
    fn more(all: &[RelatedRecords], shown: usize) -> Vec<usize> {
        let counted = all.iter().take(shown).enumerate();
        counted
            .filter(|(_, it)| it.more)
            .map(|(row, _)| row)
            .collect()
    }

    /// The expansions' part of the structure.
    pub(crate) fn structure(&self, expansions: &[Expansion], shown: usize) -> Json {
        let mut all = Map::new();
        for (expansion, related) in expansions.iter().zip(&self.found) {
            let mut told = json!({ "stream": expansion.stream(), "fields": expansion.header() });
            let more = Self::more(related, shown);
            if let (false, Json::Object(members)) = (more.is_empty(), &mut told) {
                members.insert("more_in_rows".to_owned(), json!(more));
            }
            all.insert(expansion.relation().to_owned(), told);
        }
        Json::Object(all)
    }

    /// The expansions' part of the text.
    pub(crate) fn text(&self, expansions: &[Expansion], shown: usize) -> String {
        let mut text = String::new();
        for (expansion, related) in expansions.iter().zip(&self.found) {
            let more = Self::more(related, shown);
            if !more.is_empty() {
                let rows: Vec<String> = more.iter().map(|row| (row + 1).to_string()).collect();
                say!(
                    text,
                    "more {} than shown in rows {}: query_records {}\n",
                    expansion.relation(),
                    rows.join(" "),
                    expansion.stream()
                );
            }
        }
        text
    }
}
