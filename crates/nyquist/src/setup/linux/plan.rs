//! The changes that permit more to be recorded: pure functions of the machine's settings.

use nyquist_record::linux::machine::Settings;
use std::fmt::Write as _;

/// A setting below `/proc/sys/kernel` with its new value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// The name below `kernel.`.
    pub(crate) name: &'static str,
    /// The present value.
    pub(crate) from: i64,
    /// The new value.
    pub(crate) to: i64,
    /// The benefit and the risk.
    pub(crate) meaning: &'static str,
}

/// The changes that permit all users to record with kernel code and large buffers. Settings that allow more
/// already are kept.
pub(crate) fn changes(settings: &Settings, requested_ring_kb: u64) -> Vec<Change> {
    let at_most = |name, now: Option<i64>, to, meaning| {
        now.filter(|now| *now > to).map(|from| Change { name, from, to, meaning })
    };
    let paranoid = at_most(
        "perf_event_paranoid",
        settings.perf_event_paranoid,
        1,
        "every user can sample the user and kernel code of own processes",
    );
    let hidden = at_most(
        "kptr_restrict",
        settings.kptr_restrict,
        0,
        "kernel functions get names, and every user who may sample kernel code sees where it lies",
    );
    let requested = i64::try_from(requested_ring_kb).unwrap_or(i64::MAX);
    let buffers = settings.perf_event_mlock_kb.filter(|now| *now < requested).map(|from| Change {
        name: "perf_event_mlock_kb",
        from,
        to: requested,
        meaning: "every user can lock so many kB of memory for each CPU, and loses no samples",
    });
    [paranoid, hidden, buffers].into_iter().flatten().collect()
}

/// The changes as text.
pub(crate) fn describe(changes: &[Change]) -> String {
    let mut text = String::new();
    for Change { name, from, to, meaning } in changes {
        let _ = writeln!(text, "  kernel.{name}: {from} -> {to}\n      {meaning}");
    }
    text
}

/// The file for `/etc/sysctl.d` that makes the settings permanent (sysctl.d(5)). It includes settings that
/// already have the requested value, so that a second run does not remove any.
pub(crate) fn lasting(settings: &Settings, requested_ring_kb: u64) -> String {
    let mut text =
        "# Written by `nyquist setup --lasting`: lets users record profiles. Delete it to go back.\n"
            .to_owned();
    let changes = changes(settings, requested_ring_kb);
    let value = |name: &str, now: Option<i64>| {
        changes.iter().find(|change| change.name == name).map(|change| change.to).or(now)
    };
    let settings = [
        ("perf_event_paranoid", settings.perf_event_paranoid),
        ("kptr_restrict", settings.kptr_restrict),
        ("perf_event_mlock_kb", settings.perf_event_mlock_kb),
    ];
    for (name, now) in settings {
        if let Some(value) = value(name, now) {
            let _ = writeln!(text, "kernel.{name} = {value}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELIVERED: Settings = Settings {
        perf_event_paranoid: Some(2),
        kptr_restrict: Some(1),
        perf_event_mlock_kb: Some(516),
        perf_event_max_sample_rate: Some(100_000),
        ptrace_scope: Some(1),
    };

    fn check(settings: Settings, expected: &[(&str, i64, i64)]) {
        let found = changes(&settings, 33_324);
        let found: Vec<_> = found.iter().map(|change| (change.name, change.from, change.to)).collect();
        assert_eq!(found, expected, "{settings:?}");
    }

    #[test]
    fn a_machine_as_delivered_is_opened() {
        check(
            DELIVERED,
            &[("perf_event_paranoid", 2, 1), ("kptr_restrict", 1, 0), ("perf_event_mlock_kb", 516, 33_324)],
        );
    }

    #[test]
    fn what_allows_more_stays() {
        let open = Settings {
            perf_event_paranoid: Some(-1),
            kptr_restrict: Some(0),
            perf_event_mlock_kb: Some(1 << 20),
            ..DELIVERED
        };
        check(open, &[]);
    }

    #[test]
    fn what_the_kernel_does_not_have_is_left_alone() {
        check(Settings::default(), &[]);
    }

    #[test]
    fn the_lasting_file_has_all_settings() {
        let half = Settings { kptr_restrict: Some(0), ..DELIVERED };
        let text = lasting(&half, 33_324);
        let lines: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let expected = [
            "kernel.perf_event_paranoid = 1",
            "kernel.kptr_restrict = 0",
            "kernel.perf_event_mlock_kb = 33324",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn changes_are_shown_with_what_they_mean() {
        let text = describe(&changes(&DELIVERED, 33_324));
        assert!(
            text.starts_with("  kernel.perf_event_paranoid: 2 -> 1\n      every user can sample"),
            "{text}"
        );
    }
}
