//! Finds a way from an instruction to the return of its function, for code that is made at run time and whose
//! functions are not known.
//!
//! Compilers at run time such as HotSpot's use the frame pointer for other values. Their frames have one size
//! in all of the body of a function, so any way to its return shows where the return address is.

use super::instructions::{InstructionEffect, RBP, RSP, StackChanges, effect};
use super::length::{DecodedInstruction, OpcodeMap, decode};
use crate::rule::Rule;
use rustc_hash::FxHashSet;
use std::collections::VecDeque;

/// The most instructions that are looked at for one rule.
const MAX_INSTRUCTIONS: usize = 1024;

/// The rule for the instruction at `offset` of `code`, by the first way to a return. Ways with few calls are
/// tried first, because a call may not return, and then another function follows it.
///
/// `None` if no way leads to a return within the code. Looks at 1,024 instructions at most.
pub(super) fn rule_to_return(code: &[u8], offset: usize) -> Option<Rule> {
    let mut search =
        Search { code, seen: FxHashSet::default(), branches: Vec::new(), calls: VecDeque::new() };
    search.branches.push(Way { at: offset, stack: StackChanges::default(), at_call: None });
    loop {
        let way = search.branches.pop().or_else(|| search.calls.pop_front())?;
        if let Some(rule) = search.follow(way) {
            return Some(rule);
        }
    }
}

/// A place to go on from.
#[derive(Clone)]
struct Way {
    at: usize,
    stack: StackChanges,
    /// How far the stack pointer had risen at the last call, in words. `None` if there was no call.
    at_call: Option<i64>,
}

/// How the next instruction changes a way.
enum Step {
    /// It goes on behind the instruction.
    On,
    /// It goes on there as well, at a distance from the instruction's end.
    Branch(i64),
    /// It goes on there.
    Jump(i64),
    Call,
    /// It leaves the function by a frame of this rule, or by none that is known.
    Leaves(Option<Rule>),
}

/// The search for one return.
struct Search<'a> {
    code: &'a [u8],
    seen: FxHashSet<usize>,
    branches: Vec<Way>,
    calls: VecDeque<Way>,
}

impl Search<'_> {
    /// The rule at a return, without another call.
    fn follow(&mut self, mut way: Way) -> Option<Rule> {
        while self.seen.len() < MAX_INSTRUCTIONS && self.seen.insert(way.at) {
            let instruction = decode(self.code.get(way.at..)?)?;
            way.at += instruction.len;
            match way.step(&instruction) {
                Step::On => {}
                Step::Branch(distance) => {
                    let at = way.target(distance);
                    self.branches.extend(at.map(|at| Way { at, ..way.clone() }));
                }
                Step::Jump(distance) => match way.target(distance).filter(|at| *at < self.code.len()) {
                    Some(at) => way.at = at,
                    None => return way.stack.rule_of_tail_call(),
                },
                Step::Call => {
                    way.at_call = Some(way.stack.words());
                    self.calls.push_back(way);
                    return None;
                }
                Step::Leaves(rule) => return rule,
            }
        }
        None
    }
}

impl Way {
    fn target(&self, distance: i64) -> Option<usize> {
        self.at.checked_add_signed(isize::try_from(distance).ok()?)
    }

    fn step(&mut self, instruction: &DecodedInstruction) -> Step {
        if restores_from_frame_pointer(instruction) {
            return Step::Leaves(Some(Rule::FRAME_RECORD));
        }
        if let Some(step) = branch_or_call(instruction) {
            return step;
        }
        match effect(instruction, &mut self.stack) {
            Some(InstructionEffect::Next) if self.is_in_another_function() => Step::Leaves(None),
            Some(InstructionEffect::Next) => Step::On,
            Some(InstructionEffect::Jump(distance)) => Step::Jump(distance),
            Some(InstructionEffect::Return) => Step::Leaves(self.stack.rule(1)),
            Some(InstructionEffect::SetsFramePointer) if self.at_call.is_none() => {
                Step::Leaves(self.stack.rule_at_frame_pointer())
            }
            Some(InstructionEffect::SetsFramePointer) | None => Step::Leaves(None),
        }
    }

    /// Whether the stack has grown since a call. Between calls the frame has one size, so the call did not
    /// return, and this is the beginning of another function.
    fn is_in_another_function(&self) -> bool {
        self.at_call.is_some_and(|words| self.stack.words() < words)
    }
}

/// The step of a conditional branch or a call.
fn branch_or_call(instruction: &DecodedInstruction) -> Option<Step> {
    let operation = instruction.modrm.map(|modrm| modrm >> 3 & 7);
    match (instruction.map, instruction.opcode) {
        (OpcodeMap::One, 0x70..=0x7f | 0xe0..=0xe3) | (OpcodeMap::Two, 0x80..=0x8f) => {
            Some(Step::Branch(instruction.immediate))
        }
        (OpcodeMap::One, 0xe8) => Some(Step::Call),
        (OpcodeMap::One, 0xff) if operation == Some(2) => Some(Step::Call),
        _ => None,
    }
}

/// Whether an instruction takes the stack pointer from the frame pointer: `leave`, `mov rsp, rbp`, and `lea rsp,
/// [rbp + displacement]`. Then the frame pointer is one.
fn restores_from_frame_pointer(instruction: &DecodedInstruction) -> bool {
    if instruction.map != OpcodeMap::One {
        return false;
    }
    let Some(modrm) = instruction.modrm else { return instruction.opcode == 0xc9 };
    let (mode, reg, rm) = (modrm >> 6, modrm >> 3 & 7, modrm & 7);
    let (reg_extended, rm_extended) = (instruction.rex & 4 != 0, instruction.rex & 1 != 0);
    let is_plain = !reg_extended && !rm_extended;
    match instruction.opcode {
        0x8b => is_plain && mode == 3 && (reg, rm) == (RSP, RBP),
        0x89 => is_plain && mode == 3 && (reg, rm) == (RBP, RSP),
        0x8d => is_plain && matches!(mode, 1 | 2) && (reg, rm) == (RSP, RBP),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::{CfaKind, SavedFramePointer};

    fn by_sp(cfa: i32, saved: Option<i64>) -> Option<Rule> {
        match saved {
            None => Rule::new(CfaKind::StackPointer, cfa, SavedFramePointer::InRegister, 0),
            Some(offset) => Rule::new(CfaKind::StackPointer, cfa, SavedFramePointer::FromCfa, offset),
        }
    }

    /// A function as HotSpot compiles it:
    ///  0: mov [rsp - 0x14000], eax; 7: push rbp; 8: sub rsp, 0x20; 12: test eax, eax; 14: je 35; 16: call 0;
    /// 21: inc ebp; 23: cmp ebp, 9; 26: jl 16; 28: add rsp, 0x20; 32: pop rbp; 33: ret; 34: nop; 35: call 0;
    /// 40: hlt; 41: another function.
    const COMPILED: &[&[u8]] = &[
        &[0x89, 0x84, 0x24, 0x00, 0xc0, 0xfe, 0xff, 0x55, 0x48, 0x83, 0xec, 0x20],
        &[0x85, 0xc0, 0x74, 19, 0xe8, 0xeb, 0xff, 0xff, 0xff, 0xff, 0xc5, 0x83, 0xfd, 9, 0x7c, 0xf4],
        &[0x48, 0x83, 0xc4, 0x20, 0x5d, 0xc3, 0x90, 0xe8, 0xd8, 0xff, 0xff, 0xff, 0xf4],
        &[0x55, 0x48, 0x83, 0xec, 0x10, 0x48, 0x83, 0xc4, 0x10, 0x5d, 0xc3],
    ];

    #[test]
    fn a_function_with_calls_and_loops_has_one_frame() {
        let code = COMPILED.concat();
        let rule = |offset| rule_to_return(&code, offset);
        for offset in [12, 16, 21, 26, 28] {
            assert_eq!(rule(offset), by_sp(48, Some(-16)), "{offset}");
        }
        assert_eq!(rule(0), by_sp(8, None));
        assert_eq!(rule(8), by_sp(16, Some(-16)));
        assert_eq!(rule(32), by_sp(16, Some(-16)));
        assert_eq!(rule(33), by_sp(8, None));
        assert_eq!(rule(35), None, "the call does not return");
        assert_eq!(rule(41), by_sp(8, None));
    }

    #[test]
    fn a_jump_out_of_the_code_is_a_tail_call() {
        // nop; add rsp, 0x20; pop rbp; jmp far away. Without the frame pointer, it may be in the same function.
        let code = [0x90, 0x48, 0x83, 0xc4, 0x20, 0x5d, 0xe9, 0, 0, 0, 0x40];
        assert_eq!(rule_to_return(&code, 0), by_sp(48, Some(-16)));
        assert_eq!(rule_to_return(&code, 6), None);
    }

    #[test]
    fn no_other_function_is_behind_a_last_call() {
        // call rax; and a function: push rbp; sub rsp, 16; add rsp, 16; pop rbp; ret.
        let code = [&[0xff, 0xd0][..], COMPILED[3]].concat();
        assert_eq!(rule_to_return(&code, 0), None);
        // call rax; mov rsp, rbp; pop rbp; ret.
        let code = [0xff, 0xd0, 0x48, 0x89, 0xec, 0x5d, 0xc3];
        assert_eq!(rule_to_return(&code, 2), Some(Rule::FRAME_RECORD));
        assert_eq!(rule_to_return(&code, 0), Some(Rule::FRAME_RECORD));
    }

    #[test]
    fn a_search_ends() {
        // jmp to itself; jumps and branches out of the code; code that is cut off.
        for code in [&[0xeb, 0xfe][..], &[0xe9, 0, 0, 0, 0x7f], &[0x74, 0x80], &[0x48], &[]] {
            assert_eq!(rule_to_return(code, 0), None, "{code:?}");
        }
        let branches = [0x74, 0x7f].repeat(1 << 15);
        assert_eq!(rule_to_return(&branches, 0), None);
    }
}
