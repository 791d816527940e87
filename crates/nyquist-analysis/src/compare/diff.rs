//! Two sets of recordings compared by function: what got slower and faster, and what is only noise.

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::compare::statistics::{chance_within, deviations_for, normal_of_student, student_of_normal};
use crate::index::self_and_total;
use crate::names::comparable_name;
use crate::view::View;

/// The assumed variation of the same program from run to run, relative to a function's time, with one run per
/// side. Its causes are the layout of memory, the clock of the CPU and the CPU's other users.
const ASSUMED_SPREAD: f64 = 0.015;

/// How recordings are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DiffOptions {
    /// What is compared.
    pub unit: DiffUnit,
    /// The confidence, from 0 to 1, that a difference must have in order not to be noise.
    pub confidence: f64,
}

impl Default for DiffOptions {
    fn default() -> Self {
        Self { unit: DiffUnit::Nanoseconds, confidence: 0.99 }
    }
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DiffUnit {
    /// CPU time, in ns: for runs that do the same work.
    Nanoseconds,
    /// Shares of the run's time: for runs of different length.
    Share,
}

/// What differs between two sets of runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diff<'a> {
    /// The unit of all values but [`total`](Self::total).
    pub unit: DiffUnit,
    /// The number of runs before.
    pub runs_before: usize,
    /// The number of runs after.
    pub runs_after: usize,
    /// The time of all samples, in ns.
    pub total: Comparison,
    /// The functions. Those with a significant difference in self time come first, the greatest difference
    /// first. Then those whose difference is noise, in the same order.
    pub functions: Vec<FunctionDiff<'a>>,
}

/// A function in both sets of runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FunctionDiff<'a> {
    /// Its name, without the parts that change from one build to the next. All functions without a name in
    /// a lib are one function, named after the lib.
    pub name: String,
    /// The name of its lib, in the first run that has the function.
    pub lib: Option<&'a str>,
    /// Its self amount.
    #[serde(rename = "self")]
    pub self_time: Comparison,
    /// Its total amount.
    pub total: Comparison,
}

/// A value before and after.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The mean of the runs before.
    pub before: f64,
    /// The mean of the runs after.
    pub after: f64,
    /// After minus before.
    pub change: f64,
    /// The change as a share of the value before; `None` if that is 0.
    pub relative: Option<f64>,
    /// The true change is in `change ± margin`, with the requested confidence.
    pub margin: f64,
    /// The confidence that there is a change, from 0 to 1.
    pub confidence: f64,
    /// Whether that is less than the requested confidence.
    pub is_noise: bool,
}

/// Compares views of runs by function. Each side needs a run; a side without one counts as zero.
///
/// Two things make runs of the same program differ. The first is sampling, whose noise follows from the
/// number of samples: `n` samples have a standard deviation of `√n`, and a share has a binomial one. The
/// second is variation between the runs themselves, which is measured if a side has several runs.
/// Otherwise 1.5 % is assumed. A function is noise unless its difference is more than both explain.
/// O(nodes + functions × runs).
pub fn diff<'a>(before: &[&View<'a>], after: &[&View<'a>], options: &DiffOptions) -> Diff<'a> {
    let mut names = RunNames::default();
    let before: Vec<_> = before.iter().map(|view| names.add_run(view)).collect();
    let after: Vec<_> = after.iter().map(|view| names.add_run(view)).collect();
    let requested =
        Confidence { confidence: options.confidence, deviations: deviations_for(options.confidence) };
    let compare = |weight: &dyn Fn(&RunValues) -> u64| {
        let side = |runs: &[RunValues]| {
            let values = runs.iter().map(|run| Observation::new(weight(run), run, options.unit));
            SideEstimate::new(&values.collect::<Vec<_>>())
        };
        compare(&side(&before), &side(&after), requested)
    };
    let mut functions: Vec<_> = names
        .rows
        .into_iter()
        .enumerate()
        .map(|(key, (name, lib))| FunctionDiff {
            name,
            lib,
            self_time: compare(&|run| run.weights.get(key).map_or(0, |weights| weights.0)),
            total: compare(&|run| run.weights.get(key).map_or(0, |weights| weights.1)),
        })
        .collect();
    functions.retain(|row| row.total.before > 0.0 || row.total.after > 0.0);
    functions.sort_by(|a, b| {
        let rank =
            |row: &FunctionDiff<'_>| (row.self_time.is_noise, -row.self_time.change.abs(), -row.total.after);
        let ((a_noise, a_change, a_total), (b_noise, b_change, b_total)) = (rank(a), rank(b));
        let by_change = a_noise.cmp(&b_noise).then(a_change.total_cmp(&b_change));
        by_change.then(a_total.total_cmp(&b_total)).then_with(|| a.name.cmp(&b.name))
    });
    let whole = |runs: &[RunValues]| {
        let values = runs.iter().map(|run| Observation::new(run.total, run, DiffUnit::Nanoseconds));
        SideEstimate::new(&values.collect::<Vec<_>>())
    };
    let total = self::compare(&whole(&before), &whole(&after), requested);
    Diff { unit: options.unit, runs_before: before.len(), runs_after: after.len(), total, functions }
}

/// The functions of all runs, by their names in each run.
#[derive(Default)]
struct RunNames<'a> {
    keys: FxHashMap<String, usize>,
    rows: Vec<(String, Option<&'a str>)>,
}

/// The values of one run.
struct RunValues {
    interval: u64,
    total: u64,
    /// The self and total weights, by the index of the name.
    weights: Vec<(u64, u64)>,
}

impl<'a> RunNames<'a> {
    fn add_run(&mut self, view: &View<'a>) -> RunValues {
        let count = view.index.function_count();
        let ids = (0..count).map(nyquist_profile::FuncId::from_index);
        let keys: Vec<_> = ids.map(|func| self.key(view, func)).collect();
        let funcs = &view.forest().func;
        let amounts = self_and_total::by_key(view.node_sums(), self.rows.len(), |node| {
            Some(keys[funcs[node] as usize])
        });
        let weights = amounts.iter().map(|amounts| (amounts.own.weight, amounts.total.weight)).collect();
        RunValues { interval: view.profile().meta().interval.max(1), total: view.total().weight, weights }
    }

    fn key(&mut self, view: &View<'a>, func: nyquist_profile::FuncId) -> usize {
        let info = view.function(func);
        let name = comparable_name(info.name)
            .map_or_else(|| format!("[{}]", info.lib.unwrap_or("unknown")), std::borrow::Cow::into_owned);
        if let Some(&key) = self.keys.get(&name) {
            return key;
        }
        self.rows.push((name.clone(), info.lib));
        self.keys.insert(name, self.rows.len() - 1);
        self.rows.len() - 1
    }
}

/// An estimate of a value from one run.
#[derive(Clone, Copy)]
struct Observation {
    value: f64,
    /// Its variance due to sampling.
    variance: f64,
}

impl Observation {
    /// The variance of a number of samples is that number. One more is added, because a function without
    /// samples in one run may have some in the next.
    fn new(weight: u64, run: &RunValues, unit: DiffUnit) -> Self {
        let (weight, total) = (weight as f64, run.total.max(1) as f64);
        let (scale, rest) = match unit {
            DiffUnit::Nanoseconds => (run.interval as f64, 1.0),
            // A function with nearly all the time can hardly vary.
            DiffUnit::Share => (1.0 / total, (1.0 - weight / total).max(1.0 / total)),
        };
        Self { value: weight * scale, variance: (weight + 1.0) * rest * scale * scale }
    }
}

/// The estimate of a value from the runs of one side.
struct SideEstimate {
    mean: f64,
    /// The variance of the mean due to sampling.
    sampling: f64,
    /// The variance of the mean due to differences between runs, beyond that.
    spread: f64,
    /// The degrees of freedom of `spread`.
    freedom: f64,
}

impl SideEstimate {
    fn new(runs: &[Observation]) -> Self {
        let count = runs.len().max(1) as f64;
        let mean = runs.iter().map(|run| run.value).sum::<f64>() / count;
        let sampling = runs.iter().map(|run| run.variance).sum::<f64>() / (count * count);
        if runs.len() < 2 {
            return Self { mean, sampling, spread: (mean * ASSUMED_SPREAD).powi(2), freedom: f64::INFINITY };
        }
        let squares = runs.iter().map(|run| (run.value - mean).powi(2)).sum::<f64>();
        let of_mean = squares / (count - 1.0) / count;
        Self { mean, sampling, spread: (of_mean - sampling).max(0.0), freedom: count - 1.0 }
    }
}

/// The required confidence of a difference, and the number of standard deviations that it means.
#[derive(Clone, Copy)]
struct Confidence {
    confidence: f64,
    deviations: f64,
}

fn compare(before: &SideEstimate, after: &SideEstimate, requested: Confidence) -> Comparison {
    let change = after.mean - before.mean;
    let variance = before.sampling + before.spread + after.sampling + after.spread;
    // The degrees of freedom of the sum, by Welch and Satterthwaite. The variance due to sampling is known
    // exactly.
    let unknown = before.spread.powi(2) / before.freedom + after.spread.powi(2) / after.freedom;
    let freedom = if unknown > 0.0 { variance * variance / unknown } else { f64::INFINITY };
    let deviation = variance.sqrt();
    let confidence = if deviation > 0.0 {
        chance_within(normal_of_student(change / deviation, freedom))
    } else {
        f64::from(u8::from(change != 0.0))
    };
    Comparison {
        before: before.mean,
        after: after.mean,
        change,
        relative: (before.mean > 0.0).then(|| change / before.mean),
        margin: deviation * student_of_normal(requested.deviations, freedom),
        confidence,
        is_noise: confidence < requested.confidence,
    }
}
