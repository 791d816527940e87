//! The contents of a file for names and stacks, according to its section headers and a few small sections.

use crate::frame_pointers::FramePointers;
use crate::go::{has_tables, is_go};
use crate::guess::described_code;
use nyquist_object::elf::{Architecture, ElfSection};
use nyquist_object::{ByteSource, Elf};

/// The largest `.comment` that is read. Real ones have some hundred bytes.
const MAX_COMMENT: u64 = 64 << 10;

/// The threshold for the share of described code. It is low because handwritten assembly, of which some
/// libraries have much, is often without unwind information.
pub(crate) const MAX_DESCRIBED_PERCENT: u8 = 50;

/// The contents of a file for names and stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a thing of its own that a file has or lacks")]
pub struct Contents {
    /// The instruction set.
    pub architecture: Architecture,
    /// DWARF: functions, lines, inlined calls (`.debug_info`).
    pub debug_info: bool,
    /// The DWARF of this file refers to `.dwo` files or a `.dwp` package for most of its contents.
    pub split: bool,
    /// `.symtab`: the names of all functions.
    pub symbol_table: bool,
    /// `.gnu_debugdata`: the names of all functions, compressed.
    pub mini_debug_info: bool,
    /// `.dynsym`: the names of exported symbols.
    pub dynamic_symbols: bool,
    /// The tables that a Go program has for its own runtime: all functions, files, lines, inlined calls.
    pub go_tables: bool,
    /// `.gnu_debuglink`: the name of a separate debug file.
    pub debug_link: bool,
    /// The share of `.text`, in per cent, that `.eh_frame` describes. 0 without the section.
    pub unwound_percent: u8,
    /// How its functions use the frame pointer. `None` if that is not known.
    pub frame_pointers: Option<FramePointers>,
    /// `.debug_frame`: the same for debuggers.
    pub debug_frame: bool,
    /// The language that it was written in, if the file states it.
    pub language: Option<Language>,
}

/// A language whose compiler marks its files, and has its own options for debug info.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Go (`.go.buildinfo`, `.gopclntab`).
    Go,
    /// Rust, at least partly (`rustc` in `.comment`).
    Rust,
}

impl Contents {
    /// Looks through a file's headers, and through `.eh_frame`.
    pub fn of<S: ByteSource>(elf: &Elf<S>) -> Self {
        let described = described_code(elf);
        let unwound_percent = unwound_percent(elf, &described);
        let has =
            |name: &str| elf.section(name).is_some_and(|section| section.has_bytes() && section.size > 0);
        Self {
            architecture: elf.architecture(),
            debug_info: has(".debug_info") || has(".zdebug_info"),
            split: has(".debug_addr"),
            symbol_table: has(".symtab"),
            mini_debug_info: has(".gnu_debugdata"),
            dynamic_symbols: has(".dynsym"),
            go_tables: has_tables(elf),
            debug_link: has(".gnu_debuglink"),
            unwound_percent,
            frame_pointers: frame_pointers(elf, unwound_percent, described.len()),
            debug_frame: has(".debug_frame") || has(".zdebug_frame"),
            language: language(elf),
        }
    }
}

/// Every program has unwind information for the few functions that the system adds to it. So the existence of
/// the section alone means little.
fn unwound_percent<S: ByteSource>(elf: &Elf<S>, described: &[(u64, u64)]) -> u8 {
    let Some(text) = elf.section(".text").filter(|text| text.size > 0) else { return 0 };
    let end = text.address.0.saturating_add(text.size);
    let within = |&(start, len): &(u64, u64)| {
        start.saturating_add(len).min(end).saturating_sub(start.max(text.address.0))
    };
    let described = described.iter().map(within).fold(0_u64, u64::saturating_add);
    (u128::from(described.min(text.size)) * 100 / u128::from(text.size)) as u8
}

/// Uses the unwind information if it describes most of the code, because it is more reliable than the first
/// instructions.
fn frame_pointers<S: ByteSource>(
    elf: &Elf<S>,
    unwound_percent: u8,
    described: usize,
) -> Option<FramePointers> {
    match elf.architecture() {
        Architecture::X86_64 if unwound_percent >= MAX_DESCRIBED_PERCENT => {
            FramePointers::by_unwind_info(elf, described)
        }
        #[cfg(feature = "disassembly")]
        Architecture::X86_64 => FramePointers::by_instructions(elf),
        _ => None,
    }
}

fn language<S: ByteSource>(elf: &Elf<S>) -> Option<Language> {
    if is_go(elf) {
        return Some(Language::Go);
    }
    let comment = elf.section(".comment").filter(|section: &&ElfSection| section.size <= MAX_COMMENT)?;
    let comment = elf.data(comment).ok()?;
    comment.windows(6).any(|word| word == b"rustc ").then_some(Language::Rust)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nyquist_object::FileSource;
    use std::fs::File;

    #[cfg_attr(not(target_os = "linux"), ignore = "the test program is not an ELF file")]
    #[test]
    fn this_test_is_rust_with_symbols_and_unwinding() {
        let file = File::open(std::env::current_exe().unwrap()).unwrap();
        let contents = Contents::of(&Elf::open(FileSource::new(file)).unwrap());
        assert_eq!(contents.language, Some(Language::Rust));
        assert!(contents.symbol_table && contents.debug_info && contents.unwound_percent > 90);
        assert!(!contents.debug_link && !contents.mini_debug_info);
    }
}
