//! Reads the output of `perf script`.

use std::io::BufRead;

use nyquist_profile::{
    CategoryId, Marker, MarkerDisplay, MarkerField, MarkerFormat, MarkerSchema, MarkerTiming, MarkerValue,
    StackId, ThreadIndex, Unit,
};
use rustc_hash::FxHashMap;

use super::OFF_CPU_EVENT;
use super::line::{
    FrameLine, SampleHeader, parse_frame, parse_frame_line, parse_header, parse_timeless_header,
};
use super::stack::ScriptStack;
use crate::error::{ImportedProfile, Note, ReadError};
use crate::import::{Importer, MILLISECOND, ThreadName};
use crate::text_lines::each_line;
use crate::values::{self, SampleValueKind};

const FORMAT: &str = "the output of perf script";

/// Reads the text with the default fields, and most others (`-F`). The time or the event may be missing.
///
/// If there are several events, one is read: the `requested` one, or else the one with the most samples among
/// those that measure time, or else among the others. A tracepoint is only read if there is nothing else. The
/// weight of a sample of a clock is its period. Samples of cycles count one each, and the sampling interval
/// is the median time between two samples of a thread, or of a CPU if that is less. If neither times nor
/// periods show the interval, samples are counted. The weight of samples of other events is their period, and
/// the profile counts these events. Samples of idle CPUs are left out. Tracepoints that are not read as
/// samples become markers. With an event that measures time, `offcpu-time` becomes waiting.
///
/// # Errors
/// The text has no sample, or none of the requested event, or cannot be read.
pub fn read_value(text: impl BufRead, requested: Option<&str>) -> Result<ImportedProfile, ReadError> {
    let mut reader = PerfScriptReader::default();
    let mut importer = Importer::new("perf script", "perf script");
    each_line(text, |line, has_end| {
        if has_end {
            reader.read_line(&mut importer, line);
        } else {
            // Perf ends each line. What has no end was cut off.
            reader.read_last_line(line);
            importer.note(Note::Cut { place: "its last line".into() });
        }
    })?;
    reader.end_sample(&mut importer);
    if reader.samples.is_empty() {
        let problem = "no line is the head of a sample".into();
        return Err(ReadError::Malformed { format: FORMAT, problem });
    }
    let main = main_event(&reader.events, &reader.samples, requested)?;
    add_samples(&mut importer, &reader, main);
    importer.note_left_out(reader.odd_lines, "lines that do not belong to a sample");
    Ok(importer.finish(None))
}

/// The meaning of an event's samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EventMeaning {
    /// CPU time: the period is in ns.
    Clock,
    /// CPU time, of which each sample stands for the same amount.
    Cycles,
    /// Something else that is counted.
    Count,
    OffCpu,
    Tracepoint,
}

#[derive(Clone, Debug)]
struct ScriptEvent {
    name: String,
    kind: EventMeaning,
}

struct ScriptSample {
    thread: ThreadIndex,
    /// Whether it is of the idle task.
    is_idle: bool,
    cpu: Option<u32>,
    time: u64,
    period: Option<u64>,
    event: usize,
    stack: Option<StackId>,
    /// The fields of a tracepoint.
    fields: String,
}

#[derive(Default)]
struct PerfScriptReader {
    events: Vec<ScriptEvent>,
    event_ids: FxHashMap<String, usize>,
    samples: Vec<ScriptSample>,
    /// The sample whose stack is being read.
    pending: Option<ScriptSample>,
    /// Its frames.
    stack: ScriptStack,
    /// Whether a sample has a time.
    has_times: bool,
    odd_lines: u64,
}

impl PerfScriptReader {
    fn read_line(&mut self, importer: &mut Importer, line: &str) {
        let line = line.trim_end();
        if line.is_empty() {
            self.end_sample(importer);
        } else if line.starts_with('#') {
            // A comment: perf's own heading.
        } else if self.pending.is_some() && line.starts_with('\t') && self.stack.add_line(line) {
            // Perf's own frames begin with a tab, and heads with a name.
        } else if let Some(header) = parse_header(line) {
            self.end_sample(importer);
            self.begin_sample(importer, &header);
        } else if self.pending.is_none() {
            match parse_timeless_header(line) {
                Some(header) => self.begin_sample(importer, &header),
                None => self.odd_lines += 1,
            }
        } else if !self.stack.add_line(line) && !self.stack.add_source_line(line) {
            self.odd_lines += 1;
        }
    }

    /// Reads a line that has no end. A frame is whole if it has its lib.
    fn read_last_line(&mut self, line: &str) {
        let is_whole = |frame: &FrameLine<'_>| frame.dso.is_some() || frame.is_inlined;
        if self.pending.is_some() && parse_frame_line(line).as_ref().is_some_and(is_whole) {
            self.stack.add_line(line.trim_end());
        }
    }

    fn begin_sample(&mut self, importer: &mut Importer, header: &SampleHeader<'_>) {
        let thread = importer.thread(ThreadName {
            pid: header.pid,
            process: header.comm,
            tid: header.tid,
            thread: header.comm,
        });
        importer.rename_thread(thread, header.comm);
        let event = self.event(header.event);
        let is_tracepoint = self.events[event].kind == EventMeaning::Tracepoint;
        // A lone address is that of the data (`-F +addr`).
        let is_frame = |frame: &FrameLine<'_>| !frame.symbol.is_empty() || frame.dso.is_some();
        if !is_tracepoint && parse_frame(header.rest).as_ref().is_some_and(is_frame) {
            self.stack.add(header.rest);
        }
        self.has_times |= header.time.is_some();
        self.pending = Some(ScriptSample {
            thread,
            is_idle: header.tid == "0" && header.comm.starts_with("swapper"),
            cpu: header.cpu,
            // Without times, samples follow each other.
            time: header.time.unwrap_or(self.samples.len() as u64 * MILLISECOND),
            period: header.period,
            event,
            stack: None,
            fields: if is_tracepoint { header.rest.to_owned() } else { String::new() },
        });
    }

    /// The index of the event with this name. On a CPU with two kinds of cores, the PMUs of both count the
    /// same event.
    fn event(&mut self, name: &str) -> usize {
        let (name, kind) = describe_event(name);
        *self.event_ids.entry(name.to_owned()).or_insert_with(|| {
            self.events.push(ScriptEvent { name: name.to_owned(), kind });
            self.events.len() - 1
        })
    }

    fn end_sample(&mut self, importer: &mut Importer) {
        let stack = self.stack.take(importer);
        if let Some(sample) = self.pending.take() {
            self.samples.push(ScriptSample { stack, ..sample });
        }
    }
}

/// An event's name without modifiers and PMU, and the meaning of its samples.
fn describe_event(name: &str) -> (&str, EventMeaning) {
    let is_modifier = |text: &str| text.bytes().all(|byte| b"ukhIGHpPSDWebR".contains(&byte));
    let base = match name.rsplit_once(':') {
        Some((base, modifiers)) if is_modifier(modifiers) => base,
        Some(_) => return (name, EventMeaning::Tracepoint),
        None => name,
    };
    let base = match base.split_once('/') {
        Some((_, event)) if !event.is_empty() => event.split('/').next().unwrap_or(event),
        _ => base,
    };
    let kind = match base {
        "cpu-clock" | "task-clock" => EventMeaning::Clock,
        OFF_CPU_EVENT => EventMeaning::OffCpu,
        // The text may omit events (`-F comm,tid,time,ip,sym`). Perf's default event is cycles.
        "" => EventMeaning::Cycles,
        _ if base.contains("cycles") => EventMeaning::Cycles,
        _ => EventMeaning::Count,
    };
    (base, kind)
}

/// The event whose samples are read. `None` if all samples are time of waiting.
fn main_event(
    events: &[ScriptEvent],
    samples: &[ScriptSample],
    requested: Option<&str>,
) -> Result<Option<usize>, ReadError> {
    if let Some(name) = requested {
        let values: Vec<SampleValueKind> =
            events.iter().map(|event| SampleValueKind::new(&event.name, Unit::Count)).collect();
        return values::choose(&values, Some(describe_event(name).0), 0).map(Some);
    }
    let mut counts = vec![0_u64; events.len()];
    for sample in samples {
        counts[sample.event] += 1;
    }
    let rank = |kind: EventMeaning| match kind {
        EventMeaning::Clock | EventMeaning::Cycles => Some(2),
        EventMeaning::Count => Some(1),
        EventMeaning::Tracepoint => Some(0),
        EventMeaning::OffCpu => None,
    };
    let ranked = events.iter().zip(&counts).enumerate().filter_map(|(index, (event, count))| {
        let is_beside_waiting = event.kind == EventMeaning::Tracepoint
            && events.iter().any(|other| other.kind == EventMeaning::OffCpu);
        Some(((rank(event.kind).filter(|_| !is_beside_waiting)?, *count), index))
    });
    Ok(ranked.max_by_key(|(rank, _)| *rank).map(|(_, index)| index))
}

fn add_samples(importer: &mut Importer, reader: &PerfScriptReader, main: Option<usize>) {
    let PerfScriptReader { events, samples, has_times, .. } = reader;
    let of_main = || samples.iter().filter(|sample| Some(sample.event) == main);
    // The idle task runs on several CPUs at the same time.
    let of_threads = of_main().filter(|sample| !sample.is_idle);
    let by_thread = median_interval(of_threads.map(|sample| (sample.thread.index() as u64, sample.time)));
    let by_cpu = median_interval(of_main().filter_map(|sample| Some((sample.cpu?.into(), sample.time))));
    // Threads may wait for CPUs, and CPUs may be idle, so the lower one of both intervals is used.
    let interval = by_thread.into_iter().chain(by_cpu).min().unwrap_or(MILLISECOND);
    let counts_time = main.is_none_or(|main| {
        matches!(events[main].kind, EventMeaning::Clock | EventMeaning::Cycles | EventMeaning::OffCpu)
    });
    // Without times and periods of a clock, the time that a sample stands for is not known.
    let has_periods = main.is_none_or(|main| events[main].kind != EventMeaning::Cycles)
        && of_main().any(|sample| sample.period.is_some());
    let says_how_long = *has_times || main.is_none() || has_periods;
    let is_time = counts_time && says_how_long;
    let interval = if is_time { interval } else { 1 };
    if let Some(event) = main.map(|main| &events[main]).filter(|_| !is_time) {
        let name = if counts_time { "samples" } else { &event.name };
        importer.meta_mut().measure = SampleValueKind::new(name, Unit::Count).measure();
    }
    let mut schema = None;
    let mut left_out = vec![0_u64; events.len()];
    let mut idle = 0;
    for sample in samples {
        let (thread, time, stack) = (sample.thread, sample.time, sample.stack);
        let kind = events[sample.event].kind;
        match kind {
            EventMeaning::OffCpu if is_time => {
                importer.off_cpu_sample(thread, time, stack, sample.period.unwrap_or(interval));
            }
            EventMeaning::Tracepoint if Some(sample.event) != main => {
                let schema =
                    *schema.get_or_insert_with(|| importer.builder().add_marker_schema(tracepoints()));
                add_marker(importer, schema, &events[sample.event].name, sample);
            }
            _ if Some(sample.event) != main => left_out[sample.event] += 1,
            _ if sample.is_idle && counts_time => idle += 1,
            EventMeaning::Clock => importer.sample(thread, time, stack, sample.period.unwrap_or(interval)),
            EventMeaning::Cycles => importer.sample(thread, time, stack, interval),
            _ => importer.sample(thread, time, stack, sample.period.unwrap_or(1)),
        }
    }
    importer.note_left_out(idle, "samples of idle CPUs");
    for (event, count) in events.iter().zip(left_out) {
        importer.note_left_out(count, format!("samples of the event {}", event.name));
    }
}

/// The median time between two samples of the same thread or CPU, given the thread or CPU and the time of
/// each.
fn median_interval(samples: impl Iterator<Item = (u64, u64)>) -> Option<u64> {
    let mut last: FxHashMap<u64, u64> = FxHashMap::default();
    let mut times: Vec<u64> = samples
        .filter_map(|(of, time)| time.checked_sub(last.insert(of, time)?).filter(|&time| time > 0))
        .collect();
    let middle = times.len() / 2;
    (!times.is_empty()).then(|| *times.select_nth_unstable(middle).1)
}

fn tracepoints() -> MarkerSchema {
    MarkerSchema {
        name: "tracepoint".into(),
        display: vec![MarkerDisplay::Chart, MarkerDisplay::Table],
        fields: vec![MarkerField {
            key: "fields".into(),
            label: Some("Fields".into()),
            format: MarkerFormat::String,
        }],
        table_label: Some("{marker.data.fields}".into()),
        ..MarkerSchema::default()
    }
}

fn add_marker(
    importer: &mut Importer,
    schema: nyquist_profile::MarkerSchemaId,
    name: &str,
    sample: &ScriptSample,
) {
    let builder = importer.builder();
    let name = builder.intern_string(name);
    let fields = builder.intern_string(&sample.fields);
    builder.add_marker(
        sample.thread,
        Marker {
            name,
            timing: MarkerTiming::Instant(sample.time),
            category: CategoryId::from_index(0),
            schema: Some(schema),
            values: vec![MarkerValue::String(fields)],
            stack: sample.stack,
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_profile::stacks_of;
    use std::fmt::Write as _;

    #[test]
    fn events_are_distinguished() {
        let check = |name: &str, expected| assert_eq!(describe_event(name), expected, "{name}");
        check("cpu-clock:u", ("cpu-clock", EventMeaning::Clock));
        check("cycles:ppp", ("cycles", EventMeaning::Cycles));
        check("cpu_core/cycles/u", ("cycles", EventMeaning::Cycles));
        check("page-faults:u", ("page-faults", EventMeaning::Count));
        check("sched:sched_switch", ("sched:sched_switch", EventMeaning::Tracepoint));
        check("offcpu-time", ("offcpu-time", EventMeaning::OffCpu));
    }

    #[test]
    fn the_most_frequent_event_is_read() {
        let text = "a 1 1.000000: 9 cycles: \n\t 10 f+0x1 (/a)\n\na 1 1.002000: 9 cycles: \n\t 10 f+0x1 (/a)\n\n\
            a 1 1.003000: 7 faults: \n\t 20 g (/a)\n\n\
            a 1 1.004000: sched:sched_switch: prev=a next=b\n\tffffffff81000010 s ([kernel.kallsyms])\n\n";
        let read = read_value(text.as_bytes(), None).unwrap();
        assert_eq!(stacks_of(&read.profile), ["f 2"]);
        assert_eq!(read.profile.meta().interval, 2_000_000);
        assert_eq!(read.notes.len(), 1);
        let marker = &read.profile.threads()[0].markers[0];
        assert_eq!(read.profile.string(marker.name), "sched:sched_switch");
        assert_eq!(marker.timing, MarkerTiming::Instant(4_000_000));
        let kernel = read.profile.stack_frames(marker.stack.unwrap()).next().unwrap();
        let category = kernel.category.unwrap().category;
        assert_eq!(read.profile.category(category).name, nyquist_profile::well_known::KERNEL);
    }

    #[test]
    fn what_is_no_time_is_counted_by_its_periods() {
        let sample = |time: u32, event: &str, function: &str| {
            format!("a 1 1.00{time}: {event}: \n\t 10 {function}+0x1 (/a)\n\n")
        };
        let faults = sample(1, "1 page-faults:u", "f") + &sample(2, "300 page-faults:u", "g");
        let check = |text: &str, requested: Option<&str>, name: &str, expected: &[&str]| {
            let profile = read_value(text.as_bytes(), requested).unwrap().profile;
            assert_eq!(profile.meta().measure, SampleValueKind::new(name, Unit::Count).measure(), "{text}");
            assert_eq!(profile.meta().interval, 1);
            assert_eq!(stacks_of(&profile), expected, "{text}");
        };
        check(&faults, None, "page-faults", &["f 1", "g 300"]);
        // With a clock they must be requested. Tracepoints are samples if there is nothing else.
        let both = sample(0, "1000000 cpu-clock", "f") + &faults;
        check(&both, Some("page-faults:u"), "page-faults", &["f 1", "g 300"]);
        let of_clock = read_value(both.as_bytes(), None).unwrap();
        assert!(of_clock.profile.meta().measure.is_cpu_time());
        let left_out = crate::Note::LeftOut { count: 2, what: "samples of the event page-faults".into() };
        assert_eq!(of_clock.notes, [left_out]);
        let calls = sample(1, "syscalls:sys_enter_mmap", "f") + &sample(2, "syscalls:sys_enter_mmap", "f");
        check(&calls, None, "syscalls:sys_enter_mmap", &["f 2"]);
        let error = read_value(both.as_bytes(), Some("cycles")).unwrap_err().to_string();
        assert_eq!(error, "its samples have no value `cycles`, but cpu-clock, page-faults");
    }

    #[test]
    fn a_whole_machine_takes_no_longer_than_its_cpus() {
        // Two CPUs for 2 s at 100 Hz: one alternates between two threads, and the other one is idle half of
        // the time.
        let mut text = String::new();
        for index in 0..200 {
            let time = f64::from(index) / 100.0;
            let (tid, other) = (7 + index % 2, if index % 2 == 0 { "swapper 0" } else { "b 9" });
            write!(text, "a {tid} [000] {time:.6}: cycles: \n\t 10 f+0x1 (/a)\n\n").unwrap();
            write!(text, "{other} [001] {time:.6}: cycles: \n\t 20 g+0x1 (/a)\n\n").unwrap();
        }
        let read = read_value(text.as_bytes(), None).unwrap();
        assert_eq!(stacks_of(&read.profile), ["f 200", "g 100"]);
        assert_eq!(read.profile.meta().interval, 10_000_000);
        assert_eq!(read.notes, [crate::Note::LeftOut { count: 100, what: "samples of idle CPUs".into() }]);
    }

    #[test]
    fn times_events_and_other_fields_are_optional() {
        let check = |text: &str, expected: &[&str]| {
            assert_eq!(crate::detect(text.as_bytes(), "x"), Some(crate::Format::PerfScript), "{text}");
            let read = read_value(text.as_bytes(), None).unwrap();
            assert_eq!(stacks_of(&read.profile), expected, "{text}");
            assert_eq!(read.notes, [], "{text}");
        };
        let frames = "\t 10 f+0x1 (/a)\n\t 20 main+0x1 (/a)\n\n";
        check(&format!("a 1 250 cpu-clock: \n{frames}a 1 250 cpu-clock: \n{frames}"), &["main;f 2"]);
        check(&format!("a 1 cycles: \n{frames}"), &["main;f 1"]);
        check(&format!("a 1 1.000: \n{frames}a 1 1.001: \n{frames}"), &["main;f 2"]);
        check(&format!("a 1 [002] U 1.000: 9 cycles: ffff800012345678\n{frames}"), &["main;f 1"]);
        check(
            "a\t1 [002]\t1.000:\t9 cpu-clock:u: \n\t10 f[+1]\t(/a)\n\t20\tmain (/a)\n\n",
            &["main;f[+1] 1"],
        );
    }

    #[test]
    fn samples_without_any_duration_are_counted() {
        let frames = "\t 10 f+0x1 (/a)\n\n";
        let measure = |head: &str| {
            let text = format!("{head}{frames}{head}{frames}");
            let profile = read_value(text.as_bytes(), None).unwrap().profile;
            assert_eq!(stacks_of(&profile), ["f 2"], "{head}");
            profile.meta().measure.clone()
        };
        let samples = SampleValueKind::new("samples", Unit::Count).measure();
        // A number of cycles is not a time.
        for head in ["a 1 cycles: \n", "a 1 cpu-clock: \n", "a 1 250 cycles: \n"] {
            assert_eq!(measure(head), samples, "{head}");
        }
        for head in ["a 1 250 cpu-clock: \n", "a 1 1.5: cycles: \n"] {
            assert!(measure(head).is_cpu_time(), "{head}");
        }
    }

    /// As perf itself says: `perf script -F comm,pid` of a process whose main thread is `app`.
    #[test]
    fn a_process_has_its_main_thread_s_last_name() {
        let head =
            |comm: &str, tid: u32| format!("{comm} 7/{tid} 1.00{tid}: 9 cycles: \n\t 10 f+0x1 (/a)\n\n");
        let text = head("pool 1", 9) + &head("sh", 7) + &head("my app", 7) + &head("pool 2", 9);
        let profile = read_value(text.as_bytes(), None).unwrap().profile;
        let names: Vec<_> = profile.threads().iter().map(|thread| &*thread.name).collect();
        assert_eq!((&*profile.processes()[0].name, names), ("my app", vec!["pool 2", "my app"]));
    }

    #[test]
    fn frames_may_begin_their_lines() {
        let text = "java 19983 cycles: \nffffffff8103d0ca write_msr ([kernel.kallsyms])\n    7f3c run (/tmp/perf-1.map)\n\n\
            java 19983 cycles: \nffffffff8103d0ca write_msr ([kernel.kallsyms])\n\n";
        assert_eq!(crate::detect(text.as_bytes(), "x"), Some(crate::Format::PerfScript));
        let read = read_value(text.as_bytes(), None).unwrap();
        assert_eq!(
            (stacks_of(&read.profile), read.notes),
            (vec!["run;write_msr 1".into(), "write_msr 1".into()], vec![])
        );
    }

    #[test]
    fn a_text_that_is_cut_off_says_so() {
        let whole =
            "a 1 1.000000: 9 cycles: \n\t 10 f+0x1 (/a)\n\na 1 1.001000: 9 cycles: \n\t 20 g+0x1 (/a)\n\n";
        let notes = |end: usize| read_value(&whole.as_bytes()[..end], None).unwrap().notes;
        let cut = crate::Note::Cut { place: "its last line".into() };
        assert_eq!(notes(whole.len()), []);
        assert!((50..whole.len()).all(|end| notes(end) == [cut.clone()] || whole[..end].ends_with('\n')));
    }

    #[test]
    fn samples_run_together_or_cut_are_read() {
        let text = "a 1 1.000000: 9 cycles:  10 f+0x1 (/a)\na 1 1.001000: 9 cycles:  20 g+0x1 (/a)\na 1 1.0";
        let read = read_value(text.as_bytes(), None).unwrap();
        assert_eq!(stacks_of(&read.profile), ["f 1", "g 1"]);
        assert_eq!(read.notes.len(), 1);
        assert!(read_value(&b"no samples\n"[..], None).is_err());
    }
}
