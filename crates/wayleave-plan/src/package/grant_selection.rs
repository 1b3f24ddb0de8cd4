//! Resolves the selection of a new grant to terms that fit the ratified mapping, or reports
//! everything that does not fit.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;
use wayleave_model::grant::{self, RowFilter, StreamTerms, Terms};
use wayleave_model::mapping::{Capability, Datatype, Field, Mapping, Stream};
use wayleave_model::mask::{MASKS, Mask};
use wayleave_model::nearest::nearest;
use wayleave_model::ratify::Ratified;

use crate::filter;

/// A person's selection of what to grant of a dataset: all of it, or the named parts.
#[derive(Debug, Clone, Default)]
pub struct GrantSelection {
    /// The connection; optional if the dataset has only one.
    pub connection: Option<String>,
    /// The streams, each whole or limited to fields; empty for all streams, whole. Key fields are
    /// always included, because a record has no identity without them.
    pub streams: BTreeMap<String, Option<BTreeSet<String>>>,
    /// Row filters, by stream.
    pub rows: BTreeMap<String, RowFilter>,
    /// The fields to show masked, by stream and field.
    pub masks: BTreeMap<String, BTreeMap<String, Mask>>,
    /// Capabilities; none by default.
    pub capabilities: BTreeSet<String>,
}

/// A part of a selection that does not fit the mapping.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    /// The dataset has no such name.
    #[error("{place} has no {what} `{name}`")]
    Unknown {
        /// The kind of name: connection, stream, field or capability.
        what: &'static str,
        /// Where it was looked up, for the message.
        place: String,
        /// The name.
        name: String,
        /// The closest existing name.
        near: Option<String>,
        /// The names that exist.
        known: Vec<String>,
    },
    /// The dataset has several connections and the selection names none.
    #[error("dataset `{dataset}` has {} connections; a grant is of one", .known.len())]
    WhichConnection {
        /// The dataset.
        dataset: String,
        /// The connections.
        known: Vec<String>,
    },
    /// A row filter on a stream that is not granted.
    #[error("there is a row filter for stream `{stream}`, which is not granted")]
    RowsOfNothing {
        /// The stream.
        stream: String,
    },
    /// A capability that the rest of the grant does not allow.
    #[error("capability `{capability}` does not fit: {reason}")]
    Capability {
        /// The capability.
        capability: String,
        /// Why it does not fit.
        reason: String,
    },
    /// A mask that the field cannot have.
    #[error("the mask of `{stream}.{field}` does not fit: {reason}")]
    Mask {
        /// The stream.
        stream: String,
        /// The field.
        field: String,
        /// Why it does not fit.
        reason: String,
    },
    /// A row filter that does not fit its stream.
    #[error("the row filter of `{stream}` does not fit: {reason}")]
    Rows {
        /// The stream.
        stream: String,
        /// Why it does not fit.
        reason: String,
    },
}

impl SelectionError {
    /// A hint on how to fix it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Unknown { near: Some(near), .. } => Some(format!("did you mean `{near}`?")),
            Self::Unknown { known, .. } => Some(format!("there are: {}", list(known))),
            Self::WhichConnection { known, .. } => {
                Some(format!("name one with `--connection`: {}", list(known)))
            }
            Self::Capability { .. } => Some("grant what it writes, too".to_owned()),
            Self::Mask { .. } => Some(format!("a mask is {MASKS}")),
            Self::RowsOfNothing { stream } => Some(format!("grant it too: `--stream {stream}`")),
            Self::Rows { .. } => Some(
                "a filter is written as in `query_records`: {\"region\": \"eu\", \"level\": {\"gte\": 2}}"
                    .to_owned(),
            ),
        }
    }
}

/// Maximum number of names listed.
const MAX_LISTED: usize = 20;

fn list(names: &[String]) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    let mut quoted: Vec<String> = names
        .iter()
        .take(MAX_LISTED)
        .map(|it| format!("`{it}`"))
        .collect();
    if names.len() > MAX_LISTED {
        quoted.push("…".to_owned());
    }
    quoted.join(", ")
}

pub(super) fn unknown<'a>(
    what: &'static str,
    place: String,
    name: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> SelectionError {
    SelectionError::Unknown {
        what,
        place,
        name: name.to_owned(),
        near: nearest(name, known.clone()).map(str::to_owned),
        known: known.map(str::to_owned).collect(),
    }
}

impl GrantSelection {
    /// Resolves the selection to terms that list every stream and field by name. Fails with
    /// everything that does not fit.
    pub fn terms(&self, mapping: &Ratified<Mapping>) -> Result<Terms, Vec<SelectionError>> {
        let mut unfit = Vec::new();
        let connection = self.connection(mapping, &mut unfit);
        let mut streams = self.streams(mapping, &mut unfit);
        for (name, filter) in &self.rows {
            match (streams.get_mut(name), stream_of(mapping, name)) {
                (Some(terms), Some(stream)) => match fits(stream, filter) {
                    Ok(()) => terms.rows = Some(filter.clone()),
                    Err(reason) => unfit.push(SelectionError::Rows {
                        stream: name.clone(),
                        reason,
                    }),
                },
                // A named stream that is unknown has been reported already.
                _ if self.streams.contains_key(name) => {}
                (_, None) => unfit.push(no_stream(mapping, name)),
                (None, Some(_)) => unfit.push(SelectionError::RowsOfNothing {
                    stream: name.clone(),
                }),
            }
        }
        self.masks(mapping, &mut streams, &mut unfit);
        let capabilities = mapping.capabilities.iter().map(|it| it.name.as_str());
        for name in &self.capabilities {
            if !capabilities.clone().any(|known| known == name) {
                unfit.push(unknown(
                    "capability",
                    place(mapping),
                    name,
                    capabilities.clone(),
                ));
            }
        }
        let granted = self.capabilities.iter();
        for capability in granted.filter_map(|name| mapping.capability(name)) {
            if let Err(reason) = callable(mapping, capability, connection.as_deref(), &streams) {
                let capability = capability.name.value.clone();
                unfit.push(SelectionError::Capability { capability, reason });
            }
        }
        match connection {
            Some(connection) if unfit.is_empty() => Ok(Terms {
                dataset: mapping.dataset.name.value.clone(),
                connection,
                mapping: mapping.digest(),
                streams,
                capabilities: self.capabilities.clone(),
            }),
            _ => Err(unfit),
        }
    }

    fn masks(
        &self,
        mapping: &Mapping,
        streams: &mut BTreeMap<String, StreamTerms>,
        unfit: &mut Vec<SelectionError>,
    ) {
        for (name, masks) in &self.masks {
            let (Some(stream), terms) = (stream_of(mapping, name), streams.get_mut(name)) else {
                // A named stream that is unknown has been reported already.
                if !self.streams.contains_key(name) {
                    unfit.push(no_stream(mapping, name));
                }
                continue;
            };
            let granted = terms
                .as_ref()
                .map(|it| it.fields.clone())
                .unwrap_or_default();
            for (field, mask) in masks {
                match maskable(stream, field, *mask, &granted) {
                    Ok(()) => {}
                    Err(found) => unfit.push(found),
                }
            }
            if let Some(terms) = terms {
                terms.masks.clone_from(masks);
            }
        }
    }

    fn connection(&self, mapping: &Mapping, unfit: &mut Vec<SelectionError>) -> Option<String> {
        let known = mapping.connections.iter().map(|it| it.id.as_str());
        match (&self.connection, mapping.connections.as_slice()) {
            (Some(wanted), _) => {
                if known.clone().any(|id| id == wanted) {
                    return Some(wanted.clone());
                }
                unfit.push(unknown("connection", place(mapping), wanted, known));
            }
            (None, [only]) => return Some(only.id.value.clone()),
            (None, _) => unfit.push(SelectionError::WhichConnection {
                dataset: mapping.dataset.name.value.clone(),
                known: known.map(str::to_owned).collect(),
            }),
        }
        None
    }

    fn streams(
        &self,
        mapping: &Mapping,
        unfit: &mut Vec<SelectionError>,
    ) -> BTreeMap<String, StreamTerms> {
        if self.streams.is_empty() {
            let all = mapping.streams.iter();
            let all = all.map(|stream| (stream.name.value.clone(), whole(stream)));
            return all.collect();
        }
        let mut streams = BTreeMap::new();
        for (name, wanted) in &self.streams {
            let Some(stream) = stream_of(mapping, name) else {
                unfit.push(no_stream(mapping, name));
                continue;
            };
            let terms = match wanted {
                None => whole(stream),
                Some(fields) => some(stream, fields, unfit),
            };
            streams.insert(name.clone(), terms);
        }
        streams
    }
}

/// Checks that a grant of these streams allows calling a capability.
pub(super) fn callable(
    mapping: &Mapping,
    capability: &Capability,
    connection: Option<&str>,
    streams: &BTreeMap<String, StreamTerms>,
) -> Result<(), String> {
    let written = mapping.connection_of(capability).map(|it| it.id.as_str());
    if let (Some(written), Some(granted)) = (written, connection)
        && written != granted
    {
        return Err(format!("it writes connection `{written}`"));
    }
    let Some(terms) = streams.get(capability.stream.as_str()) else {
        return Err(format!("stream `{}` is not granted", capability.stream));
    };
    let mut written = capability.fields.iter();
    if let Some(field) = written.find(|it| terms.masks.contains_key(it.as_str())) {
        return Err(format!(
            "field `{field}` of `{}` is masked",
            capability.stream
        ));
    }
    match capability
        .fields
        .iter()
        .find(|it| !terms.fields.contains(it.as_str()))
    {
        Some(field) => Err(format!(
            "field `{field}` of `{}` is not granted",
            capability.stream
        )),
        None => Ok(()),
    }
}

/// Checks that a field can have a mask.
fn maskable(
    stream: &Stream,
    name: &str,
    mask: Mask,
    granted: &BTreeSet<String>,
) -> Result<(), SelectionError> {
    let Some(field) = stream.field(name) else {
        let known = stream.fields.iter().map(|it| it.name.as_str());
        let place = format!("stream `{}`", stream.name);
        return Err(unknown("field", place, name, known));
    };
    let required = field.mask.as_ref().map(|it| it.value);
    let reason = if stream.key.contains(&field.name) {
        "it is in the key, which ids of records hold".to_owned()
    } else if !granted.contains(name) {
        "the field is not granted".to_owned()
    } else if !mask.fits(field.datatype.value) {
        let (datatype, suits) = (&field.datatype, mask.suits());
        format!("`{mask}` is for {suits}, and the field is a `{datatype}`")
    } else if let Some(required) = required.filter(|it| !mask.is_within(*it)) {
        format!(
            "the mapping requires `{required}`, and `{mask}` may reveal more; `redact` is allowed"
        )
    } else {
        return Ok(());
    };
    Err(SelectionError::Mask {
        stream: stream.name.value.clone(),
        field: name.to_owned(),
        reason,
    })
}

fn place(mapping: &Mapping) -> String {
    format!("dataset `{}`", mapping.dataset.name)
}

pub(super) fn no_stream(mapping: &Mapping, name: &str) -> SelectionError {
    let known = mapping.streams.iter().map(|it| it.name.as_str());
    unknown("stream", place(mapping), name, known)
}

fn stream_of<'a>(mapping: &'a Mapping, name: &str) -> Option<&'a Stream> {
    mapping.stream(name)
}

fn whole(stream: &Stream) -> StreamTerms {
    let fields = stream.fields.iter();
    StreamTerms {
        fields: fields.map(|field| field.name.value.clone()).collect(),
        relations: relations(stream),
        rows: None,
        masks: BTreeMap::new(),
    }
}

fn some(
    stream: &Stream,
    wanted: &BTreeSet<String>,
    unfit: &mut Vec<SelectionError>,
) -> StreamTerms {
    let known = stream.fields.iter().map(|it| it.name.as_str());
    for name in wanted.iter().filter(|name| stream.field(name).is_none()) {
        let place = format!("stream `{}`", stream.name);
        unfit.push(unknown("field", place, name, known.clone()));
    }
    let key = stream.key.iter().map(|name| name.value.clone());
    StreamTerms {
        fields: wanted.iter().cloned().chain(key).collect(),
        relations: relations(stream),
        rows: None,
        masks: BTreeMap::new(),
    }
}

/// All current relations of the stream. Which of them can be followed depends on the granted
/// fields.
fn relations(stream: &Stream) -> BTreeSet<String> {
    let relations = stream.relations.iter();
    relations.map(|it| it.name.value.clone()).collect()
}

/// Checks a row filter, with sample values in place of its claims.
pub(super) fn fits(stream: &Stream, filter: &RowFilter) -> Result<(), String> {
    let mut filter = filter.to_map().ok_or("it is not a JSON object")?;
    grant::visit_operands(&mut filter, &mut |name, operand| {
        if grant::claim_of(operand).is_some()
            && let Some(field) = stream.field(name)
        {
            *operand = sample(field);
        }
    });
    filter::check_rows(stream, &filter).map_err(|refusal| {
        let near = refusal.did_you_mean.as_ref();
        let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        format!("{}{near}", refusal.message)
    })
}

/// A sample value of a field's datatype, to stand for a claim.
fn sample(field: &Field) -> Json {
    if let Some(listed) = field.one_of.first() {
        return Json::String(listed.to_string());
    }
    match field.datatype.value {
        Datatype::Boolean => Json::Bool(true),
        Datatype::Integer | Datatype::Number => Json::from(1),
        Datatype::Decimal => Json::from("1"),
        Datatype::Date | Datatype::Datetime => Json::from("2000-01-01"),
        Datatype::String | Datatype::Iri | Datatype::Json => Json::from("a"),
    }
}
