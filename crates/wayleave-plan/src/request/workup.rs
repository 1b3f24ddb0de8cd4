//! Requests of `workup` and `check_citations`.

use serde_json::{Map, Value as Json, json};

use super::arguments::Arguments;
use super::schemas::object;
use crate::refusal::{Code, Refusal, quoted};
use crate::value::datetime_from_text;

/// Minimum size of a workup's text, in bytes: less has no room for evidence.
pub const MIN_BUDGET_BYTES: usize = 1_024;
/// Maximum size of a workup's text, in bytes.
pub const MAX_BUDGET_BYTES: usize = 64 * 1_024;
/// Default size of a workup's text, in bytes.
pub const DEFAULT_BUDGET_BYTES: usize = 8 * 1_024;
/// Maximum size of a note to check, in bytes.
pub const MAX_NOTE_BYTES: usize = 256 * 1_024;
/// Maximum size of an entity's name, in bytes.
const MAX_ENTITY_BYTES: usize = 512;

/// A section of a workup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Section {
    /// The record itself.
    Record,
    /// Records one relation away.
    Relations,
    /// Records two relations away.
    SecondHop,
    /// Events in order of time.
    Timeline,
    /// Texts that mention the entity.
    Text,
    /// Contradictions between records.
    Conflicts,
}

impl Section {
    /// Every section, in the order of the text.
    pub const ALL: [Self; 6] = [
        Self::Record,
        Self::Relations,
        Self::SecondHop,
        Self::Timeline,
        Self::Text,
        Self::Conflicts,
    ];

    /// Its name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Record => "record",
            Self::Relations => "relations",
            Self::SecondHop => "second_hop",
            Self::Timeline => "timeline",
            Self::Text => "text",
            Self::Conflicts => "conflicts",
        }
    }
}

/// The arguments of `workup`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkupRequest {
    /// The dataset.
    pub dataset: String,
    /// A record's id, key or title, or words to find it by.
    pub entity: String,
    /// Maximum number of relations to follow: 1 or 2.
    pub depth: usize,
    /// Only events at or after this time, in microseconds since 1970-01-01T00:00:00Z.
    pub since: Option<i64>,
    /// Only events before this time.
    pub until: Option<i64>,
    /// The requested sections, in the order of the text.
    pub sections: Vec<Section>,
    /// Maximum size of the text, in bytes.
    pub budget: usize,
}

/// The arguments of `check_citations`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CitationsRequest {
    /// The text with citations to check.
    pub note: String,
    /// The sealed reference of the workup it cites.
    pub workup: String,
}

impl WorkupRequest {
    /// Parses the arguments of a call of `tool`. They must name the dataset, unless the tool
    /// belongs to one dataset, `own`.
    pub fn parse(
        tool: &str,
        own: Option<&str>,
        arguments: &Map<String, Json>,
    ) -> Result<Self, Refusal> {
        let known = ["entity", "depth", "since", "until", "sections", "budget"];
        let dataset = own.is_none().then_some("dataset");
        let known: Vec<&'static str> = dataset.into_iter().chain(known).collect();
        let given = Arguments::new(tool, arguments, &known)?;
        let dataset = match own {
            Some(own) => own.to_owned(),
            None => given.required("dataset")?,
        };
        let entity = given.required("entity")?;
        if entity.len() > MAX_ENTITY_BYTES || entity.trim().is_empty() {
            return Err(given
                .wrong(
                    "entity",
                    &format!("a text of 1 to {MAX_ENTITY_BYTES} bytes"),
                )
                .retry_with("entity"));
        }
        let (since, until) = (time(&given, "since")?, time(&given, "until")?);
        if let (Some(since), Some(until)) = (since, until)
            && since >= until
        {
            let message = "`since` must be before `until`";
            return Err(Refusal::new(Code::InvalidRequest, message).param("since"));
        }
        Ok(Self {
            dataset,
            entity,
            depth: given.whole("depth", 1, 2)?.unwrap_or(2),
            since,
            until,
            sections: sections(&given)?,
            budget: given
                .whole("budget", MIN_BUDGET_BYTES, MAX_BUDGET_BYTES)?
                .unwrap_or(DEFAULT_BUDGET_BYTES),
        })
    }

    /// The JSON Schema of the arguments.
    pub fn input_schema(takes_dataset: bool) -> Json {
        let names: Vec<&str> = Section::ALL.map(Section::as_str).to_vec();
        let mut properties = json!({
            "entity": { "type": "string", "description": "Record id, key, title, or words" },
            "depth": { "type": "integer", "minimum": 1, "maximum": 2, "default": 2,
                "description": "Relations to follow" },
            "since": { "type": "string", "description": "Timeline and text from this RFC 3339 time or date" },
            "until": { "type": "string", "description": "Timeline and text before this" },
            "sections": { "type": "array", "items": { "type": "string", "enum": names },
                "description": "Default all" },
            "budget": { "type": "integer", "minimum": MIN_BUDGET_BYTES, "maximum": MAX_BUDGET_BYTES,
                "default": DEFAULT_BUDGET_BYTES, "description": "Bytes of text" },
        });
        let mut required = vec!["entity"];
        if let (true, Json::Object(members)) = (takes_dataset, &mut properties) {
            let dataset = json!({ "type": "string", "description": "An active dataset's name" });
            members.insert("dataset".to_owned(), dataset);
            required.insert(0, "dataset");
        }
        object(properties, Some(&required))
    }
}

impl CitationsRequest {
    /// Parses the arguments of a call.
    pub fn parse(arguments: &Map<String, Json>) -> Result<Self, Refusal> {
        let given = Arguments::new("check_citations", arguments, &["note", "workup"])?;
        let note = given.required("note")?;
        if note.len() > MAX_NOTE_BYTES {
            return Err(given
                .wrong("note", &format!("a text of at most {MAX_NOTE_BYTES} bytes"))
                .retry_with("note"));
        }
        Ok(Self {
            note,
            workup: given.required("workup")?,
        })
    }

    /// The JSON Schema of the arguments.
    pub fn input_schema() -> Json {
        let properties = json!({
            "note": { "type": "string", "description": "Markdown that cites as [g1]" },
            "workup": { "type": "string", "description": "The workup= reference of the cited workup" },
        });
        object(properties, Some(&["note", "workup"]))
    }
}

/// A time, or a date, which means its start.
fn time(given: &Arguments<'_>, name: &'static str) -> Result<Option<i64>, Refusal> {
    let Some(text) = given.text(name)? else {
        return Ok(None);
    };
    if let Some(micros) = datetime_from_text(&text) {
        return Ok(Some(micros));
    }
    let given = quoted(&text);
    let message = format!("`{name}` must be a date or an RFC 3339 time, not {given}");
    Err(Refusal::new(Code::InvalidRequest, message)
        .param(name)
        .retry_with(name))
}

fn sections(given: &Arguments<'_>) -> Result<Vec<Section>, Refusal> {
    let Some(names) = given.names("sections", Section::ALL.len())? else {
        return Ok(Section::ALL.to_vec());
    };
    let known = |name: &str| Section::ALL.into_iter().find(|it| it.as_str() == name);
    if let Some(odd) = names.iter().find(|name| known(name).is_none()) {
        let message = format!("there is no section {}", quoted(odd));
        return Err(Refusal::new(Code::InvalidRequest, message)
            .param("sections")
            .allowed(Section::ALL.map(Section::as_str))
            .near(odd)
            .retry_with("sections"));
    }
    let asked = |section: &Section| names.iter().any(|name| name == section.as_str());
    Ok(Section::ALL.into_iter().filter(asked).collect())
}
