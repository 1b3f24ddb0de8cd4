//! A laboratory of two datasets over three connections, packages that see parts of it, and for each
//! package its twin: a deployment in which the hidden parts never existed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value as Json, json};
use wayleave_plan::package::{
    FieldScope, Grant, Grants, Package, RelationScope, StreamGrant, StreamScope,
};
use wayleave_surface::ReadService;

use crate::reading::canary::few;
use wayleave_store::conformance::SeededRng;

use crate::reading::fixture::{Files, service};

/// A stream: its name, the roles of its fields in the mapping, its fields and its relations.
pub struct Stream {
    pub name: &'static str,
    /// Roles of fields: `title`, `updated`, …; a role is removed with its field.
    roles: &'static [(&'static str, &'static str)],
    search: &'static [&'static str],
    pub fields: &'static [(&'static str, &'static str)],
    /// Name, target stream, own field, target field.
    pub relations: &'static [(&'static str, &'static str, &'static str, &'static str)],
    rows: usize,
}

pub const PEOPLE: Stream = Stream {
    name: "people",
    roles: &[
        ("title", "name"),
        ("event_time", "hired_at"),
        ("updated", "updated_at"),
        ("deleted", "gone"),
    ],
    search: &["name", "bio"],
    fields: &[
        ("id", "integer"),
        ("name", "string"),
        ("bio", "string"),
        ("team", "integer"),
        ("level", "integer"),
        ("city", "string"),
        ("pay", "decimal"),
        ("hired_at", "datetime"),
        ("updated_at", "datetime"),
        ("gone", "boolean"),
    ],
    relations: &[
        ("crew", "teams", "team", "id"),
        ("letters", "notes", "id", "author"),
    ],
    rows: 40,
};

pub const TEAMS: Stream = Stream {
    name: "teams",
    roles: &[("title", "name")],
    search: &[],
    fields: &[
        ("id", "integer"),
        ("name", "string"),
        ("level", "integer"),
        ("city", "string"),
    ],
    relations: &[("members", "people", "id", "team")],
    rows: 6,
};

pub const NOTES: Stream = Stream {
    name: "notes",
    roles: &[("event_time", "sent_at"), ("updated", "sent_at")],
    search: &["body", "secret"],
    fields: &[
        ("id", "string"),
        ("author", "integer"),
        ("body", "string"),
        ("secret", "string"),
        ("level", "integer"),
        ("city", "string"),
        ("sent_at", "datetime"),
    ],
    relations: &[("writer", "people", "author", "id")],
    rows: 30,
};

/// Each dataset with its connections and streams. Both have `people`.
pub static DATASETS: [(&str, &[&str], &[Stream]); 2] = [
    ("lab", &["lab-eu", "lab-us"], &[PEOPLE, TEAMS, NOTES]),
    ("spa", &["spa-main"], &[PEOPLE, TEAMS]),
];

pub const CITIES: [&str; 4] = ["Oslo", "Rome", "Bonn", "Cork"];

/// The visible part of one connection: the fields and rows of each stream.
pub type VisibleStreams = BTreeMap<&'static str, VisibleStream>;

#[derive(Debug, Clone, Default)]
pub struct VisibleStream {
    pub fields: BTreeSet<&'static str>,
    /// Maximum level of visible rows.
    level: Option<usize>,
    /// Cities of visible rows.
    cities: Option<BTreeSet<&'static str>>,
}

/// The visible part of the laboratory, by connection.
#[derive(Debug, Clone)]
pub struct VisibleConnections(pub BTreeMap<&'static str, VisibleStreams>);

impl VisibleConnections {
    pub fn everything() -> Self {
        let mut sight = BTreeMap::new();
        for (_, connections, streams) in DATASETS {
            for connection in connections {
                let seen: VisibleStreams = streams.iter().map(|it| (it.name, whole(it))).collect();
                sight.insert(*connection, seen);
            }
        }
        Self(sight)
    }

    /// Draws the same sight or a smaller one. It is often the same in all connections of a dataset,
    /// so that hidden parts are missing in the twin's mapping too.
    pub fn narrower(&self, rng: &mut SeededRng, by: Rows) -> Self {
        let mut sight = self.clone();
        for (_, connections, _) in DATASETS {
            let seed = rng.below(1 << 30) as u64 | 1;
            let alike = rng.below(3) > 0;
            for connection in connections {
                let mut own = SeededRng::new(seed);
                let rng = if alike { &mut own } else { &mut *rng };
                if let Some(seen) = sight.0.get_mut(connection) {
                    narrow(seen, rng, by);
                }
            }
        }
        sight
            .0
            .retain(|_, seen| !seen.is_empty() && rng.below(8) > 0);
        sight
    }

    /// Creates the package with this sight.
    pub fn package(&self, subject: &str, epoch: u64) -> Package {
        self.packaged(subject, epoch, VisibleStream::filter)
    }

    fn packaged(
        &self,
        subject: &str,
        epoch: u64,
        rows: impl Fn(&VisibleStream) -> Option<Json>,
    ) -> Package {
        let grants = self.0.iter().map(|(connection, seen)| {
            let streams = seen.iter().map(|(name, stream)| {
                let fields = stream.fields.iter().map(|it| (*it).to_owned()).collect();
                let grant = StreamGrant {
                    relations: RelationScope::All,
                    fields: FieldScope::Only(fields),
                    rows: rows(stream),
                    masks: std::collections::BTreeMap::new(),
                };
                ((*name).to_owned(), grant)
            });
            let grant = Grant {
                capabilities: std::collections::BTreeSet::new(),
                id: format!("g-{connection}"),
                dataset: connection[..3].to_owned(),
                streams: StreamScope::Only(streams.collect()),
            };
            ((*connection).to_owned(), grant)
        });
        Package {
            subject: subject.to_owned(),
            epoch,
            grants: Grants::Only(Arc::new(grants.collect())),
        }
    }

    /// Creates a deployment of exactly the visible data, and a package that sees all of it.
    pub fn twin(&self, subject: &str, epoch: u64) -> (ReadService, Package) {
        // A search reveals that a grant filters rows, because words are then not weighted by
        // frequency. So the twin's grant has a row filter too, which matches all rows.
        let for_all = || json!({ "id": { "is_null": false } });
        let package = self.packaged(subject, epoch, |seen| seen.filter().map(|_| for_all()));
        (deployed(self, true), package)
    }
}

/// The property that selects visible rows. Each narrowing uses another, so that the second adds to
/// the first.
#[derive(Clone, Copy)]
pub enum Rows {
    ByLevel,
    ByCity,
}

fn narrow(seen: &mut VisibleStreams, rng: &mut SeededRng, by: Rows) {
    seen.retain(|_, _| rng.below(6) > 0);
    for stream in seen.values_mut() {
        if rng.below(3) > 0 {
            stream
                .fields
                .retain(|field| always(field) || rng.below(4) > 0);
        }
        match (rng.below(3), by) {
            (0, Rows::ByLevel) => stream.level = Some(rng.below(5)),
            (0, Rows::ByCity) => stream.cities = Some(few(rng, &CITIES, 3).into_iter().collect()),
            _ => {}
        }
    }
}

fn whole(stream: &Stream) -> VisibleStream {
    VisibleStream {
        fields: stream.fields.iter().map(|(name, _)| *name).collect(),
        ..VisibleStream::default()
    }
}

/// Keys and the deletion mark are always visible: that a record is deleted is not secret.
fn always(field: &str) -> bool {
    matches!(field, "id" | "gone")
}

impl VisibleStream {
    fn filter(&self) -> Option<Json> {
        let mut filter = Map::new();
        if let Some(level) = self.level {
            filter.insert("level".to_owned(), json!({ "lte": level }));
        }
        if let Some(cities) = &self.cities {
            filter.insert("city".to_owned(), json!(cities));
        }
        (!filter.is_empty()).then_some(Json::Object(filter))
    }

    /// A SQL condition for the hidden rows.
    fn hidden(&self) -> String {
        let level = self.level.map(|level| format!("level <= {level}"));
        let cities = self.cities.as_ref().map(|cities| {
            let cities: Vec<_> = cities.iter().map(|it| format!("'{it}'")).collect();
            format!("city IN ({})", cities.join(", "))
        });
        let seen: Vec<_> = level.into_iter().chain(cities).collect();
        if seen.is_empty() {
            "1 = 0".to_owned()
        } else {
            format!("coalesce(NOT ({}), 1)", seen.join(" AND "))
        }
    }
}

/// The complete laboratory.
pub fn laboratory() -> ReadService {
    deployed(&VisibleConnections::everything(), false)
}

/// The mappings of the visible part.
pub fn mappings(sight: &VisibleConnections) -> Vec<String> {
    let mut mappings = Vec::new();
    for (dataset, connections, streams) in DATASETS {
        let held = connections.iter().filter(|it| sight.0.contains_key(*it));
        let held: Vec<_> = held.collect();
        if !held.is_empty() {
            mappings.push(mapping(dataset, &held, streams, sight));
        }
    }
    mappings
}

/// A deployment of the visible part; with `cut`, hidden rows are removed from its files.
fn deployed(sight: &VisibleConnections, cut: bool) -> ReadService {
    let mut sources = Vec::new();
    for (_, connections, streams) in DATASETS {
        for connection in connections.iter().filter(|it| sight.0.contains_key(*it)) {
            let mut sql = data(connection, streams);
            if cut {
                for (name, seen) in &sight.0[*connection] {
                    sql += &format!("DELETE FROM {name} WHERE {};\n", seen.hidden());
                }
            }
            sources.push((connection.replace('-', "_"), sql));
        }
    }
    let mappings = mappings(sight);
    let mappings: Vec<&str> = mappings.iter().map(String::as_str).collect();
    let sources: Vec<(&str, &str)> = sources
        .iter()
        .map(|(name, sql)| (name.as_str(), sql.as_str()))
        .collect();
    service(&mappings, &Files::new(&sources))
}

/// The mapping of what is visible in any of these connections.
fn mapping(
    dataset: &str,
    connections: &[&&str],
    streams: &[Stream],
    sight: &VisibleConnections,
) -> String {
    let mut toml = format!("[dataset]\nname = \"{dataset}\"\nkind = \"sqlite\"\n");
    for id in connections {
        let source = id.replace('-', "_");
        toml += &format!("[[connections]]\nid = \"{id}\"\nsource = \"{source}\"\n");
    }
    let seen = |stream: &str, field: &str| {
        connections.iter().any(|id| {
            let stream = sight.0[**id].get(stream);
            stream.is_some_and(|it| it.fields.contains(field))
        })
    };
    for stream in streams.iter().filter(|it| seen(it.name, "id")) {
        let name = stream.name;
        toml += &format!(
            "[streams.{name}]\ntype = \"{}\"\nkey = [\"id\"]\n",
            name.to_uppercase()
        );
        for (role, field) in stream.roles.iter().filter(|(_, field)| seen(name, field)) {
            toml += &format!("{role} = \"{field}\"\n");
        }
        let search: Vec<_> = stream.search.iter().filter(|it| seen(name, it)).collect();
        if !search.is_empty() {
            toml += &format!("search = {search:?}\n");
        }
        for (field, datatype) in stream.fields.iter().filter(|(field, _)| seen(name, field)) {
            toml += &format!("[streams.{name}.fields.{field}]\ndatatype = \"{datatype}\"\n");
        }
        for (relation, to, ours, theirs) in stream.relations {
            if seen(name, ours) && seen(to, theirs) {
                toml += &format!(
                    "[streams.{name}.relations.{relation}]\nto = \"{to}\"\non = {{ {ours} = \"{theirs}\" }}\n"
                );
            }
        }
    }
    toml
}

/// The tables of a connection: each connection has different values in the same columns.
fn data(connection: &str, streams: &[Stream]) -> String {
    let mut rng = SeededRng::new(connection.bytes().map(u64::from).sum::<u64>() | 1);
    let mut sql = String::new();
    for stream in streams {
        let columns: Vec<_> = stream
            .fields
            .iter()
            .map(|(name, datatype)| match (*name, *datatype) {
                ("id", "integer") => "id INTEGER PRIMARY KEY".to_owned(),
                ("id", _) => "id TEXT PRIMARY KEY".to_owned(),
                (name, "integer") => format!("{name} INTEGER"),
                (name, "boolean") => format!("{name} BOOLEAN"),
                (name, _) => format!("{name} TEXT"),
            })
            .collect();
        sql += &format!("CREATE TABLE {} ({});\n", stream.name, columns.join(", "));
        for row in 1..=stream.rows {
            let values: Vec<_> = stream
                .fields
                .iter()
                .map(|field| value(&mut rng, *field, row, connection))
                .collect();
            sql += &format!(
                "INSERT INTO {} VALUES ({});\n",
                stream.name,
                values.join(", ")
            );
        }
    }
    sql
}

fn value(
    rng: &mut SeededRng,
    (name, datatype): (&str, &str),
    row: usize,
    connection: &str,
) -> String {
    let n = rng.below(1000);
    if !matches!(name, "id" | "gone" | "updated_at" | "sent_at") && n.is_multiple_of(13) {
        return "NULL".to_owned();
    }
    match (name, datatype) {
        ("id", "string") => format!("'n{row}'"),
        ("id", _) => row.to_string(),
        ("level", _) => (n % 6).to_string(),
        ("team", _) => (n % 8).to_string(),
        ("author", _) => (n % 45).to_string(),
        ("city", _) => format!("'{}'", CITIES[n % CITIES.len()]),
        ("pay", _) => format!("'{}.25'", n % 50),
        ("gone", _) => usize::from(n.is_multiple_of(10)).to_string(),
        (_, "datetime") => format!(
            "'2026-0{}-{:02}T00:00:{:02}Z'",
            n % 3 + 1,
            n % 28 + 1,
            n % 60
        ),
        (name, _) => format!(
            "'{name} {} of {connection} {}'",
            WORDS[n % WORDS.len()],
            n % 7
        ),
    }
}

pub const WORDS: [&str; 5] = ["amber", "birch", "cedar", "dune", "ember"];
