//! The code that depends on the CPU architecture. Each architecture is a folder with the same files.
//! `perf.rs` lists the registers for perf, `registers.rs` reads the registers of stopped threads,
//! `waiting.rs` those of waiting threads, and `calls.rs` classifies system calls, which `calls.txt` names.

#[cfg(target_arch = "aarch64")]
mod aarch64;
pub(crate) mod call_names;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub(crate) use aarch64::{calls, perf, registers, waiting};
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::{calls, perf, registers, waiting};

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("nyquist records on 64-bit x86 and 64-bit ARM");
