//! With arbitrary bytes, registers and memory, nothing panics and every walk ends.

use crate::object::{
    CODE, CODE_LEN, Function, INITIAL, SECTIONS, code, debug_frame, eh_frame, file, module, registers, space,
    walk,
};
use crate::pe_image;
use nyquist_object::{Avma, Elf, Pe};
use nyquist_unwind::{AddressSpace, MAX_FRAMES, Module, Registers, StackMemory, Unwinder};
use std::sync::Arc;

/// A generator of numbers that is the same in every run (xorshift, Marsaglia 2003).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }

    /// A number that is likely to be meaningful: an address in the code or on the stack, or a random number.
    fn word(&mut self, stack: u64) -> u64 {
        match self.below(8) {
            0..=2 => code(self.next() % CODE_LEN),
            3..=5 => stack.wrapping_add(self.next() % 0x1_0000 / 8 * 8),
            6 => self.next() % 64,
            _ => self.next(),
        }
    }
}

/// Memory in which every address can be read, and whose contents are a function of the address.
struct Everywhere(u64);

impl StackMemory for Everywhere {
    fn read_u64(&self, address: Avma) -> Option<u64> {
        let mut random = Random((address.0 ^ self.0).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        random.next();
        Some(random.word(address.0))
    }
}

/// Instructions that are mostly valid.
fn instructions(random: &mut Random) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..random.below(12) {
        match random.below(9) {
            0 => bytes.push(0x40 | random.next() as u8),
            1 => bytes.extend([0x0e, (random.next() % 16 * 8) as u8]),
            2 => bytes.extend([0x0c, random.next() as u8 % 17, (random.next() % 16 * 8) as u8]),
            3 => bytes.extend([0x80 | (random.next() as u8 % 17), random.next() as u8 % 8]),
            4 => bytes.extend([0x0d, random.next() as u8 % 17]),
            5 => bytes.extend([0x0f, 3, 0x70 + random.next() as u8 % 17, random.next() as u8 & 0x7f, 6]),
            6 => bytes.extend([0x10, random.next() as u8 % 17, 2, 0x77, random.next() as u8 & 0x78]),
            7 => bytes.push(0x0a),
            _ => bytes.push(random.next() as u8),
        }
    }
    bytes
}

/// A file in which most functions are valid.
fn random_file(random: &mut Random) -> Vec<u8> {
    let all: Vec<_> = (0..16).map(|_| instructions(random)).collect();
    let function = |(number, instructions): (usize, &Vec<u8>)| {
        let (start, len) = (number as u32 * 0x100, 0x80 + (number as u32 % 3) * 0x80);
        (start, len, instructions.clone())
    };
    let functions: Vec<_> = all.iter().enumerate().map(function).collect();
    let functions: Vec<_> = functions
        .iter()
        .map(|(start, len, instructions)| Function { start: *start, len: *len, instructions })
        .collect();
    let (first, second) = functions.split_at(8);
    let augmentation = ["zR", "", "zRS"][random.below(3)];
    let eh_frame = eh_frame(SECTIONS, augmentation, &INITIAL, first);
    file(
        &random.bytes(CODE_LEN as usize),
        &[(".eh_frame", &eh_frame), (".debug_frame", &debug_frame(second))],
    )
}

fn walk_at_random(random: &mut Random, space: &AddressSpace) -> usize {
    let stack = 0x7fff_0000_0000;
    let mut values = registers(code(random.next() % CODE_LEN), stack, stack + random.next() % 0x100);
    for value in &mut values[..16] {
        *value = random.word(stack);
    }
    let (frames, _) = walk(space, values, &Everywhere(random.next()));
    assert!(frames.len() <= MAX_FRAMES);
    frames.len()
}

fn walk_arm_at_random(random: &mut Random, space: &AddressSpace) {
    let stack = 0x7fff_0000_0000;
    let mut values = [0; 33].map(|_: u64| random.word(stack));
    (values[31], values[32]) = (stack, code(random.next() % CODE_LEN));
    let mut frames = 0;
    let memory = Everywhere(random.next());
    Unwinder::new().walk(space, &Registers::Aarch64(values), &memory, &mut |_| frames += 1);
    assert!((1..=MAX_FRAMES).contains(&frames));
}

#[test]
fn every_walk_ends() {
    let mut random = Random(1);
    let mut most = 0;
    for _ in 0..200 {
        let mut space = space(module(random_file(&mut random)));
        space.map_code(Avma(code(CODE_LEN)), 0x1000);
        for _ in 0..100 {
            most = most.max(walk_at_random(&mut random, &space));
        }
    }
    // If no walk got anywhere, this would be no test of long ones.
    assert!(most > 10, "at most {most} frames");
}

#[test]
fn damaged_files_do_no_harm() {
    let mut random = Random(2);
    for _ in 0..2_000 {
        let mut bytes = random_file(&mut random);
        for _ in 0..random.below(20) {
            let at = SECTIONS as usize + random.below(bytes.len() - SECTIONS as usize);
            bytes[at] = random.next() as u8;
        }
        if random.below(4) == 0 {
            bytes.truncate(SECTIONS as usize + random.below(bytes.len() - SECTIONS as usize));
        }
        let Ok(module) = Elf::open(bytes).map_err(drop).and_then(|elf| Module::from_elf(&elf).map_err(drop))
        else {
            continue;
        };
        walk_at_random(&mut random, &space(module));
    }
}

#[test]
fn sections_of_random_bytes_do_no_harm() {
    let mut random = Random(3);
    for _ in 0..2_000 {
        let len = random.below(600);
        let section = random.bytes(len);
        let name = [".eh_frame", ".debug_frame"][random.below(2)];
        let module = module(file(&[], &[(name, &section)]));
        walk_at_random(&mut random, &space(module));
    }
}

/// Code that is made at run time is whatever its process has written there.
#[test]
fn random_instructions_do_no_harm() {
    let mut random = Random(4);
    // Prologues, calls, branches, epilogues and jumps, so that searches find their way.
    let pieces: [&[u8]; 8] = [
        &[0x89, 0x84, 0x24, 0x00, 0xc0, 0xfe, 0xff, 0x55, 0x48, 0x83, 0xec, 0x20],
        &[0xe8, 0, 0, 0, 0],
        &[0x74, 0x10],
        &[0xeb, 0xf0],
        &[0x48, 0x83, 0xc4, 0x20, 0x5d, 0xc3],
        &[0xc9, 0xc3],
        &[0xff, 0xe0],
        &[0x48, 0x81, 0xec, 0xff, 0xff, 0xff, 0x7f],
    ];
    let mut most = 0;
    for _ in 0..200 {
        let mut made = Vec::new();
        while made.len() < 0x1000 {
            made.extend_from_slice(pieces[random.below(pieces.len())]);
            let len = random.below(4);
            made.extend(random.bytes(len));
        }
        let mut space = AddressSpace::new();
        space.map(Avma(code(0)), CODE_LEN, Avma(code(0)), Arc::new(Module::from_instructions(made)));
        for _ in 0..20 {
            most = most.max(walk_at_random(&mut random, &space));
        }
    }
    // If no walk got anywhere, this would be no test of made code.
    assert!(most > 5, "at most {most} frames");
}

#[test]
fn a_section_cut_anywhere_keeps_what_precedes() {
    let functions =
        [0x100, 0x200, 0x300].map(|start| Function { start, len: 0x100, instructions: &[0x0e, 16] });
    let section = eh_frame(SECTIONS, "zR", &INITIAL, &functions);
    let covered = |len: usize| {
        let module = module(file(&[], &[(".eh_frame", &section[..len])]));
        let is_covered = |start: u64| {
            let rule = module.rule(nyquist_object::RelativeAddress((CODE + start) as u32));
            rule.kind() == nyquist_unwind::rule::CfaKind::StackPointer
        };
        [0x100, 0x200, 0x300].into_iter().filter(|&start| is_covered(start)).count()
    };
    let counts: Vec<_> = (0..=section.len()).map(covered).collect();
    assert!(counts.is_sorted());
    assert_eq!((counts[0], counts[section.len() - 1], counts[section.len()]), (0, 2, 3));
}

/// An image with a table of functions that are in its code, and whose infos are random.
fn random_image(random: &mut Random, machine: u16) -> Vec<u8> {
    let mut table = Vec::new();
    for number in 0..32 {
        let start = pe_image::TEXT + 0x40 * number;
        let info = pe_image::INFOS + (random.next() % 0x400 * 4) as u32;
        match (machine, random.below(2)) {
            (pe_image::X86_64, _) => table.extend([start, start + 0x40, info]),
            (_, 0) => table.extend([start, random.next() as u32 & !(0x7f << 6)]),
            _ => table.extend([start, info]),
        }
    }
    let (text, mut infos) = (random.bytes(0x1000), random.bytes(0x1000));
    for at in (0..0x1000).step_by(16) {
        // Some valid headers, with a few codes: version 1; or 16 instructions, an epilogue, and two words.
        let header = match machine {
            pe_image::X86_64 => [1, random.next() as u8 & 15, random.next() as u8 & 7, random.next() as u8],
            _ => (0x10 | 1 << 21 | (random.next() as u32 & 3) << 22 | 2 << 27_u32).to_le_bytes(),
        };
        infos[at..at + 4].copy_from_slice(&header);
    }
    pe_image::image(machine, &text, &table, &infos)
}

#[test]
fn hostile_images_do_no_harm() {
    let mut random = Random(4);
    for number in 0..600 {
        let machine = [pe_image::X86_64, pe_image::AARCH64][number % 2];
        let image = random_image(&mut random, machine);
        let module = Arc::new(Module::from_pe(&Pe::open(image).unwrap()).unwrap());
        let mut space = AddressSpace::new();
        space.map(Avma(code(0) - CODE), 0x4000, Avma(code(0) - CODE), module);
        let mut most = 0;
        for _ in 0..20 {
            let stack = 0x7fff_0000_0000;
            let mut values = [0; 33].map(|_: u64| random.word(stack));
            let ip = code(random.next() % 0x800);
            let registers = if machine == pe_image::AARCH64 {
                (values[31], values[32]) = (stack, ip);
                Registers::Aarch64(values)
            } else {
                (values[7], values[16]) = (stack, ip);
                Registers::X86_64(std::array::from_fn(|number| values[number]))
            };
            let mut frames = 0;
            Unwinder::new().walk(&space, &registers, &Everywhere(random.next()), &mut |_| frames += 1);
            most = most.max(frames);
        }
        assert!((1..=MAX_FRAMES).contains(&most));
    }
}

#[test]
fn hostile_tables_of_go_do_no_harm() {
    let mut random = Random(5);
    for number in 0..300 {
        let is_arm = number % 2 == 1;
        let mut table = random.bytes(0x400);
        let quantum = if is_arm { 4 } else { 1 };
        let magic = [0xf1, 0xff, 0xff, 0xff, 0, 0, quantum, 8];
        let header = [magic, 16_u64.to_le_bytes(), [0; 8], (CODE).to_le_bytes()];
        table[..32].copy_from_slice(header.as_flattened());
        table[56..72].copy_from_slice([72_u64, 0x200].map(u64::to_le_bytes).as_flattened());
        for number in 0..17 {
            let entry = [number as u32 * 0x80, 0x90 + random.next() as u32 % 0x100];
            let at = 0x200 + 8 * number;
            table[at..at + 8].copy_from_slice(entry.map(u32::to_le_bytes).as_flattened());
        }
        for place in table[0x290..].chunks_exact_mut(20) {
            place[16..].copy_from_slice(&(random.next() as u32 % 0x180).to_le_bytes());
        }
        let mut file = file(&random.bytes(CODE_LEN as usize), &[(".gopclntab", &table)]);
        if is_arm {
            // EM_AARCH64.
            file[18] = 183;
        }
        let space = space(module(file));
        for _ in 0..20 {
            if is_arm {
                walk_arm_at_random(&mut random, &space);
            } else {
                walk_at_random(&mut random, &space);
            }
        }
    }
}
