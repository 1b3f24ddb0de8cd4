//! Requests of the dataset tools.

use serde_json::{Map, Value as Json, json};

use super::arguments::Arguments;
use super::schemas::object;
use crate::refusal::Refusal;

/// Maximum number of datasets in a list.
pub const MAX_DATASETS: usize = 1_000;
/// Default number of datasets in a list.
pub const DEFAULT_DATASETS: usize = 100;

/// The arguments of `list_datasets`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatasetsRequest {
    /// Lists only names after this one. Empty lists all.
    pub after: String,
    /// Maximum number of names.
    pub limit: usize,
}

/// The arguments of `connect_dataset` and `disconnect_dataset`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatasetRequest {
    /// The dataset, as the caller names it.
    pub name: String,
}

impl DatasetsRequest {
    /// Parses the arguments of a call.
    pub fn parse(arguments: &Map<String, Json>) -> Result<Self, Refusal> {
        let given = Arguments::new("list_datasets", arguments, &["after", "limit"])?;
        Ok(Self {
            after: given.any_text("after")?,
            limit: given
                .whole("limit", 1, MAX_DATASETS)?
                .unwrap_or(DEFAULT_DATASETS),
        })
    }

    /// The JSON Schema of the arguments.
    pub fn input_schema() -> Json {
        let properties = json!({
            "after": { "type": "string", "description": "Only names after this one: next_after of an earlier list." },
            "limit": { "type": "integer", "minimum": 1, "maximum": MAX_DATASETS, "default": DEFAULT_DATASETS },
        });
        object(properties, Some(&[]))
    }
}

impl DatasetRequest {
    /// Parses the arguments of a call of `tool`.
    pub fn parse(tool: &str, arguments: &Map<String, Json>) -> Result<Self, Refusal> {
        let given = Arguments::new(tool, arguments, &["name"])?;
        Ok(Self {
            name: given.required("name")?,
        })
    }

    /// The JSON Schema of the arguments.
    pub fn input_schema() -> Json {
        let properties = json!({ "name": { "type": "string", "minLength": 1, "description": "A dataset's name, as list_datasets shows it." } });
        object(properties, Some(&["name"]))
    }
}
