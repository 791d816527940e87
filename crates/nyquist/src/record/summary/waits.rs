//! The waiting time of the recorded threads, and its reasons.

use crate::printer::Printer;
use nyquist_profile::{Profile, well_known};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The number of reasons that are printed.
const REASONS: usize = 6;

/// The name of waits without a reason.
const NOT_KNOWN: &str = "not known";

/// Prints the waiting time of threads, if it was recorded with the reasons.
pub(super) fn print(printer: Printer, profile: &Profile) {
    if let Some(line) = line(profile) {
        printer.say(line);
    }
}

fn line(profile: &Profile) -> Option<String> {
    let mut by_reason: BTreeMap<&str, u64> = BTreeMap::new();
    let samples = profile.threads().iter().flat_map(|thread| &thread.samples);
    for sample in samples.filter(|sample| sample.off_cpu) {
        let innermost = sample.stack.and_then(|stack| profile.stack_frames(stack).next());
        let name = innermost.map_or("", |frame| profile.func_name(frame.func));
        let reason = if name == well_known::RUNNABLE { Some("a CPU") } else { well_known::wait_reason(name) };
        let sum = by_reason.entry(reason.unwrap_or(NOT_KNOWN)).or_default();
        *sum = sum.saturating_add(sample.weight);
    }
    if by_reason.keys().all(|reason| *reason == NOT_KNOWN) {
        return None;
    }
    let seconds = |weight: u64| weight.saturating_mul(profile.meta().interval) as f64 / 1e9;
    let all = seconds(by_reason.values().copied().fold(0, u64::saturating_add));
    let text = |(why, weight): (&str, u64)| format!("{why} {:.2} s", seconds(weight));
    let texts = [false, true].map(|are_idle| {
        let requested = by_reason.iter().filter_map(|(reason, weight)| {
            let runtime = well_known::idle_runtime(reason);
            (runtime.is_some() == are_idle).then_some((runtime.unwrap_or(reason), *weight))
        });
        let mut requested: Vec<_> = requested.collect();
        requested.sort_by_key(|(_, weight)| Reverse(*weight));
        requested.into_iter().take(REASONS).map(text).collect::<Vec<_>>().join(", ")
    });
    Some(match texts.each_ref().map(String::as_str) {
        [reasons, ""] => format!("All threads together waited {all:.2} s: {reasons}"),
        ["", idle] => format!("All threads together waited {all:.2} s, as workers without work: {idle}"),
        [reasons, idle] => {
            format!("All threads together waited {all:.2} s: {reasons}; workers without work: {idle}")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nyquist_profile::{Meta, Process, ProfileBuilder, Sample, Thread};

    fn texts(waits: &[(&str, u64)]) -> Option<String> {
        let mut builder = ProfileBuilder::new(Meta { interval: 1_000_000, ..Meta::default() });
        let process = builder.add_process(Process::default());
        let thread = builder.add_thread(Thread::new(process, "1", "main"));
        for (name, weight) in waits {
            let stack = builder.intern_label(None, name, None);
            builder.add_sample(
                thread,
                Sample { weight: *weight, off_cpu: true, ..Sample::new(0, Some(stack), 0) },
            );
        }
        line(&builder.finish())
    }

    #[test]
    fn waits_are_reported_by_reason_longest_first() {
        let waits = [("[waiting: lock]", 300), ("[waiting for a CPU]", 50), ("[waiting: sleep]", 2000)];
        let line = "All threads together waited 2.35 s: sleep 2.00 s, lock 0.30 s, a CPU 0.05 s";
        assert_eq!(texts(&waits).as_deref(), Some(line));
        assert_eq!(texts(&[]), None);
        assert_eq!(texts(&[("read", 7)]), None, "a source that does not say what for");
        let idle = [("[idle: Tokio]", 5000), ("[waiting: lock]", 300), ("[idle: Go]", 200)];
        let line =
            "All threads together waited 5.50 s: lock 0.30 s; workers without work: Tokio 5.00 s, Go 0.20 s";
        assert_eq!(texts(&idle).as_deref(), Some(line));
        let line = "All threads together waited 0.20 s, as workers without work: Go 0.20 s";
        assert_eq!(texts(&idle[2..]).as_deref(), Some(line));
        let line = "All threads together waited 0.31 s: lock 0.30 s, not known 0.01 s";
        assert_eq!(texts(&[("[waiting: lock]", 300), ("read", 7)]).as_deref(), Some(line));
    }
}
