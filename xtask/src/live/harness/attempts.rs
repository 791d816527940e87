//! The outcome of a test from its attempts: a measured number that is out of bounds is measured again.

use std::time::Duration;

/// The outcome of a test.
#[derive(Debug, PartialEq)]
pub(crate) enum Outcome {
    /// All checks have passed.
    Passed,
    /// A check has failed. This is the message, with the commands that were run.
    Failed(String),
    /// All checks have passed in a new measurement. This is the message of the earlier one.
    PassedAgain(String),
    /// A measured number was out of bounds each time, and the hypervisor held CPUs each time. These are the
    /// messages.
    Inconclusive(String),
    /// The machine cannot run the test. This is the reason.
    Skipped(String),
}

/// The outcome of one run of a test.
pub(crate) enum Attempt {
    Ended(Outcome),
    /// A measured number was out of bounds. This is the message, with the commands that were run.
    Off(String),
}

/// The maximum number of attempts on a machine whose hypervisor holds CPUs.
const MAX_ATTEMPTS: usize = 4;

/// The fraction of the time, as a divisor, for which a hypervisor may hold CPUs. More than that is a
/// disturbance. It is half of the narrowest tolerance.
const MIN_DISTURBANCE_DIVISOR: u32 = 100;

/// The message between two attempts.
const MEASURED_AGAIN: &str = "\nmeasured again:\n";

/// Repeats a test if a measured number was out of bounds. A tolerance cannot distinguish a stalled machine
/// from a defect, but a defect occurs the second time, too. An attempt during which the hypervisor has held
/// CPUs says nothing about the program: the sampling clocks go on then, and the CPU time of threads does not.
/// Such attempts are not counted, but their number is limited. If there is no other attempt, the test has
/// no result.
///
/// `attempt` returns the outcome of an attempt, and whether it was disturbed.
pub(crate) fn judge(mut attempt: impl FnMut() -> (Attempt, bool)) -> Outcome {
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
        match (counted, off.len()) {
            (0, MAX_ATTEMPTS) => return Outcome::Inconclusive(off.join(MEASURED_AGAIN)),
            (2, _) | (_, MAX_ATTEMPTS) => return Outcome::Failed(off.join(MEASURED_AGAIN)),
            _ => {}
        }
    }
}

/// Whether the hypervisor held CPUs for so long in this time that measured numbers can be wrong.
pub(crate) fn is_disturbance(stolen: Duration, took: Duration) -> bool {
    stolen > took / MIN_DISTURBANCE_DIVISOR
}

/// How long the hypervisor has held CPUs that requested to run. The kernel counts this in hundredths of a second
/// (`steal` in `proc_stat(5)`).
pub(crate) fn stolen() -> Duration {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let ticks = text.lines().next().and_then(|all| all.split_whitespace().nth(8)?.parse().ok());
    Duration::from_millis(10 * ticks.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::{Attempt, MEASURED_AGAIN, Outcome, judge};

    /// The outcome of a test, given those of its attempts, and how many attempts were made. `p` passes, `o`
    /// is off, `O` is off while CPUs were held, `f` fails, and `F` fails while CPUs were held.
    fn judged(attempts: &str) -> (Outcome, usize) {
        let (mut letters, mut count) = (attempts.chars(), 0);
        let outcome = judge(|| {
            count += 1;
            match letters.next() {
                Some('p') => (Attempt::Ended(Outcome::Passed), false),
                Some(letter @ ('f' | 'F')) => {
                    (Attempt::Ended(Outcome::Failed("wrong".to_owned())), letter == 'F')
                }
                letter => (Attempt::Off("off".to_owned()), letter == Some('O')),
            }
        });
        (outcome, count)
    }

    fn messages(attempts: usize) -> String {
        vec!["off"; attempts].join(MEASURED_AGAIN)
    }

    #[test]
    fn only_a_number_that_is_off_twice_fails() {
        assert_eq!(judged("p"), (Outcome::Passed, 1));
        assert_eq!(judged("op"), (Outcome::PassedAgain(messages(1)), 2));
        assert_eq!(judged("oo"), (Outcome::Failed(messages(2)), 2));
    }

    #[test]
    fn a_failure_is_a_failure_the_first_time() {
        for attempts in ["f", "F", "of", "Of", "OOOF"] {
            assert_eq!(judged(attempts), (Outcome::Failed("wrong".to_owned()), attempts.len()), "{attempts}");
        }
    }

    #[test]
    fn measures_on_held_cpus_are_retried_a_few_times() {
        for attempts in ["Op", "OOp", "oOOp", "OOOp"] {
            let again = Outcome::PassedAgain(messages(attempts.len() - 1));
            assert_eq!(judged(attempts), (again, attempts.len()), "{attempts}");
        }
        for attempts in ["oOo", "OoOO", "OOOo", "oOOO"] {
            let failed = Outcome::Failed(messages(attempts.len()));
            assert_eq!(judged(attempts), (failed, attempts.len()), "{attempts}");
        }
    }

    #[test]
    fn there_is_no_result_if_cpus_were_always_held() {
        assert_eq!(judged("OOOO"), (Outcome::Inconclusive(messages(4)), 4));
    }
}
