//! The vDSO has no file, so its symbols come from the image in memory.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use nyquist_object::RelativeAddress;
use nyquist_symbols::{ModuleSymbols, Origin};
use std::os::unix::fs::FileExt;

/// The vDSO of this process. A kernel may be built without one.
fn image() -> Option<Vec<u8>> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| line.ends_with("[vdso]"))?;
    let (start, end) = line.split_whitespace().next()?.split_once('-')?;
    let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
    let mut image = vec![0; usize::try_from(end - start).ok()?];
    std::fs::File::open("/proc/self/mem").ok()?.read_exact_at(&mut image, start).ok()?;
    Some(image)
}

#[test]
fn its_functions_have_names_and_code() {
    let Some(image) = image() else { return };
    let size = image.len() as u32;
    let symbols = ModuleSymbols::from_image(image).unwrap();
    let answers = (0..size).step_by(16).map(|at| symbols.lookup(RelativeAddress(at)));
    let named = answers.filter_map(|info| Some((info.symbol?, info.origin)));
    let clock = named.into_iter().find(|(symbol, _)| symbol.name.ends_with("clock_gettime"));
    let (symbol, origin) = clock.expect("a vDSO without clock_gettime");
    assert_eq!(origin, Origin::DynamicSymbols);
    let code = symbols.disassemble(symbol.address, 1, true).unwrap();
    assert_eq!(code.start, symbol.address);
    assert!(code.instructions.len() > 1, "{code:?}");
    assert!(code.size <= symbol.size.unwrap());
}
