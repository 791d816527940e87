//! The unwind information of PE images: a table of functions, each with a description of its prologue.
//!
//! Formats and rules are those of Microsoft's "x64 exception handling" and "ARM64 exception handling", and
//! comments name the section that they use. Each architecture has its own module. Both share only the
//! location of the table.

mod aarch64;
mod compiled_function_table;
mod image;
mod x86_64;

use crate::architecture::{Architecture, FullRegisters};
use crate::rule::Rule;
use crate::{Damage, Reason, StackMemory};
use nyquist_object::{ByteSource, Pe};
use std::ops::Range;

pub(crate) use compiled_function_table::CompiledFunctionTable;

/// The functions of an image, kept for steps that need all registers.
#[derive(Debug)]
pub(crate) enum PeFunctions {
    X86_64(x86_64::X64Functions),
    Aarch64(aarch64::Arm64Functions),
}

/// How to undo the frame of one function at one place.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FrameUndo<'a> {
    X86_64(x86_64::X64FrameUndo<'a>),
    Aarch64(aarch64::Arm64FrameUndo<'a>),
}

impl PeFunctions {
    /// How to undo the frame at an address whose rule is `rule`. `None` if no described function is there.
    pub(crate) fn undo(&self, address: u32, rule: Rule) -> Option<FrameUndo<'_>> {
        match self {
            Self::X86_64(functions) => functions.undo(address, rule).map(FrameUndo::X86_64),
            Self::Aarch64(functions) => functions.undo(address).map(FrameUndo::Aarch64),
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

impl FrameUndo<'_> {
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

/// Compiles the table of functions of an image whose code is at the addresses `code`. Images of other
/// architectures are rejected before.
pub(crate) fn compile<S: ByteSource>(
    pe: &Pe<S>,
    code: &[Range<u32>],
    damage: &mut Damage,
) -> CompiledFunctionTable<PeFunctions> {
    match pe.architecture() {
        nyquist_object::Architecture::Aarch64 => aarch64::compile(pe, code, damage).map(PeFunctions::Aarch64),
        _ => x86_64::compile(pe, code, damage).map(PeFunctions::X86_64),
    }
}
