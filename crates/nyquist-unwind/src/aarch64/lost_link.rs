//! Finds the caller of a function whose return address is in the link register, if that register is not
//! known. This is so for a thread that is observed while it waits in the kernel.
//!
//! The caller has saved its own return address in its frame, which begins where the function's frame ends.
//! The call before that address names the caller. The caller's unwind information states the size of its
//! frame, and the place of the address in it. If all of this is consistent, the caller is found. An indirect
//! call does not name its target, so the caller stays unknown. Then the frame record at the bottom of the
//! caller's frame, where GCC puts it, is used.

use super::instructions::{call_target, is_call};
use super::registers::{Aarch64, LinkState};
use crate::StackMemory;
use crate::architecture::{FrameRegisters, LostCaller};
use crate::rule::{CfaKind, Rule};
use crate::space::{CodeMappings, find};
use nyquist_object::{Avma, RelativeAddress};

/// How much of the stack is searched. Only callers with larger frames are missed.
const SEARCHED: u64 = 4 << 10;

/// The largest distance between two consecutive frame records.
const MAX_FRAME_BYTES: u64 = 1 << 20;

/// The most instructions of a function before its frame is set up.
const MAX_PROLOGUE_INSTRUCTIONS: u32 = 32;

/// Looks for the caller of an interrupted frame, if only the link register has its return address, and that
/// register is not known.
pub(crate) fn lost_caller(
    rule: Rule,
    frame: &FrameRegisters<Aarch64>,
    mappings: &CodeMappings,
    memory: &impl StackMemory,
    address_bits: u64,
) -> Option<LostCaller<Aarch64>> {
    let is_lost = rule.kind() == CfaKind::StackPointer && rule.saved_registers().return_address.is_none();
    let cfa = frame.sp.wrapping_add_signed(rule.operand());
    let is_lost = is_lost && frame.interrupted && frame.link.register.is_none();
    if is_lost { find_caller(cfa, mappings, memory, address_bits) } else { None }
}

/// Looks for the caller of a function whose frame ends at `cfa`.
fn find_caller(
    cfa: u64,
    mappings: &CodeMappings,
    memory: &impl StackMemory,
    address_bits: u64,
) -> Option<LostCaller<Aarch64>> {
    let places = (cfa..cfa.saturating_add(SEARCHED)).step_by(8);
    let mut records = places.map_while(|place| FrameRecord::read(place, memory, address_bits));
    let innermost = records.next()?;
    let named =
        std::iter::once(innermost).chain(records).find_map(|record| record.caller(cfa, mappings, memory));
    named.or_else(|| innermost.unnamed_caller(mappings, memory, address_bits))
}

/// Two words of the stack that can be a frame record (Procedure Call Standard for the Arm 64-bit
/// Architecture, section 6.4.6).
#[derive(Clone, Copy)]
struct FrameRecord {
    place: u64,
    frame_pointer: u64,
    return_address: u64,
}

impl FrameRecord {
    fn read(place: u64, memory: &impl StackMemory, address_bits: u64) -> Option<Self> {
        let word = |address: u64| memory.read_u64(Avma(address));
        let (frame_pointer, return_address) = (word(place)?, word(place.checked_add(8)?)? & address_bits);
        Some(Self { place, frame_pointer, return_address })
    }

    /// The function that has made this record, if it can have called one whose frame ends at `cfa`.
    fn caller(
        &self,
        cfa: u64,
        mappings: &CodeMappings,
        memory: &impl StackMemory,
    ) -> Option<LostCaller<Aarch64>> {
        let function = call_target(self.call(mappings, memory)?, self.return_address.wrapping_sub(4))?;
        let (size, saved) = layout(function, mappings)?;
        let end = cfa.checked_add_signed(size)?;
        let sp_is_known = LinkState { register: None, knows_stack_pointer: true };
        (end.checked_add_signed(saved)? == self.place.wrapping_add(8))
            .then(|| LostCaller { function: Some(Avma(function)), next: self.next(end, sp_is_known) })
    }

    /// The same for an indirect call, which does not name the function.
    fn unnamed_caller(
        &self,
        mappings: &CodeMappings,
        memory: &impl StackMemory,
        address_bits: u64,
    ) -> Option<LostCaller<Aarch64>> {
        self.call(mappings, memory)?;
        let distance = self.frame_pointer.checked_sub(self.place)?;
        if distance == 0 || distance > MAX_FRAME_BYTES || !self.frame_pointer.is_multiple_of(8) {
            return None;
        }
        let above = Self::read(self.frame_pointer, memory, address_bits)?;
        let leads_on = above.return_address == 0 || above.call(mappings, memory).is_some();
        let sp_is_unknown = LinkState { register: None, knows_stack_pointer: false };
        leads_on.then(|| LostCaller {
            function: None,
            next: self.next(self.place.wrapping_add(16), sp_is_unknown),
        })
    }

    /// The call instruction before the return address. `None` if the address is not in code, or does not
    /// follow a call.
    fn call(&self, mappings: &CodeMappings, memory: &impl StackMemory) -> Option<u32> {
        let address = self.return_address.checked_sub(4).filter(|address| address.is_multiple_of(4))?;
        find(mappings, address)?;
        let mut code = [0; 4];
        let len = memory.read_code(Avma(address), &mut code);
        let word = u32::from_le_bytes(code);
        (len == code.len() && is_call(word)).then_some(word)
    }

    fn next(&self, sp: u64, link: LinkState) -> FrameRegisters<Aarch64> {
        FrameRegisters { ip: self.return_address, sp, fp: self.frame_pointer, link, interrupted: false }
    }
}

/// The size of a function's frame when it is set up, and the offset of the return address from the frame's
/// end.
fn layout(function: u64, mappings: &CodeMappings) -> Option<(i64, i64)> {
    let mapping = find(mappings, function)?;
    let (module, start) = mapping.module().zip(mapping.relative(function))?;
    if module.offset_in_function(start)? != 0 {
        return None;
    }
    let (mut size, mut saved) = (0, None);
    for at in (0..MAX_PROLOGUE_INSTRUCTIONS).map(|number| RelativeAddress(start.0.wrapping_add(4 * number))) {
        let offset = module.offset_in_function(at)?;
        let rule = module.rule(at);
        // The end of a function that is shorter than a prologue.
        if offset != at.0.wrapping_sub(start.0)
            || !matches!(rule.kind(), CfaKind::StackPointer | CfaKind::FramePointer)
        {
            break;
        }
        if rule.kind() == CfaKind::StackPointer {
            size = size.max(rule.operand());
        }
        saved = saved.or(rule.saved_registers().return_address);
    }
    Some((size, saved?))
}
