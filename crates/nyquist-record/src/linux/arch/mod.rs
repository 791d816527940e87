//! What is particular to the processor's architecture. Each one is a folder of this room with the same files: `perf.rs` says what
//! is asked of perf, `registers.rs` reads those of stopped threads, `waiting.rs` those of threads that wait, and `calls.rs` tells
//! system calls apart.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub(crate) use aarch64::{calls, perf, registers, waiting};
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::{calls, perf, registers, waiting};

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("nyquist records on 64-bit x86 and 64-bit ARM");
