//! The test program looks up its own functions, whose lines are known.

#![expect(clippy::inline_always, reason = "the chain must be inlined without optimisation, too")]

use nyquist_object::RelativeAddress;
use nyquist_resources::Budget;
use nyquist_symbols::{AddressInfo, Finder, ModuleRequest, ModuleSymbols, Origin, SearchPaths, symbolicate};
use std::hint::black_box;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize};

const INNERMOST_LINE: u32 = line!() + 3;
#[inline(always)]
fn innermost(value: u64) -> u64 {
    black_box(black_box(value) / black_box(3))
}

const MIDDLE_LINE: u32 = line!() + 3;
#[inline(always)]
fn middle(value: u64) -> u64 {
    innermost(value) + 1
}

const OUTER_LINE: u32 = line!() + 3;
#[inline(never)]
fn outer(value: u64) -> u64 {
    black_box(middle(value)) + 2
}

/// The address of a function of this program, relative to its image base.
fn relative(function: fn(u64) -> u64) -> RelativeAddress {
    let path = std::env::current_exe().unwrap();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let first = maps.lines().find(|line| line.ends_with(path.to_str().unwrap())).unwrap();
    let base = u64::from_str_radix(first.split('-').next().unwrap(), 16).unwrap();
    RelativeAddress(u32::try_from(function as usize as u64 - base).unwrap())
}

fn own_symbols() -> ModuleSymbols {
    let path = std::env::current_exe().unwrap();
    let found = Finder::new(SearchPaths::default()).find(&ModuleRequest { path, ..ModuleRequest::default() });
    ModuleSymbols::open(&found).unwrap()
}

/// The functions and lines of an answer, from inside to outside, of the frames in this file.
fn chain(info: &AddressInfo) -> Vec<(String, u32)> {
    let here = |frame: &&nyquist_symbols::SourceFrame| {
        frame.file.as_ref().is_some_and(|file| file.ends_with("tests/own_program.rs"))
    };
    // With line tables only, the debug info has no paths for functions that were inlined.
    let last = |path: &str| path.rsplit("::").next().unwrap_or_default().to_owned();
    let frames = info.frames.iter().filter(here);
    frames.map(|frame| (last(frame.function.as_deref().unwrap()), frame.line.unwrap())).collect()
}

#[test]
fn each_finder_has_its_own_memory() {
    let request = ModuleRequest { path: std::env::current_exe().unwrap(), ..ModuleRequest::default() };
    let found_within = |bytes| {
        let budget = Budget::new(bytes);
        let finder = Finder::new(SearchPaths::default()).with_budget(budget.clone());
        let symbols = finder.open(&finder.find(&request)).unwrap();
        (symbols.lookup(relative(outer)).frames.len(), budget.was_refused())
    };
    let (few, all) = (found_within(1 << 10), found_within(1 << 30));
    assert!(few.1 && !all.1 && few.0 < all.0, "{few:?}, {all:?}");
}

#[test]
fn an_inlined_chain_has_all_functions_and_lines() {
    black_box(outer(black_box(7)));
    let symbols = own_symbols();
    let start = relative(outer);
    let symbol = symbols.lookup(start).symbol.unwrap();
    assert_eq!(&*symbol.name, "own_program::outer");
    assert_eq!(symbol.address, start);
    let answers = (0..symbol.size.unwrap()).map(|at| symbols.lookup(RelativeAddress(start.0 + at)));
    let expected = [
        ("innermost".to_owned(), INNERMOST_LINE),
        ("middle".to_owned(), MIDDLE_LINE),
        ("outer".to_owned(), OUTER_LINE),
    ];
    let mut chains: Vec<_> = answers.map(|info| chain(&info)).collect();
    chains.dedup();
    assert!(chains.iter().any(|chain| *chain == expected), "{chains:?}");
}

#[test]
fn many_addresses_get_the_answers_of_each_alone() {
    let symbols = own_symbols();
    let start = relative(outer);
    let mut addresses: Vec<_> =
        (0..3000).map(|step| RelativeAddress(start.0.saturating_sub(9000) + step * 7)).collect();
    addresses.reverse();
    addresses.push(addresses[0]);
    let threads = NonZeroUsize::new(3).unwrap();
    let together = symbols.symbolicate(&addresses, threads, &AtomicBool::new(false));
    assert_eq!(together.len(), addresses.len());
    for (&address, info) in addresses.iter().zip(&together) {
        assert_eq!(*info, symbols.lookup(address), "{address}");
    }
    assert!(together.iter().filter(|info| info.origin == Origin::DebugInfo).count() > 1000);
}

#[test]
fn cancelled_work_still_has_the_symbols() {
    let symbols = own_symbols();
    let addresses = [relative(outer)];
    let batch = nyquist_symbols::Batch { module: &symbols, addresses: &addresses };
    let threads = NonZeroUsize::MIN;
    let answers = symbolicate(&[batch, batch], threads, &AtomicBool::new(true), &AtomicUsize::new(0));
    assert_eq!(answers.len(), 2);
    assert_eq!(answers[1][0].origin, Origin::SymbolTable);
    assert_eq!(&*answers[1][0].symbol.as_ref().unwrap().name, "own_program::outer");
}
