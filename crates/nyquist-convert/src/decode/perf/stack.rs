//! The registers and the call chains of samples, in the terms of the event model.

use crate::event::Registers;
use nyquist_object::Avma;
use nyquist_object::elf::Architecture;
use nyquist_perf::abi::{aarch64, context, x86};
use nyquist_perf::{Branches, RegisterAbi, WordList};

/// The registers of a sample, on a machine of this architecture.
pub(super) fn registers(
    registers: &nyquist_perf::Registers<'_>,
    architecture: Architecture,
) -> Option<Registers> {
    match (registers.abi?, architecture) {
        (RegisterAbi::Bits64, Architecture::X86_64) => x86_64_registers(registers),
        (RegisterAbi::Bits32, Architecture::X86_64 | Architecture::X86) => {
            Some(Registers::Bits32 { ip: registers.get(x86::IP)? as u32 })
        }
        (RegisterAbi::Bits64, Architecture::Aarch64) => aarch64_registers(registers),
        (RegisterAbi::Bits32, Architecture::Aarch64) => {
            Some(Registers::Bits32 { ip: registers.get(aarch64::PC)? as u32 })
        }
        _ => None,
    }
}

/// Perf's order to DWARF's.
fn x86_64_registers(registers: &nyquist_perf::Registers<'_>) -> Option<Registers> {
    const ORDER: [u32; 17] = [
        x86::AX,
        x86::DX,
        x86::CX,
        x86::BX,
        x86::SI,
        x86::DI,
        x86::BP,
        x86::SP,
        x86::R8,
        x86::R8 + 1,
        x86::R8 + 2,
        x86::R8 + 3,
        x86::R8 + 4,
        x86::R8 + 5,
        x86::R8 + 6,
        x86::R8 + 7,
        x86::IP,
    ];
    in_order(registers, ORDER).map(Registers::X86_64)
}

/// The two orders are the same: x0 to x30, the stack pointer, the instruction pointer.
fn aarch64_registers(registers: &nyquist_perf::Registers<'_>) -> Option<Registers> {
    in_order(registers, std::array::from_fn(|register| register as u32))
        .map(|values| Registers::Aarch64(Box::new(values)))
}

/// The registers' values in another order. Registers that were not captured are 0. `None` without a stack
/// pointer and an instruction pointer, because unwinding needs both.
fn in_order<const N: usize>(registers: &nyquist_perf::Registers<'_>, order: [u32; N]) -> Option<[u64; N]> {
    order.last().and_then(|ip| registers.get(*ip))?;
    Some(order.map(|register| registers.get(register).unwrap_or_default()))
}

/// The addresses of a call chain that follow the word `requested`, up to the next context.
pub(super) fn part_of_chain(chain: WordList<'_>, requested: u64) -> Vec<Avma> {
    let mut part = Vec::new();
    let mut current = None;
    for (place, word) in chain.iter().enumerate() {
        if word >= context::MAX {
            current = Some(word);
        } else if current == Some(requested) {
            // Mostly the part extends to the end of the chain.
            if part.is_empty() {
                part.reserve_exact(chain.len() - place);
            }
            part.push(Avma(word));
        }
    }
    part
}

/// The number (cookie) of the record that has the user's part of a call chain, if the sample does not have
/// it.
pub(crate) fn deferred_cookie(chain: WordList<'_>) -> Option<u64> {
    let mut words = chain.iter();
    words.find(|word| *word == context::USER_DEFERRED)?;
    words.next()
}

/// The user's part of a call chain.
pub(crate) fn user_part(chain: WordList<'_>) -> Vec<Avma> {
    part_of_chain(chain, context::USER)
}

/// The stack of calls that have not returned, as the hardware records it (`PERF_SAMPLE_BRANCH_CALL_STACK`):
/// the instruction pointer, then the call of each branch.
pub(super) fn branch_call_stack(branches: &Branches<'_>, ip: Option<Avma>) -> Vec<Avma> {
    let mut branches = branches.iter().peekable();
    let innermost = ip.or_else(|| branches.peek().map(|latest| Avma(latest.to)));
    // Callers are looked up one byte before their return addresses. One byte is added, so that the look-up
    // finds the call.
    let calls = branches.map(|branch| Avma(branch.from.wrapping_add(1)));
    innermost.into_iter().chain(calls).collect()
}
