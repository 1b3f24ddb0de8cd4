//! A `Proposed` cannot be written down.
use wayleave_model::digest::Digest;
use wayleave_model::mapping::Mapping;
use wayleave_model::ratify::Proposed;

fn forge(mapping: Mapping, bytes: Vec<u8>, digest: Digest) -> Proposed {
    Proposed {
        bytes,
        mapping,
        digest,
    }
}

fn main() {
    let _ = forge;
}
