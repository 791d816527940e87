//! Checks that a probe is at the beginning of an instruction.

use nyquist_object::{ByteSource as _, Elf, FileSource, Svma};
use nyquist_symbols::instruction_around;

use super::function_symbols::Function;
use super::place_error::PlaceError;

/// The most code that is decoded for the probes of one file, whose owner chooses how many there are.
const MAX_CODE: u64 = 64 << 20;

/// The most bytes of an instruction, on any architecture.
const MAX_INSTRUCTION_LEN: u64 = 16;

/// Decodes code of a file. Inside an instruction, the kernel's breakpoint would change what the program does.
pub(super) struct InstructionCheck<'a> {
    elf: &'a Elf<FileSource>,
    /// The bytes of code that may still be decoded.
    left: u64,
}

impl<'a> InstructionCheck<'a> {
    pub(super) fn new(elf: &'a Elf<FileSource>) -> Self {
        Self { elf, left: MAX_CODE }
    }

    /// Checks that an instruction begins at an offset into a function. `name` is the function's.
    pub(super) fn check(&mut self, function: Function, into: u64, name: &str) -> Result<(), PlaceError> {
        if into == 0 {
            return Ok(());
        }
        if let Some(size) = function.size.filter(|size| into >= *size) {
            return Err(format!("the function has only {size} bytes").into());
        }
        let code = self.code(function.start, into);
        let found = code.and_then(|code| instruction_around(self.elf.architecture(), &code, into as u32));
        match found {
            Some(found) if u64::from(found.start) == into => Ok(()),
            Some(found) => {
                let nearest = [found.start, found.end].map(u64::from).into_iter();
                let nearest = nearest.filter(|offset| function.size.is_none_or(|size| *offset < size));
                Err(inside(name, nearest))
            }
            None => {
                let reason = "the code before it cannot be decoded, so it may be inside an instruction";
                Err(reason.to_owned().into())
            }
        }
    }

    /// The code from an address on, up to the end of an instruction at an offset.
    fn code(&mut self, start: Svma, into: u64) -> Option<Vec<u8>> {
        let requested = into.checked_add(MAX_INSTRUCTION_LEN)?;
        self.left = self.left.checked_sub(requested)?;
        let (offset, room) = self.elf.file_range(start)?;
        self.elf.source().read_range(offset.0, room.min(requested)).ok()
    }
}

fn inside(name: &str, nearest: impl Iterator<Item = u64>) -> PlaceError {
    let shown = |offset| if offset == 0 { name.to_owned() } else { format!("{name}+{offset:#x}") };
    let nearest: Vec<_> = nearest.map(shown).collect();
    let reason = "it is inside an instruction, which a probe would change".to_owned();
    let advice = Some(format!("the nearest instructions begin at {}", nearest.join(" and ")));
    PlaceError { reason, similar: Vec::new(), advice }
}
