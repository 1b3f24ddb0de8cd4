//! A `Ratified` cannot be written down.
use wayleave_model::mapping::Mapping;
use wayleave_model::ratify::{Ratification, Ratified};

fn forge(value: Mapping, ratification: Ratification) -> Ratified<Mapping> {
    Ratified {
        value,
        bytes: Box::default(),
        ratification,
    }
}

fn main() {
    let _ = forge;
}
