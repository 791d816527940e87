//! The addresses of the kernel's code: `/proc/kallsyms` for its image, `/proc/modules` for its modules.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;

use nyquist_convert::event::{EventKind, MappedFile, Mapping};
use nyquist_object::elf::build_id_in_notes;
use nyquist_object::{Avma, FileOffset};

/// The maximum size of an image (`KERNEL_IMAGE_SIZE` in Linux's `arch/x86/include/asm/page_64_types.h`). Its
/// exact end could only be found by reading the hundred thousand lines of all symbols. Code that may follow
/// it, such as trampolines and compiled BPF programs, has its names in the same file. Modules are mapped over
/// it.
const MAX_IMAGE_BYTES: u64 = 1 << 30;

/// The kernel's mappings: its image as `[kernel.kallsyms]`, and its modules by their names in brackets. Empty
/// if their addresses are hidden.
pub(crate) fn mappings() -> Vec<EventKind> {
    let image = kallsyms().and_then(first_code).map(image);
    let modules = fs::read_to_string("/proc/modules").unwrap_or_default();
    image.into_iter().chain(modules.lines().filter_map(module)).map(EventKind::Map).collect()
}

/// Whether the kernel hides its addresses from this process (`kernel.kptr_restrict`): they are all shown as
/// 0.
pub(crate) fn addresses_are_hidden() -> bool {
    kallsyms().and_then(first_code).is_none()
}

fn kallsyms() -> Option<impl BufRead> {
    File::open("/proc/kallsyms").ok().map(BufReader::new)
}

/// The start of the kernel's code: `_stext`, one of the first symbols, because they are sorted by address.
/// Symbols before it can really have the address 0.
fn first_code(symbols: impl BufRead) -> Option<u64> {
    let start = symbols.lines().map_while(Result::ok).find_map(|line| {
        let address = line.strip_suffix(" T _stext")?;
        u64::from_str_radix(address, 16).ok()
    });
    start.filter(|start| *start != 0)
}

fn image(start: u64) -> Mapping {
    let mapping =
        kernel_mapping(start, MAX_IMAGE_BYTES.min(u64::MAX - start), "[kernel.kallsyms]".to_owned());
    Mapping { identity: noted_build_id("/sys/kernel/notes".as_ref()), ..mapping }
}

/// The build id in a file of notes, which every user may read.
fn noted_build_id(path: &Path) -> MappedFile {
    let notes = fs::read(path).unwrap_or_default();
    let little_endian = cfg!(target_endian = "little");
    build_id_in_notes(&notes, little_endian).map_or(MappedFile::Unknown, MappedFile::BuildId)
}

/// Parses a line of `/proc/modules`: name, size, number of users, users, state, address.
fn module(line: &str) -> Option<Mapping> {
    let mut fields = line.split(' ');
    let (name, len) = (fields.next()?, fields.next()?.parse().ok()?);
    let address = u64::from_str_radix(fields.nth(3)?.strip_prefix("0x")?, 16).ok();
    let mapping = kernel_mapping(address.filter(|address| *address != 0)?, len, format!("[{name}]"));
    let notes = format!("/sys/module/{name}/notes/.note.gnu.build-id");
    Some(Mapping { identity: noted_build_id(notes.as_ref()), ..mapping })
}

fn kernel_mapping(start: u64, len: u64, path: String) -> Mapping {
    let identity = MappedFile::Unknown;
    Mapping { pid: None, start: Avma(start), len, offset: FileOffset(0), path, identity }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_image_begins_with_its_code() {
        let symbols =
            "0000000000000000 A fixed_percpu_data\nffffffff81000000 T _stext\nffffffff81000000 T _text\n";
        let image = image(first_code(symbols.as_bytes()).unwrap());
        assert_eq!((image.start, image.len), (Avma(0xffff_ffff_8100_0000), MAX_IMAGE_BYTES));
        assert_eq!((image.pid, image.path.as_str()), (None, "[kernel.kallsyms]"));
    }

    #[test]
    fn the_image_ends_with_the_address_space() {
        assert_eq!(image(0xffff_ffff_ff00_0000).len, 0xff_ffff);
    }

    #[test]
    fn hidden_addresses_are_no_mapping() {
        assert_eq!(first_code("0000000000000000 T _stext\n".as_bytes()), None);
        assert_eq!(first_code("".as_bytes()), None);
        assert_eq!(module("ext4 1077248 1 - Live 0x0000000000000000"), None);
    }

    #[test]
    fn modules_are_read() {
        let module = module("ext4 1077248 1 mbcache,jbd2, Live 0xffffffffc0400000 (E)").unwrap();
        assert_eq!((module.start, module.len), (Avma(0xffff_ffff_c040_0000), 1_077_248));
        assert_eq!(module.path, "[ext4]");
    }
}
