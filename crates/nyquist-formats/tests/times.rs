//! Checks times in all formats that have them: those that are read, and those that are written and read
//! again.

use nyquist_formats::{Format, as_named, chrome, perf_script, read, speedscope};
use nyquist_profile::firefox::{self, FormatVersion, WriteOptions};
use nyquist_profile::{Meta, Process, Profile, ProfileBuilder, Sample, StackId, Thread, ThreadIndex};

/// An interval in which a thread had a stack, in ns since the first one, and whether it waited.
type Span = (i128, i128, String, bool);

/// The spans of each thread. Contiguous ones with the same stack are merged.
fn spans(profile: &Profile) -> Vec<Vec<Span>> {
    // Text formats have threads in the order of their samples.
    let mut threads: Vec<&Thread> = profile.threads().iter().collect();
    threads.sort_by_key(|thread| &thread.tid);
    let mut all: Vec<Vec<Span>> = threads.into_iter().map(|thread| spans_of(profile, thread)).collect();
    let zero = all.iter().flatten().map(|span| span.0).min().unwrap_or(0);
    for span in all.iter_mut().flatten() {
        (span.0, span.1) = (span.0 - zero, span.1 - zero);
    }
    all.retain(|spans| !spans.is_empty());
    all
}

fn spans_of(profile: &Profile, thread: &Thread) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for sample in thread.samples.iter().filter(|sample| sample.weight > 0) {
        let end = i128::from(sample.time);
        let start = end - i128::from(sample.weight) * i128::from(profile.meta().interval);
        let frames = sample.stack.into_iter().flat_map(|stack| profile.stack_frames(stack));
        let names: Vec<_> = frames.map(|frame| profile.func_name(frame.func)).collect();
        let stack = names.join("<");
        match spans.last_mut() {
            Some(last) if (last.1, &last.2, last.3) == (start, &stack, sample.off_cpu) => last.1 = end,
            _ => spans.push((start, end, stack, sample.off_cpu)),
        }
    }
    spans
}

/// Knuth's generator, so that each run has the same numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// A profile of several threads with gaps, waits, recursion and intervals of all lengths.
fn trace(seed: u64) -> Profile {
    let mut random = Random(seed);
    // Formats in microseconds have nanoseconds after the decimal point.
    let interval = [1, 7, 1000, 1_000_000][random.below(4) as usize];
    let mut builder = ProfileBuilder::new(Meta { interval, has_exact_times: true, ..Meta::default() });
    let mut stacks: Vec<StackId> = Vec::new();
    for _ in 0..12 {
        let prefix = stacks.get(random.below(8) as usize).copied();
        let name = ["a", "b", "c"][random.below(3) as usize];
        stacks.push(builder.intern_label(prefix, name, None));
    }
    let process = builder.add_process(Process { pid: "7".into(), name: "app".into(), ..Process::default() });
    for tid in 7..7 + 1 + random.below(3) {
        let thread = builder.add_thread(Thread::new(process, tid.to_string(), format!("thread {tid}")));
        let mut time = random.below(50) * interval;
        for _ in 0..random.below(60) {
            time += [0, 0, random.below(900)][random.below(3) as usize] * interval;
            let longest = [2, 2, 800][random.below(3) as usize];
            let weight = 1 + random.below(longest);
            time += weight * interval;
            let stack = Some(stacks[random.below(12) as usize]);
            let off_cpu = random.below(5) == 0;
            builder.add_sample(thread, Sample { weight, off_cpu, ..Sample::new(time, stack, 0) });
        }
        let end = builder.meta_mut().profiling_end.get_or_insert(0);
        *end = (time + 1).max(*end);
    }
    builder.finish()
}

#[test]
fn times_survive_writing_and_reading() {
    for seed in 0..60 {
        let profile = trace(seed);
        let expected = spans(&profile);
        if expected.is_empty() {
            continue;
        }
        let check = |name: &str, read: &Profile| assert_eq!(spans(read), expected, "{name}, seed {seed}");
        let mut out = Vec::new();
        chrome::write(&profile, &as_named, &mut out).unwrap();
        check("Chrome", &read(Format::ChromeTrace, &out).unwrap().profile);
        out.clear();
        speedscope::write(&profile, &as_named, &mut out).unwrap();
        check("speedscope", &read(Format::Speedscope, &out).unwrap().profile);
        out.clear();
        perf_script::write(&profile, &mut out).unwrap();
        check("perf script", &read(Format::PerfScript, &out).unwrap().profile);
        for version in [FormatVersion::V49, FormatVersion::V66] {
            out.clear();
            firefox::write(&profile, WriteOptions { version, gzip: false }, &mut out).unwrap();
            assert_eq!(firefox::check_bytes(&out).unwrap(), [], "seed {seed}");
            check("Firefox", &firefox::read(out.as_slice()).unwrap());
        }
    }
}

#[test]
fn samples_stand_at_the_end_of_their_time() {
    let chrome = r#"{"traceEvents":[{"ph":"X","name":"A","pid":1,"tid":1,"ts":1000,"dur":100},
        {"ph":"X","name":"B","pid":1,"tid":1,"ts":1100,"dur":800},{"ph":"X","name":"C","pid":1,"tid":1,"ts":1900,"dur":100}]}"#;
    let node = |id, name| format!(r#"{{"id":{id},"callFrame":{{"functionName":"{name}"}}}}"#);
    let v8 = format!(
        r#"{{"nodes":[{},{},{}],"startTime":1000,"endTime":2000,"samples":[1,2,3],"timeDeltas":[0,100,800]}}"#,
        node(1, "A"),
        node(2, "B"),
        node(3, "C")
    );
    let speedscope = |profile: &str| {
        format!(
            r#"{{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{{"frames":[{{"name":"A"}},{{"name":"B"}},{{"name":"C"}}]}},"profiles":[{profile}]}}"#
        )
    };
    let sampled = speedscope(
        r#"{"type":"sampled","unit":"microseconds","startValue":50,"samples":[[0],[1],[2]],"weights":[100,800,100]}"#,
    );
    let evented = speedscope(
        r#"{"type":"evented","unit":"microseconds","startValue":50,"endValue":1050,"events":[
        {"type":"O","at":50,"frame":0},{"type":"C","at":150,"frame":0},{"type":"O","at":150,"frame":1},
        {"type":"C","at":950,"frame":1},{"type":"O","at":950,"frame":2},{"type":"C","at":1050,"frame":2}]}"#,
    );
    for (format, text) in [
        (Format::ChromeTrace, chrome),
        (Format::V8CpuProfile, &v8),
        (Format::Speedscope, &sampled),
        (Format::Speedscope, &evented),
    ] {
        let profile = read(format, text.as_bytes()).unwrap().profile;
        let samples = &profile.thread(ThreadIndex::from_index(0)).samples;
        let times: Vec<_> = samples.iter().map(|it| (it.time / 1000, it.weight)).collect();
        assert_eq!(times, [(100, 1), (900, 8), (1000, 1)], "{format:?}");
        assert_eq!((profile.meta().interval, profile.meta().profiling_end), (100_000, Some(1_000_001)));
    }
}
