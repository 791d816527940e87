//! Compares every row of every FDE of some binaries with gimli's evaluation.

use gimli::{BaseAddresses, CieOrFde, EhFrame, LittleEndian, UnwindContext, UnwindSection};
use nyquist_object::{ByteSource, Elf, FileSource, RelativeAddress, Svma};
use nyquist_test_support::unwind_rows::{agrees, vendor};
use nyquist_unwind::Module;
use std::fs::File;

fn compare_file(path: &str) -> usize {
    compare(path, &Elf::open(FileSource::new(File::open(path).unwrap())).unwrap())
}

/// Compares all rows of `.eh_frame` and returns how many there were.
fn compare<S: ByteSource>(name: &str, elf: &Elf<S>) -> usize {
    let module = Module::from_elf(elf).unwrap();
    assert_eq!(module.damage().first, None, "{name}");
    let bytes = elf.section_data(".eh_frame").unwrap().unwrap();
    let address = |name| elf.section(name).map_or(0, |section| section.address.0);
    let bases = BaseAddresses::default()
        .set_eh_frame(address(".eh_frame"))
        .set_text(address(".text"))
        .set_got(address(".got"));
    let mut section = EhFrame::new(&bytes, LittleEndian);
    section.set_vendor(vendor(elf.architecture()));
    let mut entries = section.entries(&bases);
    let mut context = UnwindContext::new();
    let mut rows = 0;
    while let Some(entry) = entries.next().unwrap() {
        let CieOrFde::Fde(partial) = entry else { continue };
        let fde = partial.parse(EhFrame::cie_from_offset).unwrap();
        let mut table = fde.rows(&section, &bases, &mut context).unwrap();
        while let Some(row) = table.next_row().unwrap() {
            let end = row.end_address().min(fde.end_address());
            for address in [row.start_address(), end.wrapping_sub(1)] {
                if !(row.start_address()..end).contains(&address) {
                    continue;
                }
                let relative = RelativeAddress::from_svma(Svma(address), elf.image_base()).unwrap();
                let rule = module.rule(relative);
                let agrees = agrees(elf.architecture(), rule, row, &section, &fde);
                assert!(agrees, "{name} at {address:#x}: {rule:?} where gimli has {row:?}");
            }
            rows += 1;
        }
    }
    rows
}

#[test]
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn the_rows_of_this_program_are_gimlis() {
    let rows = compare_file(std::env::current_exe().unwrap().to_str().unwrap());
    assert!(rows > 1_000, "{rows} rows");
}

#[test]
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn rows_of_this_programs_libraries_are_gimlis() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let mut libraries: Vec<_> = maps.lines().filter_map(|line| line.split_whitespace().nth(5)).collect();
    libraries.retain(|path| path.contains(".so"));
    libraries.dedup();
    for library in libraries {
        compare_file(library);
    }
}

/// The vDSO, which is in every process but in no file.
#[test]
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn the_rows_of_the_vdso_are_gimlis() {
    use std::os::unix::fs::FileExt;
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    // Linux can be started without one.
    let Some(vdso) = maps.lines().find(|line| line.ends_with("[vdso]")) else { return };
    let (start, end) = vdso.split_once(' ').and_then(|(range, _)| range.split_once('-')).unwrap();
    let [start, end] = [start, end].map(|address| u64::from_str_radix(address, 16).unwrap());
    let mut image = vec![0; (end - start) as usize];
    File::open("/proc/self/mem").unwrap().read_exact_at(&mut image, start).unwrap();
    let rows = compare("[vdso]", &Elf::open(image).unwrap());
    assert!(rows > 5, "{rows} rows");
}
