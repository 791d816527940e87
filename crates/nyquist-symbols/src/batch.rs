//! Looks up many addresses of many modules together. Each unit of debug info is a separate job.

use crate::allowance::Allowance;
use crate::dwarf::Scratch;
use crate::module::{FunctionPosition, ModuleFunctions};
use crate::symbol_table::TableSymbol;
use crate::{AddressInfo, EarlyAnswer, ModuleSymbols, Origin, Reason};
use nyquist_object::{RelativeAddress, Svma};
use nyquist_resources::{Charge, on_threads};
use rustc_hash::FxHashMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Addresses of one module to be looked up.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// The module.
    pub module: &'a ModuleSymbols,
    /// The lookup addresses: a return address less one.
    pub addresses: &'a [RelativeAddress],
}

/// The number of addresses in a job, for addresses that are in no unit.
const UNCOVERED_A_JOB: usize = 1024;

/// Returns answers for the addresses of many modules. The units of all modules share the threads. `done`
/// counts the distinct addresses that have been answered.
///
/// When `cancel` becomes true, the remaining addresses get answers without debug info. Addresses of one
/// function that has no debug info share one answer.
pub fn symbolicate(
    batches: &[Batch<'_>],
    threads: NonZeroUsize,
    cancel: &AtomicBool,
    done: &AtomicUsize,
) -> Vec<Vec<Arc<AddressInfo>>> {
    let workers = LookupWorkers { threads };
    let prepared = workers.run(batches.len(), |index, _| PreparedAddresses::new(batches[index]));
    // The symbol tables of a module are read concurrently with the list of its units.
    workers.run(prepared.len() * 2, |index, _| match index % 2 {
        0 => prepared[index / 2].find_units(),
        _ => prepared[index / 2].read_tables(),
    });
    let mut jobs: Vec<UnitJob<'_>> = prepared.iter().flat_map(PreparedAddresses::jobs).collect();
    // The largest jobs come first, so that no thread works alone on a large one at the end.
    jobs.sort_by_key(|job| std::cmp::Reverse(job.unit.requested.len()));
    workers.run(jobs.len(), |index, scratch| {
        jobs[index].run(cancel, scratch);
        done.fetch_add(jobs[index].unit.requested.len(), Ordering::Relaxed);
    });
    let known = prepared.iter().flat_map(|prepared| &prepared.known).flatten().count();
    done.fetch_add(known, Ordering::Relaxed);
    prepared.into_iter().map(PreparedAddresses::into_answers).collect()
}

impl ModuleSymbols {
    /// Answers for each of `addresses`, in their order. Equal addresses are looked up once. When `cancel`
    /// becomes true, the remaining addresses get answers without debug info.
    pub fn symbolicate(
        &self,
        addresses: &[RelativeAddress],
        threads: NonZeroUsize,
        cancel: &AtomicBool,
    ) -> Vec<AddressInfo> {
        let batch = Batch { module: self, addresses };
        let answers = symbolicate(&[batch], threads, cancel, &AtomicUsize::new(0)).pop();
        answers.into_iter().flatten().map(Arc::unwrap_or_clone).collect()
    }

    /// The answers for ascending addresses, as far as they cost the same now as later. These are cached
    /// answers, and answers from symbol tables of modules without debug info. Other addresses get `None`,
    /// because each unit of debug info is walked once for all of its addresses. New answers are not cached;
    /// [`ModuleSymbols::keep`] does that.
    pub fn symbolicate_ahead(&self, addresses: &[RelativeAddress]) -> Vec<Option<EarlyAnswer>> {
        let known = self.available_answers(addresses).into_iter();
        let mut early: Vec<_> = known.map(|info| Some(EarlyAnswer { info: info?, was_kept: true })).collect();
        let is_open = |(address, early): (&RelativeAddress, &Option<EarlyAnswer>)| {
            early.is_none().then(|| self.svma(*address).0)
        };
        let open: Vec<_> = addresses.iter().zip(&early).filter_map(is_open).collect();
        if !open.is_empty() && !self.has_debug_info() {
            let found = symbolicate_unit(&self.functions(), None, &open, &mut Scratch::default());
            for (early, info) in early.iter_mut().filter(|early| early.is_none()).zip(found) {
                *early = Some(EarlyAnswer { info, was_kept: false });
            }
        }
        early
    }
}

/// A module's addresses, sorted and grouped by unit.
struct PreparedAddresses<'a> {
    module: &'a ModuleSymbols,
    /// Each once, ascending.
    addresses: Vec<RelativeAddress>,
    /// The index in `addresses` of each requested address.
    numbers: Vec<u32>,
    /// The cached answers. Nothing else is looked up for these addresses.
    known: Vec<Option<Arc<AddressInfo>>>,
    units: OnceLock<Vec<UnitWork>>,
    /// The functions around the addresses without a cached answer.
    functions: OnceLock<ModuleFunctions<'a>>,
    /// The memory of the answers.
    charge: Option<Arc<Charge>>,
}

/// The addresses of one unit, or addresses that are in no unit.
struct UnitWork {
    unit: Option<u64>,
    /// Their indices in the module's addresses.
    numbers: Vec<usize>,
    requested: Vec<u64>,
    answers: OnceLock<Vec<Arc<AddressInfo>>>,
}

#[derive(Clone, Copy)]
struct UnitJob<'a> {
    functions: &'a ModuleFunctions<'a>,
    unit: &'a UnitWork,
    charge: Option<&'a Arc<Charge>>,
}

impl UnitJob<'_> {
    fn run(&self, cancel: &AtomicBool, scratch: &mut Scratch) {
        let Self { functions, unit, charge } = *self;
        scratch.allowance.charge_to(charge);
        if unit.unit.is_none() || !cancel.load(Ordering::Relaxed) {
            let _ = unit.answers.set(symbolicate_unit(functions, unit.unit, &unit.requested, scratch));
        }
    }
}

impl<'a> PreparedAddresses<'a> {
    fn new(batch: Batch<'a>) -> Self {
        // Sorting integers takes half of the time of sorting pairs.
        let pair =
            |(address, position): (&RelativeAddress, u32)| u64::from(address.0) << 32 | u64::from(position);
        let mut requested: Vec<u64> = batch.addresses.iter().zip(0_u32..).map(pair).collect();
        requested.sort_unstable();
        let mut addresses: Vec<RelativeAddress> = Vec::with_capacity(requested.len());
        let mut numbers = vec![0; requested.len()];
        for pair in requested {
            let (address, position) = (RelativeAddress((pair >> 32) as u32), pair as u32);
            if addresses.last() != Some(&address) {
                addresses.push(address);
            }
            numbers[position as usize] = addresses.len() as u32 - 1;
        }
        let known = batch.module.available_answers(&addresses);
        let (module, units, functions) = (batch.module, OnceLock::new(), OnceLock::new());
        Self { module, addresses, numbers, known, units, functions, charge: module.charge() }
    }

    /// The addresses without a cached answer, with their indices.
    fn open(&self) -> impl Iterator<Item = (usize, RelativeAddress)> {
        let all = self.addresses.iter().copied().enumerate();
        all.filter(|&(number, _)| self.known[number].is_none())
    }

    fn read_tables(&self) {
        if self.open().next().is_some() {
            self.functions();
        }
    }

    fn functions(&self) -> &ModuleFunctions<'a> {
        self.functions.get_or_init(|| self.module.functions())
    }

    fn find_units(&self) {
        let mut units: FxHashMap<u64, UnitWork> = FxHashMap::default();
        let mut uncovered: Vec<UnitWork> = Vec::new();
        for (number, address) in self.open() {
            let svma = self.module.svma(address);
            match self.module.unit_of(svma) {
                Some(unit) => {
                    units.entry(unit).or_insert_with(|| UnitWork::new(Some(unit))).push(number, svma);
                }
                None => {
                    if uncovered.last().is_none_or(|work| work.requested.len() == UNCOVERED_A_JOB) {
                        uncovered.push(UnitWork::new(None));
                    }
                    if let Some(work) = uncovered.last_mut() {
                        work.push(number, svma);
                    }
                }
            }
        }
        let _ = self.units.set(units.into_values().chain(uncovered).collect());
    }

    fn jobs(&self) -> impl Iterator<Item = UnitJob<'_>> {
        let job = |unit| UnitJob { functions: self.functions(), unit, charge: self.charge.as_ref() };
        self.units.get().into_iter().flatten().map(job)
    }

    fn into_answers(self) -> Vec<Arc<AddressInfo>> {
        let mut is_new: Vec<bool> = self.known.iter().map(Option::is_none).collect();
        let (functions, mut answers) = (self.functions.into_inner(), self.known);
        for work in self.units.into_inner().unwrap_or_default() {
            let of_unit = work.answers.into_inner().unwrap_or_else(|| {
                work.numbers.iter().for_each(|&number| is_new[number] = false);
                functions.as_ref().map(|functions| cancelled(functions, &work.requested)).unwrap_or_default()
            });
            for (number, answer) in work.numbers.into_iter().zip(of_unit) {
                answers[number] = Some(answer);
            }
        }
        let new = self.addresses.iter().zip(&answers).zip(is_new).filter(|(_, is_new)| *is_new);
        let new = new.filter_map(|((address, info), _)| Some((*address, &**info.as_ref()?)));
        self.module.keep_answers(new, functions.as_ref());
        in_order_of(&self.numbers, &answers)
    }
}

/// Answers for `requested`, which are sorted addresses of the unit, or of no unit.
fn symbolicate_unit(
    functions: &ModuleFunctions<'_>,
    unit: Option<u64>,
    requested: &[u64],
    scratch: &mut Scratch,
) -> Vec<Arc<AddressInfo>> {
    let found = unit.map(|unit| functions.module().look_up(unit, requested, scratch));
    let mut found = found.unwrap_or_default().into_iter();
    let mut last = LastFunction::default();
    let answers = requested.iter().map(|&address| {
        last.go_to(functions, functions.find(Svma(address)), &mut scratch.allowance);
        match found.next().filter(|found| !found.frames.is_empty()) {
            Some(found) => Arc::new(functions.address_info(last.function.clone(), Some(found))),
            None => last.without_debug_info(functions),
        }
    });
    answers.collect()
}

/// The function of the last address, because the next address is mostly in the same function.
#[derive(Default)]
struct LastFunction {
    place: Option<FunctionPosition>,
    function: Option<TableSymbol>,
    /// The answer for all addresses of the function that are in no debug info.
    answer: Option<Arc<AddressInfo>>,
}

impl LastFunction {
    fn go_to(
        &mut self,
        functions: &ModuleFunctions<'_>,
        place: Option<FunctionPosition>,
        allowance: &mut Allowance,
    ) {
        if place != self.place {
            let function = place.and_then(|place| functions.at(place));
            let function = function.filter(|function| allowance.admits_name(&function.name));
            *self = Self { place, function, answer: None };
        }
    }

    fn without_debug_info(&mut self, functions: &ModuleFunctions<'_>) -> Arc<AddressInfo> {
        let answer = || Arc::new(functions.address_info(self.function.clone(), None));
        self.answer.get_or_insert_with(answer).clone()
    }
}

/// Answers without debug info for the remaining addresses.
fn cancelled(functions: &ModuleFunctions<'_>, requested: &[u64]) -> Vec<Arc<AddressInfo>> {
    let mut answers = symbolicate_unit(functions, None, requested, &mut Scratch::default());
    for answer in answers.iter_mut().filter(|answer| matches!(answer.origin, Origin::Unknown(_))) {
        Arc::make_mut(answer).origin = Origin::Unknown(Reason::Cancelled);
    }
    answers
}

/// Returns the answers in the order of the requests, by their indices.
fn in_order_of(numbers: &[u32], answers: &[Option<Arc<AddressInfo>>]) -> Vec<Arc<AddressInfo>> {
    let mut given = Vec::with_capacity(numbers.len());
    given.extend(numbers.iter().filter_map(|number| answers[*number as usize].clone()));
    given
}

impl UnitWork {
    fn new(unit: Option<u64>) -> Self {
        Self { unit, numbers: Vec::new(), requested: Vec::new(), answers: OnceLock::new() }
    }

    fn push(&mut self, number: usize, address: Svma) {
        self.numbers.push(number);
        self.requested.push(address.0);
    }
}

/// The threads that look addresses up.
#[derive(Clone, Copy)]
struct LookupWorkers {
    threads: NonZeroUsize,
}

impl LookupWorkers {
    /// Calls `run` with each number below `count`, on all threads, including the caller's. The results are in
    /// the order of the numbers.
    fn run<T: Send + Sync>(self, count: usize, run: impl Fn(usize, &mut Scratch) -> T + Sync) -> Vec<T> {
        let results: Vec<OnceLock<T>> = (0..count).map(|_| OnceLock::new()).collect();
        let next = AtomicUsize::new(0);
        on_threads(self.threads.get().min(count), || {
            let mut scratch = Scratch::default();
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(result) = results.get(index) else { break };
                let _ = result.set(run(index, &mut scratch));
            }
        });
        results.into_iter().filter_map(OnceLock::into_inner).collect()
    }
}
