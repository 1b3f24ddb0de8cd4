//! What was ratified cannot be changed.
use wayleave_model::mapping::Mapping;
use wayleave_model::ratify::Ratified;

fn change(ratified: &mut Ratified<Mapping>) {
    ratified.streams.clear();
}

fn main() {
    let _ = change;
}
