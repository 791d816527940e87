//! Prefetching of memory that is needed soon: the only `unsafe` code of this crate.
#![allow(unsafe_code)]

/// The bytes of a cache line on common processors. If lines are longer, some are fetched twice.
pub const CACHE_LINE: usize = 64;

/// Prefetches the cache line of an address, which may be invalid, and does not wait for it. It does nothing
/// on architectures without a prefetch instruction.
#[inline]
pub fn fetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the instruction changes only the contents of caches, and never faults; all x86_64
        // processors have it.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the instruction changes only the contents of caches, and never faults.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = address;
}
