//! The shape of arguments: their names and types, without values.

use std::fmt::{self, Write as _};

use serde::{
    Deserialize as _, Deserializer,
    de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor},
};

/// Length in bytes at which a shape is cut.
const MAX_SHAPE_BYTES: usize = 200;
/// Maximum length in bytes of an argument's name; a longer one is replaced.
const MAX_NAME_BYTES: usize = 40;
/// Maximum length in bytes of a recorded text of a caller.
const MAX_TEXT_BYTES: usize = 128;

/// The shape of arguments, like `{stream:s,filter:{status:s},limit:n}`: `s` is a text, `n` a
/// number, `b` a boolean, `0` a null or invalid JSON. A list has the shape of its first member, in
/// brackets, and its length.
pub fn argument_shape(json: &str) -> String {
    let mut shape = String::new();
    let mut input = serde_json::Deserializer::from_str(json);
    if Shape(&mut shape).deserialize(&mut input).is_err() {
        return "0".to_owned();
    }
    if shape.len() > MAX_SHAPE_BYTES {
        let mut cut = MAX_SHAPE_BYTES;
        while !shape.is_char_boundary(cut) {
            cut -= 1;
        }
        shape.truncate(cut);
        shape.push('…');
    }
    shape
}

/// Writes the shape of the value it deserializes.
struct Shape<'s>(&'s mut String);

impl<'de> DeserializeSeed<'de> for Shape<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<(), D::Error> {
        if self.0.len() > MAX_SHAPE_BYTES {
            return IgnoredAny::deserialize(input).map(drop);
        }
        input.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Shape<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.0.push('0');
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        self.0.push('b');
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        self.0.push('n');
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        self.0.push('n');
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        self.0.push('n');
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        self.0.push('s');
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        self.0.push('[');
        let mut count = 0_usize;
        if members.next_element_seed(Shape(self.0))?.is_some() {
            count += 1;
        }
        while members.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
        }
        let _ = write!(self.0, "]{count}");
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        self.0.push('{');
        let mut is_first = true;
        while members
            .next_key_seed(MemberName(self.0, is_first))?
            .is_some()
        {
            is_first = false;
            members.next_value_seed(Shape(self.0))?;
        }
        self.0.push('}');
        Ok(())
    }
}

/// Writes the name of a member, after a comma unless it is the first.
struct MemberName<'s>(&'s mut String, bool);

impl<'de> DeserializeSeed<'de> for MemberName<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<(), D::Error> {
        input.deserialize_str(self)
    }
}

impl Visitor<'_> for MemberName<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a member")
    }

    fn visit_str<E>(self, name: &str) -> Result<(), E> {
        if !self.1 {
            self.0.push(',');
        }
        self.0.push_str(if is_name(name) { name } else { "?" });
        self.0.push(':');
        Ok(())
    }
}

/// Whether a member's name looks like one, and not like a value in the wrong place.
fn is_name(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    (1..=MAX_NAME_BYTES).contains(&name.len()) && name.chars().all(is_part) && !is_secret(name)
}

/// Whether a text contains something that looks like a credential.
fn is_secret(text: &str) -> bool {
    let has_token = ["wlc_", "wlo_", "wlk_", "Bearer "]
        .iter()
        .any(|mark| text.contains(mark));
    let has_password = text.split_once("://").is_some_and(|(_, rest)| {
        rest.split('/')
            .next()
            .is_some_and(|host| host.contains('@'))
    });
    has_token || has_password
}

/// Prepares a caller's text for recording in clear: bounded, on one line, and redacted if it
/// contains something that looks like a credential.
pub fn public_text(text: &str) -> String {
    if is_secret(text) {
        return "[redacted]".to_owned();
    }
    let mut public = String::new();
    for c in text.chars() {
        if public.len() + c.len_utf8() > MAX_TEXT_BYTES {
            public.push('…');
            break;
        }
        public.push(if c.is_control() { '\u{fffd}' } else { c });
    }
    public
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_shape_has_names_and_types_and_no_value() {
        let given = json!({
            "stream": "people",
            "filter": { "ssn": "123-45", "my secret!": 1, "wlc_abc": null },
            "limit": 5, "count": true, "fields": ["a", "b"],
        });
        let shape = argument_shape(&given.to_string());
        assert_eq!(
            shape,
            "{stream:s,filter:{ssn:s,?:n,?:0},limit:n,count:b,fields:[s]2}"
        );
        let long = json!({ "a": vec![json!({"b": 1}); 3], "ü".repeat(300): 1 });
        assert_eq!(argument_shape(&long.to_string()), "{a:[{b:n}]3,?:n}");
        let longer = json!({ "a": [{ "x".repeat(40): { "y".repeat(40): "z" }, "b": [1] }] });
        let wide: Vec<_> = (0..99)
            .map(|at| (format!("m{at}"), json!([{ "a": 1.5 }])))
            .collect();
        let wide = serde_json::Map::from_iter(wide);
        for given in [longer, wide.into()] {
            let shape = argument_shape(&given.to_string());
            assert!(shape.len() <= MAX_SHAPE_BYTES + 3, "{shape}");
        }
        for nothing in ["", "{", "{\"a\":"] {
            assert_eq!(argument_shape(nothing), "0");
        }
    }

    #[test]
    fn a_text_of_a_caller_is_bounded_and_no_credential() {
        assert_eq!(public_text("fetch"), "fetch");
        assert_eq!(public_text("a\nb"), "a\u{fffd}b");
        assert_eq!(public_text("wlc_0123"), "[redacted]");
        assert_eq!(public_text("postgres://u:p@h/db"), "[redacted]");
        assert_eq!(
            public_text("wayleave://kg/Person/a@b"),
            "wayleave://kg/Person/a@b"
        );
        assert_eq!(public_text(&"x".repeat(500)).len(), MAX_TEXT_BYTES + 3);
    }
}
