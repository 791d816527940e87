//! Compares every function and line of programs by all compilers with other people's symbolizers. Each
//! difference must be on the list in `differences.txt`, with its reason.
//!
//! `check-lines [--verbose] [WORD]`: only the programs whose names contain the word. `check-lines /PATH`: a program
//! that is there already.

use bench_symbols::fixtures;
use bench_symbols::known::{self, KnownDifference, Report};
use bench_symbols::{Chain, PlainFrame, oracle, own_chain};
use nyquist_object::elf::ElfSection;
use nyquist_object::{ByteSource, Elf, FileSource, RelativeAddress, Svma};
use nyquist_symbols::{Finder, ModuleRequest, ModuleSymbols, SearchPaths};
use std::fs::File;
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

fn main() -> ExitCode {
    let mut options = Options { verbose: false, with_llvm: oracle::has_llvm() };
    let mut word = String::new();
    for argument in std::env::args().skip(1) {
        if argument == "--verbose" { options.verbose = true } else { word = argument }
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let list = std::fs::read_to_string(here.join("differences.txt")).unwrap_or_default();
    let known: Vec<KnownDifference<'_>> = list.lines().filter_map(known::parse).collect();
    let mut failed = false;
    let reports = if word.starts_with('/') {
        vec![(word.clone(), check(&word, Path::new(&word), options))]
    } else {
        check_all(here, &word, options)
    };
    for (name, report) in &reports {
        match report {
            Ok(report) => failed |= !known::judge(name, report, &known),
            Err(error) => {
                println!("{name}: {error}");
                failed = true;
            }
        }
    }
    if reports.is_empty() {
        println!("there is no program to compare");
    }
    if failed || reports.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

#[derive(Clone, Copy)]
struct Options {
    verbose: bool,
    with_llvm: bool,
}

/// A program, and what came of comparing it.
type Checked = (String, Result<Report, String>);

/// Builds and compares the programs whose names contain the word, as many at a time as there are CPUs.
fn check_all(here: &Path, word: &str, options: Options) -> Vec<Checked> {
    let (mut fixtures, missing) = fixtures::all();
    missing.iter().for_each(|tool| println!("skipped: {tool} is not installed"));
    fixtures.retain(|fixture| fixture.name.contains(word));
    let next = AtomicUsize::new(0);
    let check_next = || {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let fixture = fixtures.get(number)?;
        let program = fixture.build(&here.join("fixtures"), &here.join("target/fixtures"));
        let report = program.and_then(|program| check(&fixture.name, &program, options));
        Some((number, (fixture.name.clone(), report)))
    };
    let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let mut checked: Vec<(usize, Checked)> = std::thread::scope(|scope| {
        let run = || std::iter::from_fn(check_next).collect::<Vec<_>>();
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a check panicked")).collect()
    });
    checked.sort_by_key(|(number, _)| *number);
    checked.into_iter().map(|(_, checked)| checked).collect()
}

fn check(name: &str, program: &Path, options: Options) -> Result<Report, String> {
    let file = File::open(program).map_err(|error| error.to_string())?;
    let elf = Elf::open(FileSource::new(file)).map_err(|error| error.to_string())?;
    let addresses = code_addresses(&elf);
    let own = own_chains(program, &elf, &addresses)?;
    let mut report = Report { addresses: addresses.len(), ..Report::default() };
    let mut oracles = vec![("addr2line", oracle::addr2line(program, &addresses)?)];
    if options.with_llvm {
        oracles.push(("llvm", oracle::llvm(program, &addresses)?));
    }
    for (oracle, theirs) in oracles {
        for ((own, theirs), address) in own.iter().zip(&theirs).zip(&addresses) {
            let Some(kind) = difference(own, theirs) else { continue };
            let count = report.differences.entry((oracle, kind)).or_default();
            *count += 1;
            if options.verbose && (*count == 1 || *count == 40) {
                println!("{name} {oracle} {kind} at {address:#x}:");
                own.iter().for_each(|frame| println!("    own    {frame}"));
                theirs.iter().for_each(|frame| println!("    {oracle:6} {frame}"));
            }
        }
    }
    Ok(report)
}

/// Every third address of the code of a small program, every eleventh of that of a large one.
fn code_addresses(elf: &Elf<impl ByteSource>) -> Vec<u64> {
    let sections = elf.sections().iter().filter(|section| section.is_code() && section.name == ".text");
    let addresses = |section: &ElfSection| {
        let step = if section.size < 64 << 10 { 3 } else { 11 };
        (section.address.0..section.address.0 + section.size).step_by(step)
    };
    sections.flat_map(addresses).collect()
}

fn own_chains(program: &Path, elf: &Elf<FileSource>, addresses: &[u64]) -> Result<Vec<Chain>, String> {
    let request = ModuleRequest { path: program.to_owned(), ..ModuleRequest::default() };
    let found = Finder::new(SearchPaths::default()).find(&request);
    let symbols = ModuleSymbols::open(&found).map_err(|error| error.to_string())?;
    let relative = |&address: &u64| RelativeAddress::from_svma(Svma(address), elf.image_base());
    let addresses: Vec<_> = addresses.iter().filter_map(relative).collect();
    let answers = symbols.symbolicate(&addresses, NonZeroUsize::MIN, &AtomicBool::new(false));
    Ok(answers.iter().map(own_chain).collect())
}

/// In what two answers differ, if they do.
fn difference(own: &Chain, theirs: &Chain) -> Option<&'static str> {
    let blank = |chain: &Chain| chain.iter().all(|frame| frame.line.is_none());
    match (blank(own), blank(theirs)) {
        (true, true) => return None,
        (false, true) => return Some("more"),
        (true, false) => return Some("less"),
        (false, false) => {}
    }
    if own.len() != theirs.len() {
        return Some("depth");
    }
    let kinds = own.iter().zip(theirs).filter_map(|(own, theirs)| frame_difference(own, theirs));
    kinds.min()
}

/// In what two frames differ; the worst comes first in the alphabet.
fn frame_difference(own: &PlainFrame, theirs: &PlainFrame) -> Option<&'static str> {
    if own.line != theirs.line {
        return Some("a-line");
    }
    if own.file != theirs.file {
        return Some("b-file");
    }
    let (Some(own), Some(theirs)) = (&own.function, &theirs.function) else {
        let kind = if own.function.is_some() { "d-nameless" } else { "c-own-nameless" };
        return (own.function != theirs.function).then_some(kind);
    };
    let plain = |name: &str| name.split(" [clone").next().unwrap_or_default().to_owned();
    let last = |name: &str| {
        let name = name.split(['(', '<']).next().unwrap_or_default().to_owned();
        name.rsplit("::").next().unwrap_or_default().to_owned()
    };
    if own == theirs {
        None
    } else if plain(own) == plain(theirs) {
        Some("f-clone")
    } else if own.strip_suffix(theirs.as_str()).is_some_and(|scope| scope.ends_with("::")) {
        Some("g-scope")
    } else if own.contains(&last(theirs)) || theirs.contains(&last(own)) {
        Some("e-short")
    } else {
        Some("c-function")
    }
}
