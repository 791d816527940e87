//! Disassembles machine code.

use iced_x86::{
    Decoder, DecoderError, DecoderOptions, Formatter, IntelFormatter, SymbolResolver, SymbolResult,
};
use nyquist_object::elf::Architecture;
use nyquist_object::{RelativeAddress, Svma};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// The most code that is disassembled in one call.
pub(crate) const MAX_CODE: u32 = 16 << 20;

/// A piece of machine code as text, in Intel syntax.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disassembly {
    /// Where it begins.
    pub start: RelativeAddress,
    /// The number of bytes that it covers.
    pub size: u32,
    /// The instruction set, as the symbol server API spells it: `x86_64`, `i686`.
    pub architecture: &'static str,
    /// The instructions in order.
    pub instructions: Vec<Instruction>,
}

/// One instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// The distance in bytes from the start of the disassembly.
    pub offset: u32,
    /// The text, such as `push rbp`. Functions that are called or jumped to are named.
    pub text: String,
}

/// Why there is no disassembly.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DisassemblyError {
    /// The module's binary was not found, and debug files have no code.
    #[error("the binary was not found")]
    NoBinary,
    /// No code of the binary is at this address.
    #[error("no code at {0}")]
    NoCode(RelativeAddress),
    /// The instruction set is not supported.
    #[error("cannot disassemble {0:?}")]
    Architecture(Architecture),
    /// The bytes could not be read.
    #[error("cannot read the code")]
    Read(#[from] nyquist_object::ObjectError),
}

/// The names of the functions that a piece of code calls or jumps to.
struct BranchTargets(FxHashMap<u64, String>);

impl SymbolResolver for BranchTargets {
    fn symbol(
        &mut self,
        _: &iced_x86::Instruction,
        _: u32,
        _: Option<u32>,
        address: u64,
        _: u32,
    ) -> Option<SymbolResult<'_>> {
        self.0.get(&address).map(|name| SymbolResult::with_str(address, name))
    }
}

/// Disassembles `code`, which is at `address`. The last instruction is complete. One that is truncated at the
/// end of `code` is left out. `name` names the functions that the code calls or jumps to.
pub(crate) fn disassemble(
    architecture: Architecture,
    code: &[u8],
    start: RelativeAddress,
    address: Svma,
    mut name: impl FnMut(Svma) -> Option<String>,
) -> Result<Disassembly, DisassemblyError> {
    let (bits, architecture) = match architecture {
        Architecture::X86_64 => (64, "x86_64"),
        Architecture::X86 => (32, "i686"),
        other => return Err(DisassemblyError::Architecture(other)),
    };
    let decoded = decode(bits, code, address);
    let targets = decoded.iter().map(iced_x86::Instruction::near_branch_target).filter(|&target| target != 0);
    let named = targets.filter_map(|target| Some((target, name(Svma(target))?))).collect();
    let mut formatter = formatter(BranchTargets(named));
    let instructions = decoded.iter().map(|instruction| {
        let mut text = String::new();
        formatter.format(instruction, &mut text);
        Instruction { offset: instruction.ip().wrapping_sub(address.0) as u32, text }
    });
    let instructions = instructions.collect();
    let size = decoded.last().map_or(0, |last| last.next_ip().wrapping_sub(address.0) as u32);
    Ok(Disassembly { start, size, architecture, instructions })
}

/// Disassembles code that is in no module's file. Calls and jumps have addresses and no names.
///
/// # Errors
/// The instruction set is not supported.
pub fn disassemble_code(
    architecture: Architecture,
    code: &[u8],
    start: RelativeAddress,
) -> Result<Disassembly, DisassemblyError> {
    disassemble(architecture, code, start, Svma(start.0.into()), |_| None)
}

/// The range of the instruction around an offset of code that begins with an instruction. `None` if what is
/// before the offset is not all code, or the instruction set is not known.
pub fn instruction_around(architecture: Architecture, code: &[u8], offset: u32) -> Option<Range<u32>> {
    const ARM_INSTRUCTION: u32 = 4;
    let bits = match architecture {
        Architecture::X86_64 => 64,
        Architecture::X86 => 32,
        Architecture::Aarch64 => {
            let start = offset - offset % ARM_INSTRUCTION;
            return Some(start..start.checked_add(ARM_INSTRUCTION)?);
        }
        Architecture::Other(_) => return None,
    };
    let mut decoder = Decoder::new(bits, code, DecoderOptions::NONE);
    let mut instruction = iced_x86::Instruction::default();
    while decoder.can_decode() {
        let start = decoder.position() as u32;
        decoder.decode_out(&mut instruction);
        if instruction.is_invalid() {
            return None;
        }
        let end = decoder.position() as u32;
        if offset < end {
            return Some(start..end);
        }
    }
    None
}

fn decode(bits: u32, code: &[u8], address: Svma) -> Vec<iced_x86::Instruction> {
    let mut decoder = Decoder::with_ip(bits, code, address.0, DecoderOptions::NONE);
    let mut decoded = Vec::new();
    while decoder.can_decode() {
        let start = decoder.position();
        let mut instruction = decoder.decode();
        if decoder.last_error() == DecoderError::NoMoreBytes {
            break;
        }
        if instruction.is_invalid() {
            // Valid code may begin again at the next byte.
            let address = instruction.ip();
            instruction.set_len(1);
            instruction.set_ip(address);
            decoder.set_ip(address.wrapping_add(1));
            if decoder.set_position(start + 1).is_err() {
                break;
            }
        }
        decoded.push(instruction);
    }
    decoded
}

fn formatter(targets: BranchTargets) -> IntelFormatter {
    let mut formatter = IntelFormatter::with_options(Some(Box::new(targets)), None);
    let options = formatter.options_mut();
    options.set_hex_prefix("0x");
    options.set_hex_suffix("");
    options.set_uppercase_hex(false);
    options.set_space_after_operand_separator(true);
    options.set_branch_leading_zeros(false);
    options.set_rip_relative_addresses(true);
    formatter
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(code: &[u8], expected: &[(u32, &str)]) {
        let name = |target: Svma| (target == Svma(0x1100)).then(|| "callee".to_owned());
        let start = RelativeAddress(0);
        let found = disassemble(Architecture::X86_64, code, start, Svma(0x1000), name).unwrap();
        let found: Vec<_> = found.instructions.iter().map(|i| (i.offset, i.text.as_str())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn instructions_are_in_intel_syntax() {
        check(
            &[0x55, 0x48, 0x89, 0xe5, 0x48, 0x8b, 0x44, 0x24, 0x08, 0xe8, 0xf2, 0, 0, 0, 0xc3],
            &[(0, "push rbp"), (1, "mov rbp, rsp"), (4, "mov rax, [rsp+8]"), (9, "call callee"), (14, "ret")],
        );
    }

    #[test]
    fn instructions_are_found_around_an_offset() {
        let check = |architecture, code: &[u8], offset, expected| {
            assert_eq!(instruction_around(architecture, code, offset), expected, "{code:x?} {offset}");
        };
        // push rbp; mov rbp, rsp; ret
        let code = [0x55, 0x48, 0x89, 0xe5, 0xc3];
        for (offset, expected) in [(0, 0..1), (1, 1..4), (2, 1..4), (3, 1..4), (4, 4..5)] {
            check(Architecture::X86_64, &code, offset, Some(expected));
        }
        check(Architecture::X86_64, &code, 5, None);
        check(Architecture::X86_64, &[0x06, 0x90], 1, None);
        check(Architecture::X86_64, &code[..3], 2, None);
        check(Architecture::Aarch64, &[], 6, Some(4..8));
    }

    #[test]
    fn a_cut_instruction_is_left_out_a_bad_one_shown() {
        check(&[0x90, 0xe8, 0], &[(0, "nop")]);
        check(&[0x06, 0x90], &[(0, "(bad)"), (1, "nop")]);
        check(&[], &[]);
    }
}
