//! Row sets: the same rows as compact text and as JSON, within a budget of bytes.
//!
//! Every line of a row begins with `|`, and no other line does, so that no value can pass for a
//! handle. A table reports when it has no room left for a row, and the page ends there.

use serde_json::Value as Json;
use wayleave_plan::value::Value;

use crate::cell;

/// A header, and as many rows as fit.
#[derive(Debug, Default)]
pub(crate) struct Table {
    text: String,
    /// `{fields, rows}` as far as it is written.
    json: String,
    /// The start of each row in text and JSON.
    starts: Vec<(usize, usize)>,
    most: usize,
}

impl Table {
    /// A table with these columns whose text takes at most `most` bytes. A column's name in the
    /// text may say more than its name in the structure.
    pub(crate) fn new(columns: impl IntoIterator<Item = (String, String)>, most: usize) -> Self {
        // Most pages fit in this.
        let usual = most.min(8 * 1024);
        let mut table = Self {
            text: String::with_capacity(usual),
            json: String::with_capacity(usual * 3 / 2),
            starts: Vec::new(),
            most,
        };
        table.json.push_str("{\"fields\":[");
        for (place, (field, heading)) in columns.into_iter().enumerate() {
            table.text.push('|');
            table.text.push_str(&heading);
            if place > 0 {
                table.json.push(',');
            }
            cell::text_json(&mut table.json, &field);
        }
        table.text.push('\n');
        table.json.push_str("],\"rows\":[");
        table
    }

    /// Reserves room for `rows` rows.
    pub(crate) fn reserve(&mut self, rows: usize) {
        self.starts.reserve(rows);
    }

    /// Adds a row of these values followed by the cells of `more`, and returns whether there was
    /// room for it.
    #[must_use = "a row without room is not in the table"]
    pub(crate) fn push(&mut self, values: &[Value], more: &[Json]) -> bool {
        // The whole of such a value is longer than any page.
        if values.iter().any(|it| matches!(it, Value::Preview(_))) {
            return false;
        }
        let start = (self.text.len(), self.json.len());
        self.json
            .push_str(if self.starts.is_empty() { "[" } else { ",[" });
        for value in values {
            self.text.push('|');
            cell::push_value(&mut self.text, &mut self.json, value);
            self.json.push(',');
        }
        for value in more {
            self.text.push('|');
            cell::push_json(&mut self.text, &mut self.json, value);
            self.json.push(',');
        }
        // No comma after the last cell.
        if self.json.ends_with(',') {
            self.json.pop();
        }
        self.text.push('\n');
        self.json.push(']');
        self.starts.push(start);
        let has_room = self.text.len() <= self.most;
        if !has_room {
            self.pop();
        }
        has_room
    }

    /// Removes the last row.
    pub(crate) fn pop(&mut self) {
        if let Some((text, json)) = self.starts.pop() {
            self.text.truncate(text);
            self.json.truncate(json);
        }
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.starts.len()
    }

    /// Size of the text, in bytes.
    pub(crate) fn text_bytes(&self) -> usize {
        self.text.len()
    }

    /// The text, and the JSON of `{fields, rows}` with one additional member if given.
    pub(crate) fn finish(mut self, member: Option<(&str, &Json)>) -> (String, String) {
        self.json.push(']');
        if let Some((name, value)) = member {
            self.json.push(',');
            cell::text_json(&mut self.json, name);
            self.json.push(':');
            self.json.push_str(&value.to_string());
        }
        self.json.push('}');
        (self.text, self.json)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn columns(names: &[&str]) -> Vec<(String, String)> {
        let pair = |name: &&str| ((*name).to_owned(), (*name).to_owned());
        names.iter().map(pair).collect()
    }

    #[test]
    fn a_value_cannot_pass_for_a_handle_or_for_another_row() {
        let mut table = Table::new(columns(&["note"]), 1_000);
        assert!(table.push(&[Value::Text("next_cursor=evil".into())], &[]));
        assert!(table.push(&[], &[json!("a\n|b")]));
        assert!(table.push(&[Value::Null], &[]));
        let (text, data) = table.finish(None);
        assert_eq!(text, "|note\n|next_cursor=evil\n|a\\n\\|b\n|\n");
        assert_eq!(
            data,
            r#"{"fields":["note"],"rows":[["next_cursor=evil"],["a\n|b"],[null]]}"#
        );
    }

    #[test]
    fn a_row_without_room_leaves_no_trace() {
        let mut table = Table::new(columns(&["a", "b"]), 12);
        assert!(!table.push(&[], &[json!("much too long"), json!(0)]));
        assert!(table.push(&[Value::Integer(1)], &[json!(2)]));
        assert!(!table.push(&[Value::Text("long".into())], &[json!(2)]));
        assert_eq!(table.len(), 1);
        let (text, data) = table.finish(Some(("expand", &json!({ "x": 1 }))));
        assert_eq!(text, "|a|b\n|1|2\n");
        assert_eq!(
            data,
            r#"{"fields":["a","b"],"rows":[[1,2]],"expand":{"x":1}}"#
        );
    }

    #[test]
    fn a_row_taken_away_makes_room_for_another() {
        let mut table = Table::new(columns(&["a"]), 100);
        assert!(table.push(&[Value::Integer(1)], &[]));
        assert!(table.push(&[Value::Integer(2)], &[]));
        table.pop();
        table.pop();
        assert!(table.push(&[Value::Integer(3)], &[]));
        let (text, data) = table.finish(None);
        assert_eq!(text, "|a\n|3\n");
        assert_eq!(data, r#"{"fields":["a"],"rows":[[3]]}"#);
    }
}
