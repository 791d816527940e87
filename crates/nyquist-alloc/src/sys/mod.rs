//! The only `unsafe` code of this crate: it runs inside the allocator of any program, where nothing may allocate,
//! lock what others hold, or fail.
#![allow(unsafe_code, reason = "an allocator is called with addresses, and shares memory with the recorder")]
#![allow(clippy::inline_always, reason = "this runs at each allocation")]
#![allow(clippy::cast_ptr_alignment, reason = "what is cast was mapped, and is aligned to pages")]

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod linux;
#[cfg(not(nyquist_preloaded))]
mod wrapper;

#[cfg(not(nyquist_preloaded))]
pub use wrapper::Recorded;
