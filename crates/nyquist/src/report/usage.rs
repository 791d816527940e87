//! The resources that processes used, from their counters: CPU, memory, bytes, threads and files.

use crate::number::counted;
use crate::scale::bytes;
use crate::text::one_line;
use nyquist_analysis::{CounterSummary, View};
use nyquist_profile::ProcessIndex;

/// The number of processes with a line.
const MAX_LINES: usize = 3;

/// Fewer bytes, threads and open files than these are not shown.
const MIN_BYTES: f64 = 1_048_576.0;
const MIN_THREADS: f64 = 2.0;
const MIN_FILES: f64 = 20.0;

/// A line for each of the processes that used most of the CPU, and one for the rest.
pub(super) fn lines(view: &View<'_>) -> Vec<String> {
    let counters = view.counters();
    let duration_s = view.summary().duration_ns as f64 / 1e9;
    let mut processes: Vec<&[CounterSummary<'_>]> =
        counters.chunk_by(|a, b| a.process == b.process).collect();
    processes.sort_by(|a, b| figure(b, "CPU").total_cmp(&figure(a, "CPU")));
    let rows = processes.iter().filter_map(|counters| {
        let (process, parts) = (counters.first()?.process, parts(counters, duration_s));
        (!parts.is_empty()).then(|| format!("{}: {}", name_of(view, process), parts.join(", ")))
    });
    let mut lines: Vec<String> = rows.collect();
    let others = lines.len().saturating_sub(MAX_LINES);
    lines.truncate(MAX_LINES);
    if others > 0 {
        let other = if others == 1 { "other process" } else { "other processes" };
        lines.push(format!("{others} {other} with counters (--json has them)"));
    }
    lines
}

fn name_of(view: &View<'_>, process: ProcessIndex) -> String {
    let process = view.profile().process(process);
    format!("{} ({})", one_line(&process.name), one_line(&process.pid))
}

/// The value of the counter with a name, or 0.
fn figure(counters: &[CounterSummary<'_>], name: &str) -> f64 {
    counters.iter().find(|counter| counter.name == name).map_or(0.0, |counter| counter.figure.value())
}

/// The counters of a process that are worth showing.
fn parts(counters: &[CounterSummary<'_>], duration_s: f64) -> Vec<String> {
    let of = |name: &str, least: f64| Some(figure(counters, name)).filter(|value| *value >= least);
    let cpu = of("CPU", f64::MIN_POSITIVE).filter(|_| duration_s > 0.0);
    let memory = of("Memory", f64::MIN_POSITIVE);
    let whole = |value: f64| value.max(0.0) as u64;
    let rows = [
        cpu.map(|ms| format!("{:.0}% of a CPU", ms / 10.0 / duration_s)),
        memory.map(|peak| format!("memory up to {}", bytes(whole(peak)))),
        of("Read", MIN_BYTES).map(|read| format!("read {}", bytes(whole(read)))),
        of("Written", MIN_BYTES).map(|written| format!("wrote {}", bytes(whole(written)))),
        of("Threads", MIN_THREADS).map(|most| format!("up to {}", counted(whole(most), "thread"))),
        of("Open files", MIN_FILES).map(|most| format!("up to {}", counted(whole(most), "open file"))),
    ];
    rows.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nyquist_analysis::CounterFigure;

    fn counters(figures: &[(&'static str, CounterFigure)]) -> Vec<CounterSummary<'static>> {
        let process = ProcessIndex::from_index(0);
        let counter = |&(name, figure)| CounterSummary { name, unit: "", process, figure };
        figures.iter().map(counter).collect()
    }

    #[test]
    fn only_what_says_something_has_a_word() {
        use CounterFigure::{Peak, Total};
        let busy = [
            ("CPU", Total(1500.0)),
            ("Memory", Peak(117_440_512.0)),
            ("Read", Total(4096.0)),
            ("Written", Total(52_428_800.0)),
            ("Threads", Peak(9.0)),
            ("Open files", Peak(53.0)),
        ];
        let expected =
            "75% of a CPU, memory up to 112.0 MB, wrote 50.0 MB, up to 9 threads, up to 53 open files";
        assert_eq!(parts(&counters(&busy), 2.0).join(", "), expected);
        let idle = [("Threads", Peak(1.0)), ("Open files", Peak(3.0)), ("Read", Total(0.0))];
        assert!(parts(&counters(&idle), 2.0).is_empty());
        assert!(parts(&counters(&[("CPU", Total(5.0))]), 0.0).is_empty());
    }
}
