//! SSH's binary encoding: a string is its length in four bytes, then its bytes.

/// Reads values from the front of a byte slice; `None` if it ends too early.
#[derive(Debug, Clone, Copy)]
pub(super) struct WireReader<'a>(&'a [u8]);

impl<'a> WireReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    pub(super) fn number(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    pub(super) fn string(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        self.take(length)
    }

    /// Reads a positive multi-precision integer, without leading zeros.
    pub(super) fn positive(&mut self) -> Option<&'a [u8]> {
        let bytes = self.string()?;
        if bytes.first()? & 0x80 != 0 {
            return None;
        }
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        bytes.get(zeros..).filter(|it| !it.is_empty())
    }

    /// Whether nothing is left.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Appends a string. None of ours exceeds the four-byte length.
#[expect(
    clippy::expect_used,
    reason = "keys, signatures and signed messages are far below four gigabytes"
)]
pub(super) fn put_string(out: &mut Vec<u8>, bytes: &[u8]) {
    let length = u32::try_from(bytes.len()).expect("a string is below four gigabytes");
    out.extend(length.to_be_bytes());
    out.extend(bytes);
}
