//! The caller of a function that has left its return address in the link register, where that is not known: of a thread that is
//! observed while it waits in the kernel.
//!
//! The caller has saved its own return address in its frame, which begins where the function's ends. The call before that address
//! names the caller, and the caller's unwind information says how large its frame is and where the address is in it: where all of
//! this fits, it is the one. Call instructions that do not name what they call leave the caller unknown, and the frame record at the
//! bottom of its frame, where GCC puts it, leads on.

use super::instructions::{call_target, is_call};
use super::{Aarch64, Link};
use crate::StackMemory;
use crate::architecture::{Frame, LostCaller};
use crate::rule::Kind;
use crate::space::{Mapping, find};
use nyquist_object::{Avma, RelativeAddress};

/// How much of the stack is searched: only larger frames of the caller are missed.
const SEARCHED: u64 = 4 << 10;

/// The most that lies between two frame records that follow each other.
const LARGEST_FRAME: u64 = 1 << 20;

/// How many instructions of a function may pass before its frame is set up.
const LONGEST_PROLOGUE: u32 = 32;

/// Looks for the caller of a function whose frame ends at `cfa`.
pub(super) fn find_caller(
    cfa: u64,
    mappings: &[Mapping],
    memory: &impl StackMemory,
    address_bits: u64,
) -> Option<LostCaller<Aarch64>> {
    let places = (cfa..cfa.saturating_add(SEARCHED)).step_by(8);
    let mut records = places.map_while(|place| Record::read(place, memory, address_bits));
    let innermost = records.next()?;
    let named =
        std::iter::once(innermost).chain(records).find_map(|record| record.caller(cfa, mappings, memory));
    named.or_else(|| innermost.unnamed_caller(mappings, memory, address_bits))
}

/// Two words of the stack that can be a frame record (Procedure Call Standard for the Arm 64-bit Architecture, section 6.4.6).
#[derive(Clone, Copy)]
struct Record {
    place: u64,
    frame_pointer: u64,
    return_address: u64,
}

impl Record {
    fn read(place: u64, memory: &impl StackMemory, address_bits: u64) -> Option<Self> {
        let word = |address: u64| memory.read_u64(Avma(address));
        let (frame_pointer, return_address) = (word(place)?, word(place.checked_add(8)?)? & address_bits);
        Some(Self { place, frame_pointer, return_address })
    }

    /// The function that has made this record, if it can have called one whose frame ends at `cfa`.
    fn caller(
        &self,
        cfa: u64,
        mappings: &[Mapping],
        memory: &impl StackMemory,
    ) -> Option<LostCaller<Aarch64>> {
        let function = call_target(self.call(mappings, memory)?, self.return_address.wrapping_sub(4))?;
        let (size, saved) = layout(function, mappings)?;
        let end = cfa.checked_add_signed(size)?;
        let sp_is_known = Link { register: None, knows_stack_pointer: true };
        (end.checked_add_signed(saved)? == self.place.wrapping_add(8))
            .then(|| LostCaller { function: Some(Avma(function)), next: self.next(end, sp_is_known) })
    }

    /// The same where the call does not say which function it is of.
    fn unnamed_caller(
        &self,
        mappings: &[Mapping],
        memory: &impl StackMemory,
        address_bits: u64,
    ) -> Option<LostCaller<Aarch64>> {
        self.call(mappings, memory)?;
        let distance = self.frame_pointer.checked_sub(self.place)?;
        if distance == 0 || distance > LARGEST_FRAME || !self.frame_pointer.is_multiple_of(8) {
            return None;
        }
        let above = Self::read(self.frame_pointer, memory, address_bits)?;
        let leads_on = above.return_address == 0 || above.call(mappings, memory).is_some();
        let sp_is_unknown = Link { register: None, knows_stack_pointer: false };
        leads_on.then(|| LostCaller {
            function: None,
            next: self.next(self.place.wrapping_add(16), sp_is_unknown),
        })
    }

    /// The call instruction before the return address; `None` where it is not in code, or behind none.
    fn call(&self, mappings: &[Mapping], memory: &impl StackMemory) -> Option<u32> {
        let address = self.return_address.checked_sub(4).filter(|address| address.is_multiple_of(4))?;
        find(mappings, address)?;
        let mut code = [0; 4];
        let len = memory.read_code(Avma(address), &mut code);
        let word = u32::from_le_bytes(code);
        (len == code.len() && is_call(word)).then_some(word)
    }

    fn next(&self, sp: u64, link: Link) -> Frame<Aarch64> {
        Frame { ip: self.return_address, sp, fp: self.frame_pointer, link, interrupted: false }
    }
}

/// The size of a function's frame when it is set up, and where in it the return address is, from its end.
fn layout(function: u64, mappings: &[Mapping]) -> Option<(i64, i64)> {
    let mapping = find(mappings, function)?;
    let (module, start) = mapping.module().zip(mapping.relative(function))?;
    if module.offset_in_function(start)? != 0 {
        return None;
    }
    let (mut size, mut saved) = (0, None);
    for at in (0..LONGEST_PROLOGUE).map(|number| RelativeAddress(start.0.wrapping_add(4 * number))) {
        let offset = module.offset_in_function(at)?;
        let rule = module.rule(at);
        // A function that is shorter than that ends here.
        if offset != at.0.wrapping_sub(start.0)
            || !matches!(rule.kind(), Kind::StackPointer | Kind::FramePointer)
        {
            break;
        }
        if rule.kind() == Kind::StackPointer {
            size = size.max(rule.operand());
        }
        saved = saved.or(rule.saved_registers().return_address);
    }
    Some((size, saved?))
}
