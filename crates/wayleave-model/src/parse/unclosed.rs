//! Finds the bracket that a broken document never closes.
//!
//! An inline table or array may span lines, so a parser takes whatever follows an unclosed one as
//! part of it and reports every line. The actual mistake is at the bracket.

/// The offset of the outermost unclosed bracket, and the bracket.
pub(super) fn bracket(source: &str) -> Option<(usize, char)> {
    let mut open: Vec<(usize, char)> = Vec::new();
    let mut at = 0;
    while let Some(rest) = source.get(at..).filter(|rest| !rest.is_empty()) {
        let c = rest.chars().next()?;
        match c {
            '#' => at += to_line_end(rest),
            '"' | '\'' => at += text_len(rest, c),
            '[' | '{' => {
                open.push((at, c));
                at += 1;
            }
            ']' | '}' => {
                open.pop();
                at += 1;
            }
            _ => at += c.len_utf8(),
        }
    }
    open.first().copied()
}

fn to_line_end(rest: &str) -> usize {
    rest.find('\n').unwrap_or(rest.len())
}

/// Length in bytes of the string that a quote begins; an unterminated one ends with its line.
fn text_len(rest: &str, quote: char) -> usize {
    let has_escapes = quote == '"';
    let marks = quote.to_string();
    let long = marks.repeat(3);
    let (mark, end) = if rest.starts_with(&long) {
        (long, rest.len())
    } else {
        (marks, to_line_end(rest))
    };
    let mut at = mark.len();
    while at < end {
        match rest.get(at..) {
            Some(tail) if tail.starts_with(&mark) => return at + mark.len(),
            Some(tail) => {
                let mut chars = tail.chars();
                let first = chars.next().map_or(1, char::len_utf8);
                let is_escape = has_escapes && tail.starts_with('\\');
                at += first;
                at += chars.next().filter(|_| is_escape).map_or(0, char::len_utf8);
            }
            None => break,
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bracket_that_nothing_closes_is_found() {
        for (source, expected) in [
            ("a = { b = 1 }\n[c]\nd = [1, 2]", None),
            ("a = { b = 1\n[c]\nd = 2", Some((4, '{'))),
            ("a = [\"]\", ']', \"\"\"]\"\"\" # ]\n", Some((4, '['))),
            ("a = \"\\\"[\" # [", None),
            ("a = 'it\nb = [1", Some((12, '['))),
            ("# ünï [\na = { b = [ }", Some((14, '{'))),
            ("a = '''[\n[''' ", None),
            ("a = \"\\", None),
            ("]]]", None),
            ("", None),
        ] {
            assert_eq!(bracket(source), expected, "{source:?}");
        }
    }
}
