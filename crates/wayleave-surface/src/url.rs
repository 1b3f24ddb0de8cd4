//! The address of a record: `wayleave://kg/<Type>/<id>`.

pub(crate) use wayleave_plan::request::address::{id, record};
