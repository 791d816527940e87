//! The machine code of one function as text, with the debug info of each instruction.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

use nyquist_object::RelativeAddress;
use nyquist_resources::cpu_count;

use crate::answer::AddressInfo;
use crate::disassemble::{Disassembly, DisassemblyError};
use crate::find::{Attempt, Finder, ModuleRequest};
#[cfg(feature = "kernel")]
use crate::kernel::{KERNEL_LIB, KernelCode, KernelCodeError};
use crate::module::ModuleSymbols;

/// How many bytes of code are disassembled if a function's size is not known.
const UNKNOWN_SIZE: u32 = 256;

/// The machine code of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineCode {
    /// All names of the function, by the symbol tables. There are several if the linker has folded functions
    /// with the same code.
    pub names: BTreeSet<String>,
    /// Where the last instruction ends.
    pub end: RelativeAddress,
    /// The instructions in order.
    pub instructions: Vec<PlacedInstruction>,
}

/// An instruction, and its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedInstruction {
    /// Its address.
    pub address: RelativeAddress,
    /// Its text, in Intel syntax.
    pub text: String,
    /// The functions and lines that it was compiled from.
    pub info: AddressInfo,
}

/// Why the machine code of a function is not available.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MachineCodeError {
    /// No file with the code was found at these places.
    #[error("no file with the code was found")]
    NotFound(Vec<Attempt>),
    /// The code in the file cannot be disassembled.
    #[error(transparent)]
    Disassembly(#[from] DisassemblyError),
    /// The code of the running kernel is not available.
    #[cfg(feature = "kernel")]
    #[error(transparent)]
    Kernel(#[from] KernelCodeError),
}

impl MachineCode {
    /// Finds the module's files and disassembles the function that begins at `start`. If no file with the
    /// kernel's code is found, the code is read from the running kernel. Its instructions then have no lines.
    ///
    /// # Errors
    /// No file with the code was found, or its code cannot be read.
    pub fn find(
        finder: &Finder,
        request: &ModuleRequest,
        start: RelativeAddress,
        size: Option<u32>,
    ) -> Result<Self, MachineCodeError> {
        let size = size.unwrap_or(UNKNOWN_SIZE);
        let found = finder.find(request);
        let Ok(module) = finder.open(&found) else {
            #[cfg(feature = "kernel")]
            if request.debug_name == KERNEL_LIB {
                let code = KernelCode::open(request.id.as_ref())?.disassemble(start, size, false)?;
                return Ok(Self::new(&ModuleSymbols::default(), code));
            }
            return Err(MachineCodeError::NotFound(found.tried));
        };
        match module.disassemble(start, size, false) {
            Ok(code) => Ok(Self::new(&module, code)),
            Err(_) if found.binary.is_none() => Err(MachineCodeError::NotFound(found.tried)),
            Err(error) => Err(error.into()),
        }
    }

    /// All names of the function that begins at `start`, as [`MachineCode::names`] has them, without its code.
    /// None if no file of the module is found.
    pub fn names_at(finder: &Finder, request: &ModuleRequest, start: RelativeAddress) -> BTreeSet<String> {
        finder.open(&finder.find(request)).map(|module| module.names_at(start)).unwrap_or_default()
    }

    fn new(module: &ModuleSymbols, code: Disassembly) -> Self {
        let at = |offset| RelativeAddress(code.start.0.saturating_add(offset));
        let addresses: Vec<_> = code.instructions.iter().map(|one| at(one.offset)).collect();
        let infos = module.symbolicate(&addresses, cpu_count(), &AtomicBool::new(false));
        let end = at(code.size);
        let parts = code.instructions.into_iter().zip(addresses).zip(infos);
        let instructions =
            parts.map(|((one, address), info)| PlacedInstruction { address, text: one.text, info }).collect();
        Self { names: module.names_at(code.start), end, instructions }
    }
}

/// The names of a function that are not `name`: those of others whose code is the same, which the linker has
/// folded into one. Aliases, which differ in underscores, are not among them.
pub fn folded_names(name: &str, names: &BTreeSet<String>) -> Vec<String> {
    let plain = |name: &str| name.trim_start_matches('_').to_owned();
    names.iter().filter(|other| plain(other) != plain(name)).cloned().collect()
}

impl PlacedInstruction {
    /// The file and line of its innermost inlined function.
    pub fn place(&self) -> Option<(&str, u32)> {
        let innermost = self.info.frames.first()?;
        Some((innermost.file.as_deref()?, innermost.line?))
    }

    /// Whether it belongs to one of these functions, or to functions that are inlined into them.
    pub fn is_of(&self, functions: &[&str]) -> bool {
        let names = self.info.frames.iter().filter_map(|frame| frame.function.as_deref());
        names.into_iter().any(|name| functions.contains(&name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::{Origin, SourceFrame};
    use crate::find::SearchPaths;

    #[test]
    fn code_not_found_says_where_it_was_looked_for() {
        let request = ModuleRequest { path: "/proc/nonexistent/app".into(), ..ModuleRequest::default() };
        let finder = Finder::new(SearchPaths::default());
        let error = MachineCode::find(&finder, &request, RelativeAddress(0x1000), None).unwrap_err();
        let MachineCodeError::NotFound(tried) = error else { panic!("{error}") };
        assert!(tried.iter().any(|attempt| attempt.path == request.path), "{tried:?}");
    }

    #[test]
    fn code_is_of_all_functions_it_is_inlined_into() {
        let frame = |function: &str, file: &str, line| SourceFrame {
            function: Some(function.into()),
            file: Some(file.into()),
            line: Some(line),
            ..SourceFrame::default()
        };
        let frames = vec![frame("inner", "/b.h", 7), frame("outer", "/a.c", 3)];
        let info = AddressInfo { symbol: None, frames, origin: Origin::DebugInfo };
        let one = PlacedInstruction { address: RelativeAddress(1), text: "nop".into(), info };
        assert_eq!(one.place(), Some(("/b.h", 7)));
        assert!(one.is_of(&["outer"]) && one.is_of(&["x", "inner"]) && !one.is_of(&["main"]));
    }
}
