//! Finds the epilogues in a function's code ("Epilog code").
//!
//! An epilogue frees the prologue's allocation, pops the pushed registers, and returns or jumps to another
//! function. The prologue's codes name these registers, so the instructions of the epilogue can be searched
//! for.

use super::frame::rule;
use super::info::{Operation, UnwindInfo};
use crate::rule::Rule;
use std::ops::Range;

/// The most registers that a function pushes: each once.
const MAX_POPS: usize = 16;

/// An instruction of an epilogue, and the number of words between the stack pointer and the return address
/// there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EpilogueInstruction {
    /// How far into the function it is.
    pub(super) offset: usize,
    pub(super) words: u8,
}

/// An epilogue: the instructions after the one that frees the allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Epilogue {
    pub(super) places: Vec<EpilogueInstruction>,
    /// The offset after the last instruction.
    pub(super) end: usize,
}

/// The instructions that a function's epilogues consist of.
pub(super) struct EpiloguePattern {
    /// The registers that are popped, by their numbers in instructions.
    pops: Vec<u8>,
    bytes: Vec<u8>,
    /// Whether an allocation has to be freed first.
    has_allocation: bool,
    /// The distances from the function's end at which epilogues begin, if the info states them, and the size
    /// of epilogues.
    declared: Vec<u32>,
    declared_size: u32,
}

impl EpiloguePattern {
    /// The pattern of a function's epilogues; `None` if the function never moves the stack pointer.
    pub(super) fn new(info: &UnwindInfo) -> Option<Self> {
        let pushes = info.steps.iter().rev().map_while(|step| match step.operation {
            Operation::Push(register) => Some(register),
            _ => None,
        });
        let mut pops: Vec<u8> = pushes.collect();
        pops.reverse();
        let mut bytes = Vec::with_capacity(2 * pops.len());
        for register in &pops {
            if register & 8 != 0 {
                bytes.push(0x41);
            }
            bytes.push(0x58 | register & 7);
        }
        let has_allocation = info.steps.iter().any(|step| matches!(step.operation, Operation::Allocate(_)));
        let (declared, declared_size) = (info.epilogues.clone(), info.epilogue_size);
        let moves = has_allocation || !pops.is_empty();
        (moves && pops.len() <= MAX_POPS).then_some(Self {
            pops,
            bytes,
            has_allocation,
            declared,
            declared_size,
        })
    }

    /// The epilogues in a function's code from the end of its prologue on, in order.
    pub(super) fn find(&self, code: &[u8], prologue: usize) -> Vec<Epilogue> {
        let mut found = Vec::new();
        let mut declared: Vec<_> =
            self.declared.iter().filter_map(|distance| code.len().checked_sub(*distance as usize)).collect();
        declared.sort_unstable();
        let mut at = prologue;
        while let Some(start) = self.next_candidate(code, at) {
            at = start + 1;
            let after_pops = start + self.bytes.len();
            let Some(len) = leaving_instruction(code, after_pops) else { continue };
            if self.is_declared(&declared, start) || !self.has_allocation || gives_back(code, prologue, start)
            {
                let end = after_pops + len;
                found.push(Epilogue { places: self.places(start), end });
                at = end;
            }
        }
        found
    }

    /// The next place with the pops. If nothing is popped, it is the next instruction that may leave the
    /// function.
    fn next_candidate(&self, code: &[u8], from: usize) -> Option<usize> {
        let rest = code.get(from..)?;
        let found = match self.bytes.first() {
            None => {
                rest.iter().position(|byte| matches!(byte, 0xc3 | 0xe9 | 0xeb | 0xf2 | 0xf3 | 0x48 | 0xff))
            }
            Some(first) => {
                let mut at = 0;
                loop {
                    at += rest.get(at..)?.iter().position(|byte| byte == first)?;
                    if rest.get(at..)?.starts_with(&self.bytes) {
                        break Some(at);
                    }
                    at += 1;
                }
            }
        };
        found.map(|at| from + at)
    }

    fn is_declared(&self, declared: &[usize], offset: usize) -> bool {
        let after = declared.partition_point(|start| *start <= offset);
        let start = after.checked_sub(1).and_then(|index| declared.get(index));
        start.is_some_and(|start| offset - start < self.declared_size as usize)
    }

    /// The rule if `words` words, which are the pushes that were not popped yet, are before the return
    /// address.
    pub(super) fn rule(&self, words: u8) -> Rule {
        let popped = self.pops.len().saturating_sub(words.into());
        let pending = self.pops.iter().skip(popped).map(|register| Operation::Push(*register));
        rule(None, pending)
    }

    fn places(&self, start: usize) -> Vec<EpilogueInstruction> {
        let mut places = vec![EpilogueInstruction { offset: start, words: self.pops.len() as u8 }];
        let mut offset = start;
        for (done, register) in (1..).zip(&self.pops) {
            offset += if register & 8 != 0 { 2 } else { 1 };
            places.push(EpilogueInstruction { offset, words: self.pops.len().saturating_sub(done) as u8 });
        }
        places
    }
}

/// The length of the instruction at `at`, if it leaves the function: a return, a jump out of the function, or
/// a jump through a register or a pointer in memory.
fn leaving_instruction(code: &[u8], at: usize) -> Option<usize> {
    let bytes = code.get(at..)?;
    let len = match bytes {
        [0xc3, ..] => 1,
        [0xf2 | 0xf3, 0xc3, ..] | [0xff, 0xe0..=0xe7, ..] => 2,
        [0x41 | 0x48 | 0x49, 0xff, 0xe0..=0xe7, ..] => 3,
        [0xeb, distance, ..] => jump(2, i64::from(*distance as i8), code, at)?,
        [0xe9, rest @ ..] => jump(5, i32::from_le_bytes(*rest.first_chunk()?).into(), code, at)?,
        [0xff, 0x25, _, _, _, _, ..] => 6,
        [0x48, 0xff, 0x25, _, _, _, _, ..] => 7,
        _ => return None,
    };
    Some(len)
}

/// The length of a jump by a distance, if that leads out of the function.
fn jump(len: usize, distance: i64, code: &[u8], at: usize) -> Option<usize> {
    let inside: Range<i64> = 1..code.len() as i64;
    (!inside.contains(&((at + len) as i64 + distance))).then_some(len)
}

/// Whether the instruction before `end` can be one that frees the allocation: `add rsp, n`, `lea rsp,
/// [register + n]`, `mov rsp, register`, or `pop` of a register that functions need not keep. After their
/// prefixes, additions and multiplications of vectors have the same opcodes as such a `pop`.
fn gives_back(code: &[u8], start: usize, end: usize) -> bool {
    let Some(before) = code.get(start..end) else { return false };
    let ends_with = |len: usize, test: fn(&[u8]) -> bool| {
        before.len().checked_sub(len).and_then(|at| before.get(at..)).is_some_and(test)
    };
    let is_arithmetic = ends_with(2, |bytes| bytes.starts_with(&[0x0f]))
        || ends_with(3, |bytes| bytes.starts_with(&[0xc5]))
        || ends_with(4, |bytes| bytes.starts_with(&[0xc4]));
    (ends_with(1, |bytes| matches!(bytes, [0x58..=0x5a])) && !is_arithmetic)
        || ends_with(4, |bytes| matches!(bytes, [0x48, 0x83, 0xc4, _] | [0x48 | 0x49, 0x8d, 0x60..=0x67, _]))
        || ends_with(5, |bytes| matches!(bytes, [0x49, 0x8d, 0x64, 0x24, _]))
        || ends_with(7, |bytes| {
            matches!(bytes, [0x48, 0x81, 0xc4, ..] | [0x48 | 0x49, 0x8d, 0xa0..=0xa7, ..])
        })
        || ends_with(8, |bytes| matches!(bytes, [0x49, 0x8d, 0xa4, 0x24, ..]))
        || ends_with(3, |bytes| {
            matches!(bytes, [0x48 | 0x49, 0x8b, 0xe0..=0xe7])
                || matches!(bytes, [0x48 | 0x4c, 0x89, modrm] if modrm & 0xc7 == 0xc4)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pe::x86_64::info::UnwindCode;

    fn check(pushes: &[u8], allocation: u32, code: &[&[u8]], expected: &[&[(usize, u8)]]) {
        let allocate = Some(Operation::Allocate(allocation)).filter(|_| allocation > 0);
        let operations =
            allocate.into_iter().chain(pushes.iter().rev().map(|&register| Operation::Push(register)));
        let steps = operations.map(|operation| UnwindCode { offset: 0, operation }).collect();
        let pattern = EpiloguePattern::new(&UnwindInfo { steps, ..UnwindInfo::default() }).unwrap();
        let found: Vec<Vec<_>> = pattern
            .find(&code.concat(), 0)
            .into_iter()
            .map(|epilogue| epilogue.places.iter().map(|place| (place.offset, place.words)).collect())
            .collect();
        assert_eq!(found, expected, "{code:x?}");
    }

    const ADD: &[u8] = &[0x48, 0x83, 0xc4, 0x28];
    const NOP: &[u8] = &[0x90];
    const RET: &[u8] = &[0xc3];

    #[test]
    fn an_epilogue_pops_what_was_pushed_and_returns() {
        // push r12; push rbx: pop rbx; pop r12; ret.
        let pops: &[u8] = &[0x5b, 0x41, 0x5c];
        check(&[12, 3], 0, &[NOP, pops, RET], &[&[(1, 2), (2, 1), (4, 0)]]);
        check(
            &[12, 3],
            0x28,
            &[ADD, pops, RET, NOP, ADD, pops, RET],
            &[&[(4, 2), (5, 1), (7, 0)], &[(13, 2), (14, 1), (16, 0)]],
        );
        check(&[12, 3], 0x28, &[NOP, pops, RET], &[]);
        check(&[12, 3], 0x28, &[ADD, pops, NOP], &[]);
    }

    #[test]
    fn without_pushes_an_epilogue_frees_and_returns() {
        check(&[], 0x28, &[ADD, RET], &[&[(4, 0)]]);
        check(&[], 0x28, &[NOP, ADD, &[0xf3, 0xc3]], &[&[(5, 0)]]);
        check(&[], 0x28, &[NOP, RET, ADD, NOP], &[]);
    }

    #[test]
    fn a_jump_ends_an_epilogue_if_it_leads_elsewhere() {
        check(&[3], 0, &[NOP, &[0x5b, 0xeb, 0x7f]], &[&[(1, 1), (2, 0)]]);
        check(&[3], 0, &[NOP, &[0x5b, 0xeb, 0x00], NOP, NOP], &[]);
        check(&[3], 0, &[NOP, &[0x5b, 0xe9, 0, 0, 1, 0]], &[&[(1, 1), (2, 0)]]);
        check(&[3], 0, &[&[0x5b, 0xff, 0x25, 0, 0, 0, 0]], &[&[(0, 1), (1, 0)]]);
        check(&[3], 0, &[&[0x5b, 0x48, 0xff, 0xe0]], &[&[(0, 1), (1, 0)]]);
        check(&[3], 0, &[&[0x5b, 0xe9, 0, 0]], &[]);
    }

    #[test]
    fn the_allocation_is_given_back_in_several_ways() {
        for way in [
            ADD,
            &[0x59],
            &[0x48, 0x81, 0xc4, 0, 1, 0, 0],
            &[0x48, 0x8d, 0x65, 0x20],
            &[0x48, 0x8d, 0xa5, 0, 1, 0, 0],
            &[0x49, 0x8d, 0x64, 0x24, 0x10],
            &[0x48, 0x89, 0xec],
            &[0x49, 0x8b, 0xe3],
        ] {
            check(&[5], 0x100, &[way, &[0x5d], RET], &[&[(way.len(), 1), (way.len() + 1, 0)]]);
        }
        check(&[5], 0x100, &[&[0x48, 0x83, 0xec, 0x28, 0x5d], RET], &[]);
    }

    #[test]
    fn arithmetic_with_vectors_gives_nothing_back() {
        // mulsd xmm0, xmm2; addsd xmm0, xmm1: no `pop rcx; ret 0xff2`. addsd xmm5, xmm1; vaddsd xmm5, xmm1,
        // xmm1.
        check(&[], 0x28, &[&[0xf2, 0x0f, 0x59, 0xc2, 0xf2, 0x0f, 0x58, 0xc1]], &[]);
        check(&[], 0x28, &[&[0xf2, 0x0f, 0x58, 0xe9, 0, 0, 0, 1]], &[]);
        check(&[], 0x28, &[&[0xc5, 0xf3, 0x58, 0xe9, 0, 0, 0, 1]], &[]);
    }

    #[test]
    fn a_frame_register_alone_gives_nothing_back() {
        let steps =
            [Operation::SetFrame, Operation::Push(5)].map(|operation| UnwindCode { offset: 0, operation });
        let pattern =
            EpiloguePattern::new(&UnwindInfo { steps: steps.to_vec(), ..UnwindInfo::default() }).unwrap();
        // mov eax, edx; pop rbp; ret
        let found = pattern.find(&[0x89, 0xd0, 0x5d, 0xc3], 0);
        assert_eq!(found.iter().map(|epilogue| epilogue.end).collect::<Vec<_>>(), [4]);
    }

    #[test]
    fn stated_epilogues_need_no_instruction_before() {
        let steps =
            [Operation::Allocate(8), Operation::Push(3)].map(|operation| UnwindCode { offset: 0, operation });
        let info = UnwindInfo {
            steps: steps.to_vec(),
            epilogues: vec![2],
            epilogue_size: 2,
            ..UnwindInfo::default()
        };
        let code = [0x90, 0x5b, 0xc3, 0x90, 0x5b, 0xc3];
        let found = EpiloguePattern::new(&info).unwrap().find(&code, 0);
        assert_eq!(found.iter().map(|epilogue| epilogue.end).collect::<Vec<_>>(), [6]);
    }

    #[test]
    fn nothing_is_read_past_the_end() {
        for code in [&[][..], &[0x5b], &[0x5b, 0xf3], &[0x5b, 0xc2, 0], &[0x5b, 0xeb], &[0x5b, 0xff]] {
            check(&[3], 0, &[code], &[]);
            check(&[], 8, &[code], &[]);
        }
    }
}
