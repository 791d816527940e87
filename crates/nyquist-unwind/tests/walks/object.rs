//! Makes small ELF files with call frame information, byte by byte.

use nyquist_object::{Avma, Elf};
use nyquist_unwind::{AddressSpace, FrameAddress, Module, Registers, StackMemory, Unwinder, WalkEnd};
use std::sync::Arc;

/// Where the code of the file begins, both in the file and in memory.
pub(crate) const CODE: u64 = 0x1000;
/// How many bytes of code there are.
pub(crate) const CODE_LEN: u64 = 0x1000;
/// Where the image base is mapped.
pub(crate) const BASE: u64 = 0x5555_0000_0000;
/// Where the stack pointer of the tests is.
pub(crate) const STACK: u64 = 0x7fff_0000_0000;

/// A function: its offset in the code, its length, and its instructions of call frame information.
pub(crate) struct Function<'a> {
    pub(crate) start: u32,
    pub(crate) len: u32,
    pub(crate) instructions: &'a [u8],
}

/// The initial instructions of every compiler: CFA = rsp + 8, return address at CFA - 8.
pub(crate) const INITIAL: [u8; 5] = [0x0c, 7, 8, 0x90, 1];

fn entry(id: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = id.to_le_bytes().to_vec();
    bytes.extend_from_slice(body);
    bytes.resize(bytes.len().next_multiple_of(8) + 4, 0);
    let mut entry = (bytes.len() as u32).to_le_bytes().to_vec();
    entry.append(&mut bytes);
    entry
}

/// A section at `address` with one CIE of the augmentation, and the functions.
pub(crate) fn eh_frame(
    address: u64,
    augmentation: &str,
    initial: &[u8],
    functions: &[Function<'_>],
) -> Vec<u8> {
    let mut cie = vec![1];
    cie.extend_from_slice(augmentation.as_bytes());
    cie.extend_from_slice(&[0, 1, 0x78, 16]);
    if augmentation.starts_with('z') {
        // The one byte of data that follows is for 'R': relative to itself, four bytes, signed.
        cie.extend_from_slice(&[1, 0x1b]);
    }
    cie.extend_from_slice(initial);
    let mut section = entry(0, &cie);
    for function in functions {
        let at = section.len() as u64;
        let mut fde = Vec::new();
        let start = CODE + u64::from(function.start);
        if augmentation.starts_with('z') {
            fde.extend_from_slice(&(start.wrapping_sub(address + at + 8) as u32).to_le_bytes());
            fde.extend_from_slice(&function.len.to_le_bytes());
            fde.push(0);
        } else {
            fde.extend_from_slice(&start.to_le_bytes());
            fde.extend_from_slice(&u64::from(function.len).to_le_bytes());
        }
        fde.extend_from_slice(function.instructions);
        section.append(&mut entry(at as u32 + 4, &fde));
    }
    section
}

/// As [`eh_frame`], in the other format.
pub(crate) fn debug_frame(functions: &[Function<'_>]) -> Vec<u8> {
    let mut cie = vec![4, 0, 8, 0, 1, 0x78, 16];
    cie.extend_from_slice(&INITIAL);
    let mut section = entry(u32::MAX, &cie);
    for function in functions {
        let mut fde = (CODE + u64::from(function.start)).to_le_bytes().to_vec();
        fde.extend_from_slice(&u64::from(function.len).to_le_bytes());
        fde.extend_from_slice(function.instructions);
        section.append(&mut entry(0, &fde));
    }
    section
}

/// Where [`file`] puts its first section.
pub(crate) const SECTIONS: u64 = 0x2000;

/// A 64-bit x86 file: one executable segment with the code, and the sections.
pub(crate) fn file(code: &[u8], sections: &[(&str, &[u8])]) -> Vec<u8> {
    let mut names = vec![0];
    let mut headers = vec![0; 64];
    let mut contents = Vec::new();
    let mut header = |name: &str, kind: u32, offset: u64, size: u64, names: &mut Vec<u8>| {
        headers.extend_from_slice(&(names.len() as u32).to_le_bytes());
        headers.extend_from_slice(&kind.to_le_bytes());
        for word in [2, offset, offset, size, 0, 1, 0] {
            headers.extend_from_slice(&u64::to_le_bytes(word));
        }
        names.extend_from_slice(name.as_bytes());
        names.push(0);
    };
    for (name, bytes) in sections {
        header(name, 1, SECTIONS + contents.len() as u64, bytes.len() as u64, &mut names);
        contents.extend_from_slice(bytes);
    }
    let names_at = SECTIONS + contents.len() as u64;
    header(".shstrtab", 3, names_at, names.len() as u64 + 10, &mut names);

    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0\x01\0\0\0".to_vec();
    let headers_at = (names_at + names.len() as u64).next_multiple_of(8);
    for word in [0, 64, headers_at] {
        file.extend_from_slice(&u64::to_le_bytes(word));
    }
    for half in [0, 0, 64, 56, 2, 64, sections.len() as u16 + 2, sections.len() as u16 + 1] {
        file.extend_from_slice(&u16::to_le_bytes(half));
    }
    for (flags, offset, size) in [(4, 0, CODE), (5, CODE, CODE_LEN)] {
        file.extend_from_slice(&u32::to_le_bytes(1));
        file.extend_from_slice(&u32::to_le_bytes(flags));
        for word in [offset, offset, offset, size, size, 0x1000] {
            file.extend_from_slice(&u64::to_le_bytes(word));
        }
    }
    file.resize(CODE as usize, 0);
    file.extend_from_slice(code);
    file.resize(SECTIONS as usize, 0xcc);
    file.append(&mut contents);
    file.append(&mut names);
    file.resize(headers_at as usize, 0);
    file.append(&mut headers);
    file
}

/// Makes section number `index` of a file from [`file`] the code of `len` bytes from `start` on. Numbers
/// count from one.
pub(crate) fn make_code(file: &mut [u8], index: usize, start: u64, len: u64) {
    let headers = u64::from_le_bytes(file[0x28..0x30].try_into().unwrap()) as usize;
    let fields = [6, CODE + start, CODE + start, len].map(u64::to_le_bytes).concat();
    file[headers + 64 * index + 8..][..fields.len()].copy_from_slice(&fields);
}

/// A file from [`file`] without section headers, as in some programs. One more program header loads the
/// contents of the sections, `len` bytes. Another one is that of `.eh_frame`'s header, which begins at
/// `header`.
pub(crate) fn without_sections(mut file: Vec<u8>, header: u64, len: u64) -> Vec<u8> {
    file.truncate((SECTIONS + len) as usize);
    file[0x28..0x30].fill(0);
    file[0x38] = 4;
    file[0x3c..0x40].fill(0);
    for (number, (kind, at)) in [(1_u32, SECTIONS), (0x6474_e550, header)].into_iter().enumerate() {
        let size = SECTIONS + len - at;
        let mut bytes = [kind, 4].map(u32::to_le_bytes).concat();
        bytes.extend([at, at, at, size, size, 0x1000].map(u64::to_le_bytes).concat());
        let place = 64 + 56 * (2 + number);
        file[place..place + 56].copy_from_slice(&bytes);
    }
    file
}

/// The file, compiled.
pub(crate) fn module(file: Vec<u8>) -> Module {
    Module::from_elf(&Elf::open(file).unwrap()).unwrap()
}

/// The address in the process of a byte of the code.
pub(crate) fn code(offset: u64) -> u64 {
    BASE + CODE + offset
}

/// An address space with the code of the module, and nothing else.
pub(crate) fn space(module: Module) -> AddressSpace {
    let mut space = AddressSpace::new();
    space.map(Avma(BASE + CODE), CODE_LEN, Avma(BASE), Arc::new(module));
    space
}

/// Registers with these values of instruction, stack and frame pointer, and all others 0xdead.
pub(crate) fn registers(ip: u64, sp: u64, bp: u64) -> [u64; 17] {
    let mut values = [0xdead; 17];
    (values[16], values[7], values[6]) = (ip, sp, bp);
    values
}

/// The words of a stack from [`STACK`] on, as bytes.
pub(crate) fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The frames of a walk and its end.
pub(crate) fn walk(
    space: &AddressSpace,
    registers: [u64; 17],
    memory: &impl StackMemory,
) -> (Vec<FrameAddress>, WalkEnd) {
    let mut frames = Vec::new();
    let registers = Registers::X86_64(registers);
    let end = Unwinder::new().walk(space, &registers, memory, &mut |frame| frames.push(frame));
    (frames, end)
}

/// Go's table for 64-bit ARM of code at `text`. The first function begins at the first place, and has a frame
/// of 48 bytes from its second instruction on. The outermost function is from the second place to the third.
pub(crate) fn go_table(text: u64, places: [u32; 3]) -> Vec<u8> {
    const RECORD: usize = 44;
    let mut table = [0xffff_fff1_u32, 0x0804_0000].map(u32::to_le_bytes).concat();
    table.extend([2, 0, text, 0, 0, 0, 72, 88].map(u64::to_le_bytes).concat());
    // Depths by change and length: 0 for one instruction, then 48 up to the end; then 0.
    table.extend([2, 1, 96, 0xff, 0x01, 0, 0, 0, 2, 0xff, 0x01, 0, 0, 0, 0, 0]);
    let [first, outermost, end] = places;
    table.extend([first, 20, outermost, 20 + RECORD as u32, end].map(u32::to_le_bytes).concat());
    for (depths, flags) in [(0_u32, 0), (8, 1)] {
        let mut record = [0; RECORD];
        record[16..20].copy_from_slice(&depths.to_le_bytes());
        record[41] = flags;
        table.extend(record);
    }
    table
}

/// str x30, [sp, -48]!; stur x29, [sp, -8]; sub x29, sp, 8.
pub(crate) const GO_PROLOGUE: [u32; 3] = [0xf81d_0ffe, 0xf81f_83fd, 0xd100_23fd];
