//! Places in programs and libraries that can be used as events: functions, and the probes that a program was
//! built with (USDT).

use nyquist_object::{Elf, FileSource, Svma};
use nyquist_symbols::demangle;

use super::closest::closest;
use super::function_name::{self, FunctionNameError};
use super::function_symbols::{FunctionRanges, FunctionSymbols};
use super::instruction_check::InstructionCheck;
use super::number::number;
use super::place_error::PlaceError;
use super::probed_file::ProbedFile;
use super::user_probes::{UserProbe, user_probes_of};

/// The kernel's structure has as many bits for the place of a counter.
const MAX_COUNTER_OFFSET: u64 = u32::MAX as u64;

/// A place in a file that the kernel counts (`uprobe`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The file in which the place was found.
    pub file: ProbedFile,
    /// The file offset of the instruction.
    pub offset: u64,
    /// The file offset of the counter that enables the probe in the program (USDT's semaphore); 0 if it has
    /// none.
    pub counter_offset: u64,
    /// Whether the function's return is counted.
    pub is_return: bool,
}

/// The place of a function: `NAME`, `NAME+OFFSET` into it, or `NAME%return` for its return. Checks each
/// symbol. The name may omit parameters and its first parts.
pub(super) fn function(file: &ProbedFile, text: &str) -> Result<Probe, PlaceError> {
    let elf = file.elf()?;
    let (text, is_return) = text.strip_suffix("%return").map_or((text, false), |text| (text, true));
    let (name, into) = match text.rsplit_once('+') {
        Some((name, into)) if number(into).is_some() => (name, number(into).unwrap_or(0)),
        _ => (text, 0),
    };
    if is_return && into != 0 {
        // The kernel replaces what it takes for the return address, which is there only at the beginning.
        return Err("a return has no offset".to_owned().into());
    }
    let symbols = FunctionSymbols::read(&elf)?;
    let found = function_name::find(symbols.iter(), name);
    let function = found.map_err(|unclear| unclear_name(file, &symbols, name, unclear))?;
    InstructionCheck::new(&elf).check(function, into, name)?;
    let offset = function.start.0.checked_add(into).and_then(|address| elf.file_range(Svma(address)));
    let (offset, _) = offset.ok_or_else(|| format!("`{name}` is nowhere in {}", file.path().display()))?;
    Ok(Probe { file: file.clone(), offset: offset.0, counter_offset: 0, is_return })
}

fn unclear_name(
    file: &ProbedFile,
    symbols: &FunctionSymbols,
    name: &str,
    unclear: FunctionNameError,
) -> PlaceError {
    let path = file.path().display();
    match unclear {
        FunctionNameError::Missing => PlaceError {
            reason: format!("{path} has no function `{name}`"),
            similar: closest(name, symbols.iter().map(|(symbol, _)| demangle(&symbol).into_owned())),
            advice: None,
        },
        FunctionNameError::Several(named, more) => {
            let more = if more > 0 { format!(", and {more} more") } else { String::new() };
            format!("{path} has several functions `{name}`: {}{more}", named.join(", ")).into()
        }
        FunctionNameError::TooLong => {
            format!("the names of the functions of {path} are too long; only a whole symbol is found there")
                .into()
        }
    }
}

/// The places of a probe that a program was built with; several can have the same name.
pub(super) fn user_probe(file: &ProbedFile, provider: &str, name: &str) -> Result<Vec<Probe>, PlaceError> {
    let elf = file.elf()?;
    let all = user_probes_of(&elf);
    let requested: Vec<_> =
        all.iter().filter(|probe| probe.provider == provider && probe.name == name).collect();
    if requested.is_empty() {
        let names = all.iter().map(|probe| format!("{}:{}", probe.provider, probe.name));
        return Err(PlaceError {
            reason: format!("{} has no probe `{provider}:{name}`", file.path().display()),
            similar: closest(&format!("{provider}:{name}"), names),
            advice: None,
        });
    }
    let mut places = UserProbePlaces::new(file, &elf);
    let places = requested.into_iter().filter_map(|probe| places.of(probe).transpose());
    let places = places.collect::<Result<Vec<_>, _>>()?;
    if places.is_empty() {
        return Err(format!("the probe is nowhere in {}", file.path().display()).into());
    }
    Ok(places)
}

/// All probes that a program was built with, in file order, with the places of those that can be counted.
pub(super) fn user_probes(file: &ProbedFile) -> Vec<(UserProbe, Option<Probe>)> {
    let Ok(elf) = file.elf() else { return Vec::new() };
    let mut places = UserProbePlaces::new(file, &elf);
    let placed = |probe| {
        let place = places.of(&probe).ok().flatten();
        (probe, place)
    };
    user_probes_of(&elf).into_iter().map(placed).collect()
}

/// Finds the places of the probes of one file.
struct UserProbePlaces<'a> {
    file: &'a ProbedFile,
    elf: &'a Elf<FileSource>,
    functions: FunctionRanges,
    check: InstructionCheck<'a>,
}

impl<'a> UserProbePlaces<'a> {
    fn new(file: &'a ProbedFile, elf: &'a Elf<FileSource>) -> Self {
        // Without symbols it is not known where instructions begin.
        let functions = FunctionSymbols::read(elf).unwrap_or_default().ranges();
        Self { file, elf, functions, check: InstructionCheck::new(elf) }
    }

    /// The place of a probe; `None` if it is not in the file.
    fn of(&mut self, probe: &UserProbe) -> Result<Option<Probe>, PlaceError> {
        if let Some(function) = self.functions.around(probe.address) {
            let into = probe.address.0 - function.start.0;
            self.check.check(function, into, "the function")?;
        }
        let Some((offset, _)) = self.elf.file_range(probe.address) else { return Ok(None) };
        let counter = probe.counter.and_then(|counter| self.elf.file_range(counter));
        let counter_offset = counter.map_or(0, |(offset, _)| offset.0);
        if counter_offset > MAX_COUNTER_OFFSET {
            return Err("its counter is beyond the first 4 GiB of the file".to_owned().into());
        }
        Ok(Some(Probe { file: self.file.clone(), offset: offset.0, counter_offset, is_return: false }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library() -> Option<ProbedFile> {
        ProbedFile::named("libc").map(Result::unwrap)
    }

    #[test]
    fn a_function_of_the_c_library_is_found() {
        let Some(library) = library() else { return };
        let malloc = function(&library, "malloc").unwrap();
        assert!(malloc.offset > 0 && !malloc.is_return && malloc.counter_offset == 0, "{malloc:?}");
        assert!(function(&library, "malloc%return").unwrap().is_return);
        let missing = function(&library, "no_such_function").unwrap_err();
        assert!(missing.reason.contains("no function"), "{missing:?}");
        let missing = function(&library, "malocl").unwrap_err();
        assert!(missing.similar.iter().any(|name| name == "malloc"), "{missing:?}");
    }

    #[test]
    fn a_place_inside_an_instruction_is_refused() {
        let Some(library) = library() else { return };
        let start = function(&library, "malloc").unwrap().offset;
        let (mut placed, mut refused) = (0, 0);
        for into in 1..40 {
            match function(&library, &format!("malloc+{into}")) {
                Ok(probe) => {
                    placed += 1;
                    assert_eq!(probe.offset, start + into);
                }
                Err(error) => {
                    refused += 1;
                    let advice = error.advice.unwrap();
                    let nearest = advice.split_ascii_whitespace().filter(|word| word.starts_with("malloc"));
                    assert!(nearest.clone().all(|text| function(&library, text).is_ok()), "{advice}");
                    assert!(nearest.count() > 0, "{advice}");
                }
            }
        }
        assert!(placed > 3 && refused > 3, "{placed} placed, {refused} refused");
        for (text, reason) in [("malloc+0x7fffffff", "only"), ("malloc+4%return", "no offset")] {
            let error = function(&library, text).unwrap_err();
            assert!(error.reason.contains(reason), "{text}: {error:?}");
        }
    }
}
