//! Steps from a frame to its caller by the frame's rule.

use super::registers::{Aarch64, LinkState, REGISTERS};
use crate::architecture::{FrameRegisters, FullRegisters, UNKNOWN_FRAME_POINTER};
use crate::rule::{CfaKind, Rule, SavedRegisters};
use crate::{Reason, StackMemory};

/// Where the kernel saves the registers when it delivers a signal (`arch/arm64/kernel/signal.c`, `struct
/// rt_sigframe`). A `siginfo` of 128 bytes begins at the stack pointer of the signal frame, and a `ucontext`
/// follows it. The `ucontext` has 176 bytes and the fault's address, and then x0 to x30, the stack pointer
/// and the instruction pointer.
const SIGNAL_CONTEXT: u64 = 128 + 176 + 8;

/// The offset of the records of further state, which follow these.
const FURTHER_STATE: u64 = 128 + 176 + 288;

/// The header of the first record, which has the floating point registers: its magic number and its size
/// (`arch/arm64/include/uapi/asm/sigcontext.h`, `FPSIMD_MAGIC`).
const FLOATING_POINT_STATE: u64 = 0x0210_4650_8001;

/// The link of a caller, which has made a call.
const CALLER: LinkState = LinkState { register: None, knows_stack_pointer: true };

/// The caller of a frame whose rule only needs the tracked registers.
pub(super) fn apply(
    rule: Rule,
    frame: &FrameRegisters<Aarch64>,
    memory: &impl StackMemory,
    address_bits: u64,
) -> Result<FrameRegisters<Aarch64>, Reason> {
    let saved = rule.saved_registers();
    let cfa = match rule.kind() {
        CfaKind::StackPointer if frame.link.knows_stack_pointer => {
            frame.sp.wrapping_add_signed(rule.operand())
        }
        CfaKind::StackPointer => cfa_by_record(frame.fp, saved)?,
        CfaKind::FramePointer => frame.fp.wrapping_add_signed(rule.operand()),
        CfaKind::FrameRecord => return by_record(frame, memory, address_bits),
        _ => return Err(Reason::NoUnwindInfo),
    };
    // In an epilogue the rule can be stale: registers that are saved below the stack pointer have already
    // been restored.
    let place = |offset: i64| {
        let address = cfa.wrapping_add_signed(offset);
        (address >= frame.sp || !frame.link.knows_stack_pointer).then_some(address)
    };
    let return_address = match saved.return_address.and_then(place) {
        Some(address) => frame.read(address, memory)?,
        None => frame.link.register.ok_or(Reason::RegisterUnknown)?,
    };
    let fp = match saved.frame_pointer {
        Some(offset) => match place(offset) {
            Some(address) => frame.read_frame_pointer(address, memory)?,
            None if saved.return_address == Some(offset + 8) && place(offset + 8).is_some() => {
                below_stack_pointer(frame, memory)
            }
            None => frame.fp,
        },
        None => frame.fp,
    };
    Ok(FrameRegisters { ip: return_address & address_bits, sp: cfa, fp, link: CALLER, interrupted: false })
}

/// The caller's frame pointer in a frame of Go, whose return address is at the stack pointer. The frame
/// pointer is in the word below. A stack copy need not contain that word.
fn below_stack_pointer(frame: &FrameRegisters<Aarch64>, memory: &impl StackMemory) -> u64 {
    frame.read_frame_pointer(frame.sp.wrapping_sub(8), memory).unwrap_or(UNKNOWN_FRAME_POINTER)
}

/// The CFA of a frame whose stack pointer is not known, if it has a frame record. The frame pointer points to
/// the record (Procedure Call Standard for the Arm 64-bit Architecture, section 6.4.6), and the rule has the
/// record's offset from the CFA.
fn cfa_by_record(fp: u64, saved: SavedRegisters) -> Result<u64, Reason> {
    match (saved.frame_pointer, saved.return_address) {
        (Some(offset), Some(above)) if above == offset + 8 => Ok(fp.wrapping_sub(offset as u64)),
        _ => Err(Reason::RegisterUnknown),
    }
}

/// The caller by the frame record at the frame pointer, which leaves the stack pointer unknown.
fn by_record(
    frame: &FrameRegisters<Aarch64>,
    memory: &impl StackMemory,
    address_bits: u64,
) -> Result<FrameRegisters<Aarch64>, Reason> {
    let fp = frame.read_frame_pointer(frame.fp, memory)?;
    let return_address = frame.read(frame.fp.wrapping_add(8), memory)?;
    let link = LinkState { knows_stack_pointer: false, ..CALLER };
    let sp = frame.fp.wrapping_add(16);
    Ok(FrameRegisters { ip: return_address & address_bits, sp, fp, link, interrupted: false })
}

/// The registers that the kernel saved when it delivered a signal.
pub(super) fn signal_context(
    frame: &FrameRegisters<Aarch64>,
    memory: &impl StackMemory,
) -> Result<FullRegisters<Aarch64>, Reason> {
    let mut values = [0; REGISTERS];
    let saved = frame.sp.wrapping_add(SIGNAL_CONTEXT);
    for (value, number) in values.iter_mut().zip(0..) {
        *value = frame.read(saved.wrapping_add(8 * number), memory)?;
    }
    Ok(FullRegisters::all(values))
}

/// Whether the memory at the stack pointer is a signal frame of the kernel.
pub(super) fn is_signal_frame(frame: &FrameRegisters<Aarch64>, memory: &impl StackMemory) -> bool {
    let header = frame.read(frame.sp.wrapping_add(FURTHER_STATE), memory);
    frame.link.knows_stack_pointer && header == Ok(FLOATING_POINT_STATE)
}
