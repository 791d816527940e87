//! Debug info that no compiler writes. The answers are few, but they are bounded and always the same.

use nyquist_object::RelativeAddress;
use nyquist_resources::Budget;
use nyquist_symbols::{AddressInfo, Finder, ModuleSymbols};
use nyquist_test_support::made_elf::made_elf;
use std::num::NonZeroUsize;
use std::sync::atomic::AtomicBool;

/// Abbreviations: 1 a unit with ranges, 2 a function with a name and children, 3 an inlined call with a name
/// and children, both from an address (`DW_FORM_addr`) and of a size (`DW_FORM_data4`), 4 a unit from an
/// address and of a size, 5 a function with a name and ranges.
const ABBREVIATIONS: &[u8] = &[
    1, 0x11, 1, 0x55, 0x17, 0, 0, // DW_AT_ranges, DW_FORM_sec_offset
    2, 0x2e, 1, 0x03, 0x08, 0x11, 0x01, 0x12, 0x06, 0, 0, //
    3, 0x1d, 1, 0x03, 0x08, 0x11, 0x01, 0x12, 0x06, 0, 0, //
    4, 0x11, 1, 0x11, 0x01, 0x12, 0x06, 0, 0, //
    5, 0x2e, 0, 0x03, 0x08, 0x55, 0x17, 0, 0, //
    0,
];

/// A unit of DWARF 4 with these entries.
fn unit(entries: &[u8]) -> Vec<u8> {
    let mut unit = (entries.len() as u32 + 7).to_le_bytes().to_vec();
    unit.extend([4, 0, 0, 0, 0, 0, 8]);
    unit.extend(entries);
    unit
}

fn unit_entry(start: u64, size: u32) -> Vec<u8> {
    [&[4][..], &start.to_le_bytes(), &size.to_le_bytes()].concat()
}

fn scope(code: u8, name: &str, start: u64, size: u32) -> Vec<u8> {
    [&[code][..], name.as_bytes(), &[0], &start.to_le_bytes(), &size.to_le_bytes()].concat()
}

/// A list of `.debug_ranges` with the same range, relative to the unit's base, many times.
fn ranges(count: usize) -> Vec<u8> {
    let mut list = [0_u64, 0x100].map(u64::to_le_bytes).as_flattened().repeat(count);
    list.extend([0; 16]);
    list
}

fn module(info: &[u8], ranges: &[u8]) -> ModuleSymbols {
    module_of([(".debug_info", info), (".debug_abbrev", ABBREVIATIONS), (".debug_ranges", ranges)])
}

fn module_of(sections: [(&str, &[u8]); 3]) -> ModuleSymbols {
    ModuleSymbols::from_image(made_elf(sections)).unwrap()
}

fn names(info: &AddressInfo) -> Vec<&str> {
    info.frames.iter().filter_map(|frame| frame.function.as_deref()).collect()
}

fn look_up(module: &ModuleSymbols, addresses: &[u32]) -> Vec<AddressInfo> {
    let addresses: Vec<_> = addresses.iter().copied().map(RelativeAddress).collect();
    module.symbolicate(&addresses, NonZeroUsize::MIN, &AtomicBool::new(false))
}

#[test]
fn an_answer_does_not_depend_on_other_questions() {
    // A call that is inlined into a shorter one.
    let entries = [
        unit_entry(0x100, 0x100),
        scope(2, "function", 0x100, 0x100),
        scope(3, "short", 0x100, 0x10),
        scope(3, "long", 0x100, 0x80),
        vec![0, 0, 0, 0],
    ];
    let module = module(&unit(&entries.concat()), &[]);
    let together = look_up(&module, &[0x108, 0x140]);
    assert_eq!(names(&together[0]), ["long", "short", "function"]);
    assert_eq!(names(&together[1]), ["function"]);
    for (address, info) in [0x108, 0x140].into_iter().zip(together) {
        assert_eq!(module.lookup(RelativeAddress(address)), info, "{address:#x}");
    }
}

#[test]
fn answers_take_the_memory_of_their_finder() {
    let entries = [unit_entry(0x100, 0x100), scope(2, "function", 0x100, 0x100), vec![0, 0, 0]];
    let info = unit(&entries.concat());
    let image = made_elf([(".debug_info", &info), (".debug_abbrev", ABBREVIATIONS), (".debug_ranges", &[])]);
    let found_within = |bytes| {
        let budget = Budget::new(bytes);
        let module = Finder::default().with_budget(budget.clone()).open_image(image.clone()).unwrap();
        let infos = look_up(&module, &[0x108]);
        (names(&infos[0]).len(), budget.was_refused(), budget.used())
    };
    assert_eq!(found_within(1 << 20), (1, false, 0));
    assert_eq!(found_within(1), (0, true, 0));
}

#[test]
fn a_symbol_covers_the_part_holding_the_address() {
    let part = |start: u64, end: u64| [start, end].map(u64::to_le_bytes).concat();
    let list = [part(0x100, 0x110), part(0x180, 0x1a0), part(0, 0)].concat();
    let info = unit(&[&[1, 0, 0, 0, 0][..], &[5], b"function\0", &[0, 0, 0, 0], &[0]].concat());
    let module = module(&info, &list);
    let symbols = |infos: Vec<AddressInfo>| -> Vec<_> {
        infos.into_iter().map(|info| info.symbol.map(|symbol| (symbol.address.0, symbol.size))).collect()
    };
    let expected = [Some((0x100, Some(0x10))), Some((0x180, Some(0x20)))];
    assert_eq!(symbols(look_up(&module, &[0x105, 0x185])), expected);
    assert_eq!(symbols(vec![module.lookup(RelativeAddress(0x105))]), expected[..1]);
}

#[test]
fn a_list_named_by_every_unit_is_read_once() {
    let count = 6_000;
    let list_of_the_last = 16 * (count as u32 + 1);
    let with_function = |list: u32, at: u64| {
        let function = scope(2, "function", at, 0x10);
        unit(&[&[1][..], &list.to_le_bytes(), &function, &[0, 0]].concat())
    };
    let part = [0x1000_u64, 0x1100, 0, 0].map(u64::to_le_bytes).concat();
    let lists = [ranges(count), part].concat();
    let last = with_function(list_of_the_last, 0x1000);
    let few = [with_function(0, 0x10), last.clone()].concat();
    let both = [&["function"][..], &["function"]];
    assert_eq!(look_up(&module(&few, &lists), &[0x10, 0x1008]).iter().map(names).collect::<Vec<_>>(), both);
    // The end of the budget shows in the functions that are not found.
    let many = [with_function(0, 0x10), unit(&[1, 0, 0, 0, 0]).repeat(40_000), last].concat();
    let found = look_up(&module(&many, &lists), &[0x1008]);
    assert_eq!(found.iter().map(names).collect::<Vec<_>>(), [&[][..] as &[&str]]);
}

#[test]
fn abbreviations_are_not_compiled_at_each_place() {
    // The abbreviations of each unit begin one place further on. All are the same except for the last one.
    let table =
        [1, 0x11, 1, 0x11, 0x01, 0x12, 0x06, 0, 0, 2, 0x2e, 1, 0x03, 0x08, 0x11, 0x01, 0x12, 0x06, 0, 0];
    let last = [3, 0x11, 1, 0x11, 0x01, 0x12, 0x06, 0, 0];
    let abbreviations = [&table.repeat(3_000)[..], &last, &[0]].concat();
    let found = |units: u32, code_of_root: u8| {
        let units = (0..units).map(|number| {
            let start = 0x100 * u64::from(number + 1);
            let mut root = unit_entry(start, 0x100);
            root[0] = code_of_root;
            let mut unit = unit(&[&root[..], &scope(2, "function", start, 0x100), &[0, 0]].concat());
            unit[6..10].copy_from_slice(&(table.len() as u32 * number).to_le_bytes());
            unit
        });
        let info: Vec<u8> = units.flatten().collect();
        let sections =
            [(".debug_info", &info[..]), (".debug_abbrev", &abbreviations), (".debug_ranges", &[])];
        module_of(sections)
    };
    let named = |module: &ModuleSymbols, units: std::ops::RangeInclusive<u32>| {
        let addresses: Vec<u32> = units.map(|number| 0x100 * number + 0x10).collect();
        look_up(module, &addresses).iter().filter(|info| names(info) == ["function"]).count()
    };
    for code in [1, 3] {
        assert_eq!(named(&found(2, code), 1..=2), 2, "{code}");
        // The end of the budget shows in the functions that are not found. About 8 tables of this size may be
        // read.
        assert!(named(&found(2_000, code), 1..=2_000) < 20, "{code}");
    }
    // No root entry can be read without reading to the end of its abbreviations.
    assert_eq!(named(&found(2_000, 3), 2_000..=2_000), 0);
}
