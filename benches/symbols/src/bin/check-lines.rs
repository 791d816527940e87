//! Compares every function and line of programs by all compilers with other people's symbolizers. Each
//! difference must be on the list in `differences.txt`, with its reason.
//!
//! `check-lines [--verbose] [WORD]`: only the programs whose names contain the word.

use bench_symbols::fixtures::{self, Fixture};
use bench_symbols::{Chain, oracle, own_chain};
use nyquist_object::{ByteSource, Elf, FileSource, RelativeAddress, Svma};
use nyquist_symbols::{Finder, ModuleRequest, ModuleSymbols, SearchPaths};
use std::collections::BTreeMap;
use std::fs::File;
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

/// A difference that is known: which programs, which oracle, what kind, and the reason.
struct Known<'a> {
    program: &'a str,
    oracle: &'a str,
    kind: &'a str,
    /// The largest share of the addresses, in thousandths.
    at_most: usize,
}

fn main() -> ExitCode {
    let mut verbose = false;
    let mut word = String::new();
    for argument in std::env::args().skip(1) {
        if argument == "--verbose" { verbose = true } else { word = argument }
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let list = std::fs::read_to_string(here.join("differences.txt")).unwrap_or_default();
    let known: Vec<Known<'_>> = list.lines().filter_map(parse_known).collect();
    let (fixtures, missing) = fixtures::all();
    missing.iter().for_each(|tool| println!("skipped: {tool} is not installed"));
    let mut failed = false;
    for fixture in fixtures.iter().filter(|fixture| fixture.name.contains(&word)) {
        match check(fixture, here, verbose) {
            Ok(report) => failed |= !judge(fixture, &report, &known),
            Err(error) => {
                println!("{}: {error}", fixture.name);
                failed = true;
            }
        }
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// `PROGRAM ORACLE KIND PER-MILLE: reason`; a `*` at the end of a word stands for anything.
fn parse_known(line: &str) -> Option<Known<'_>> {
    let (head, _reason) = line.split_once(": ")?;
    let mut words = head.split_whitespace();
    Some(Known {
        program: words.next()?,
        oracle: words.next()?,
        kind: words.next()?,
        at_most: words.next()?.parse().ok()?,
    })
}

/// How many addresses of a program were compared, and how many differ, by oracle and kind.
#[derive(Default)]
struct Report {
    addresses: usize,
    differences: BTreeMap<(&'static str, &'static str), usize>,
}

fn judge(fixture: &Fixture, report: &Report, known: &[Known<'_>]) -> bool {
    let matches = |pattern: &str, text: &str| match pattern.strip_suffix('*') {
        Some(start) => text.starts_with(start),
        None => pattern == text,
    };
    let mut good = true;
    for ((oracle, kind), &count) in &report.differences {
        let share = (count * 1000).div_ceil(report.addresses);
        let listed = known.iter().any(|known| {
            matches(known.program, &fixture.name)
                && matches(known.oracle, oracle)
                && matches(known.kind, kind)
                && share <= known.at_most
        });
        let word = if listed { "known" } else { "NEW" };
        println!("{}: {word}: {oracle} {kind}: {count} of {} ({share} ‰)", fixture.name, report.addresses);
        good &= listed;
    }
    if report.differences.is_empty() {
        println!("{}: {} addresses equal", fixture.name, report.addresses);
    }
    good
}

fn check(fixture: &Fixture, here: &Path, verbose: bool) -> Result<Report, String> {
    let program = fixture.build(&here.join("fixtures"), &here.join("target/fixtures"))?;
    let file = File::open(&program).map_err(|error| error.to_string())?;
    let elf = Elf::open(FileSource::new(file)).map_err(|error| error.to_string())?;
    let addresses = code_addresses(&elf);
    let own = own_chains(&program, &elf, &addresses)?;
    let mut report = Report { addresses: addresses.len(), ..Report::default() };
    let oracles = [
        ("addr2line", oracle::addr2line(&program, &addresses)),
        ("llvm", oracle::llvm(&program, &addresses)),
    ];
    for (name, theirs) in oracles {
        let theirs = theirs?;
        let mut shown = 0;
        for ((own, theirs), address) in own.iter().zip(&theirs).zip(&addresses) {
            let Some(kind) = difference(own, theirs) else { continue };
            *report.differences.entry((name, kind)).or_default() += 1;
            shown += 1;
            if verbose && shown <= 12 {
                println!("{} {name} {kind} at {address:#x}:", fixture.name);
                own.iter().for_each(|frame| println!("    own    {frame}"));
                theirs.iter().for_each(|frame| println!("    {name:6} {frame}"));
            }
        }
    }
    Ok(report)
}

/// The first and every third address of all code.
fn code_addresses(elf: &Elf<impl ByteSource>) -> Vec<u64> {
    let sections = elf.sections().iter().filter(|section| section.is_code() && section.name == ".text");
    sections.flat_map(|section| (section.address.0..section.address.0 + section.size).step_by(3)).collect()
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
    let blank = |chain: &Chain| chain.iter().all(|frame| frame.file.is_none() && frame.line.is_none());
    if own == theirs {
        return None;
    }
    if blank(theirs) {
        return if blank(own) { None } else { Some("more") };
    }
    if blank(own) {
        return Some("less");
    }
    if own.len() != theirs.len() {
        return Some("depth");
    }
    let differ = |part: fn(&bench_symbols::PlainFrame) -> String| {
        own.iter().zip(theirs).any(|(own, theirs)| part(own) != part(theirs))
    };
    if differ(|frame| format!("{:?}", frame.line)) {
        Some("line")
    } else if differ(|frame| format!("{:?}", frame.file)) {
        Some("file")
    } else {
        Some("function")
    }
}
