//! Case folding.

/// Converts capitals of the Latin, Greek and Cyrillic blocks of [`is_folded`] to small letters. All
/// other characters stay as they are, on every store.
pub fn fold(text: &str) -> String {
    text.chars().map(fold_char).collect()
}

/// The small letter of a folded capital; any other character unchanged.
pub fn fold_char(c: char) -> char {
    if !is_folded(c) {
        return c;
    }
    let mut lower = c.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(one), None) => one,
        _ => c,
    }
}

/// Whether a character is in a block whose capitals are folded: basic Latin, Latin-1, Latin
/// Extended-A and Additional, Greek, Cyrillic. Excludes `İ`, because its small letter is two
/// characters.
pub fn is_folded(c: char) -> bool {
    matches!(
        c,
        'A'..='Z'
            | '\u{C0}'..='\u{DE}'
            | '\u{100}'..='\u{12F}'
            | '\u{132}'..='\u{17D}'
            | '\u{386}'..='\u{3AB}'
            | '\u{400}'..='\u{42F}'
            | '\u{1E00}'..='\u{1E95}'
            | '\u{1EA0}'..='\u{1EFE}'
    )
}

/// Every folded capital with its small letter.
pub fn folded_letters() -> impl Iterator<Item = (char, char)> {
    ('A'..='\u{1EFF}').filter_map(|c| Some((c, fold_char(c))).filter(|(c, lower)| c != lower))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capitals_of_the_named_blocks_are_folded() {
        assert_eq!(fold("AZ ÀÞ Ÿ Ž Ω Ά Я Ё Ế"), "az àþ ÿ ž ω ά я ё ế");
        for same in ["İ", "ı", "ß", "ẞ", "ς", "×", "Ա", "Ａ", "日本", "ﬀ"] {
            assert_eq!(fold(same), same);
        }
        for (capital, small) in folded_letters() {
            assert_eq!(capital.to_lowercase().to_string(), small.to_string());
        }
        assert_eq!(folded_letters().count(), 322);
    }
}
