//! Files that only have the names of functions. Perf and other readers read names from them if a binary was
//! not found.
//!
//! Source of the format: System V gABI, "ELF Header", "Sections", "Symbol Table" and "Program Loading".

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use nyquist_object::elf::Architecture;

/// A file to be written beside the recording: a shared object with a symbol for each function and no code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandIn {
    /// Its name in the folder for stand-ins.
    pub file_name: String,
    /// Its contents.
    pub bytes: Vec<u8>,
}

/// The bytes of each function. An innermost frame is at the first byte, and a caller's return address is the
/// second byte.
pub(super) const SLOT: u64 = 16;
/// The offset of the functions, in the file and in memory.
pub(super) const TEXT: u64 = 0x1000;
/// The bytes of a page.
const PAGE: u64 = 0x1000;
/// Where the note with the build id is: behind the ELF header and two program headers.
const NOTE: u64 = 64 + 2 * 56;
/// The bytes of that note: its header, `GNU\0`, the id.
const NOTE_LEN: u64 = 12 + 4 + ID_LEN as u64;
const ID_LEN: usize = 16;

/// How many bytes of memory the functions need, the headers included.
pub(super) fn memory_len(functions: usize) -> u64 {
    (TEXT + SLOT * functions as u64).next_multiple_of(PAGE)
}

/// The build id of a file with these functions.
pub(super) fn build_id(names: &[String]) -> [u8; ID_LEN] {
    let half = |half: u8| {
        let mut hasher = DefaultHasher::new();
        (half, names).hash(&mut hasher);
        hasher.finish().to_le_bytes()
    };
    let mut id = [0; ID_LEN];
    id[..8].copy_from_slice(&half(0));
    id[8..].copy_from_slice(&half(1));
    id
}

/// The contents of a file with functions of these names, one after the other.
pub(super) fn file(names: &[String], architecture: Option<Architecture>) -> Vec<u8> {
    let text_len = SLOT * names.len() as u64;
    let (symbols, strings) = symbols(names);
    let section_names = b"\0.note.gnu.build-id\0.text\0.symtab\0.strtab\0.shstrtab\0";
    let symbols_at = TEXT + text_len;
    let strings_at = symbols_at + symbols.len() as u64;
    let names_at = strings_at + strings.len() as u64;
    let headers_at = (names_at + section_names.len() as u64).next_multiple_of(8);
    let mut bytes = header(headers_at, architecture);
    bytes.extend(program_header(1, 5, (0, TEXT + text_len), PAGE));
    bytes.extend(program_header(4, 4, (NOTE, NOTE_LEN), 4));
    bytes.extend([4, ID_LEN as u32, 3].into_iter().flat_map(u32::to_le_bytes));
    bytes.extend(b"GNU\0");
    bytes.extend(build_id(names));
    bytes.resize(symbols_at as usize, 0);
    bytes.extend(symbols);
    bytes.extend(strings.iter());
    bytes.extend(section_names);
    bytes.resize(headers_at as usize, 0);
    let sections = [
        Section::default(),
        Section { name: 1, kind: 7, flags: 2, place: (NOTE, NOTE_LEN), loaded: true, ..Section::default() },
        Section { name: 20, kind: 1, flags: 6, place: (TEXT, text_len), loaded: true, ..Section::default() },
        Section {
            name: 26,
            kind: 2,
            place: (symbols_at, strings_at - symbols_at),
            link: (4, 1),
            entry: 24,
            ..Section::default()
        },
        Section { name: 34, kind: 3, place: (strings_at, strings.len() as u64), ..Section::default() },
        Section { name: 42, kind: 3, place: (names_at, section_names.len() as u64), ..Section::default() },
    ];
    bytes.extend(sections.iter().flat_map(Section::bytes));
    bytes
}

/// The symbol table and its strings.
fn symbols(names: &[String]) -> (Vec<u8>, Vec<u8>) {
    /// `STB_GLOBAL` and `STT_FUNC`, in the section `.text`.
    const GLOBAL_FUNCTION: [u8; 4] = [1 << 4 | 2, 0, 2, 0];
    let (mut symbols, mut strings) = (vec![0; 24], vec![0]);
    for (name, address) in names.iter().zip((TEXT..).step_by(SLOT as usize)) {
        symbols.extend((strings.len() as u32).to_le_bytes());
        symbols.extend(GLOBAL_FUNCTION);
        symbols.extend([address, SLOT].into_iter().flat_map(u64::to_le_bytes));
        strings.extend(name.bytes().filter(|byte| *byte != 0));
        strings.push(0);
    }
    (symbols, strings)
}

fn header(section_headers_at: u64, architecture: Option<Architecture>) -> Vec<u8> {
    /// `ET_DYN`.
    const SHARED_OBJECT: u16 = 3;
    let machine = match architecture {
        Some(Architecture::Aarch64) => 183,
        Some(Architecture::X86) => 3,
        Some(Architecture::Other(machine)) => machine as u16,
        Some(Architecture::X86_64) | None => 62,
    };
    let mut bytes = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    bytes.extend([SHARED_OBJECT, machine].into_iter().flat_map(u16::to_le_bytes));
    bytes.extend(1_u32.to_le_bytes());
    bytes.extend([0, 64, section_headers_at].into_iter().flat_map(u64::to_le_bytes));
    bytes.extend(0_u32.to_le_bytes());
    // The sizes and counts of this header, of program headers and of section headers; the section of their
    // names.
    bytes.extend([64_u16, 56, 2, 64, 6, 5].into_iter().flat_map(u16::to_le_bytes));
    bytes
}

fn program_header(kind: u32, flags: u32, (at, len): (u64, u64), alignment: u64) -> Vec<u8> {
    let words = [at, at, at, len, len, alignment];
    [kind, flags]
        .into_iter()
        .flat_map(u32::to_le_bytes)
        .chain(words.into_iter().flat_map(u64::to_le_bytes))
        .collect()
}

/// A section header.
#[derive(Default)]
struct Section {
    name: u32,
    kind: u32,
    flags: u64,
    /// Where it is in the file, and its size.
    place: (u64, u64),
    /// Whether it is loaded, at the same offset in memory.
    loaded: bool,
    /// `sh_link` and `sh_info`.
    link: (u32, u32),
    entry: u64,
}

impl Section {
    fn bytes(&self) -> Vec<u8> {
        let (at, len) = self.place;
        let mut bytes = [self.name, self.kind].map(u32::to_le_bytes).concat();
        let address = if self.loaded { at } else { 0 };
        bytes.extend([self.flags, address, at, len].into_iter().flat_map(u64::to_le_bytes));
        bytes.extend([self.link.0, self.link.1].into_iter().flat_map(u32::to_le_bytes));
        bytes.extend([1, self.entry].into_iter().flat_map(u64::to_le_bytes));
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nyquist_object::{BuildId, Elf, RelativeAddress};
    use nyquist_symbols::ModuleSymbols;

    #[test]
    fn a_stand_in_is_an_elf_file_with_its_functions() {
        let names = ["main".to_owned(), "<a::B as C>::d".to_owned()];
        let bytes = file(&names, Some(Architecture::Aarch64));
        let elf = Elf::open(bytes.as_slice()).unwrap();
        assert_eq!(elf.architecture(), Architecture::Aarch64);
        assert_eq!(elf.build_id(), BuildId::new(&build_id(&names)));
        assert!(elf.section(".text").unwrap().is_code());
        let symbols = ModuleSymbols::from_image(bytes).unwrap();
        let check = |address: u32, expected: &str| {
            let found = symbols.lookup(RelativeAddress(address));
            assert_eq!(found.symbol.map(|symbol| symbol.name.to_string()).as_deref(), Some(expected));
        };
        check(0x1000, "main");
        check(0x1010, "<a::B as C>::d");
        check(0x101f, "<a::B as C>::d");
    }
}
