//! How a walk reads the stack.

use nyquist_object::Avma;

/// The stack memory of the thread that is walked.
///
/// Reading must have no effect on the thread. An address that cannot be read is `None`, and the walk ends
/// there with the frames that it has.
pub trait StackMemory {
    /// The eight bytes at `address` as a little-endian number. The address need not be aligned.
    fn read_u64(&self, address: Avma) -> Option<u64>;

    /// Copies instructions from `address` on, and returns the number of bytes. The default implementation
    /// returns none.
    ///
    /// Only called if an unknown frame pointer is needed
    /// ([`Registers::X86_64Partial`](crate::Registers::X86_64Partial)), and never more than a few hundred
    /// bytes.
    fn read_code(&self, address: Avma, out: &mut [u8]) -> usize {
        let _ = (address, out);
        0
    }
}

/// A copy of the innermost part of a stack.
#[derive(Clone, Copy, Debug)]
pub struct StackCopy<'a> {
    /// Where the first byte was.
    pub start: Avma,
    /// The bytes from there upwards.
    pub bytes: &'a [u8],
}

impl StackMemory for StackCopy<'_> {
    #[inline]
    fn read_u64(&self, address: Avma) -> Option<u64> {
        // The number of remaining bytes is compared, because `offset + 8 <= len` would wrap for an address
        // that is up to eight bytes below the copy.
        let offset = usize::try_from(address.0.wrapping_sub(self.start.0)).ok()?;
        let bytes = self.bytes.get(offset..)?.first_chunk::<8>()?;
        Some(u64::from_le_bytes(*bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_only_whole_words_of_the_copy() {
        let bytes: Vec<u8> = (0..16).collect();
        let stack = StackCopy { start: Avma(0x1000), bytes: &bytes };
        let check = |address, expected| assert_eq!(stack.read_u64(Avma(address)), expected, "{address:#x}");
        check(0x1000, Some(0x0706_0504_0302_0100));
        check(0x1008, Some(0x0f0e_0d0c_0b0a_0908));
        check(0x1003, Some(0x0a09_0807_0605_0403));
        check(0x1009, None);
        check(0x0fff, None);
        check(0x0ff8, None);
        check(0x1010, None);
        check(0, None);
        check(u64::MAX, None);
    }
}
