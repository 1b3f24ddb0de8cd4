//! Finds the name that was probably meant by a mistyped one.

/// Returns the candidate closest to a name, if the difference could be a typing mistake.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted: Vec<char> = name.to_lowercase().chars().collect();
    // A third of the characters may differ: at least one, at most four.
    let allowed = (wanted.len() / 3).clamp(1, 4);
    candidates
        .into_iter()
        .filter(|candidate| *candidate != name)
        .filter_map(|candidate| {
            let other: Vec<char> = candidate.to_lowercase().chars().collect();
            let distance = distance(&wanted, &other, allowed)?;
            Some((distance, candidate))
        })
        .min()
        .map(|(_, candidate)| candidate)
}

/// Number of insertions, deletions, substitutions and swaps of neighbours that turn one text into
/// the other; `None` if it exceeds `allowed`.
#[expect(
    clippy::indexing_slicing,
    reason = "each row has one element more than `b`, and the row two back exists after the first"
)]
pub(crate) fn distance(a: &[char], b: &[char], allowed: usize) -> Option<usize> {
    if a.len().abs_diff(b.len()) > allowed {
        return None;
    }
    let mut two_back: Vec<usize> = Vec::new();
    let mut back: Vec<usize> = (0..=b.len()).collect();
    for (i, &from) in a.iter().enumerate() {
        let mut row = Vec::with_capacity(b.len() + 1);
        let mut left = i + 1;
        row.push(left);
        for (j, &to) in b.iter().enumerate() {
            let replace = back[j] + usize::from(from != to);
            let mut best = replace.min(back[j + 1] + 1).min(left + 1);
            let swapped = i > 0 && j > 0 && a[i - 1] == to && b[j - 1] == from;
            if swapped {
                best = best.min(two_back[j - 1] + 1);
            }
            row.push(best);
            left = best;
        }
        two_back = std::mem::replace(&mut back, row);
    }
    back.last().copied().filter(|&distance| distance <= allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_hand_finds_the_name_that_was_meant() {
        let names = ["full_name", "status", "updated_at", "id"];
        for (typed, meant) in [
            ("ful_name", Some("full_name")),
            ("statsu", Some("status")),
            ("Updated_At", Some("updated_at")),
            ("updatedat", Some("updated_at")),
            ("di", Some("id")),
            ("salary", None),
        ] {
            assert_eq!(nearest(typed, names), meant, "{typed}");
        }
    }

    #[test]
    fn ties_go_to_the_first_in_order_so_answers_do_not_vary() {
        assert_eq!(nearest("bat", ["rat", "cat"]), Some("cat"));
    }
}
