//! Many addresses of many modules at once, every unit of debug info a job of its own.

use crate::dwarf::{self, Scratch};
use crate::symbol_table::Function;
use crate::{AddressInfo, ModuleSymbols, Origin, Reason};
use nyquist_object::RelativeAddress;
use rustc_hash::FxHashMap;
use std::num::NonZeroUsize;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Addresses of one module to be looked up.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// The module.
    pub module: &'a ModuleSymbols,
    /// The lookup addresses: a return address less one.
    pub addresses: &'a [RelativeAddress],
}

/// Answers for the addresses of many modules, all units of all modules sharing the threads. `done` counts the
/// different addresses that have been answered.
///
/// When `cancel` becomes true, the addresses whose turn has not come get what is known without debug info.
pub fn symbolicate(
    batches: &[Batch<'_>],
    threads: NonZeroUsize,
    cancel: &AtomicBool,
    done: &AtomicUsize,
) -> Vec<Vec<AddressInfo>> {
    let prepared = in_parallel(batches.len(), threads, |index, _| Prepared::new(batches[index]));
    let mut jobs: Vec<Job<'_>> = prepared.iter().flat_map(Prepared::jobs).collect();
    // The largest jobs come first, so that no thread is left alone with one at the end.
    jobs.sort_by_key(|job| std::cmp::Reverse(job.unit.wanted.len()));
    in_parallel(jobs.len(), threads, |index, scratch| {
        let Job { module, unit } = jobs[index];
        if !cancel.load(Ordering::Relaxed) {
            let _ = unit.found.set(module.debug_info(unit.offset, &unit.wanted, scratch));
        }
        done.fetch_add(unit.wanted.len(), Ordering::Relaxed);
    });
    let known = prepared.iter().flat_map(|prepared| &prepared.known).flatten().count();
    done.fetch_add(known, Ordering::Relaxed);
    let answers = prepared.into_iter().zip(batches);
    answers.map(|(prepared, batch)| prepared.into_answers(batch.addresses)).collect()
}

/// A module's addresses, sorted, with what the symbol tables say, and cut by unit.
struct Prepared<'a> {
    module: &'a ModuleSymbols,
    addresses: Vec<RelativeAddress>,
    /// The answers that were kept from earlier; nothing else is known of these addresses.
    known: Vec<Option<AddressInfo>>,
    functions: Vec<Option<(usize, usize)>>,
    units: Vec<UnitWork>,
}

/// The addresses of one unit.
struct UnitWork {
    offset: u64,
    /// Their numbers among the module's addresses.
    numbers: Vec<usize>,
    wanted: Vec<u64>,
    found: OnceLock<Vec<dwarf::Found>>,
}

#[derive(Clone, Copy)]
struct Job<'a> {
    module: &'a ModuleSymbols,
    unit: &'a UnitWork,
}

impl<'a> Prepared<'a> {
    fn new(batch: Batch<'a>) -> Self {
        let mut addresses = batch.addresses.to_vec();
        addresses.sort_unstable();
        addresses.dedup();
        let module = batch.module;
        let mut units: FxHashMap<u64, UnitWork> = FxHashMap::default();
        let mut functions = Vec::with_capacity(addresses.len());
        let known = module.known(&addresses);
        for (number, &address) in addresses.iter().enumerate() {
            if known[number].is_some() {
                functions.push(None);
                continue;
            }
            let svma = module.svma(address);
            functions.push(module.find_function(svma));
            if let Some(offset) = module.unit_of(svma) {
                let unit = units.entry(offset).or_insert_with(|| UnitWork::new(offset));
                unit.numbers.push(number);
                unit.wanted.push(svma.0);
            }
        }
        Self { module, addresses, known, functions, units: units.into_values().collect() }
    }

    fn jobs(&self) -> impl Iterator<Item = Job<'_>> {
        self.units.iter().map(|unit| Job { module: self.module, unit })
    }

    fn into_answers(self, wanted: &[RelativeAddress]) -> Vec<AddressInfo> {
        let mut found: Vec<Option<dwarf::Found>> = Vec::new();
        found.resize_with(self.addresses.len(), || None);
        let mut cancelled = Vec::new();
        for unit in self.units {
            match unit.found.into_inner() {
                Some(of_unit) => {
                    let answers = unit.numbers.into_iter().zip(of_unit);
                    answers.for_each(|(number, of)| found[number] = Some(of));
                }
                None => cancelled.extend(unit.numbers),
            }
        }
        let mut last: Option<((usize, usize), Option<Function>)> = None;
        let mut is_new: Vec<bool> = self.known.iter().map(Option::is_none).collect();
        let looked_up = self.functions.iter().zip(found).zip(self.known);
        let answers = looked_up.map(|((&at, found), known)| {
            if let Some(known) = known {
                return known;
            }
            let function = at.and_then(|at| match &last {
                Some((known, function)) if *known == at => function.clone(),
                _ => last.insert((at, self.module.function_at(at))).1.clone(),
            });
            self.module.answer(function, found)
        });
        let mut answers: Vec<AddressInfo> = answers.collect();
        for number in cancelled {
            is_new[number] = false;
            if let Origin::Unknown(reason) = &mut answers[number].origin {
                *reason = Reason::Cancelled;
            }
        }
        let new = self.addresses.iter().zip(&answers).zip(is_new).filter(|(_, is_new)| *is_new);
        self.module.keep(new.map(|((address, info), _)| (*address, info)));
        in_order_of(wanted, &self.addresses, answers)
    }
}

/// Hands the answers for `addresses`, which are sorted, to all that asked for them. Each is moved to where it is
/// used last, and copied elsewhere.
fn in_order_of(
    wanted: &[RelativeAddress],
    addresses: &[RelativeAddress],
    answers: Vec<AddressInfo>,
) -> Vec<AddressInfo> {
    let number = |address| addresses.binary_search(address).ok();
    let numbers: Vec<usize> = wanted.iter().filter_map(number).collect();
    let mut uses = vec![0_usize; answers.len()];
    for &number in &numbers {
        uses[number] += 1;
    }
    let mut answers: Vec<Option<AddressInfo>> = answers.into_iter().map(Some).collect();
    let give = |number: usize| {
        uses[number] -= 1;
        if uses[number] == 0 { answers[number].take() } else { answers[number].clone() }
    };
    numbers.into_iter().filter_map(give).collect()
}

impl UnitWork {
    fn new(offset: u64) -> Self {
        Self { offset, numbers: Vec::new(), wanted: Vec::new(), found: OnceLock::new() }
    }
}

/// Calls `run` with each number below `count`, on at most `threads` threads, the caller's among them; the results
/// are in the order of the numbers.
fn in_parallel<T: Send + Sync>(
    count: usize,
    threads: NonZeroUsize,
    run: impl Fn(usize, &mut Scratch) -> T + Sync,
) -> Vec<T> {
    let results: Vec<OnceLock<T>> = (0..count).map(|_| OnceLock::new()).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut scratch = Scratch::default();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(result) = results.get(index) else { break };
            let _ = result.set(run(index, &mut scratch));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.get().min(count) {
            scope.spawn(work);
        }
        work();
    });
    results.into_iter().filter_map(OnceLock::into_inner).collect()
}
