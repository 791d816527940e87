//! Whether and how the allocations of a program can be recorded: what its file says before it starts.

use std::ffi::{CString, OsStr};
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use nyquist_alloc::protocol::SECTION;
use nyquist_object::{Architecture, Elf, FileSource};
use thiserror::Error;

use super::preload::LibraryVariant;
use crate::linux::Command;
use crate::linux::privileges;
use crate::linux::sys::users;

/// The most bytes of a symbol table that is searched.
const MAX_SYMBOLS: u64 = 256 << 20;

/// The bytes of a symbol in a 64-bit file.
const SYMBOL: usize = 24;

/// How allocations are seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocationMethod {
    /// By a library that is preloaded into the program.
    Preloaded(LibraryVariant),
    /// By the program itself, whose allocator is wrapped.
    Wrapped,
}

/// Why the allocations of a program cannot be recorded.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoAllocations {
    /// It is linked statically.
    #[error("{0} is linked statically, so no library can be preloaded into it")]
    Static(String),
    /// It is for another processor.
    #[error("{0} is a program for another processor")]
    OtherProcessor(String),
    /// It gains privileges.
    #[error("{0} gains privileges when it is run, so its loader preloads nothing")]
    Privileged(String),
    /// It has its own allocator.
    #[error("{program} has an allocator of its own ({function}), which a preloaded library does not see")]
    OwnAllocator {
        /// The program.
        program: String,
        /// A function of the allocator.
        function: String,
    },
    /// It is built with a sanitizer, which replaces the allocator.
    #[error("{0} is built with a sanitizer, which replaces the allocator itself")]
    Sanitizer(String),
    /// Its file cannot be read.
    #[error("the file of {0} cannot be read, so it is not known how it allocates")]
    Unreadable(String),
}

/// How the allocations of a command can be recorded, as its program's file says.
pub fn allocation_method(command: &Command) -> Result<AllocationMethod, NoAllocations> {
    let name = command.program.to_string_lossy().into_owned();
    let candidates = command.candidates().unwrap_or_default();
    let user = command.run_as.as_ref().map_or_else(users::effective, |user| user.uid);
    match candidates.iter().find(|candidate| is_executable(&path_of(candidate))) {
        // The launch fails with its own message.
        None => Ok(AllocationMethod::Preloaded(LibraryVariant::Functions)),
        Some(program) => Ok(match method_of(program, name, user)? {
            AllocationMethod::Preloaded(_) if preloads_allocator(command) => {
                AllocationMethod::Preloaded(LibraryVariant::FunctionsAndOperators)
            }
            method => method,
        }),
    }
}

/// Whether an allocator is preloaded into the command, which may have operators of its own for C++.
fn preloads_allocator(command: &Command) -> bool {
    let preloaded = command.preloaded().unwrap_or_default();
    preloaded.as_bytes().split(|byte| b": ".contains(byte)).any(is_allocator)
}

/// Whether a library is an allocator, by its name or path.
fn is_allocator(library: &[u8]) -> bool {
    let name = library.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    ALLOCATOR_LIBRARIES.iter().any(|part| name.windows(part.len()).any(|window| window == *part))
}

fn method_of(program: &CString, name: String, user: u32) -> Result<AllocationMethod, NoAllocations> {
    let path = path_of(program);
    if privileges::gains_any(program, user) {
        return Err(NoAllocations::Privileged(name));
    }
    let Ok(file) = File::open(&path) else { return Err(NoAllocations::Unreadable(name)) };
    if let Some(interpreter) = interpreter_of(&file) {
        // The interpreter of a script is a program, and not another script.
        let file = File::open(&interpreter).map_err(|_| NoAllocations::Unreadable(name))?;
        return method_of_file(file, interpreter.to_string_lossy().into_owned());
    }
    method_of_file(file, name)
}

fn method_of_file(file: File, name: String) -> Result<AllocationMethod, NoAllocations> {
    let elf = Elf::open(FileSource::new(file)).ok();
    // What the kernel runs by other means is unknown.
    let Some(elf) = elf else { return Err(NoAllocations::Unreadable(name)) };
    let own = if cfg!(target_arch = "aarch64") { Architecture::Aarch64 } else { Architecture::X86_64 };
    if elf.architecture() != own || !elf.is_64_bit() {
        return Err(NoAllocations::OtherProcessor(name));
    }
    if elf.section(SECTION).is_some() {
        return Ok(AllocationMethod::Wrapped);
    }
    if elf.section(".interp").is_none() && !elf.sections().is_empty() {
        return Err(NoAllocations::Static(name));
    }
    for (symbols, names) in [(".dynsym", ".dynstr"), (".symtab", ".strtab")] {
        let is_exported = symbols == ".dynsym";
        match allocator_in(&elf, symbols, names, is_exported) {
            Some(Found::Sanitizer) => return Err(NoAllocations::Sanitizer(name)),
            Some(Found::Allocator(function)) => {
                return Err(NoAllocations::OwnAllocator { program: name, function });
            }
            None => {}
        }
    }
    let needed = elf.dynamic().ok().flatten().map(|dynamic| dynamic.needed).unwrap_or_default();
    Ok(AllocationMethod::Preloaded(if needed.iter().any(|library| is_allocator(library)) {
        LibraryVariant::FunctionsAndOperators
    } else {
        LibraryVariant::Functions
    }))
}

/// What a symbol table has that is in the way.
enum Found {
    Sanitizer,
    Allocator(String),
}

/// Functions of allocators that programs link in under names of their own.
const ALLOCATORS: [&[u8]; 7] =
    [b"_rjem_malloc", b"_rjem_mallocx", b"je_malloc", b"mi_malloc", b"tc_malloc", b"rpmalloc", b"sn_malloc"];

/// Parts of the names of shared libraries that are allocators: jemalloc, tcmalloc, mimalloc, tbbmalloc and others.
const ALLOCATOR_LIBRARIES: [&[u8]; 4] = [b"malloc", b"hoard", b"scudo", b"libmesh"];

/// Functions of sanitizers that replace the allocator.
const SANITIZERS: [&[u8]; 4] = [b"__asan_init", b"__msan_init", b"__tsan_init", b"__hwasan_init"];

fn allocator_in(elf: &Elf<FileSource>, symbols: &str, names: &str, is_exported: bool) -> Option<Found> {
    let table = |name| elf.section(name).filter(|section| section.size <= MAX_SYMBOLS);
    let symbols = elf.data(table(symbols)?).ok()?;
    let names = elf.data(table(names)?).ok()?;
    symbols.chunks_exact(SYMBOL).find_map(|symbol| {
        let start = u32::from_le_bytes(*symbol.first_chunk()?) as usize;
        let name = names.get(start..)?.split(|byte| *byte == 0).next()?;
        let is_defined = symbol.get(6..8)? != [0, 0];
        if SANITIZERS.contains(&name) {
            return Some(Found::Sanitizer);
        }
        let is_allocator = ALLOCATORS.contains(&name) || (name == b"malloc" && is_exported);
        (is_defined && is_allocator).then(|| Found::Allocator(String::from_utf8_lossy(name).into_owned()))
    })
}

/// The interpreter of a script.
fn interpreter_of(mut file: &File) -> Option<PathBuf> {
    let mut start = [0; 256];
    let len = file.read(&mut start).ok()?;
    let line = start.get(..len)?.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let path = line.trim_ascii().split(u8::is_ascii_whitespace).next()?;
    Some(PathBuf::from(OsStr::from_bytes(path)))
}

fn path_of(program: &CString) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(program.to_bytes()))
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|it| it.is_file() && it.mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_test_itself_can_be_recorded() {
        let program = CString::new(std::env::current_exe().unwrap().as_os_str().as_bytes()).unwrap();
        let plain = AllocationMethod::Preloaded(LibraryVariant::Functions);
        assert_eq!(method_of(&program, "test".into(), users::effective()), Ok(plain));
        assert_eq!(
            method_of(&CString::new("/nowhere").unwrap(), "x".into(), 0),
            Err(NoAllocations::Unreadable("x".into()))
        );
    }

    #[test]
    fn an_allocator_brings_operators() {
        let method = |preloaded: &str| {
            let program = std::env::current_exe().unwrap().into_os_string();
            let env = vec![("LD_PRELOAD".into(), preloaded.into())];
            allocation_method(&Command { program, env, ..Command::default() })
        };
        let with_operators = Ok(AllocationMethod::Preloaded(LibraryVariant::FunctionsAndOperators));
        for library in
            ["/usr/lib/libjemalloc.so.2", "libx.so libtcmalloc_minimal.so.4", "a.so:libmimalloc.so.2.0"]
        {
            assert_eq!(method(library), with_operators, "{library}");
        }
        for library in ["", "libstdc++.so.6", "/opt/malloc/libx.so"] {
            assert_eq!(
                method(library),
                Ok(AllocationMethod::Preloaded(LibraryVariant::Functions)),
                "{library}"
            );
        }
    }
}
