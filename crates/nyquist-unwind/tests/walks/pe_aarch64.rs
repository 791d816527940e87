//! Walks through functions of a handmade PE image for 64-bit ARM, at each of their instructions.

use crate::pe_image::{AARCH64, BASE, INFOS, TEXT, image, words};
use nyquist_object::{Avma, Pe};
use nyquist_unwind::{AddressSpace, Module, Registers, StackCopy, Unwinder, WalkEnd};
use std::sync::Arc;

const STACK: u64 = 0x10_0000;
/// How many words the simulated stack has.
const WORDS: usize = 0x400;

/// Registers by their numbers in instructions. The stack pointer's number means no register in stores.
const FP: usize = 29;
const LR: usize = 30;
const SP: usize = 31;

const NOP: u32 = 0xd503_201f;
const RET: u32 = 0xd65f_03c0;

/// A simulated instruction.
#[derive(Clone, Copy)]
enum Op {
    /// Moves the stack pointer, then stores two registers above it.
    Store([usize; 2], u64, i64),
    /// Loads two registers from above the stack pointer, then moves that.
    Load([usize; 2], u64, i64),
    /// Sets the first register to the second one + an offset.
    Add(usize, usize, i64),
    /// Signs the return address, or removes the signature.
    Sign,
    Authenticate,
    /// Skips instructions.
    Skip(usize),
    Call,
    Return,
}

/// The entry of a function in the table of functions.
enum Entry {
    Packed(u32),
    Record(Vec<u8>),
    /// Nothing.
    None,
}

struct Function {
    code: Vec<Op>,
    entry: Entry,
}

/// A record with scopes: the start of an epilogue, and the index of its codes.
fn record(len: usize, scopes: &[(u32, u32)], codes: &[u8]) -> Vec<u8> {
    let words_of_scopes: Vec<u32> = scopes.iter().map(|&(start, index)| start | index << 22).collect();
    record_with(len, (scopes.len() as u32) << 22, &words_of_scopes, codes)
}

/// A record with one epilogue at the function's end.
fn record_with_last(len: usize, index: u32, codes: &[u8]) -> Vec<u8> {
    record_with(len, 1 << 21 | index << 22, &[], codes)
}

fn record_with(len: usize, fields: u32, scopes: &[u32], codes: &[u8]) -> Vec<u8> {
    let mut codes = codes.to_vec();
    codes.resize(codes.len().next_multiple_of(4), 0xe3);
    let header = len as u32 | fields | (codes.len() as u32 / 4) << 27;
    [words(&[header]), words(scopes), codes].concat()
}

/// A packed entry: the kind, instructions, `CR`, general registers, all bytes of the frame.
fn packed(kind: u32, len: usize, record: u32, registers: u32, frame: u32) -> Entry {
    Entry::Packed(kind | (len as u32) << 2 | registers << 16 | record << 21 | (frame / 16) << 23)
}

fn module(image: Vec<u8>) -> Arc<Module> {
    let module = Module::from_pe(&Pe::open(image).unwrap()).unwrap();
    assert_eq!(module.damage().count, 0, "{:?}", module.damage());
    Arc::new(module)
}

/// A thread's registers and its stack.
struct Thread {
    registers: [u64; 32],
    stack: Vec<u64>,
}

impl Thread {
    /// A thread whose outermost function has nowhere to return to.
    fn new() -> Self {
        let mut registers = [0; 32];
        for (number, register) in (1..).zip(&mut registers) {
            *register = number << 56 | 0x123;
        }
        (registers[SP], registers[LR]) = (STACK + 8 * WORDS as u64 - 0x400, 0);
        Self { registers, stack: (0..WORDS as u64).map(|word| word << 48 | 7).collect() }
    }

    fn word(&mut self, address: u64) -> &mut u64 {
        &mut self.stack[(address - STACK) as usize / 8]
    }

    fn run(&mut self, op: Op) {
        match op {
            Op::Store(registers, offset, moves) => {
                self.registers[SP] = self.registers[SP].wrapping_add_signed(moves);
                for (register, word) in registers.into_iter().zip([0, 8]).filter(|(r, _)| *r != SP) {
                    *self.word(self.registers[SP] + offset + word) = self.registers[register];
                }
            }
            Op::Load(registers, offset, moves) => {
                for (register, word) in registers.into_iter().zip([0, 8]).filter(|(r, _)| *r != SP) {
                    let address = self.registers[SP] + offset + word;
                    self.registers[register] = *self.word(address);
                    // Restored words are overwritten, because no walk may depend on them.
                    *self.word(address) = 0xdead_dead;
                }
                self.registers[SP] = self.registers[SP].wrapping_add_signed(moves);
            }
            Op::Add(to, from, bytes) => {
                self.registers[to] = self.registers[from].wrapping_add_signed(bytes);
            }
            Op::Sign => self.registers[LR] |= 0xab << 56,
            Op::Authenticate => self.registers[LR] &= u64::MAX >> 8,
            Op::Skip(_) | Op::Call | Op::Return => {}
        }
    }

    fn at(&self, ip: u64) -> Registers {
        let mut values = [0; 33];
        values[..32].copy_from_slice(&self.registers);
        values[32] = ip;
        Registers::Aarch64(values)
    }

    fn walk(&self, module: &Arc<Module>, ip: u64) -> (Vec<u64>, WalkEnd) {
        let mut space = AddressSpace::new();
        space.map(Avma(BASE), 0x4000, Avma(BASE), Arc::clone(module));
        let bytes: Vec<u8> = self.stack.iter().flat_map(|word| word.to_le_bytes()).collect();
        let memory = StackCopy { start: Avma(STACK), bytes: &bytes };
        let mut frames = Vec::new();
        let end =
            Unwinder::new().walk(&space, &self.at(ip), &memory, &mut |frame| frames.push(frame.address().0));
        (frames, end)
    }
}

/// Runs functions that call each other, beginning with the first one, and checks the walk at each of their
/// instructions.
fn check(functions: &[Function]) {
    let (mut text, mut infos, mut table, mut starts) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for function in functions {
        let start = TEXT + 4 * text.len() as u32;
        starts.push(start);
        let word = |op: &Op| if matches!(op, Op::Return) { RET } else { NOP };
        text.extend(function.code.iter().map(word));
        match &function.entry {
            Entry::Packed(word) => table.extend([start, *word]),
            Entry::Record(bytes) => {
                table.extend([start, INFOS + infos.len() as u32]);
                infos.extend_from_slice(bytes);
            }
            Entry::None => {}
        }
    }
    let module = module(image(AARCH64, &words(&text), &table, &infos));
    run(functions, &starts, &module, &mut Thread::new(), &[]);
}

fn run(functions: &[Function], starts: &[u32], module: &Arc<Module>, thread: &mut Thread, callers: &[u64]) {
    let ([function, callees @ ..], [start, starts @ ..]) = (functions, starts) else { return };
    let mut at = 0;
    while let Some(op) = function.code.get(at) {
        let ip = BASE + u64::from(*start) + 4 * at as u64;
        let expected: Vec<u64> = [ip].into_iter().chain(callers.iter().rev().copied()).collect();
        assert_eq!(thread.walk(module, ip), (expected, WalkEnd::Root), "at {ip:#x}");
        at += 1;
        match op {
            Op::Call if callees.is_empty() => {}
            Op::Call => {
                thread.registers[LR] = ip + 4;
                run(callees, starts, module, thread, &[callers, &[ip + 4]].concat());
            }
            Op::Skip(instructions) => at += instructions,
            Op::Return => return,
            op => thread.run(*op),
        }
    }
}

/// Has a frame record below two registers.
fn chained() -> Function {
    let code = vec![
        Op::Store([19, 20], 0, -16),
        Op::Store([FP, LR], 0, -32),
        Op::Add(FP, SP, 0),
        Op::Add(19, SP, 5),
        Op::Call,
        Op::Load([FP, LR], 0, 32),
        Op::Load([19, 20], 0, 16),
        Op::Return,
    ];
    Function { entry: packed(1, code.len(), 3, 2, 48), code }
}

/// Stores the return address beside its only register, and has no frame record.
fn unchained() -> Function {
    let code = vec![
        Op::Store([19, LR], 0, -16),
        Op::Add(SP, SP, -32),
        Op::Call,
        Op::Add(SP, SP, 32),
        Op::Load([19, LR], 0, 16),
        Op::Return,
    ];
    Function { entry: packed(1, code.len(), 1, 1, 48), code }
}

/// Allocates more of the stack as it runs, and frees it by the frame pointer.
fn dynamic() -> Function {
    let code = vec![
        Op::Store([FP, LR], 0, -32),
        Op::Store([19, SP], 16, 0),
        Op::Add(FP, SP, 0),
        Op::Add(SP, SP, -0x80),
        Op::Call,
        Op::Add(SP, FP, 0),
        Op::Load([19, SP], 16, 0),
        Op::Load([FP, LR], 0, 32),
        Op::Return,
    ];
    let entry = Entry::Record(record_with_last(code.len(), 0, &[0xe1, 0xd0, 0x02, 0x83, 0xe4]));
    Function { code, entry }
}

/// Returns at one of two places, and has its frame record in the middle of its frame.
fn two_exits(takes_second: bool) -> Function {
    let epilogue = [Op::Load([FP, LR], 16, 0), Op::Add(SP, SP, 64), Op::Return];
    let mut code = vec![
        Op::Add(SP, SP, -64),
        Op::Store([FP, LR], 16, 0),
        Op::Add(FP, SP, 16),
        Op::Call,
        Op::Skip(if takes_second { 4 } else { 0 }),
    ];
    code.extend(epilogue);
    code.push(Op::Call);
    code.extend(epilogue);
    // add x29, sp, 16; stp x29, x30, [sp, 16]; sub sp, sp, 64; the epilogues do not use the first.
    let codes = [0xe2, 0x02, 0x42, 0x04, 0xe4];
    Function { entry: Entry::Record(record(code.len(), &[(5, 2), (9, 2)], &codes)), code }
}

/// Signs its return address.
fn signs() -> Function {
    let code = vec![
        Op::Sign,
        Op::Store([FP, LR], 0, -16),
        Op::Add(FP, SP, 0),
        Op::Call,
        Op::Load([FP, LR], 0, 16),
        Op::Authenticate,
        Op::Return,
    ];
    let entry = Entry::Record(record_with_last(code.len(), 0, &[0xe1, 0x81, 0xfc, 0xe4]));
    Function { code, entry }
}

/// As `signs`, with a packed entry.
fn signs_packed() -> Function {
    let Function { code, .. } = signs();
    Function { entry: packed(1, code.len(), 2, 0, 16), code }
}

/// A leaf function that is not in the table.
fn leaf() -> Function {
    Function { code: vec![Op::Add(0, 0, 1), Op::Return], entry: Entry::None }
}

#[test]
fn all_instructions_have_their_callers() {
    check(&[chained(), chained(), leaf()]);
    check(&[unchained(), chained(), unchained(), leaf()]);
    check(&[dynamic(), unchained(), dynamic(), dynamic(), leaf()]);
    check(&[two_exits(false), two_exits(true), unchained(), leaf()]);
}

#[test]
fn signed_return_addresses() {
    check(&[signs(), signs_packed(), chained(), signs(), leaf()]);
}

#[test]
fn a_part_of_a_function_has_the_whole_prologue() {
    let ip = BASE + u64::from(TEXT);
    for entry in [packed(2, 4, 3, 2, 48), Entry::Record(record(4, &[], &[0xe5, 0xe1, 0x83, 0x24, 0xe4]))] {
        let (table, infos) = match entry {
            Entry::Packed(word) => (vec![TEXT, word], vec![]),
            Entry::Record(bytes) => (vec![TEXT, INFOS], bytes),
            Entry::None => unreachable!("every entry above says something"),
        };
        let module = module(image(AARCH64, &words(&[NOP; 4]), &table, &infos));
        let mut thread = Thread::new();
        thread.registers[FP] = 0;
        thread.registers[LR] = ip + 0x40;
        // The stores of two registers allocate the same total in both: 32 and 16 bytes, and 16 and 32.
        for op in
            [Op::Store([19, 20], 0, if infos.is_empty() { -16 } else { -32 }), Op::Store([FP, LR], 0, -32)]
        {
            thread.run(op);
        }
        thread.run(Op::Add(FP, SP, 0));
        for at in 0..2 {
            let frames = thread.walk(&module, ip + 4 * at).0;
            assert_eq!(frames.get(..2), Some(&[ip + 4 * at, ip + 0x40][..]));
        }
    }
}

/// A function with a frame of 16 bytes and the code of an interrupt, and then a function that was
/// interrupted. Walks from the first over memory that `fill` has written, and returns the frames.
fn interrupted_by(code: u8, fill: impl FnOnce(&mut Thread, u64)) -> (Vec<u64>, WalkEnd) {
    let handler = record(4, &[(3, 2)], &[0x01, code, 0xe4]);
    let chained = chained();
    let Entry::Packed(word) = chained.entry else { unreachable!("it is packed") };
    let table = [TEXT, INFOS, TEXT + 16, word];
    let module = module(image(AARCH64, &words(&[NOP; 12]), &table, &handler));
    let mut thread = Thread::new();
    thread.run(chained.code[0]);
    let interrupted = BASE + u64::from(TEXT) + 20;
    fill(&mut thread, interrupted);
    thread.run(Op::Add(SP, SP, -16));
    thread.walk(&module, BASE + u64::from(TEXT) + 8)
}

#[test]
fn an_interrupt_leads_to_what_it_has_interrupted() {
    let handler = BASE + u64::from(TEXT) + 8;
    let found = interrupted_by(0xe9, |thread, interrupted| {
        let sp = thread.registers[SP];
        thread.registers[SP] -= 0x40;
        let at = thread.registers[SP];
        (*thread.word(at), *thread.word(at + 8)) = (sp, interrupted);
    });
    // The link register still is that of the interrupted function, which has no caller.
    assert_eq!(found, (vec![handler, handler + 12], WalkEnd::Root));
    let found = interrupted_by(0xea, |thread, interrupted| {
        let registers = thread.registers;
        thread.registers[SP] -= 0x390;
        let at = thread.registers[SP] + 8;
        for (register, number) in registers.into_iter().chain([interrupted]).zip(0..) {
            *thread.word(at + 8 * number) = register;
        }
        thread.registers[LR] = 0x55;
    });
    assert_eq!(found, (vec![handler, handler + 12], WalkEnd::Root));
    let found = interrupted_by(0xec, |thread, interrupted| thread.registers[LR] = interrupted);
    assert_eq!(found.0, [handler, handler + 12]);
}

#[test]
fn damaged_records_cost_their_function_alone() {
    let infos = [
        record_with_last(4, 0, &[0xe4, 0xe3, 0xe3, 0xe3]),
        words(&[4 | 1 << 18 | 1 << 27, 0xe4]),     // an unknown version
        record_with_last(4, 0, &[0xe8, 0xe4]),     // an unknown code
        record(4, &[(1, 1)], &[0xc0, 0x01, 0xe4]), // an epilogue within a code
        words(&[4, 0x00ff_ffff]),                  // more codes than there are bytes
    ];
    let mut table = Vec::new();
    let mut at = INFOS;
    for (number, info) in (0..).zip(&infos) {
        table.extend([TEXT + 0x10 * number, at]);
        at += info.len() as u32;
    }
    // An unknown kind, and a record outside of the image.
    table.extend([TEXT + 0x50, 3 | 4 << 2, TEXT + 0x60, 0x9000]);
    let image = image(AARCH64, &words(&[NOP; 0x40]), &table, &infos.concat());
    let module = Module::from_pe(&Pe::open(image).unwrap()).unwrap();
    assert_eq!(module.damage().count, 6, "{:?}", module.damage());
    let walk = Thread::new().walk(&Arc::new(module), BASE + u64::from(TEXT) + 4);
    assert_eq!(walk, (vec![BASE + u64::from(TEXT) + 4], WalkEnd::Root));
}
