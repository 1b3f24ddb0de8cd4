//! A grant written as a file, for grants too long for a command line.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use serde::Deserialize;
use serde_json::Value as Json;
use wayleave_model::{grant::RowFilter, mask::Mask};
use wayleave_plan::package::GrantSelection;

use super::expiry::{self, Expiry};
use crate::failure::Failure;

/// The contents of a grant file.
#[derive(Debug)]
pub(super) struct GrantDraft {
    pub(super) dataset: String,
    pub(super) selection: GrantSelection,
    pub(super) purpose: String,
    pub(super) expires: Option<Expiry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    dataset: String,
    connection: Option<String>,
    #[serde(default)]
    purpose: String,
    expires: Option<toml::Value>,
    #[serde(default)]
    capabilities: BTreeSet<String>,
    #[serde(default)]
    streams: BTreeMap<String, StreamSection>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StreamSection {
    fields: Option<BTreeSet<String>>,
    rows: Option<toml::Value>,
    #[serde(default)]
    masks: BTreeMap<String, Mask>,
}

/// Reads the file.
pub(super) fn read(path: &Path) -> Result<GrantDraft, Failure> {
    let shown = path.display();
    let text = fs::read_to_string(path).map_err(|error| {
        let mut failure = Failure::usage(format!("`{shown}` cannot be read"));
        failure.why.causes.push(error.to_string());
        failure
    })?;
    parse(&text).map_err(|problem| {
        let mut failure = Failure::usage(format!("`{shown}` is not a grant"));
        failure.why.causes.push(problem);
        failure.hint("`docs/reference/grants.md` shows how one is written")
    })
}

fn parse(text: &str) -> Result<GrantDraft, String> {
    let document: Document =
        toml::from_str(text).map_err(|error| error.message().trim().to_owned())?;
    let (mut streams, mut rows) = (BTreeMap::new(), BTreeMap::new());
    let mut masks = BTreeMap::new();
    for (name, section) in document.streams {
        if let Some(filter) = section.rows {
            rows.insert(name.clone(), row_filter(&name, &filter)?);
        }
        if !section.masks.is_empty() {
            masks.insert(name.clone(), section.masks);
        }
        streams.insert(name, section.fields);
    }
    let expires = match document.expires {
        None => None,
        Some(at) => {
            let text = at.as_str().map_or_else(|| at.to_string(), str::to_owned);
            let expiry = expiry::parse(&text);
            Some(expiry.map_err(|rule| format!("`expires`: {rule}"))?)
        }
    };
    Ok(GrantDraft {
        dataset: document.dataset,
        selection: GrantSelection {
            connection: document.connection,
            streams,
            rows,
            masks,
            capabilities: document.capabilities,
        },
        purpose: document.purpose,
        expires,
    })
}

/// Parses a row filter, given as a table or as JSON text.
fn row_filter(stream: &str, filter: &toml::Value) -> Result<RowFilter, String> {
    let text = match filter {
        toml::Value::String(text) => text.clone(),
        other => json(other).to_string(),
    };
    text.parse()
        .map_err(|error| format!("`streams.{stream}.rows`: {error}"))
}

fn json(value: &toml::Value) -> Json {
    match value {
        toml::Value::String(text) => Json::from(text.as_str()),
        toml::Value::Integer(number) => Json::from(*number),
        toml::Value::Float(number) => Json::from(*number),
        toml::Value::Boolean(boolean) => Json::from(*boolean),
        // A time in the spelling of filters.
        toml::Value::Datetime(at) => Json::from(at.to_string()),
        toml::Value::Array(values) => values.iter().map(json).collect(),
        toml::Value::Table(members) => {
            let members = members.iter().map(|(key, it)| (key.clone(), json(it)));
            Json::Object(members.collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_is_read_from_a_file() {
        let written = parse(
            r#"
            dataset = "crm"
            connection = "crm-eu"
            purpose = "support"
            expires = 2999-12-31
            capabilities = ["hire"]

            [streams.people]
            fields = ["full_name", "email"]
            masks = { email = "token", full_name = "last4" }
            rows = { region = { claim = "region" }, hired = { gte = 2020-01-31 }, level = [1, 2] }

            [streams.orgs]
            rows = '{"region": "eu"}'
            "#,
        )
        .unwrap();
        assert_eq!(written.dataset, "crm");
        assert!(matches!(written.expires, Some(Expiry::At(_))));
        assert_eq!(
            written.selection.rows["people"].as_str(),
            r#"{"hired":{"gte":"2020-01-31"},"level":[1,2],"region":{"claim":"region"}}"#
        );
        assert_eq!(
            written.selection.rows["orgs"].as_str(),
            r#"{"region": "eu"}"#
        );
        let masks = &written.selection.masks["people"];
        assert_eq!(masks["email"].to_string(), "token");
        assert_eq!(masks.len(), 2);
        assert_eq!(written.selection.streams["orgs"], None);
        assert!(written.selection.streams["people"].is_some());
    }

    #[test]
    fn the_grant_in_the_reference_is_one() {
        let page = include_str!("../../../../../docs/reference/grants.md");
        let (_, rest) = page.split_once("```toml\n").unwrap();
        let (text, _) = rest.split_once("```").unwrap();
        let written = parse(text).unwrap();
        assert_eq!(written.selection.streams.len(), 2);
        assert!(written.expires.is_some() && written.selection.connection.is_some());
    }

    #[test]
    fn what_is_not_a_grant_is_told_by_name() {
        for (text, said) in [
            ("dataset = 'crm'\nfields = []", "fields"),
            ("connection = 'x'", "dataset"),
            ("dataset = 'crm'\nexpires = '1970-01-02'", "expires"),
            (
                "dataset = 'crm'\n[streams.people]\nrows = [1]",
                "streams.people.rows",
            ),
            ("dataset = 'crm'\n[streams.people]\nwhere = {}", "where"),
            (
                "dataset = 'crm'\n[streams.p]\nmasks = { a = 'none' }",
                "a mask is",
            ),
        ] {
            let problem = parse(text).unwrap_err();
            assert!(problem.contains(said), "{problem}");
        }
    }
}
