//! Counts functions by their first instructions, for files without unwind information.

use super::{FramePointers, MAX_FUNCTIONS, is_function};
use iced_x86::{Decoder, DecoderOptions, Mnemonic, OpKind};
use nyquist_object::{ByteSource, Elf, Svma};

/// The bytes of a function that are searched for the instructions that set up its frame.
const PROLOGUE: usize = 64;

/// The largest symbol table that is read.
const MAX_SYMBOLS: u64 = 256 << 20;

/// The encoding of symbols in a 64-bit file (System V gABI, "Symbol Table").
const SYMBOL: usize = 24;
const STT_FUNC: u8 = 2;

impl FramePointers {
    /// Counts by the first instructions of the functions in the symbol table.
    pub(crate) fn by_instructions<S: ByteSource>(elf: &Elf<S>) -> Option<Self> {
        let starts = function_starts(elf);
        let (step, mut found) = (starts.len().div_ceil(MAX_FUNCTIONS).max(1), Self::default());
        for start in starts.into_iter().step_by(step).filter(|start| is_function(elf, *start)) {
            let code = elf
                .file_range(start)
                .and_then(|(offset, room)| elf.source().read_range(offset.0, room.min(PROLOGUE as u64)).ok());
            found.count(keeps_by_instructions(&code.unwrap_or_default()));
        }
        found.of_any()
    }
}

/// Whether the instructions before a function's first jump, call or return set up a frame pointer. `None` if
/// they make no frame.
fn keeps_by_instructions(code: &[u8]) -> Option<bool> {
    use iced_x86::Register::{RBP, RSP};
    let (mut is_saved, mut has_frame) = (false, false);
    for instruction in &mut Decoder::new(64, code, DecoderOptions::NONE) {
        let registers = (instruction.op0_register(), instruction.op1_register());
        match (instruction.mnemonic(), registers) {
            (Mnemonic::Mov, (RBP, RSP)) if is_saved => return Some(true),
            (Mnemonic::Push, (register, _)) => {
                is_saved |= register == RBP;
                has_frame = true;
            }
            (Mnemonic::Sub, (RSP, _)) => has_frame = true,
            (Mnemonic::Jmp | Mnemonic::Call | Mnemonic::Ret | Mnemonic::INVALID, _) => break,
            // A conditional jump.
            _ if instruction.op0_kind() == OpKind::NearBranch64 => break,
            _ => {}
        }
    }
    has_frame.then_some(false)
}

/// The starts of the functions in the symbol table.
fn function_starts<S: ByteSource>(elf: &Elf<S>) -> Vec<Svma> {
    let table = elf.section(".symtab").filter(|table| table.size <= MAX_SYMBOLS && elf.is_64_bit());
    let bytes = table.and_then(|table| elf.data(table).ok()).unwrap_or_default();
    let start = |symbol: &[u8]| {
        let is_defined = symbol[6..8] != [0, 0];
        let value = symbol[8..16].try_into().ok().map(u64::from_le_bytes)?;
        (symbol[4] & 0xf == STT_FUNC && is_defined).then_some(Svma(value))
    };
    let mut starts: Vec<Svma> = bytes.chunks_exact(SYMBOL).filter_map(start).collect();
    starts.sort_unstable();
    starts.dedup();
    starts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prologue_says_if_a_frame_pointer_is_kept() {
        let check = |code: &[u8], expected| assert_eq!(keeps_by_instructions(code), expected, "{code:x?}");
        // push rbp; mov rbp, rsp
        check(&[0x55, 0x48, 0x89, 0xe5], Some(true));
        // endbr64; push rbp; xor eax, eax; mov rbp, rsp in its other encoding
        check(&[0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x31, 0xc0, 0x48, 0x8b, 0xec], Some(true));
        // push rbp; mov rbp, rdi: a register like any other
        check(&[0x55, 0x48, 0x89, 0xfd, 0xc3], Some(false));
        // sub rsp, 8
        check(&[0x48, 0x83, 0xec, 0x08], Some(false));
        // xor eax, eax; ret; and then the next function
        check(&[0x31, 0xc0, 0xc3, 0x55, 0x48, 0x89, 0xe5], None);
        check(&[0x55, 0x48], Some(false));
        check(&[], None);
    }
}
