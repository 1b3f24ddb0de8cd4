//! What was ratified cannot be exchanged for something else.
use wayleave_model::mapping::Mapping;
use wayleave_model::ratify::Ratified;

fn exchange(ratified: &mut Ratified<Mapping>, other: Mapping) {
    ratified.value = other;
}

fn main() {
    let _ = exchange;
}
