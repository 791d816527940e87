//! Places in programs and libraries that can be used as events: functions, and the probes that a program was
//! built with (USDT: notes of SystemTap's `sys/sdt.h`).

use std::ffi::CString;
use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::function_name::{self, FunctionNameError};
use super::number::number;
use nyquist_object::{Cursor, Elf, FileSource, Svma};
use nyquist_symbols::demangle;

/// A place in a file that the kernel counts (`uprobe`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The file.
    pub path: CString,
    /// The file offset of the instruction.
    pub offset: u64,
    /// The file offset of the counter that enables the probe in the program (USDT's semaphore); 0 if it has
    /// none.
    pub counter_offset: u64,
    /// Whether the function's return is counted.
    pub is_return: bool,
}

/// A probe that a program was built with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserProbe {
    /// Its provider.
    pub provider: String,
    /// Its name.
    pub name: String,
    /// The address of its instruction.
    pub address: Svma,
    /// The address of its counter, if it has one.
    pub counter: Option<Svma>,
}

/// Why there is no such place: a sentence without its subject, and the names that exist.
#[derive(Debug)]
pub(super) struct NotFound {
    pub(super) reason: String,
    pub(super) names: Vec<String>,
}

impl From<String> for NotFound {
    fn from(reason: String) -> Self {
        Self { reason, names: Vec::new() }
    }
}

/// The folders of libraries that are named without a folder, besides the architecture's folders in them.
const LIBRARIES: [&str; 4] = ["/lib", "/usr/lib", "/lib64", "/usr/local/lib"];

/// The file that a name refers to: a path, a program in PATH, or a library such as `libc` or `libc.so.6`.
pub(super) fn file_named(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| path.is_file());
    }
    if name.is_empty() {
        return None;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let programs = std::env::split_paths(&path).map(|folder| folder.join(name));
    let machine = format!("{}-linux-gnu", std::env::consts::ARCH);
    let folders =
        LIBRARIES.iter().flat_map(|folder| [Path::new(folder).join(&machine), PathBuf::from(folder)]);
    let libraries = folders.filter_map(|folder| library_in(&folder, name));
    programs.filter(|path| path.is_absolute() && path.is_file()).chain(libraries).next()
}

/// A library in a folder: with the exact name, or followed by `.so` and a version.
fn library_in(folder: &Path, name: &str) -> Option<PathBuf> {
    let exact = [name.to_owned(), format!("{name}.so")].map(|name| folder.join(name));
    let is_library = |path: &PathBuf| path.is_file() && is_elf(path);
    if let Some(path) = exact.into_iter().find(is_library) {
        return Some(path);
    }
    let prefix = format!("{name}.so.");
    let entries = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    let fits =
        |path: &PathBuf| path.file_name().is_some_and(|it| it.as_bytes().starts_with(prefix.as_bytes()));
    let mut versions: Vec<_> = entries.filter(fits).filter(is_library).collect();
    // The shortest name is the one that programs request.
    versions.sort_by_key(|path| (path.as_os_str().len(), path.clone()));
    versions.into_iter().next()
}

fn is_elf(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| Elf::open(FileSource::new(file)).is_ok())
}

fn open(path: &Path) -> Result<Elf<FileSource>, NotFound> {
    let cannot = |reason: &dyn std::fmt::Display| format!("{} cannot be read: {reason}", path.display());
    let file = File::open(path).map_err(|error| cannot(&error))?;
    Ok(Elf::open(FileSource::new(file)).map_err(|error| cannot(&error))?)
}

fn c_path(path: &Path) -> Result<CString, NotFound> {
    // The kernel resolves a path from its own root, so a path relative to this folder would name another
    // file.
    let absolute =
        path.canonicalize().map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    Ok(CString::new(absolute.as_os_str().as_bytes()).map_err(|_| "its path has a zero byte".to_owned())?)
}

/// The place of a function: `NAME`, `NAME+OFFSET` into it, or `NAME%return` for its return. Checks each
/// symbol. The name may omit parameters and its first parts.
pub(super) fn function(path: &Path, text: &str) -> Result<Probe, NotFound> {
    let elf = open(path)?;
    let (text, is_return) = text.strip_suffix("%return").map_or((text, false), |text| (text, true));
    let (name, into) = match text.rsplit_once('+') {
        Some((name, into)) if number(into).is_some() => (name, number(into).unwrap_or(0)),
        _ => (text, 0),
    };
    let symbols = functions(&elf);
    let address = function_name::find(&symbols, name).map_err(|unclear| match unclear {
        FunctionNameError::Missing => NotFound {
            reason: format!("{} has no function `{name}`", path.display()),
            names: symbols.iter().map(|(symbol, _)| demangle(symbol).into_owned()).collect(),
        },
        FunctionNameError::Several(named, more) => {
            let more = if more > 0 { format!(", and {more} more") } else { String::new() };
            let named = named.join(", ");
            format!("{} has several functions `{name}`: {named}{more}", path.display()).into()
        }
    })?;
    let offset = address.0.checked_add(into).and_then(|address| elf.file_range(Svma(address)));
    let (offset, _) = offset.ok_or_else(|| format!("`{name}` is nowhere in {}", path.display()))?;
    Ok(Probe { path: c_path(path)?, offset: offset.0, counter_offset: 0, is_return })
}

/// The places of a probe that a program was built with; several can have the same name.
pub(super) fn user_probe(path: &Path, provider: &str, name: &str) -> Result<Vec<Probe>, NotFound> {
    let elf = open(path)?;
    let all = user_probes_of(&elf);
    let wanted = all.iter().filter(|probe| probe.provider == provider && probe.name == name);
    let c_path = c_path(path)?;
    let place = |probe: &UserProbe| {
        let (offset, _) = elf.file_range(probe.address)?;
        let counter =
            probe.counter.and_then(|counter| elf.file_range(counter)).map_or(0, |(offset, _)| offset.0);
        Some(Probe { path: c_path.clone(), offset: offset.0, counter_offset: counter, is_return: false })
    };
    let places: Vec<_> = wanted.filter_map(place).collect();
    if places.is_empty() {
        let names = all.into_iter().map(|probe| format!("{}:{}", probe.provider, probe.name)).collect();
        return Err(NotFound {
            reason: format!("{} has no probe `{provider}:{name}`", path.display()),
            names,
        });
    }
    Ok(places)
}

/// The probes that a file was built with, in file order. Empty if it is not an ELF file.
pub fn user_probes(path: &Path) -> Vec<UserProbe> {
    open(path).map(|elf| user_probes_of(&elf)).unwrap_or_default()
}

fn user_probes_of(elf: &Elf<FileSource>) -> Vec<UserProbe> {
    let notes = elf.section_data(".note.stapsdt").ok().flatten().unwrap_or_default();
    let base = elf.section(".stapsdt.base").map(|section| section.address.0);
    if !elf.is_64_bit() {
        return Vec::new();
    }
    user_probes_in_notes(&notes, base, elf.is_little_endian())
}

/// Reads the notes of `sys/sdt.h`: name `stapsdt`, type 3; three addresses, then provider, name and
/// arguments, each zero-terminated. Addresses are relative to `.stapsdt.base`: the note contains its address
/// at the time of writing, and `base` is its address in the file. Skips damaged notes.
pub fn user_probes_in_notes(notes: &[u8], base: Option<u64>, little_endian: bool) -> Vec<UserProbe> {
    const TYPE: u32 = 3;
    let mut cursor = Cursor::new(notes, 0, little_endian);
    let mut probes = Vec::new();
    while let (Some(name_len), Some(len), Some(kind)) = (cursor.u32(), cursor.u32(), cursor.u32()) {
        let padded = |len: u32| u64::from(len).next_multiple_of(4);
        let name_at = cursor.position();
        let Some(()) = cursor.skip(padded(name_len)) else { break };
        let at = cursor.position();
        let Some(()) = cursor.skip(padded(len)) else { break };
        let is_probe =
            kind == TYPE && notes.get(name_at..).is_some_and(|name| name.starts_with(b"stapsdt\0"));
        let note = notes.get(at..at + len as usize).filter(|_| is_probe);
        probes.extend(note.and_then(|note| read_note(note, base, little_endian)));
    }
    probes
}

fn read_note(note: &[u8], base: Option<u64>, little_endian: bool) -> Option<UserProbe> {
    let mut cursor = Cursor::new(note, 0, little_endian);
    let (address, written_base, counter) = (cursor.u64()?, cursor.u64()?, cursor.u64()?);
    let moved = |address: u64| match base {
        Some(base) if written_base != 0 => address.wrapping_add(base).wrapping_sub(written_base),
        _ => address,
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (provider, name) = (text(cursor.string()?), text(cursor.string()?));
    let counter = (counter != 0).then(|| Svma(moved(counter)));
    Some(UserProbe { provider, name, address: Svma(moved(address)), counter })
}

/// The functions in a file's symbol tables: `STT_FUNC` and `STT_GNU_IFUNC` with an address (ELF-64, "Symbol
/// Table").
fn functions(elf: &Elf<FileSource>) -> Vec<(String, Svma)> {
    if !elf.is_64_bit() {
        return Vec::new();
    }
    [".symtab", ".dynsym"].iter().flat_map(|table| functions_in(elf, table)).collect()
}

fn functions_in(elf: &Elf<FileSource>, table: &str) -> Vec<(String, Svma)> {
    const ENTRY: usize = 24;
    const FUNCTION: u8 = 2;
    let Some(section) = elf.section(table) else { return Vec::new() };
    let strings = elf.sections().get(section.link as usize).and_then(|strings| elf.data(strings).ok());
    let (Ok(symbols), Some(strings)) = (elf.data(section), strings) else { return Vec::new() };
    let little_endian = elf.is_little_endian();
    let read = |entry: &[u8]| {
        let mut cursor = Cursor::new(entry, 0, little_endian);
        let (name, info) = (cursor.u32()? as usize, cursor.u8()?);
        cursor.skip(3)?;
        let address = cursor.u64()?;
        let name = Cursor::new(&strings, name, little_endian).string()?;
        let is_function = info & 0xf == FUNCTION && address != 0 && !name.is_empty();
        is_function.then(|| (String::from_utf8_lossy(name).into_owned(), Svma(address)))
    };
    symbols.chunks_exact(ENTRY).filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(provider: &str, name: &str, [address, base, counter]: [u64; 3]) -> Vec<u8> {
        let mut desc: Vec<u8> = [address, base, counter].iter().flat_map(|word| word.to_le_bytes()).collect();
        desc.extend(format!("{provider}\0{name}\0-4@%edi\0").bytes());
        let mut bytes: Vec<u8> =
            [8, desc.len() as u32, 3].iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend(b"stapsdt\0");
        bytes.extend(&desc);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn notes_of_probes_are_read() {
        let notes = [note("app", "begin", [0x1000, 0x2000, 0]), note("app", "end", [0x1010, 0x2000, 0x3000])];
        let probes = user_probes_in_notes(&notes.concat(), Some(0x2100), true);
        let found: Vec<_> =
            probes.iter().map(|it| (&*it.provider, &*it.name, it.address, it.counter)).collect();
        assert_eq!(
            found,
            [("app", "begin", Svma(0x1100), None), ("app", "end", Svma(0x1110), Some(Svma(0x3100)))]
        );
        let whole = notes.concat();
        for len in 0..whole.len() {
            assert!(user_probes_in_notes(&whole[..len], None, true).len() < 2, "{len}");
        }
    }

    #[test]
    fn a_function_of_the_c_library_is_found() {
        let Some(path) = file_named("libc") else { return };
        let malloc = function(&path, "malloc").unwrap();
        assert!(malloc.offset > 0 && !malloc.is_return && malloc.counter_offset == 0, "{malloc:?}");
        let inner = function(&path, "malloc+4").unwrap();
        assert_eq!(inner.offset, malloc.offset + 4);
        assert!(function(&path, "malloc%return").unwrap().is_return);
        let missing = function(&path, "no_such_function").unwrap_err();
        assert!(missing.reason.contains("no function") && missing.names.iter().any(|name| name == "malloc"));
    }
}
