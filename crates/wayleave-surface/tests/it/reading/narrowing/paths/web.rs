//! The part of the streams that a grant shows, and the twin, in which the rest never existed.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};
use wayleave_model::mapping::SourceKind;
use wayleave_plan::package::{FieldScope, RelationScope, StreamGrant};
use wayleave_store::conformance::SeededRng;

use super::streams::{CITIES, ComputedField, Measure, Relation, STREAMS, Stream, WORDS, stream};
use crate::reading::canary::few;
use crate::reading::narrowing::malformed::rows::{Cell, column_type, malformed};

/// A grant's row filter.
#[derive(Debug, Clone)]
enum RowFilter {
    AtMost(usize),
    Above(usize),
    In(BTreeSet<&'static str>),
}

impl RowFilter {
    fn drawn(rng: &mut SeededRng) -> Self {
        match rng.below(3) {
            0 => Self::AtMost(rng.below(5)),
            1 => Self::Above(rng.below(5)),
            _ => Self::In(few(rng, &CITIES, 3).into_iter().collect()),
        }
    }

    fn json(&self) -> Json {
        match self {
            Self::AtMost(level) => json!({ "level": { "lte": level } }),
            Self::Above(level) => json!({ "level": { "gt": level } }),
            Self::In(cities) => json!({ "city": cities }),
        }
    }

    fn field(&self) -> &'static str {
        match self {
            Self::In(_) => "city",
            _ => "level",
        }
    }

    fn shows(&self, row: &BTreeMap<&'static str, Cell>) -> bool {
        match (self, row["level"], row["city"]) {
            (Self::AtMost(most), Cell::Integer(level), _) => level <= *most,
            (Self::Above(least), Cell::Integer(level), _) => level > *least,
            (Self::In(cities), _, Cell::Text(city)) => cities.contains(city),
            _ => false,
        }
    }
}

/// The part of a stream that a grant names.
#[derive(Debug, Clone)]
struct GrantedStream {
    fields: BTreeSet<&'static str>,
    relations: BTreeSet<&'static str>,
    filter: Option<RowFilter>,
}

/// The grant's terms for each stream.
#[derive(Debug, Clone)]
pub struct GrantedStreams(BTreeMap<&'static str, GrantedStream>);

impl GrantedStreams {
    pub fn drawn(rng: &mut SeededRng) -> Self {
        let mut sight = BTreeMap::new();
        let (hides_fields, hides_relations) = (rng.below(4) > 0, rng.below(3) == 0);
        for stream in STREAMS {
            if stream.name != "people" && rng.below(6) == 0 {
                continue;
            }
            let fields = stream.all_fields().map(|(name, _)| name);
            let fields = fields.filter(|it| *it == "id" || !hides_fields || rng.below(5) > 0);
            let fields = fields.collect();
            let relations = stream.relations.iter().map(|it| it.name);
            let relations = relations.filter(|_| !hides_relations || rng.below(4) > 0);
            let relations = relations.collect();
            let granted = GrantedStream {
                fields,
                relations,
                filter: (rng.below(5) > 1).then(|| RowFilter::drawn(rng)),
            };
            sight.insert(stream.name, granted);
        }
        Self(sight)
    }

    pub fn streams(&self) -> Vec<&'static Stream> {
        let all = STREAMS.iter().copied();
        all.filter(|it| self.0.contains_key(it.name)).collect()
    }

    /// The relation of this name, if it can be followed.
    pub fn relation(&self, from: &Stream, name: &str) -> Option<&'static Relation> {
        let relation = from.relation(name)?;
        let (ours, theirs) = (self.0.get(from.name)?, self.0.get(relation.to)?);
        let is_field = from.fields.iter().any(|it| it.0 == relation.column);
        let our_end = !is_field || ours.fields.contains(relation.column);
        let seen = ours.relations.contains(name) && theirs.fields.contains(relation.field);
        (our_end && seen).then_some(relation)
    }

    fn leads(&self, from: &'static Stream, path: &str) -> bool {
        let mut hops: Vec<&str> = path.split('.').collect();
        let last = hops.pop().unwrap();
        let mut end = from;
        for hop in hops {
            match self.relation(end, hop) {
                Some(relation) => end = stream(relation.to),
                None => return false,
            }
        }
        self.shows(end, last)
    }

    /// Whether requests may name a field.
    pub fn shows(&self, stream: &'static Stream, field: &str) -> bool {
        let granted = self.0.get(stream.name);
        let is_granted = granted.is_some_and(|it| it.fields.contains(field));
        let computed = stream.computed.iter().find(|it| it.name == field);
        let computable = |it: &ComputedField| it.paths.iter().all(|path| self.leads(stream, path));
        is_granted && computed.is_none_or(computable)
    }

    fn measures(&self, stream: &'static Stream) -> impl Iterator<Item = &'static Measure> {
        let measured = move |it: &&Measure| it.fields.iter().all(|path| self.leads(stream, path));
        stream.measures.iter().filter(measured)
    }

    /// The grants of the narrow package, and of its twin.
    pub fn grants(&self, in_twin: bool) -> Vec<(&'static str, StreamGrant)> {
        let grants = self.0.iter().map(|(name, granted)| {
            let of = stream(name);
            let fields = granted
                .fields
                .iter()
                .filter(|it| !in_twin || self.shows(of, it));
            let relations = granted.relations.iter().map(|it| (*it).to_owned());
            let rows = granted.filter.as_ref().map(|filter| {
                // A search weights words differently if the grant filters rows.
                if in_twin {
                    json!({ "id": { "is_null": false } })
                } else {
                    filter.json()
                }
            });
            let grant = StreamGrant {
                relations: if in_twin {
                    RelationScope::All
                } else {
                    RelationScope::Only(relations.collect())
                },
                fields: FieldScope::Only(fields.map(|it| (*it).to_owned()).collect()),
                rows,
                masks: std::collections::BTreeMap::new(),
            };
            (*name, grant)
        });
        grants.collect()
    }

    /// The fields that visible computed fields use although the grant hides them.
    fn needed(&self, of: &'static Stream) -> BTreeSet<&'static str> {
        let seen = of.computed.iter().filter(|it| self.shows(of, it.name));
        let own = seen.flat_map(|it| it.own).copied();
        own.filter(|it| !self.shows(of, it)).collect()
    }

    /// SQL of the tables: with the hidden data, malformed, or without it.
    pub fn sql(&self, kind: SourceKind, with_hidden: bool, seed: u64) -> String {
        let mut rng = SeededRng::new(seed);
        let mut sql = match kind {
            SourceKind::Mysql => "SET sql_mode = '';\n".to_owned(),
            _ => String::new(),
        };
        for stream in STREAMS {
            let mut columns: Vec<String> = stream
                .fields
                .iter()
                .map(|(name, datatype)| {
                    let key = if *name == "id" { " PRIMARY KEY" } else { "" };
                    format!("{name} {}{key}", column_type(kind, datatype))
                })
                .collect();
            columns.push("topic_ref INTEGER".to_owned());
            sql += &format!("CREATE TABLE {} ({});\n", stream.name, columns.join(", "));
            let granted = self.0.get(stream.name);
            for id in 1..=stream.rows {
                let row: BTreeMap<&str, Cell> = stream
                    .fields
                    .iter()
                    .map(|(name, _)| (*name, cell(name, id, &mut rng)))
                    .collect();
                let topic = rng.below(7);
                let is_shown =
                    granted.is_some_and(|it| it.filter.as_ref().is_none_or(|it| it.shows(&row)));
                let values = stream.fields.iter().map(|(name, datatype)| {
                    let odd = malformed(kind, datatype);
                    let (roll, pick) = (rng.below(3), rng.below(60));
                    let is_hidden = !is_shown || !self.stays(stream, name);
                    let fixed = matches!(*name, "id" | "badge");
                    if with_hidden && is_hidden && !fixed && roll > 0 && !odd.is_empty() {
                        odd[pick % odd.len()].to_owned()
                    } else {
                        row[name].literal(kind)
                    }
                });
                let values: Vec<String> = values.chain([topic.to_string()]).collect();
                if is_shown || with_hidden {
                    sql += &format!(
                        "INSERT INTO {} VALUES ({});\n",
                        stream.name,
                        values.join(", ")
                    );
                }
            }
        }
        sql
    }

    /// Whether the values of a field affect what the grant shows.
    fn stays(&self, of: &'static Stream, name: &'static str) -> bool {
        let filter = self.0.get(of.name).and_then(|it| it.filter.as_ref());
        let is_mark = name == "gone";
        let is_filter = filter.is_some_and(|it| it.field() == name);
        is_mark || is_filter || self.shows(of, name) || self.needed(of).contains(name)
    }

    /// The mapping of everything, or of what the grant shows.
    pub fn mapping(&self, kind: SourceKind, in_twin: bool) -> String {
        let mut toml = format!(
            "[dataset]\nname = \"web\"\nkind = \"{kind}\"\n\
             [[connections]]\nid = \"web-main\"\nsource = \"main\"\n"
        );
        for of in STREAMS {
            if in_twin && !self.0.contains_key(of.name) {
                continue;
            }
            toml += &self.mapped(of, in_twin);
        }
        toml
    }

    fn mapped(&self, of: &'static Stream, in_twin: bool) -> String {
        let name = of.name;
        let seen = |field: &str| !in_twin || self.shows(of, field);
        let mut toml = format!(
            "[streams.{name}]\ntype = \"{}\"\nkey = [\"id\"]\n",
            name.to_uppercase()
        );
        for (role, field) in of.roles.iter().filter(|it| seen(it.1) || it.0 == "deleted") {
            toml += &format!("{role} = \"{field}\"\n");
        }
        let search: Vec<_> = of.search.iter().filter(|it| seen(it)).collect();
        if !search.is_empty() {
            toml += &format!("search = {search:?}\n");
        }
        if name == "people" && seen("badge") {
            toml += "unique = [[\"badge\"]]\n";
        }
        toml += &format!("[streams.{name}.fields]\n");
        let needed = self.needed(of);
        for (field, datatype) in of.fields {
            if seen(field) || *field == "gone" {
                toml += &format!("{field} = {{ datatype = \"{datatype}\" }}\n");
            } else if needed.contains(field) {
                toml += &format!(
                    "zz_{field} = {{ datatype = \"{datatype}\", column = \"{field}\" }}\n"
                );
            }
        }
        for it in of.computed.iter().filter(|it| seen(it.name)) {
            let mut text = it.expression.to_owned();
            for own in it.own {
                let named = if seen(own) {
                    (*own).to_owned()
                } else {
                    format!("zz_{own}")
                };
                text = text.replace(&format!("{{{own}}}"), &named);
            }
            let text = Self::inlined(of, it, text, in_twin);
            toml += &format!(
                "{} = {{ datatype = \"{}\", compute = \"{text}\" }}\n",
                it.name, it.datatype
            );
        }
        toml += &format!("[streams.{name}.relations]\n");
        for it in of.relations {
            if !in_twin || self.relation(of, it.name).is_some() {
                toml += &format!(
                    "{} = {{ to = \"{}\", on = {{ {} = \"{}\" }} }}\n",
                    it.name, it.to, it.column, it.field
                );
            }
        }
        toml += &format!("[streams.{name}.measures]\n");
        let measures: Vec<&Measure> = if in_twin {
            self.measures(of).collect()
        } else {
            of.measures.iter().collect()
        };
        for it in measures {
            toml += &format!("{} = \"{}\"\n", it.name, it.expression);
        }
        toml
    }

    /// A computed field of a related record may be hidden while its inputs are visible.
    fn inlined(of: &Stream, it: &ComputedField, text: String, in_twin: bool) -> String {
        if in_twin && of.name == "notes" && it.name == "writer_rank" {
            return "writer.crew.level * 10 + coalesce(writer.crew.chief.level, 0)".to_owned();
        }
        text
    }
}

/// Draws a value for a stream's column.
fn cell(name: &str, id: usize, rng: &mut SeededRng) -> Cell {
    let n = rng.below(1_000);
    match name {
        "id" => Cell::Integer(id),
        "badge" => Cell::Integer(100 + id),
        "gone" => Cell::Boolean(n.is_multiple_of(12)),
        "name" => Cell::Title(WORDS[n % WORDS.len()], id % 4),
        _ if n.is_multiple_of(13) => Cell::Null,
        "area" | "subject" => Cell::Integer(n % 7),
        "head" | "boss" | "author" => Cell::Integer(n % 34),
        "team" => Cell::Integer(n % 10),
        "card" => Cell::Integer(100 + n % 34),
        "body" => Cell::Text(["amber birch", "cedar cedar dune", "ember", "birch of amber"][n % 4]),
        "city" => Cell::Text(CITIES[n % CITIES.len()]),
        "pay" => Cell::Decimal(n % 400 * 25),
        "hired_at" => Cell::Time(n % 300, n % 24),
        "sent_on" => Cell::Date(n % 300),
        _ => Cell::Integer(n % 6),
    }
}
