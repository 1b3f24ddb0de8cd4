//! The searched documents and the queries, generated from a formula, so that every engine and every
//! run has the same. It does not know the engines.

use std::ops::RangeInclusive;

use clap::ValueEnum;
use wayleave_store::conformance::SeededRng;

/// Number of distinct words.
const VOCABULARY: f64 = 200_000.0;
/// Flattens the frequencies of the most common words.
const FLATNESS: f64 = 10.0;
/// Number of words in a title.
const TITLE: u64 = 3;
/// Number of words in a body, uniformly distributed.
const BODY: RangeInclusive<u64> = 8..=36;
/// Number of different queries of a case.
const DIFFERENT: usize = 48;

/// One document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Text {
    /// Its key.
    pub(crate) id: u64,
    /// Its title.
    pub(crate) title: String,
    /// Its body.
    pub(crate) body: String,
}

/// The first `count` documents.
pub(crate) fn documents(count: u64) -> impl Iterator<Item = Text> {
    (1..=count).map(document)
}

fn document(id: u64) -> Text {
    // Seeds are far apart in the sequence, so that no two documents share a part of it.
    let mut rng = SeededRng::new(SeededRng::new(id).next_u64());
    let length = BODY.start() + rng.next_u64() % (BODY.end() - BODY.start() + 1);
    let mut words = |many: u64| {
        let words: Vec<String> = (0..many).map(|_| word(rank(&mut rng))).collect();
        words.join(" ")
    };
    Text {
        id,
        title: words(TITLE),
        body: words(length),
    }
}

/// Draws the rank of a word, 0 being the most common, with a frequency of about one over the rank,
/// as in natural languages.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between 0 and the size of the vocabulary"
)]
fn rank(rng: &mut SeededRng) -> u64 {
    let share = (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    let spread = (VOCABULARY + FLATNESS) / FLATNESS;
    (FLATNESS * spread.powf(share) - FLATNESS) as u64
}

/// The word of a rank. No stemmer changes it and no language has it, so every engine finds the same
/// documents.
fn word(rank: u64) -> String {
    const BEGIN: &[u8] = b"bdfgklmnprtvz";
    const MIDDLE: &[u8] = b"aou";
    const END: &[u8] = b"bkmp";
    let mut rest = rank;
    let mut letter = |from: &[u8]| {
        let size = from.len() as u64;
        let at = usize::try_from(rest % size).unwrap_or(0);
        rest /= size;
        (char::from(from.get(at).copied().unwrap_or(b'x')), rest == 0)
    };
    let mut word = String::new();
    let (end, _) = letter(END);
    loop {
        word.push(letter(BEGIN).0);
        let (middle, done) = letter(MIDDLE);
        word.push(middle);
        if done {
            break;
        }
    }
    word.push(end);
    word
}

/// A kind of search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Case {
    /// One word that a few documents in a hundred have.
    Common,
    /// Either of two such words.
    CommonPair,
    /// One word that a few documents in a thousand have.
    Mid,
    /// One word that a few documents in a hundred thousand have.
    Rare,
}

impl Case {
    /// All of them.
    pub(crate) const ALL: [Self; 4] = [Self::Common, Self::CommonPair, Self::Mid, Self::Rare];

    /// The name of the case in a report.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Common => "common word",
            Self::CommonPair => "two common words",
            Self::Mid => "mid word",
            Self::Rare => "rare word",
        }
    }

    /// Whether the aims apply to it.
    pub(crate) fn is_common(self) -> bool {
        matches!(self, Self::Common | Self::CommonPair)
    }

    /// Different queries for this many documents.
    pub(crate) fn questions(self, documents: u64) -> Vec<Question> {
        let (first, step) = match self {
            Self::Common | Self::CommonPair => (50, 1),
            Self::Mid => (1_000, 7),
            // About 30 documents match each, however many there are.
            Self::Rare => (documents / 16, (documents / 10_000).max(1)),
        };
        (0..DIFFERENT)
            .map(|number| {
                let at = |number: usize| word(first + step * number as u64);
                // Far enough apart that no pair repeats.
                let partner = (number + DIFFERENT / 3) % DIFFERENT;
                Question {
                    words: match self {
                        Self::CommonPair => vec![at(number), at(partner)],
                        _ => vec![at(number)],
                    },
                }
            })
            .collect()
    }
}

/// A query for any of these words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Question {
    /// The words.
    pub(crate) words: Vec<String>,
}

impl Question {
    /// The query in SQLite's syntax.
    pub(crate) fn fts5(&self) -> String {
        let quoted: Vec<String> = self.words.iter().map(|it| format!("\"{it}\"")).collect();
        quoted.join(" OR ")
    }

    /// The query in PostgreSQL's syntax.
    pub(crate) fn tsquery(&self) -> String {
        self.words.join(" | ")
    }

    /// The query in Wayleave's syntax.
    pub(crate) fn ours(&self) -> String {
        self.words.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_rank_has_a_word_of_its_own() {
        let words: BTreeSet<String> = (0..200_000).map(word).collect();
        assert_eq!(words.len(), 200_000);
        let letters = |word: &String| word.bytes().all(|it| it.is_ascii_lowercase());
        assert!(words.iter().all(letters));
    }

    #[test]
    fn documents_are_the_same_in_every_run_and_no_two_alike() {
        let some: Vec<Text> = documents(1_000).collect();
        assert_eq!(some, documents(1_000).collect::<Vec<_>>());
        let bodies: BTreeSet<&str> = some.iter().map(|it| it.body.as_str()).collect();
        assert_eq!(bodies.len(), 1_000);
    }
}
