//! Generates one stream from a table of the source, as a proposal over the whole source would.

use toml_edit::Item;
use wayleave_model::propose::{self, ProposeOptions};

use super::{MetaCode, MetaContext, MetaRefusal, shape::StreamShape};

/// Generates the stream of a table.
pub(super) async fn scaffold(
    context: &MetaContext,
    mapping: &str,
    shape: &StreamShape,
) -> Result<Item, MetaRefusal> {
    let table = shape.table.as_deref().unwrap_or_default();
    let (source, schema) = first_source(mapping).ok_or_else(|| {
        MetaRefusal::argument("the mapping names no source to write the stream from")
    })?;
    let mut catalogue = context.catalogue(&source, schema.as_deref()).await?;
    if catalogue.table(table).is_none() {
        let known = catalogue.tables.iter().map(|it| it.name.clone()).collect();
        return Err(MetaRefusal::unknown(
            MetaCode::InvalidArgument,
            "table",
            table,
            known,
        ));
    }
    catalogue.tables.retain(|it| it.name == table);
    let options = ProposeOptions::for_source(&source);
    let text = propose::propose(&catalogue, &options).text;
    let mut document = super::shape::parse(&text)?;
    let streams = document.get_mut("streams").and_then(Item::as_table_mut);
    let mut streams = streams.map(std::mem::take).unwrap_or_default().into_iter();
    let first = streams.next().map(|(_, item)| item);
    first.ok_or_else(|| {
        MetaRefusal::argument(format!("table `{table}` cannot be served as it is"))
            .hint("it has no key that can be served: set `key` and `fields` yourself")
    })
}

/// The source of a mapping's first connection, and the schema it is read from.
fn first_source(mapping: &str) -> Option<(String, Option<String>)> {
    let document: toml::Table = mapping.parse().ok()?;
    let connection = document.get("connections")?.as_array()?.first()?;
    let source = connection.get("source")?.as_str()?.to_owned();
    let dataset = document.get("dataset");
    let schema = dataset.and_then(|it| it.get("schema")?.as_str());
    Some((source, schema.map(str::to_owned)))
}
