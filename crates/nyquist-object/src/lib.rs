//! Basic types of the other crates: the four kinds of address, and the identity of a module. It also translates
//! mapped addresses to module-relative ones, maps ranges of addresses to values ([`RangeMap`]), and gives bounded
//! access to the sections of object files.
//!
//! This crate does not trust its input. A length field is compared with the number of existing bytes
//! before it is used. A file is read through [`ByteSource`], so a file that shrinks while it is read
//! causes an error and not a signal.

#![forbid(unsafe_code)]

mod address;
mod architecture;
mod archive;
mod compression;
mod cursor;
mod debug_link;
mod dynamic;
pub mod elf;
mod error;
mod fields;
pub mod go;
mod id;
pub mod macho;
mod mapping;
pub mod pe;
mod placed;
mod range_map;
mod source;
mod text_hash;

pub use address::{Avma, FileOffset, RelativeAddress, Svma};
pub use architecture::Architecture;
pub use archive::{Archive, ArchiveMember};
pub use cursor::Cursor;
pub use debug_link::{DebugAltLink, DebugLink, crc32};
pub use dynamic::DynamicSection;
pub use elf::Elf;
pub use error::ObjectError;
pub use id::{BuildId, DebugId, FileIdentity, MachUuid, ModuleId, PeCodeId, PeId};
pub use macho::MachO;
pub use mapping::MappedModule;
pub use pe::Pe;
pub use placed::placed;
pub use range_map::{Change, MappedRange, RangeMap};
pub use source::{ByteSource, DerivedSource, FileSource};

/// The example of the page that the registry shows.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
