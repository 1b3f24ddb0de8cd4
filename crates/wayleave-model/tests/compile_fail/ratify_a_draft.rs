//! A draft is not ratified without a check.
use wayleave_model::ratify::{Draft, Ratification, ratify};

fn skip_the_check(draft: Draft, ratification: Ratification) {
    let _ = ratify(draft, ratification);
}

fn main() {
    let _ = skip_the_check;
}
