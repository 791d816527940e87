//! Compares every function, line and inlined call of a program of Windows with pdb-addr2line and `llvm-symbolizer`.
//! Each difference must be on the list in `differences.txt`, with its reason.
//!
//! `check-pdb [--verbose]` builds the fixture; `check-pdb [--verbose] /PATH`: an image that is there already.

use bench_symbols::{Chain, PlainFrame, fixtures, known, oracle, own_chain, plain_path};
use nyquist_object::{FileSource, Pe, RelativeAddress};
use nyquist_symbols::{Finder, ModuleRequest, ModuleSymbols, SearchPaths};
use std::collections::BTreeSet;
use std::fs::File;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::AtomicBool;

fn main() -> ExitCode {
    let mut verbose = false;
    let mut given = None;
    for argument in std::env::args().skip(1) {
        if argument == "--verbose" { verbose = true } else { given = Some(PathBuf::from(argument)) }
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let list = std::fs::read_to_string(here.join("differences.txt")).unwrap_or_default();
    let known: Vec<_> = list.lines().filter_map(known::parse).collect();
    let programs = match given {
        Some(path) => vec![("given".to_owned(), Ok(path))],
        None if !fixtures::has("clang") || !fixtures::has("lld-link") => {
            println!("skipped: clang or lld-link is not installed");
            return ExitCode::SUCCESS;
        }
        None => ["-O0", "-O1", "-O2", "-Os"].map(|level| (format!("pdb{level}"), build(here, level))).into(),
    };
    let with_llvm = oracle::has_llvm();
    let mut failed = false;
    for (name, program) in programs {
        match program.and_then(|program| check(&name, &program, verbose, with_llvm)) {
            Ok(report) => failed |= !known::judge(&name, &report, &known),
            Err(error) => {
                println!("{name}: {error}");
                failed = true;
            }
        }
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Compiles and links the fixture: two object files, one image, one PDB.
fn build(here: &Path, level: &str) -> Result<PathBuf, String> {
    let folder = here.join("target/fixtures").join(format!("windows{level}"));
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let run = |command: &mut Command| match command.current_dir(&folder).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{command:?}: {status}")),
        Err(error) => Err(format!("{command:?}: {error}")),
    };
    let target = "--target=x86_64-windows-msvc";
    for (source, object) in [("program.cc", "windows.obj"), ("more.c", "more.obj")] {
        let source = here.join("../../workloads/windows").join(source);
        run(Command::new("clang")
            .args([target, level, "-g", "-gcodeview", "-fno-rtti", "-c", "-o", object])
            .arg(source))?;
    }
    let link = ["/nodefaultlib", "/entry:mainCRTStartup", "/subsystem:console", "/debug", "/out:program.exe"];
    run(Command::new("lld-link").args(link).args(["windows.obj", "more.obj"]))?;
    Ok(folder.join("program.exe"))
}

fn check(name: &str, program: &Path, verbose: bool, with_llvm: bool) -> Result<known::Report, String> {
    let text = |error: &dyn std::error::Error| error.to_string();
    let pe = Pe::open(FileSource::new(File::open(program).map_err(|error| text(&error))?));
    let pe = pe.map_err(|error| text(&error))?;
    let addresses: Vec<u32> = pe
        .sections()
        .iter()
        .filter(|section| section.is_code())
        .flat_map(|section| section.address.0..section.address.0 + section.size())
        .collect();
    let request = ModuleRequest { path: program.to_owned(), ..ModuleRequest::default() };
    let found = Finder::new(SearchPaths::default()).find(&request);
    let pdb = found.debug_file.as_ref().ok_or("no PDB was found")?.path.clone();
    let symbols = ModuleSymbols::open(&found).map_err(|error| text(&error))?;
    let requested: Vec<_> = addresses.iter().map(|&address| RelativeAddress(address)).collect();
    let own = symbols.symbolicate(&requested, NonZeroUsize::MIN, &AtomicBool::new(false));
    let own: Vec<Chain> = own.iter().map(own_chain).collect();
    let svmas: Vec<u64> = addresses.iter().map(|&address| u64::from(address) + pe.image_base().0).collect();
    let mut report = known::Report { addresses: addresses.len(), ..known::Report::default() };
    let mut oracles = vec![("pdb-addr2line", pdb_addr2line(&pdb, &addresses)?)];
    if with_llvm {
        oracles.push(("llvm", oracle::llvm(program, &svmas)?));
    }
    let mut shown = BTreeSet::new();
    for (oracle, theirs) in oracles {
        for ((own, theirs), address) in own.iter().zip(&theirs).zip(&addresses) {
            let Some(kind) = difference(own, theirs, oracle == "llvm") else { continue };
            let count = report.differences.entry((oracle, kind)).or_default();
            *count += 1;
            // One of each function's.
            let function = own.first().and_then(|frame| frame.function.clone());
            if verbose && shown.insert((oracle, kind, function)) {
                println!("{name} {oracle} {kind} at {address:#x}:");
                own.iter().for_each(|frame| println!("    own    {frame}"));
                theirs.iter().for_each(|frame| println!("    {oracle:6} {frame}"));
            }
        }
    }
    Ok(report)
}

/// In what two answers differ, if they do. llvm-symbolizer names functions without their arguments.
fn difference(own: &Chain, theirs: &Chain, without_arguments: bool) -> Option<&'static str> {
    let name = |frame: &PlainFrame| {
        let name = frame.function.clone().unwrap_or_default();
        if without_arguments { name.split('(').next().unwrap_or_default().to_owned() } else { name }
    };
    if own.is_empty() != theirs.is_empty() {
        return Some(if theirs.is_empty() { "more" } else { "less" });
    }
    let has_line = |chain: &Chain| chain.iter().any(|frame| frame.line.is_some());
    if !has_line(own) && has_line(theirs) && own.len() == 1 {
        return Some("padding");
    }
    if own.len() != theirs.len() {
        return Some("depth");
    }
    let pairs = || own.iter().zip(theirs);
    if pairs().any(|(own, theirs)| name(own) != name(theirs)) {
        return Some("name");
    }
    if pairs().any(|(own, theirs)| own.line != theirs.line) {
        return Some("line");
    }
    pairs().any(|(own, theirs)| own.file != theirs.file).then_some("file")
}

fn pdb_addr2line(pdb: &Path, addresses: &[u32]) -> Result<Vec<Chain>, String> {
    let text = |error: &dyn std::error::Error| error.to_string();
    let file = File::open(pdb).map_err(|error| text(&error))?;
    let parsed = pdb_addr2line::pdb::PDB::open(file).map_err(|error| text(&error))?;
    let data = pdb_addr2line::ContextPdbData::try_from_pdb(parsed).map_err(|error| text(&error))?;
    let context = data.make_context().map_err(|error| text(&error))?;
    let chain = |&address: &u32| {
        let frames =
            context.find_frames(address).ok().flatten().map(|found| found.frames).unwrap_or_default();
        let frames = frames.iter().map(|frame| PlainFrame {
            function: frame.function.clone(),
            file: frame.file.as_ref().map(|file| plain_path(file)),
            line: frame.line,
        });
        frames.collect()
    };
    Ok(addresses.iter().map(chain).collect())
}
