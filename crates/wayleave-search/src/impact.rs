//! Upper bounds of a common word's score in each window of a segment, so that a search can skip
//! windows that hold no good match.
//!
//! Each window of consecutive records stores the highest number of occurrences of the word and the
//! shortest field lengths. They bound the score whatever the statistics of a search are. Bounds are
//! computed over live records when an index is opened. Only large segments get them, and only for
//! words that are common there, so their memory is bounded.

use std::collections::HashMap;

use tantivy::postings::Postings as _;
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocId, DocSet as _, SegmentReader, TERMINATED};

use crate::index::KEY;

/// Occurrence counts saturate at this value, which means "this many or more".
pub(crate) const MANY_OCCURRENCES: u8 = u8::MAX;

/// Which segments and words get bounds, and how many windows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ImpactConfig {
    /// Segments with fewer documents get no bounds.
    pub(crate) min_documents: u32,
    /// A window has at least `1 << min_shift` records.
    pub(crate) min_shift: u32,
    /// Largest number of windows of a segment; in larger segments windows are wider.
    pub(crate) max_windows: u32,
    /// A word is common if at least one record in `one_in` has it.
    pub(crate) one_in: u32,
}

impl ImpactConfig {
    /// The configuration that indexes are opened with.
    pub(crate) const DEFAULT: Self = Self {
        min_documents: 16_384,
        min_shift: 7,
        max_windows: 8_192,
        one_in: 256,
    };

    /// No segment gets bounds, so every search scores all records that match.
    #[cfg(test)]
    pub(crate) const OFF: Self = Self {
        min_documents: u32::MAX,
        ..Self::DEFAULT
    };
}

/// The bounds of one segment.
pub(crate) struct Impacts {
    shift: u32,
    /// The ordinal of the first key of each window.
    first_keys: Vec<u64>,
    words: HashMap<Field, HashMap<Box<str>, CommonTerm>>,
}

/// The bounds of one word in one field.
pub(crate) struct CommonTerm {
    /// Number of live records that contain it.
    pub(crate) live: u64,
    /// The distinct impacts over all windows.
    impacts: Vec<Impact>,
    /// For each window, the index of its impact plus one; 0 if no record has the word.
    windows: Vec<u16>,
}

/// The facts that bound a word's score in one window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Impact {
    /// Highest number of occurrences in one record.
    pub(crate) occurrences: u8,
    /// The shortest length among records with that many occurrences.
    pub(crate) shortest_with_most: u8,
    /// The shortest length among all records that have the word.
    pub(crate) shortest: u8,
}

impl Impact {
    fn new(occurrences: u8, length: u8) -> Self {
        Self {
            occurrences,
            shortest_with_most: length,
            shortest: length,
        }
    }

    fn join(&mut self, other: Self) {
        match self.occurrences.cmp(&other.occurrences) {
            std::cmp::Ordering::Less => {
                self.occurrences = other.occurrences;
                self.shortest_with_most = other.shortest_with_most;
            }
            std::cmp::Ordering::Equal => {
                self.shortest_with_most = self.shortest_with_most.min(other.shortest_with_most);
            }
            std::cmp::Ordering::Greater => {}
        }
        self.shortest = self.shortest.min(other.shortest);
    }
}

impl Impacts {
    /// Computes the bounds of a segment; `None` if it is small.
    pub(crate) fn from_segment(
        segment: &SegmentReader,
        fields: &[Field],
        shape: ImpactConfig,
    ) -> tantivy::Result<Option<Self>> {
        let documents = segment.max_doc();
        if documents < shape.min_documents.max(1) {
            return Ok(None);
        }
        let shift = (shape.min_shift..DocId::BITS - 1)
            .find(|shift| documents >> shift < shape.max_windows)
            .unwrap_or(DocId::BITS - 1);
        let mut impacts = Self {
            shift,
            first_keys: Vec::new(),
            words: HashMap::new(),
        };
        impacts.first_keys = impacts.first_keys_of(segment)?;
        for field in fields {
            let common = impacts.common(segment, *field, (documents / shape.one_in).max(1))?;
            impacts.words.insert(*field, common);
        }
        Ok(Some(impacts))
    }

    /// The first record of each window and the ordinal of its first key.
    pub(crate) fn windows(&self) -> impl Iterator<Item = (DocId, u64)> {
        let windows = self.first_keys.iter().zip(0..);
        windows.map(|(key, window): (_, DocId)| (window << self.shift, *key))
    }

    /// Number of windows.
    pub(crate) fn window_count(&self) -> usize {
        self.first_keys.len()
    }

    /// The window of a record.
    pub(crate) fn window(&self, document: DocId) -> usize {
        (document >> self.shift) as usize
    }

    /// Number of records in a window.
    pub(crate) fn width(&self) -> u32 {
        1 << self.shift
    }

    /// The bounds of a word, if it is common.
    pub(crate) fn word(&self, field: Field, stem: &str) -> Option<&CommonTerm> {
        self.words.get(&field)?.get(stem)
    }

    #[expect(
        clippy::expect_used,
        reason = "an index adds no document without its key"
    )]
    fn first_keys_of(&self, segment: &SegmentReader) -> tantivy::Result<Vec<u64>> {
        let windows = self.window(segment.max_doc().saturating_sub(1)) + 1;
        let mut first = vec![u64::MAX; windows];
        if let Some(keys) = segment.fast_fields().str(KEY)? {
            for document in segment.doc_ids_alive() {
                let key = keys.ords().first(document).expect("a document has a key");
                if let Some(first) = first.get_mut(self.window(document)) {
                    *first = key.min(*first);
                }
            }
        }
        Ok(first)
    }

    /// The words of a field that occur in at least `least` records.
    fn common(
        &self,
        segment: &SegmentReader,
        field: Field,
        least: u32,
    ) -> tantivy::Result<HashMap<Box<str>, CommonTerm>> {
        let index = segment.inverted_index(field)?;
        let lengths = segment.get_fieldnorms_reader(field)?;
        let mut common = HashMap::new();
        let mut terms = index.terms().stream()?;
        while terms.advance() {
            let (key, info) = (terms.key(), terms.value());
            let Ok(stem) = std::str::from_utf8(key) else {
                continue;
            };
            if info.doc_freq < least {
                continue;
            }
            let mut postings =
                index.read_postings_from_terminfo(info, IndexRecordOption::WithFreqs)?;
            let mut counting = CommonTermBuilder::new(self.window_count());
            while postings.doc() != TERMINATED {
                let document = postings.doc();
                if !segment.is_deleted(document) {
                    let many = u8::try_from(postings.term_freq()).unwrap_or(MANY_OCCURRENCES);
                    let impact = Impact::new(many, lengths.fieldnorm_id(document));
                    counting.add(self.window(document), impact);
                }
                postings.advance();
            }
            common.insert(stem.into(), counting.build());
        }
        Ok(common)
    }
}

/// Collects the impacts of one word.
struct CommonTermBuilder {
    live: u64,
    windows: Vec<Option<Impact>>,
}

impl CommonTermBuilder {
    fn new(windows: usize) -> Self {
        Self {
            live: 0,
            windows: vec![None; windows],
        }
    }

    fn add(&mut self, window: usize, impact: Impact) {
        self.live += 1;
        match self.windows.get_mut(window) {
            Some(Some(before)) => before.join(impact),
            Some(none) => *none = Some(impact),
            None => {}
        }
    }

    fn build(self) -> CommonTerm {
        let mut impacts = Vec::new();
        let mut places: HashMap<Impact, u16> = HashMap::new();
        let windows = self.windows.into_iter().map(|impact| {
            impact.map_or(0, |impact| {
                *places.entry(impact).or_insert_with(|| {
                    impacts.push(impact);
                    // `max_windows`, and so the number of impacts, is far below `u16::MAX`.
                    u16::try_from(impacts.len()).unwrap_or(u16::MAX)
                })
            })
        });
        let windows = windows.collect();
        CommonTerm {
            live: self.live,
            impacts,
            windows,
        }
    }
}

impl CommonTerm {
    /// Raises the bound of each window to the highest score of the word there.
    pub(crate) fn raise(&self, bounds: &mut [u64], score: impl Fn(Impact) -> u64) {
        let scores: Vec<u64> = std::iter::once(0)
            .chain(self.impacts.iter().map(|impact| score(*impact)))
            .collect();
        for (bound, place) in bounds.iter_mut().zip(&self.windows) {
            let most = scores.get(usize::from(*place)).copied();
            *bound = most.unwrap_or(u64::MAX).max(*bound);
        }
    }
}
