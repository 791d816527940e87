//! The program that copies what lies beyond the stack copies of samples, in the kernel at the moment of the sample.
//!
//! It reads memory of the sampled thread's own process, and only what the thread itself could read. Each copy is
//! bounded.

use std::os::fd::BorrowedFd;

use super::assembler::Comparison::{AtMost, Equal, Greater, NotEqual};
use super::assembler::Operand::{Constant, Of};
use super::assembler::Operation::{Add, And, Set, ShiftRight, Subtract, Xor};
use super::assembler::{Assembler, FRAME, R0, Register};
use crate::linux::arch;
use crate::linux::sys::bpf::Instruction;

/// The maps of the program.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProgramMaps<'a> {
    /// Where the copies go.
    pub(super) ring: BorrowedFd<'a>,
    /// The ends of the stacks of threads; [`NOTHING`] for a thread of which nothing is to be copied.
    pub(super) ends: BorrowedFd<'a>,
    /// The signal stacks of threads: the first address, the one behind the last, and where the interrupted code's
    /// stack pointer is saved.
    pub(super) signal_stacks: BorrowedFd<'a>,
}

/// The bytes before a copy: the time, the thread and its process, the stack pointer, the first address, and the length.
pub(super) const HEADER: i32 = 40;
/// In place of the end of a stack.
pub(super) const NOTHING: u64 = 0;
/// The same for a stack that is copied as far as is possible.
pub(super) const FAR: u64 = 1 << 62;
/// The most that is copied of a stack.
pub(super) const MAX_COPY: i32 = 2 << 20;
/// The most that is copied of a stack whose end is not known, because other memory may follow it.
const MAX_COPY_WITHOUT_END: i32 = 256 << 10;
/// The most that is copied of a stack that a signal handler on another stack has interrupted.
const MAX_INTERRUPTED: i32 = 64 << 10;
/// If the end of a stack is not known, no more is reserved than up to the first of these distances at which nothing can
/// be read, each with the place in the program that follows it.
const SIZES: [(i32, &str); 3] =
    [(32 << 10, "first size"), (128 << 10, "second size"), (512 << 10, "third size")];
/// The steps of copying: large ones, and small ones up to a page that cannot be read.
const LARGE_STEP: i32 = 32 << 10;
const SMALL_STEP: i32 = 4 << 10;
/// The kernel shortens its own copy by up to this, because a record is shorter than 64 kB.
const SHORTENED_BY: u32 = 2 << 10;

// The kernel's functions (`enum bpf_func_id`).
const MAP_LOOKUP: i32 = 1;
const TIME: i32 = 5;
const PROCESS_AND_THREAD: i32 = 14;
const READ_USER: i32 = 112;
const RING_QUERY: i32 = 134;
const CURRENT_TASK: i32 = 158;
const TASK_REGISTERS: i32 = 175;
const RING_RESERVE: i32 = 198;
const RING_SUBMIT: i32 = 199;
const RING_DISCARD: i32 = 200;
const RESERVED_PART: i32 = 203;

const R1: Register = Register(1);
const R2: Register = Register(2);
const R3: Register = Register(3);
const R4: Register = Register(4);
/// How much was copied.
const COPIED: Register = Register(6);
const STACK_POINTER: Register = Register(7);
/// The first address to copy.
const START: Register = Register(8);
/// How much is to be copied.
const SIZE: Register = Register(9);

// The program's memory, below its frame.
const THREAD_AT: i32 = -8;
const WORD_AT: i32 = -16;
const RESERVED_AT: i32 = -32;
const TIME_AT: i32 = -40;
const WAKE_AT: i32 = -48;

/// Whether the reader of the ring is woken (`BPF_RB_NO_WAKEUP`, `BPF_RB_FORCE_WAKEUP`).
const LEAVE_READER: i32 = 1;
const WAKE_READER: i32 = 2;

/// The program, for events whose samples have stack copies of this size. The ring has `ring_bytes`.
pub(super) fn assemble(maps: ProgramMaps<'_>, stack_bytes: u32, ring_bytes: u32) -> Vec<Instruction> {
    let mut code = Assembler::default();
    find_stack(&mut code, maps.signal_stacks, stack_bytes);
    find_size(&mut code, maps.ends);
    reserve(&mut code, maps.ring);
    copy(&mut code);
    submit(&mut code, maps.ring, ring_bytes);
    give_up(&mut code);
    code.place("end");
    // Any other result drops the sample.
    code.compute(Set, R0, Constant(1));
    code.exit();
    code.finish()
}

/// A pointer into the program's memory.
fn local(code: &mut Assembler, to: Register, at: i32) {
    code.compute(Set, to, Of(FRAME));
    code.compute(Add, to, Constant(at));
}

/// Finds the stack pointer of the interrupted program. Ends if nothing lies beyond the kernel's copy, which nearly all
/// stacks are shorter than.
fn find_stack(code: &mut Assembler, signal_stacks: BorrowedFd<'_>, stack_bytes: u32) {
    code.call(CURRENT_TASK);
    code.compute(Set, R1, Of(R0));
    code.call(TASK_REGISTERS);
    code.load(STACK_POINTER, (R0, arch::perf::STACK_POINTER_IN_KERNEL));
    // A thread of the kernel.
    code.jump_if((STACK_POINTER, Equal, Constant(0)), "end");
    find_interrupted(code, signal_stacks);
    code.compute(Set, START, Of(STACK_POINTER));
    code.compute(Add, START, Constant(stack_bytes.saturating_sub(SHORTENED_BY) as i32));
    probe(code, 0);
    code.jump_if((R0, NotEqual, Constant(0)), "end");
}

/// If the thread handles a signal on a stack of its own, what is copied is the stack that it has interrupted.
fn find_interrupted(code: &mut Assembler, signal_stacks: BorrowedFd<'_>) {
    code.call(PROCESS_AND_THREAD);
    code.store((FRAME, THREAD_AT as i16), R0);
    code.load_map(R1, signal_stacks);
    // The thread is in the lower half.
    local(code, R2, THREAD_AT);
    code.call(MAP_LOOKUP);
    code.jump_if((R0, Equal, Constant(0)), "usual stack");
    code.load(R1, (R0, 0));
    code.jump_if((R1, Greater, Of(STACK_POINTER)), "usual stack");
    code.load(R1, (R0, 8));
    code.jump_if((R1, AtMost, Of(STACK_POINTER)), "usual stack");
    code.load(R3, (R0, 16));
    local(code, R1, WORD_AT);
    code.compute(Set, R2, Constant(8));
    code.call(READ_USER);
    code.jump_if((R0, NotEqual, Constant(0)), "end");
    code.load(START, (FRAME, WORD_AT as i16));
    code.compute(Set, SIZE, Of(START));
    code.compute(Add, SIZE, Constant(MAX_INTERRUPTED));
    code.compute(Set, R1, Constant(LEAVE_READER));
    code.store((FRAME, WAKE_AT as i16), R1);
    code.jump("no end");
    code.place("usual stack");
}

/// Reads a word at a distance from the first address to copy.
fn probe(code: &mut Assembler, distance: i32) {
    local(code, R1, WORD_AT);
    code.compute(Set, R2, Constant(8));
    code.compute(Set, R3, Of(START));
    code.compute(Add, R3, Constant(distance));
    code.call(READ_USER);
}

/// Determines how much is to be copied, in whole pages.
fn find_size(code: &mut Assembler, ends: BorrowedFd<'_>) {
    code.compute(Set, SIZE, Of(START));
    code.compute(Add, SIZE, Constant(MAX_COPY_WITHOUT_END));
    code.compute(Set, R1, Constant(WAKE_READER));
    code.store((FRAME, WAKE_AT as i16), R1);
    code.load_map(R1, ends);
    local(code, R2, THREAD_AT);
    code.call(MAP_LOOKUP);
    code.jump_if((R0, Equal, Constant(0)), "no end");
    code.compute(Set, R1, Constant(LEAVE_READER));
    code.store((FRAME, WAKE_AT as i16), R1);
    code.load(R1, (R0, 0));
    code.jump_if((R1, Equal, Constant(NOTHING as i32)), "end");
    // The thread is on another stack.
    code.jump_if((R1, AtMost, Of(STACK_POINTER)), "no end");
    code.jump_if((R1, AtMost, Of(START)), "end");
    code.compute(Set, SIZE, Of(R1));
    code.compute(Set, R2, Of(R1));
    code.compute(ShiftRight, R2, Constant(FAR.ilog2() as i32));
    code.jump_if((R2, Equal, Constant(0)), "has end");
    code.compute(Set, SIZE, Of(START));
    code.compute(Add, SIZE, Constant(MAX_COPY));
    code.place("no end");
    guess_end(code);
    code.place("has end");
    code.compute(And, START, Constant(-SMALL_STEP));
    code.compute(Subtract, SIZE, Of(START));
    code.compute(Add, SIZE, Constant(SMALL_STEP - 1));
    code.compute(And, SIZE, Constant(-SMALL_STEP));
    code.jump_if((SIZE, AtMost, Constant(MAX_COPY)), "has size");
    code.compute(Set, SIZE, Constant(MAX_COPY));
    code.place("has size");
    forget_bounds(code);
}

/// Takes the time, and lets the kernel forget what it knows of the size but that it is not above the maximum. It would
/// prove the rest of the program for each way to a size, which takes 20 ms.
fn forget_bounds(code: &mut Assembler) {
    code.call(TIME);
    code.store((FRAME, TIME_AT as i16), R0);
    code.compute(Xor, SIZE, Of(R0));
    code.compute(Xor, SIZE, Of(R0));
    code.jump_if((SIZE, Greater, Constant(MAX_COPY)), "end");
}

/// Lowers the end of what is copied to what can be read.
fn guess_end(code: &mut Assembler) {
    for (distance, next) in SIZES {
        probe(code, distance);
        code.jump_if((R0, Equal, Constant(0)), next);
        code.compute(Set, R1, Of(START));
        code.compute(Add, R1, Constant(distance));
        code.jump_if((SIZE, AtMost, Of(R1)), "has end");
        code.compute(Set, SIZE, Of(R1));
        code.jump("has end");
        code.place(next);
    }
}

fn reserve(code: &mut Assembler, ring: BorrowedFd<'_>) {
    code.load_map(R1, ring);
    code.compute(Set, R2, Of(SIZE));
    code.compute(Add, R2, Constant(HEADER));
    code.compute(Set, R3, Constant(0));
    local(code, R4, RESERVED_AT);
    code.call(RING_RESERVE);
    code.jump_if((R0, NotEqual, Constant(0)), "discard");
    code.compute(Set, COPIED, Constant(0));
}

/// Copies in large steps. Where one fails, small ones leave zeros for the pages that cannot be read, such as those of
/// an array in a frame that were never used.
fn copy(code: &mut Assembler) {
    code.place("next");
    end_unless_left(code, LARGE_STEP, "rest");
    read(code, LARGE_STEP);
    code.jump_if((R0, NotEqual, Constant(0)), "small");
    code.compute(Add, COPIED, Constant(LARGE_STEP));
    code.jump("next");
    code.place("small");
    for _ in 0..LARGE_STEP / SMALL_STEP {
        read(code, SMALL_STEP);
        code.compute(Add, COPIED, Constant(SMALL_STEP));
    }
    code.jump("next");
    code.place("rest");
    for _ in 1..LARGE_STEP / SMALL_STEP {
        end_unless_left(code, SMALL_STEP, "copied");
        read(code, SMALL_STEP);
        code.compute(Add, COPIED, Constant(SMALL_STEP));
    }
    code.place("copied");
}

/// Jumps if less than this is left.
fn end_unless_left(code: &mut Assembler, len: i32, place: &'static str) {
    code.compute(Set, R1, Of(COPIED));
    code.compute(Add, R1, Constant(len));
    code.jump_if((R1, Greater, Of(SIZE)), place);
}

/// Reads the next bytes of the stack, or zeros.
fn read(code: &mut Assembler, len: i32) {
    part(code, COPIED, HEADER, len);
    code.jump_if((R0, Equal, Constant(0)), "copied");
    code.compute(Set, R1, Of(R0));
    code.compute(Set, R2, Constant(len));
    code.compute(Set, R3, Of(START));
    code.compute(Add, R3, Of(COPIED));
    code.call(READ_USER);
}

/// The address of a part of what was reserved.
fn part(code: &mut Assembler, offset: Register, more: i32, len: i32) {
    local(code, R1, RESERVED_AT);
    code.compute(Set, R2, Of(offset));
    code.compute(Add, R2, Constant(more));
    code.compute(Set, R3, Constant(len));
    code.call(RESERVED_PART);
}

/// Writes the header, and hands the copy over. Its reader is woken when a quarter of the ring is in use, and for the
/// first copy of a thread, whose stack's end it finds.
fn submit(code: &mut Assembler, ring: BorrowedFd<'_>, ring_bytes: u32) {
    local(code, R1, RESERVED_AT);
    code.compute(Set, R2, Constant(0));
    code.compute(Set, R3, Constant(HEADER));
    code.call(RESERVED_PART);
    code.jump_if((R0, Equal, Constant(0)), "discard");
    for (field, at) in [TIME_AT, THREAD_AT].into_iter().enumerate() {
        code.load(R1, (FRAME, at as i16));
        code.store((R0, 8 * field as i16), R1);
    }
    for (field, register) in [STACK_POINTER, START, COPIED].into_iter().enumerate() {
        code.store((R0, 8 * (2 + field as i16)), register);
    }
    code.load_map(R1, ring);
    // How much waits to be read.
    code.compute(Set, R2, Constant(0));
    code.call(RING_QUERY);
    code.compute(Set, R2, Constant(WAKE_READER));
    code.jump_if((R0, Greater, Constant(ring_bytes as i32 / 4)), "submit");
    code.load(R2, (FRAME, WAKE_AT as i16));
    code.place("submit");
    local(code, R1, RESERVED_AT);
    code.call(RING_SUBMIT);
    code.jump("end");
}

/// The kernel wants what was reserved, or not, to be given back. The sample's stack stays truncated.
fn give_up(code: &mut Assembler) {
    code.place("discard");
    local(code, R1, RESERVED_AT);
    code.compute(Set, R2, Constant(LEAVE_READER));
    code.call(RING_DISCARD);
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use super::*;
    use crate::linux::limits::has_capability;
    use crate::linux::sys::bpf::{self, MapKind};
    use crate::linux::sys::bpf_ring::BpfRing;

    /// The kernel proves that the program ends, and reads nothing but what it may.
    #[test]
    fn the_kernel_accepts_the_program() {
        if !has_capability(39) || !std::path::Path::new("/sys/kernel/btf/vmlinux").exists() {
            return;
        }
        let mut ring = BpfRing::new(1 << 20).unwrap();
        let ends = bpf::create_map(MapKind::LruHash, 4, 8, 16).unwrap();
        let signal_stacks = bpf::create_map(MapKind::LruHash, 4, 24, 16).unwrap();
        for stack_bytes in [1024, 32 << 10, 65_528] {
            let maps =
                ProgramMaps { ring: ring.as_fd(), ends: ends.as_fd(), signal_stacks: signal_stacks.as_fd() };
            bpf::load(&assemble(maps, stack_bytes, 1 << 20)).unwrap();
        }
        ring.take(|_| panic!("nothing was written"));
        for end in [NOTHING, FAR] {
            bpf::set(ends.as_fd(), 7, [end]).unwrap();
        }
        bpf::remove(ends.as_fd(), 7).unwrap();
        assert!(bpf::remove(ends.as_fd(), 7).is_err(), "it is gone");
    }
}
