//! Compiles the tables of the files given, over and over, first only as far as is done before the first walk, then all;
//! and lets gimli evaluate the same rows beside it.
//!
//! Under callgrind, `compile 1 FILE` counts the instructions of one compilation (see README.md).

use anyhow::{Context, Result};
use gimli::{BaseAddresses, CieOrFde, EhFrame, LittleEndian, UnwindContext, UnwindSection};
use nyquist_object::Elf;
use nyquist_unwind::Module;
use nyquist_unwind::rule_table::RuleTable;
use nyquist_unwind_bench::cpu;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::hint::black_box;
use std::time::Instant;

/// Milliseconds: on the processor on average, and the best on the clock.
fn measure(passes: usize, mut run: impl FnMut() -> Result<()>) -> Result<(f64, f64)> {
    let mut best = f64::INFINITY;
    let used = cpu::used();
    for _ in 0..passes {
        let begun = Instant::now();
        run()?;
        best = best.min(begun.elapsed().as_secs_f64() * 1e3);
    }
    Ok((cpu::used().saturating_sub(used).as_secs_f64() * 1e3 / passes as f64, best))
}

/// Tells tables apart: two versions of this program that print the same number have made the same table.
fn digest<'a>(tables: impl Iterator<Item = &'a RuleTable>) -> u64 {
    let mut hasher = DefaultHasher::new();
    for table in tables {
        for region in table.regions() {
            (region.start, region.end, region.first_bucket).hash(&mut hasher);
        }
        table.index().hash(&mut hasher);
        for row in table.rows() {
            (row.low, row.rule).hash(&mut hasher);
        }
        table.rules().hash(&mut hasher);
    }
    hasher.finish()
}

/// Evaluates all rows, and keeps none.
fn gimli_rows(eh_frame: &[u8], bases: &BaseAddresses) -> Result<usize> {
    let section = EhFrame::new(eh_frame, LittleEndian);
    let mut entries = section.entries(bases);
    let mut context = UnwindContext::new();
    let mut rows = 0;
    while let Some(entry) = entries.next()? {
        let CieOrFde::Fde(partial) = entry else { continue };
        let fde = partial.parse(EhFrame::cie_from_offset)?;
        let mut table = fde.rows(&section, bases, &mut context)?;
        while let Some(row) = table.next_row()? {
            black_box(row);
            rows += 1;
        }
    }
    Ok(rows)
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let passes: usize = arguments.next().context("usage: compile PASSES FILE...")?.parse()?;
    for path in arguments {
        let elf = Elf::open(std::fs::read(&path)?)?;
        let mut last = None;
        if passes > 1 {
            let (cpu, best) = measure(passes, || {
                black_box(Module::from_elf(&elf)?);
                Ok(())
            })?;
            println!(
                "{path}: before the first walk {cpu:.1} ms on the processor, best on the clock {best:.1} ms"
            );
        }
        let (cpu, best) = measure(passes, || {
            let module = Module::from_elf(&elf)?;
            black_box(module.tables().count());
            last = Some(module);
            Ok(())
        })?;
        let module = last.context("no pass")?;
        let (tables, all) = (module.tables().map(RuleTable::size).sum::<usize>(), module.size());
        println!(
            "{path}: {cpu:.1} ms on the processor, best on the clock {best:.1} ms; tables of {tables} bytes, {all} with all that is kept"
        );
        if passes == 1 {
            continue;
        }
        println!("  the tables are {:016x}", digest(module.tables()));
        let address = |name| elf.section(name).map_or(0, |section| section.address.0);
        let bases = BaseAddresses::default().set_eh_frame(address(".eh_frame")).set_text(address(".text"));
        let eh_frame = elf.section_data(".eh_frame")?.unwrap_or_default();
        let (cpu, best) = measure(passes, || {
            black_box(gimli_rows(&eh_frame, &bases)?);
            Ok(())
        })?;
        println!("  gimli, rows only: {cpu:.1} ms on the processor, best on the clock {best:.1} ms");
    }
    Ok(())
}
