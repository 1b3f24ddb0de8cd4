//! Words of a command line, as a shell reads them.

/// A word, quoted if a shell would read it otherwise.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_word_that_a_shell_would_expand_is_quoted() {
        for (word, expected) in [
            ("call.vessel,commodity", "call.vessel,commodity"),
            ("at:month:Europe/Lisbon", "at:month:Europe/Lisbon"),
            ("", "''"),
            ("a b", "'a b'"),
            ("*", "'*'"),
            ("it's", r"'it'\''s'"),
        ] {
            assert_eq!(quoted(word), expected);
        }
    }
}
