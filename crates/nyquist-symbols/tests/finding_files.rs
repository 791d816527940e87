//! Which file is taken for a module's, and what is said of those that are not.

use nyquist_object::{BuildId, DebugId, FileIdentity, ModuleId, crc32};
use nyquist_symbols::{Finder, Found, ModuleRequest, ModuleSymbols, Outcome, SearchPaths, Wanted};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

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

/// A folder that goes away with the test.
struct Folder(PathBuf);

impl Folder {
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
        })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const ID: [u8; 4] = [0xab, 1, 2, 3];

fn request(path: &Path) -> ModuleRequest {
    let id = Some(ModuleId::BuildId(BuildId::new(&ID).unwrap()));
    ModuleRequest { path: path.to_owned(), id, ..ModuleRequest::default() }
}

fn outcome(found: &Found, path: &Path) -> Option<Outcome> {
    found.tried.iter().find(|attempt| attempt.path == path).map(|attempt| attempt.outcome.clone())
}

#[test]
fn a_file_with_another_build_id_is_not_used() {
    let folder = Folder::new("other-id");
    let program = folder.write("bin/program", &elf(Some(&[9; 4]), &[]));
    let found = folder.finder().find(&request(&program));
    assert!(found.binary.is_none());
    let expected = Outcome::OtherIdentity("build id 09090909".to_owned());
    assert_eq!(outcome(&found, &program), Some(expected));
    assert!(ModuleSymbols::open(&found).is_err());
}

#[test]
fn the_processes_own_root_comes_first_and_the_users_folders_help() {
    let folder = Folder::new("alternatives");
    let program = folder.write("bin/program", &elf(Some(&[9; 4]), &[]));
    let inside = folder.write("root/bin/program", &elf(Some(&ID), &[]));
    let mut wanted = request(&program);
    wanted.alternatives.push(inside.clone());
    assert_eq!(folder.finder().find(&wanted).binary.unwrap().path, inside);
    let given = folder.write("symbols/program", &elf(Some(&ID), &[]));
    assert_eq!(folder.finder().find(&request(&program)).binary.unwrap().path, given);
}

#[test]
fn debug_files_are_found_by_build_id() {
    let folder = Folder::new("by-id");
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
    assert!(matches!(outcome(&found, &first), Some(Outcome::OtherIdentity(_))));
}

#[test]
fn a_debug_link_is_followed_when_its_checksum_is_right() {
    let folder = Folder::new("link");
    let debug = elf(None, &[(".debug_info", b"right")]);
    let link = debug_link("program.dbg", &debug);
    let program = folder.write("bin/program", &elf(None, &[(".gnu_debuglink", &link)]));
    let wanted = ModuleRequest { path: program, ..ModuleRequest::default() };
    let below = folder.0.strip_prefix("/").unwrap().join("bin/program.dbg");
    for place in ["symbols/program.dbg", "bin/.debug/program.dbg", "bin/program.dbg"] {
        let path = folder.write(place, &debug);
        assert_eq!(folder.finder().find(&wanted).debug_file.unwrap().path, path);
        let wrong = folder.write(place, &elf(None, &[(".debug_info", b"wrong")]));
        let found = folder.finder().find(&wanted);
        assert!(found.debug_file.is_none());
        assert_eq!(outcome(&found, &wrong), Some(Outcome::WrongChecksum));
    }
    let path = folder.write(Path::new("debug").join(below).to_str().unwrap(), &debug);
    assert_eq!(folder.finder().find(&wanted).debug_file.unwrap().path, path);
}

#[test]
fn the_right_checksum_does_not_excuse_another_build_id() {
    let folder = Folder::new("link-id");
    let debug = elf(Some(&[9; 4]), &[(".debug_info", b"x")]);
    let link = debug_link("program.dbg", &debug);
    let program = folder.write("bin/program", &elf(Some(&ID), &[(".gnu_debuglink", &link)]));
    let path = folder.write("bin/program.dbg", &debug);
    let found = folder.finder().find(&request(&program));
    assert!(found.debug_file.is_none());
    assert!(matches!(outcome(&found, &path), Some(Outcome::OtherIdentity(_))));
}

#[test]
fn a_supplementary_file_must_have_the_stated_build_id() {
    let folder = Folder::new("dwz");
    let link = [b"../shared.dwz\0".as_slice(), &[7; 4]].concat();
    let sections: [(&str, &[u8]); 2] = [(".debug_info", b"x"), (".gnu_debugaltlink", &link)];
    let program = folder.write("bin/program", &elf(Some(&ID), &sections));
    let wrong = folder.write("shared.dwz", &elf(Some(&[8; 4]), &[]));
    let found = folder.finder().find(&request(&program));
    assert!(found.supplementary.is_none());
    let refused = found.tried.iter().find(|attempt| attempt.wanted == Wanted::Supplementary).unwrap();
    assert_eq!(refused.outcome, Outcome::OtherIdentity("build id 08080808".to_owned()));
    fs::write(&wrong, elf(Some(&[7; 4]), &[])).unwrap();
    assert!(folder.finder().find(&request(&program)).supplementary.is_some());
}

#[test]
fn a_file_without_an_id_is_known_by_what_it_was_when_it_was_mapped() {
    let folder = Folder::new("identity");
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
    assert_eq!(outcome(&found, &program), Some(Outcome::OtherIdentity("it was modified".to_owned())));
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
    let folder = Folder::new("no-file");
    let text = folder.write("text", b"#!/bin/sh\n");
    let missing = folder.0.join("missing");
    for (path, expected) in [
        (&folder.0, Outcome::Unreadable("not a regular file".to_owned())),
        (&text, Outcome::Unreadable("not an object file".to_owned())),
        (&missing, Outcome::Missing),
        (&PathBuf::from("/dev/zero"), Outcome::Unreadable("not a regular file".to_owned())),
    ] {
        let found = folder.finder().find(&request(path));
        assert_eq!(outcome(&found, path), Some(expected));
    }
}
