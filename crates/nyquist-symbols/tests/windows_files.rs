//! Modules of Windows in handmade files: how they are found by their ids, and their answers.

use nyquist_object::elf::Architecture;
use nyquist_object::{DebugId, FileSource, ModuleId, PeCodeId, PeId, RelativeAddress};
use nyquist_symbols::{
    AttemptOutcome, Finder, ModuleRequest, ModuleSymbols, OpenFile, Origin, SearchPaths, SymbolFiles,
    WindowsContents,
};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const ID: &str = "04030201060508070910111213141516a";
const GUID: [u8; 16] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16];
const CODE_ID: PeCodeId = PeCodeId { timestamp: 0x5ca1_2c43, size_of_image: 0x3000 };

/// A folder that is removed at the end of the test.
struct TestFolder(PathBuf);

impl TestFolder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("nyquist-windows-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, path: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }

    fn find(&self, path: &Path) -> SymbolFiles {
        let id = PeId { code: CODE_ID, debug: debug_id() };
        let request =
            ModuleRequest { path: path.to_owned(), id: Some(ModuleId::Pe(id)), ..ModuleRequest::default() };
        self.find_request(&request)
    }

    fn find_request(&self, request: &ModuleRequest) -> SymbolFiles {
        let paths = SearchPaths { symbol_dirs: vec![self.0.join("symbols")], ..SearchPaths::default() };
        Finder::new(paths).find(request)
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn debug_id() -> DebugId {
    DebugId::from_breakpad(ID).unwrap()
}

fn put(bytes: &mut Vec<u8>, at: usize, part: &[u8]) {
    bytes.resize(bytes.len().max(at + part.len()), 0);
    bytes[at..at + part.len()].copy_from_slice(part);
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// An image with code at 0x1000, one export there, and a record that names `app.pdb`.
fn image() -> Vec<u8> {
    let mut bytes = vec![0; 0x2800];
    put(&mut bytes, 0, b"MZ");
    put(&mut bytes, 60, &words(&[0x40]));
    put(&mut bytes, 0x40, b"PE\0\0\x64\x86\x02\0");
    put(&mut bytes, 0x48, &words(&[CODE_ID.timestamp]));
    put(&mut bytes, 0x54, &[0xf0, 0, 0x22, 0, 0x0b, 0x02]);
    put(&mut bytes, 0x58 + 24, &0x1_4000_0000_u64.to_le_bytes());
    put(&mut bytes, 0x58 + 56, &words(&[CODE_ID.size_of_image, 0x400]));
    put(&mut bytes, 0x58 + 108, &words(&[16, 0x2000, 0x80]));
    put(&mut bytes, 0x58 + 112 + 48, &words(&[0x2100, 28]));
    for (number, (at, flags)) in [(0x1000, 0x6000_0020), (0x2000, 0x4000_0040)].into_iter().enumerate() {
        let header = 0x58 + 0xf0 + 40 * number;
        put(&mut bytes, header + 8, &words(&[0x200, at, 0x200, at]));
        put(&mut bytes, header + 36, &words(&[flags]));
    }
    put(&mut bytes, 0x2010, &words(&[1, 1, 1, 0x2028, 0x202c, 0x2030, 0x1000, 0x2040, 0]));
    put(&mut bytes, 0x2028, &words(&[0x1010, 0x2040]));
    put(&mut bytes, 0x2040, b"exported_by_image\0");
    put(&mut bytes, 0x210c, &words(&[2, 0x40, 0x2140, 0x2140]));
    put(&mut bytes, 0x2140, b"RSDS");
    put(&mut bytes, 0x2144, &GUID);
    put(&mut bytes, 0x2154, &words(&[0xa]));
    put(&mut bytes, 0x2158, b"D:\\build\\app.pdb\0");
    bytes
}

const BLOCK: usize = 512;

/// A PDB of the given streams, from number 1 on, each in separate blocks.
fn pdb_of(streams: &[Vec<u8>]) -> Vec<u8> {
    let mut blocks: Vec<u8> = Vec::new();
    let mut next = 4;
    let mut place = |bytes: &[u8]| {
        let numbers: Vec<u32> = (next..).take(bytes.len().div_ceil(BLOCK)).collect();
        next += numbers.len() as u32;
        blocks.extend_from_slice(bytes);
        blocks.resize(blocks.len().next_multiple_of(BLOCK), 0);
        numbers
    };
    let mut lengths = vec![streams.len() as u32 + 1, u32::MAX];
    let mut numbers = Vec::new();
    for stream in streams {
        lengths.push(stream.len() as u32);
        numbers.extend(place(stream));
    }
    let directory = words(&[lengths, numbers].concat());
    let directory_blocks = place(&directory);
    let map = place(&words(&directory_blocks));
    let mut bytes = b"Microsoft C/C++ MSF 7.00\r\n\x1aDS\0\0\0".to_vec();
    bytes.extend(words(&[BLOCK as u32, 1, next, directory.len() as u32, 0, map[0]]));
    bytes.resize(4 * BLOCK, 0);
    [bytes, blocks].concat()
}

fn record(kind: u16, body: &[u8]) -> Vec<u8> {
    let mut record = [&kind.to_le_bytes(), body].concat();
    record.resize((record.len() + 2).next_multiple_of(4) - 2, 0);
    [&(record.len() as u16).to_le_bytes(), record.as_slice()].concat()
}

fn subsection(kind: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = [words(&[kind, body.len() as u32]), body.to_vec()].concat();
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// A PDB with one object file, in which the function `work(int)` is at 0x1000, 0x40 bytes long. From 0x1010
/// up to 0x1018 `tools::helper(char)` is inlined into it.
fn pdb(age: u32) -> Vec<u8> {
    pdb_with(age, 0x1001, &[])
}

/// The same, with `inlinee` as the id of the inlined function, and with more data about the object file.
fn pdb_with(age: u32, inlinee: u32, more: &[u8]) -> Vec<u8> {
    let names = b"\0/names\0";
    let info = [words(&[20_000_404, 0, 1]), GUID.to_vec(), words(&[8]), names.to_vec()].concat();
    let info = [info, words(&[1, 1, 1, 1, 0, 1, 8])].concat();
    let types = [
        record(0x1201, &words(&[1, 0x74])),
        record(0x1008, &words(&[3, 0, 0x1000])),
        record(0x1201, &words(&[1, 0x70])),
        record(0x1008, &words(&[3, 0, 0x1002])),
    ];
    let ids = [
        record(0x1605, &[words(&[0]), b"tools\0".to_vec()].concat()),
        record(0x1601, &[words(&[0x1000, 0x1003]), b"helper\0".to_vec()].concat()),
    ];
    let procedure = [words(&[0, 0, 0, 0x40, 0, 0, 0x1001, 0]), vec![1, 0, 0], b"work\0".to_vec()].concat();
    // Line + 1 at + 0x10, 4 bytes; line + 1 after those, 4 bytes.
    let inlined = [words(&[0, 0, inlinee]), vec![6, 2, 3, 0x10, 11, 0x24, 4, 4]].concat();
    let symbols = [
        words(&[4]),
        record(0x1110, &procedure),
        record(0x114d, &inlined),
        record(0x114e, &[]),
        record(0x0006, &[]),
    ]
    .concat();
    let block = |lines: &[[u32; 2]]| {
        words(
            &[vec![0, lines.len() as u32, 12 + 8 * lines.len() as u32], lines.as_flattened().to_vec()]
                .concat(),
        )
    };
    let lines =
        [words(&[0]), vec![1, 0, 0, 0], words(&[0x40]), block(&[[0, 10], [0x10, 11], [0x18, 12]])].concat();
    let lines = [
        subsection(0xf4, &[words(&[1]), vec![0, 0, 0, 0]].concat()),
        subsection(0xf2, &lines),
        subsection(0xf6, &words(&[0, inlinee, 0, 100])),
        more.to_vec(),
    ]
    .concat();
    let module = [
        words(&[0]),
        vec![1, 0, 0, 0],
        words(&[0, 0x40, 0]),
        vec![0; 12],
        vec![0, 0, 6, 0],
        words(&[symbols.len() as u32, 0, lines.len() as u32, 1, 0, 0, 0]),
        b"a.obj\0a.obj\0".to_vec(),
    ]
    .concat();
    let contributions =
        [words(&[0xeffe_0000 + 19_970_605]), vec![1, 0, 0, 0], words(&[0, 0x40, 0]), vec![0; 12]].concat();
    let streams: Vec<u8> =
        [u16::MAX, u16::MAX, u16::MAX, u16::MAX, u16::MAX, 7].map(u16::to_le_bytes).concat();
    let mut dbi = words(&[u32::MAX, 19_990_903, age]);
    put(&mut dbi, 20, &[5, 0]);
    put(
        &mut dbi,
        24,
        &words(&[module.len() as u32, contributions.len() as u32, 0, 0, 0, 0, streams.len() as u32, 0]),
    );
    dbi.resize(64, 0);
    let dbi = [dbi, module, contributions, streams].concat();
    let publics = [
        record(0x110e, &[words(&[2, 0]), vec![1, 0], b"?work@@YAXH@Z\0".to_vec()].concat()),
        record(0x110e, &[words(&[2, 0x100]), vec![1, 0], b"?only@ns@@YAXXZ\0".to_vec()].concat()),
    ]
    .concat();
    let mut section = vec![0; 40];
    put(&mut section, 8, &words(&[0x200, 0x1000]));
    let strings = b"\0C:\\src\\work.cc\0A.OBJ\0";
    let names = [words(&[0xeffe_effe, 1, strings.len() as u32]), strings.to_vec()].concat();
    let stream_of = |records: &[Vec<u8>]| {
        let bytes = records.concat();
        let head = words(&[20_040_203, 56, 0x1000, 0x1000 + records.len() as u32, bytes.len() as u32]);
        let mut stream = [head, vec![0xff, 0xff]].concat();
        stream.resize(56, 0);
        [stream, bytes].concat()
    };
    pdb_of(&[
        info,
        stream_of(&types),
        dbi,
        stream_of(&ids),
        publics,
        symbols_and_lines(&symbols, &lines),
        section,
        names,
    ])
}

fn symbols_and_lines(symbols: &[u8], lines: &[u8]) -> Vec<u8> {
    [symbols, lines].concat()
}

const SYMBOL_FILE: &str = "MODULE windows x86_64 04030201060508070910111213141516a app.pdb
FILE 0 C:\\src\\work.cc
FUNC 1000 40 0 work(int)
1000 40 10 0
PUBLIC 1100 0 only
";

fn check(symbols: &ModuleSymbols, address: u32, origin: Origin, expected: &[(&str, &str, u32)]) {
    let info = symbols.lookup(RelativeAddress(address));
    let frames: Vec<_> = info
        .frames
        .iter()
        .map(|frame| {
            let text = |text: &Option<std::sync::Arc<str>>| text.as_deref().unwrap_or_default().to_owned();
            (text(&frame.function), text(&frame.file), frame.line.unwrap_or(0))
        })
        .collect();
    let frames: Vec<_> = frames.iter().map(|(name, file, line)| (&**name, &**file, *line)).collect();
    assert_eq!((info.origin, frames.as_slice()), (origin, expected), "{address:#x}");
}

#[test]
fn a_pdb_says_functions_lines_and_inlined_calls() {
    let folder = TestFolder::new("pdb");
    let app = folder.write("app.exe", &image());
    folder.write("app.pdb", &pdb(0xa));
    let found = folder.find(&app);
    assert_eq!(found.debug_file.as_ref().unwrap().path, folder.0.join("app.pdb"));
    let symbols = ModuleSymbols::open(&found).unwrap();
    let file = "C:\\src\\work.cc";
    check(&symbols, 0x1000, Origin::DebugInfo, &[("work(int)", file, 10)]);
    check(
        &symbols,
        0x1010,
        Origin::DebugInfo,
        &[("tools::helper(char)", file, 101), ("work(int)", file, 11)],
    );
    check(
        &symbols,
        0x1017,
        Origin::DebugInfo,
        &[("tools::helper(char)", file, 102), ("work(int)", file, 11)],
    );
    check(&symbols, 0x1018, Origin::DebugInfo, &[("work(int)", file, 12)]);
    check(&symbols, 0x1100, Origin::PublicSymbols, &[("ns::only()", "", 0)]);
    let symbol = symbols.lookup(RelativeAddress(0x1020)).symbol.unwrap();
    assert_eq!(
        (&*symbol.name, symbol.address, symbol.size),
        ("work(int)", RelativeAddress(0x1000), Some(0x40))
    );
    assert!(symbols.named_source(file, RelativeAddress(0x1000)).is_some());
    assert!(symbols.named_source("C:\\secret", RelativeAddress(0x1000)).is_none());
}

/// Code that the linker itself has generated refers to functions of other object files by their numbers
/// there.
#[test]
fn inlined_functions_of_other_objects_have_names() {
    let folder = TestFolder::new("ltcg");
    let app = folder.write("app.exe", &image());
    // The third number from the first object file of the list, whose name differs in case. There the number
    // is 0x5005.
    let imports = subsection(0xf7, &words(&[16, 3, 7, 8, 0x5005]));
    let exports = subsection(0xf8, &words(&[0x5004, 0x1000, 0x5005, 0x1001]));
    let inner = |inlinee: u32, more: &[u8]| {
        folder.write("app.pdb", &pdb_with(0xa, inlinee, more));
        let symbols = ModuleSymbols::open(&folder.find(&app)).unwrap();
        let info = symbols.lookup(RelativeAddress(0x1010));
        assert_eq!(info.frames.len(), 2);
        assert_eq!(info.frames[1].function.as_deref(), Some("work(int)"));
        assert_eq!(info.frames[0].line, Some(101));
        info.frames[0].function.as_deref().map(str::to_owned)
    };
    let both = [&imports[..], &exports].concat();
    assert_eq!(inner(0x8000_0002, &both).as_deref(), Some("tools::helper(char)"));
    // Numbers that are not in the lists have no name.
    for (inlinee, more) in
        [(0x8000_0003, &both[..]), (0x8010_0000, &both), (0x8000_0000, &both), (0x8000_0002, &imports)]
    {
        assert_eq!(inner(inlinee, more), None, "{inlinee:x}");
    }
}

#[test]
fn a_pdb_alone_answers_too() {
    let folder = TestFolder::new("alone");
    folder.write("symbols/app.pdb/04030201060508070910111213141516A/app.pdb", &pdb(0xa));
    let symbols = ModuleSymbols::open(&folder.find(Path::new("C:\\Program Files\\app.exe"))).unwrap();
    check(&symbols, 0x1000, Origin::DebugInfo, &[("work(int)", "C:\\src\\work.cc", 10)]);
}

#[test]
fn the_id_decides_which_pdb_is_used() {
    let folder = TestFolder::new("ids");
    let app = folder.write("app.exe", &image());
    folder.write("app.pdb", &pdb(0xb));
    let found = folder.find(&app);
    assert!(found.debug_file.is_none());
    let tried = found.tried.iter().find(|attempt| attempt.path == folder.0.join("app.pdb")).unwrap();
    let other = "debug id 04030201060508070910111213141516b".to_owned();
    assert_eq!(tried.outcome, AttemptOutcome::OtherIdentity(other));
    // Only exports are left.
    let symbols = ModuleSymbols::open(&found).unwrap();
    check(&symbols, 0x1010, Origin::Exports, &[("exported_by_image", "", 0)]);
}

#[test]
fn an_image_of_another_build_is_not_used() {
    let folder = TestFolder::new("image");
    let mut other = image();
    put(&mut other, 0x48, &words(&[1]));
    let app = folder.write("app.exe", &other);
    assert!(folder.find(&app).binary.is_none());
    let store = folder.write("symbols/app.exe/5CA12C433000/app.exe", &image());
    assert_eq!(folder.find(&app).binary.unwrap().path, store);
}

#[test]
fn breakpad_files_are_found_by_name_and_layout() {
    for path in ["symbols/app.sym", "symbols/app.pdb/04030201060508070910111213141516A/app.sym", "app.sym"] {
        let folder = TestFolder::new(&format!("breakpad-{}", path.len()));
        let app = folder.write("app.exe", &image());
        let file = folder.write(path, SYMBOL_FILE.as_bytes());
        let found = folder.find(&app);
        assert_eq!(found.debug_file.as_ref().map(|file| &file.path), Some(&file));
        let symbols = ModuleSymbols::open(&found).unwrap();
        check(&symbols, 0x1004, Origin::DebugInfo, &[("work(int)", "C:\\src\\work.cc", 10)]);
        check(&symbols, 0x1104, Origin::PublicSymbols, &[("only", "", 0)]);
    }
}

#[test]
fn a_saved_profile_names_the_pdb() {
    let folder = TestFolder::new("saved");
    folder.write("symbols/other-name.pdb", &pdb(0xa));
    let request = ModuleRequest {
        path: PathBuf::from("C:\\app.exe"),
        debug_id: Some(debug_id()),
        debug_name: "other-name.pdb".to_owned(),
        ..ModuleRequest::default()
    };
    assert!(folder.find_request(&request).debug_file.is_some());
}

#[test]
fn a_linux_program_named_exe_is_one_of_linux() {
    let folder = TestFolder::new("elf");
    let program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let path = folder.write("program.exe", &program);
    let found = folder.find_request(&ModuleRequest { path, ..ModuleRequest::default() });
    assert!(found.binary.is_some());
}

#[test]
fn functions_are_counted_by_architecture() {
    const TABLE_BYTES: u32 = 48;
    let folder = TestFolder::new("described");
    let expected = [(0x8664, Architecture::X86_64, 4), (0xaa64, Architecture::Aarch64, 6)];
    for (machine, architecture, functions) in expected {
        let mut bytes = image();
        put(&mut bytes, 0x44, &u16::to_le_bytes(machine));
        put(&mut bytes, 0x58 + 112 + 24, &words(&[0x2180, TABLE_BYTES]));
        let path = folder.write("app.exe", &bytes);
        let source = Arc::new(FileSource::new(File::open(&path).unwrap()));
        let contents = WindowsContents::of(&OpenFile { path, source }).unwrap().unwrap();
        let WindowsContents::Image(image) = contents else { panic!("it is an image") };
        assert_eq!((image.architecture, image.described_functions), (architecture, functions));
    }
}

#[test]
fn damaged_pdbs_end() {
    let folder = TestFolder::new("damaged");
    let whole = pdb(0xa);
    let app = folder.write("app.exe", &image());
    let look = |bytes: &[u8]| {
        folder.write("app.pdb", bytes);
        if let Ok(symbols) = ModuleSymbols::open(&folder.find(&app)) {
            for address in [0x1000, 0x1010, 0x1100] {
                let _ = symbols.lookup(RelativeAddress(address));
            }
        }
    };
    for len in (0..whole.len()).step_by(331) {
        look(&whole[..len]);
    }
    for at in (32..whole.len()).step_by(17) {
        let mut damaged = whole.clone();
        for byte in damaged.iter_mut().skip(at).take(4) {
            *byte = 0xff;
        }
        look(&damaged);
    }
}
