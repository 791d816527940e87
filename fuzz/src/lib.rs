//! Every fuzz target, and what several of them need: ELF files made of given sections, and the address space of one of
//! them.

#![forbid(unsafe_code)]

pub mod elf_image;
pub mod loopback;
pub mod macho_image;
pub mod sample_profile;
pub mod targets;
pub mod walk;
