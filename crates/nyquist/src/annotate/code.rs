//! The machine code of a function, from the binaries on this machine.

use super::places::{Address, Places, Weight};
use crate::input::module_request;
use crate::source_paths::DiskPaths;
use nyquist_object::RelativeAddress;
use nyquist_profile::{Lib, NativeSymbol, NativeSymbolId, Profile};
use nyquist_symbols::{Disassembly, Finder, Found, KERNEL_LIB, KernelCode, ModuleSymbols};
use std::num::NonZeroUsize;
use std::sync::atomic::AtomicBool;
use std::thread;

/// How much code is taken apart where a symbol's size is not known, in bytes.
const UNKNOWN_SIZE: u32 = 256;

/// How many machine functions are taken apart, those with the most time first: a function may be inlined into many.
const MOST_SYMBOLS: usize = 8;

/// A machine function that holds code of the annotated function.
#[derive(Clone, Debug)]
pub(super) struct Code {
    /// Its name.
    pub(super) name: String,
    /// The lib that it is in.
    pub(super) lib: String,
    /// Its instructions, in order: those of the annotated function and of what is inlined into it.
    pub(super) instructions: Vec<Instruction>,
}

/// An instruction.
#[derive(Clone, Debug)]
pub(super) struct Instruction {
    /// Its relative address.
    pub(super) address: u32,
    /// Its text.
    pub(super) text: String,
    /// The file and line that it was made of, of the innermost inlined function.
    pub(super) place: Option<(String, u32)>,
    /// What it takes.
    pub(super) weight: Weight,
}

/// The code of the symbols that the places are in, and why that of others cannot be had.
pub(super) fn code(
    profile: &Profile,
    places: &Places,
    functions: &[&str],
    finder: &Finder,
) -> (Vec<Code>, Vec<String>) {
    let mut symbols: Vec<_> = places.symbols.iter().collect();
    symbols.sort_by_key(|(_, weight)| std::cmp::Reverse((weight.own, weight.total)));
    let (mut codes, mut missing) = (Vec::new(), Vec::new());
    for (&symbol, _) in symbols.into_iter().take(MOST_SYMBOLS) {
        match of_symbol(profile, symbol, places, functions, finder) {
            Ok(code) => codes.push(code),
            Err(reason) => missing.push(reason),
        }
    }
    if places.symbols.is_empty() && places.function.total > 0 {
        missing.push("the profile does not say which machine code the function is in".to_owned());
    }
    missing.dedup();
    (codes, missing)
}

fn of_symbol(
    profile: &Profile,
    id: NativeSymbolId,
    places: &Places,
    functions: &[&str],
    finder: &Finder,
) -> Result<Code, String> {
    let symbol = profile.native_symbol(id);
    let lib = profile.lib(symbol.lib);
    let (module, disassembly) = disassemble(symbol, lib, finder)
        .map_err(|reason| format!("no instructions of {}: {reason}", lib.name))?;
    let name = profile.string(symbol.name).to_owned();
    let is_whole = functions.contains(&name.as_str());
    let mut instructions = instructions(&module, disassembly, symbol, places);
    if !is_whole {
        let is_of_function = of_functions(&module, &instructions, functions);
        let mut is_of_function = is_of_function.into_iter();
        // One that has samples of the function is its own, whatever the debug info says of where it begins.
        instructions.retain(|one| is_of_function.next().unwrap_or(false) || one.weight.total > 0);
    }
    Ok(Code { name, lib: lib.name.clone(), instructions })
}

/// The instructions of a symbol, and the file that they are in; that has nothing where they are out of the kernel's memory.
fn disassemble(
    symbol: &NativeSymbol,
    lib: &Lib,
    finder: &Finder,
) -> Result<(ModuleSymbols, Disassembly), String> {
    let request = module_request(lib);
    let (start, size) = (RelativeAddress(symbol.address), symbol.size.unwrap_or(UNKNOWN_SIZE));
    let found = finder.find(&request);
    let module = match finder.open(&found) {
        Ok(module) => module,
        Err(_) if lib.debug_name == KERNEL_LIB => {
            let code = KernelCode::open(request.id.as_ref());
            let code = code.and_then(|code| code.disassemble(start, size, false));
            return code.map(|code| (ModuleSymbols::default(), code)).map_err(|error| error.to_string());
        }
        Err(_) => return Err(told(&found)),
    };
    let disassembly = module.disassemble(start, size, false).map_err(|error| match &found.binary {
        None => told(&found),
        Some(_) => error.to_string(),
    })?;
    Ok((module, disassembly))
}

/// Where the binary was looked for in vain.
fn told(found: &Found) -> String {
    let attempts = found.tried.iter().take(3);
    let told: Vec<_> =
        attempts.map(|attempt| format!("{}: {}", attempt.path.display(), attempt.outcome)).collect();
    if told.is_empty() { "there is no file of it".to_owned() } else { told.join("; ") }
}

fn instructions(
    module: &ModuleSymbols,
    disassembly: Disassembly,
    symbol: &NativeSymbol,
    places: &Places,
) -> Vec<Instruction> {
    let start = disassembly.start.0;
    let addresses: Vec<_> = disassembly
        .instructions
        .iter()
        .map(|one| RelativeAddress(start.saturating_add(one.offset)))
        .collect();
    let threads = thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let infos = module.symbolicate(&addresses, threads, &AtomicBool::new(false));
    // As the profile has them.
    let disk_paths = DiskPaths::of_user();
    let place = |info: &nyquist_symbols::AddressInfo| {
        let innermost = info.frames.first()?;
        let file = innermost.file.as_deref()?;
        Some((disk_paths.path(file).unwrap_or_else(|| file.to_owned()), innermost.line?))
    };
    let parts = disassembly.instructions.into_iter().zip(&addresses).zip(&infos);
    let mut instructions: Vec<_> = parts
        .map(|((one, address), info)| Instruction {
            address: address.0,
            text: one.text,
            place: place(info),
            weight: Weight::default(),
        })
        .collect();
    add_weights(&mut instructions, symbol, start.saturating_add(disassembly.size), places);
    instructions
}

/// Gives each instruction what its addresses have: a caller's address is that of the last byte of its call.
fn add_weights(instructions: &mut [Instruction], symbol: &NativeSymbol, end: u32, places: &Places) {
    let at = |offset| Address { lib: symbol.lib, offset };
    let start = symbol.address;
    for (address, weight) in places.addresses.range(at(start)..at(end.max(start))) {
        let after = instructions.partition_point(|one| one.address <= address.offset);
        if let Some(instruction) = after.checked_sub(1).and_then(|index| instructions.get_mut(index)) {
            instruction.weight.own += weight.own;
            instruction.weight.total += weight.total;
        }
    }
}

/// Of each instruction, whether it is of one of the functions or of what is inlined into them.
fn of_functions(module: &ModuleSymbols, instructions: &[Instruction], functions: &[&str]) -> Vec<bool> {
    let addresses: Vec<_> = instructions.iter().map(|one| RelativeAddress(one.address)).collect();
    let threads = thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let infos = module.symbolicate(&addresses, threads, &AtomicBool::new(false));
    let is_named = |frame: &nyquist_symbols::Frame| {
        frame.function.as_ref().is_some_and(|name| functions.contains(&name.as_ref()))
    };
    infos.iter().map(|info| info.frames.iter().any(is_named)).collect()
}
