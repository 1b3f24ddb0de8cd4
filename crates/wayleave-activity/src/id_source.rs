//! Generates ids of calls: random, and ascending in the order in which the calls begin.
//!
//! A UUID of version 7 has 74 bits after its timestamp. They are drawn at random once per
//! millisecond and incremented within it, so that the system is asked for random bytes a few times
//! a second and not at every call.

use std::sync::{Mutex, PoisonError};

use uuid::Uuid;

use crate::log::now_ms;

/// Number of bits after the timestamp of a UUID of version 7.
const TAIL_BITS: u32 = 74;
/// Number of random bytes read from the system at a time.
const POOL_BYTES: usize = 1024;

static SOURCE: Mutex<IdSource> = Mutex::new(IdSource::new());

/// Generates the id of a call that begins now.
pub(crate) fn next() -> Uuid {
    let mut source = SOURCE.lock().unwrap_or_else(PoisonError::into_inner);
    source.next(now_ms())
}

struct IdSource {
    /// The timestamp of the last id.
    ms: u64,
    /// The bits of the last id after its timestamp.
    tail: u128,
    pool: [u8; POOL_BYTES],
    /// Number of unused bytes in the pool.
    left: usize,
}

impl IdSource {
    const fn new() -> Self {
        Self {
            ms: 0,
            tail: 0,
            pool: [0; POOL_BYTES],
            left: 0,
        }
    }

    fn next(&mut self, now_ms: u64) -> Uuid {
        let is_later = now_ms > self.ms;
        if is_later {
            self.ms = now_ms;
            self.tail = self.draw();
        } else {
            // The clock did not advance, or was set back: keep the ids ascending.
            self.tail += 1;
            if self.tail >> TAIL_BITS != 0 {
                self.ms += 1;
                self.tail = self.draw();
            }
        }
        let (high, low) = (self.tail >> 62, self.tail & ((1 << 62) - 1));
        let bits = u128::from(self.ms & 0xffff_ffff_ffff) << 80 | 0x7_u128 << 76 | high << 64;
        Uuid::from_u128(bits | 0b10_u128 << 62 | low)
    }

    /// Draws random bits. The highest is zero, which leaves room to increment.
    #[expect(
        clippy::expect_used,
        reason = "without random bytes two processes would give calls the same id"
    )]
    fn draw(&mut self) -> u128 {
        const BYTES: usize = size_of::<u128>();
        if self.left < BYTES {
            getrandom::fill(&mut self.pool).expect("the system has random bytes");
            self.left = POOL_BYTES;
        }
        let (unused, _) = self.pool.split_at(self.left);
        let drawn = *unused.last_chunk::<BYTES>().expect("the pool was filled");
        self.left -= BYTES;
        u128::from_le_bytes(drawn) >> (128 - TAIL_BITS + 1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_are_of_version_7_and_ordered_whatever_the_clock_does() {
        let mut source = IdSource::new();
        let times = [5, 5, 5, 9, 9, 3, 3, 10, 1 << 40];
        let ids: Vec<Uuid> = times.iter().map(|ms| source.next(*ms)).collect();
        assert!(ids.is_sorted_by(|one, next| one < next), "{ids:?}");
        for id in &ids {
            assert_eq!(id.get_version_num(), 7);
            assert_eq!(id.get_variant(), uuid::Variant::RFC4122);
        }
        let (seconds, nanos) = ids[3].get_timestamp().unwrap().to_unix();
        assert_eq!((seconds, nanos), (0, 9_000_000));
        source.tail = (1 << TAIL_BITS) - 1;
        let (last, next) = (*ids.last().unwrap(), source.next(0));
        assert!(last < next);
        assert_eq!(next.get_version_num(), 7);
    }

    #[test]
    fn ids_of_different_sources_differ() {
        let (mut one, mut other) = (IdSource::new(), IdSource::new());
        let mut ids = BTreeSet::new();
        for ms in 1..5_000 {
            assert!(ids.insert(one.next(ms)) && ids.insert(other.next(ms)));
        }
    }
}
