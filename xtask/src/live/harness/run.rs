//! The runner: it selects the tests, runs each in a thread with a time limit, and reports the outcomes.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::attempts::{Attempt, Outcome, is_disturbance, judge, stolen};
use super::condition::Condition;
use super::context::{Context, Shared};
use super::expect::{Stop, Verdict};
use super::paranoid;
use super::plan::Plan;
use super::test::{Beside, Test, Topic};
use super::tracefs;
use crate::tally::Tally;

/// A test in one of its conditions, with its full name: `topic::name`, or `topic::name::condition`.
struct Chosen {
    topic: &'static str,
    name: String,
    test: &'static Test,
    condition: Condition,
}

impl Chosen {
    /// Whether `--quick` runs it.
    fn is_quick(&self) -> bool {
        self.test.quick && self.condition == Condition::AsStarted
    }

    /// Whether a run contains it.
    fn is_in(&self, plan: &Plan) -> bool {
        let is_named = !plan.filter.is_empty();
        let is_left_out =
            plan.left_out.contains(&self.topic) || (self.test.only_in_all.is_some() && !plan.all);
        passes(&plan.filter, &self.name) && (self.is_quick() || !plan.quick) && (is_named || !is_left_out)
    }
}

/// Whether any live test passes the filter.
pub(crate) fn requested(topics: &[Topic], filter: &[String]) -> bool {
    all(topics).any(|chosen| passes(filter, &chosen.name))
}

/// The topics of the tests that pass the filter, or of all tests that are not left out.
pub(crate) fn topics(
    topics: &[Topic],
    filter: &[String],
    quick: bool,
    left_out: &[&str],
) -> BTreeSet<&'static str> {
    let is_left_out = |topic: &str| filter.is_empty() && left_out.contains(&topic);
    let runs = |chosen: &Chosen| passes(filter, &chosen.name) && (chosen.is_quick() || !quick);
    all(topics)
        .filter(|chosen| runs(chosen) && !is_left_out(chosen.topic))
        .map(|chosen| chosen.topic)
        .collect()
}

/// Prints the conditions of every topic, and every test's name.
pub(crate) fn list(topics: &[Topic]) {
    for topic in topics {
        let conditions: Vec<&str> = topic.conditions.iter().map(|it| it.description()).collect();
        println!("{} ({}):", topic.name, conditions.join(", "));
        list_tests(topic);
    }
}

fn list_tests(topic: &Topic) {
    for chosen in all(std::slice::from_ref(topic)) {
        let quick = if chosen.is_quick() { " [quick]" } else { "" };
        let marked =
            |what: &str, why: Option<&str>| why.map_or_else(String::new, |why| format!(" [{what}: {why}]"));
        let beside = match chosen.test.beside {
            Beside::Others => String::new(),
            Beside::OneOther(why) => marked("in pairs", Some(why)),
            Beside::None(why) => marked("alone", Some(why)),
        };
        println!("  {}{quick}{beside}{}", chosen.name, marked("--all", chosen.test.only_in_all));
    }
}

fn all(topics: &[Topic]) -> impl Iterator<Item = Chosen> {
    topics
        .iter()
        .flat_map(|topic| topic.tests.iter().flat_map(move |test| in_each_condition(topic.name, test)))
}

fn in_each_condition(topic: &'static str, test: &'static Test) -> impl Iterator<Item = Chosen> {
    test.conditions.iter().map(move |&condition| {
        let name = format!("{topic}::{}{}", test.name, condition.suffix());
        Chosen { topic, name, test, condition }
    })
}

/// A filter with the name of the whole step, `live`, selects every test.
fn passes(filter: &[String], name: &str) -> bool {
    filter.is_empty() || filter.iter().any(|word| word == "live" || name.contains(word.as_str()))
}

/// Runs the tests, prints a line for each, and counts them. Returns whether none failed.
pub(crate) fn run(topics: &[Topic], plan: &Plan, tally: &mut Tally) -> Result<bool> {
    tracefs::mount();
    paranoid::restore_when_interrupted()?;
    println!("{}", conditions_of_run());
    let shared = Shared::prepare(plan)?;
    let (mut together, mut pairs, mut alone) = (Vec::new(), Vec::new(), Vec::new());
    for chosen in all(topics).filter(|chosen| chosen.is_in(plan)) {
        match chosen.test.beside {
            Beside::Others => together.push(chosen),
            Beside::OneOther(_) => pairs.push(chosen),
            Beside::None(_) => alone.push(chosen),
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

/// A line that says in which conditions the tests run.
fn conditions_of_run() -> String {
    let user = if crate::sys::is_root() { "root" } else { "a user without privileges" };
    let paranoid = paranoid::read("perf_event_paranoid").unwrap_or_else(|_| "unknown".to_owned());
    let others = [Condition::PlainUser, Condition::BusyCpu];
    let others = others.map(|it| format!("*{} are of a {}", it.suffix(), it.description())).join(", ");
    format!("As started is by {user} at kernel.perf_event_paranoid {paranoid}; {others}.")
}

/// Runs tests two at a time. Returns those in which a measured number was out of bounds: the test beside them
/// can be the reason, so the attempt is printed and says nothing, and they are measured again alone. Anything
/// else must hold beside another test, too.
fn run_in_pairs<'a>(shared: &Shared, tests: &'a [Chosen], reporter: &Reporter<'_>) -> Vec<&'a Chosen> {
    let disturbed = Mutex::new(Vec::new());
    each(tests, 2, |chosen: &'a Chosen| {
        let began = Instant::now();
        match attempt(shared, chosen) {
            Attempt::Off(what) => {
                reporter.postpone(&chosen.name, &what, began.elapsed());
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
        (attempt, is_disturbance(stolen().saturating_sub(before), began.elapsed()))
    })
}

fn attempt(shared: &Shared, chosen: &Chosen) -> Attempt {
    let prepared = Context::new(shared, &chosen.name, chosen.condition);
    let prepared = prepared.and_then(|context| Ok((context.apply_condition()?, context)));
    let (applied, context) = match prepared {
        Ok(prepared) => prepared,
        Err(Stop::Skipped(why)) => return Attempt::Ended(Outcome::Skipped(why)),
        Err(Stop::Failed(what) | Stop::Off(what)) => return Attempt::Ended(Outcome::Failed(what)),
    };
    let timed_out = within_limit(chosen.test.limit, &context, || {
        let verdict = catch_unwind(AssertUnwindSafe(|| (chosen.test.run)(&context)));
        verdict.unwrap_or_else(|panic| Err(Stop::Failed(format!("panicked: {}", message_of(&*panic)))))
    });
    context.kill_all();
    drop(applied);
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
    /// Prints that a test beside another one has measured a number that is out of bounds.
    fn postpone(&self, name: &str, what: &str, took: Duration) {
        let _whole_lines = self.tally.lock();
        println!("later   {name} ({:.1} s)\n{}", took.as_secs_f64(), indented(what));
    }

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
            Outcome::Inconclusive(what) => {
                println!("unclear {name} ({seconds:.1} s)\n{}", indented(what));
                tally.inconclusive(name);
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
    use super::{all, passes};
    use crate::live::TOPICS;
    use crate::live::harness::test::Beside;

    #[test]
    fn names_are_unique_and_plain() {
        let mut names: Vec<String> = all(TOPICS).map(|chosen| chosen.name).collect();
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

    #[test]
    fn tests_that_run_alone_say_why() {
        let why = |beside| match beside {
            Beside::Others => None,
            Beside::OneOther(why) | Beside::None(why) => Some(why),
        };
        let reasons: Vec<&str> = all(TOPICS).filter_map(|chosen| why(chosen.test.beside)).collect();
        assert!(reasons.iter().all(|why| why.split(' ').count() > 2), "{reasons:?}");
    }
}
