//! The machine code of a function, from the binaries on this machine, with the weights of its instructions.

use crate::source_paths::DiskPaths;
use nyquist_analysis::{PlaceWeight, PlaceWeights};
use nyquist_input::module_request;
use nyquist_object::RelativeAddress;
use nyquist_profile::{LibId, NativeSymbolId, Profile};
use nyquist_symbols::{Attempt, Finder, MachineCode, MachineCodeError, folded_names};

/// The number of symbols that are disassembled, those with the most time first. A function may be inlined
/// into many.
const MAX_SYMBOLS: usize = 8;

/// A symbol with code of the annotated function.
#[derive(Clone, Debug)]
pub(super) struct Code {
    /// Its name.
    pub(super) name: String,
    /// Its other names: those of functions with the same code, which the linker has folded into one.
    pub(super) other_names: Vec<String>,
    /// Its lib.
    pub(super) lib: String,
    /// Its instructions, in order: those of the annotated function and of the functions that are inlined into
    /// it.
    pub(super) instructions: Vec<Instruction>,
}

/// An instruction.
#[derive(Clone, Debug)]
pub(super) struct Instruction {
    /// Its relative address.
    pub(super) address: u32,
    /// Its text.
    pub(super) text: String,
    /// Its source file and line, in the innermost inlined function.
    pub(super) place: Option<(String, u32)>,
    /// Its weight.
    pub(super) weight: PlaceWeight,
}

/// The code of the symbols of the places, and notes: other names of that code, and for other symbols the reason
/// why their code is not available.
pub(super) fn code(
    profile: &Profile,
    places: &PlaceWeights,
    functions: &[&str],
    finder: &Finder,
) -> (Vec<Code>, Vec<String>) {
    let (mut codes, mut missing) = (Vec::new(), Vec::new());
    for symbol in places.hottest_symbols().into_iter().take(MAX_SYMBOLS) {
        match of_symbol(profile, symbol, places, functions, finder) {
            Ok(code) => {
                missing.extend(folded(&code.name, &code.other_names));
                codes.push(code);
            }
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
    places: &PlaceWeights,
    functions: &[&str],
    finder: &Finder,
) -> Result<Code, String> {
    let symbol = profile.native_symbol(id);
    let lib = profile.lib(symbol.lib);
    let code = MachineCode::find(finder, &module_request(lib), RelativeAddress(symbol.address), symbol.size)
        .map_err(|error| format!("no instructions of {}: {}", lib.name, reason(&error)))?;
    let name = profile.string(symbol.name).to_owned();
    let other_names = folded_names(&name, &code.names);
    let instructions = instructions(code, symbol.lib, places, functions, functions.contains(&name.as_str()));
    Ok(Code { name, other_names, lib: lib.name.clone(), instructions })
}

/// Notes about the other names of the symbols of the places.
pub(super) fn folded_symbols(profile: &Profile, places: &PlaceWeights, finder: &Finder) -> Vec<String> {
    let hottest = places.hottest_symbols().into_iter().take(MAX_SYMBOLS);
    let note = |id: NativeSymbolId| {
        let symbol = profile.native_symbol(id);
        let (request, start) = (module_request(profile.lib(symbol.lib)), RelativeAddress(symbol.address));
        let name = profile.string(symbol.name);
        folded(name, &folded_names(name, &MachineCode::names_at(finder, &request, start)))
    };
    hottest.filter_map(note).collect()
}

/// A note about the other names of a symbol.
fn folded(name: &str, other_names: &[String]) -> Option<String> {
    /// The number of names that the note has.
    const MAX_NAMES: usize = 3;
    let named = other_names.iter().take(MAX_NAMES).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = match other_names.len().saturating_sub(MAX_NAMES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let text = || {
        format!("{name} has the same code as {named}{more}, at one address: samples may be of any of them")
    };
    (!other_names.is_empty()).then(text)
}

fn reason(error: &MachineCodeError) -> String {
    match error {
        MachineCodeError::NotFound(tried) => attempts_text(tried),
        other => other.to_string(),
    }
}

/// The unsuccessful attempts to find the binary.
fn attempts_text(tried: &[Attempt]) -> String {
    let attempts = tried.iter().take(3);
    let lines: Vec<_> =
        attempts.map(|attempt| format!("{}: {}", attempt.path.display(), attempt.outcome)).collect();
    if lines.is_empty() { "there is no file of it".to_owned() } else { lines.join("; ") }
}

/// The instructions of the annotated function: all of a symbol if that is the function itself.
fn instructions(
    code: MachineCode,
    lib: LibId,
    places: &PlaceWeights,
    functions: &[&str],
    is_whole: bool,
) -> Vec<Instruction> {
    // The paths in the form that the profile has.
    let disk_paths = DiskPaths::of_user();
    let path = |file: &str| disk_paths.path(file).unwrap_or_else(|| file.to_owned());
    let starts: Vec<_> = code.instructions.iter().map(|one| one.address.0).collect();
    let weights = places.by_instruction(lib, &starts, code.end.0);
    let weighed = code.instructions.into_iter().zip(weights);
    // An instruction with samples of the function belongs to it, whatever its place in the debug info.
    let of_function = weighed.filter(|(one, weight)| is_whole || one.is_of(functions) || weight.total > 0);
    let instructions = of_function.map(|(one, weight)| Instruction {
        address: one.address.0,
        place: one.place().map(|(file, line)| (path(file), line)),
        text: one.text,
        weight,
    });
    instructions.collect()
}
