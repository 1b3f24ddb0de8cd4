//! Determines the masks of a stream's fields: those of its grant, but no weaker than its mapping
//! requires.

use std::collections::{BTreeMap, BTreeSet};

use wayleave_model::mapping::Stream;
use wayleave_model::mask::Mask;

use super::{FieldView, StreamView};
use crate::mask::{MaskKey, Masking};
use crate::package::StreamGrant;

/// The masked fields of a stream, by name, granted or not.
pub(super) struct Masks(BTreeMap<String, Masking>);

impl Masks {
    pub(super) fn new(
        stream: &Stream,
        granted: Option<&StreamGrant>,
        grant_id: &str,
        key: Option<&MaskKey>,
    ) -> Self {
        let masked = stream.fields.iter().filter_map(|field| {
            let given = granted.and_then(|it| it.masks.get(field.name.as_str()));
            let required = field.mask.as_ref().map(|it| it.value);
            let mask = effective(given.copied(), required)?;
            let masking = Masking::new(mask, field.datatype.value, grant_id, key);
            Some((field.name.value.clone(), masking))
        });
        Self(masked.collect())
    }

    /// Refuses masks on key fields, because ids of records contain the key. If a later mapping made
    /// a masked field part of the key, the stream is withheld.
    pub(super) fn check_key_unmasked(&self, stream: &Stream) -> Result<(), String> {
        let mut key = stream.key.iter();
        match key.find(|name| self.0.contains_key(name.as_str())) {
            None => Ok(()),
            Some(name) => Err(format!("`{name}` is in its key, and is masked")),
        }
    }

    pub(super) fn names(&self) -> BTreeSet<String> {
        self.0.keys().cloned().collect()
    }

    pub(super) fn apply(&self, field: FieldView) -> FieldView {
        match self.0.get(field.name()) {
            Some(masking) => field.masked(masking.clone()),
            None => field,
        }
    }
}

/// The mask of a field: the grant's, unless the mapping requires one that reveals less.
fn effective(given: Option<Mask>, required: Option<Mask>) -> Option<Mask> {
    match (given, required) {
        (Some(given), Some(required)) if !given.is_within(required) => Some(required),
        (given, required) => given.or(required),
    }
}

/// Whether a relation may join two fields with these masks. Following a relation reveals which
/// values are equal, and the plain end's values.
pub(super) fn may_join(ours: Option<Mask>, theirs: Option<Mask>) -> bool {
    match (ours, theirs) {
        (None, None) => true,
        (Some(ours), Some(theirs)) => ours.is_token() && theirs.is_token(),
        _ => false,
    }
}

/// Whether a field is computed from a masked computed field. Formulas contain only stored fields,
/// so the names in the text of the expression decide. The names of all streams count, because a
/// path may lead to any.
pub(super) fn is_computed_from_masked(streams: &[StreamView], field: &FieldView) -> bool {
    let Some(written) = field.written() else {
        return false;
    };
    let mut words = written.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let is_computed = |stream: &StreamView, name: &str| {
        let field = stream.mapped.field(name);
        field.is_some_and(|it| it.compute().is_some())
    };
    words.any(|word| {
        let mut streams = streams.iter();
        streams.any(|it| it.is_field_masked(word) && word != field.name() && is_computed(it, word))
    })
}
