//! The verdict of a test, expectations with a message, and derived tolerances.

use std::fmt::Display;
use std::panic::Location;

/// Why a test stopped before its end.
#[derive(Debug)]
pub(crate) enum Stop {
    /// A condition did not hold.
    Failed(String),
    /// A number that was measured once is out of bounds, because of a defect or because the machine stalled
    /// meanwhile.
    Off(String),
    /// This machine cannot run the test.
    Skipped(String),
}

/// The result of a test.
pub(crate) type Verdict = Result<(), Stop>;

/// An error in a test is a failure.
impl<E: Into<anyhow::Error>> From<E> for Stop {
    #[track_caller]
    fn from(error: E) -> Self {
        Self::Failed(located(format_args!("{:#}", error.into())))
    }
}

/// A message with the file and the line of the caller, if that is a test: a conversion that is passed as a function is
/// called by the standard library.
#[track_caller]
fn located(message: impl Display) -> String {
    let caller = Location::caller();
    if caller.file().starts_with("xtask") { format!("{message}\n  at {caller}") } else { message.to_string() }
}

/// Fails with a message unless the condition holds.
#[track_caller]
pub(crate) fn expect(holds: bool, message: impl Display) -> Verdict {
    if holds { Ok(()) } else { Err(Stop::Failed(located(message))) }
}

/// Fails unless a condition on a measured number holds, twice in a row: see [`Stop::Off`].
#[track_caller]
pub(crate) fn expect_measured(holds: bool, message: impl Display) -> Verdict {
    if holds { Ok(()) } else { Err(Stop::Off(located(message))) }
}

/// Fails unless both are equal.
#[expect(clippy::needless_pass_by_value, reason = "the many calls read better without references")]
#[track_caller]
pub(crate) fn expect_eq<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Verdict {
    expect(found == expected, format_args!("{what}: found {found:?}, wanted {expected:?}"))
}

/// Adds details to a failure.
pub(crate) fn with_note(verdict: Verdict, note: impl Display) -> Verdict {
    verdict.map_err(|stop| match stop {
        Stop::Failed(what) => Stop::Failed(format!("{what}; {note}")),
        Stop::Off(what) => Stop::Off(format!("{what}; {note}")),
        skipped @ Stop::Skipped(_) => skipped,
    })
}

/// Fails unless the text contains the part.
#[track_caller]
pub(crate) fn expect_contains(what: &str, text: &str, part: &str) -> Verdict {
    expect(text.contains(part), format_args!("{what}: no {part:?} in {text:?}"))
}

/// Ends the test, because this machine cannot run it.
pub(crate) fn skip<T>(why: impl Display) -> Result<T, Stop> {
    Err(Stop::Skipped(why.to_string()))
}

/// How far a share of `samples` samples may be from the true share. It is four standard deviations of the
/// binomial distribution, and one sample for each end of the interval.
pub(crate) fn tolerance(share: f64, samples: f64) -> f64 {
    4.0 * (share * (1.0 - share) / samples).sqrt() + 2.0 / samples
}

/// Skips the test unless it is run by root.
pub(crate) fn need_root() -> Verdict {
    if crate::sys::is_root() { Ok(()) } else { skip("needs root") }
}

/// Fails unless a share is within the tolerance that the number of samples allows.
#[track_caller]
pub(crate) fn expect_share(what: &str, found: f64, expected: f64, samples: f64) -> Verdict {
    let allowed = tolerance(expected, samples);
    let holds = (found - expected).abs() <= allowed;
    expect_measured(
        holds,
        format_args!(
            "{what}: share {found:.4}, truth {expected:.4}, tolerance {allowed:.4} of {samples} samples"
        ),
    )
}

/// Fails unless a number is within a relative distance of the requested one.
#[track_caller]
pub(crate) fn expect_within(what: &str, found: f64, expected: f64, relative: f64) -> Verdict {
    let holds = (found - expected).abs() <= expected * relative;
    expect_measured(
        holds,
        format_args!("{what}: found {found:.3}, wanted {expected:.3} within {:.1} %", relative * 100.0),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tolerance_narrows_with_samples_but_not_to_0() {
        assert!(tolerance(0.5, 1000.0) > tolerance(0.5, 4000.0));
        assert!(tolerance(1.0, 1000.0) > 0.0);
    }

    #[test]
    fn a_share_beyond_four_deviations_fails() {
        assert!(expect_share("", 0.52, 0.5, 1000.0).is_ok());
        assert!(expect_share("", 0.60, 0.5, 1000.0).is_err());
        assert!(expect_within("", 1.03, 1.0, 0.02).is_err());
    }

    #[test]
    fn a_failure_names_the_line_of_its_test() {
        let line = |verdict: Verdict| match verdict {
            Err(Stop::Failed(what) | Stop::Off(what)) => what,
            other => panic!("{other:?}"),
        };
        let check = |what: String, number: u32| {
            assert!(what.ends_with(&format!("at {}:{number}:{}", file!(), column(&what))), "{what}");
        };
        check(line(expect_eq("", 1, 2)), line!());
        check(line(expect_share("", 0.9, 0.1, 1000.0)), line!());
        let by_question_mark = || -> Verdict {
            "no number".parse::<u32>()?;
            Ok(())
        };
        let what = line(by_question_mark());
        assert!(what.contains(file!()), "{what}");
    }

    fn column(what: &str) -> &str {
        what.rsplit(':').next().unwrap_or_default()
    }
}
