//! Reads a closed list of values from a CHECK constraint that is nothing but such a list.
//!
//! Parses just enough SQL to tell `status IN ('a', 'b')` from everything else. An expression it
//! does not fully understand is not a list: a wrong guess would narrow what a human ratifies.

/// A column and the only values its CHECK allows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ClosedList {
    pub(crate) column: String,
    pub(crate) values: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    /// A bare word.
    Word(String),
    /// A quoted name.
    Name(String),
    Text(String),
    Mark(char),
}

impl Token {
    fn is_word(&self, word: &str) -> bool {
        matches!(self, Self::Word(it) if it.eq_ignore_ascii_case(word))
    }
}

/// Every plain list among the CHECKs of a `CREATE TABLE` statement, or in a single constraint
/// definition that begins with `CHECK`.
pub(crate) fn closed_lists(statement: &str) -> Vec<ClosedList> {
    let Some(tokens) = tokens(statement) else {
        return Vec::new();
    };
    let mut lists = Vec::new();
    let mut rest = tokens.as_slice();
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        if first.is_word("check")
            && let Some(inside) = in_parentheses(tail)
        {
            lists.extend(closed_list(inside));
        }
    }
    lists
}

/// The list of a bare expression, the form in which MariaDB stores CHECKs.
pub(crate) fn closed_list_expression(expression: &str) -> Option<ClosedList> {
    closed_list(&tokens(expression)?)
}

/// The column of `json_valid(column)`, which is how MariaDB marks a text column as JSON.
pub(crate) fn json_column(expression: &str) -> Option<String> {
    match tokens(expression)?.as_slice() {
        [
            call,
            Token::Mark('('),
            Token::Name(column) | Token::Word(column),
            Token::Mark(')'),
        ] if call.is_word("json_valid") => Some(column.clone()),
        _ => None,
    }
}

fn closed_list(tokens: &[Token]) -> Option<ClosedList> {
    // Parentheses and casts only group here: the remaining tokens must match a form exactly, so
    // that a call, a negation or an `OR` leaves tokens over and is not a list.
    let flat: Vec<Token> = without_casts(tokens)
        .into_iter()
        .filter(|token| !matches!(token, Token::Mark('(' | ')')))
        .collect();
    let (column, rest) = match flat.split_first()? {
        (Token::Word(column) | Token::Name(column), rest) => (column.clone(), rest),
        _ => return None,
    };
    let values = match rest {
        [word, values @ ..] if word.is_word("in") => values,
        [
            Token::Mark('='),
            any,
            array,
            Token::Mark('['),
            values @ ..,
            Token::Mark(']'),
        ] if any.is_word("any") && array.is_word("array") => values,
        _ => return None,
    };
    let mut list = Vec::new();
    for (place, token) in values.iter().enumerate() {
        match (place % 2, token) {
            (0, Token::Text(value)) => list.push(value.clone()),
            (1, Token::Mark(',')) => {}
            _ => return None,
        }
    }
    (values.len() % 2 == 1).then_some(ClosedList {
        column,
        values: list,
    })
}

/// Drops each `::type` together with its words, length and brackets.
fn without_casts(tokens: &[Token]) -> Vec<Token> {
    let mut kept = Vec::new();
    let mut rest = tokens;
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        if let (Token::Mark(':'), [Token::Mark(':'), of @ ..]) = (first, tail) {
            rest = of;
            while let [Token::Word(_) | Token::Name(_), tail @ ..] = rest {
                rest = tail;
            }
            while let [Token::Mark('['), Token::Mark(']'), tail @ ..] = rest {
                rest = tail;
            }
        } else {
            kept.push(first.clone());
        }
    }
    kept
}

/// The tokens between the leading parenthesis, which is required, and its closing one.
fn in_parentheses(tokens: &[Token]) -> Option<&[Token]> {
    let (Token::Mark('('), tail) = tokens.split_first()? else {
        return None;
    };
    let mut depth = 1_usize;
    for (place, token) in tail.iter().enumerate() {
        match token {
            Token::Mark('(') => depth += 1,
            Token::Mark(')') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return tail.get(..place);
        }
    }
    None
}

/// The tokens of a statement without its comments; `None` if a quote is not closed.
fn tokens(sql: &str) -> Option<Vec<Token>> {
    let mut found = Vec::new();
    let mut rest = sql.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\'' => found.push(Token::Text(quoted(&mut rest, '\'')?)),
            '"' | '`' => found.push(Token::Name(quoted(&mut rest, c)?)),
            '-' if rest.peek() == Some(&'-') => while rest.next().is_some_and(|c| c != '\n') {},
            '/' if rest.peek() == Some(&'*') => skip_comment(&mut rest),
            // A bracket quotes a name in SQLite, and builds an array in PostgreSQL.
            '[' if rest
                .peek()
                .is_some_and(|&c| c.is_alphanumeric() || c == '_')
                && !found.last().is_some_and(|it: &Token| it.is_word("array")) =>
            {
                let name: String = rest.by_ref().take_while(|&c| c != ']').collect();
                found.push(Token::Name(name));
            }
            c if c.is_whitespace() => {}
            c if c.is_alphanumeric() || c == '_' => {
                let mut word = String::from(c);
                while let Some(c) = rest.next_if(|&c| c.is_alphanumeric() || c == '_' || c == '$') {
                    word.push(c);
                }
                found.push(Token::Word(word));
            }
            c => found.push(Token::Mark(c)),
        }
    }
    Some(found)
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// The text before the closing quote. A doubled quote stands for one quote.
fn quoted(rest: &mut Chars<'_>, quote: char) -> Option<String> {
    let mut inside = String::new();
    loop {
        let c = rest.next()?;
        if c == quote && rest.next_if_eq(&quote).is_none() {
            return Some(inside);
        }
        inside.push(c);
    }
}

fn skip_comment(rest: &mut Chars<'_>) {
    rest.next();
    let mut before = ' ';
    for c in rest.by_ref() {
        if before == '*' && c == '/' {
            return;
        }
        before = c;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(statement: &str, expected: &[(&str, &[&str])]) {
        let lists = closed_lists(statement);
        let found: Vec<(&str, Vec<&str>)> = lists
            .iter()
            .map(|list| {
                (
                    list.column.as_str(),
                    list.values.iter().map(String::as_str).collect(),
                )
            })
            .collect();
        let expected: Vec<(&str, Vec<&str>)> = expected
            .iter()
            .map(|(column, values)| (*column, values.to_vec()))
            .collect();
        assert_eq!(found, expected, "{statement}");
    }

    #[test]
    fn a_plain_list_is_read_in_every_dialect() {
        check(
            "CREATE TABLE t (s TEXT CHECK (s IN ('a', 'it''s')))",
            &[("s", &["a", "it's"])],
        );
        check(
            "CREATE TABLE t ([s] TEXT CHECK ([s] in ('a')))",
            &[("s", &["a"])],
        );
        check(
            "CHECK ((tier = ANY (ARRAY['basic'::text, 'gold'::text])))",
            &[("tier", &["basic", "gold"])],
        );
        check(
            "CHECK (((channel)::text = ANY ((ARRAY['web'::character varying, 'shop'::character varying])::text[])))",
            &[("channel", &["web", "shop"])],
        );
        let list = closed_list_expression("`Tier` in ('basic','gold')").unwrap();
        assert_eq!((list.column.as_str(), list.values.len()), ("Tier", 2));
    }

    #[test]
    fn anything_else_is_no_list() {
        for statement in [
            "CHECK (NOT (s IN ('a')))",
            "CHECK (s IN ('a') OR s IS NULL)",
            "CHECK (upper(s) IN ('A'))",
            "CHECK (s NOT IN ('a'))",
            "CHECK (s IN (1, 2))",
            "CHECK (s IN ('a' || 'b'))",
            "CHECK (s IN ())",
            "CHECK (s <> ALL (ARRAY['a'::text]))",
            "CHECK (s IN ('a',))",
            "CREATE TABLE t (s TEXT DEFAULT 'CHECK (s IN (''a''))')",
            "CREATE TABLE t (s TEXT) -- CHECK (s IN ('a'))",
            "CREATE TABLE t (s TEXT /* CHECK (s IN ('a')) */)",
            "CREATE TABLE t (\"check\" ('a'))",
            "CHECK (s IN ('a'",
        ] {
            check(statement, &[]);
        }
    }

    #[test]
    fn json_is_told_by_its_check() {
        assert_eq!(
            json_column("json_valid(`Credits`)").as_deref(),
            Some("Credits")
        );
        assert_eq!(json_column("json_valid(`a`) and 1"), None);
    }
}
