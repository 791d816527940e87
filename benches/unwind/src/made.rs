//! A made-up module and stacks that only it determines: the same instructions run on every machine.

use nyquist_object::{Architecture, Avma};
use nyquist_unwind::{AddressSpace, Module, Registers, StackCopy};
use std::sync::Arc;

/// How many bytes of code each function has.
const FUNCTION: u32 = 128;

/// Where the code is in the made-up process, and where stacks begin.
const CODE: u64 = 0x10_0000;
const STACK: u64 = 0x7fff_0000_0000;

/// What is common to all functions: version 1, `zR`, factors of 1 and -8, return address in column 16, addresses
/// relative to where they stand; the CFA is at first 8 above the stack pointer, and the return address below it.
const CIE: [u8; 24] =
    [20, 0, 0, 0, 0, 0, 0, 0, 1, b'z', b'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0];

/// The bytes of a function's frame, from the stack pointer to the CFA, while its body runs.
fn frame_size(function: u32) -> u32 {
    48 + function % 13 * 16
}

/// Whether a function has a frame pointer.
fn has_frame_pointer(function: u32) -> bool {
    function.is_multiple_of(5)
}

/// The instructions of a function: pushes, a frame of its own, and all of that taken down again.
fn instructions(function: u32) -> Vec<u8> {
    let size = frame_size(function);
    // push rbp, push rbx
    let mut code = vec![0x41, 0x0e, 16, 0x86, 2, 0x41, 0x0e, 24, 0x83, 3];
    // sub rsp; or mov rbp, rsp
    let uleb = [(size & 0x7f | 0x80) as u8, (size >> 7) as u8];
    if has_frame_pointer(function) {
        code.extend([0x44, 0x0d, 6]);
    } else {
        code.extend([0x44, 0x0e, uleb[0], uleb[1]]);
    }
    // An early return: remember, take down, restore.
    code.extend([0x02, 40, 0x0a]);
    if has_frame_pointer(function) {
        code.extend([0x41, 0x0c, 7, 8]);
    } else {
        code.extend([0x44, 0x0e, 24, 0x41, 0x0e, 16, 0x41, 0x0e, 8]);
    }
    code.extend([0x41, 0x0b]);
    code
}

/// The section `.eh_frame` of a module of so many functions, as it stands behind their code.
pub fn eh_frame(functions: u32) -> Vec<u8> {
    let address = code_len(functions).next_multiple_of(8);
    let mut bytes = CIE.to_vec();
    for function in 0..functions {
        let start = bytes.len() as u32;
        let mut body = (start + 4).to_le_bytes().to_vec();
        body.extend((function * FUNCTION).wrapping_sub(address + start + 8).to_le_bytes());
        body.extend(FUNCTION.to_le_bytes());
        body.push(0);
        body.extend(instructions(function));
        body.resize(body.len().next_multiple_of(4), 0);
        bytes.extend((body.len() as u32).to_le_bytes());
        bytes.extend(body);
    }
    bytes
}

fn code_len(functions: u32) -> u32 {
    functions * FUNCTION
}

/// Compiles a module.
pub fn module(functions: u32, eh_frame: Vec<u8>) -> Module {
    Module::from_made_code(Architecture::X86_64, code_len(functions), eh_frame)
}

/// A stack in a process that has the module only.
pub struct Stack {
    bytes: Vec<u8>,
    registers: Registers,
}

impl Stack {
    /// Its memory.
    pub fn memory(&self) -> StackCopy<'_> {
        StackCopy { start: Avma(STACK), bytes: &self.bytes }
    }

    /// The registers of its innermost frame.
    pub fn registers(&self) -> &Registers {
        &self.registers
    }
}

/// A process with the module.
pub fn space(module: Module, functions: u32) -> AddressSpace {
    let mut space = AddressSpace::new();
    space.map(Avma(CODE), code_len(functions).into(), Avma(CODE), Arc::new(module));
    space
}

/// Stacks of so many frames each, of the first functions of the module in a mixed order. The last return address is
/// zero.
pub fn stacks(count: u32, frames: u32, functions: u32) -> Vec<Stack> {
    (0..count).map(|number| stack(number, frames, functions)).collect()
}

fn stack(number: u32, frames: u32, functions: u32) -> Stack {
    let function = |frame: u32| (number * frames + frame).wrapping_mul(0x9e37_79b1) % functions;
    let ip = |frame: u32| CODE + u64::from(function(frame) * FUNCTION) + 24 + u64::from(frame % 8);
    // The CFA is the same number of bytes above the frame pointer, or above the stack pointer, as rows say.
    let mut words: Vec<u64> = Vec::new();
    let mut saved_frame_pointers = Vec::new();
    for frame in 0..frames {
        let size = frame_size(function(frame)) as usize / 8;
        let cfa = words.len() + size;
        saved_frame_pointers.push((cfa - 2, cfa - 3, has_frame_pointer(function(frame))));
        words.resize(cfa, 0);
        words[cfa - 1] = if frame + 1 < frames { ip(frame + 1) } else { 0 };
    }
    // Each frame saves the frame pointer of the next one outwards that has one.
    let mut frame_pointer = 0;
    for &(slot, own, has) in saved_frame_pointers.iter().rev() {
        words[slot] = frame_pointer;
        if has {
            frame_pointer = STACK + own as u64 * 8;
        }
    }
    let mut registers = [0; 17];
    (registers[6], registers[7], registers[16]) = (frame_pointer, STACK, ip(0));
    let bytes = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    Stack { bytes, registers: Registers::X86_64(registers) }
}
