//! Walks through functions of a handmade PE image for 64-bit x86, at each of their instructions.

use crate::pe_image::{self, BASE, INFOS, TEXT, words};
use nyquist_object::{Avma, Pe};
use nyquist_unwind::{AddressSpace, Module, Reason, Registers, StackCopy, Unwinder, WalkEnd};
use std::sync::Arc;

const STACK: u64 = 0x10_0000;
/// How many words the simulated stack has.
const WORDS: usize = 0x400;

/// Registers by their numbers in instructions.
const RBX: usize = 3;
const RSP: usize = 4;
const RBP: usize = 5;
const RDI: usize = 7;

/// A simulated instruction.
#[derive(Clone, Copy)]
enum Op {
    Push(usize),
    Pop(usize),
    /// Adds to the stack pointer.
    Add(i64),
    /// Stores a register above the stack pointer.
    Store(usize, u64),
    Load(usize, u64),
    /// Sets the first register to the second one + an offset.
    Lea(usize, usize, i64),
    /// A call, during which the walk is checked too.
    Call,
    Return,
}

/// A function: its instructions, and its `UNWIND_INFO`.
struct Function {
    code: Vec<(Vec<u8>, Op)>,
    info: Vec<u8>,
}

fn image(text: &[u8], table: &[[u32; 3]], infos: &[u8]) -> Vec<u8> {
    pe_image::image(pe_image::X86_64, text, table.as_flattened(), infos)
}

fn module(image: Vec<u8>) -> Arc<Module> {
    let module = Module::from_pe(&Pe::open(image).unwrap()).unwrap();
    assert_eq!(module.damage().count, 0, "{:?}", module.damage());
    Arc::new(module)
}

/// A thread's registers, by their numbers in instructions, and its stack.
struct Thread {
    registers: [u64; 16],
    stack: Vec<u64>,
}

impl Thread {
    fn new() -> Self {
        let mut registers = [0; 16];
        for (number, register) in (1..).zip(&mut registers) {
            *register = number << 60 | 0x123;
        }
        registers[RSP] = STACK + 8 * WORDS as u64 - 0x400;
        Self { registers, stack: (0..WORDS as u64).map(|word| word << 48 | 7).collect() }
    }

    fn word(&mut self, address: u64) -> &mut u64 {
        &mut self.stack[(address - STACK) as usize / 8]
    }

    fn push(&mut self, value: u64) {
        self.registers[RSP] -= 8;
        *self.word(self.registers[RSP]) = value;
    }

    fn pop(&mut self) -> u64 {
        let value = *self.word(self.registers[RSP]);
        // Popped words are overwritten, as by an interrupt, because no walk may depend on them.
        *self.word(self.registers[RSP]) = 0xdead_dead;
        self.registers[RSP] += 8;
        value
    }

    fn run(&mut self, op: Op) {
        match op {
            Op::Push(register) => self.push(self.registers[register]),
            Op::Pop(register) => self.registers[register] = self.pop(),
            Op::Add(bytes) => self.registers[RSP] = self.registers[RSP].wrapping_add_signed(bytes),
            Op::Store(register, offset) => {
                *self.word(self.registers[RSP] + offset) = self.registers[register];
            }
            Op::Load(register, offset) => self.registers[register] = *self.word(self.registers[RSP] + offset),
            Op::Lea(to, from, offset) => {
                self.registers[to] = self.registers[from].wrapping_add_signed(offset);
            }
            Op::Call | Op::Return => {}
        }
    }

    /// The registers in DWARF's order.
    fn at(&self, ip: u64) -> Registers {
        let order = [0, 2, 1, 3, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15];
        let mut values = [0; 17];
        for (value, number) in values.iter_mut().zip(order) {
            *value = self.registers[number];
        }
        values[16] = ip;
        Registers::X86_64(values)
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
    let (mut text, mut infos, mut table) = (Vec::new(), Vec::new(), Vec::new());
    for function in functions {
        let start = TEXT + text.len() as u32;
        text.extend(function.code.iter().flat_map(|(bytes, _)| bytes));
        table.push([start, TEXT + text.len() as u32, INFOS + infos.len() as u32]);
        infos.extend_from_slice(&function.info);
        infos.resize(infos.len().next_multiple_of(4), 0);
        text.resize(text.len().next_multiple_of(16), 0xcc);
    }
    let module = module(image(&text, &table, &infos));
    let mut thread = Thread::new();
    // The outermost function has nowhere to return to.
    thread.push(0);
    run(functions, &table, &module, &mut thread, &[]);
}

fn run(
    functions: &[Function],
    table: &[[u32; 3]],
    module: &Arc<Module>,
    thread: &mut Thread,
    callers: &[u64],
) {
    let ([function, callees @ ..], [[start, ..], table @ ..]) = (functions, table) else { return };
    let mut ip = BASE + u64::from(*start);
    for (bytes, op) in &function.code {
        let expected: Vec<u64> = [ip].into_iter().chain(callers.iter().rev().copied()).collect();
        assert_eq!(thread.walk(module, ip), (expected, WalkEnd::Root), "at {ip:#x}");
        ip += bytes.len() as u64;
        match op {
            Op::Call if callees.is_empty() => {}
            Op::Call => {
                thread.push(ip);
                run(callees, table, module, thread, &[callers, &[ip]].concat());
            }
            Op::Return => {
                thread.pop();
            }
            op => thread.run(*op),
        }
    }
}

fn call() -> (Vec<u8>, Op) {
    (vec![0xe8, 0, 0, 0, 0], Op::Call)
}

fn ret() -> (Vec<u8>, Op) {
    (vec![0xc3], Op::Return)
}

/// Pushes rbx and rdi, and allocates 0x20 bytes.
fn pushes() -> Function {
    Function {
        code: vec![
            (vec![0x53], Op::Push(RBX)),
            (vec![0x57], Op::Push(RDI)),
            (vec![0x48, 0x83, 0xec, 0x28], Op::Add(-0x28)),
            (vec![0x31, 0xdb], Op::Lea(RBX, RSP, 1)),
            call(),
            (vec![0x48, 0x83, 0xc4, 0x28], Op::Add(0x28)),
            (vec![0x5f], Op::Pop(RDI)),
            (vec![0x5b], Op::Pop(RBX)),
            ret(),
        ],
        info: vec![1, 6, 3, 0, 6, 0x42, 2, 0x70, 1, 0x30],
    }
}

/// Has rbp as its frame register, and allocates more of the stack as it runs.
fn frame_pointer() -> Function {
    Function {
        code: vec![
            (vec![0x55], Op::Push(RBP)),
            (vec![0x48, 0x83, 0xec, 0x30], Op::Add(-0x30)),
            (vec![0x48, 0x8d, 0x6c, 0x24, 0x20], Op::Lea(RBP, RSP, 0x20)),
            (vec![0x48, 0x29, 0xc4], Op::Add(-0x80)),
            call(),
            (vec![0x48, 0x8d, 0x65, 0x10], Op::Lea(RSP, RBP, 0x10)),
            (vec![0x5d], Op::Pop(RBP)),
            ret(),
        ],
        info: vec![1, 10, 3, 0x25, 10, 0x03, 5, 0x52, 1, 0x50],
    }
}

/// Has rbx as its frame register, and stores rbp and rdi in the space that its caller has left for them.
fn other_register() -> Function {
    Function {
        code: vec![
            (vec![0x48, 0x89, 0x6c, 0x24, 0x10], Op::Store(RBP, 0x10)),
            (vec![0x53], Op::Push(RBX)),
            (vec![0x48, 0x83, 0xec, 0x20], Op::Add(-0x20)),
            (vec![0x48, 0x8d, 0x1c, 0x24], Op::Lea(RBX, RSP, 0)),
            (vec![0x48, 0x29, 0xc4], Op::Add(-0x40)),
            (vec![0x31, 0xed], Op::Lea(RBP, RBP, 5)),
            call(),
            (vec![0x48, 0x8b, 0x6b, 0x38], Op::Lea(RBP, RBP, -5)),
            (vec![0x48, 0x8d, 0x63, 0x20], Op::Lea(RSP, RBX, 0x20)),
            (vec![0x5b], Op::Pop(RBX)),
            ret(),
        ],
        info: vec![1, 14, 5, 0x03, 14, 0x54, 7, 0, 14, 0x03, 10, 0x32, 6, 0x30],
    }
}

/// Allocates 0x200 bytes, and the codes state this number in a separate element. rdi is stored with a long
/// offset.
fn large() -> Function {
    Function {
        code: vec![
            (vec![0x48, 0x81, 0xec, 0, 2, 0, 0], Op::Add(-0x200)),
            (vec![0x48, 0x89, 0xbc, 0x24, 0xf8, 1, 0, 0], Op::Store(RDI, 0x1f8)),
            (vec![0x31, 0xff], Op::Lea(RDI, RDI, 9)),
            call(),
            (vec![0x48, 0x8b, 0xbc, 0x24, 0xf8, 1, 0, 0], Op::Load(RDI, 0x1f8)),
            (vec![0x48, 0x81, 0xc4, 0, 2, 0, 0], Op::Add(0x200)),
            ret(),
        ],
        info: vec![1, 15, 5, 0, 15, 0x75, 0xf8, 1, 0, 0, 7, 0x01, 0x40, 0],
    }
}

/// A leaf that no entry of the table describes.
fn leaf() -> Function {
    Function { code: vec![(vec![0x90], Op::Lea(0, 0, 1)), ret()], info: vec![1, 0, 0, 0] }
}

#[test]
fn all_instructions_have_their_callers() {
    check(&[pushes(), pushes(), leaf()]);
    check(&[frame_pointer(), frame_pointer(), pushes(), leaf()]);
    check(&[large(), frame_pointer(), large(), pushes()]);
}

#[test]
fn a_frame_register_that_rows_do_not_follow() {
    check(&[other_register(), leaf()]);
    // The registers that the outer frames need are saved by the inner ones.
    check(&[other_register(), pushes(), large(), pushes(), leaf()]);
    check(&[frame_pointer(), other_register(), frame_pointer(), other_register(), large(), pushes(), leaf()]);
}

#[test]
fn a_chained_function_has_its_parents_prologue() {
    // The second part of `pushes` is a separate function that pushes rbp and is chained to the first part.
    let Function { code, info } = pushes();
    let text: Vec<u8> = code.iter().flat_map(|(bytes, _)| bytes.clone()).collect();
    let parent = [TEXT, TEXT + 8, INFOS];
    let chained = [vec![0x21, 1, 1, 0, 1, 0x50, 0, 0], words(&parent)].concat();
    let infos = [info, vec![0, 0], chained].concat();
    let module = module(image(&text, &[parent, [TEXT + 8, TEXT + 0x18, INFOS + 12]], &infos));
    let mut thread = Thread::new();
    thread.push(0);
    thread.push(BASE + 0x1005);
    for (_, op) in &code[..4] {
        thread.run(*op);
    }
    let ip = BASE + u64::from(TEXT) + 8;
    assert_eq!(thread.walk(&module, ip).0, [ip, BASE + 0x1005]);
    thread.run(Op::Push(RBP));
    assert_eq!(thread.walk(&module, ip + 1).0, [ip + 1, BASE + 0x1005]);
}

#[test]
fn a_machine_frame_leads_to_what_was_interrupted() {
    for (code, error_code) in [(0x0a_u8, false), (0x1a, true)] {
        // The function of an interrupt, which has pushed rbx, and a function that it interrupted after its
        // first push.
        let infos = [vec![1, 1, 2, 0, 1, 0x30, 0, code], pushes().info].concat();
        let text: Vec<u8> = [vec![0x53; 0x10], vec![0x53, 0x57]].concat();
        let table = [[TEXT, TEXT + 0x10, INFOS], [TEXT + 0x10, TEXT + 0x12, INFOS + 8]];
        let module = module(image(&text, &table, &infos));
        let mut thread = Thread::new();
        thread.push(0);
        thread.run(Op::Push(RBX));
        let (interrupted_sp, interrupted_ip) = (thread.registers[RSP], BASE + u64::from(TEXT) + 0x11);
        for value in [0x2b, interrupted_sp, 0x246, 0x33, interrupted_ip] {
            thread.push(value);
        }
        if error_code {
            thread.push(0);
        }
        thread.run(Op::Push(RBX));
        let ip = BASE + u64::from(TEXT) + 8;
        assert_eq!(thread.walk(&module, ip), (vec![ip, interrupted_ip], WalkEnd::Root), "{error_code}");
    }
}

#[test]
fn damaged_infos_cost_their_function_alone() {
    let infos = [
        vec![1, 0, 0, 0],
        vec![7, 0, 0, 0],                   // an unknown version
        vec![1, 4, 1, 0, 4, 0x0b],          // an unknown code
        vec![0, 0, 1, 4, 1, 0, 4, 1, 0, 0], // a number that is cut off
    ]
    .concat();
    let table: Vec<_> = (0..6)
        .map(|number| {
            let start = TEXT + 0x10 * number;
            let info = [INFOS, INFOS + 4, INFOS + 8, INFOS + 16, 0x9000, INFOS - 4 + 1][number as usize];
            [start, start + 0x10, info]
        })
        .collect();
    let image = image(&[0x90; 0x80], &table, &infos);
    let module = Module::from_pe(&Pe::open(image).unwrap()).unwrap();
    assert_eq!(module.damage().count, 5, "{:?}", module.damage());
    let module = Arc::new(module);
    let mut thread = Thread::new();
    thread.push(0);
    assert_eq!(thread.walk(&module, BASE + 0x1004).1, WalkEnd::Root);
}

#[test]
fn a_chain_without_an_end_ends() {
    let circle = [vec![0x21, 0, 0, 0], words(&[TEXT, TEXT + 0x10, INFOS])].concat();
    let image = image(&[0x90; 0x20], &[[TEXT, TEXT + 0x10, INFOS]], &circle);
    let module = Arc::new(Module::from_pe(&Pe::open(image).unwrap()).unwrap());
    assert_eq!(module.damage().count, 1);
    let thread = Thread::new();
    assert!(matches!(thread.walk(&module, BASE + 0x1004).1, WalkEnd::Truncated(Reason::NoUnwindInfo)));
}
