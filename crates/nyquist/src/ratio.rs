//! `--ratio A/B`: the profiles of two events of a file, and the form of their ratio.

use crate::args::{FilterArgs, SymbolArgs};
use crate::failure::Failure;
use crate::number::{grouped, percent};
use crate::printer::Printer;
use crate::scale::amount;
use crate::selection;
use crate::text::one_line;
use crate::{args::NOT_UNDERSTOOD, input};
use nyquist_analysis::{Index, Ratio, View};
use nyquist_profile::{Measure, Profile, Unit};
use serde_json::{Value, json};
use std::path::PathBuf;

/// The name of the CPU samples, which are not an event.
const CPU_TIME: &str = "cpu-time";

/// The profiles of both events: the numerator and the denominator.
pub(crate) struct Sides {
    profiles: [Profile; 2],
}

/// The form of a ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RatioForm {
    /// A number per second.
    PerSecond(Unit),
    /// A number per thousand.
    PerThousand,
    /// So many of a hundred.
    Percent,
    /// An amount per occurrence.
    Each(Unit),
}

/// The two events, and the form of their ratio.
#[derive(Clone, Debug)]
pub(crate) struct Events {
    pub(crate) measures: [Measure; 2],
    shown: RatioForm,
}

impl Sides {
    /// Reads both events of a file.
    pub(crate) fn read(
        path: &PathBuf,
        text: &str,
        filter: &FilterArgs,
        symbols: &SymbolArgs,
        printer: Printer,
    ) -> Result<Self, Failure> {
        let base = input::read(path, filter, symbols, printer)?;
        let names = names(text, |name| is_known(&base, name))?;
        let side = |name: &str| {
            if is_samples(&base, name) {
                return Ok(base.clone());
            }
            if let Some(profile) =
                base.recorded_event(name).and_then(|event| base.clone().with_event_as_samples(event))
            {
                return Ok(profile);
            }
            // Other programs' files have several values, each of which is read separately.
            let filter = FilterArgs { event: Some(name.to_owned()), ..filter.clone() };
            input::read(path, &filter, symbols, printer)
        };
        let mut profiles = [side(names[0])?, side(names[1])?];
        for profile in &mut profiles {
            selection::split(profile, filter);
        }
        Ok(Self { profiles })
    }

    /// The indexes of both profiles.
    pub(crate) fn indexes(&self) -> [Index<'_>; 2] {
        [&self.profiles[0], &self.profiles[1]].map(Index::new)
    }

    /// The events.
    pub(crate) fn events(&self) -> Events {
        let measures = [&self.profiles[0], &self.profiles[1]].map(|profile| profile.meta().measure.clone());
        let shown = RatioForm::of(&measures);
        Events { measures, shown }
    }
}

/// The selected parts of both. If the numerator is empty, the ratio is zero.
pub(crate) fn views<'a>(indexes: &'a [Index<'a>; 2], filter: &FilterArgs) -> Result<[View<'a>; 2], Failure> {
    let view = |index: &'a Index<'a>| {
        selection::select(index.profile(), filter).map(|selected| View::new(index, &selected))
    };
    let views = [view(&indexes[0])?, view(&indexes[1])?];
    if views[1].is_empty() {
        let failure = selection::nothing_selected(&views[1], filter);
        let name = one_line(&indexes[1].profile().meta().measure.name);
        return Err(failure.hint(format!("--ratio divides by {name}, and the selection has no {name}")));
    }
    Ok(views)
}

/// A line about kernel time that is in no function, because it was not permitted to be sampled. The ratios by
/// time are too great there.
pub(crate) fn note_of_kernel(views: &[View<'_>; 2]) -> String {
    let lacking = views.iter().find_map(|view| {
        let summary = view.summary();
        let share = summary.kernel_not_permitted.weight as f64 / summary.total.weight.max(1) as f64;
        (share > 0.0).then(|| (share, one_line(&view.profile().meta().measure.name)))
    });
    let Some((share, name)) = lacking else { return String::new() };
    let share = percent(share);
    format!(
        "note: {share} of {name} is the kernel's, which may not be sampled: it is in no function's ratio\n"
    )
}

/// Whether a name denotes the unit of the samples.
fn is_samples(profile: &Profile, name: &str) -> bool {
    let measure = &profile.meta().measure;
    measure.name == name || name == CPU_TIME && measure.is_cpu_time()
}

fn is_known(profile: &Profile, name: &str) -> bool {
    is_samples(profile, name) || profile.recorded_event(name).is_some()
}

/// The two names in a text. Names of events can contain slashes. The separator is then the slash between two
/// known names, or between a known and an unknown one, because the file may have further events.
fn names(text: &str, is_known: impl Fn(&str) -> bool) -> Result<[&str; 2], Failure> {
    let slashes = text.match_indices('/').map(|(at, _)| [&text[..at], &text[at + 1..]]);
    let pairs: Vec<_> = slashes.filter(|pair| pair.iter().all(|name| !name.is_empty())).collect();
    let with_known = |count| {
        let known = |pair: &[&str; 2]| pair.iter().filter(|name| is_known(name)).count();
        pairs.iter().find(|pair| known(pair) == count)
    };
    match (with_known(2).or_else(|| with_known(1)), &*pairs) {
        (Some(pair), _) | (None, [pair]) => Ok(*pair),
        (None, _) => {
            let message = format!("--ratio takes two events, and not `{}`", one_line(text));
            let failure = Failure::new(message).status(NOT_UNDERSTOOD);
            Err(failure.hint("--ratio cache-misses/instructions; `cpu-time` stands for the CPU time"))
        }
    }
}

impl RatioForm {
    fn of([counted, of]: &[Measure; 2]) -> Self {
        let plain = |name: &str| name.split(':').next().unwrap_or_default().to_owned();
        let names = [plain(&counted.name), plain(&of.name)];
        let [counted_name, of_name] = [&*names[0], &*names[1]];
        match (counted.unit, of.unit) {
            (unit, Unit::Time) if unit != Unit::Time => Self::PerSecond(unit),
            (Unit::Count, Unit::Count) if of_name == "instructions" => match counted_name {
                "cycles" | "cpu-cycles" | "ref-cycles" => Self::Each(Unit::Count),
                _ => Self::PerThousand,
            },
            (Unit::Count, Unit::Count) if counted_name.ends_with("-misses") => Self::Percent,
            (unit, _) => Self::Each(unit),
        }
    }

    /// The factor by which the ratio is multiplied.
    fn scale(self) -> f64 {
        match self {
            Self::PerSecond(_) => 1e9,
            Self::PerThousand => 1e3,
            Self::Percent | Self::Each(_) => 1.0,
        }
    }
}

impl Events {
    /// The words after a ratio's number.
    pub(crate) fn description(&self) -> String {
        let of = one_line(&self.measures[1].name);
        match self.shown {
            RatioForm::PerSecond(_) => format!("per second of {of}"),
            RatioForm::PerThousand => format!("per 1,000 {of}"),
            RatioForm::Percent => format!("of {of}"),
            RatioForm::Each(_) => format!("for each of {of}"),
        }
    }

    /// A ratio as text: `-` if there is none, and with `~` if it is uncertain.
    pub(crate) fn ratio(&self, ratio: &Ratio) -> String {
        let Some(value) = ratio.ratio else { return "-".to_owned() };
        let mark = if ratio.is_uncertain { "~" } else { "" };
        let value = value * self.shown.scale();
        let text = match self.shown {
            RatioForm::Percent => percent(value),
            RatioForm::PerSecond(Unit::Bytes) | RatioForm::Each(Unit::Bytes) => {
                amount(Unit::Bytes, value as u64)
            }
            RatioForm::Each(Unit::Time) => format!("{} ns", digits(value)),
            _ => digits(value),
        };
        format!("{mark}{text}")
    }

    /// The standard error of a ratio as text.
    pub(crate) fn error(ratio: &Ratio) -> String {
        ratio.error.filter(|_| ratio.ratio.is_some()).map(percent).unwrap_or_default()
    }

    /// An amount of one of the events as text; empty for none.
    pub(crate) fn amount(&self, side: usize, value: f64) -> String {
        if value > 0.0 { amount(self.measures[side].unit, value as u64) } else { String::new() }
    }

    /// Both events and their ratio, in three lines.
    pub(crate) fn heading(&self, whole: &Ratio) -> String {
        let name = |side: usize| one_line(&self.measures[side].name);
        format!(
            "A: {} {}\nB: {} {}\nA/B: {} {}{}\n",
            name(0),
            amount(self.measures[0].unit, whole.count as u64),
            name(1),
            amount(self.measures[1].unit, whole.of as u64),
            self.ratio(whole),
            self.description(),
            whole.error.map(|error| format!(" ± {}", percent(error))).unwrap_or_default(),
        )
    }

    /// The events as JSON.
    pub(crate) fn json(&self, whole: &Ratio) -> Value {
        let side = |side: usize| json!({ "measure": self.measures[side].name, "unit": self.measures[side].unit.as_str() });
        json!({ "count": side(0), "of": side(1), "whole": whole })
    }
}

/// A number with three significant digits, or with all digits before the point.
fn digits(value: f64) -> String {
    match value {
        value if value >= 99.95 => grouped(value.round() as u64),
        value if value >= 9.995 => format!("{value:.1}"),
        value if value >= 0.9995 => format!("{value:.2}"),
        value if value >= 0.0005 || value <= 0.0 => format!("{value:.3}"),
        value => format!("{value:.1e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measure(name: &str, unit: Unit) -> Measure {
        Measure { name: name.to_owned(), unit }
    }

    fn events(counted: (&str, Unit), of: (&str, Unit)) -> Events {
        let measures = [measure(counted.0, counted.1), measure(of.0, of.1)];
        Events { shown: RatioForm::of(&measures), measures }
    }

    fn check(counted: (&str, Unit), of: (&str, Unit), amounts: (f64, f64), expected: &str) {
        let events = events(counted, of);
        let ratio = Ratio { ratio: Some(amounts.0 / amounts.1), ..Ratio::default() };
        assert_eq!(format!("{} {}", events.ratio(&ratio), events.description()), expected);
    }

    #[test]
    fn ratios_are_shown_as_the_field_does() {
        use Unit::{Bytes, Count, Time};
        let (faults, cpu) = (("page-faults", Count), ("CPU time", Time));
        check(faults, cpu, (50.0, 2e9), "25.0 per second of CPU time");
        let instructions = ("instructions:u", Count);
        check(("cache-misses", Count), instructions, (3.0, 2000.0), "1.50 per 1,000 instructions:u");
        check(("cycles", Count), instructions, (3.0, 2.0), "1.50 for each of instructions:u");
        check(instructions, ("cycles", Count), (3.0, 4.0), "0.750 for each of cycles");
        check(("branch-misses", Count), ("branches", Count), (1.0, 50.0), "2.0% of branches");
        check(
            ("alloc_space", Bytes),
            ("alloc_objects", Count),
            (4096.0, 2.0),
            "2.0 kB for each of alloc_objects",
        );
        check(cpu, faults, (2e9, 5e6), "400 ns for each of page-faults");
    }

    #[test]
    fn an_uncertain_ratio_is_marked() {
        let events = events(("a", Unit::Count), ("b", Unit::Count));
        let ratio = |ratio, is_uncertain| events.ratio(&Ratio { ratio, is_uncertain, ..Ratio::default() });
        assert_eq!([ratio(Some(0.25), true), ratio(Some(2.0), false)], ["~0.250", "2.00"]);
        assert_eq!([ratio(None, true), ratio(Some(0.0), false)], ["-", "0.000"]);
    }

    #[test]
    fn the_slash_between_two_events_is_found() {
        let known = |name: &str| ["cpu/event=0x3c/", "a", "b"].contains(&name);
        assert_eq!(names("a/b", known), Ok(["a", "b"]));
        assert_eq!(names("cpu/event=0x3c//a", known), Ok(["cpu/event=0x3c/", "a"]));
        assert_eq!(names("a/cpu/event=0x3c/", known), Ok(["a", "cpu/event=0x3c/"]));
        assert_eq!(names("x/y", known), Ok(["x", "y"]));
        assert_eq!(names("x/period=1//a", known), Ok(["x/period=1/", "a"]));
        assert_eq!(names("a/x/period=1/", known), Ok(["a", "x/period=1/"]));
        for wrong in ["a", "/a", "a/", "", "x/y/z"] {
            assert_eq!(names(wrong, known).unwrap_err().status, NOT_UNDERSTOOD, "{wrong}");
        }
    }
}
