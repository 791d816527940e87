//! Decodes the lengths of instructions.
//!
//! The opcode maps are those of Intel's Software Developer's Manual, volume 2, appendix A.

/// The parts of an instruction that are needed to find its effect on the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DecodedInstruction {
    /// Its length in bytes.
    pub(super) len: usize,
    /// Its opcode map.
    pub(super) map: OpcodeMap,
    /// Its opcode.
    pub(super) opcode: u8,
    /// Its REX prefix, or 0.
    pub(super) rex: u8,
    /// Its ModRM byte, if it has one.
    pub(super) modrm: Option<u8>,
    /// The immediate operand or the relative address, sign-extended. 0 if it has neither.
    pub(super) immediate: i64,
}

/// An opcode map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpcodeMap {
    /// One byte.
    One,
    /// 0f and a byte.
    Two,
    /// All other maps, and all VEX and EVEX instructions. None of them changes the stack pointer.
    Other,
}

/// The size of an immediate operand.
#[derive(Clone, Copy)]
enum ImmediateSize {
    None,
    Byte,
    /// Four bytes, or two under the operand size prefix.
    Long,
    /// This many bytes, independent of prefixes.
    Bytes(usize),
}

/// The maximum length of an instruction.
const MAX_LEN: usize = 15;

/// The prefixes of an instruction that change its length or operands.
struct Prefixes {
    /// Whether it has the operand size prefix.
    is_short: bool,
    /// Its REX prefix, or 0.
    rex: u8,
}

/// An opcode, and what follows it.
struct Operation {
    map: OpcodeMap,
    opcode: u8,
    has_modrm: bool,
    immediate: ImmediateSize,
}

/// Decodes the instruction at the start of `code`. `None` if it is not valid in 64-bit mode, is truncated, or
/// is one of the few that programs do not use.
pub(super) fn decode(code: &[u8]) -> Option<DecodedInstruction> {
    let mut at = 0;
    let (prefixes, first) = skip_prefixes(code, &mut at)?;
    let operation = read_opcode(code, &mut at, first, prefixes.rex)?;
    with_operands(code, at, &prefixes, &operation)
}

/// The byte at an offset, which advances.
#[inline]
fn next(code: &[u8], at: &mut usize) -> Option<u8> {
    let byte = code.get(*at).copied();
    *at += 1;
    byte
}

/// Reads the prefixes, and the byte after them.
#[inline]
fn skip_prefixes(code: &[u8], at: &mut usize) -> Option<(Prefixes, u8)> {
    let mut prefixes = Prefixes { is_short: false, rex: 0 };
    let mut byte = next(code, at)?;
    while matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3) {
        // In 64-bit mode, the address size prefix only changes the length of `mov` to and from an absolute
        // address. Compilers do not use it with the prefix.
        prefixes.is_short |= byte == 0x66;
        byte = next(code, at)?;
    }
    if byte & 0xf0 == 0x40 {
        prefixes.rex = byte;
        byte = next(code, at)?;
    }
    Some((prefixes, byte))
}

/// Reads the opcode that begins with the byte `first`, which is before `at`.
#[inline]
fn read_opcode(code: &[u8], at: &mut usize, first: u8, rex: u8) -> Option<Operation> {
    let (map, opcode, (has_modrm, immediate)) = match first {
        0x0f => match next(code, at)? {
            0x38 => (OpcodeMap::Other, next(code, at)?, (true, ImmediateSize::None)),
            0x3a => (OpcodeMap::Other, next(code, at)?, (true, ImmediateSize::Byte)),
            opcode => (OpcodeMap::Two, opcode, two_byte(opcode)?),
        },
        0xc4 | 0xc5 | 0x62 => {
            let second = next(code, at)?;
            let (table, other_bytes) = match first {
                0xc5 => (1, 0),
                0xc4 => (second & 7, 1),
                _ => (second & 7, 2),
            };
            *at += other_bytes;
            let opcode = next(code, at)?;
            (OpcodeMap::Other, opcode, vector(table, opcode)?)
        }
        opcode => (OpcodeMap::One, opcode, one_byte(opcode, rex, code.get(*at).copied())?),
    };
    Some(Operation { map, opcode, has_modrm, immediate })
}

/// The instruction with the operands at `at`, after its opcode.
#[inline]
fn with_operands(
    code: &[u8],
    mut at: usize,
    prefixes: &Prefixes,
    operation: &Operation,
) -> Option<DecodedInstruction> {
    let modrm = if operation.has_modrm { Some(next(code, &mut at)?) } else { None };
    if let Some(modrm) = modrm {
        at += operand_len(modrm, code.get(at).copied());
    }
    let size = match operation.immediate {
        ImmediateSize::None => 0,
        ImmediateSize::Byte => 1,
        ImmediateSize::Long if prefixes.is_short => 2,
        ImmediateSize::Long => 4,
        ImmediateSize::Bytes(size) => size,
    };
    let immediate = number(code.get(at..at + size)?);
    let len = at + size;
    let (map, opcode, rex) = (operation.map, operation.opcode, prefixes.rex);
    (len <= MAX_LEN).then_some(DecodedInstruction { len, map, opcode, rex, modrm, immediate })
}

/// A little-endian number, sign-extended.
fn number(bytes: &[u8]) -> i64 {
    let value = bytes.iter().rev().fold(0_u64, |value, &byte| value << 8 | u64::from(byte));
    let unused = 64_u32.saturating_sub(8 * bytes.len() as u32);
    if bytes.is_empty() { 0 } else { (value << unused) as i64 >> unused }
}

/// How many bytes follow a ModRM byte, given the next byte.
pub(super) fn operand_len(modrm: u8, next: Option<u8>) -> usize {
    let has_sib = modrm >> 6 != 3 && modrm & 7 == 4;
    let base_is_none = has_sib && next.is_some_and(|sib| sib & 7 == 5);
    let displacement = match modrm >> 6 {
        0 if modrm & 7 == 5 || base_is_none => 4,
        1 => 1,
        2 => 4,
        _ => 0,
    };
    usize::from(has_sib) + displacement
}

/// The one-byte map: whether the instruction has a ModRM byte, and its immediate operand.
fn one_byte(opcode: u8, rex: u8, next: Option<u8>) -> Option<(bool, ImmediateSize)> {
    let wide = rex & 8 != 0;
    Some(match opcode {
        0x00..=0x3f => match opcode & 7 {
            0..=3 => (true, ImmediateSize::None),
            4 => (false, ImmediateSize::Byte),
            5 => (false, ImmediateSize::Long),
            _ => return None,
        },
        0x50..=0x5f
        | 0x6c..=0x6f
        | 0x90..=0x99
        | 0x9b..=0x9f
        | 0xa4..=0xa7
        | 0xaa..=0xaf
        | 0xc3
        | 0xc9
        | 0xcc
        | 0xec..=0xf1
        | 0xf4
        | 0xf5
        | 0xf8..=0xfd => (false, ImmediateSize::None),
        0x63 | 0x84..=0x8f | 0xd0..=0xd3 | 0xd8..=0xdf | 0xfe | 0xff => (true, ImmediateSize::None),
        0x68 | 0xa9 => (false, ImmediateSize::Long),
        0x69 | 0x81 | 0xc7 => (true, ImmediateSize::Long),
        0x6a | 0x70..=0x7f | 0xa8 | 0xb0..=0xb7 | 0xcd | 0xe0..=0xe7 | 0xeb => (false, ImmediateSize::Byte),
        0x6b | 0x80 | 0x83 | 0xc0 | 0xc1 | 0xc6 => (true, ImmediateSize::Byte),
        0xa0..=0xa3 => (false, ImmediateSize::Bytes(8)),
        0xb8..=0xbf => (false, if wide { ImmediateSize::Bytes(8) } else { ImmediateSize::Long }),
        0xc2 => (false, ImmediateSize::Bytes(2)),
        0xc8 => (false, ImmediateSize::Bytes(3)),
        0xe8 | 0xe9 => (false, ImmediateSize::Bytes(4)),
        // `test` is the only instruction of these two groups with an immediate operand.
        0xf6 => (true, if next? & 0x30 == 0 { ImmediateSize::Byte } else { ImmediateSize::None }),
        0xf7 => (true, if next? & 0x30 == 0 { ImmediateSize::Long } else { ImmediateSize::None }),
        _ => return None,
    })
}

/// The map after 0f.
fn two_byte(opcode: u8) -> Option<(bool, ImmediateSize)> {
    Some(match opcode {
        0x05..=0x09 | 0x0b | 0x30..=0x35 | 0x77 | 0xa0..=0xa2 | 0xa8..=0xaa | 0xc8..=0xcf => {
            (false, ImmediateSize::None)
        }
        0x80..=0x8f => (false, ImmediateSize::Bytes(4)),
        0x70..=0x73 | 0xa4 | 0xac | 0xba | 0xc2 | 0xc4..=0xc6 => (true, ImmediateSize::Byte),
        0x00..=0x03 | 0x0d | 0x10..=0x2f | 0x40..=0xff => (true, ImmediateSize::None),
        _ => return None,
    })
}

/// VEX and EVEX instructions, by the number of their map.
fn vector(table: u8, opcode: u8) -> Option<(bool, ImmediateSize)> {
    match table {
        1 if opcode == 0x77 => Some((false, ImmediateSize::None)),
        1 => two_byte(opcode),
        2 | 5 | 6 => Some((true, ImmediateSize::None)),
        3 => Some((true, ImmediateSize::Byte)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_those_of_the_disassembly() {
        let check = |code: &[u8]| {
            let padded = [code, &[0x90; 16]].concat();
            assert_eq!(decode(&padded).map(|instruction| instruction.len), Some(code.len()), "{code:x?}");
            assert!(
                (0..code.len()).all(|len| decode(&code[..len]).is_none_or(|i| i.len <= len)),
                "{code:x?}"
            );
        };
        check(&[0x55]); // push rbp
        check(&[0x41, 0x57]); // push r15
        check(&[0x48, 0x89, 0xe5]); // mov rbp, rsp
        check(&[0x48, 0x83, 0xec, 0x18]); // sub rsp, 0x18
        check(&[0x48, 0x81, 0xec, 0x98, 0x01, 0, 0]); // sub rsp, 0x198
        check(&[0x66, 0x81, 0xc1, 0x34, 0x12]); // add cx, 0x1234
        check(&[0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8]); // movabs rax, imm64
        check(&[0xb8, 1, 2, 3, 4]); // mov eax, imm32
        check(&[0x48, 0x8b, 0x05, 1, 2, 3, 4]); // mov rax, [rip + disp32]
        check(&[0x8b, 0x04, 0x25, 1, 2, 3, 4]); // mov eax, [disp32]
        check(&[0x8b, 0x44, 0x24, 0x08]); // mov eax, [rsp + 8]
        check(&[0x8b, 0x84, 0x24, 1, 2, 3, 4]); // mov eax, [rsp + disp32]
        check(&[0xf6, 0x43, 0x08, 0x01]); // test byte [rbx + 8], 1
        check(&[0xf7, 0xc1, 1, 2, 3, 4]); // test ecx, imm32
        check(&[0xf7, 0xd8]); // neg eax
        check(&[0x0f, 0xb6, 0xc0]); // movzx eax, al
        check(&[0x0f, 0x84, 1, 2, 3, 4]); // je rel32
        check(&[0x66, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0]); // nop word [rax + rax + disp32]
        check(&[0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0]); // data16 cs nop word
        check(&[0xf3, 0x0f, 0x1e, 0xfa]); // endbr64
        check(&[0x66, 0x0f, 0x3a, 0x0f, 0xc1, 0x08]); // palignr xmm0, xmm1, 8
        check(&[0x66, 0x0f, 0x38, 0x00, 0xc1]); // pshufb xmm0, xmm1
        check(&[0xc5, 0xf8, 0x77]); // vzeroupper
        check(&[0xc5, 0xfd, 0x6f, 0x46, 0x20]); // vmovdqa ymm0, [rsi + 32]
        check(&[0xc4, 0xe3, 0x7d, 0x39, 0xc1, 0x01]); // vextracti128 xmm1, ymm0, 1
        check(&[0x62, 0xf1, 0x7c, 0x48, 0x10, 0x06]); // vmovups zmm0, [rsi]
        check(&[0xc8, 0x10, 0, 0]); // enter 16, 0
        check(&[0x0f, 0x05]); // syscall
    }

    #[test]
    fn what_is_no_instruction_has_no_length() {
        for code in [&[][..], &[0x06], &[0x48], &[0x66; 20], &[0x0f], &[0x0f, 0x04], &[0xc5], &[0x62, 0xf1]] {
            assert_eq!(decode(code), None, "{code:x?}");
        }
    }
}
