//! The value of a pprof profile's samples that is read, and its measure.

use nyquist_profile::{Measure, Unit};

use super::{OFF_CPU, message};
use crate::error::ReadError;
use crate::import::MILLISECOND;
use crate::strings::NumberedStrings;
use crate::values::names_of_measure;

/// A value of the samples that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SelectedValue {
    pub index: usize,
    /// How many units of the profile (ns, bytes, objects) one value has.
    pub factor: u64,
    pub off_cpu: bool,
}

/// The values that are read, and their measure.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SelectedValues {
    pub values: Vec<SelectedValue>,
    pub measure: Measure,
    /// The file's default, if another value was chosen because this one is 0 in all samples.
    pub empty_default: Option<String>,
}

/// Chooses the value that is requested by its name, or else the file's default, or else the last one, as in
/// pprof. Time of waiting is read with CPU time, which is the default of a file with both.
///
/// # Errors
/// There is no value with this name.
pub(super) fn values(
    file: &message::Profile,
    strings: &NumberedStrings<'_>,
    requested: Option<&str>,
) -> Result<SelectedValues, ReadError> {
    let types: Vec<_> =
        file.sample_type.iter().map(|kind| (strings.text(kind.kind), strings.text(kind.unit))).collect();
    let is = |name: &str| types.iter().position(|&(kind, _)| kind == name);
    let called = |name: &str| is(name).or_else(|| names_of_measure(name).iter().find_map(|name| is(name)));
    let (index, default) = match requested {
        Some(name) => (called(name).ok_or_else(|| not_there(name, &types))?, None),
        None => {
            let default = Some(strings.text(file.default_sample_type)).filter(|name| !name.is_empty());
            let last = types.iter().rposition(|&(kind, _)| !is_waiting(kind));
            let default = default.and_then(called).or(last).unwrap_or(types.len() - 1);
            (with_values(file, default, |index| !is_waiting(types[index].0)), Some(default))
        }
    };
    let empty_default =
        default.filter(|&default| default != index).map(|default| types[default].0.to_owned());
    let (kind, unit) = types[index];
    let (factor, unit) = factor_of(unit);
    let period = cpu_period(file, strings);
    // Samples that come once per period of CPU time represent that time.
    let is_cpu_sample = matches!(kind, "samples" | "sample") && unit == Unit::Count && period.is_some();
    let is_cpu_time = unit == Unit::Time && matches!(kind, "cpu" | "cpu_time" | "on_cpu");
    if requested.is_none() && (is_cpu_sample || is_cpu_time) {
        let main = if is_cpu_time {
            SelectedValue { index, factor, off_cpu: false }
        } else {
            SelectedValue { index, factor: period.unwrap_or(MILLISECOND), off_cpu: false }
        };
        let waits = types.iter().enumerate().find_map(|(index, &(kind, unit))| {
            let (factor, unit) = factor_of(unit);
            (is_waiting(kind) && unit == Unit::Time).then_some(SelectedValue { index, factor, off_cpu: true })
        });
        return Ok(SelectedValues {
            values: [Some(main), waits].into_iter().flatten().collect(),
            measure: Measure::default(),
            empty_default,
        });
    }
    let measure = if is_cpu_time { Measure::default() } else { Measure { name: kind.to_owned(), unit } };
    Ok(SelectedValues {
        values: vec![SelectedValue { index, factor, off_cpu: false }],
        measure,
        empty_default,
    })
}

/// The default value, or the last one that is not 0 in all samples if the default one is.
fn with_values(file: &message::Profile, default: usize, is_requested: impl Fn(usize) -> bool) -> usize {
    let has_any = |index: usize| file.sample.iter().any(|it| it.value.get(index).is_some_and(|it| *it != 0));
    if has_any(default) {
        return default;
    }
    (0..file.sample_type.len()).rev().find(|&index| is_requested(index) && has_any(index)).unwrap_or(default)
}

fn not_there(name: &str, types: &[(&str, &str)]) -> ReadError {
    let names: Vec<_> = types.iter().map(|&(kind, _)| kind).take(8).collect();
    ReadError::Unsupported(format!("its samples have no value `{name}`, but {}", names.join(", ")))
}

fn is_waiting(kind: &str) -> bool {
    matches!(kind, OFF_CPU | "off-cpu" | "offcpu")
}

/// The time that a sample stands for in ns, if the file's period is CPU time or unnamed time.
pub(super) fn cpu_period(file: &message::Profile, strings: &NumberedStrings<'_>) -> Option<u64> {
    plausible_period(strings.text(file.period_type?.unit), file.period)
}

/// The longest time between two samples that is believed. Programs that state a frequency, or a time in another
/// unit, as the period exceed it.
const MAX_PERIOD: u64 = 60_000_000_000;

/// A period in ns, if its unit is one of time, and a sampler can have had it.
pub(crate) fn plausible_period(unit: &str, period: i64) -> Option<u64> {
    let (factor, unit) = factor_of(unit);
    let period = u64::try_from(period).ok()?.saturating_mul(factor);
    Some(period).filter(|period| unit == Unit::Time && (1..=MAX_PERIOD).contains(period))
}

/// The number of our units in a unit of a file, by its name in the singular or plural, or its abbreviation.
/// An unknown unit is counted.
pub(crate) fn factor_of(unit: &str) -> (u64, Unit) {
    let unit = unit.trim().to_lowercase();
    let singular = unit.strip_suffix('s').and_then(known_factor);
    known_factor(&unit).or(singular).unwrap_or((1, Unit::Count))
}

fn known_factor(unit: &str) -> Option<(u64, Unit)> {
    Some(match unit {
        "nanosecond" | "nanosec" | "ns" => (1, Unit::Time),
        "microsecond" | "microsec" | "us" | "µs" | "μs" => (1000, Unit::Time),
        "millisecond" | "millisec" | "ms" => (1_000_000, Unit::Time),
        "second" | "sec" | "s" => (1_000_000_000, Unit::Time),
        "minute" | "min" => (60_000_000_000, Unit::Time),
        "hour" | "hr" | "h" => (3_600_000_000_000, Unit::Time),
        "day" => (86_400_000_000_000, Unit::Time),
        "byte" | "b" => (1, Unit::Bytes),
        "kilobyte" | "kibibyte" | "kb" | "kib" => (1 << 10, Unit::Bytes),
        "megabyte" | "mebibyte" | "mb" | "mib" => (1 << 20, Unit::Bytes),
        "gigabyte" | "gibibyte" | "gb" | "gib" => (1 << 30, Unit::Bytes),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_known_by_all_their_names() {
        let check = |names: &[&str], expected| {
            for name in names {
                assert_eq!(factor_of(name), expected, "{name}");
            }
        };
        check(&["nanoseconds", "nanosecond", "ns"], (1, Unit::Time));
        check(&["seconds", "sec", "secs", "s", "Seconds"], (1_000_000_000, Unit::Time));
        check(&["ms", "milliseconds"], (1_000_000, Unit::Time));
        check(&["minutes", "min", "mins"], (60_000_000_000, Unit::Time));
        check(&["hours", "hr", "hrs"], (3_600_000_000_000, Unit::Time));
        check(&["kilobytes", "KB", "kiB"], (1024, Unit::Bytes));
        check(&["bytes", "B"], (1, Unit::Bytes));
        check(&["count", "objects", "", "furlongs"], (1, Unit::Count));
    }

    /// The value that is read of a file with these types and this unit of its period, and its measure.
    fn chosen(
        types: &[(&str, &str)],
        period: &str,
        default: &str,
        requested: Option<&str>,
    ) -> (Vec<SelectedValue>, Measure) {
        let mut file =
            message::Profile { string_table: vec![Vec::new()], period: 10, ..message::Profile::default() };
        let string = |text: &str, file: &mut message::Profile| {
            file.string_table.push(text.into());
            file.string_table.len() as i64 - 1
        };
        for (kind, unit) in types {
            let kind = string(kind, &mut file);
            let unit = string(unit, &mut file);
            file.sample_type.push(message::ValueType { kind, unit });
        }
        let unit = string(period, &mut file);
        file.period_type = Some(message::ValueType { kind: 0, unit });
        file.default_sample_type = string(default, &mut file);
        let SelectedValues { values, measure, .. } =
            values(&file, &NumberedStrings::new(&file.string_table), requested).unwrap();
        (values, measure)
    }

    fn value(index: usize, factor: u64) -> Vec<SelectedValue> {
        vec![SelectedValue { index, factor, off_cpu: false }]
    }

    fn measure(name: &str, unit: Unit) -> Measure {
        Measure { name: name.into(), unit }
    }

    #[test]
    fn the_profiles_of_go_count_what_they_count() {
        let cpu = [("samples", "count"), ("cpu", "nanoseconds")];
        assert_eq!(chosen(&cpu, "nanoseconds", "", None), (value(1, 1), Measure::default()));
        let requested = (value(0, 1), measure("samples", Unit::Count));
        assert_eq!(chosen(&cpu, "nanoseconds", "", Some("samples")), requested);
        let heap = [
            ("alloc_objects", "count"),
            ("alloc_space", "bytes"),
            ("inuse_objects", "count"),
            ("inuse_space", "bytes"),
        ];
        assert_eq!(chosen(&heap, "bytes", "", None), (value(3, 1), measure("inuse_space", Unit::Bytes)));
        let allocs = (value(1, 1), measure("alloc_space", Unit::Bytes));
        assert_eq!(chosen(&heap, "bytes", "alloc_space", None), allocs);
        let objects = (value(2, 1), measure("inuse_objects", Unit::Count));
        assert_eq!(chosen(&heap, "bytes", "alloc_space", Some("inuse_objects")), objects);
        let locks = [("contentions", "count"), ("delay", "nanoseconds")];
        assert_eq!(chosen(&locks, "count", "", None), (value(1, 1), measure("delay", Unit::Time)));
        let goroutines = (value(0, 1), measure("goroutine", Unit::Count));
        assert_eq!(chosen(&[("goroutine", "count")], "count", "", None), goroutines);
        let threads = (value(0, 1), measure("threadcreate", Unit::Count));
        assert_eq!(chosen(&[("threadcreate", "count")], "count", "", None), threads);
    }

    #[test]
    fn clock_samples_are_cpu_time_and_not_wall_time() {
        assert_eq!(
            chosen(&[("samples", "count")], "ms", "", None),
            (value(0, 10_000_000), Measure::default())
        );
        let wall = [("cpu", "seconds"), ("wall", "sec")];
        let expected = (value(1, 1_000_000_000), measure("wall", Unit::Time));
        assert_eq!(chosen(&wall, "ms", "wall", None), expected);
        assert_eq!(chosen(&wall, "ms", "cpu", None), (value(0, 1_000_000_000), Measure::default()));
    }

    /// `go tool pprof -raw` shows these numbers as counts, and no time.
    #[test]
    fn a_period_that_cannot_be_is_not_believed() {
        let samples = [("samples", "count")];
        let counted = (value(0, 1), measure("samples", Unit::Count));
        for unit in ["minutes", "hours", "count", ""] {
            assert_eq!(chosen(&samples, unit, "", None), counted, "{unit}");
        }
        assert_eq!(plausible_period("seconds", 1_000_000), None);
        assert_eq!(plausible_period("hours", i64::MAX), None);
        assert_eq!([plausible_period("ns", 0), plausible_period("ns", -5)], [None; 2]);
        assert_eq!(plausible_period("milliseconds", 10), Some(10_000_000));
    }

    #[test]
    fn values_that_are_all_zero_are_not_chosen() {
        let zero_last = |values: &[[i64; 3]], default: &str| {
            let sample =
                |value: &[i64; 3]| message::Sample { value: value.to_vec(), ..message::Sample::default() };
            let texts = ["", "alloc", "inuse", "off_cpu", "bytes"];
            let file = message::Profile {
                string_table: texts.map(|text| text.as_bytes().to_vec()).into(),
                sample_type: [1, 2, 3].map(|kind| message::ValueType { kind, unit: 4 }).into(),
                default_sample_type: if default.is_empty() { 0 } else { 2 },
                sample: values.iter().map(sample).collect(),
                ..message::Profile::default()
            };
            super::values(&file, &NumberedStrings::new(&file.string_table), None).unwrap().values[0].index
        };
        assert_eq!(zero_last(&[[5, 0, 0], [7, 0, 9]], ""), 0);
        assert_eq!(zero_last(&[[5, 0, 0], [7, 0, 9]], "inuse"), 0);
        assert_eq!(zero_last(&[[5, 0, 0], [7, 1, 9]], ""), 1);
        assert_eq!(zero_last(&[[0, 0, 0]], ""), 1);
    }

    #[test]
    fn a_missing_value_is_refused_with_a_list() {
        let file = message::Profile {
            sample_type: vec![message::ValueType::default()],
            ..message::Profile::default()
        };
        let error = values(&file, &NumberedStrings::new(&file.string_table), Some("x")).unwrap_err();
        assert!(error.to_string().contains("no value `x`"), "{error}");
    }
}
