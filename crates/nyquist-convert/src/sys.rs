//! Telling the processor which memory is needed soon: the only `unsafe` code of this crate.
#![allow(unsafe_code)]

/// Has the processor fetch the cache line of a byte, and does not wait for it. A hint, that not every architecture knows.
#[inline]
pub(crate) fn fetch(byte: &u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the instruction changes nothing but what caches hold, and never faults; all x86_64 processors have it.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(byte).cast()) };
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the instruction changes nothing but what caches hold, and never faults.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{}]", in(reg) std::ptr::from_ref(byte), options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = byte;
}
