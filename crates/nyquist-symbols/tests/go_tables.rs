//! Go programs without debug info and symbol table: names, files, lines and inlined calls from the tables
//! that the programs carry for their own runtime.

use nyquist_object::RelativeAddress;
use nyquist_symbols::{ModuleSymbols, Origin, Reason};
use nyquist_test_support::go_image::{Place, TEXT, Version, build};
use std::num::NonZeroUsize;
use std::sync::atomic::AtomicBool;

const VERSIONS: [Version; 4] = [Version::Two, Version::Sixteen, Version::Eighteen, Version::Twenty];
const PLACES: [Place; 3] = [Place::Section, Place::Segment, Place::Relocated];

/// The made-up programs, each with all places of the tables.
fn programs() -> impl Iterator<Item = (Version, Place)> {
    VERSIONS.into_iter().flat_map(|version| PLACES.map(|place| (version, place)))
}

/// The frames at an address, from inside to outside.
fn frames(symbols: &ModuleSymbols, address: u32) -> Vec<String> {
    let info = symbols.lookup(RelativeAddress(address));
    assert_eq!(info.origin, Origin::GoTables, "{address:#x}");
    let shown = info.frames.iter().map(|frame| {
        let (function, file) = (frame.function.as_deref(), frame.file.as_deref());
        format!("{} {}:{}", function.unwrap_or("?"), file.unwrap_or("?"), frame.line.unwrap_or(0))
    });
    shown.collect()
}

#[test]
fn every_version_gives_names_files_and_lines() {
    for (version, place) in programs() {
        let symbols = ModuleSymbols::from_image(build(version, place)).unwrap();
        let check = |address: u32, expected: &[&str]| {
            assert_eq!(frames(&symbols, TEXT + address), expected, "{version:?} {place:?} {address:#x}");
        };
        check(0, &["main.main /src/main.go:10"]);
        check(0x3f, &["main.main /src/main.go:10"]);
        check(0x80, &["main.main /src/main.go:11"]);
        check(0x100, &["main.(*T).other /src/inner.go:7"]);
        check(0x1ff, &["main.(*T).other /src/inner.go:7"]);
        let outside = symbols.lookup(RelativeAddress(TEXT + 0x200));
        assert_eq!(outside.origin, Origin::Unknown(Reason::NotCovered), "{version:?} {place:?}");
    }
}

#[test]
fn inlined_calls_have_frames_since_go_1_16() {
    for (version, place) in programs() {
        let symbols = ModuleSymbols::from_image(build(version, place)).unwrap();
        let found = frames(&symbols, TEXT + 0x50);
        if version == Version::Two {
            assert_eq!(found, ["main.main /src/inner.go:50"], "the place is known, the call is not");
            continue;
        }
        let chain =
            ["main.inner /src/inner.go:50", "main.outer /src/main.go:30", "main.main /src/main.go:10"];
        assert_eq!(found, chain, "{version:?} {place:?}");
        assert_eq!(frames(&symbols, TEXT + 0x60), chain[1..], "{version:?} {place:?}");
    }
}

#[test]
fn symbols_are_whole_functions_of_known_sources() {
    let symbols = ModuleSymbols::from_image(build(Version::Twenty, Place::Section)).unwrap();
    let symbol = symbols.lookup(RelativeAddress(TEXT + 0x50)).symbol.unwrap();
    assert_eq!((&*symbol.name, symbol.address.0, symbol.size), ("main.main", TEXT, Some(0x100)));
    assert!(symbols.named_source("/src/inner.go", RelativeAddress(TEXT)).is_some());
    assert!(symbols.named_source("/src/main.go", RelativeAddress(TEXT + 0x100)).is_none());
}

#[test]
fn damaged_tables_only_give_fewer_answers() {
    let addresses: Vec<_> = (0..0x280).step_by(0x10).map(|address| RelativeAddress(TEXT + address)).collect();
    let look_up = |image: Vec<u8>| {
        let Ok(symbols) = ModuleSymbols::from_image(image) else { return };
        let infos = symbols.symbolicate(&addresses, NonZeroUsize::MIN, &AtomicBool::new(false));
        assert_eq!(infos.len(), addresses.len());
    };
    for (version, place) in programs() {
        let image = build(version, place);
        // The tables, and then the data that leads to inlined calls.
        for at in (0x3000..0x3200).chain(0x2000..0x2150).chain(0x2800..0x2828) {
            for byte in [0, 1, 0x7f, 0x80, 0xff] {
                let mut damaged = image.clone();
                damaged[at] = byte;
                look_up(damaged);
            }
        }
        (0..image.len()).step_by(0x40).for_each(|len| look_up(image[..len].to_vec()));
    }
}
