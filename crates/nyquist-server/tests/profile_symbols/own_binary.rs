//! A real binary with debug info that exists on every machine: this test itself.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::PathBuf;

use nyquist_object::{
    Avma, Elf, FileIdentity, FileOffset, FileSource, MappedModule, ModuleId, RelativeAddress,
};
use nyquist_profile::{Lib, Meta, ProfileBuilder};
use nyquist_server::{AssemblyRequest, LibKey, ProfileSymbols, SourceRequest, SymbolSource as _};
use nyquist_symbols::{Finder, SourceFiles, special_source_path};

/// This test as a lib of a profile without symbols and sources.
struct OwnBinary {
    symbols: ProfileSymbols,
    key: LibKey,
    base: Avma,
}

impl OwnBinary {
    fn new() -> Self {
        let path = std::env::current_exe().unwrap();
        let elf = Elf::open(FileSource::new(File::open(&path).unwrap())).unwrap();
        let lib = lib(&path.to_string_lossy(), &elf);
        let key = LibKey { debug_name: lib.debug_name.clone(), breakpad_id: lib.breakpad_id.clone() };
        let mut builder = ProfileBuilder::new(Meta::default());
        builder.add_lib(lib);
        let symbols = ProfileSymbols::new(&builder.finish(), Finder::default(), SourceFiles::default());
        Self { symbols, key, base: image_base(&path, &elf) }
    }

    /// The start of a function.
    fn address_of(&self, function: fn(u64) -> u64) -> RelativeAddress {
        RelativeAddress::from_avma(Avma(function as usize as u64), self.base).unwrap()
    }
}

/// A file without a build id is identified by a hash of its code, as in a recording.
fn lib(path: &str, elf: &Elf<FileSource>) -> Lib {
    let identity =
        || FileIdentity { device: 0, inode: 0, size: 0, modified_ns: 0, text_hash: elf.text_hash().unwrap() };
    let id = elf.build_id().map_or_else(|| ModuleId::File(identity()), ModuleId::BuildId);
    Lib {
        debug_name: "own".to_owned(),
        path: path.to_owned(),
        breakpad_id: id.debug_id().breakpad(),
        code_id: id.code_id(),
        ..Lib::default()
    }
}

/// Finds the executable mapping of this test's file.
fn image_base(path: &std::path::Path, elf: &Elf<FileSource>) -> Avma {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let is_code = |line: &&str| line.contains(" r-xp ") && line.ends_with(path.to_str().unwrap());
    let fields: Vec<&str> = maps.lines().find(is_code).unwrap().split([' ', '-']).collect();
    let hex = |digits| u64::from_str_radix(digits, 16).unwrap();
    // The permissions contain a `-` too: `r-xp` is the fields 2 and 3.
    let (start, end, offset) = (hex(fields[0]), hex(fields[1]), hex(fields[4]));
    let (start, offset) = (Avma(start), FileOffset(offset));
    MappedModule::from_mapping(elf.segments(), elf.image_base(), start, offset, end - start.0).unwrap().base
}

#[inline(never)]
fn a_function_to_be_found(n: u64) -> u64 {
    std::hint::black_box(n).rotate_left(7)
}

#[test]
fn this_tests_function_has_name_file_and_line() {
    let own = OwnBinary::new();
    let start = own.address_of(a_function_to_be_found);
    let inside = RelativeAddress(start.0 + 1);
    let answers = own.symbols.symbolicate(&own.key, &[start, inside]).unwrap();
    let [Some(at_start), Some(at_inside)] = answers.as_slice() else { panic!("{answers:?}") };
    assert!(at_start.function.ends_with("a_function_to_be_found"), "{at_start:?}");
    assert_eq!((at_start.function_offset, at_inside.function_offset), (0, 1));
    assert!(at_start.function_size.is_some_and(|size| size > 1));
    assert!(at_start.file.as_deref().is_some_and(|file| file.ends_with("own_binary.rs")), "{at_start:?}");
    assert!(at_start.line.is_some());
}

#[test]
fn a_file_of_the_debug_info_is_served_alone() {
    let own = OwnBinary::new();
    let address = own.address_of(a_function_to_be_found);
    let info = own.symbols.symbolicate(&own.key, &[address]).unwrap().pop().flatten().unwrap();
    let ask = |file: String| own.symbols.source(&SourceRequest { lib: own.key.clone(), address, file });
    let file = info.file.unwrap();
    let neighbour = PathBuf::from(&file).with_file_name("no_such_file.rs").to_str().unwrap().to_owned();
    assert!(ask(file.clone()).unwrap().contains("fn a_function_to_be_found(n: u64)"));
    let refused = [neighbour, "/etc/passwd".to_owned(), file.to_uppercase()];
    for file in refused {
        let message = ask(file.clone()).unwrap_err().to_string();
        assert_eq!(message, format!("the debug info of {} names no source file {file}", own.key));
    }
}

/// The number of addresses of this test's code that are looked up.
const ASKED: usize = 20_000;

/// Files of Rust's library and of crates have special paths, which are used to request them.
#[test]
fn published_files_are_named_specially() {
    let own = OwnBinary::new();
    let elf = Elf::open(FileSource::new(File::open(std::env::current_exe().unwrap()).unwrap())).unwrap();
    let code = elf.segments().iter().find(|segment| segment.executable).unwrap();
    let start = u32::try_from(code.address.offset_from(elf.image_base()).unwrap()).unwrap();
    let end = start + u32::try_from(code.file_size).unwrap();
    let addresses: Vec<_> = (start..end).step_by(16).take(ASKED).map(RelativeAddress).collect();
    let answers = own.symbols.symbolicate(&own.key, &addresses).unwrap();
    let named = addresses.iter().zip(&answers).flat_map(|(&address, info)| {
        let inlined = info.iter().flat_map(|info| info.inlines.iter().map(|inlined| &inlined.file));
        info.iter().map(|info| &info.file).chain(inlined).flatten().map(move |file| (&**file, address))
    });
    let named: BTreeMap<_, _> = named.collect();
    let ask = |file: &str, address| {
        let request = SourceRequest { lib: own.key.clone(), address, file: file.to_owned() };
        own.symbols.source(&request).map_err(|error| error.to_string())
    };
    assert_eq!(named.keys().find(|file| special_source_path(file) != **file), None);
    let (of_library, address) = named.iter().find(|(file, _)| file.starts_with("git:")).unwrap();
    // It is named, but no toolchain source was given.
    assert!(ask(of_library, *address).unwrap_err().contains("no toolchain here has the source"));
    let neighbour = of_library.replace("library/", "library/no_such/");
    assert!(ask(&neighbour, *address).unwrap_err().contains("names no source file"));
    // There is none in a build without crates of a registry.
    if let Some((of_crate, address)) = named.iter().find(|(file, _)| file.starts_with("cargo:")) {
        assert!(!ask(of_crate, *address).unwrap().is_empty(), "{of_crate}");
        assert!(ask(&format!("{of_crate}x"), *address).unwrap_err().contains("names no source file"));
    }
}

#[test]
#[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
fn the_instructions_of_a_function_go_to_its_end() {
    let own = OwnBinary::new();
    let start = own.address_of(a_function_to_be_found);
    let ask = |size, continue_until_function_end| {
        let lib = own.key.clone();
        own.symbols.assembly(&AssemblyRequest { lib, start, size, continue_until_function_end }).unwrap()
    };
    let whole = ask(1, true);
    assert_eq!((whole.start, &*whole.syntax, whole.instructions[0].offset), (start, "Intel", 0));
    assert!(whole.instructions.iter().any(|one| one.text.starts_with("ret")), "{whole:?}");
    assert!(whole.instructions.is_sorted_by(|a, b| a.offset < b.offset));
    let first = ask(whole.instructions[1].offset, false);
    assert_eq!(first.instructions, whole.instructions[..1]);
}

#[test]
fn a_binary_of_another_identity_is_not_used() {
    let path = std::env::current_exe().unwrap();
    let key = LibKey { debug_name: "own".to_owned(), breakpad_id: format!("{:032X}0", 1) };
    let mut builder = ProfileBuilder::new(Meta::default());
    builder.add_lib(Lib {
        debug_name: key.debug_name.clone(),
        path: path.to_str().unwrap().to_owned(),
        breakpad_id: key.breakpad_id.clone(),
        ..Lib::default()
    });
    let symbols = ProfileSymbols::new(&builder.finish(), Finder::default(), SourceFiles::default());
    assert_eq!(symbols.symbolicate(&key, &[RelativeAddress(0x1000)]), None);
    let request = AssemblyRequest {
        lib: key,
        start: RelativeAddress(0x1000),
        size: 16,
        continue_until_function_end: false,
    };
    let message = symbols.assembly(&request).unwrap_err().to_string();
    assert!(message.contains("no file of this identity was found; "), "{message}");
    assert!(message.contains("another file"), "{message}");
}
