//! Whatever the bytes, the registers and the memory are: nothing panics, and every walk ends.

use crate::object::{
    CODE, CODE_LEN, Function, INITIAL, SECTIONS, code, debug_frame, eh_frame, file, module, registers, space,
    walk,
};
use nyquist_object::{Avma, Elf};
use nyquist_unwind::{AddressSpace, MAX_FRAMES, Module, StackMemory};

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

    /// A number that is likely to mean something: an address in the code or on the stack, or anything.
    fn word(&mut self, stack: u64) -> u64 {
        match self.below(8) {
            0..=2 => code(self.next() % CODE_LEN),
            3..=5 => stack.wrapping_add(self.next() % 0x1_0000 / 8 * 8),
            6 => self.next() % 64,
            _ => self.next(),
        }
    }
}

/// Memory in which every address can be read, and what it holds follows from the address.
struct Everywhere(u64);

impl StackMemory for Everywhere {
    fn read_u64(&self, address: Avma) -> Option<u64> {
        let mut random = Random((address.0 ^ self.0).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        random.next();
        Some(random.word(address.0))
    }
}

/// Instructions that are mostly in good order.
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

/// A file of which most functions are in good order, and the rest are not.
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

#[test]
fn a_section_cut_anywhere_keeps_the_entries_before_the_cut() {
    let functions =
        [0x100, 0x200, 0x300].map(|start| Function { start, len: 0x100, instructions: &[0x0e, 16] });
    let section = eh_frame(SECTIONS, "zR", &INITIAL, &functions);
    let covered = |len: usize| {
        let module = module(file(&[], &[(".eh_frame", &section[..len])]));
        let is_covered = |start: u64| {
            let rule = module.rule(nyquist_object::RelativeAddress((CODE + start) as u32));
            rule.kind() == nyquist_unwind::rule::Kind::StackPointer
        };
        [0x100, 0x200, 0x300].into_iter().filter(|&start| is_covered(start)).count()
    };
    let counts: Vec<_> = (0..=section.len()).map(covered).collect();
    assert!(counts.is_sorted());
    assert_eq!((counts[0], counts[section.len() - 1], counts[section.len()]), (0, 2, 3));
}
