//! Canonical JSON: each value has exactly one text. Keys are sorted by code point, without white
//! space, with the shortest escapes. Bodies hold only text, integers, booleans and null, so numbers
//! have one spelling too.

use serde_json::Value;

/// The canonical text of a value.
pub(crate) fn json(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out);
    out
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_unstable_by_key(|(key, _)| *key);
            list(out, ['{', '}'], sorted, |(key, member), out| {
                scalar(&Value::String(key.clone()), out);
                out.push(':');
                write(member, out);
            });
        }
        Value::Array(items) => list(out, ['[', ']'], items, write),
        _ => scalar(value, out),
    }
}

fn list<I: IntoIterator>(
    out: &mut String,
    [open, close]: [char; 2],
    items: I,
    each: impl Fn(I::Item, &mut String),
) {
    out.push(open);
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        each(item, out);
    }
    out.push(close);
}

fn scalar(value: &Value, out: &mut String) {
    // serde_json prints scalars compactly and always the same way.
    out.push_str(&value.to_string());
}

#[cfg(test)]
mod tests {
    #[test]
    fn keys_are_sorted_at_every_depth() {
        let value = serde_json::json!({"b": [{"d": null, "c": true}], "a": "é\u{1}", "Z": 1});
        assert_eq!(
            super::json(&value),
            r#"{"Z":1,"a":"é\u0001","b":[{"c":true,"d":null}]}"#
        );
    }
}
