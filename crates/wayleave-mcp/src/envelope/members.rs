//! Reads named members of a JSON object, without a tree of the rest.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize,
    de::{DeserializeSeed, Deserializer, MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// Members of a JSON object, in the order of the requested names. Of duplicates the last counts.
pub(super) struct Members<'m, const N: usize> {
    pub(super) values: [Option<&'m RawValue>; N],
    pub(super) has_duplicate: bool,
    pub(super) has_unknown: bool,
}

/// Deserializes the members with these names.
struct MembersOf<const N: usize>([&'static str; N]);

#[derive(Deserialize)]
struct Name<'m>(#[serde(borrow)] Cow<'m, str>);

impl<'m, const N: usize> Visitor<'m> for MembersOf<N> {
    type Value = Members<'m, N>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'m>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Members {
            values: [None; N],
            has_duplicate: false,
            has_unknown: false,
        };
        while let Some(Name(name)) = map.next_key()? {
            let value: &RawValue = map.next_value()?;
            let known = self.0.iter().position(|known| *known == name);
            match known.and_then(|at| members.values.get_mut(at)) {
                Some(slot) => members.has_duplicate |= slot.replace(value).is_some(),
                None => members.has_unknown = true,
            }
        }
        Ok(members)
    }
}

impl<'m, const N: usize> DeserializeSeed<'m> for MembersOf<N> {
    type Value = Members<'m, N>;

    fn deserialize<D: Deserializer<'m>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_map(self)
    }
}

/// Reads the members with these names.
pub(super) fn members<'m, const N: usize>(
    json: &'m [u8],
    names: [&'static str; N],
) -> serde_json::Result<Members<'m, N>> {
    let mut reader = serde_json::Deserializer::from_slice(json);
    let members = MembersOf(names).deserialize(&mut reader)?;
    reader.end()?;
    Ok(members)
}

/// The string that `json` holds, if it is a string.
pub(super) fn text(json: &RawValue) -> Option<Cow<'_, str>> {
    serde_json::from_str::<Name<'_>>(json.get())
        .ok()
        .map(|Name(text)| text)
}

pub(super) fn is_null(json: &RawValue) -> bool {
    json.get() == "null"
}
