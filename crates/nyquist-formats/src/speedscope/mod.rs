//! speedscope's file format: one profile for each thread, of samples or of frames that open and close.
//!
//! Its schema is <https://www.speedscope.app/file-format-schema.json>.

mod events;
mod functions;

use std::cmp::Reverse;
use std::io::{self, Write};

use nyquist_profile::{FrameId, Measure, Profile, Sample, StackId, ThreadIndex, Unit};
use serde::Deserialize;

use crate::SourcePaths;
use crate::error::{ImportedProfile, ReadError};
use crate::import::{CodePosition, Importer, MILLISECOND, ThreadName};
use crate::json::{nanoseconds, position, separate, write_json};
use crate::spans::Spans;
use events::write_events;
use functions::{Functions, NO_STACK};

const FORMAT: &str = "a speedscope profile";
/// The unit of memory profiles.
const BYTES: &str = "bytes";
/// The unit of counts.
const NONE: &str = "none";
const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

/// Writes a profile for each thread, with its CPU time in ns, the busiest thread first. A thread that waited gets
/// a second profile for its waiting. If times are exact, a profile has frames that open and close, which may
/// have gaps. Otherwise it has samples that follow each other; a gap is a sample without frames. Each function
/// is one frame. O(samples × depth).
///
/// # Errors
/// If `out` cannot be written.
pub fn write(profile: &Profile, paths: SourcePaths<'_>, out: &mut impl Write) -> io::Result<()> {
    let functions = Functions::new(profile, paths);
    out.write_all(b"{\"$schema\":")?;
    write_json(out, &SCHEMA)?;
    out.write_all(b",\"exporter\":")?;
    write_json(out, &concat!("nyquist ", env!("CARGO_PKG_VERSION")))?;
    out.write_all(b",\"name\":")?;
    write_json(out, &profile.meta().product)?;
    // The format only has the unit.
    out.write_all(b",\"measure\":")?;
    write_json(out, &profile.meta().measure.name)?;
    out.write_all(b",\"activeProfileIndex\":0,\"shared\":{\"frames\":[")?;
    for (index, function) in functions.rows.iter().enumerate() {
        separate(out, index)?;
        write_json(out, function)?;
    }
    out.write_all(b"]},\"profiles\":[")?;
    for (index, (thread, off_cpu)) in by_time(profile).into_iter().enumerate() {
        separate(out, index)?;
        ThreadWriter { profile, functions: &functions, thread, off_cpu }.write(out)?;
    }
    out.write_all(b"]}\n")
}

/// The profiles of the file: running before waiting, the one with the most time first.
fn by_time(profile: &Profile) -> Vec<(ThreadIndex, bool)> {
    let threads = (0..profile.threads().len()).map(ThreadIndex::from_index);
    let amount = |thread, off_cpu| {
        let weights = selected(profile, thread, off_cpu).map(|sample| sample.weight);
        weights.fold(0, u64::saturating_add)
    };
    let kinds = threads.flat_map(|thread| [(thread, false), (thread, true)]);
    let mut kinds: Vec<_> =
        kinds.map(|(thread, off_cpu)| (thread, off_cpu, amount(thread, off_cpu))).collect();
    kinds.retain(|(_, _, amount)| *amount > 0);
    kinds.sort_by_key(|(_, off_cpu, amount)| (*off_cpu, Reverse(*amount)));
    kinds.into_iter().map(|(thread, off_cpu, _)| (thread, off_cpu)).collect()
}

fn selected(profile: &Profile, thread: ThreadIndex, off_cpu: bool) -> impl Iterator<Item = Sample> {
    let samples = profile.thread(thread).samples.iter();
    samples.filter(move |sample| sample.weight > 0 && sample.off_cpu == off_cpu)
}

/// Writes the profile of a thread.
struct ThreadWriter<'a> {
    profile: &'a Profile,
    functions: &'a Functions<'a>,
    thread: ThreadIndex,
    off_cpu: bool,
}

impl ThreadWriter<'_> {
    fn samples(&self) -> impl Iterator<Item = Sample> {
        selected(self.profile, self.thread, self.off_cpu)
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let meta = self.profile.meta();
        // Frames that open and close cannot express a sample without a stack.
        let is_evented = meta.has_exact_times && self.samples().all(|it| it.stack.is_some());
        let start = self.samples().next().map_or(0, |sample| sample.start(meta.interval));
        let end = if is_evented {
            self.samples().last().map_or(start, |last| last.time.max(start))
        } else {
            self.pieces().map(|(_, length)| length).fold(start, u64::saturating_add)
        };
        let kind = if is_evented { "evented" } else { "sampled" };
        write!(out, "{{\"type\":\"{kind}\",\"name\":")?;
        write_json(out, &profile_name(self.profile, self.thread, self.off_cpu))?;
        let unit = match meta.measure.unit {
            Unit::Time => "nanoseconds",
            Unit::Bytes => BYTES,
            Unit::Count => NONE,
        };
        write!(out, ",\"unit\":\"{unit}\",\"startValue\":{start},\"endValue\":{end}")?;
        if is_evented {
            out.write_all(b",\"events\":[")?;
            write_events(out, self.samples(), meta.interval, |sample| self.frames_of(sample.stack))?;
            return out.write_all(b"]}");
        }
        out.write_all(b",\"samples\":[")?;
        for (index, (sample, _)) in self.pieces().enumerate() {
            separate(out, index)?;
            write_json(out, &sample.map_or_else(Vec::new, |sample| self.frames_of(sample.stack)))?;
        }
        out.write_all(b"],\"weights\":[")?;
        for (index, (_, length)) in self.pieces().enumerate() {
            separate(out, index)?;
            write!(out, "{length}")?;
        }
        out.write_all(b"]}")
    }

    /// The samples with their lengths, and the gaps between them. What is no time has no gaps.
    fn pieces(&self) -> impl Iterator<Item = (Option<Sample>, u64)> {
        let meta = self.profile.meta();
        let (interval, is_time) = (meta.interval, meta.measure.unit == Unit::Time);
        let mut clock = None;
        self.samples().flat_map(move |sample| {
            let length = sample.weight.saturating_mul(interval);
            let begin = *clock.get_or_insert_with(|| sample.start(interval));
            // A shorter one is noise of the sampler.
            let gap = sample.start(interval).saturating_sub(begin);
            let gap = Some(gap).filter(|&gap| is_time && gap > interval / 2);
            clock = Some(begin.saturating_add(gap.unwrap_or(0)).saturating_add(length));
            gap.map(|gap| (None, gap)).into_iter().chain([(Some(sample), length)])
        })
    }

    /// The rows of the frames' functions, from the outermost to the innermost.
    fn frames_of(&self, stack: Option<StackId>) -> Vec<usize> {
        let Some(stack) = stack else { return vec![self.functions.no_stack] };
        let frames = self.profile.ancestors(stack).map(|stack| self.profile.stack(stack).frame);
        let mut rows: Vec<_> = frames.map(|frame| self.functions.row(self.profile, frame)).collect();
        rows.reverse();
        rows
    }
}

/// `app (pid: 77) worker (tid: 79)`.
fn profile_name(profile: &Profile, thread: ThreadIndex, off_cpu: bool) -> String {
    let thread = profile.thread(thread);
    let process = profile.process(thread.process);
    let waiting = if off_cpu { ", waiting" } else { "" };
    format!("{} (pid: {}) {} (tid: {}){waiting}", process.name, process.pid, thread.name, thread.tid)
}

#[derive(Deserialize)]
struct SpeedscopeFile {
    name: Option<String>,
    /// The measure, which only our own files have.
    measure: Option<String>,
    /// The program that made the file.
    #[serde(default)]
    exporter: Option<String>,
    shared: SpeedscopeShared,
    profiles: Vec<SpeedscopeProfile>,
}

#[derive(Deserialize)]
struct SpeedscopeShared {
    frames: Vec<SpeedscopeFrame>,
}

#[derive(Deserialize)]
struct SpeedscopeFrame {
    name: String,
    file: Option<String>,
    line: Option<f64>,
    col: Option<f64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SpeedscopeProfile {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    unit: String,
    #[serde(default)]
    start_value: f64,
    #[serde(default)]
    end_value: f64,
    #[serde(default)]
    samples: Vec<Vec<usize>>,
    #[serde(default)]
    weights: Vec<f64>,
    #[serde(default)]
    events: Vec<SpeedscopeEvent>,
}

#[derive(Deserialize)]
struct SpeedscopeEvent {
    #[serde(rename = "type")]
    kind: String,
    at: f64,
    frame: usize,
}

/// Reads a speedscope profile, sampled or evented. Each of its profiles becomes a thread. If its name has the
/// format of this module, it states the process and the ids. Otherwise all threads are in one process. A file
/// whose profiles are all in bytes counts bytes. A file in units of `none` counts samples, or the measure
/// that our own files state. If a file also has profiles of time, the others are left out.
///
/// # Errors
/// It is no such JSON, or refers to frames that do not exist.
pub fn read(bytes: &[u8]) -> Result<ImportedProfile, ReadError> {
    let file: SpeedscopeFile =
        serde_json::from_slice(bytes).map_err(|error| ReadError::Json { format: FORMAT, error })?;
    let name = file.name.as_deref().filter(|name| !name.is_empty()).unwrap_or("speedscope profile");
    let mut importer = Importer::new(name, "speedscope");
    let frames: Vec<FrameId> =
        file.shared.frames.iter().map(|frame| read_frame(&mut importer, frame)).collect();
    let no_stack = file.shared.frames.iter().position(|frame| frame.name == NO_STACK);
    let no_stack = no_stack.unwrap_or(usize::MAX);
    let unit = common_unit(&file.profiles);
    let name_of_measure = match unit {
        Unit::Time if is_wall_time(file.exporter.as_deref()) => "wall time".into(),
        Unit::Time => Measure::default().name,
        Unit::Bytes => BYTES.into(),
        Unit::Count => "samples".into(),
    };
    importer.meta_mut().measure = Measure { name: file.measure.unwrap_or(name_of_measure), unit };
    let mut others = 0;
    for (index, profile) in file.profiles.iter().enumerate() {
        let (its, factor) = unit_of(&profile.unit);
        if its != unit {
            others += 1;
            continue;
        }
        let (thread, off_cpu) = read_thread_name(&mut importer, &profile.name, name, index);
        let reader = SpeedscopeReader {
            importer: &mut importer,
            frames: &frames,
            unit: factor,
            thread,
            off_cpu,
            no_stack,
        };
        match profile.kind.as_str() {
            "sampled" => reader.sampled(profile)?,
            "evented" => reader.evented(profile)?,
            kind => return Err(malformed(format!("its profile {index} is of an unknown type ({kind})"))),
        }
    }
    importer.note_left_out(others, "profiles that count bytes or things");
    Ok(importer.finish(None))
}

/// Whether a program measures by the wall clock. The format does not say which time it has.
fn is_wall_time(exporter: Option<&str>) -> bool {
    exporter.is_some_and(|exporter| exporter.starts_with("pyinstrument"))
}

fn malformed(problem: String) -> ReadError {
    ReadError::Malformed { format: FORMAT, problem }
}

fn read_frame(importer: &mut Importer, frame: &SpeedscopeFrame) -> FrameId {
    importer.frame(&CodePosition {
        name: &frame.name,
        file: frame.file.as_deref(),
        line: position(frame.line),
        column: position(frame.col),
        ..CodePosition::default()
    })
}

/// The measure of a file: time if one of its profiles has it, otherwise that of the first profile. Profiles
/// with other measures are left out.
fn common_unit(profiles: &[SpeedscopeProfile]) -> Unit {
    let units = || profiles.iter().map(|profile| unit_of(&profile.unit).0);
    units().find(|unit| *unit == Unit::Time).or_else(|| units().next()).unwrap_or_default()
}

/// The kind of a unit, and the number of ns, bytes or things in it.
fn unit_of(unit: &str) -> (Unit, f64) {
    match unit {
        "nanoseconds" => (Unit::Time, 1.0),
        "microseconds" => (Unit::Time, 1e3),
        "milliseconds" => (Unit::Time, MILLISECOND as f64),
        "seconds" => (Unit::Time, 1e9),
        BYTES => (Unit::Bytes, 1.0),
        _ => (Unit::Count, 1.0),
    }
}

/// The thread of a profile, and whether its samples are waiting.
fn read_thread_name(importer: &mut Importer, name: &str, file: &str, index: usize) -> (ThreadIndex, bool) {
    let (shown, off_cpu) = name.strip_suffix(", waiting").map_or((name, false), |name| (name, true));
    if let Some((process, pid, thread, tid)) = split_profile_name(shown) {
        return (importer.thread(ThreadName { pid, process, tid, thread }), off_cpu);
    }
    let tid = index.to_string();
    (importer.thread(ThreadName { pid: "0", process: file, tid: &tid, thread: name }), false)
}

fn split_profile_name(name: &str) -> Option<(&str, &str, &str, &str)> {
    let (process, rest) = name.split_once(" (pid: ")?;
    let (pid, rest) = rest.split_once(") ")?;
    let (thread, tid) = rest.rsplit_once(" (tid: ")?;
    Some((process, pid, thread, tid.strip_suffix(')')?))
}

/// Reads one profile.
struct SpeedscopeReader<'a> {
    importer: &'a mut Importer,
    frames: &'a [FrameId],
    /// The size of the profile's unit, in ns.
    unit: f64,
    thread: ThreadIndex,
    off_cpu: bool,
    /// The frame of samples without a stack.
    no_stack: usize,
}

impl SpeedscopeReader<'_> {
    fn frame(&self, index: usize) -> Result<FrameId, ReadError> {
        let frame = self.frames.get(index).copied();
        frame.ok_or_else(|| malformed(format!("there is no frame {index}, but a stack has it")))
    }

    fn sampled(self, profile: &SpeedscopeProfile) -> Result<(), ReadError> {
        if !profile.weights.is_empty() && profile.weights.len() != profile.samples.len() {
            return Err(malformed("it has another number of weights than of samples".into()));
        }
        let mut time = nanoseconds(profile.start_value, self.unit);
        let weights = profile.weights.iter().copied().chain(std::iter::repeat(1.0));
        for (frames, weight) in profile.samples.iter().zip(weights) {
            let mut stack = None;
            for &index in frames {
                let frame = self.frame(index)?;
                stack = Some(self.importer.stack(stack, frame));
            }
            let duration = nanoseconds(weight, self.unit);
            // A sample without frames is a gap.
            if !frames.is_empty() {
                let stack = stack.filter(|_| frames[..] != [self.no_stack]);
                self.importer.span(self.thread, time, (stack, self.off_cpu), duration);
            }
            time = time.saturating_add(duration);
        }
        Ok(())
    }

    fn evented(self, profile: &SpeedscopeProfile) -> Result<(), ReadError> {
        let mut spans = Spans::new(self.thread);
        for event in &profile.events {
            let frame = self.frame(event.frame)?;
            let time = nanoseconds(event.at, self.unit);
            match event.kind.as_str() {
                "O" => spans.open(self.importer, time, frame, self.off_cpu),
                "C" => spans.close(self.importer, time),
                kind => return Err(malformed(format!("it has an event of an unknown type ({kind})"))),
            }
        }
        spans.end(self.importer, nanoseconds(profile.end_value, self.unit));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_profile::{profile, stacks_of, waits_of};

    #[test]
    fn what_is_written_is_read_again() {
        let mut out = Vec::new();
        write(&profile(), &crate::as_named, &mut out).unwrap();
        let read = read(&out).unwrap();
        assert_eq!(stacks_of(&read.profile), stacks_of(&profile()));
        assert_eq!(waits_of(&read.profile), waits_of(&profile()));
        assert_eq!(read.profile.meta().interval, profile().meta().interval);
        let threads: Vec<_> = read.profile.threads().iter().map(|thread| thread.name.as_str()).collect();
        assert_eq!(threads, ["app", "pool 1"]);
        assert_eq!(read.profile.processes()[0].pid, "77");
    }

    /// pyinstrument's own output has wall time in its first line (`Duration`).
    #[test]
    fn wall_time_is_not_called_cpu_time() {
        let text = r#"{"shared":{"frames":[{"name":"a"}]},"profiles":[{"type":"sampled","unit":"seconds","samples":[[0]],
            "weights":[0.5]}],"exporter":"EXPORTER"}"#;
        let measure = |exporter: &str| {
            read(text.replace("EXPORTER", exporter).as_bytes()).unwrap().profile.meta().measure.clone()
        };
        assert_eq!(&*measure("pyinstrument").name, "wall time");
        assert!(measure("py-spy@0.4.0").is_cpu_time());
    }

    #[test]
    fn weights_beyond_64_bits_are_the_maximum() {
        let meta = nyquist_profile::Meta { interval: u64::MAX / 2, ..nyquist_profile::Meta::default() };
        let mut builder = nyquist_profile::ProfileBuilder::new(meta);
        let process = builder.add_process(nyquist_profile::Process::default());
        let thread = builder.add_thread(nyquist_profile::Thread::new(process, "1", "main"));
        let stack = builder.intern_label(None, "a", None);
        for weight in [3, 1] {
            builder.add_sample(thread, Sample { weight, ..Sample::new(7, Some(stack), 0) });
        }
        let mut out = Vec::new();
        write(&builder.finish(), &crate::as_named, &mut out).unwrap();
        assert!(String::from_utf8(out).unwrap().contains(&format!("\"endValue\":{}", u64::MAX)));
    }

    /// Runs a test on the written form of samples of a thread: (time, weight, name and line of the function).
    fn written(samples: &[(&str, u64, u32, Option<&str>, u32)]) -> serde_json::Value {
        let mut builder = nyquist_profile::ProfileBuilder::new(nyquist_profile::Meta {
            interval: MILLISECOND,
            ..nyquist_profile::Meta::default()
        });
        let process = builder.add_process(nyquist_profile::Process::default());
        let mut threads: Vec<(&str, ThreadIndex)> = Vec::new();
        for &(name, time, weight, function, line) in samples {
            let thread = threads.iter().find(|(known, _)| *known == name).map(|(_, thread)| *thread);
            let thread = thread.unwrap_or_else(|| {
                let thread = builder.add_thread(nyquist_profile::Thread::new(process, name, name));
                threads.push((name, thread));
                thread
            });
            let stack = function.map(|function| {
                let name = builder.intern_string(function);
                let func = builder.intern_func(nyquist_profile::Func::new(name, None));
                let frame =
                    nyquist_profile::Frame { line: Some(line), ..nyquist_profile::Frame::label(func) };
                let frame = builder.intern_frame(frame);
                builder.intern_stack(None, frame)
            });
            let sample = Sample::new(time * MILLISECOND, stack, 0);
            builder.add_sample(thread, Sample { weight: weight.into(), ..sample });
        }
        let mut out = Vec::new();
        write(&builder.finish(), &crate::as_named, &mut out).unwrap();
        serde_json::from_slice(&out).unwrap()
    }

    #[test]
    fn functions_are_frames_and_the_busiest_is_first() {
        let file = written(&[
            ("idle", 1, 1, Some("a"), 3),
            ("busy", 1, 1, Some("a"), 4),
            ("busy", 3, 2, Some("a"), 5),
        ]);
        assert_eq!(file["shared"]["frames"].as_array().unwrap().len(), 2, "{file}");
        let names = file["profiles"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap());
        let names: Vec<_> = names.map(|name| name.split(' ').nth(3).unwrap()).collect();
        assert_eq!(names, ["busy", "idle"]);
    }

    #[test]
    fn gaps_stay_and_are_no_time() {
        let file = written(&[("t", 1, 1, Some("a"), 1), ("t", 6, 2, Some("b"), 1), ("t", 7, 1, None, 0)]);
        let profile = &file["profiles"][0];
        assert_eq!(profile["samples"], serde_json::json!([[0], [], [1], [2]]), "{file}");
        let ms = |it: &serde_json::Value| it.as_u64().unwrap() / MILLISECOND;
        let weights: Vec<_> = profile["weights"].as_array().unwrap().iter().map(ms).collect();
        assert_eq!((weights, ms(&profile["endValue"])), (vec![1, 3, 2, 1], 7));
        let read = read(file.to_string().as_bytes()).unwrap().profile;
        let samples: Vec<_> = read.threads()[0].samples.iter().collect();
        let found: Vec<_> = samples.iter().map(|it| (it.time / MILLISECOND, it.stack.is_some())).collect();
        assert_eq!(found, [(1, true), (6, true), (7, false)]);
    }

    fn file(profile: &str) -> String {
        format!(r#"{{"shared":{{"frames":[{{"name":"a"}},{{"name":"b"}}]}},"profiles":[{profile}]}}"#)
    }

    #[test]
    fn opened_and_closed_frames_have_their_own_time() {
        let text = file(
            r#"{"type":"evented","name":"t","unit":"milliseconds","startValue":5,"endValue":15,"events":[
            {"type":"O","at":5,"frame":0},{"type":"O","at":7,"frame":1},{"type":"C","at":10,"frame":1},
            {"type":"C","at":11,"frame":0},{"type":"O","at":13,"frame":1}]}"#,
        );
        let profile = read(text.as_bytes()).unwrap().profile;
        assert_eq!(stacks_of(&profile), ["a 3", "a;b 3", "b 2"]);
        assert_eq!(profile.meta().interval, MILLISECOND);
    }

    #[test]
    fn a_profile_in_bytes_counts_bytes() {
        let memory =
            r#"{"type":"sampled","name":"m","unit":"bytes","samples":[[0],[0,1]],"weights":[4096,512]}"#;
        let profile = read(file(memory).as_bytes()).unwrap().profile;
        assert_eq!(stacks_of(&profile), ["a 8", "a;b 1"]);
        let measure = Measure { name: "bytes".into(), unit: Unit::Bytes };
        assert_eq!((&profile.meta().measure, profile.meta().interval), (&measure, 512));
        let mut out = Vec::new();
        write(&profile, &crate::as_named, &mut out).unwrap();
        assert_eq!(stacks_of(&read(&out).unwrap().profile), ["a 8", "a;b 1"]);
        // If there is also time, they are left out.
        let time = r#"{"type":"sampled","name":"t","unit":"milliseconds","samples":[[1]],"weights":[3]}"#;
        let both = read(file(&format!("{memory},{time}")).as_bytes()).unwrap();
        assert_eq!((stacks_of(&both.profile), both.notes.len()), (vec!["b 1".into()], 1));
    }

    #[test]
    fn what_is_counted_is_no_time() {
        let text =
            file(r#"{"type":"sampled","name":"m","unit":"none","samples":[[0],[0,1]],"weights":[4,2]}"#);
        let profile = read(text.as_bytes()).unwrap().profile;
        assert_eq!((stacks_of(&profile), profile.meta().interval), (vec!["a 2".into(), "a;b 1".into()], 2));
        assert_eq!(profile.meta().measure, Measure { name: "samples".into(), unit: Unit::Count });
        let counted = crate::test_profile::counted();
        let mut out = Vec::new();
        write(&counted, &crate::as_named, &mut out).unwrap();
        let profile = read(&out).unwrap().profile;
        assert_eq!(
            (&profile.meta().measure, stacks_of(&profile)),
            (&counted.meta().measure, stacks_of(&counted))
        );
    }

    #[test]
    fn contradictions_are_refused() {
        let check = |text: &str, expected: &str| {
            let error = read(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        check("{", "is not a speedscope profile");
        check(&file(r#"{"type":"sampled","unit":"none","samples":[[2]]}"#), "no frame 2");
        check(&file(r#"{"type":"sampled","unit":"none","samples":[[1]],"weights":[1,2]}"#), "weights");
        check(&file(r#"{"type":"other","unit":"none"}"#), "unknown type");
    }
}
