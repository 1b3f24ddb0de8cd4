//! `schema` of a stream: everything a caller needs to make its next call, and a call that works.
//!
//! What a field can do follows from its type, described once; a field's own line lists only
//! exceptions. Nothing here touches a store.

mod example;
mod field;
mod notes;
mod text;

use serde_json::{Map, Value as Json, json};
use wayleave_model::mapping::{Datatype, Relation};
use wayleave_plan::filter;
use wayleave_plan::request::{
    DEFAULT_ROWS, MAX_EXPANDED, MAX_EXPANDED_RECORDS, MAX_GROUP_FIELDS, MAX_METRICS, MAX_ROWS,
    MAX_SORT_KEYS,
};
use wayleave_plan::view::{
    ConnectionView, FieldView, MeasureView, SchemaSubject, StreamView, Tracking,
};

use crate::call_context::CallContext;
use crate::escape::inline;
use crate::failure::DRIFT;
use crate::reply::Reply;
use crate::stream_index;
use notes::{changes_answers, notes};

/// Budget of a description without fields, in bytes.
const BASE_BYTES: usize = 3_600;
/// Additional budget per field, in bytes.
const FIELD_BYTES: usize = 80;
/// Maximum size of a description, in bytes, however many connections hold the stream.
const MAX_BYTES: usize = 64 * 1024;
/// Maximum number of connections listed with a description they share.
const MAX_CONNECTIONS: usize = 40;

/// Explains the lines to a reader without other documentation.
const LEGEND: &str = "A field can be filtered, sorted and aggregated as its type says, unless its \
    own line says otherwise. required: never null. type[]: several values. one_of: the only values. \
    A relation to one makes paths (relation.field) wherever a field is named; one to many takes \
    some and none in filters. All can be expanded.";

/// Levels of detail, from most to least.
const DETAIL_LEVELS: [DetailLimits; 5] = [
    DetailLimits {
        description: 120,
        values: 24,
        notes: true,
        members: usize::MAX,
    },
    DetailLimits {
        description: 60,
        values: 12,
        notes: true,
        members: usize::MAX,
    },
    DetailLimits {
        description: 30,
        values: 8,
        notes: true,
        members: usize::MAX,
    },
    DetailLimits {
        description: 0,
        values: 6,
        notes: false,
        members: usize::MAX,
    },
    DetailLimits {
        description: 0,
        values: 0,
        notes: false,
        members: usize::MAX,
    },
];

/// The level of detail of a full description.
const FULL_DETAIL: DetailLimits = DetailLimits {
    description: 1_000,
    values: usize::MAX,
    notes: true,
    members: usize::MAX,
};

/// Numbers of fields, relations and measures per stream to try where not all fit.
const MEMBER_LIMITS: [usize; 6] = [4_000, 2_000, 1_000, 500, 250, 100];

#[derive(Clone, Copy)]
struct DetailLimits {
    /// Maximum length of a description, in characters.
    description: usize,
    /// Maximum number of values of a closed list.
    values: usize,
    /// Whether to include differences of the store.
    notes: bool,
    /// Maximum number of fields, relations and measures. If bounded, fields are listed by type, and
    /// only in the text.
    members: usize,
}

impl DetailLimits {
    fn lists_fields_in_text(self) -> bool {
        self.members < usize::MAX
    }
}

/// A stream, and the connections that hold it in the same way.
struct StreamHolders<'a> {
    connections: Vec<&'a ConnectionView>,
    stream: &'a StreamView,
    /// Where the store's answers differ from the contract.
    notes: Vec<String>,
}

/// Answers a `schema` call.
pub(crate) fn answer(call: &CallContext<'_>, discovery: SchemaSubject<'_>) -> Reply {
    match discovery {
        SchemaSubject::Index(connections) => stream_index::index(&connections),
        SchemaSubject::Streams(holders) => compact(&grouped(call, holders)),
        SchemaSubject::Full(connection, stream) => full(&StreamHolders {
            connections: vec![connection],
            stream,
            notes: notes(call, stream, |_| true),
        }),
    }
}

/// Groups the holders of a stream by the way they hold it.
fn grouped<'a>(
    call: &CallContext<'_>,
    holders: Vec<(&'a ConnectionView, &'a StreamView)>,
) -> Vec<StreamHolders<'a>> {
    let mut groups: Vec<StreamHolders<'a>> = Vec::new();
    for (connection, stream) in holders {
        let notes = notes(call, stream, changes_answers);
        let alike = groups
            .iter_mut()
            .find(|group| group.notes == notes && is_alike(group.stream, stream));
        match alike {
            Some(group) => group.connections.push(connection),
            None => groups.push(StreamHolders {
                connections: vec![connection],
                stream,
                notes,
            }),
        }
    }
    groups
}

/// Whether two connections of one dataset hold a stream in the same way.
pub(crate) fn is_alike(a: &StreamView, b: &StreamView) -> bool {
    let fields = a.fields().map(FieldView::name);
    let relations = a.relations().map(|it| &it.name.value);
    let measures = a.measures().iter().map(MeasureView::name);
    a.name() == b.name()
        && a.connector_key() == b.connector_key()
        && a.tracking() == b.tracking()
        && a.is_suspended() == b.is_suspended()
        && fields.eq(b.fields().map(FieldView::name))
        && relations.eq(b.relations().map(|it| &it.name.value))
        && measures.eq(b.measures().iter().map(MeasureView::name))
}

/// The description of a stream for someone who is about to read it.
fn compact(groups: &[StreamHolders<'_>]) -> Reply {
    let mut described_count = groups.len();
    loop {
        let (described, others) = groups.split_at(described_count);
        let reply = fitted(described, others);
        if reply.bytes() <= MAX_BYTES {
            return reply;
        }
        // If very many connections hold the stream in different ways, some are only named.
        if described_count <= 1 {
            return cut(|room| written(described, others, None, room));
        }
        described_count /= 2;
    }
}

fn fitted(groups: &[StreamHolders<'_>], others: &[StreamHolders<'_>]) -> Reply {
    let fields: usize = groups.iter().map(|it| it.stream.fields().count()).sum();
    let labels = groups
        .iter()
        .map(|it| 160 * (it.connections.len().min(MAX_CONNECTIONS) - 1));
    let budget = BASE_BYTES * groups.len() + FIELD_BYTES * fields + labels.sum::<usize>();
    within(budget.min(MAX_BYTES), |room| {
        written(groups, others, None, room)
    })
}

/// The most detailed reply within `bytes`, or the least detailed one if none fits.
fn within(bytes: usize, written: impl Fn(DetailLimits) -> Reply) -> Reply {
    let [most, less @ ..] = &DETAIL_LEVELS;
    let mut reply = written(*most);
    for room in less {
        if reply.bytes() <= bytes {
            break;
        }
        reply = written(*room);
    }
    reply
}

/// Everything about one stream of one connection, with JSON Schema.
fn full(holders: &StreamHolders<'_>) -> Reply {
    let full = Some(holders.stream);
    let reply = written(std::slice::from_ref(holders), &[], full, FULL_DETAIL);
    if reply.bytes() <= MAX_BYTES {
        return reply;
    }
    let reply = within(MAX_BYTES, |room| {
        written(std::slice::from_ref(holders), &[], full, room)
    });
    if reply.bytes() <= MAX_BYTES {
        return reply;
    }
    cut(|room| written(std::slice::from_ref(holders), &[], None, room))
}

/// Names as many fields as fit.
fn cut(written: impl Fn(DetailLimits) -> Reply) -> Reply {
    let room = |members: usize| DetailLimits {
        description: 0,
        values: 0,
        notes: false,
        members,
    };
    let [most, less @ ..] = MEMBER_LIMITS;
    let mut reply = written(room(most));
    for members in less {
        if reply.bytes() <= MAX_BYTES {
            break;
        }
        reply = written(room(members));
    }
    reply
}

/// Describes `groups` and names `others`; with JSON Schema if this is the `full` description of
/// one stream.
fn written(
    groups: &[StreamHolders<'_>],
    others: &[StreamHolders<'_>],
    full: Option<&StreamView>,
    room: DetailLimits,
) -> Reply {
    let types = types(groups);
    let detail = if full.is_some() { "full" } else { "compact" };
    let mut data = Map::new();
    data.insert("detail".to_owned(), detail.into());
    let mut names: Vec<&str> = groups.iter().map(|it| it.stream.name()).collect();
    names.dedup();
    match names.as_slice() {
        [one] => data.insert("stream".to_owned(), (*one).into()),
        several => data.insert("streams".to_owned(), json!(several)),
    };
    let described = groups.iter().map(|holders| {
        let mut described = structure(holders, full, room);
        if let (Json::Object(it), [_, _, ..]) = (&mut described, names.as_slice()) {
            it.insert("stream".to_owned(), holders.stream.name().into());
        }
        described
    });
    let described: Vec<Json> = described.collect();
    data.insert("sources".to_owned(), described.into());
    let others: Vec<&str> = others
        .iter()
        .flat_map(|holders| &holders.connections)
        .map(|connection| connection.connection_id.as_str())
        .collect();
    if !others.is_empty() {
        data.insert("also_in".to_owned(), json!(others));
    }
    data.insert("types".to_owned(), types_structure(&types));
    data.insert("limits".to_owned(), limits());
    data.insert("legend".to_owned(), LEGEND.into());
    let example = groups.first().map(example::arguments);
    if let Some(example) = &example {
        let call = json!({ "tool": example::TOOL, "arguments": example });
        data.insert("example".to_owned(), call);
    }
    let text = text::text(groups, &others, &types, example.as_ref(), full, room);
    Reply::done(text, json!({ "data": data }))
}

/// The types of the visible fields, each once, in the order documents list them.
fn types(groups: &[StreamHolders<'_>]) -> Vec<Datatype> {
    let seen: Vec<Datatype> = groups
        .iter()
        .flat_map(|holders| holders.stream.fields())
        .map(FieldView::datatype)
        .collect();
    Datatype::ALL
        .iter()
        .copied()
        .filter(|datatype| seen.contains(datatype))
        .collect()
}

fn types_structure(types: &[Datatype]) -> Json {
    let described = types.iter().map(|datatype| {
        let told = json!({
            "filter": filter::operators(*datatype).join(" "),
            "aggregate": field::words(datatype.aggregates()),
        });
        (datatype.to_string(), told)
    });
    Json::Object(described.collect())
}

fn limits() -> Json {
    json!({
        "limit": MAX_ROWS, "default_limit": DEFAULT_ROWS, "sort": MAX_SORT_KEYS,
        "expand": MAX_EXPANDED, "expanded": MAX_EXPANDED_RECORDS, "metrics": MAX_METRICS,
        "group_by": MAX_GROUP_FIELDS, "filter_depth": filter::MAX_DEPTH,
        "filter_leaves": filter::MAX_COMPARISONS,
    })
}

fn structure(holders: &StreamHolders<'_>, full: Option<&StreamView>, room: DetailLimits) -> Json {
    let stream = holders.stream;
    let connections: Vec<Json> = holders
        .connections
        .iter()
        .take(MAX_CONNECTIONS)
        .map(|it| {
            json!({ "connection_id": it.connection_id, "label": inline(&it.label, 48), "grant_id": it.grant_id })
        })
        .collect();
    let mut object = Map::new();
    let mut put = |name: &str, value: Json| object.insert(name.to_owned(), value);
    put("connector_key", stream.connector_key().into());
    put("connections", connections.into());
    if holders.connections.len() > MAX_CONNECTIONS {
        put("connections_total", holders.connections.len().into());
    }
    put("type", stream.type_name().into());
    if stream.is_suspended() {
        put("suspended", DRIFT.into());
    }
    if let Some(description) = stream.description().filter(|_| room.description > 0) {
        put(
            "description",
            inline(description, room.description * 2).into(),
        );
    }
    let key: Vec<&str> = stream.key_fields().iter().map(FieldView::name).collect();
    put("key", json!(key));
    for (name, field) in [
        ("title", stream.title()),
        ("event_time", stream.event_time()),
    ] {
        if let Some(field) = field {
            put(name, field.name().into());
        }
    }
    if room.lists_fields_in_text() {
        put("field_count", stream.fields().count().into());
        put("fields_in", "content".into());
    } else {
        let fields = stream.fields().map(|it| field::structure(it, full, room));
        put("fields", fields.collect());
    }
    let relations = stream.relations().take(room.members);
    put(
        "relations",
        relations.map(|it| relation(stream, it)).collect(),
    );
    if !stream.measures().is_empty() {
        let measures = stream.measures().iter().take(room.members);
        let measures = measures.map(|it| {
            json!({ "name": it.name(), "type": it.datatype().to_string(), "expression": it.expression() })
        });
        put("measures", measures.collect());
    }
    let writes = writes(holders);
    if !writes.is_empty() {
        put("writes", json!(writes));
    }
    let search: Vec<&str> = stream.search().map(FieldView::name).collect();
    put("search", json!(search));
    put("changes_since", changes(stream).into());
    if room.notes && !holders.notes.is_empty() {
        put("notes", json!(holders.notes));
    }
    Json::Object(object)
}

/// The tools that write the stream, for callers who have them.
fn writes<'a>(holders: &StreamHolders<'a>) -> Vec<&'a str> {
    let all = holders.connections.iter().flat_map(|it| &it.capabilities);
    let ours = all.filter(|it| it.stream().name() == holders.stream.name());
    ours.map(wayleave_plan::write::CapabilityView::tool)
        .collect()
}

fn relation(stream: &StreamView, relation: &Relation) -> Json {
    json!({
        "name": relation.name.as_str(),
        "to": relation.to.as_str(),
        "type": relation.type_name.as_str(),
        "many": !stream.is_to_one(relation),
    })
}

/// Keyword for how the changes of a stream can be followed.
fn changes(stream: &StreamView) -> &'static str {
    match stream.tracking() {
        Tracking::None => "no",
        Tracking::Changes => "yes, deletions not seen",
        Tracking::ChangesAndDeletions => "yes, with tombstones",
    }
}
