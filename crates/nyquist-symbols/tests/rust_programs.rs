//! Programs of the Rust compiler with debug info of every kind that it writes. A known chain of inlined calls
//! must be found with its lines, wherever that debug info is.

use nyquist_object::{Elf, FileSource, RelativeAddress, Svma};
use nyquist_symbols::{Finder, ModuleRequest, ModuleSymbols, Origin, SearchPaths};
use std::collections::BTreeSet;
use std::fs;
use std::fs::File;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

const SOURCE: &str = "\
use std::hint::black_box;

mod inner {
    #[inline(always)]
    pub fn innermost<T: Into<u64>>(value: T) -> u64 {
        std::hint::black_box(value.into() / std::hint::black_box(3))
    }
}

#[inline(always)]
fn middle(value: u32) -> u64 {
    inner::innermost(value) + 1
}

#[inline(never)]
pub fn outer(value: u32) -> u64 {
    black_box(middle(value)) + 2
}

fn main() {
    println!(\"{}\", outer(black_box(7)));
}
";

/// The functions and lines, from inside to outside.
const CHAIN: [(&str, u32); 3] =
    [("program::inner::innermost", 6), ("program::middle", 12), ("program::outer", 17)];

/// Builds the program in an empty folder with the given options.
fn build(name: &str, options: &[&str]) -> PathBuf {
    build_source(name, SOURCE, options)
}

fn build_source(name: &str, source: &str, options: &[&str]) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("nyquist-rust-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("program.rs"), source).unwrap();
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = Command::new(rustc);
    command.args(["--edition=2024", "program.rs"]).args(options).current_dir(&folder);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    folder.join("program")
}

fn open(path: &Path) -> ModuleSymbols {
    let request = ModuleRequest { path: path.to_owned(), ..ModuleRequest::default() };
    ModuleSymbols::open(&Finder::new(SearchPaths::default()).find(&request)).unwrap()
}

fn code(path: &Path) -> Vec<RelativeAddress> {
    let elf = Elf::open(FileSource::new(File::open(path).unwrap())).unwrap();
    let text = elf.section(".text").unwrap();
    let addresses = (text.address.0..text.address.0 + text.size).step_by(4);
    addresses.filter_map(|address| RelativeAddress::from_svma(Svma(address), elf.image_base())).collect()
}

/// Whether any address of the program has the known chain.
fn has_chain(path: &Path) -> bool {
    let (symbols, addresses) = (open(path), code(path));
    let answers = symbols.symbolicate(&addresses, NonZeroUsize::MIN, &AtomicBool::new(false));
    answers.iter().any(|info| {
        let frames = info.frames.iter().filter_map(|frame| {
            assert!(frame.file.as_deref().is_none_or(|file| file.starts_with('/')), "{frame:?}");
            Some((frame.function.as_deref()?, frame.line?))
        });
        info.frames.len() == CHAIN.len()
            && frames.zip(CHAIN).all(|(found, expected)| {
                // The v0 mangling shows generic arguments.
                found.1 == expected.1 && found.0.starts_with(expected.0)
            })
    })
}

fn check(name: &str, options: &[&str]) {
    let program = build(name, options);
    assert!(has_chain(&program), "{name}");
    fs::remove_dir_all(program.parent().unwrap()).unwrap();
}

#[test]
fn unoptimised_programs_have_inlined_calls() {
    check("debug", &["-g"]);
}

#[test]
fn optimised_programs_have_inlined_calls() {
    check("release", &["-g", "-Copt-level=3"]);
}

/// A function whose linkage name is its plain name has no linkage name in the debug info.
#[test]
fn exported_functions_are_qualified() {
    let exported = "#[unsafe(no_mangle)]\n    #[inline(never)]\n    pub extern \"C\" fn";
    let source = SOURCE
        .replace("#[inline(always)]\n    pub fn innermost<T: Into<u64>>", &format!("{exported} innermost"))
        .replace("value: T", "value: u32")
        .replace("value.into()", "u64::from(value)");
    for (name, options) in [("exported", &["-O", "-g"][..]), ("exported-lto", &["-O", "-g", "-Clto=fat"])] {
        let program = build_source(name, &source, options);
        let (symbols, addresses) = (open(&program), code(&program));
        let answers = symbols.symbolicate(&addresses, NonZeroUsize::MIN, &AtomicBool::new(false));
        let frames = answers.iter().flat_map(|info| &info.frames);
        let names: BTreeSet<_> = frames.filter_map(|frame| frame.function.as_deref()).collect();
        let of_it: Vec<_> = names.into_iter().filter(|name| name.ends_with("innermost")).collect();
        assert_eq!(of_it, ["program::inner::innermost"], "{name}");
        fs::remove_dir_all(program.parent().unwrap()).unwrap();
    }
}

#[test]
fn every_version_of_dwarf_has_inlined_calls() {
    for version in ["2", "3", "4", "5"] {
        check(&format!("dwarf{version}"), &["-g", "-O", &format!("-Cdwarf-version={version}")]);
    }
}

#[test]
fn merged_units_have_inlined_calls() {
    check("lto", &["-g", "-O", "-Clto=fat"]);
}

#[test]
fn split_units_have_inlined_calls() {
    for (version, kind) in [("4", "unpacked"), ("5", "unpacked"), ("5", "packed")] {
        let name = format!("split-{version}-{kind}");
        let (version, kind) = (format!("-Cdwarf-version={version}"), format!("-Csplit-debuginfo={kind}"));
        check(&name, &["-g", "-O", "-Csave-temps", &version, &kind]);
    }
}

#[test]
fn a_split_unit_that_is_gone_leaves_the_symbols() {
    let program = build("split-gone", &["-g", "-O", "-Csave-temps", "-Csplit-debuginfo=unpacked"]);
    assert!(has_chain(&program));
    for entry in fs::read_dir(program.parent().unwrap()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "dwo") {
            fs::remove_file(path).unwrap();
        }
    }
    let (symbols, addresses) = (open(&program), code(&program));
    let answers = symbols.symbolicate(&addresses, NonZeroUsize::MIN, &AtomicBool::new(false));
    let outer = answers.iter().find(|info| {
        info.frames.last().and_then(|frame| frame.function.as_deref()) == Some("program::outer")
    });
    // The skeleton still has the lines.
    assert_eq!(outer.unwrap().origin, Origin::DebugInfo);
    fs::remove_dir_all(program.parent().unwrap()).unwrap();
}

#[test]
fn a_stripped_program_has_marked_stand_in_names() {
    let program = build("stripped", &["-O", "-Cstrip=symbols"]);
    let (symbols, addresses) = (open(&program), code(&program));
    let answers = symbols.symbolicate(&addresses, NonZeroUsize::MIN, &AtomicBool::new(false));
    let stand_ins: Vec<_> = answers.iter().filter(|info| info.origin == Origin::UnwindInfo).collect();
    assert!(stand_ins.len() * 10 > answers.len() * 9, "{} of {}", stand_ins.len(), answers.len());
    for info in stand_ins {
        let symbol = info.symbol.as_ref().unwrap();
        let name = format!("fun_{:x}", symbol.address.0);
        assert!(*symbol.name == *name || &*symbol.name == "_start", "{symbol:?}");
        assert_eq!(info.frames.len(), 1);
        assert_eq!(info.frames[0].line, None);
    }
    assert!(answers.iter().all(|info| !matches!(info.origin, Origin::DebugInfo | Origin::SymbolTable)));
    fs::remove_dir_all(program.parent().unwrap()).unwrap();
}
