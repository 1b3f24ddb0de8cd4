//! `schema` without a stream: an index of all visible streams.
//!
//! If it fits, every stream is shown with its fields, relations and measures. Otherwise the streams
//! are named, with as much detail as the budget of the result allows. Nothing here touches a store.

mod overview;

use std::collections::HashMap;

use serde_json::{Map, Value as Json, json};
use wayleave_plan::view::{ConnectionView, StreamView};

use crate::describe;
use crate::escape::inline;
use crate::failure::DRIFT;
use crate::reply::Reply;

/// Maximum size of an index, in bytes, however many streams it has.
const MAX_BYTES: usize = 64 * 1024;
/// Maximum size of an overview, which shows the fields of every stream, in bytes.
const MAX_OVERVIEW_BYTES: usize = 8_000;
/// Budget of an index without streams, in bytes.
const BASE_BYTES: usize = 4_000;
/// Additional budget per stream, in bytes.
const STREAM_BYTES: usize = 166;
/// Maximum number of streams listed by name where a single connector's streams are only counted.
const MAX_NAMED: usize = 250;

/// Levels of detail of an overview, from most to least.
const OVERVIEW_LEVELS: [DetailLimits; 4] = [
    DetailLimits {
        description: 80,
        label: 48,
        listed: ListDetail::Overview { values: 12 },
    },
    DetailLimits {
        description: 0,
        label: 32,
        listed: ListDetail::Overview { values: 12 },
    },
    DetailLimits {
        description: 0,
        label: 32,
        listed: ListDetail::Overview { values: 0 },
    },
    DetailLimits {
        description: 0,
        label: 32,
        listed: ListDetail::OverviewInText,
    },
];

/// Levels of detail of an index, from most to least.
const DETAIL_LEVELS: [DetailLimits; 7] = [
    DetailLimits {
        description: 160,
        label: 48,
        listed: ListDetail::Described,
    },
    DetailLimits {
        description: 80,
        label: 48,
        listed: ListDetail::Described,
    },
    DetailLimits {
        description: 40,
        label: 32,
        listed: ListDetail::Described,
    },
    DetailLimits {
        description: 0,
        label: 32,
        listed: ListDetail::Described,
    },
    DetailLimits {
        description: 0,
        label: 32,
        listed: ListDetail::Named,
    },
    DetailLimits {
        description: 0,
        label: 0,
        listed: ListDetail::Named,
    },
    DetailLimits {
        description: 0,
        label: 0,
        listed: ListDetail::InTextOnly,
    },
];

/// The lowest level of detail: names of connections and their numbers of streams.
const COUNTS_ONLY: DetailLimits = DetailLimits {
    description: 0,
    label: 0,
    listed: ListDetail::Counted,
};

#[derive(Clone, Copy)]
struct DetailLimits {
    /// Maximum length of a description, in characters.
    description: usize,
    /// Maximum length of a connection's label, in characters.
    label: usize,
    listed: ListDetail,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ListDetail {
    /// A line each: key, fields, relations, measures, and closed lists of at most `values` values.
    Overview { values: usize },
    /// The same without values, and only in the text.
    OverviewInText,
    /// A line each: name, type, description.
    Described,
    /// Names only.
    Named,
    /// Names only, and only in the text.
    InTextOnly,
    /// Their number, only in the text.
    Counted,
}

/// One dataset, and the visible part of it.
struct Connector<'a> {
    key: &'a str,
    title: Option<&'a str>,
    description: Option<&'a str>,
    connections: Vec<&'a ConnectionView>,
    groups: Vec<Group<'a>>,
}

/// Streams held by the same connections.
struct Group<'a> {
    holders: Vec<&'a str>,
    streams: Vec<&'a StreamView>,
}

/// Lists the streams of these connections: an overview if it fits, otherwise an index.
pub(crate) fn index(shown: &[&ConnectionView]) -> Reply {
    let connectors = connectors(shown);
    let whole = Listing::new(&connectors, shown.len(), connectors.len());
    // Each field takes at least its name: skip the overview where there are very many.
    if whole.fields <= MAX_OVERVIEW_BYTES / 4 {
        for room in OVERVIEW_LEVELS {
            let reply = whole.written(room);
            if reply.bytes() <= MAX_OVERVIEW_BYTES {
                return reply;
            }
        }
    }
    let budget = (BASE_BYTES + STREAM_BYTES * whole.streams).min(MAX_BYTES);
    let [most, less @ ..] = DETAIL_LEVELS;
    let mut reply = whole.written(most);
    for room in less {
        if reply.bytes() <= budget {
            break;
        }
        reply = whole.written(room);
    }
    // If not all names fit, count the streams of as many connectors as fit.
    let mut listed = connectors.len();
    while reply.bytes() > MAX_BYTES && listed > 0 {
        reply = Listing::new(&connectors, shown.len(), listed).written(COUNTS_ONLY);
        listed = listed * 3 / 4;
    }
    reply
}

fn connectors<'a>(shown: &[&'a ConnectionView]) -> Vec<Connector<'a>> {
    let mut connectors: Vec<Connector<'a>> = Vec::new();
    for connection in shown {
        match connectors.last_mut() {
            Some(last) if last.key == connection.connector_key => last.connections.push(connection),
            _ => connectors.push(Connector {
                key: &connection.connector_key,
                title: connection.dataset_title(),
                description: connection.dataset_description(),
                connections: vec![connection],
                groups: Vec::new(),
            }),
        }
    }
    for connector in &mut connectors {
        connector.groups = groups(&connector.connections);
    }
    connectors
}

/// Groups the streams of some connections of one dataset by their holders.
fn groups<'a>(connections: &[&'a ConnectionView]) -> Vec<Group<'a>> {
    let mut held: Vec<(&'a StreamView, Vec<&'a str>)> = Vec::new();
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for connection in connections {
        for stream in &connection.streams {
            let known = places.entry(stream.name()).or_default();
            let alike = known.iter().copied().find(|place| {
                let held = held.get(*place);
                held.is_some_and(|(it, _)| describe::is_alike(it, stream))
            });
            if let Some((_, holders)) = alike.and_then(|place| held.get_mut(place)) {
                holders.push(&connection.connection_id);
            } else {
                known.push(held.len());
                held.push((stream, vec![&connection.connection_id]));
            }
        }
    }
    let mut groups: Vec<Group<'a>> = Vec::new();
    for (stream, holders) in held {
        match groups.iter_mut().find(|group| group.holders == holders) {
            Some(group) => group.streams.push(stream),
            None => groups.push(Group {
                holders,
                streams: vec![stream],
            }),
        }
    }
    groups
}

impl Connector<'_> {
    fn streams(&self) -> usize {
        self.groups.iter().map(|group| group.streams.len()).sum()
    }

    fn fields(&self) -> usize {
        let streams = self.groups.iter().flat_map(|group| &group.streams);
        streams.map(|stream| stream.fields().count()).sum()
    }

    /// Whether its connections hold different sets of streams.
    fn is_mixed(&self) -> bool {
        self.groups.len() > 1
    }
}

/// Connectors, of which the first `listed` are shown, and totals over all of them.
struct Listing<'a> {
    connectors: &'a [Connector<'a>],
    listed: usize,
    connections: usize,
    streams: usize,
    fields: usize,
}

impl<'a> Listing<'a> {
    fn new(connectors: &'a [Connector<'a>], connections: usize, listed: usize) -> Self {
        Self {
            connectors,
            listed,
            connections,
            streams: connectors.iter().map(Connector::streams).sum(),
            fields: connectors.iter().map(Connector::fields).sum(),
        }
    }

    fn written(&self, room: DetailLimits) -> Reply {
        Reply::done(text(self, room), json!({ "data": structure(self, room) }))
    }

    fn listed(&self) -> impl Iterator<Item = &'a Connector<'a>> + use<'a> {
        self.connectors.iter().take(self.listed)
    }
}

fn text(listing: &Listing<'_>, room: DetailLimits) -> String {
    let mut text = format!(
        "{}, {}, {}, {}. ",
        counted(listing.streams, "stream"),
        counted(listing.fields, "field"),
        counted(listing.connectors.len(), "connector"),
        counted(listing.connections, "connection"),
    );
    text.push_str(match room.listed {
        ListDetail::Overview { .. } | ListDetail::OverviewInText => overview::LEGEND,
        _ => {
            "Next: schema with stream or streams (and connection_id where several hold it) tells \
             fields, filters and an example call."
        }
    });
    text.push('\n');
    for connector in listing.listed() {
        connector_text(&mut text, connector, room);
    }
    let left = listing.connectors.len() - listing.listed;
    if left > 0 {
        say!(
            text,
            "cut: {} not shown; schema with connection_id or stream tells of one\n",
            counted(left, "connector")
        );
    }
    if let (ListDetail::Counted, [only]) = (room.listed, listing.connectors) {
        first_streams(&mut text, only);
    }
    text
}

/// Names the first streams of a single connector if not all names fit.
fn first_streams(text: &mut String, connector: &Connector<'_>) {
    let streams = connector.groups.iter().flat_map(|group| &group.streams);
    for stream in streams.take(MAX_NAMED) {
        text.push(' ');
        text.push_str(stream.name());
        text.push_str(suspension(stream));
    }
    let left = connector.streams().saturating_sub(MAX_NAMED);
    if left > 0 {
        say!(
            text,
            "\ncut: {} not shown; schema with stream tells of one",
            counted(left, "stream")
        );
    }
    text.push('\n');
}

fn connector_text(text: &mut String, connector: &Connector<'_>, room: DetailLimits) {
    text.push_str(connector.key);
    for said in [connector.title, connector.description]
        .into_iter()
        .flatten()
    {
        if room.description > 0 {
            text.push_str(": ");
            text.push_str(&inline(said, room.description));
        }
    }
    text.push_str("\n connection_id");
    for connection in &connector.connections {
        text.push(' ');
        text.push_str(&connection.connection_id);
        if room.label > 0 && connection.label != connection.connection_id {
            say!(text, " ({})", inline(&connection.label, room.label));
        }
    }
    if room.listed == ListDetail::Counted {
        say!(text, ": {}\n", counted(connector.streams(), "stream"));
        return;
    }
    text.push('\n');
    for group in &connector.groups {
        if connector.is_mixed() {
            say!(text, " only in {}\n", group.holders.join(" "));
        }
        listed(text, group, room);
    }
}

fn counted(many: usize, noun: &str) -> String {
    format!("{many} {noun}{}", if many == 1 { "" } else { "s" })
}

fn listed(text: &mut String, group: &Group<'_>, room: DetailLimits) {
    if matches!(room.listed, ListDetail::Named | ListDetail::InTextOnly) {
        for stream in &group.streams {
            text.push(' ');
            text.push_str(stream.name());
            text.push_str(suspension(stream));
        }
        text.push('\n');
        return;
    }
    for stream in &group.streams {
        say!(text, "- {}{}", stream.name(), suspension(stream));
        match room.listed {
            ListDetail::Overview { values } => overview::line(text, stream, values),
            ListDetail::OverviewInText => overview::line(text, stream, 0),
            _ => {
                let fields = counted(stream.fields().count(), "field");
                say!(text, " {}, {fields}", stream.type_name());
            }
        }
        if let Some(description) = described(stream, room) {
            text.push_str(": ");
            text.push_str(&description);
        }
        text.push('\n');
    }
}

/// The mark after the name of a suspended stream.
fn suspension(stream: &StreamView) -> &'static str {
    if stream.is_suspended() {
        " (suspended: its source has changed)"
    } else {
        ""
    }
}

fn described(stream: &StreamView, room: DetailLimits) -> Option<String> {
    let description = stream.description().filter(|_| room.description > 0)?;
    Some(inline(description, room.description))
}

fn structure(listing: &Listing<'_>, room: DetailLimits) -> Json {
    let totals = json!({
        "connectors": listing.connectors.len(), "connections": listing.connections,
        "streams": listing.streams, "fields": listing.fields,
    });
    let mut data = Map::new();
    let mut put = |name: &str, value: Json| data.insert(name.to_owned(), value);
    put("detail", "compact".into());
    put("totals", totals);
    if room.listed == ListDetail::Counted {
        put("connectors_in", "content".into());
        put("connectors_shown", listing.listed.into());
    } else {
        let connectors = listing.listed().map(|it| connector(it, room));
        put("connectors", connectors.collect());
    }
    Json::Object(data)
}

fn connector(connector: &Connector<'_>, room: DetailLimits) -> Json {
    let mut object = Map::new();
    object.insert("connector_key".to_owned(), connector.key.into());
    for (name, said) in [
        ("title", connector.title),
        ("description", connector.description),
    ] {
        if let Some(said) = said.filter(|_| room.description > 0) {
            object.insert(name.to_owned(), inline(said, room.description).into());
        }
    }
    let connections: Vec<Json> = connector
        .connections
        .iter()
        .map(|connection| {
            if room.label == 0 {
                return json!(connection.connection_id);
            }
            json!({
                "connection_id": connection.connection_id,
                "label": inline(&connection.label, room.label),
                "grant_id": connection.grant_id,
            })
        })
        .collect();
    object.insert("connections".to_owned(), connections.into());
    if matches!(
        room.listed,
        ListDetail::InTextOnly | ListDetail::OverviewInText
    ) {
        object.insert("stream_count".to_owned(), connector.streams().into());
        object.insert("streams_in".to_owned(), "content".into());
        return Json::Object(object);
    }
    let streams: Vec<Json> = connector
        .groups
        .iter()
        .flat_map(|group| group.streams.iter().map(move |it| (group, it)))
        .map(|(group, it)| stream(connector, group, it, room))
        .collect();
    object.insert("streams".to_owned(), streams.into());
    Json::Object(object)
}

fn stream(
    connector: &Connector<'_>,
    group: &Group<'_>,
    stream: &StreamView,
    room: DetailLimits,
) -> Json {
    if room.listed == ListDetail::Named && !connector.is_mixed() && !stream.is_suspended() {
        return json!(stream.name());
    }
    let mut object = Map::new();
    object.insert("name".to_owned(), stream.name().into());
    if stream.is_suspended() {
        object.insert("suspended".to_owned(), DRIFT.into());
    }
    match room.listed {
        ListDetail::Overview { values } => overview::structure(&mut object, stream, values),
        ListDetail::Described => {
            object.insert("type".to_owned(), stream.type_name().into());
            object.insert("field_count".to_owned(), stream.fields().count().into());
        }
        _ => {}
    }
    if let Some(description) = described(stream, room) {
        object.insert("description".to_owned(), description.into());
    }
    if connector.is_mixed() {
        object.insert("connections".to_owned(), json!(group.holders));
    }
    Json::Object(object)
}
