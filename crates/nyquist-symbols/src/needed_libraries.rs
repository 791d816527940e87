//! Finds the files that the dynamic loader uses for a program's libraries (ld.so(8)).

use nyquist_system::{OsStrExt as _, open_regular};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use nyquist_object::{DynamicSection, Elf, FileSource};

/// Where libraries are installed (ld.so(8); musl's folders among them).
const USUAL_FOLDERS: [&str; 6] =
    ["/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib", "/usr/local/lib64"];

/// The magic number of the table that ldconfig makes (glibc, `sysdeps/generic/dl-cache.h`, `struct
/// cache_file_new`).
const CACHE_MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
const CACHE_HEADER: usize = 48;
const CACHE_ENTRY: usize = 24;

/// The direct dependencies of a file, each with the file that the loader would use. `library_path` is the
/// value of `LD_LIBRARY_PATH`.
pub fn needed_libraries(
    program: &Path,
    elf: &Elf<FileSource>,
    library_path: Option<&OsStr>,
) -> Vec<(String, Option<PathBuf>)> {
    let Ok(Some(dynamic)) = elf.dynamic() else { return Vec::new() };
    let cache = fs::read("/etc/ld.so.cache").unwrap_or_default();
    let folders = folders(program, &dynamic, library_path);
    let fits = |path: &PathBuf| {
        let found = open_regular(path).ok().and_then(|file| Elf::open(FileSource::new(file)).ok());
        found.is_some_and(|found| found.architecture() == elf.architecture())
    };
    let find = |name: &Vec<u8>| {
        let path = Path::new(OsStr::from_bytes(name));
        let places =
            if name.contains(&b'/') { vec![path.to_owned()] } else { places(name, &folders, &cache) };
        (path.display().to_string(), places.into_iter().find(fits))
    };
    dynamic.needed.iter().map(find).collect()
}

/// The folders that are searched before the cache: those of the file and of the user.
fn folders(program: &Path, dynamic: &DynamicSection, library_path: Option<&OsStr>) -> Vec<PathBuf> {
    let origin = program.canonicalize().ok().and_then(|path| path.parent().map(Path::to_owned));
    let origin = origin.unwrap_or_default();
    let own = |list: &Option<Vec<u8>>| {
        let list = list.clone().unwrap_or_default();
        let folders = list.split(|byte| *byte == b':').filter(|folder| !folder.is_empty());
        folders.map(|folder| expanded(folder, &origin)).collect::<Vec<_>>()
    };
    // If a RUNPATH exists, the RPATH is ignored, and the RUNPATH comes after the user's folders.
    let (before, after) = match dynamic.runpath {
        Some(_) => (Vec::new(), own(&dynamic.runpath)),
        None => (own(&dynamic.rpath), Vec::new()),
    };
    let users = library_path.map(|list| std::env::split_paths(list).collect::<Vec<_>>()).unwrap_or_default();
    before.into_iter().chain(users).chain(after).collect()
}

/// A folder with `$ORIGIN` replaced by the program's own folder.
fn expanded(folder: &[u8], origin: &Path) -> PathBuf {
    let folder = String::from_utf8_lossy(folder);
    let origin = origin.to_string_lossy();
    PathBuf::from(folder.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin))
}

fn places(name: &[u8], folders: &[PathBuf], cache: &[u8]) -> Vec<PathBuf> {
    let name_in = |folder: &Path| folder.join(OsStr::from_bytes(name));
    let own = folders.iter().map(|folder| name_in(folder));
    let usual = USUAL_FOLDERS.iter().map(|folder| name_in(Path::new(folder)));
    own.chain(cached(cache, name)).chain(usual).collect()
}

/// The paths that the cache has for a name, in its order. Offsets of strings count from the magic.
fn cached(cache: &[u8], name: &[u8]) -> Vec<PathBuf> {
    let start = cache.windows(CACHE_MAGIC.len()).position(|window| window == CACHE_MAGIC);
    let cache = start.and_then(|start| cache.get(start..)).unwrap_or_default();
    let number = |bytes: &[u8], at: usize| {
        let bytes = bytes.get(at..at + 4)?.first_chunk::<4>()?;
        usize::try_from(u32::from_ne_bytes(*bytes)).ok()
    };
    let text = |at: usize| {
        let rest = cache.get(at..)?;
        rest.get(..rest.iter().position(|byte| *byte == 0)?)
    };
    let count = number(cache, CACHE_MAGIC.len()).unwrap_or(0);
    let entries = cache.get(CACHE_HEADER..).unwrap_or_default().chunks_exact(CACHE_ENTRY).take(count);
    let path = |entry: &[u8]| {
        (text(number(entry, 4)?)? == name).then_some(())?;
        Some(PathBuf::from(OsStr::from_bytes(text(number(entry, 8)?)?)))
    };
    entries.filter_map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cache of one entry.
    fn cache(before: &[u8]) -> Vec<u8> {
        let strings = CACHE_HEADER + CACHE_ENTRY;
        let mut table = CACHE_MAGIC.to_vec();
        table.extend(1_u32.to_ne_bytes());
        table.resize(CACHE_HEADER, 0);
        table.extend([3, strings as u32, strings as u32 + 5, 0, 0, 0].map(u32::to_ne_bytes).concat());
        table.extend(b"libx\0/opt/libx\0");
        [before, &table].concat()
    }

    #[test]
    fn the_cache_is_read_also_behind_an_older_one() {
        for before in [&b""[..], b"ld.so-1.7.0\0\0\0\0\0"] {
            assert_eq!(cached(&cache(before), b"libx"), [PathBuf::from("/opt/libx")]);
            assert!(cached(&cache(before), b"liby").is_empty());
        }
    }

    #[cfg_attr(not(target_os = "linux"), ignore = "the test program is not an ELF file")]
    #[test]
    fn libraries_that_a_program_needs_are_found() {
        let this = std::env::current_exe().unwrap();
        let elf = Elf::open(FileSource::new(fs::File::open(&this).unwrap())).unwrap();
        let needed = needed_libraries(&this, &elf, None);
        let is_libc = |(name, path): &&(String, Option<PathBuf>)| name.starts_with("libc.") && path.is_some();
        // A statically linked program needs none.
        assert!(needed.is_empty() || needed.iter().any(|it| is_libc(&it)), "{needed:?}");
    }

    #[test]
    fn a_damaged_cache_has_fewer_entries() {
        let whole = cache(b"");
        for len in 0..whole.len() {
            assert!(cached(&whole[..len], b"libx").is_empty(), "{len}");
        }
    }

    #[test]
    fn folders_come_in_the_loaders_order() {
        let check = |rpath: Option<&str>, runpath: Option<&str>, expected: &[&str]| {
            let bytes = |list: Option<&str>| list.map(|list| list.as_bytes().to_vec());
            let dynamic = DynamicSection { needed: Vec::new(), rpath: bytes(rpath), runpath: bytes(runpath) };
            let found = folders(Path::new("/proc/nonexistent/app"), &dynamic, Some(OsStr::new("/user")));
            assert_eq!(found, expected.iter().map(PathBuf::from).collect::<Vec<_>>());
        };
        check(None, None, &["/user"]);
        check(Some("/a:/b"), None, &["/a", "/b", "/user"]);
        check(Some("/a"), Some("/c"), &["/user", "/c"]);
        assert_eq!(expanded(b"${ORIGIN}/../lib", Path::new("/app/bin")), Path::new("/app/bin/../lib"));
    }
}
