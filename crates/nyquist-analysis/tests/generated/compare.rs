//! Comparisons of generated recordings: of the same program, and of one that became slower.

use nyquist_analysis::{Diff, DiffOptions, DiffUnit, FunctionDiff, Index, Selection, View, diff};
use nyquist_profile::{Meta, Process, Profile, ProfileBuilder, Sample, Thread};

use nyquist_test_support::random::{Random, mix};

/// A program: the self time of each function in ms.
struct Program {
    functions: Vec<(String, f64)>,
}

impl Program {
    /// Functions of realistic sizes: a few have most of the time.
    fn new(count: usize) -> Self {
        let functions = (0..count)
            .map(|index| (format!("app::function_{index}"), 60_000.0 / (index as f64 + 4.0).powf(1.2)));
        Self { functions: functions.collect() }
    }

    fn with_slowdown(mut self, name: &str, factor: f64) -> Self {
        let (_, time) =
            self.functions.iter_mut().find(|(known, _)| known == name).expect("there is that function");
        *time *= factor;
        self
    }

    /// Records a run at 1000 Hz. Each run varies the time of each function by `spread` of it. Each build
    /// appends another hash to the names.
    fn record(&self, seed: u64, spread: f64) -> Profile {
        let mut random = Random::new(seed);
        let mut builder = ProfileBuilder::new(Meta { interval: 1_000_000, ..Meta::default() });
        let process = builder.add_process(Process::default());
        let thread = builder.add_thread(Thread::new(process, "1", "main"));
        let main = builder.intern_label(None, "main", None);
        let mut time = 0;
        for (name, mean) in &self.functions {
            let name = format!("{name}::h{:016x}", mix(seed));
            let stack = builder.intern_label(Some(main), &name, None);
            let mean = mean * (1.0 + spread * normal(&mut random));
            for _ in 0..poisson(&mut random, mean) {
                time += 1_000_000;
                builder.add_sample(thread, Sample::new(time, Some(stack), 1_000_000));
            }
        }
        builder.finish()
    }

    fn runs(&self, seeds: std::ops::Range<u64>, spread: f64) -> Vec<Profile> {
        seeds.map(|seed| self.record(seed, spread)).collect()
    }
}

/// A normally distributed number, by Box and Muller.
fn normal(random: &mut Random) -> f64 {
    let radius = (-2.0 * (1.0 - random.unit()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.unit()).cos()
}

fn poisson(random: &mut Random, mean: f64) -> u64 {
    if mean > 200.0 {
        return (mean + mean.sqrt() * normal(random)).round().max(0.0) as u64;
    }
    // By Knuth: counts the factors until the product is below the limit.
    let limit = (-mean).exp();
    let mut product = random.unit();
    let mut count = 0;
    while product > limit {
        product *= random.unit();
        count += 1;
    }
    count
}

fn with_diff<T>(
    before: &[Profile],
    after: &[Profile],
    unit: DiffUnit,
    ask: impl FnOnce(&Diff<'_>) -> T,
) -> T {
    let before: Vec<_> = before.iter().map(Index::new).collect();
    let after: Vec<_> = after.iter().map(Index::new).collect();
    let all = Selection::default();
    let before: Vec<_> = before.iter().map(|index| View::new(index, &all)).collect();
    let after: Vec<_> = after.iter().map(|index| View::new(index, &all)).collect();
    let before: Vec<_> = before.iter().collect();
    let after: Vec<_> = after.iter().collect();
    ask(&diff(&before, &after, &DiffOptions { unit, ..DiffOptions::default() }))
}

fn row<'d>(diff: &'d Diff<'_>, name: &str) -> &'d FunctionDiff<'d> {
    diff.functions.iter().find(|row| row.name == name).expect("the function is in the comparison")
}

#[test]
fn recordings_of_the_same_program_are_noise() {
    let program = Program::new(400);
    for unit in [DiffUnit::Nanoseconds, DiffUnit::Share] {
        for (runs, spread) in [(1, 0.0), (1, 0.01), (1, 0.02), (2, 0.0), (3, 0.02), (5, 0.05)] {
            for seed in 0..5 {
                let before = program.runs(seed * 100..seed * 100 + runs, spread);
                let after = program.runs(seed * 100 + 50..seed * 100 + 50 + runs, spread);
                with_diff(&before, &after, unit, |diff| {
                    let flagged = diff.functions.iter().filter(|row| !row.self_time.is_noise).count();
                    let share = flagged as f64 / diff.functions.len() as f64;
                    assert!(share < 0.05, "{unit:?}, {runs} runs, spread {spread}: {flagged} flagged");
                    assert!(diff.functions.len() > 390, "names match although their hashes differ");
                });
            }
        }
    }
}

#[test]
fn a_slowdown_of_a_tenth_is_found() {
    const NAME: &str = "app::function_2";
    let before = Program::new(400);
    let after = Program::new(400).with_slowdown(NAME, 1.1);
    for (runs, spread) in [(1, 0.0), (1, 0.005), (3, 0.01), (5, 0.02)] {
        let mut found = 0;
        for seed in 0..10 {
            let before = before.runs(seed * 100..seed * 100 + runs, spread);
            let after = after.runs(seed * 100 + 50..seed * 100 + 50 + runs, spread);
            with_diff(&before, &after, DiffUnit::Nanoseconds, |diff| {
                let comparison = row(diff, NAME).self_time;
                found += usize::from(!comparison.is_noise && comparison.change > 0.0);
                let truth = comparison.before * 0.1;
                assert!((comparison.change - truth).abs() < 2.0 * comparison.margin, "{comparison:?}");
            });
        }
        assert!(found >= 8, "{runs} runs, spread {spread}: found in {found} of 10");
    }
}

#[test]
fn what_differs_comes_first() {
    let before = Program::new(50).runs(0..3, 0.0);
    let after = Program::new(50).with_slowdown("app::function_5", 1.5).runs(10..13, 0.0);
    with_diff(&before, &after, DiffUnit::Nanoseconds, |diff| {
        assert_eq!(diff.functions[0].name, "app::function_5");
        assert!(diff.functions.is_sorted_by_key(|row| row.self_time.is_noise));
        let main = row(diff, "main");
        assert!(main.total.change > 0.0 && main.self_time.change == 0.0);
    });
}

#[test]
fn functions_of_one_side_alone_are_new_or_gone() {
    let mut smaller = Program::new(20);
    smaller.functions.retain(|(name, _)| name != "app::function_3");
    let (with, without) = (Program::new(20).runs(0..1, 0.0), smaller.runs(1..2, 0.0));
    with_diff(&with, &without, DiffUnit::Nanoseconds, |diff| {
        let gone = row(diff, "app::function_3").self_time;
        assert_eq!((gone.after, gone.is_noise, gone.relative), (0.0, false, Some(-1.0)));
    });
    with_diff(&without, &with, DiffUnit::Share, |diff| {
        let new = row(diff, "app::function_3").self_time;
        assert_eq!((new.before, new.is_noise, new.relative), (0.0, false, None));
    });
}

#[test]
fn shares_do_not_see_that_all_took_longer() {
    let before = Program::new(100).runs(0..1, 0.0);
    let mut longer = Program::new(100);
    longer.functions.iter_mut().for_each(|(_, time)| *time *= 1.5);
    let after = longer.runs(1..2, 0.0);
    let flagged = |unit| {
        with_diff(&before, &after, unit, |diff| {
            diff.functions.iter().filter(|row| !row.self_time.is_noise).count()
        })
    };
    assert!(flagged(DiffUnit::Nanoseconds) > 90);
    assert!(flagged(DiffUnit::Share) < 5);
}

#[test]
fn nothing_compared_with_nothing_is_nothing() {
    let empty = [Program { functions: Vec::new() }.record(0, 0.0)];
    with_diff(&empty, &empty, DiffUnit::Share, |diff| assert!(diff.functions.is_empty()));
    with_diff(&[], &[], DiffUnit::Nanoseconds, |diff| assert!(diff.total.is_noise));
}
