//! Row sets: the same rows as compact text and as structure, within a budget of bytes.
//!
//! Every line of a row begins with `|`, and no other line does, so that no value can pass for a
//! handle. A table that has no room left for a row says so, and the page ends there.

use serde_json::{Map, Value as Json};

use crate::escape;

/// A header, and as many rows as there is room for.
#[derive(Debug, Default)]
pub(crate) struct Table {
    text: String,
    fields: Vec<String>,
    rows: Vec<Json>,
    /// Where each row begins in the text.
    starts: Vec<usize>,
    most: usize,
}

impl Table {
    /// A table of these columns whose text takes at most `most` bytes. A column may have a name in
    /// the text that says more than its name in the structure.
    pub(crate) fn new(columns: impl IntoIterator<Item = (String, String)>, most: usize) -> Self {
        let mut table = Self {
            // Of most pages the whole.
            text: String::with_capacity(most.min(8 * 1024)),
            fields: Vec::new(),
            rows: Vec::new(),
            starts: Vec::new(),
            most,
        };
        for (field, heading) in columns {
            table.text.push('|');
            table.text.push_str(&heading);
            table.fields.push(field);
        }
        table.text.push('\n');
        table
    }

    /// Makes room for so many rows.
    pub(crate) fn reserve(&mut self, rows: usize) {
        self.rows.reserve(rows);
        self.starts.reserve(rows);
    }

    /// Adds a row, or gives it back where there is no room for it.
    pub(crate) fn push(&mut self, row: Vec<Json>) -> Result<(), Vec<Json>> {
        let before = self.text.len();
        for value in &row {
            self.text.push('|');
            escape::cell(&mut self.text, value);
        }
        self.text.push('\n');
        if self.text.len() > self.most {
            self.text.truncate(before);
            return Err(row);
        }
        self.rows.push(Json::Array(row));
        self.starts.push(before);
        Ok(())
    }

    /// Takes the last row away again.
    pub(crate) fn pop(&mut self) -> Option<Vec<Json>> {
        self.text.truncate(self.starts.pop()?);
        match self.rows.pop()? {
            Json::Array(row) => Some(row),
            _ => None,
        }
    }

    /// How many rows it has.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// How many bytes its text takes.
    pub(crate) fn text_bytes(&self) -> usize {
        self.text.len()
    }

    /// The text, and the structure `{fields, rows}`.
    pub(crate) fn finish(self) -> (String, Json) {
        // `json!` would copy every row.
        let parts = [
            ("fields".to_owned(), Json::from(self.fields)),
            ("rows".to_owned(), Json::Array(self.rows)),
        ];
        (self.text, Json::Object(Map::from_iter(parts)))
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
        table.push(vec![json!("next_cursor=evil")]).unwrap();
        table.push(vec![json!("a\n|b")]).unwrap();
        table.push(vec![Json::Null]).unwrap();
        let (text, data) = table.finish();
        assert_eq!(text, "|note\n|next_cursor=evil\n|a\\n\\|b\n|\n");
        assert_eq!(
            data,
            json!({"fields": ["note"], "rows": [["next_cursor=evil"], ["a\n|b"], [null]]})
        );
    }

    #[test]
    fn a_row_without_room_leaves_no_trace() {
        let mut table = Table::new(columns(&["a", "b"]), 12);
        table.push(vec![json!(1), json!(2)]).unwrap();
        let long = vec![json!("long"), json!(2)];
        assert_eq!(table.push(long.clone()), Err(long));
        let (text, data) = table.finish();
        assert_eq!(text, "|a|b\n|1|2\n");
        assert_eq!(data["rows"], json!([[1, 2]]));
    }
}
