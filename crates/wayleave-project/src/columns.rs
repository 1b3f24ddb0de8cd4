//! Rows of words in aligned columns.

use unicode_width::UnicodeWidthStr as _;

/// Maximum width that a column is padded to. A wider cell shifts only its own line.
const MAX_COLUMN_WIDTH: usize = 64;

/// Aligns rows; the last cell of a row is never padded.
pub fn align(rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = Vec::new();
    for row in rows {
        for (place, cell) in row.iter().enumerate() {
            let width = Some(cell.width())
                .filter(|it| *it <= MAX_COLUMN_WIDTH)
                .unwrap_or(0);
            match widths.get_mut(place) {
                Some(widest) => *widest = width.max(*widest),
                None => widths.push(width),
            }
        }
    }
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, widest) in row.iter().zip(&widths) {
            line.push_str(cell);
            let gap = widest.saturating_sub(cell.width()) + 2;
            line.extend(std::iter::repeat_n(' ', gap));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text.trim_end_matches('\n').to_owned()
}

/// A number with thousands separators: `1,284`.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Rows under their headings, as a table, or as a list if the table is wider than `most`.
pub fn fit(rows: &[Vec<String>], most: Option<usize>) -> String {
    let table = align(rows);
    let overflows = |most: usize| table.lines().any(|line| line.width() > most);
    match rows.split_first() {
        Some((heads, records)) if !records.is_empty() && most.is_some_and(overflows) => {
            let record = |cells: &Vec<String>| {
                let cells = heads.iter().zip(cells);
                let shown = cells.filter(|(_, cell)| !cell.is_empty());
                let lines = shown.map(|(head, cell)| vec![head.clone(), cell.clone()]);
                align(&lines.collect::<Vec<_>>())
            };
            let records: Vec<_> = records.iter().map(record).collect();
            records.join("\n\n")
        }
        _ => table,
    }
}

/// Aligned rows, each line indented by two spaces.
pub fn indented(rows: &[Vec<String>]) -> String {
    let text = align(rows);
    let lines: Vec<_> = text.lines().map(|line| format!("  {line}")).collect();
    lines.join("\n")
}

/// A count with its noun: "1 stream", "2 streams".
pub fn count(many: usize, noun: &str) -> String {
    match many {
        1 => format!("1 {noun}"),
        _ => format!("{many} {noun}s"),
    }
}

/// A count of ledger entries.
pub fn count_entries(many: u64) -> String {
    match many {
        1 => "1 entry".to_owned(),
        _ => format!("{many} entries"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_very_long_cell_pushes_only_its_own_line_out_of_step() {
        let long = "x".repeat(MAX_COLUMN_WIDTH + 1);
        let rows = [["ab", "1"], [&long, "2"], ["名", "3"]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(align(&rows), format!("ab  1\n{long}  2\n名  3"));
    }
    #[test]
    fn a_table_too_wide_for_the_terminal_is_told_record_by_record() {
        let rows = [
            ["id", "name", "note"],
            ["1", "Ann", ""],
            ["2", "Bo", "late"],
        ];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        let table = align(&rows);
        assert_eq!(fit(&rows, None), table);
        assert_eq!(fit(&rows, Some(14)), table);
        let told = "id    1\nname  Ann\n\nid    2\nname  Bo\nnote  late";
        assert_eq!(fit(&rows, Some(13)), told);
    }
}
