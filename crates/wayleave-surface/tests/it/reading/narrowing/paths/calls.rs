//! Generated calls of every read tool that name fields along relations, hidden and missing ones
//! included.

use serde_json::{Map, Value as Json, json};
use wayleave_store::conformance::SeededRng;

use super::streams::{CITIES, Relation, STREAMS, Stream, WORDS, stream};
use super::web::GrantedStreams;

/// Maximum nesting of `some` and `none`.
const MAX_DEPTH: usize = 2;

/// A generator of calls by someone who has this sight, and guesses the rest.
pub struct Calls<'a> {
    rng: &'a mut SeededRng,
    sight: &'a GrantedStreams,
    /// Whether this call names things that are hidden or missing.
    guesses: bool,
}

/// A field name or path, and its datatype.
struct NamedField {
    name: String,
    datatype: &'static str,
}

impl<'a> Calls<'a> {
    pub fn new(rng: &'a mut SeededRng, sight: &'a GrantedStreams) -> Self {
        let guesses = rng.below(3) == 0;
        Self {
            rng,
            sight,
            guesses,
        }
    }

    pub fn drawn(&mut self) -> (&'static str, Json) {
        let of = self.stream();
        match self.rng.below(20) {
            0 | 1 => self.schema(of),
            2..=9 => self.aggregate(of),
            10 | 11 => self.fetch(of),
            12 | 13 => self.search(of),
            _ => self.query(of),
        }
    }

    fn chance(&mut self, one_in: usize) -> bool {
        self.rng.below(one_in) == 0
    }

    fn guesses(&mut self, one_in: usize) -> bool {
        self.guesses && self.chance(one_in)
    }

    fn stream(&mut self) -> &'static Stream {
        let seen = self.sight.streams();
        if self.guesses(6) {
            return STREAMS[self.rng.below(STREAMS.len())];
        }
        seen[self.rng.below(seen.len())]
    }

    /// Draws a relation of the right cardinality; mostly one that can be followed.
    fn hop(&mut self, of: &'static Stream, to_one: bool) -> Option<&'static Relation> {
        let guesses = self.guesses(4);
        let fitting = of.relations.iter().filter(|it| it.is_to_one() == to_one);
        let fitting = fitting.filter(|it| guesses || self.sight.relation(of, it.name).is_some());
        let fitting: Vec<_> = fitting.collect();
        self.rng.pick(&fitting).copied()
    }

    /// Draws a path along relations, with its final dot, and the stream where it ends.
    fn walk(&mut self, from: &'static Stream) -> (String, &'static Stream) {
        let (mut prefix, mut end) = (String::new(), from);
        let hops = [0, 0, 1, 1, 1, 2, 2, 3, 4, 4][self.rng.below(10)];
        let hops = if self.guesses(30) { 5 } else { hops };
        for _ in 0..hops {
            let to_one = !self.guesses(20);
            let Some(relation) = self.hop(end, to_one) else {
                break;
            };
            prefix += relation.name;
            prefix.push('.');
            end = stream(relation.to);
        }
        (prefix, end)
    }

    fn named(&mut self, from: &'static Stream, fits: impl Fn(&str) -> bool) -> NamedField {
        let (prefix, end) = self.walk(from);
        let guesses = self.guesses(5);
        let fields = end.all_fields().filter(|it| fits(it.1));
        let fields = fields.filter(|it| guesses || self.sight.shows(end, it.0));
        let fields: Vec<_> = fields.collect();
        let (name, datatype) = match self.rng.pick(&fields) {
            Some(found) if !self.guesses(20) => *found,
            _ => (
                *self.rng.one_of(&[
                    "nmae",
                    "Name",
                    "salary",
                    "zz_city",
                    "topic_ref",
                    "crew",
                    "levels",
                    "select",
                ]),
                "string",
            ),
        };
        NamedField {
            name: format!("{prefix}{name}"),
            datatype,
        }
    }

    fn any(&mut self, from: &'static Stream) -> String {
        self.named(from, |_| true).name
    }

    fn some(&mut self, from: &'static Stream, most: usize) -> Vec<String> {
        let mut some: Vec<String> = Vec::new();
        for _ in 0..=self.rng.below(most) {
            let one = self.any(from);
            if !some.contains(&one) {
                some.push(one);
            }
        }
        some
    }

    fn sorted(&mut self, names: &[String]) -> Json {
        let keys = names.iter().map(|it| {
            let down = ["", "-"][self.rng.below(2)];
            format!("{down}{it}")
        });
        keys.take(3).collect()
    }

    fn value(&mut self, named: &NamedField) -> Json {
        let n = self.rng.below(300);
        let word = WORDS[n % WORDS.len()];
        match named.datatype {
            "integer" => json!(n % 12),
            "decimal" => json!(format!("{}.25", n % 100)),
            "boolean" => json!(n.is_multiple_of(2)),
            "date" => json!(format!("2024-{:02}-{:02}", n / 28 + 1, n % 28 + 1)),
            "datetime" => json!(format!(
                "2024-{:02}-{:02}T00:00:00Z",
                n / 28 + 1,
                n % 28 + 1
            )),
            _ if named.name.ends_with("city") => {
                let city = CITIES[n % CITIES.len()];
                let city = if n < 60 {
                    city.to_uppercase()
                } else {
                    city.to_owned()
                };
                json!(city)
            }
            _ => json!(match n % 6 {
                0 => format!("{word} {}", n % 4),
                1 => word.to_uppercase(),
                2 => format!("{} {}", word.to_uppercase(), n % 4),
                _ => word.to_owned(),
            }),
        }
    }

    fn condition(&mut self, from: &'static Stream, named: &NamedField) -> Json {
        let value = self.value(named);
        let is_text = named.datatype == "string";
        let is_ordered = named.datatype != "boolean";
        match self.rng.below(12) {
            0 => json!({ "ne": value }),
            1 => json!({ "is_null": value.to_string().len().is_multiple_of(2) }),
            2 if is_ordered => json!({ "gte": value }),
            3 if is_ordered => json!({ "lt": value }),
            4 if is_text => json!({ "contains": value }),
            5 if is_text => json!({ "icontains": value }),
            6 if is_text => json!({ "ieq": value }),
            7 if is_text => json!({ "starts_with": value }),
            8 | 9 => {
                let datatype = named.datatype;
                let other = self.named(from, |it| it == datatype).name;
                let op = *self.rng.one_of(&["eq", "ne", "lte", "gt"]);
                json!({ op: { "field": other } })
            }
            10 => json!({ "not_in": [value] }),
            _ => json!([value]),
        }
    }

    fn filter(&mut self, from: &'static Stream, depth: usize) -> Map<String, Json> {
        let mut filter = Map::new();
        for _ in 0..=self.rng.below(2) {
            if depth < MAX_DEPTH && self.chance(3) {
                let (mut prefix, mut end) = (String::new(), from);
                if self.chance(3) {
                    (prefix, end) = self.walk(from);
                }
                let to_one = self.chance(4);
                if let Some(relation) = self.hop(end, to_one) {
                    let quantifier = *self.rng.one_of(&["some", "none"]);
                    let inner = if self.chance(4) {
                        Map::new()
                    } else {
                        self.filter(stream(relation.to), depth + 1)
                    };
                    let name = format!("{prefix}{}", relation.name);
                    filter.insert(name, json!({ quantifier: inner }));
                    continue;
                }
            }
            let named = self.named(from, |_| true);
            let condition = self.condition(from, &named);
            filter.insert(named.name, condition);
        }
        if depth == 0 && self.chance(6) {
            let either = [self.filter(from, 1), self.filter(from, 1)];
            filter.insert("any".to_owned(), json!(either));
        }
        filter
    }

    fn schema(&mut self, of: &'static Stream) -> (&'static str, Json) {
        let given = match self.rng.below(4) {
            0 => json!({}),
            1 => json!({ "streams": [of.name, "people"] }),
            2 => json!({ "stream": of.name, "detail": "full" }),
            _ => json!({ "stream": of.name }),
        };
        ("schema", given)
    }

    fn query(&mut self, of: &'static Stream) -> (&'static str, Json) {
        let mut given = json!({ "stream": of.name });
        if !self.chance(3) {
            given["filter"] = self.filter(of, 0).into();
        }
        if !self.chance(3) {
            given["fields"] = json!(self.some(of, 4));
        }
        if self.chance(2) {
            let by = self.some(of, 2);
            given["sort"] = self.sorted(&by);
        }
        if self.chance(4) {
            let relations: Vec<&str> = of.relations.iter().map(|it| it.name).collect();
            given["expand"] = json!([*self.rng.one_of(&relations)]);
        }
        if self.chance(2) {
            given["count"] = json!("exact");
        }
        given["limit"] = json!([3, 7, 100][self.rng.below(3)]);
        ("query_records", given)
    }

    fn metric(&mut self, of: &'static Stream, number: usize) -> Json {
        if let (Some(measure), true) = (self.rng.pick(of.measures), self.chance(3)) {
            return json!(measure.name);
        }
        let named = self.named(of, |_| true);
        let is_number = matches!(named.datatype, "integer" | "decimal");
        let ops: &[&str] = if is_number {
            &["count", "count_distinct", "min", "max", "sum", "avg"]
        } else {
            &["count", "count_distinct", "min", "max"]
        };
        let op = *self.rng.one_of(ops);
        if self.chance(2) {
            return json!(format!("{op}:{}", named.name));
        }
        let mut metric = json!({ "op": op, "field": named.name });
        if self.chance(2) {
            metric["filter"] = self.filter(of, 1).into();
        }
        metric["as"] = json!(format!("m{number}"));
        metric
    }

    fn aggregate(&mut self, of: &'static Stream) -> (&'static str, Json) {
        let mut metrics: Vec<Json> = vec![json!("count")];
        for number in 0..self.rng.below(3) {
            let metric = self.metric(of, number);
            if !metrics.contains(&metric) {
                metrics.push(metric);
            }
        }
        let mut given = json!({ "stream": of.name, "metrics": metrics });
        if !self.chance(4) {
            let mut by = Vec::new();
            for _ in 0..=self.rng.below(2) {
                // Either a relation or a field.
                let one = if self.chance(3) {
                    let (prefix, end) = self.walk(of);
                    let relation = self.hop(end, true);
                    relation.map(|it| format!("{prefix}{}", it.name))
                } else {
                    None
                };
                by.push(one.unwrap_or_else(|| self.any(of)));
            }
            by.dedup();
            given["group_by"] = json!(by);
        }
        if self.chance(5) {
            let named = self.named(of, |it| matches!(it, "date" | "datetime"));
            let granularity = *self.rng.one_of(&["day", "month", "year"]);
            given["group_by_time"] = json!({ "field": named.name, "granularity": granularity });
        }
        if self.chance(2) {
            given["filter"] = self.filter(of, 0).into();
        }
        if self.chance(4) {
            given["having"] = json!({ "count": { "gte": self.rng.below(4) } });
        }
        if self.chance(3) {
            given["totals"] = json!(true);
        }
        if self.chance(5) {
            given["sort"] = json!(["-count"]);
        }
        given["limit"] = json!([2, 5, 100][self.rng.below(3)]);
        ("aggregate", given)
    }

    fn fetch(&mut self, of: &'static Stream) -> (&'static str, Json) {
        let id = self.rng.below(of.rows + 2);
        let mut given = json!({ "id": format!("web-main/{}:{id}", of.name) });
        if self.chance(2) {
            given["fields"] = json!(self.some(of, 3));
        }
        if self.chance(3) {
            let relations: Vec<&str> = of.relations.iter().map(|it| it.name).collect();
            given["expand"] = json!([*self.rng.one_of(&relations)]);
        }
        ("fetch", given)
    }

    fn search(&mut self, of: &'static Stream) -> (&'static str, Json) {
        let (word, other) = (*self.rng.one_of(&WORDS), *self.rng.one_of(&WORDS));
        let q = match self.rng.below(5) {
            0 => format!("{}:{word}", self.any(of)),
            1 => format!("{word} -{other}"),
            2 => format!("{word} {other}"),
            _ => word.to_owned(),
        };
        let limit = *self.rng.one_of(&[2, 100]);
        let mut given = json!({ "q": q, "limit": limit });
        if self.chance(2) {
            given["filter"] = self.filter(of, 0).into();
        }
        if self.chance(2) {
            given["streams"] = json!([of.name]);
        }
        if self.chance(6) {
            given["fields"] = json!([self.any(of)]);
        }
        ("search", given)
    }
}
