//! Libraries of macOS that are only in the dyld shared cache. They are found by their UUIDs or paths, with
//! the names from all files of the cache.

use nyquist_object::macho::shared_cache::SharedCache;
use nyquist_object::{MachO, MachUuid, ModuleId, RelativeAddress};
use nyquist_symbols::{
    AttemptOutcome, Finder, ModuleRequest, ModuleSymbols, Origin, SearchPaths, SymbolFiles,
};
use nyquist_test_support::shared_cache_image::{SUFFIXES, UUIDS, build};
use std::fs;
use std::path::PathBuf;

/// A folder with a cache.
struct TestFolder(PathBuf);

impl TestFolder {
    fn new(name: &str, suffixes: &[&str]) -> Self {
        let path = std::env::temp_dir().join(format!("nyquist-shared-cache-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        for (suffix, bytes) in SUFFIXES.into_iter().zip(build()) {
            if suffixes.contains(&suffix) {
                fs::write(path.join(format!("dyld_shared_cache_arm64e{suffix}")), bytes).unwrap();
            }
        }
        Self(path)
    }

    fn find(&self, path: &str, uuid: Option<[u8; 16]>) -> SymbolFiles {
        let id = uuid.map(|uuid| ModuleId::MachUuid(MachUuid(uuid)));
        let paths = SearchPaths { symbol_dirs: vec![self.0.clone()], ..SearchPaths::default() };
        Finder::new(paths).find(&ModuleRequest { path: path.into(), id, ..ModuleRequest::default() })
    }

    fn open(&self, path: &str, uuid: Option<[u8; 16]>) -> ModuleSymbols {
        ModuleSymbols::open(&self.find(path, uuid)).unwrap()
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The names of the functions at these addresses, and their origins.
fn names<const N: usize>(symbols: &ModuleSymbols, addresses: [u32; N]) -> [(String, Origin); N] {
    addresses.map(|address| {
        let info = symbols.lookup(RelativeAddress(address));
        let name = info.frames.first().and_then(|frame| frame.function.as_deref()).unwrap_or_default();
        (name.to_owned(), info.origin)
    })
}

#[test]
fn libraries_have_own_symbols_and_separate_ones() {
    let folder = TestFolder::new("whole", &SUFFIXES);
    for (number, name) in ["one", "two"].into_iter().enumerate() {
        for id in [Some(UUIDS[number]), None] {
            let symbols = folder.open(&format!("/usr/lib/lib{name}.dylib"), id);
            let expected =
                [(name.to_owned(), Origin::SymbolTable), (format!("hidden_{name}"), Origin::SymbolTable)];
            assert_eq!(names(&symbols, [0x1000, 0x107f]), expected);
            let symbol = symbols.lookup(RelativeAddress(0x1010)).symbol.unwrap();
            assert_eq!((symbol.address.0, symbol.size), (0x1000, Some(0x40)));
            let code = symbols.disassemble(RelativeAddress(0x1000), 8, false);
            assert!(
                code.is_ok()
                    || cfg!(not(target_arch = "x86_64"))
                    || format!("{code:?}").contains("rchitecture")
            );
        }
    }
}

#[test]
fn without_other_files_a_cache_gives_what_it_has() {
    // Without the separate file of symbols, only the start of a function is known.
    let folder = TestFolder::new("tables", &SUFFIXES[..2]);
    let symbols = folder.open("/usr/lib/libone.dylib", Some(UUIDS[0]));
    let expected = [("one".to_owned(), Origin::SymbolTable), ("fun_1040".to_owned(), Origin::UnwindInfo)];
    assert_eq!(names(&symbols, [0x1000, 0x1041]), expected);
    let folder = TestFolder::new("alone", &SUFFIXES[..1]);
    let symbols = folder.open("/usr/lib/libone.dylib", Some(UUIDS[0]));
    assert_eq!(names(&symbols, [0x1000]).map(|(name, _)| name), [String::new()]);
}

#[test]
fn a_library_of_another_build_is_not_used() {
    let folder = TestFolder::new("other", &SUFFIXES);
    let found = folder.find("/usr/lib/libone.dylib", Some([0x33; 16]));
    assert!(found.binary.is_none());
    let of_cache = |path: &PathBuf| path.ends_with("dyld_shared_cache_arm64e");
    let tried = found.tried.iter().find(|attempt| of_cache(&attempt.path)).unwrap();
    assert_eq!(tried.outcome, AttemptOutcome::OtherIdentity("libraries of other builds".to_owned()));
    let symbols = folder.0.join("dyld_shared_cache_arm64e.symbols");
    let mut bytes = fs::read(&symbols).unwrap();
    bytes[88] ^= 1;
    fs::write(&symbols, bytes).unwrap();
    let symbols = folder.open("/usr/lib/libone.dylib", Some(UUIDS[0]));
    assert_eq!(names(&symbols, [0x1041])[0].0, "fun_1040");
}

#[test]
fn damaged_caches_give_less_but_no_panic() {
    let whole = build();
    let look = |files: &[Vec<u8>; 3]| {
        let other = |suffix: &str| {
            SUFFIXES.iter().position(|known| *known == suffix).map(|number| files[number].clone())
        };
        let Ok(cache) = SharedCache::open(files[0].clone(), other) else { return };
        for image in cache.images() {
            let Ok(extracted) = cache.extract(image) else { continue };
            let Ok(file) = MachO::open(extracted) else { continue };
            let _ = (file.symbols(), file.function_starts(), file.exports(), file.stubs(), file.text_hash());
        }
    };
    for number in 0..3 {
        for len in (0..whole[number].len()).step_by(97) {
            let mut files = whole.clone();
            files[number].truncate(len);
            look(&files);
        }
        let headers = (0..0x800).chain(0x1000..0x1300).chain(0x4000..0x4110);
        for at in headers.filter(|&at| whole[number].get(at).is_some()) {
            for flip in [0x01, 0x80, 0xff] {
                let mut files = whole.clone();
                files[number][at] ^= flip;
                look(&files);
            }
        }
    }
}
