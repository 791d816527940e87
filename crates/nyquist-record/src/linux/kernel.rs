//! Where the kernel's own code is: `/proc/kallsyms` for its image, `/proc/modules` for its modules.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};

use nyquist_convert::event::{EventKind, MappedFile, Mapping};
use nyquist_object::{Avma, FileOffset};

/// The kernel's mappings: its image as `[kernel.kallsyms]`, and its modules by their names in brackets. Nothing
/// where their addresses are hidden.
pub(crate) fn mappings() -> Vec<EventKind> {
    let symbols = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    let modules = fs::read_to_string("/proc/modules").unwrap_or_default();
    let image = image(&symbols).into_iter();
    image.chain(modules.lines().filter_map(module)).map(EventKind::Map).collect()
}

/// Whether the kernel hides its addresses from this process (`kernel.kptr_restrict`): they all read as 0.
pub(crate) fn addresses_are_hidden() -> bool {
    let mut line = String::new();
    let read = File::open("/proc/kallsyms").and_then(|file| BufReader::new(file).read_line(&mut line));
    let address = line.split(' ').next().and_then(|digits| u64::from_str_radix(digits, 16).ok());
    read.is_err() || address.is_none_or(|address| address == 0)
}

/// The kernel's image: from `_stext` to the last of its symbols that end something.
fn image(symbols: &str) -> Option<Mapping> {
    let (mut start, mut end) = (None, None);
    for line in symbols.lines() {
        let mut fields = line.split_ascii_whitespace();
        let (Some(address), _, Some(name)) = (fields.next(), fields.next(), fields.next()) else { continue };
        let address = || u64::from_str_radix(address, 16).ok().filter(|address| *address != 0);
        match name {
            "_stext" => start = address(),
            "_end" | "_etext" | "_einittext" => end = end.max(address()),
            _ => {}
        }
    }
    let start = start?;
    let len = end?.checked_sub(start)?;
    Some(kernel_mapping(start, len, "[kernel.kallsyms]".to_owned()))
}

/// Reads a line of `/proc/modules`: name, size, users, what uses it, state, address.
fn module(line: &str) -> Option<Mapping> {
    let mut fields = line.split(' ');
    let (name, len) = (fields.next()?, fields.next()?.parse().ok()?);
    let address = u64::from_str_radix(fields.nth(3)?.strip_prefix("0x")?, 16).ok();
    Some(kernel_mapping(address.filter(|address| *address != 0)?, len, format!("[{name}]")))
}

fn kernel_mapping(start: u64, len: u64, path: String) -> Mapping {
    let identity = MappedFile::Unknown;
    Mapping { pid: None, start: Avma(start), len, offset: FileOffset(0), path, identity }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_image_reaches_from_its_first_to_its_last_code() {
        let symbols = "ffffffff81000000 T _stext\nffffffff82000000 T _etext\n\
                       ffffffff83000000 T _einittext\nffffffffc0201000 t f\t[ext4]\n";
        let image = image(symbols).unwrap();
        assert_eq!((image.start, image.len), (Avma(0xffff_ffff_8100_0000), 0x200_0000));
        assert_eq!((image.pid, image.path.as_str()), (None, "[kernel.kallsyms]"));
    }

    #[test]
    fn hidden_addresses_are_no_mapping() {
        assert_eq!(image("0000000000000000 T _stext\n0000000000000000 T _etext\n"), None);
        assert_eq!(module("ext4 1077248 1 - Live 0x0000000000000000"), None);
        assert_eq!(image(""), None);
    }

    #[test]
    fn modules_are_read() {
        let module = module("ext4 1077248 1 mbcache,jbd2, Live 0xffffffffc0400000 (E)").unwrap();
        assert_eq!((module.start, module.len), (Avma(0xffff_ffff_c040_0000), 1_077_248));
        assert_eq!(module.path, "[ext4]");
    }
}
