//! Repeatable randomness: the same seed gives the same choices on every machine.

/// A seeded pseudo-random generator.
#[derive(Debug, Clone)]
pub struct SeededRng {
    state: u64,
}

impl SeededRng {
    /// A generator with this seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 if `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.next_u64() % end).unwrap_or(0)
    }

    /// True with a probability of `chance` percent.
    pub fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    /// One of the items; `None` if there are none.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(self.below(from.len()))
    }

    /// One of the items, of which there must be at least one.
    #[expect(clippy::expect_used, reason = "tests choose from lists they wrote")]
    pub fn one_of<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        self.pick(from).expect("something to choose from")
    }

    /// One of the words.
    pub fn word(&mut self, from: &[&'static str]) -> &'static str {
        self.one_of::<&'static str>(from)
    }

    /// Some of the items, at most `most`, each once.
    pub fn some<T: Clone>(&mut self, from: &[T], most: usize) -> Vec<T> {
        let mut left = from.to_vec();
        let mut taken = Vec::new();
        for _ in 0..most.min(left.len()) {
            taken.push(left.swap_remove(self.below(left.len())));
        }
        taken
    }
}
