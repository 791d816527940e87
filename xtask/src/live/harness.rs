//! The harness: it selects the tests, runs each in a thread with a time limit, and reports the outcomes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::TOPICS;
use super::apart::{self, Apart};
use super::context::{Context, Shared};
use super::expect::{Stop, Verdict};
use super::paranoid;
use super::plan::Plan;
use super::tracefs;
use crate::tally::Tally;

/// One test.
pub(crate) struct Test {
    /// A short description of the tested behaviour.
    pub name: &'static str,
    /// The test itself.
    pub run: fn(&Context<'_>) -> Verdict,
    /// Whether `--quick` runs it.
    pub quick: bool,
    /// Why the test runs alone, whatever its topic.
    pub exclusive: Option<&'static str>,
    /// Whether it may run beside others although its topic runs alone, because it measures no shares and
    /// changes nothing global.
    pub parallel: bool,
    /// Why only complete runs contain it, if that is so.
    pub only_in_all: Option<&'static str>,
    /// After this time the test is killed, with everything that it has started.
    pub limit: Duration,
}

impl Test {
    /// A test that is not in `--quick`, and runs beside others unless its topic runs alone.
    pub(crate) const fn new(name: &'static str, run: fn(&Context<'_>) -> Verdict) -> Self {
        let limit = Duration::from_mins(4);
        Self { name, run, quick: false, exclusive: None, parallel: false, only_in_all: None, limit }
    }

    /// Marks the test as part of `--quick`, too.
    pub(crate) const fn quick(self) -> Self {
        Self { quick: true, ..self }
    }

    /// Allows the test to run beside others although its topic runs alone.
    pub(crate) const fn parallel(self) -> Self {
        Self { parallel: true, ..self }
    }

    /// Makes the test run alone, for this reason, whatever its topic.
    pub(crate) const fn exclusive(self, why: &'static str) -> Self {
        Self { exclusive: Some(why), ..self }
    }

    /// Makes the test run only with `--all` or if a filter is given, for this reason.
    pub(crate) const fn only_in_all(self, why: &'static str) -> Self {
        Self { only_in_all: Some(why), ..self }
    }
}

/// The outcome of a test.
#[derive(Debug, PartialEq)]
pub(crate) enum Outcome {
    /// All checks have passed.
    Passed,
    /// A check has failed. This is the message, with the commands that were run.
    Failed(String),
    /// All checks have passed in a new measurement. This is the message of the earlier one.
    PassedAgain(String),
    /// The machine cannot run the test. This is the reason.
    Skipped(String),
}

/// A test with its full name, `topic::name`.
struct Chosen {
    topic: &'static str,
    name: String,
    test: &'static Test,
}

impl Chosen {
    /// Why it does not run beside many others, if that is so.
    fn apart(&self) -> Option<Apart> {
        let of_topic = || apart::reason(self.topic).filter(|_| !self.test.parallel);
        self.test.exclusive.map(Apart::Alone).or_else(of_topic)
    }

    /// Whether a run contains it.
    fn is_in(&self, plan: &Plan) -> bool {
        let is_named = !plan.filter.is_empty();
        let is_left_out =
            plan.left_out.contains(&self.topic) || (self.test.only_in_all.is_some() && !plan.all);
        passes(&plan.filter, &self.name) && (self.test.quick || !plan.quick) && (is_named || !is_left_out)
    }
}

/// Whether any live test passes the filter.
pub(crate) fn wanted(filter: &[String]) -> bool {
    all().any(|chosen| passes(filter, &chosen.name))
}

/// Prints every test's name.
pub(crate) fn list() {
    for chosen in all() {
        let quick = if chosen.test.quick { " [quick]" } else { "" };
        let marked =
            |what: &str, why: Option<&str>| why.map_or_else(String::new, |why| format!(" [{what}: {why}]"));
        let apart = match chosen.apart() {
            Some(Apart::Alone(why)) => marked("alone", Some(why)),
            Some(Apart::InPairs(why)) => marked("in pairs", Some(why)),
            None => String::new(),
        };
        println!("{}{quick}{apart}{}", chosen.name, marked("--all", chosen.test.only_in_all));
    }
}

fn all() -> impl Iterator<Item = Chosen> {
    let named = |(topic, tests): &(&'static str, &'static [Test])| {
        let topic = *topic;
        tests.iter().map(move |test| Chosen { topic, name: format!("{topic}::{}", test.name), test })
    };
    TOPICS.iter().flat_map(named)
}

/// A filter with the name of the whole step, `live`, selects every test.
fn passes(filter: &[String], name: &str) -> bool {
    filter.is_empty() || filter.iter().any(|word| word == "live" || name.contains(word.as_str()))
}

/// Runs the tests, prints a line for each, and counts them. Returns whether none failed.
pub(crate) fn run(plan: &Plan, tally: &mut Tally) -> Result<bool> {
    tracefs::mount();
    paranoid::restore_when_interrupted()?;
    let shared = Shared::prepare(plan)?;
    let (mut together, mut pairs, mut alone) = (Vec::new(), Vec::new(), Vec::new());
    for chosen in all().filter(|chosen| chosen.is_in(plan)) {
        match chosen.apart() {
            None => together.push(chosen),
            Some(Apart::InPairs(_)) => pairs.push(chosen),
            Some(Apart::Alone(_)) => alone.push(chosen),
        }
    }
    let reporter = Reporter { tally: Mutex::new(tally), failures: AtomicUsize::new(0) };
    let to_its_end = |chosen: &Chosen| {
        let began = Instant::now();
        let outcome = run_one(&shared, chosen);
        reporter.report(&chosen.name, &outcome, began.elapsed());
    };
    let workers = thread::available_parallelism().map_or(1, usize::from).min(4);
    each(&together, workers, to_its_end);
    let disturbed = run_in_pairs(&shared, &pairs, &reporter);
    each(&alone, 1, to_its_end);
    each(&disturbed, 1, |chosen| to_its_end(chosen));
    Ok(reporter.failures.into_inner() == 0)
}

/// Runs tests two at a time. Returns those that have not passed: the test beside them can be the reason, so the
/// attempt is printed and says nothing, and they are judged by a run alone.
fn run_in_pairs<'a>(shared: &Shared, tests: &'a [Chosen], reporter: &Reporter<'_>) -> Vec<&'a Chosen> {
    let disturbed = Mutex::new(Vec::new());
    each(tests, 2, |chosen: &'a Chosen| {
        let began = Instant::now();
        match attempt(shared, chosen) {
            Attempt::Ended(Outcome::Failed(what)) | Attempt::Off(what) => {
                println!(
                    "later   {} ({:.1} s)\n{}",
                    chosen.name,
                    began.elapsed().as_secs_f64(),
                    indented(&what)
                );
                disturbed.lock().unwrap_or_else(PoisonError::into_inner).push(chosen);
            }
            Attempt::Ended(outcome) => reporter.report(&chosen.name, &outcome, began.elapsed()),
        }
    });
    disturbed.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Calls a function with each item, in this many threads.
fn each<'a, T: Sync>(items: &'a [T], workers: usize, run: impl Fn(&'a T) + Sync) {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..workers.min(items.len()) {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    run(item);
                }
            });
        }
    });
}

fn run_one(shared: &Shared, chosen: &Chosen) -> Outcome {
    judge(|| {
        let (began, before) = (Instant::now(), stolen());
        let attempt = attempt(shared, chosen);
        let is_disturbed = stolen().saturating_sub(before) > began.elapsed() / LEAST_DISTURBANCE;
        (attempt, is_disturbed)
    })
}

/// The maximum number of attempts on a machine whose hypervisor holds CPUs.
const MOST_ATTEMPTS: usize = 4;

/// The fraction of the time, as a divisor, for which a hypervisor may hold CPUs. More than that is a
/// disturbance. It is half of the narrowest tolerance.
const LEAST_DISTURBANCE: u32 = 100;

/// Repeats a test if a measured number was out of bounds. A tolerance cannot distinguish a stalled machine
/// from a defect, but a defect occurs the second time, too. An attempt during which the hypervisor has held
/// CPUs says nothing about the program: the sampling clocks go on then, and the CPU time of threads does not.
/// Such attempts are not counted, but their number is limited.
fn judge(mut attempt: impl FnMut() -> (Attempt, bool)) -> Outcome {
    let (mut off, mut counted) = (Vec::new(), 0);
    loop {
        let (ended, is_disturbed) = attempt();
        match ended {
            Attempt::Ended(Outcome::Passed) if !off.is_empty() => {
                return Outcome::PassedAgain(off.join(MEASURED_AGAIN));
            }
            Attempt::Ended(outcome) => return outcome,
            Attempt::Off(what) => off.push(what),
        }
        counted += usize::from(!is_disturbed);
        if counted == 2 || off.len() == MOST_ATTEMPTS {
            return Outcome::Failed(off.join(MEASURED_AGAIN));
        }
    }
}

/// The message between two attempts.
const MEASURED_AGAIN: &str = "\nmeasured again:\n";

/// How long the hypervisor has held CPUs that wanted to run. The kernel counts this in hundredths of a second
/// (`steal` in `proc_stat(5)`).
fn stolen() -> Duration {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let ticks = text.lines().next().and_then(|all| all.split_whitespace().nth(8)?.parse().ok());
    Duration::from_millis(10 * ticks.unwrap_or(0))
}

/// The outcome of one run of a test.
enum Attempt {
    Ended(Outcome),
    /// A measured number was out of bounds. This is the message, with the commands that were run.
    Off(String),
}

fn attempt(shared: &Shared, chosen: &Chosen) -> Attempt {
    let context = match Context::new(shared, &chosen.name) {
        Ok(context) => context,
        Err(error) => return Attempt::Ended(Outcome::Failed(format!("{error:#}"))),
    };
    let timed_out = within_limit(chosen.test.limit, &context, || {
        let verdict = catch_unwind(AssertUnwindSafe(|| (chosen.test.run)(&context)));
        verdict.unwrap_or_else(|panic| Err(Stop::Failed(format!("panicked: {}", message_of(&*panic)))))
    });
    context.kill_all();
    match timed_out {
        (_, true) => {
            let what = format!("was killed after {} s", chosen.test.limit.as_secs());
            Attempt::Ended(Outcome::Failed(report(&context, &what)))
        }
        (Err(Stop::Failed(what)), _) => Attempt::Ended(Outcome::Failed(report(&context, &what))),
        (Err(Stop::Off(what)), _) => Attempt::Off(report(&context, &what)),
        (Err(Stop::Skipped(why)), _) => {
            context.clear();
            Attempt::Ended(Outcome::Skipped(why))
        }
        (Ok(()), _) => {
            context.clear();
            Attempt::Ended(Outcome::Passed)
        }
    }
}

/// Keeps the files of a failed test, and returns the message about the failure.
fn report(context: &Context<'_>, what: &str) -> String {
    context.keep();
    context.shortened(&format!("{what}\n{}", context.history()))
}

/// Runs the test beside a watchdog. After the time limit, the watchdog kills the test's processes, so that
/// the test's waits return.
fn within_limit(limit: Duration, context: &Context<'_>, test: impl FnOnce() -> Verdict) -> (Verdict, bool) {
    let (finished, has_finished) = mpsc::channel::<()>();
    thread::scope(|scope| {
        let watchdog = scope.spawn(move || {
            let mut wait = limit;
            let mut late = false;
            while has_finished.recv_timeout(wait) == Err(mpsc::RecvTimeoutError::Timeout) {
                late = true;
                context.kill_all();
                wait = Duration::from_millis(100);
            }
            late
        });
        let verdict = test();
        drop(finished);
        (verdict, watchdog.join().unwrap_or(true))
    })
}

fn message_of(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message")
}

/// Prints and counts the outcomes of several workers.
struct Reporter<'a> {
    tally: Mutex<&'a mut Tally>,
    failures: AtomicUsize,
}

impl Reporter<'_> {
    fn report(&self, name: &str, outcome: &Outcome, took: Duration) {
        let Ok(mut tally) = self.tally.lock() else { return };
        let seconds = took.as_secs_f64();
        match outcome {
            Outcome::Passed => {
                println!("ok      {name} ({seconds:.1} s)");
                tally.pass();
            }
            Outcome::PassedAgain(before) => {
                println!("again   {name} ({seconds:.1} s)\n{}", indented(before));
                tally.pass_again(name);
            }
            Outcome::Skipped(why) => {
                println!("skipped {name} ({seconds:.1} s): {why}");
                tally.skip(name, why);
            }
            Outcome::Failed(what) => {
                println!("FAILED  {name} ({seconds:.1} s)\n{}", indented(what));
                tally.fail(format!("{name}: {}", what.lines().next().unwrap_or_default()));
                self.failures.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("        {line}")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::{Attempt, MEASURED_AGAIN, Outcome, all, judge, passes};

    /// The outcome of a test, given those of its attempts, and how many attempts were made. `p` passes, `o`
    /// is off, `O` is off while CPUs were held, `f` fails.
    fn judged(attempts: &str) -> (Outcome, usize) {
        let (mut letters, mut count) = (attempts.chars(), 0);
        let outcome = judge(|| {
            count += 1;
            match letters.next() {
                Some('p') => (Attempt::Ended(Outcome::Passed), false),
                Some('f') => (Attempt::Ended(Outcome::Failed("wrong".to_owned())), false),
                letter => (Attempt::Off("off".to_owned()), letter == Some('O')),
            }
        });
        (outcome, count)
    }

    #[test]
    fn only_a_number_that_is_off_twice_fails() {
        let again = |attempts: usize| Outcome::PassedAgain(vec!["off"; attempts - 1].join(MEASURED_AGAIN));
        assert_eq!(judged("p"), (Outcome::Passed, 1));
        assert_eq!(judged("op"), (again(2), 2));
        for attempts in ["f", "oo", "of"] {
            let (outcome, count) = judged(attempts);
            assert!(matches!(outcome, Outcome::Failed(_)) && count == attempts.len(), "{attempts}");
        }
    }

    #[test]
    fn measures_on_held_cpus_are_retried_a_few_times() {
        let again = |attempts: usize| Outcome::PassedAgain(vec!["off"; attempts - 1].join(MEASURED_AGAIN));
        for attempts in ["Op", "OOp", "oOOp"] {
            assert_eq!(judged(attempts), (again(attempts.len()), attempts.len()));
        }
        for attempts in ["OOOO", "oOo", "Of", "OoOO"] {
            let (outcome, count) = judged(attempts);
            assert!(matches!(outcome, Outcome::Failed(_)) && count == attempts.len(), "{attempts}");
        }
    }

    #[test]
    fn names_are_unique_and_plain() {
        let mut names: Vec<String> = all().map(|chosen| chosen.name).collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "_:".contains(letter);
        assert!(names.iter().all(|name| name.chars().all(plain)));
    }

    #[test]
    fn any_word_of_a_filter_chooses() {
        let filter = ["roots".to_owned(), "names".to_owned()];
        assert!(passes(&filter, "stacks::roots_are_start"));
        assert!(!passes(&filter, "server::answers"));
        assert!(passes(&["live".to_owned()], "server::answers"));
        assert!(passes(&[], "server::answers"));
    }
}
