//! Damaged files give worse answers, but never cause a panic, a hang or unbounded memory.

use nyquist_object::{ByteSource, Elf, FileSource, RelativeAddress};
use nyquist_symbols::ModuleSymbols;
use std::fs::File;
use std::num::NonZeroUsize;
use std::sync::atomic::AtomicBool;

/// A small pseudo-random generator with the same numbers in every run.
struct Random(u64);

impl Random {
    fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below.max(1)
    }
}

/// The test program itself, and the places of its sections with these names: `(offset, size)`.
fn own_image(sections: &[&str]) -> (Vec<u8>, Vec<(usize, usize)>) {
    let path = std::env::current_exe().unwrap();
    let elf = Elf::open(FileSource::new(File::open(path).unwrap())).unwrap();
    let image = elf.source().read_range(0, elf.source().len()).unwrap();
    let place = |name: &&str| {
        let section = elf.section(name)?;
        Some((usize::try_from(section.offset.0).unwrap(), usize::try_from(section.size).unwrap()))
    };
    (image, sections.iter().filter_map(place).filter(|place| place.1 > 0).collect())
}

fn ask(image: Vec<u8>, addresses: &[RelativeAddress]) -> usize {
    let Ok(symbols) = ModuleSymbols::from_image(image) else { return 0 };
    let answers = symbols.symbolicate(addresses, NonZeroUsize::MIN, &AtomicBool::new(false));
    assert_eq!(answers.len(), addresses.len());
    let _ = symbols.disassemble(addresses[0], 64, true);
    let _ = symbols.named_source("/etc/passwd", addresses[0]);
    answers.iter().filter(|info| !info.frames.is_empty()).count()
}

fn addresses(image: &[u8]) -> Vec<RelativeAddress> {
    let elf = Elf::open(image).unwrap();
    let text = elf.section(".text").unwrap();
    let start = u32::try_from(text.address.0 - elf.image_base().0).unwrap();
    let step = usize::try_from(text.size / 400).unwrap().max(1);
    (0..u32::try_from(text.size).unwrap()).step_by(step).map(|at| RelativeAddress(start + at)).collect()
}

/// Changes bytes in one section after the other, and looks up addresses all over the code.
fn damage(sections: &[&str], rounds: u64, change: impl Fn(&mut Random, &mut [u8])) {
    let (image, places) = own_image(sections);
    assert!(!places.is_empty());
    let addresses = addresses(&image);
    assert!(ask(image.clone(), &addresses) > 300, "the undamaged program has names");
    let mut random = Random(0x5eed);
    for round in 0..rounds {
        let (start, size) = places[usize::try_from(round).unwrap() % places.len()];
        let mut damaged = image.clone();
        change(&mut random, &mut damaged[start..start + size]);
        ask(damaged, &addresses);
    }
}

const DWARF: [&str; 8] = [
    ".debug_info",
    ".debug_abbrev",
    ".debug_line",
    ".debug_ranges",
    ".debug_rnglists",
    ".debug_aranges",
    ".debug_str",
    ".debug_str_offsets",
];

#[test]
fn single_bytes_of_debug_info() {
    damage(&DWARF, 48, |random, section| {
        for _ in 0..64 {
            let at = random.next(section.len() as u64) as usize;
            section[at] = random.next(256) as u8;
        }
    });
}

#[test]
fn overwritten_debug_info_does_not_panic() {
    damage(&DWARF, 24, |random, section| {
        let at = random.next(section.len() as u64) as usize;
        let end = section.len().min(at + 4096);
        let fill = [0, 0xff, 0x80, 1][random.next(4) as usize];
        section[at..end].fill(fill);
    });
}

#[test]
fn damaged_section_starts_do_not_panic() {
    damage(&DWARF, 48, |random, section| {
        let end = section.len().min(64);
        section[..end].iter_mut().for_each(|byte| *byte = random.next(256) as u8);
    });
}

#[test]
fn damaged_symbol_tables_do_not_panic() {
    damage(&[".symtab", ".strtab", ".dynsym", ".rela.plt", ".plt", ".rela.dyn"], 24, |random, section| {
        for _ in 0..512 {
            let at = random.next(section.len() as u64) as usize;
            section[at] = random.next(256) as u8;
        }
    });
}

#[test]
fn a_file_that_is_cut_anywhere_does_not_panic() {
    let (image, _) = own_image(&[".text"]);
    let addresses = addresses(&image);
    for part in 0..24 {
        ask(image[..image.len() * part / 24].to_vec(), &addresses);
    }
}

#[test]
fn damaged_headers_do_not_panic() {
    let (image, _) = own_image(&[".text"]);
    let addresses = addresses(&image);
    let table = u64::from_le_bytes(image[40..48].try_into().unwrap()) as usize;
    let mut random = Random(7);
    for round in 0..64 {
        let mut damaged = image.clone();
        for _ in 0..4 {
            let part = if round % 2 == 0 { 0..0x200 } else { table..image.len() };
            let at = part.start + random.next(part.len() as u64) as usize;
            damaged[at] = random.next(256) as u8;
        }
        ask(damaged, &addresses);
    }
}
