//! Walking a hostile stack over one module.

use std::sync::Arc;

use arbitrary::{Result, Unstructured};
use nyquist_object::{Architecture, Avma};
use nyquist_unwind::{AddressSpace, MAX_FRAMES, Module, Registers, StackCopy, StackMemory, Unwinder};

/// Where the module is mapped.
const BASE: u64 = 0x5555_0000_0000;
/// Where the stack is.
const STACK: u64 = 0x7ffc_0000_0000;

/// Walks with registers and a stack from `input`, and expects the walk to end within its bounds. A word that is
/// small stands for an address in the module, so that a mutation finds its code.
pub fn walk(
    architecture: Architecture,
    module: &Arc<Module>,
    size: u64,
    input: &mut Unstructured<'_>,
) -> Result<()> {
    let mut space = AddressSpace::new();
    space.map(Avma(BASE), size, Avma(BASE), Arc::clone(module));
    let registers = registers(architecture, input)?;
    let mut stack = Vec::new();
    while input.len() >= 4 {
        stack.extend(place(u64::from(input.arbitrary::<u32>()?)).to_le_bytes());
    }
    let memory = WithCalls(StackCopy { start: Avma(STACK), bytes: &stack });
    let mut frames = 0;
    Unwinder::new().walk(&space, &registers, &memory, &mut |_| frames += 1);
    assert!((1..=MAX_FRAMES).contains(&frames));
    Ok(())
}

/// A stack beside code in which each instruction calls another one near it, as 64-bit ARM does.
struct WithCalls<'a>(StackCopy<'a>);

impl StackMemory for WithCalls<'_> {
    fn read_u64(&self, address: Avma) -> Option<u64> {
        self.0.read_u64(address)
    }

    fn read_code(&self, address: Avma, out: &mut [u8]) -> usize {
        for (word, at) in out.chunks_mut(4).zip((address.0..).step_by(4)) {
            let call = 0x9400_0000 | (at as u32 & 0xfff) << 2;
            word.copy_from_slice(&call.to_le_bytes()[..word.len()]);
        }
        out.len()
    }
}

/// Registers of an architecture whose stack pointer is near the stack's start.
fn registers(architecture: Architecture, input: &mut Unstructured<'_>) -> Result<Registers> {
    let mut values = [0; 33];
    for value in &mut values {
        *value = place(u64::from(input.arbitrary::<u32>()?));
    }
    let sp = STACK + u64::from(input.arbitrary::<u8>()?);
    if architecture == Architecture::Aarch64 {
        values[31] = sp;
        // Of a thread that waits, little is known.
        let is_partial = values[0] & 1 != 0;
        let known = values[1] | 0b11 << 31;
        return Ok(if is_partial {
            Registers::Aarch64Partial { values, known }
        } else {
            Registers::Aarch64(values)
        });
    }
    values[7] = sp;
    Ok(Registers::X86_64(std::array::from_fn(|number| values[number])))
}

/// What 32 bits stand for: a place in the module, a place on the stack, or themselves, by their highest bits.
fn place(bits: u64) -> u64 {
    match bits >> 30 {
        0 => BASE + bits,
        1 => STACK + (bits & 0xffff),
        2 => bits & 0xffff,
        _ => bits << 32 | bits,
    }
}
