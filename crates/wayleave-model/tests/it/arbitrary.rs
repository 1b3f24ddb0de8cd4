//! Arbitrary valid mappings, and arbitrary changes of a mapping.
//!
//! Both are derived from a list of numbers, so that a failing case shrinks to few and small
//! numbers.

mod mutate;

use proptest::prelude::*;
use std::sync::Arc;

use wayleave_model::mapping::{
    Action, Capability, Connection, Dataset, Datatype, ExactNumber, Expression, Field, Join,
    Mapping, NamedMeasure, Origin, Relation, Scalar, SearchAnalyzer, SourceKind, Spanned, Stream,
};

pub(crate) use mutate::mutations;

/// A source of choices: takes one number for each, and the simplest choice once the numbers run
/// out.
#[derive(Debug)]
struct Choices(std::vec::IntoIter<u32>);

impl Choices {
    fn below(&mut self, bound: usize) -> usize {
        self.0.next().unwrap_or(0) as usize % bound.max(1)
    }

    fn yes(&mut self) -> bool {
        self.below(2) == 1
    }

    fn one_of<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }

    fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.yes() { Some(make(self)) } else { None }
    }
}

fn choices() -> impl Strategy<Value = Choices> {
    prop::collection::vec(any::<u32>(), 0..300).prop_map(|numbers| Choices(numbers.into_iter()))
}

/// Generates valid mappings.
pub(crate) fn mapping() -> impl Strategy<Value = Mapping> {
    choices().prop_map(|mut choices| draw(&mut choices))
}

const PROSE: &[&str] = &[
    "Plain words.",
    "quotes \" and ' and ''' and \"\"\"",
    "back\\slash \\u0041",
    "two\nlines\n",
    "\n leading and trailing \t",
    "naïve 名前 👩\u{200d}💻",
    "# not a comment",
    "a\r\nb",
];
const LINES: &[&str] = &["A title", "\"quoted\"", "it's", "tab\\t", "[dataset]", "é"];
const IDENTIFIERS: &[&str] = &[
    "Order Details",
    "select",
    "weird\"name",
    "名前",
    "a.b",
    "x'y",
    "{}",
];

fn text(value: impl Into<String>) -> Spanned<String> {
    Spanned::without_span(value.into())
}

fn prose(choices: &mut Choices) -> Option<Spanned<String>> {
    choices.maybe(|choices| text(*choices.one_of(PROSE)))
}

fn line(choices: &mut Choices) -> Option<Spanned<String>> {
    choices.maybe(|choices| text(*choices.one_of(LINES)))
}

fn draw(choices: &mut Choices) -> Mapping {
    let name = *choices.one_of(&["crm", "a", "my-data-2"]);
    let kind = *choices.one_of(&[SourceKind::Postgres, SourceKind::Mysql, SourceKind::Sqlite]);
    let dataset = Dataset {
        name: text(name),
        title: line(choices),
        description: prose(choices),
        kind: kind.into(),
        schema: choices
            .maybe(|choices| text(*choices.one_of(IDENTIFIERS)))
            .filter(|_| kind.has_schemas()),
        iri: text(match choices.below(3) {
            0 => Dataset::default_iri(name),
            1 => "https://example.org/crm#".to_owned(),
            _ => "urn:x:".to_owned(),
        }),
    };
    let connections: Vec<Connection> = (0..=choices.below(3))
        .map(|at| Connection {
            id: text(format!("c{at}-eu")),
            label: line(choices),
            source: text(format!("source_{}", choices.below(3))),
        })
        .collect();
    let mut streams: Vec<Stream> = (0..=choices.below(3))
        .map(|at| stream(choices, at))
        .collect();
    relate(choices, &mut streams);
    let capabilities = capabilities(choices, &streams, &connections);
    Mapping {
        dataset,
        connections,
        streams: streams.into_iter().map(Arc::new).collect(),
        capabilities,
    }
}

fn stream(choices: &mut Choices, at: usize) -> Stream {
    let name = format!("{}{at}", choices.one_of(&["s", "people-", "order_items_"]));
    let mut fields: Vec<Field> = (0..=choices.below(5))
        .map(|at| field(choices, at))
        .collect();
    // A stream has a key, so one of its fields can always be part of one.
    let kinds = [
        Datatype::Integer,
        Datatype::String,
        Datatype::Date,
        Datatype::Decimal,
    ];
    fields.push(Field::new(
        text("key_field"),
        (*choices.one_of(&kinds)).into(),
    ));
    let fit = |fits: fn(&Field) -> bool| -> Vec<Spanned<String>> {
        fields
            .iter()
            .filter(|field| fits(field))
            .map(|field| field.name.clone())
            .collect()
    };
    let one = |choices: &mut Choices, names: &[Spanned<String>]| {
        choices
            .maybe(|choices| choices.below(usize::MAX))
            .and_then(|at| names.get(at % names.len().max(1)).cloned())
    };
    let keys = fit(|field| field.datatype.can_be_key() && !field.many.value);
    let strings = fit(|field| field.datatype.value == Datatype::String);
    let title = one(choices, &fit(Field::is_scalar));
    let event_time = one(
        choices,
        &fit(|f| matches!(f.datatype.value, Datatype::Date | Datatype::Datetime) && !f.many.value),
    );
    let updated = one(
        choices,
        &fit(|f| {
            matches!(f.datatype.value, Datatype::Datetime | Datatype::Integer) && !f.many.value
        }),
    );
    let deleted = one(
        choices,
        &fit(|f| {
            matches!(f.datatype.value, Datatype::Datetime | Datatype::Boolean) && !f.many.value
        }),
    );
    let mut key = keys.clone();
    key.rotate_left(choices.below(keys.len()));
    key.truncate(1 + choices.below(2));
    let unique = if choices.yes() {
        vec![Spanned::without_span(keys.clone())]
    } else {
        Vec::new()
    };
    Stream {
        table: if choices.yes() {
            text(format!("{} {at}", choices.one_of(IDENTIFIERS)))
        } else {
            text(&*name)
        },
        name: text(name),
        type_name: text(*choices.one_of(&["Person", "org", "A-b_c"])),
        key,
        title,
        event_time,
        updated,
        deleted,
        search: if choices.yes() { strings } else { Vec::new() },
        analyzer: choices
            .yes()
            .then(|| Spanned::without_span(*choices.one_of(SearchAnalyzer::ALL))),
        unique,
        description: prose(choices),
        fields: fields.into_iter().map(Arc::new).collect(),
        relations: Vec::new(),
        measures: measures(choices),
    }
}

fn measures(choices: &mut Choices) -> Vec<Arc<NamedMeasure>> {
    let expression = *choices.one_of(&["count()", "100 * count(*) / 3", "count() - 1"]);
    let measure = NamedMeasure {
        name: text("rows"),
        expression: Spanned::without_span(Expression::parse(expression).unwrap()),
    };
    if choices.yes() {
        vec![Arc::new(measure)]
    } else {
        Vec::new()
    }
}

fn field(choices: &mut Choices, at: usize) -> Field {
    let name = format!("{}{at}", choices.one_of(&["f", "fullName", "a_b_"]));
    let datatype = *choices.one_of(Datatype::ALL);
    let mut field = Field::new(text(&*name), datatype.into());
    if choices.yes() {
        field.origin = Origin::Column(text(format!("{} {at}", choices.one_of(IDENTIFIERS))));
    }
    if choices.yes() {
        let prefix = *choices.one_of(&["https://example.org/other#", "own-"]);
        field.predicate = text(format!("{prefix}{at}"));
    }
    field.description = prose(choices);
    field.required = choices.yes().into();
    field.generated = choices.yes().into();
    field.many = choices.yes().into();
    let scalar = field.is_scalar();
    field.filter = (scalar && choices.yes()).into();
    field.sort = (scalar && choices.yes()).into();
    let mut ops = Field::default_aggregate(datatype, field.many.value);
    ops.retain(|_| choices.yes());
    field.aggregate = ops.into();
    constrain(choices, &mut field);
    field
}

fn number(text: &str) -> Spanned<ExactNumber> {
    Spanned::without_span(text.parse().unwrap())
}

fn constrain(choices: &mut Choices, field: &mut Field) {
    match field.datatype.value {
        Datatype::String => {
            if choices.yes() {
                let words = ["B-1234", "B-0001", "B-9999"];
                let listed = words
                    .iter()
                    .take(choices.below(4))
                    .map(|word| Spanned::without_span(Scalar::Text((*word).to_owned())));
                field.one_of = listed.collect::<Vec<_>>().into();
            }
            field.pattern = choices.maybe(|c| text(*c.one_of(&["^B-[0-9]{4}$", r"\d", "[\"']?"])));
            field.min_length =
                choices.maybe(|c| Spanned::without_span(u32::try_from(c.below(6)).unwrap()));
            field.max_length =
                choices.maybe(|c| Spanned::without_span(u32::try_from(6 + c.below(9)).unwrap()));
        }
        Datatype::Integer | Datatype::Decimal | Datatype::Number => {
            let whole = field.datatype.value == Datatype::Integer;
            let least = ["-7", "0", "-9223372036854775809"];
            let greatest = [
                "10",
                "9223372036854775807",
                "123456789012345678901234567890",
            ];
            let fractions = ["10.5", "10.000000000000000000000000001"];
            field.min_value = choices.maybe(|c| number(least[c.below(least.len())]));
            field.max_value = choices.maybe(|c| match c.below(4) {
                3 if !whole => number(fractions[0]),
                2 if !whole => number(fractions[1]),
                _ => number(greatest[c.below(greatest.len())]),
            });
            if field.datatype.can_be_listed() && choices.yes() {
                let values = if whole {
                    ["0", "1", "10"]
                } else {
                    ["0", "0.1", "9.99"]
                };
                let listed = values
                    .map(|value| Spanned::without_span(Scalar::Number(value.parse().unwrap())));
                field.one_of = listed.to_vec().into();
            }
        }
        _ => {}
    }
}

fn relate(choices: &mut Choices, streams: &mut [Stream]) {
    let targets: Vec<_> = streams
        .iter()
        .map(|stream| (stream.name.clone(), stream.key[0].clone()))
        .collect();
    for stream in streams {
        for at in 0..choices.below(3) {
            let (to, key) = choices.one_of(&targets).clone();
            let name = format!("rel{at}");
            let mut on = vec![Join {
                column: text(format!("fk-{at} \"x\"")),
                field: key,
            }];
            if choices.yes() {
                on.push(Join {
                    column: text("region-"),
                    field: text("key_field"),
                });
            }
            stream.relations.push(Arc::new(Relation {
                to,
                on,
                type_name: if choices.yes() {
                    text(Relation::default_type(&name))
                } else {
                    text("KNOWS")
                },
                description: prose(choices),
                name: text(name),
            }));
        }
    }
}

fn capabilities(
    choices: &mut Choices,
    streams: &[Stream],
    connections: &[Connection],
) -> Vec<Capability> {
    let mut all = Vec::new();
    for at in 0..choices.below(4) {
        let stream = choices.one_of(streams);
        let action = *choices.one_of(Action::ALL);
        let fields: Vec<_> = stream
            .fields
            .iter()
            .filter(|field| !field.generated.value)
            .filter(|field| match action {
                Action::Create => field.required.value || choices.yes(),
                Action::Update => {
                    let mut leading = streams.iter().flat_map(|it| &it.relations);
                    !stream.key.contains(&field.name)
                        && !leading.any(|it| {
                            it.to == stream.name && it.on.iter().any(|on| on.field == field.name)
                        })
                }
                Action::Delete => false,
            })
            .map(|field| field.name.clone())
            .collect();
        if fields.is_empty() && action != Action::Delete {
            continue;
        }
        all.push(Capability {
            name: text(format!("act_{at}")),
            connection: connections.first().map(|it| it.id.clone()),
            stream: stream.name.clone(),
            action: action.into(),
            fields,
            source: text("crm_rw"),
            idempotency: choices.yes().into(),
            description: prose(choices),
        });
    }
    all
}
