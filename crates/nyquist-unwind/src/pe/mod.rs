//! The unwind information of PE images: a table of functions, each with a description of its prologue.
//!
//! Formats and rules are those of Microsoft's "x64 exception handling" and "ARM64 exception handling", and
//! comments name the section that they use. Each architecture has its own module. Both share only the
//! location of the table.

mod aarch64;
mod image;
mod x86_64;

use crate::architecture::{Architecture, FullRegisters};
use crate::rule::Rule;
use crate::table::Table;
use crate::{Damage, Reason, StackMemory};
use nyquist_object::pe::Directory;
use nyquist_object::{ByteSource, Pe};
use std::ops::Range;

/// The functions of an image, kept for steps that need all registers.
#[derive(Debug)]
pub(crate) enum Functions {
    X86_64(x86_64::Functions),
    Aarch64(aarch64::Functions),
}

/// How to undo the frame of one function at one place.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Undo<'a> {
    X86_64(x86_64::Undo<'a>),
    Aarch64(aarch64::Undo<'a>),
}

impl Functions {
    /// How to undo the frame at an address whose rule is `rule`. `None` if no described function is there.
    pub(crate) fn undo(&self, address: u32, rule: Rule) -> Option<Undo<'_>> {
        match self {
            Self::X86_64(functions) => functions.undo(address, rule).map(Undo::X86_64),
            Self::Aarch64(functions) => functions.undo(address).map(Undo::Aarch64),
        }
    }

    /// How many bytes of memory this takes.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::X86_64(functions) => functions.size(),
            Self::Aarch64(functions) => functions.size(),
        }
    }
}

impl Undo<'_> {
    /// The caller's registers, and whether it was interrupted.
    pub(crate) fn step<A: Architecture>(
        self,
        registers: &FullRegisters<A>,
        memory: &impl StackMemory,
    ) -> Result<(FullRegisters<A>, bool), Reason> {
        match self {
            Self::X86_64(undo) => undo.step(registers, memory),
            Self::Aarch64(undo) => undo.step(registers, memory),
        }
    }
}

/// The compiled table of functions of an image.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) table: Table,
    pub(crate) functions: Functions,
    /// The described ranges by address.
    pub(crate) covered: Vec<Range<u32>>,
}

/// Compiles the table of functions of an image whose code is at the addresses `code`. Images of other
/// architectures are rejected before.
pub(crate) fn compile<S: ByteSource>(pe: &Pe<S>, code: &[Range<u32>], damage: &mut Damage) -> Compiled {
    match pe.architecture() {
        nyquist_object::Architecture::Aarch64 => aarch64::compile(pe, code, damage),
        _ => x86_64::compile(pe, code, damage),
    }
}

/// The words of the table of functions.
fn table_of_functions<S: ByteSource>(pe: &Pe<S>, damage: &mut Damage) -> Vec<u32> {
    let Some((address, size)) = pe.directory(Directory::Exceptions) else { return Vec::new() };
    let room = pe.file_range(address).map_or(0, |(_, room)| room);
    let bytes = pe.read_at(address, size.min(room)).unwrap_or_else(|error| {
        damage.add(|| format!("the table of functions is unreadable: {error}"));
        Vec::new()
    });
    bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
}

/// The size of the code from its first to its last byte, limited to the size for which memory is reserved.
fn extent(code: &[Range<u32>]) -> usize {
    let extent =
        code.first().zip(code.last()).map_or(0, |(first, last)| last.end.saturating_sub(first.start));
    extent.min(1 << 28) as usize
}
