//! Tests which file is used for a module, and what is reported of the others.

use nyquist_object::{BuildId, DebugId, FileIdentity, ModuleId, crc32};
use nyquist_symbols::{
    AttemptOutcome, Fetch, FetchResult, FileRole, Finder, ModuleRequest, ModuleSymbols, RemoteFile,
    SearchPaths, SymbolFiles,
};
use nyquist_system::OpenRoot;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// An ELF file of headers, a build id, and sections of the given names and contents.
fn elf(build_id: Option<&[u8]>, sections: &[(&str, &[u8])]) -> Vec<u8> {
    let mut note = Vec::new();
    if let Some(id) = build_id {
        for word in [4, id.len() as u32, 3] {
            note.extend_from_slice(&word.to_le_bytes());
        }
        note.extend_from_slice(b"GNU\0");
        note.extend_from_slice(id);
    }
    let mut all: Vec<(&str, u32, &[u8])> = vec![(".note", 7, &note)];
    all.extend(sections.iter().map(|(name, bytes)| (*name, 1, *bytes)));
    let mut names = vec![0];
    let mut body = vec![0; 64];
    let mut headers = vec![0; 64];
    for (name, kind, bytes) in all {
        headers.extend_from_slice(&header(names.len(), kind, body.len(), bytes.len()));
        names.extend_from_slice(name.as_bytes());
        names.push(0);
        body.extend_from_slice(bytes);
    }
    headers.extend_from_slice(&header(names.len() - 1, 3, body.len(), names.len()));
    body.extend_from_slice(&names);
    let count = (headers.len() / 64) as u16;
    body[..20].copy_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0");
    let table = (body.len() as u64).to_le_bytes();
    body[40..48].copy_from_slice(&table);
    body[52..54].copy_from_slice(&64_u16.to_le_bytes());
    body[58..60].copy_from_slice(&64_u16.to_le_bytes());
    body[60..62].copy_from_slice(&count.to_le_bytes());
    body[62..64].copy_from_slice(&(count - 1).to_le_bytes());
    body.extend_from_slice(&headers);
    body
}

fn header(name: usize, kind: u32, offset: usize, size: usize) -> [u8; 64] {
    let mut header = [0; 64];
    header[..4].copy_from_slice(&(name as u32).to_le_bytes());
    header[4..8].copy_from_slice(&kind.to_le_bytes());
    header[24..32].copy_from_slice(&(offset as u64).to_le_bytes());
    header[32..40].copy_from_slice(&(size as u64).to_le_bytes());
    header
}

fn debug_link(name: &str, target: &[u8]) -> Vec<u8> {
    let mut link = name.as_bytes().to_vec();
    link.push(0);
    link.resize(link.len().next_multiple_of(4), 0);
    link.extend_from_slice(&crc32(0, target).to_le_bytes());
    link
}

/// A folder that is removed at the end of the test.
struct TestFolder(PathBuf);

impl TestFolder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("nyquist-finding-{name}-{}", std::process::id()));
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

    fn finder(&self) -> Finder {
        Finder::new(SearchPaths {
            symbol_dirs: vec![self.0.join("symbols")],
            debug_dirs: vec![self.0.join("debug")],
            build_id_caches: vec![self.0.join("cache")],
            simpleperf_caches: vec![self.0.join("binary_cache")],
        })
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const ID: [u8; 4] = [0xab, 1, 2, 3];

fn request(path: &Path) -> ModuleRequest {
    let id = Some(ModuleId::BuildId(BuildId::new(&ID).unwrap()));
    ModuleRequest { path: path.to_owned(), id, ..ModuleRequest::default() }
}

fn outcome(found: &SymbolFiles, path: &Path) -> Option<AttemptOutcome> {
    found.tried.iter().find(|attempt| attempt.path == path).map(|attempt| attempt.outcome.clone())
}

#[test]
fn an_unpacked_perf_archive_is_a_users_folder() {
    let folder = TestFolder::new("archive");
    let program = folder.write("symbols/.build-id/ab/010203/elf", &elf(Some(&ID), &[]));
    let found = folder.finder().find(&request(Path::new("/far/away/program")));
    assert_eq!(found.binary.unwrap().path, program);
}

#[test]
fn simpleperfs_cache_has_binaries_by_id_and_path() {
    let folder = TestFolder::new("simpleperf");
    let by_path = folder.write("binary_cache/system/lib64/libx.so", &elf(Some(&ID), &[]));
    let find = || folder.finder().find(&request(Path::new("/system/lib64/libx.so"))).binary.unwrap().path;
    assert_eq!(find(), by_path);
    let zeros = "0".repeat(32);
    let by_id = folder.write(&format!("binary_cache/ab010203{zeros}-libx.so"), &elf(Some(&ID), &[]));
    assert_eq!(find(), by_id);
    folder.write(&format!("binary_cache/ab010203{zeros}-libx.so"), &elf(Some(&[7; 4]), &[]));
    assert_eq!(find(), by_path);
}

#[test]
fn a_file_with_another_build_id_is_not_used() {
    let folder = TestFolder::new("other-id");
    let program = folder.write("bin/program", &elf(Some(&[9; 4]), &[]));
    let found = folder.finder().find(&request(&program));
    assert!(found.binary.is_none());
    let expected = AttemptOutcome::OtherIdentity("build id 09090909".to_owned());
    assert_eq!(outcome(&found, &program), Some(expected));
    assert!(ModuleSymbols::open(&found).is_err());
}

#[test]
fn the_processes_own_root_comes_first() {
    let folder = TestFolder::new("alternatives");
    let program = folder.write("bin/program", &elf(Some(&[9; 4]), &[]));
    let inside = folder.write("root/bin/program", &elf(Some(&ID), &[]));
    let mut requested = request(&program);
    requested.alternatives.push(inside.clone());
    assert_eq!(folder.finder().find(&requested).binary.unwrap().path, inside);
    let given = folder.write("symbols/program", &elf(Some(&ID), &[]));
    assert_eq!(folder.finder().find(&request(&program)).binary.unwrap().path, given);
}

#[test]
fn debug_files_are_found_by_build_id() {
    let folder = TestFolder::new("by-id");
    let program = folder.write("bin/program", &elf(Some(&ID), &[]));
    let debug = elf(Some(&ID), &[(".debug_info", b"x")]);
    for place in [
        "symbols/program.debug",
        "symbols/ab/010203.debug",
        "cache/.build-id/ab/010203/debug",
        "debug/.build-id/ab/010203.debug",
    ] {
        let path = folder.write(place, &debug);
        assert_eq!(folder.finder().find(&request(&program)).debug_file.unwrap().path, path);
    }
    let first = folder.write("debug/.build-id/ab/010203.debug", &elf(Some(&[9; 4]), &[]));
    let found = folder.finder().find(&request(&program));
    assert_ne!(found.debug_file.as_ref().unwrap().path, first);
    assert!(matches!(outcome(&found, &first), Some(AttemptOutcome::OtherIdentity(_))));
}

#[test]
fn a_debug_link_with_right_checksum_is_followed() {
    let folder = TestFolder::new("link");
    let debug = elf(None, &[(".debug_info", b"right")]);
    let link = debug_link("program.dbg", &debug);
    let program = folder.write("bin/program", &elf(None, &[(".gnu_debuglink", &link)]));
    let requested = ModuleRequest { path: program, ..ModuleRequest::default() };
    let below = folder.0.strip_prefix("/").unwrap().join("bin/program.dbg");
    for place in ["symbols/program.dbg", "bin/.debug/program.dbg", "bin/program.dbg"] {
        let path = folder.write(place, &debug);
        assert_eq!(folder.finder().find(&requested).debug_file.unwrap().path, path);
        let wrong = folder.write(place, &elf(None, &[(".debug_info", b"wrong")]));
        let found = folder.finder().find(&requested);
        assert!(found.debug_file.is_none());
        assert_eq!(outcome(&found, &wrong), Some(AttemptOutcome::WrongChecksum));
    }
    let path = folder.write(Path::new("debug").join(below).to_str().unwrap(), &debug);
    assert_eq!(folder.finder().find(&requested).debug_file.unwrap().path, path);
}

#[test]
fn a_right_checksum_excuses_no_other_build_id() {
    let folder = TestFolder::new("link-id");
    let debug = elf(Some(&[9; 4]), &[(".debug_info", b"x")]);
    let link = debug_link("program.dbg", &debug);
    let program = folder.write("bin/program", &elf(Some(&ID), &[(".gnu_debuglink", &link)]));
    let path = folder.write("bin/program.dbg", &debug);
    let found = folder.finder().find(&request(&program));
    assert!(found.debug_file.is_none());
    assert!(matches!(outcome(&found, &path), Some(AttemptOutcome::OtherIdentity(_))));
}

#[test]
fn a_supplementary_file_must_have_the_stated_id() {
    let folder = TestFolder::new("dwz");
    let link = [b"../shared.dwz\0".as_slice(), &[7; 4]].concat();
    let sections: [(&str, &[u8]); 2] = [(".debug_info", b"x"), (".gnu_debugaltlink", &link)];
    let program = folder.write("bin/program", &elf(Some(&ID), &sections));
    let wrong = folder.write("shared.dwz", &elf(Some(&[8; 4]), &[]));
    let found = folder.finder().find(&request(&program));
    assert!(found.supplementary.is_none());
    let refused = found.tried.iter().find(|attempt| attempt.requested == FileRole::Supplementary).unwrap();
    assert_eq!(refused.outcome, AttemptOutcome::OtherIdentity("build id 08080808".to_owned()));
    fs::write(&wrong, elf(Some(&[7; 4]), &[])).unwrap();
    assert!(folder.finder().find(&request(&program)).supplementary.is_some());
}

#[test]
fn a_file_without_id_is_known_by_its_mapped_self() {
    let folder = TestFolder::new("identity");
    let program = folder.write("program", &elf(None, &[(".text", b"code")]));
    let metadata = fs::metadata(&program).unwrap();
    let mut text_hash = [0; 16];
    text_hash[..4].copy_from_slice(b"code");
    let identity = FileIdentity {
        device: metadata.dev(),
        inode: metadata.ino(),
        size: metadata.size(),
        modified_ns: metadata.mtime() * 1_000_000_000 + metadata.mtime_nsec(),
        text_hash,
    };
    let find = |id: FileIdentity| {
        let id = Some(ModuleId::File(id));
        folder.finder().find(&ModuleRequest { path: program.clone(), id, ..ModuleRequest::default() })
    };
    assert!(find(identity.clone()).binary.is_some());
    let found = find(FileIdentity { modified_ns: 1, ..identity.clone() });
    assert_eq!(outcome(&found, &program), Some(AttemptOutcome::OtherIdentity("it was modified".to_owned())));
    assert!(find(FileIdentity { text_hash: [1; 16], ..identity.clone() }).binary.is_none());
    let debug_id = Some(ModuleId::File(identity).debug_id());
    let by_debug_id = |debug_id: Option<DebugId>| {
        folder.finder().find(&ModuleRequest { path: program.clone(), debug_id, ..ModuleRequest::default() })
    };
    assert!(by_debug_id(debug_id).binary.is_some());
    assert!(by_debug_id(Some(DebugId::default())).binary.is_none());
}

#[test]
fn what_is_no_file_is_said_to_be_none() {
    let folder = TestFolder::new("no-file");
    let text = folder.write("text", b"#!/bin/sh\n");
    let missing = folder.0.join("missing");
    for (path, expected) in [
        (&folder.0, AttemptOutcome::Unreadable("not a regular file".to_owned())),
        (&text, AttemptOutcome::Unreadable("not an object file".to_owned())),
        (&missing, AttemptOutcome::Missing),
        (&PathBuf::from("/dev/zero"), AttemptOutcome::Unreadable("not a regular file".to_owned())),
    ] {
        let found = folder.finder().find(&request(path));
        assert_eq!(outcome(&found, path), Some(expected));
    }
}

/// Returns the same file for every request.
#[derive(Debug)]
struct OneFile {
    path: PathBuf,
    requested: Mutex<Vec<String>>,
}

impl OneFile {
    fn new(path: PathBuf) -> Arc<Self> {
        Arc::new(Self { path, requested: Mutex::default() })
    }

    fn requested(&self) -> Vec<String> {
        std::mem::take(&mut self.requested.lock().unwrap())
    }
}

impl Fetch for OneFile {
    fn fetch(&self, file: &RemoteFile<'_>, check: &dyn Fn(&Path) -> AttemptOutcome) -> FetchResult {
        let requested = match file {
            RemoteFile::Binary(id) => format!("binary {id}"),
            RemoteFile::DebugFile(id) => format!("debug file {id}"),
            RemoteFile::Source { build_id, path } => format!("source {build_id} {path}"),
            other => format!("{other:?}"),
        };
        self.requested.lock().unwrap().push(requested);
        let outcome = check(&self.path);
        let path = (outcome == AttemptOutcome::Used).then(|| self.path.clone());
        FetchResult { path, tried: vec![("https://server/file".into(), outcome)] }
    }
}

#[test]
fn what_is_nowhere_is_fetched_by_its_build_id() {
    let folder = TestFolder::new("fetch");
    let program = folder.write("bin/program", &elf(Some(&ID), &[]));
    let right = OneFile::new(folder.write("fetched/right", &elf(Some(&ID), &[(".debug_info", b"x")])));
    let finder = folder.finder().with_fetch(right.clone());
    let found = finder.find(&request(&program));
    assert_eq!(found.debug_file.as_ref().unwrap().path, right.path);
    assert_eq!(right.requested(), ["debug file ab010203"], "the binary is there");
    let last = found.tried.last().unwrap();
    assert_eq!((last.requested, &last.outcome), (FileRole::DebugFile, &AttemptOutcome::Used));
    assert_eq!(last.path, Path::new("https://server/file"));
    // A binary that is gone, and contained its debug info.
    let found = finder.find(&request(&folder.0.join("gone")));
    assert_eq!(found.binary.unwrap().path, right.path);
    assert_eq!(right.requested(), ["binary ab010203"]);
    // Files on the machine are not fetched.
    folder.write("symbols/program.debug", &elf(Some(&ID), &[(".debug_info", b"x")]));
    finder.find(&request(&program));
    assert!(right.requested().is_empty());
}

#[test]
fn a_fetched_file_of_another_identity_is_unused() {
    let folder = TestFolder::new("fetch-wrong");
    let program = folder.write("bin/program", &elf(Some(&ID), &[]));
    let wrong = OneFile::new(folder.write("fetched/wrong", &elf(Some(&[9; 4]), &[(".debug_info", b"x")])));
    let found = folder.finder().with_fetch(wrong.clone()).find(&request(&program));
    assert!(found.debug_file.is_none());
    let expected = AttemptOutcome::OtherIdentity("build id 09090909".to_owned());
    assert_eq!(outcome(&found, Path::new("https://server/file")), Some(expected));
    // Without a build id, nothing can be fetched.
    let plain = folder.write("bin/plain", &elf(None, &[]));
    wrong.requested();
    folder
        .finder()
        .with_fetch(wrong.clone())
        .find(&ModuleRequest { path: plain, ..ModuleRequest::default() });
    assert!(wrong.requested().is_empty());
}

#[test]
fn source_is_fetched_on_request_alone() {
    let folder = TestFolder::new("fetch-source");
    let source = OneFile::new(folder.write("fetched/a.c", b"int main;"));
    let id = BuildId::new(&ID).unwrap();
    let fetched = folder.finder().with_fetch(source.clone()).fetch_source(&id, "/src/a.c");
    assert_eq!(fetched.path, Some(source.path.clone()));
    assert_eq!(source.requested(), ["source ab010203 /src/a.c"]);
    assert_eq!(folder.finder().fetch_source(&id, "/src/a.c").path, None);
}

/// A unit of DWARF 5 with a kind (`DW_UT_skeleton` is 4, `DW_UT_split_compile` is 5), an id, an entry of the
/// first abbreviation, and further bytes.
fn unit(kind: u8, id: u64, rest: &[u8]) -> Vec<u8> {
    let mut body = vec![5, 0, kind, 8, 0, 0, 0, 0];
    body.extend_from_slice(&id.to_le_bytes());
    body.push(1);
    body.extend_from_slice(rest);
    [&(body.len() as u32).to_le_bytes()[..], &body].concat()
}

/// A program with one split-off unit, which has this id.
fn split_program(id: u64) -> Vec<u8> {
    // A skeleton unit with `DW_AT_dwo_name`, a string.
    let abbreviations = [1, 0x4a, 0, 0x76, 8, 0, 0, 0];
    let info = unit(4, id, b"x.dwo\0");
    elf(Some(&ID), &[(".debug_info", &info), (".debug_abbrev", &abbreviations), (".debug_addr", &[0; 8])])
}

/// A package with one unit (DWARF 5, 7.3.5.3).
fn split_package(id: u64) -> Vec<u8> {
    let info = unit(5, id, &[]);
    let abbreviations = [1, 0x11, 0, 0, 0, 0];
    let mut index = [5, 2, 1, 2].map(u32::to_le_bytes).concat();
    let slots = if id & 1 == 0 { [id, 0] } else { [0, id] };
    index.extend(slots.map(u64::to_le_bytes).concat());
    let rows = if id & 1 == 0 { [1, 0] } else { [0, 1] };
    let sections = [1, 3, 0, 0, info.len() as u32, abbreviations.len() as u32];
    index.extend(rows.into_iter().chain(sections).flat_map(u32::to_le_bytes));
    let sections: [(&str, &[u8]); 3] =
        [(".debug_cu_index", &index), (".debug_info.dwo", &info), (".debug_abbrev.dwo", &abbreviations)];
    elf(None, &sections)
}

const SPLIT: u64 = 0x1122_3344_5566_7788;

/// The files that are found for a program that is held open, as in a recording, given its path and the roots.
fn find_held(folder: &TestFolder, path: &Path, roots: Vec<OpenRoot>) -> SymbolFiles {
    let held = fs::File::open(folder.write("held", &split_program(SPLIT))).unwrap();
    let alternatives =
        vec![PathBuf::from(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&held)))];
    folder.finder().find(&ModuleRequest { alternatives, roots, ..request(path) })
}

#[test]
fn a_package_beside_its_program_has_its_units() {
    let folder = TestFolder::new("package");
    let path = folder.0.join("bin/app");
    let package = folder.write("bin/app.dwp", &split_package(SPLIT));
    let find = || find_held(&folder, &path, Vec::new());
    assert_eq!(find().package.map(|file| file.path), Some(package.clone()));
    let cases = [
        (
            split_package(SPLIT + 1),
            AttemptOutcome::OtherIdentity("none of the units that were split off is in it".into()),
        ),
        (elf(None, &[]), AttemptOutcome::Unreadable("no package of split units".into())),
    ];
    for (bytes, expected) in cases {
        fs::write(&package, bytes).unwrap();
        let found = find();
        assert!(found.package.is_none());
        assert_eq!(outcome(&found, &package), Some(expected));
    }
    // If none is there, one in the user's folders is used.
    let named = folder.write("symbols/app.dwp", &split_package(SPLIT));
    let found = find();
    assert_eq!(found.package.map(|file| file.path), Some(named));
    assert!(
        found
            .tried
            .iter()
            .all(|attempt| !attempt.path.starts_with("/proc/self/fd/")
                || attempt.requested == FileRole::Binary)
    );
    assert_eq!(found.split_folders, [folder.0.join("bin"), folder.0.join("symbols")]);
}

#[test]
fn a_package_in_the_processes_root_comes_first() {
    let folder = TestFolder::new("roots");
    let root = folder.0.join("root");
    let path = Path::new("/nyquist-nowhere/app");
    let package = folder.write("root/nyquist-nowhere/app.dwp", &split_package(SPLIT));
    let root = OpenRoot::open(root).unwrap();
    let found = find_held(&folder, path, vec![root.clone()]);
    assert_eq!(found.package.map(|file| file.path), Some(package.clone()));
    let inside = root.path().join("nyquist-nowhere");
    assert_eq!(found.split_folders[..2], [inside, PathBuf::from("/nyquist-nowhere")]);
    // A link is resolved as in the process, and not in any other way.
    fs::remove_file(&package).unwrap();
    let outside = folder.write("outside.dwp", &split_package(SPLIT));
    std::os::unix::fs::symlink(&outside, &package).unwrap();
    assert!(find_held(&folder, path, vec![root.clone()]).package.is_none());
    let inside = format!("root/{}", outside.strip_prefix("/").unwrap().display());
    folder.write(&inside, &split_package(SPLIT));
    let found = find_held(&folder, path, vec![root]);
    assert_eq!(found.package.map(|file| file.path), Some(package));
}
