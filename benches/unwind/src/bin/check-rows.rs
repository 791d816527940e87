//! Compares every row of every FDE of the files given with gimli's evaluation, read at once and read on the way. Fails
//! on any difference.

use anyhow::{Context, Result, ensure};
use gimli::{BaseAddresses, CieOrFde, DebugFrame, EhFrame, LittleEndian, UnwindContext, UnwindSection};
use nyquist_object::{Elf, FileSource, RelativeAddress, Svma};
use nyquist_unwind::Module;
use nyquist_test_support::unwind_rows::{Slice, agrees, vendor};
use std::collections::BTreeMap;
use std::fs::File;

/// What has been compared.
#[derive(Default)]
struct Counts {
    fdes: usize,
    rows: usize,
    differences: usize,
    /// FDEs that gimli gives up on.
    unreadable: usize,
    kinds: BTreeMap<String, usize>,
}

type Source = Elf<FileSource>;

/// A file's module as it is when all is read at once, and as it is when what a large file says is read on the way.
struct Modules {
    at_once: Module,
    on_the_way: Module,
}

impl Modules {
    fn open(path: &str) -> Result<Self> {
        let elf = || anyhow::Ok(Elf::open(FileSource::new(File::open(path)?))?);
        Ok(Self { at_once: Module::from_elf(&elf()?)?, on_the_way: Module::from_shared_elf(elf()?)? })
    }
}

fn check<'a, U: UnwindSection<Slice<'a>>>(
    elf: &Source,
    modules: &Modules,
    section: &U,
    bases: &BaseAddresses,
    skip: &dyn Fn(u64) -> bool,
    counts: &mut Counts,
) -> Result<()> {
    let mut entries = section.entries(bases);
    let mut context = UnwindContext::new();
    while let Some(entry) = entries.next()? {
        let CieOrFde::Fde(partial) = entry else { continue };
        let fde = partial.parse(U::cie_from_offset)?;
        if fde.is_empty() || skip(fde.initial_address()) {
            continue;
        }
        counts.fdes += 1;
        let mut table = fde.rows(section, bases, &mut context)?;
        loop {
            let row = match table.next_row() {
                Ok(Some(row)) => row,
                Ok(None) => break,
                Err(error) => {
                    println!("  FDE at {:#x}: gimli says {error}", fde.offset());
                    counts.unreadable += 1;
                    break;
                }
            };
            let end = row.end_address().min(fde.end_address());
            if row.start_address() >= end {
                continue;
            }
            counts.rows += 1;
            for address in [row.start_address(), end - 1] {
                let relative = RelativeAddress::from_svma(Svma(address), elf.image_base());
                let relative = relative.context("an address beyond 4 GiB")?;
                let rule = modules.at_once.rule(relative);
                *counts.kinds.entry(format!("{:?}", rule.kind())).or_default() += 1;
                for rule in [rule, modules.on_the_way.rule(relative)] {
                    if !agrees(elf.architecture(), rule, row, section, &fde) {
                        counts.differences += 1;
                        if counts.differences < 20 {
                            println!("  {address:#x}: {rule:?} where gimli has {row:?}");
                        }
                    }
                }
            }
        }
    }
    Ok(())
}

trait IsEmpty {
    fn is_empty(&self) -> bool;
}

impl IsEmpty for gimli::FrameDescriptionEntry<Slice<'_>> {
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn check_file(path: &str) -> Result<usize> {
    let elf = Elf::open(FileSource::new(File::open(path)?))?;
    let modules = Modules::open(path)?;
    let address = |name| elf.section(name).map_or(0, |section| section.address.0);
    let bases = BaseAddresses::default()
        .set_eh_frame(address(".eh_frame"))
        .set_text(address(".text"))
        .set_got(address(".got"));
    let mut counts = Counts::default();
    let in_code = |address: u64| {
        let inside = |s: &&nyquist_object::elf::ElfSegment| {
            (s.address.0..s.address.0 + s.file_size).contains(&address)
        };
        elf.segments().iter().filter(|segment| segment.executable).any(|segment| inside(&segment))
    };
    let eh_frame = elf.section_data(".eh_frame")?.unwrap_or_default();
    let mut section = EhFrame::new(&eh_frame, LittleEndian);
    section.set_vendor(vendor(elf.architecture()));
    check(&elf, &modules, &section, &bases, &|a| !in_code(a), &mut counts)?;
    // What .eh_frame describes is described by it alone.
    if eh_frame.is_empty() {
        let debug_frame = elf.section_data(".debug_frame")?.unwrap_or_default();
        let mut section = DebugFrame::new(&debug_frame, LittleEndian);
        section.set_vendor(vendor(elf.architecture()));
        check(&elf, &modules, &section, &bases, &|a| !in_code(a), &mut counts)?;
    }
    let Counts { fdes, rows, differences, unreadable, kinds } = counts;
    println!(
        "{path}: {fdes} FDEs, {rows} rows, {differences} differences, {unreadable} unreadable to gimli, damage {:?}, {kinds:?}",
        modules.at_once.damage()
    );
    ensure!(rows > 0, "no rows to compare");
    Ok(differences)
}

fn main() -> Result<()> {
    let mut differences = 0;
    let mut files = 0;
    for path in std::env::args().skip(1) {
        differences += check_file(&path).with_context(|| path.clone())?;
        files += 1;
    }
    ensure!(files > 0, "usage: check-rows FILE...");
    ensure!(differences == 0, "{differences} rows differ from gimli's");
    Ok(())
}
