//! Modules of macOS in handmade files: how they are found by their ids, and their answers.

mod macos_image;

use macos_image::{
    ARM64, DEBUG_SYMBOLS, EXTERNAL, FUN, Image, LOCAL, OBJECT, OSO, SO, TEXT, X86_64, dwarf, universal,
};
use nyquist_object::{DebugId, MachUuid, ModuleId, RelativeAddress};
use nyquist_symbols::{
    AddressInfo, AttemptOutcome, FileRole, Finder, ModuleRequest, ModuleSymbols, Origin, SearchPaths,
    SymbolFiles,
};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

const UUID: [u8; 16] = [0xab, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
const OTHER: [u8; 16] = [0xcd; 16];

/// A folder that is removed at the end of the test.
struct TestFolder(PathBuf);

impl TestFolder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("nyquist-macos-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, path: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    /// Looks for the module with [`UUID`]. The user's folder is `symbols` in this folder.
    fn find(&self, path: &Path) -> SymbolFiles {
        let id = Some(ModuleId::MachUuid(MachUuid(UUID)));
        self.find_request(&ModuleRequest { path: path.to_owned(), id, ..ModuleRequest::default() })
    }

    fn find_request(&self, request: &ModuleRequest) -> SymbolFiles {
        let paths = SearchPaths { symbol_dirs: vec![self.0.join("symbols")], ..SearchPaths::default() };
        Finder::new(paths).find(request)
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The name, the place in the source, and the origin of the answer.
fn shown(info: &AddressInfo) -> (String, String, Origin) {
    let frame = info.frames.first().cloned().unwrap_or_default();
    let place = match (frame.file, frame.line) {
        (Some(file), Some(line)) => format!("{file}:{line}"),
        _ => String::new(),
    };
    (frame.function.as_deref().unwrap_or_default().to_owned(), place, info.origin)
}

fn check(symbols: &ModuleSymbols, address: u32, name: &str, place: &str, origin: Origin) {
    let found = shown(&symbols.lookup(RelativeAddress(address)));
    assert_eq!(found, (name.to_owned(), place.to_owned(), origin), "{address:#x}");
}

/// Two functions with names, `first` and `ns::second()`.
fn image() -> Image<'static> {
    Image {
        uuid: Some(UUID),
        symbols: vec![("_first", EXTERNAL, 1, TEXT + 0x1000), ("__ZN2ns6secondEv", LOCAL, 1, TEXT + 0x1040)],
        ..Image::default()
    }
}

/// The debug info of [`image`].
fn debug_symbols(uuid: [u8; 16]) -> Image<'static> {
    let functions = [("first", TEXT + 0x1000, 0x40, 5), ("second", TEXT + 0x1040, 0x40, 9)];
    Image { kind: DEBUG_SYMBOLS, uuid: Some(uuid), dwarf: dwarf("app.c", &functions), ..image() }
}

#[test]
fn names_come_from_symbols_exports_and_starts() {
    // `_export` at 0x1060; functions at 0x1000, 0x1040, 0x1060 and 0x1080.
    let exports = [&[0, 1][..], b"_export\0", &[0x0b, 3, 0, 0xe0, 0x20, 0]].concat();
    let starts = vec![0x80, 0x20, 0x40, 0x20, 0x20, 0];
    let mut symbols = image().symbols;
    symbols.extend([("_alias", LOCAL, 1, TEXT + 0x1000), ("_data", EXTERNAL, 9, TEXT + 0x1010)]);
    symbols.push(("_stab", FUN, 1, TEXT + 0x1020));
    let bytes = Image { symbols, starts, exports, ..image() }.build();
    let symbols = ModuleSymbols::from_image(bytes).unwrap();
    check(&symbols, 0x0fff, "", "", Origin::Unknown(nyquist_symbols::Reason::NotCovered));
    check(&symbols, 0x1000, "first", "", Origin::SymbolTable);
    check(&symbols, 0x1025, "first", "", Origin::SymbolTable);
    check(&symbols, 0x105f, "ns::second()", "", Origin::SymbolTable);
    check(&symbols, 0x1060, "export", "", Origin::Exports);
    check(&symbols, 0x10ff, "fun_1080", "", Origin::UnwindInfo);
    check(&symbols, 0x1100, "", "", Origin::Unknown(nyquist_symbols::Reason::NotCovered));
    let symbol = symbols.lookup(RelativeAddress(0x1050)).symbol.unwrap();
    assert_eq!((symbol.address, symbol.size), (RelativeAddress(0x1040), Some(0x20)));
}

#[test]
fn debug_info_in_the_image_ends_the_search() {
    let folder = TestFolder::new("own");
    let path = folder.write("app", &Image { kind: macos_image::EXECUTABLE, ..debug_symbols(UUID) }.build());
    let found = folder.find(&path);
    assert!(found.debug_file.is_none() && found.tried.len() == 1, "{:?}", found.tried);
    let symbols = ModuleSymbols::open(&found).unwrap();
    check(&symbols, 0x1044, "ns::second()", "/src/app.c:9", Origin::DebugInfo);
}

#[test]
fn a_dsym_is_used_where_it_is_of_the_same_build() {
    let inner = "Contents/Resources/DWARF/app";
    for place in [
        "build/app.dSYM",
        "symbols/app.dSYM",
        "symbols/AB010203-0405-0607-0809-0A0B0C0D0E0F.dSYM",
        "symbols/app.dwarf",
        "symbols/app",
    ] {
        let folder = TestFolder::new(&format!("dsym-{}", place.replace('/', "-")));
        let path = folder.write("build/app", &image().build());
        let file = if place.ends_with(".dSYM") { format!("{place}/{inner}") } else { place.to_owned() };
        folder.write(&file, &debug_symbols(OTHER).build());
        let found = folder.find(&path);
        let attempt = found.tried.iter().find(|attempt| attempt.path == folder.0.join(&file)).expect(place);
        let other = "UUID CDCDCDCD-CDCD-CDCD-CDCD-CDCDCDCDCDCD".to_owned();
        assert_eq!(attempt.outcome, AttemptOutcome::OtherIdentity(other), "{place}");
        check(&ModuleSymbols::open(&found).unwrap(), 0x1004, "first", "", Origin::SymbolTable);
        folder.write(&file, &debug_symbols(UUID).build());
        let found = folder.find(&path);
        assert_eq!(found.debug_file.as_ref().expect(place).path, folder.0.join(&file));
        check(&ModuleSymbols::open(&found).unwrap(), 0x1004, "first", "/src/app.c:5", Origin::DebugInfo);
        // This also works without the image.
        fs::remove_file(&path).unwrap();
        let found = folder.find(&path);
        assert!(found.binary.is_none() && found.debug_file.is_some(), "{place}");
        check(
            &ModuleSymbols::open(&found).unwrap(),
            0x1044,
            "ns::second()",
            "/src/app.c:9",
            Origin::DebugInfo,
        );
    }
}

#[test]
fn a_bundles_dsym_is_named_after_the_bundle() {
    let folder = TestFolder::new("bundle");
    let path = folder.write("My.app/Contents/MacOS/app", &image().build());
    let file = "symbols/My.app.dSYM/Contents/Resources/DWARF/app";
    folder.write(file, &debug_symbols(UUID).build());
    assert_eq!(folder.find(&path).debug_file.unwrap().path, folder.0.join(file));
}

#[test]
fn a_universal_file_gives_the_one_with_the_uuid() {
    let folder = TestFolder::new("universal");
    let other = Image {
        cpu: X86_64,
        uuid: Some(OTHER),
        symbols: vec![("_other", EXTERNAL, 1, TEXT + 0x1000)],
        ..image()
    };
    let both = universal(&[(X86_64, other.build()), (ARM64, image().build())]);
    let path = folder.write("app", &both);
    folder.write(
        "app.dSYM/Contents/Resources/DWARF/app",
        &universal(&[(X86_64, debug_symbols(OTHER).build()), (ARM64, debug_symbols(UUID).build())]),
    );
    let found = folder.find(&path);
    let symbols = ModuleSymbols::open(&found).unwrap();
    check(&symbols, 0x1004, "first", "/src/app.c:5", Origin::DebugInfo);
    let id = Some(ModuleId::MachUuid(MachUuid(OTHER)));
    let found = folder.find_request(&ModuleRequest { path: path.clone(), id, ..ModuleRequest::default() });
    let symbols = ModuleSymbols::open(&SymbolFiles { debug_file: None, ..found }).unwrap();
    check(&symbols, 0x1004, "other", "", Origin::SymbolTable);
    let id = Some(ModuleId::MachUuid(MachUuid([9; 16])));
    let found = folder.find_request(&ModuleRequest { path, id, ..ModuleRequest::default() });
    assert!(found.binary.is_none() && found.debug_file.is_none(), "{:?}", found.tried);
}

#[test]
fn the_ids_of_other_profilers_lead_to_the_file() {
    let folder = TestFolder::new("ids");
    folder.write("symbols/app", &image().build());
    let find = |id, debug_id, path: &str| {
        let request = ModuleRequest { path: path.into(), id, debug_id, ..ModuleRequest::default() };
        folder.find_request(&request).binary.is_some()
    };
    let text = "AB0102030405060708090A0B0C0D0E0F";
    let debug_id = DebugId::from_breakpad(&format!("{text}0"));
    // Firefox: no code id. samply: both. Instruments: a code id in groups. pprof: digits that may be a build
    // id.
    assert!(find(None, debug_id, "/Applications/app"));
    assert!(find(ModuleId::from_profile(text, debug_id), debug_id, "/Applications/app"));
    let grouped = "AB010203-0405-0607-0809-0A0B0C0D0E0F";
    assert!(find(ModuleId::from_profile(grouped, None), None, "/Applications/app"));
    assert!(find(ModuleId::from_profile(&text.to_lowercase(), None), None, "/Applications/app"));
    assert!(!find(None, DebugId::from_breakpad(&format!("{text}1")), "/Applications/app"));
    assert!(!find(ModuleId::from_profile(&"12".repeat(16), None), None, "/Applications/app"));
}

#[test]
fn a_breakpad_file_stands_in_for_a_missing_dsym() {
    let folder = TestFolder::new("breakpad");
    let path = folder.write("app", &image().build());
    let id = "AB0102030405060708090A0B0C0D0E0F0";
    let text = format!("MODULE mac arm64 {id} app\nFILE 0 /src/b.c\nFUNC 1000 40 0 first\n1000 40 7 0\n");
    folder.write(&format!("symbols/app/{id}/app.sym"), text.as_bytes());
    let symbols = ModuleSymbols::open(&folder.find(&path)).unwrap();
    check(&symbols, 0x1004, "first", "/src/b.c:7", Origin::DebugInfo);
    check(&symbols, 0x1044, "ns::second()", "", Origin::SymbolTable);
}

/// The time of the object files according to the image.
const WRITTEN: u64 = 1_600_000_000;

/// An object file with `second` at 0x20 and `first` at 0x60, because the linker has reversed their order.
fn object() -> Vec<u8> {
    let functions = [("second", 0x20, 0x40, 9), ("first", 0x60, 0x40, 5)];
    Image {
        kind: OBJECT,
        code: (0, 0x100),
        dwarf: dwarf("app.c", &functions),
        symbols: vec![
            ("__ZN2ns6secondEv", LOCAL, 1, 0x20),
            ("_first", EXTERNAL, 1, 0x60),
            ("_twice", LOCAL, 1, 0x20),
            ("_twice", LOCAL, 1, 0x60),
        ],
        ..Image::default()
    }
    .build()
}

/// [`image`] with the debug map of one object file.
fn linked(object: &str) -> Vec<u8> {
    let mut symbols = image().symbols;
    symbols.extend([
        ("/src/", SO, 0, 0),
        ("app.c", SO, 0, 0),
        (object, OSO, 0, WRITTEN),
        ("_first", FUN, 1, TEXT + 0x1000),
        ("", FUN, 0, 0x40),
        ("__ZN2ns6secondEv", FUN, 1, TEXT + 0x1040),
        ("", FUN, 0, 0x40),
        ("_twice", FUN, 1, TEXT + 0x1080),
        ("", FUN, 0, 0x40),
        ("", SO, 1, 0),
    ]);
    Image { symbols, ..image() }.build()
}

fn set_time(path: &Path, seconds: u64) {
    File::options()
        .append(true)
        .open(path)
        .unwrap()
        .set_modified(UNIX_EPOCH + Duration::from_secs(seconds))
        .unwrap();
}

fn check_linked(symbols: &ModuleSymbols) {
    check(symbols, 0x1004, "first", "/src/app.c:5", Origin::DebugInfo);
    check(symbols, 0x1044, "ns::second()", "/src/app.c:9", Origin::DebugInfo);
    // Nothing distinguishes two functions of the same name.
    check(symbols, 0x1084, "ns::second()", "", Origin::SymbolTable);
    let symbol = symbols.lookup(RelativeAddress(0x1004)).symbol.unwrap();
    assert_eq!((symbol.address, symbol.size), (RelativeAddress(0x1000), Some(0x40)));
    assert!(symbols.named_source("/src/app.c", RelativeAddress(0x1004)).is_some());
    assert!(symbols.named_source("/src/other.c", RelativeAddress(0x1004)).is_none());
}

#[test]
fn debug_info_in_object_files_is_translated() {
    let folder = TestFolder::new("objects");
    let object_path = folder.write("build/app.o", &object());
    set_time(&object_path, WRITTEN);
    let path = folder.write("app", &linked(object_path.to_str().unwrap()));
    check_linked(&ModuleSymbols::open(&folder.find(&path)).unwrap());
    // A recompiled object file is not used, and this is reported.
    set_time(&object_path, WRITTEN + 1);
    let found = folder.find(&path);
    let attempt = found.tried.iter().find(|attempt| attempt.requested == FileRole::ObjectFile).unwrap();
    assert_eq!(attempt.outcome, AttemptOutcome::OtherIdentity("it was modified".to_owned()));
    check(&ModuleSymbols::open(&found).unwrap(), 0x1004, "first", "", Origin::SymbolTable);
    // A copy in the user's folder is used instead.
    let copy = folder.write("symbols/app.o", &object());
    set_time(&copy, WRITTEN);
    let found = folder.find(&path);
    assert_eq!(
        found.tried.last().map(|attempt| (&attempt.path, &attempt.outcome)),
        Some((&copy, &AttemptOutcome::Used))
    );
    check_linked(&ModuleSymbols::open(&found).unwrap());
}

fn member(name: &str, modified: u64, contents: &[u8]) -> Vec<u8> {
    let header = format!("{name:16}{modified:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, "100644", contents.len());
    let mut bytes = [header.as_bytes(), contents].concat();
    bytes.resize(bytes.len().next_multiple_of(2), b'\n');
    bytes
}

#[test]
fn object_files_in_archives_are_found() {
    let folder = TestFolder::new("archives");
    let unrelated = Image {
        kind: OBJECT,
        dwarf: dwarf("x.c", &[("x", 0, 8, 3)]),
        symbols: vec![("_x", LOCAL, 1, 0)],
        ..Image::default()
    };
    let archive = [
        b"!<arch>\n".to_vec(),
        member("app.o", WRITTEN, &unrelated.build()),
        member("app.o", WRITTEN - 5, b"older"),
        member("app.o", WRITTEN, &object()),
    ];
    let archive_path = folder.write("libapp.a", &archive.concat());
    let path = folder.write("app", &linked(&format!("{}(app.o)", archive_path.display())));
    check_linked(&ModuleSymbols::open(&folder.find(&path)).unwrap());
    folder.write("libapp.a", &[&archive[0][..], &member("app.o", WRITTEN + 1, &object())].concat());
    check(&ModuleSymbols::open(&folder.find(&path)).unwrap(), 0x1004, "first", "", Origin::SymbolTable);
}

#[test]
fn files_cut_anywhere_give_less_but_no_panic() {
    let whole = linked("/nowhere/app.o");
    for len in (0..whole.len()).step_by(7) {
        if let Ok(symbols) = ModuleSymbols::from_image(whole[..len].to_vec()) {
            let _ = symbols.lookup(RelativeAddress(0x1004));
        }
    }
    let whole = debug_symbols(UUID).build();
    for len in (0x2000..whole.len()).step_by(3) {
        if let Ok(symbols) = ModuleSymbols::from_image(whole[..len].to_vec()) {
            let _ = symbols.lookup(RelativeAddress(0x1004));
        }
    }
}
