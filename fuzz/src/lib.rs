//! Every fuzz target, and what several of them need: ELF files made of given sections, made-up Go programs, and the address space of
//! one of them.

#![forbid(unsafe_code)]

#[path = "../../crates/nyquist-formats/tests/made_files/art_trace.rs"]
pub mod art_trace;
pub mod elf_image;
#[path = "../../crates/nyquist-symbols/tests/go_image/mod.rs"]
pub mod go_image;
#[path = "../../crates/nyquist-formats/tests/jfr_recording/mod.rs"]
pub mod jfr_recording;
pub mod loopback;
pub mod macho_image;
#[path = "../../crates/nyquist-etw/tests/made_trace/mod.rs"]
pub mod made_trace;
#[path = "../../xtask/src/mutation.rs"]
pub mod mutation;
#[path = "../../crates/nyquist-formats/tests/made_files/nettrace.rs"]
pub mod nettrace;
pub mod sample_profile;
#[path = "../../crates/nyquist-symbols/tests/shared_cache_image/mod.rs"]
pub mod shared_cache_image;
#[path = "../../crates/nyquist-formats/tests/made_files/sysprof.rs"]
pub mod sysprof;
pub mod targets;
pub mod walk;
