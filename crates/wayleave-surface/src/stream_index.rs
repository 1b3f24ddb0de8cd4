//! `schema` without a stream: an index of everything that may be read.
//!
//! Every stream is named, whatever the number; what is said about each shrinks so that the whole
//! result stays within its budget. Nothing here touches a store.

use serde_json::{Map, Value as Json, json};
use wayleave_plan::view::{ConnectionView, StreamView};

use crate::escape::inline;
use crate::reply::Reply;

/// The most bytes of an index, however many streams.
const MAX_BYTES: usize = 64 * 1024;
/// What an index of no stream may take, and
const BASE_BYTES: usize = 4_000;
/// how much each stream adds.
const STREAM_BYTES: usize = 166;

/// How much is said, from most to least.
const ROOMS: [Room; 7] = [
    Room {
        description: 160,
        label: 48,
        listed: ListDetail::Described,
    },
    Room {
        description: 80,
        label: 48,
        listed: ListDetail::Described,
    },
    Room {
        description: 40,
        label: 32,
        listed: ListDetail::Described,
    },
    Room {
        description: 0,
        label: 32,
        listed: ListDetail::Described,
    },
    Room {
        description: 0,
        label: 32,
        listed: ListDetail::Named,
    },
    Room {
        description: 0,
        label: 0,
        listed: ListDetail::Named,
    },
    Room {
        description: 0,
        label: 0,
        listed: ListDetail::InTextOnly,
    },
];

#[derive(Clone, Copy)]
struct Room {
    /// Characters of a description.
    description: usize,
    /// Characters of a connection's label.
    label: usize,
    listed: ListDetail,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ListDetail {
    /// A line each: name, type, description.
    Described,
    /// The names alone.
    Named,
    /// The names alone, and only in the text.
    InTextOnly,
}

/// One dataset and what is seen of it.
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

/// The index of these connections.
pub(crate) fn index(shown: &[&ConnectionView]) -> Reply {
    let connectors = connectors(shown);
    let streams: usize = connectors.iter().map(Connector::streams).sum();
    let budget = (BASE_BYTES + STREAM_BYTES * streams).min(MAX_BYTES);
    let written = |room: Room| {
        Reply::done(
            text(&connectors, shown.len(), streams, room),
            json!({ "data": structure(&connectors, shown.len(), streams, room) }),
        )
    };
    let [most, less @ ..] = &ROOMS;
    let mut reply = written(*most);
    for room in less {
        if reply.bytes() <= budget {
            break;
        }
        reply = written(*room);
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

/// The streams of some connections of one dataset, by who holds them.
fn groups<'a>(connections: &[&'a ConnectionView]) -> Vec<Group<'a>> {
    let mut held: Vec<(&'a StreamView, Vec<&'a str>)> = Vec::new();
    let mut places = std::collections::HashMap::new();
    for connection in connections {
        for stream in &connection.streams {
            let place = *places.entry(stream.name()).or_insert(held.len());
            match held.get_mut(place) {
                Some((_, holders)) => holders.push(&connection.connection_id),
                None => held.push((stream, vec![&connection.connection_id])),
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

    /// Whether some of its connections hold other streams than others.
    fn is_mixed(&self) -> bool {
        self.groups.len() > 1
    }
}

fn text(connectors: &[Connector<'_>], connections: usize, streams: usize, room: Room) -> String {
    let mut text = format!(
        "{}, {}, {}. Next: schema with stream (and connection_id where several hold it) tells \
         fields, filters and an example call.\n",
        counted(streams, "stream"),
        counted(connectors.len(), "connector"),
        counted(connections, "connection"),
    );
    for connector in connectors {
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
        text.push('\n');
        for group in &connector.groups {
            if connector.is_mixed() {
                say!(text, " only in {}\n", group.holders.join(" "));
            }
            listed(&mut text, group, room);
        }
    }
    text
}

fn counted(many: usize, noun: &str) -> String {
    format!("{many} {noun}{}", if many == 1 { "" } else { "s" })
}

fn listed(text: &mut String, group: &Group<'_>, room: Room) {
    if room.listed != ListDetail::Described {
        for stream in &group.streams {
            text.push(' ');
            text.push_str(stream.name());
        }
        text.push('\n');
        return;
    }
    for stream in &group.streams {
        say!(text, "- {} {}", stream.name(), stream.type_name());
        if let Some(description) = described(stream, room) {
            text.push_str(": ");
            text.push_str(&description);
        }
        text.push('\n');
    }
}

fn described(stream: &StreamView, room: Room) -> Option<String> {
    let description = stream.description().filter(|_| room.description > 0)?;
    Some(inline(description, room.description))
}

fn structure(connectors: &[Connector<'_>], connections: usize, streams: usize, room: Room) -> Json {
    let listed: Vec<Json> = connectors.iter().map(|it| connector(it, room)).collect();
    json!({
        "detail": "compact",
        "totals": { "connectors": connectors.len(), "connections": connections, "streams": streams },
        "connectors": listed,
    })
}

fn connector(connector: &Connector<'_>, room: Room) -> Json {
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
    if room.listed == ListDetail::InTextOnly {
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

fn stream(connector: &Connector<'_>, group: &Group<'_>, stream: &StreamView, room: Room) -> Json {
    if room.listed == ListDetail::Named && !connector.is_mixed() {
        return json!(stream.name());
    }
    let mut object = Map::new();
    object.insert("name".to_owned(), stream.name().into());
    if room.listed == ListDetail::Described {
        object.insert("type".to_owned(), stream.type_name().into());
    }
    if let Some(description) = described(stream, room) {
        object.insert("description".to_owned(), description.into());
    }
    if connector.is_mixed() {
        object.insert("connections".to_owned(), json!(group.holders));
    }
    Json::Object(object)
}
