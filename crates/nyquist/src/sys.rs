//! The memory allocator of the C library.
#![allow(unsafe_code)]

/// Makes each large block of memory a mapping of its own, always: such blocks grow without being copied, and go back to the
/// system when they are freed. Left alone, glibc puts them onto its heaps as soon as some have been freed (mallopt(3),
/// `M_MMAP_THRESHOLD`), and a conversion keeps a quarter more memory than it uses.
pub(crate) fn map_large_blocks() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        /// In bytes.
        const LARGE: libc::c_int = 1 << 20;
        // SAFETY: mallopt only stores a number, under the allocator's own lock. Where it refuses, nothing has changed.
        unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE) };
    }
}
