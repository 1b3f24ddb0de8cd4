//! A retired dataset does not come back.
use wayleave_model::mapping::Mapping;
use wayleave_model::ratify::{Ratified, Retired};

fn revive(retired: Retired) -> Ratified<Mapping> {
    retired.into()
}

fn main() {
    let _ = revive;
}
