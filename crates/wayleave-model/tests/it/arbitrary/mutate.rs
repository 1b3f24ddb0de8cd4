//! Single changes of a mapping, of every kind.

use std::sync::Arc;

use wayleave_model::mapping::{
    Action, AggregateOp, Capability, Datatype, Field, Join, Mapping, Origin, Relation, Scalar,
    SourceKind, Spanned, Stream,
};

use super::{Choices, number, text};

/// Applies every kind of single change to a mapping, in the stream and field `at`. Each result
/// differs from the original and need not be valid.
pub(crate) fn mutations(mapping: &Mapping, at: u32) -> Vec<Mapping> {
    let mut all = Vec::new();
    for kind in 0..12 {
        for detail in 0..18 {
            // The last number selects the change; the numbers before it select the kind and the
            // place.
            let numbers = match kind {
                0..=6 | 8 => vec![kind, detail],
                11 => vec![kind, at, at, detail],
                _ => vec![kind, at, detail],
            };
            all.push(mutate(&mut Choices(numbers.into_iter()), mapping));
        }
    }
    all
}

fn mutate(choices: &mut Choices, mapping: &Mapping) -> Mapping {
    let mut mapped = mapping.clone();
    let other = |value: &mut Spanned<String>| value.value.push('x');
    let toggle = |value: &mut Option<Spanned<String>>| match value {
        Some(value) => value.value.push('x'),
        None => *value = Some(text("new")),
    };
    let dataset = &mut mapped.dataset;
    match choices.below(12) {
        0 => other(&mut dataset.name),
        1 => toggle(&mut dataset.title),
        2 => toggle(&mut dataset.description),
        3 => {
            let now = if dataset.kind.value == SourceKind::Rdf {
                SourceKind::Files
            } else {
                SourceKind::Rdf
            };
            dataset.kind = now.into();
        }
        4 => toggle(&mut dataset.schema),
        5 => other(&mut dataset.iri),
        6 => {
            let connection = mapped.connections.last_mut().unwrap();
            match choices.below(3) {
                0 => other(&mut connection.id),
                1 => toggle(&mut connection.label),
                _ => other(&mut connection.source),
            }
        }
        7 => reorder_or_drop(choices, &mut mapped),
        8 => mutate_capability(choices, &mut mapped),
        9 => {
            let at = choices.below(mapped.streams.len());
            mutate_relation(choices, Arc::make_mut(&mut mapped.streams[at]));
        }
        10 => {
            let at = choices.below(mapped.streams.len());
            mutate_stream(choices, Arc::make_mut(&mut mapped.streams[at]));
        }
        _ => {
            let at = choices.below(mapped.streams.len());
            let fields = &mut Arc::make_mut(&mut mapped.streams[at]).fields;
            let at = choices.below(fields.len());
            mutate_field(choices, Arc::make_mut(&mut fields[at]));
        }
    }
    mapped
}

fn reorder_or_drop(choices: &mut Choices, mapping: &mut Mapping) {
    let stream = choices.below(mapping.streams.len());
    match choices.below(6) {
        0 if mapping.connections.len() > 1 => mapping.connections.reverse(),
        1 if mapping.streams.len() > 1 => mapping.streams.reverse(),
        2 if mapping.capabilities.len() > 1 => mapping.capabilities.reverse(),
        3 if mapping.streams[stream].fields.len() > 1 => {
            Arc::make_mut(&mut mapping.streams[stream]).fields.reverse();
        }
        4 if mapping.streams[stream].relations.len() > 1 => {
            let relations = &mut Arc::make_mut(&mut mapping.streams[stream]).relations;
            relations.reverse();
        }
        _ => drop(mapping.streams.pop()),
    }
}

fn mutate_capability(choices: &mut Choices, mapping: &mut Mapping) {
    let Some(capability) = mapping.capabilities.first_mut() else {
        let made = Capability {
            name: text("made"),
            connection: None,
            stream: text("s0"),
            action: Action::Delete.into(),
            fields: Vec::new(),
            source: text("rw"),
            idempotency: false.into(),
            description: None,
        };
        return mapping.capabilities.push(made);
    };
    match choices.below(8) {
        6 => capability.connection = Some(text("elsewhere")),
        7 => capability.idempotency.value = !capability.idempotency.value,
        0 => capability.name.value.push('x'),
        1 => capability.stream.value.push('x'),
        2 => {
            let delete = capability.action.value == Action::Delete;
            capability.action = if delete {
                Action::Create
            } else {
                Action::Delete
            }
            .into();
        }
        3 => capability.fields.push(text("more")),
        4 => capability.source.value.push('x'),
        _ => capability.description = Some(text("another description")),
    }
}

fn mutate_relation(choices: &mut Choices, stream: &mut Stream) {
    let Some(relation) = stream.relations.first_mut() else {
        return stream.relations.push(Arc::new(Relation {
            name: text("made"),
            to: text("s0"),
            on: vec![Join {
                column: text("c"),
                field: text("f"),
            }],
            type_name: text("MADE"),
            description: None,
        }));
    };
    let relation = Arc::make_mut(relation);
    match choices.below(6) {
        0 => relation.name.value.push('x'),
        1 => relation.to.value.push('x'),
        2 => relation.on[0].column.value.push('x'),
        3 => relation.on[0].field.value.push('x'),
        4 => relation.type_name.value.push('x'),
        _ => relation.description = Some(text("another description")),
    }
}

fn mutate_stream(choices: &mut Choices, stream: &mut Stream) {
    let other = Some(text("some_other"));
    match choices.below(11) {
        0 => stream.name.value.push('x'),
        1 => stream.type_name.value.push('x'),
        2 => stream.table.value.push('x'),
        3 => stream.key.push(text("more")),
        4 => stream.title = other,
        5 => stream.event_time = other,
        6 => stream.updated = other,
        7 => stream.deleted = other,
        8 => stream.search.push(text("more")),
        9 => stream.unique.push(vec![text("more")].into()),
        _ => stream.description = Some(text("another description")),
    }
}

fn mutate_field(choices: &mut Choices, field: &mut Field) {
    match choices.below(19) {
        0 => field.name.value.push('x'),
        1 => match &mut field.origin {
            Origin::Column(column) => column.value.push('x'),
            Origin::Computed(_) => unreachable!("none is drawn"),
        },
        2 => {
            let json = field.datatype.value == Datatype::Json;
            field.datatype = if json { Datatype::Iri } else { Datatype::Json }.into();
        }
        3 => field.predicate.value.push('x'),
        4 => field.description = Some(text("another description")),
        5 => field.required.value ^= true,
        6 => field.many.value ^= true,
        7 => field.generated.value ^= true,
        8 => field
            .one_of
            .value
            .push(Spanned::without_span(Scalar::Text("more".to_owned()))),
        9 if field.one_of.len() > 1 => field.one_of.value.reverse(),
        10 => field.pattern = Some(text("^another$")),
        11 => field.min_length = Some(Spanned::without_span(77)),
        12 => field.max_length = Some(Spanned::without_span(77)),
        13 => field.min_value = Some(number("77.5")),
        14 => field.max_value = Some(number("77.5")),
        15 => field.sort.value ^= true,
        16 => match field
            .aggregate
            .value
            .iter()
            .position(|op| *op == AggregateOp::Count)
        {
            Some(at) => drop(field.aggregate.value.remove(at)),
            None => field.aggregate.value.insert(0, AggregateOp::Count),
        },
        17 => {
            let mask = if field.mask.is_some() {
                "last4"
            } else {
                "redact"
            };
            field.mask = Some(Spanned::without_span(mask.parse().unwrap()));
        }
        _ => field.filter.value ^= true,
    }
}
