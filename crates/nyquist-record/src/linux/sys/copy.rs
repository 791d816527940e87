//! Copying much memory that nobody looks at soon: records out of rings.

/// Copies `len` bytes, as [`std::ptr::copy_nonoverlapping`] does, but many of them past the caches.
///
/// The processor then does not read what was in the memory that is written to. Copies of a compiler's stacks take seven tenths of
/// the time that they take by glibc's `memcpy`, which is `rep movsb` on an AMD EPYC.
///
/// # Safety
///
/// As of [`std::ptr::copy_nonoverlapping`]: the bytes at `from` can be read, those at `to` can be written, nobody else
/// writes to either, and they do not overlap.
#[inline]
pub(super) unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
    #[cfg(target_arch = "x86_64")]
    if len >= x86_64::LARGE {
        // SAFETY: as the caller promises.
        unsafe { x86_64::copy_past_caches(from, to, len) };
        return;
    }
    // SAFETY: as the caller promises.
    unsafe { std::ptr::copy_nonoverlapping(from, to, len) };
}

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};

    use nyquist_convert::sys::{CACHE_LINE, fetch};

    /// From so many bytes on a copy is worth the instructions at its ends.
    pub(super) const LARGE: usize = 1024;

    /// So many bytes before they are copied, the processor is told to fetch them: by itself it stops at the end of each page.
    const AHEAD: usize = 1024;

    /// Copies bytes past the caches.
    ///
    /// # Safety
    ///
    /// As of [`copy`](super::copy).
    #[expect(
        clippy::cast_ptr_alignment,
        reason = "it is read from any address, and written to aligned ones alone"
    )]
    pub(super) unsafe fn copy_past_caches(from: *const u8, to: *mut u8, len: usize) {
        // The first line that is written as a whole begins within the first bytes.
        let mut at = to.align_offset(CACHE_LINE).min(len);
        // SAFETY: `at` is at most `len`.
        unsafe { std::ptr::copy_nonoverlapping(from, to, at) };
        while len - at >= CACHE_LINE {
            fetch(from.wrapping_add(at + AHEAD));
            // SAFETY: the line at `at` is within the `len` bytes of both, and `to + at` is aligned to lines. SSE2 is part of x86_64.
            unsafe {
                let (from, to) = (from.add(at).cast::<__m128i>(), to.add(at).cast::<__m128i>());
                let line = [0, 1, 2, 3].map(|index| _mm_loadu_si128(from.add(index)));
                for (index, value) in line.into_iter().enumerate() {
                    _mm_stream_si128(to.add(index), value);
                }
            }
            at += CACHE_LINE;
        }
        // SAFETY: SSE is part of x86_64, and `at` is at most `len`.
        unsafe {
            // Others see such writes in no order; from here on they see them before all that follows.
            _mm_sfence();
            std::ptr::copy_nonoverlapping(from.add(at), to.add(at), len - at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_are_copied_and_no_others_written() {
        let from: Vec<u8> = (0..5000_u32).map(|byte| (byte % 251) as u8).collect();
        let lens = (0..4).chain(60..70).chain(1022..1154).chain([4096, 4097]);
        for len in lens {
            for (shift, start) in [(0, 0), (1, 8), (7, 3), (24, 40), (63, 63)] {
                let mut to = vec![0xff; 64 + len + 64];
                let place = to[shift..].as_mut_ptr();
                // SAFETY: both have so many bytes from there on, and are this test's alone.
                unsafe { copy(from[start..].as_ptr(), place, len) };
                let expected =
                    [&vec![0xff; shift][..], &from[start..start + len], &vec![0xff; 128 - shift]].concat();
                assert_eq!(to, expected, "{len} bytes from {start} to {shift}");
            }
        }
    }
}
