//! Austin's binary form (MOJO), which is what Austin 4 writes, and Austin 3 with `-b`.

use nyquist_profile::{FrameId, StackId, StringId};
use rustc_hash::FxHashMap;

use super::events::{Event, MojoEvents, VERSIONS, version};
use super::samples::{AustinMode, AustinSamples, SampleValue, requested};
use crate::error::{ImportedProfile, ReadError};
use crate::import::CodePosition;

/// The most threads whose last stacks are kept for repetitions.
const MAX_BASES: usize = 1 << 17;

const FORMAT: &str = "a binary file of Austin";

/// The key of a text that no event defines, because Austin could not read the name.
const UNKNOWN: u64 = 1;

/// Whether a file begins like a MOJO file.
pub(crate) fn is_mojo(start: &[u8]) -> bool {
    version(start).is_some()
}

/// Reads the samples, in the same way as [`read_value`](super::read_value) does for the text. Columns are
/// read if the file has them.
///
/// # Errors
/// As there, and if the file has an unknown version.
pub fn read_value(bytes: &[u8], name: Option<&str>) -> Result<ImportedProfile, ReadError> {
    let version = version(bytes).ok_or_else(|| ReadError::Malformed {
        format: FORMAT,
        problem: "it does not begin with MOJ and a version".into(),
    })?;
    if !VERSIONS.contains(&version) {
        let (first, last) = (VERSIONS.start(), VERSIONS.end());
        let text = format!("it is {FORMAT} of version {version}, and versions {first} to {last} are known");
        return Err(ReadError::Unsupported(text));
    }
    let mut events = MojoEvents::new(bytes, version);
    let (requested, measure) = requested(mode(MojoEvents::new(bytes, version)), name)?;
    let mut reader = MojoReader {
        samples: AustinSamples::new(measure),
        requested,
        texts: FxHashMap::default(),
        frames: FxHashMap::default(),
        bases: FxHashMap::default(),
        current: None,
        task_frames: 0,
        without_value: 0,
        tasks: 0,
    };
    while let Some(event) = events.next() {
        if reader.take(event).is_none() {
            events.break_off();
        }
    }
    reader.finish(events.broken_at())
}

/// The file's mode: the stated one, or else the one that fits the samples.
fn mode<'a>(events: impl Iterator<Item = Event<'a>>) -> AustinMode {
    let (mut has_time, mut has_memory) = (false, false);
    for event in events {
        match event {
            Event::Metadata { key: b"mode", value } => {
                return AustinMode::of(&String::from_utf8_lossy(value));
            }
            Event::Time(_) => has_time = true,
            Event::Memory(_) => has_memory = true,
            _ => {}
        }
    }
    match (has_time, has_memory) {
        (true, true) => AustinMode::Full,
        (false, true) => AustinMode::Memory,
        _ => AustinMode::Wall,
    }
}

/// A text that the file has defined.
#[derive(Clone, Copy)]
struct StringDefinition {
    /// `None` for an empty text.
    id: Option<StringId>,
    is_kernel: bool,
    /// Whether it is a file name of Python: with its extension, or in angle brackets.
    is_python: bool,
}

/// A frame that the file has defined.
#[derive(Clone, Copy)]
struct DefinedFrame {
    frame: FrameId,
    /// Whether it is a frame of the program's own machine code. A repeated stack loses such frames.
    is_native: bool,
}

/// The sample that is being read.
struct CurrentSample {
    pid: u64,
    tid: String,
    /// Its own frames, outermost first.
    frames: Vec<DefinedFrame>,
    /// Whether the frames of the thread's previous sample are outside of these.
    is_repeat: bool,
    is_collecting: bool,
    is_idle: bool,
    time: Option<i64>,
    memory: Option<i64>,
}

impl CurrentSample {
    /// The amount of the sample. Whether a thread is idle is stated between the time and the memory.
    fn amount(&self, requested: SampleValue) -> Option<i64> {
        match requested {
            SampleValue::Cpu => self.memory.and(self.time),
            SampleValue::Time => self.time,
            SampleValue::Memory => self.memory,
        }
    }
}

struct MojoReader {
    samples: AustinSamples,
    requested: SampleValue,
    /// By process and key.
    texts: FxHashMap<(u64, u64), StringDefinition>,
    frames: FxHashMap<(u64, u64), DefinedFrame>,
    /// The start of a repeated stack of each thread: its last stack up to the innermost frame of Python.
    bases: FxHashMap<(u64, String), Option<StackId>>,
    current: Option<CurrentSample>,
    /// How many of the next frames belong to a task.
    task_frames: u64,
    without_value: u64,
    tasks: u64,
}

impl MojoReader {
    /// Handles an event. `None` if it is invalid at its place.
    fn take(&mut self, event: Event<'_>) -> Option<()> {
        match event {
            Event::Metadata { .. } | Event::Ignored => {}
            Event::Stack { pid, tid } => self.begin_sample(pid, tid),
            Event::Frame { key, file, name, line, column } => {
                let pid = self.current.as_ref()?.pid;
                let [file, name] = [self.text(pid, file)?, self.text(pid, name)?];
                let defined = self.define(file, name, (line, column));
                self.frames.insert((pid, key), defined);
            }
            Event::FrameRef(key) => {
                let frame = *self.frames.get(&(self.current.as_ref()?.pid, key))?;
                if self.task_frames > 0 {
                    self.task_frames -= 1;
                } else {
                    self.current.as_mut()?.frames.push(frame);
                }
            }
            Event::InvalidFrame => self.push(&CodePosition { name: "INVALID", ..CodePosition::default() })?,
            Event::KernelFrame(name) => {
                let name = &*String::from_utf8_lossy(name);
                self.push(&CodePosition {
                    name,
                    file: Some("kernel"),
                    is_kernel: true,
                    ..CodePosition::default()
                })?;
            }
            Event::Collecting => self.current.as_mut()?.is_collecting = true,
            Event::Idle => self.current.as_mut()?.is_idle = true,
            Event::Time(value) => self.current.as_mut()?.time = Some(value),
            Event::Memory(value) => self.current.as_mut()?.memory = Some(value),
            Event::Text { key, text } => {
                let pid = self.current.as_ref()?.pid;
                let text = self.intern(&String::from_utf8_lossy(text));
                self.texts.insert((pid, key), text);
            }
            Event::Repeat => self.current.as_mut()?.is_repeat = true,
            Event::TaskStack { frames } => {
                self.current.as_ref()?;
                self.task_frames = frames;
                self.tasks += 1;
            }
        }
        Some(())
    }

    fn begin_sample(&mut self, pid: u64, tid: &[u8]) {
        self.end_sample();
        self.task_frames = 0;
        let tid = String::from_utf8_lossy(tid);
        // The text has thread ids in decimal digits, like the system's tools.
        let tid = u64::from_str_radix(&tid, 16).map_or(tid.into_owned(), |number| number.to_string());
        self.current = Some(CurrentSample {
            pid,
            tid,
            frames: Vec::new(),
            is_repeat: false,
            is_collecting: false,
            is_idle: false,
            time: None,
            memory: None,
        });
    }

    fn end_sample(&mut self) {
        let Some(current) = self.current.take() else { return };
        let amount = current.amount(self.requested);
        let key = (current.pid, current.tid);
        let before = current.is_repeat.then(|| self.bases.get(&key).copied().flatten()).flatten();
        let (mut stack, mut base) = (before, before);
        for DefinedFrame { frame, is_native } in current.frames {
            stack = Some(self.samples.importer.stack(stack, frame));
            base = if is_native { base } else { stack };
        }
        let (pid, tid) = &key;
        match amount {
            Some(amount) => {
                if current.is_collecting {
                    let frame =
                        self.samples.importer.frame(&CodePosition { name: "GC", ..CodePosition::default() });
                    stack = Some(self.samples.importer.stack(stack, frame));
                }
                let is_waiting = current.is_idle && self.requested == SampleValue::Cpu;
                self.samples.add((&pid.to_string(), tid), (stack, is_waiting), amount);
            }
            None => self.without_value += 1,
        }
        if self.bases.len() < MAX_BASES || self.bases.contains_key(&key) {
            self.bases.insert(key, base);
        }
    }

    /// Adds a frame that only the sample has.
    fn push(&mut self, code: &CodePosition<'_>) -> Option<()> {
        let frame = self.samples.importer.frame(code);
        self.current.as_mut()?.frames.push(DefinedFrame { frame, is_native: true });
        Some(())
    }

    fn intern(&mut self, text: &str) -> StringDefinition {
        StringDefinition {
            id: (!text.is_empty()).then(|| self.samples.importer.builder().intern_string(text)),
            is_kernel: text == "kernel",
            is_python: text.strip_suffix(".py").is_some() || text.starts_with('<') && text.ends_with('>'),
        }
    }

    fn text(&mut self, pid: u64, key: u64) -> Option<StringDefinition> {
        match key {
            UNKNOWN => Some(self.intern("<unknown>")),
            _ => self.texts.get(&(pid, key)).copied(),
        }
    }

    fn define(
        &mut self,
        file: StringDefinition,
        name: StringDefinition,
        (line, column): (u64, u64),
    ) -> DefinedFrame {
        let place = |number: u64| u32::try_from(number).ok();
        let code = CodePosition {
            line: place(line),
            column: place(column),
            is_kernel: file.is_kernel,
            ..CodePosition::default()
        };
        let frame = self.samples.importer.frame_of(name.id, file.id, &code);
        DefinedFrame { frame, is_native: !file.is_python }
    }

    /// The profile of a file that is complete, or is damaged at this byte.
    fn finish(mut self, broken_at: Option<usize>) -> Result<ImportedProfile, ReadError> {
        let is_whole = self.current.as_ref().is_none_or(|current| current.amount(self.requested).is_some());
        if !is_whole {
            self.current = None;
        }
        self.end_sample();
        let cut = match broken_at {
            Some(at) => Some(format!("byte {at}")),
            None => (!is_whole).then(|| "its last sample".to_owned()),
        };
        let others =
            [(self.without_value, "samples without a value"), (self.tasks, "positions of tasks (asyncio)")];
        self.samples.finish(FORMAT, cut, &others)
    }
}

#[cfg(test)]
mod tests {
    use nyquist_profile::Unit;

    use super::*;
    use crate::error::Note;
    use crate::test_profile::{assert_same_stacks, stacks_of, waits_of};

    /// A file of version 3 with this mode: two processes with a frame of the same key, whose names differ.
    fn file(mode: &str, rest: &[&[u8]]) -> Vec<u8> {
        let head = format!("MOJ\x03\x01austin\x004.0.0\0\x01mode\0{mode}\0");
        [head.as_bytes(), &rest.concat()].concat()
    }

    const STACK: &[u8] = b"\x02\x07\0a\0";
    /// The frames `work` and `main` of thread 10 of process 7.
    const FRAMES: &[u8] =
        b"\x0b\x02/a.py\0\x0b\x03main\0\x0b\x04work\0\x03\x01\x02\x03\x01\x01\x01\x05\x03\x02\x02\x04\x09\x09\x05\x08";
    const MAIN: &[u8] = b"\x05\x01";
    const WORK: &[u8] = b"\x05\x02";
    const COLLECTING: &[u8] = b"\x07";
    /// 2000 µs.
    const TIME: &[u8] = b"\x09\x90\x1f";
    /// 4096 bytes, and -64.
    const GROWTH: &[u8] = b"\x0a\x80\x40";
    const FREED: &[u8] = b"\x0a\xc0\x01";
    const IDLE: &[u8] = b"\x08";

    #[test]
    fn full_samples_say_what_the_text_says() {
        let bytes = file(
            "full",
            &[
                &[STACK, FRAMES, MAIN, WORK, TIME, GROWTH].concat(),
                &[STACK, MAIN, COLLECTING, TIME, FREED].concat(),
                &[b"\x02\x07\0b\0", MAIN, TIME, IDLE, b"\x0a\0"].concat(),
            ],
        );
        let text = b"# mode: full\nP7;T0:10;/a.py:main:1;/a.py:work:9 2000,0,4096\n\
            P7;T0:10;/a.py:main:1;:GC: 2000,0,-64\nP7;T0:11;/a.py:main:1 2000,1,0\n";
        for value in [None, Some("cpu"), Some("wall"), Some("memory")] {
            let read = read_value(&bytes, value).unwrap();
            let expected = super::super::read_value(text, value).unwrap();
            assert_same_stacks(&read.profile, &expected.profile);
            assert_eq!(
                (&read.profile.meta().measure, &read.notes),
                (&expected.profile.meta().measure, &expected.notes)
            );
            let threads = |profile: &nyquist_profile::Profile| -> Vec<_> {
                profile.threads().iter().map(|thread| thread.tid.clone()).collect()
            };
            assert_eq!(threads(&read.profile), threads(&expected.profile));
        }
        let profile = read_value(&bytes, None).unwrap().profile;
        assert_eq!(
            (stacks_of(&profile), waits_of(&profile)),
            (vec!["main;GC 1".into(), "main;work 1".into()], vec!["main 1".into()])
        );
        let work = profile.frames().iter().find(|frame| profile.func_name(frame.func) == "work").unwrap();
        assert_eq!((work.line, work.column), (Some(9), Some(5)));
    }

    #[test]
    fn the_mode_says_what_is_counted() {
        let of = |mode, value: &[u8]| {
            let profile = read_value(&file(mode, &[STACK, FRAMES, MAIN, value]), None).unwrap().profile;
            assert_eq!(stacks_of(&profile), ["main 1"]);
            profile.meta().measure.clone()
        };
        assert!(of("cpu", TIME).is_cpu_time());
        assert_eq!(&*of("wall", TIME).name, "wall time");
        assert_eq!(of("memory", GROWTH).unit, Unit::Bytes);
    }

    #[test]
    fn each_process_has_keys_of_its_own() {
        let other = b"\x02\x08\0c\0\x0b\x02<b>\0\x0b\x03other\0\x03\x01\x02\x03\x01\x01\x01\x05";
        let bytes = file("wall", &[STACK, FRAMES, MAIN, TIME, other, MAIN, TIME, STACK, MAIN, WORK, TIME]);
        let profile = read_value(&bytes, None).unwrap().profile;
        assert_eq!(stacks_of(&profile), ["main 1", "main;work 1", "other 1"]);
        let pids: Vec<_> = profile.processes().iter().map(|process| &*process.pid).collect();
        assert_eq!(pids, ["7", "8"]);
    }

    #[test]
    fn a_repeated_stack_has_the_frames_before() {
        // A frame of machine code at the end is not repeated.
        let native = b"\x0b\x05/lib/libc.so\0\x0b\x06read\0\x03\x03\x05\x06\x01\x01\0\0\x05\x03";
        let bytes = file(
            "wall",
            &[STACK, FRAMES, MAIN, native, TIME, STACK, WORK, b"\x0d\x0d", TIME, STACK, b"\x0d", TIME],
        );
        let profile = read_value(&bytes, None).unwrap().profile;
        assert_eq!(stacks_of(&profile), ["main;read 1", "main;work 2"]);
    }

    /// The lines are those of austin-python's reader.
    #[test]
    fn the_fourth_version_repeats_stacks() {
        let mut bytes =
            file("wall", &[STACK, FRAMES, MAIN, TIME, STACK, WORK, b"\x0d", TIME, STACK, b"\x0d", TIME]);
        bytes[3] = 4;
        let read = read_value(&bytes, None).unwrap();
        assert_eq!(
            (stacks_of(&read.profile), read.notes),
            (vec!["main 1".into(), "main;work 2".into()], vec![])
        );
    }

    #[test]
    fn frames_of_tasks_are_not_the_sample_s() {
        let tasks = b"\x0e\x63\x03\x01\x05\x02\x0f\x63\x64\x10\x63";
        let read = read_value(&file("wall", &[STACK, FRAMES, tasks, MAIN, TIME]), None).unwrap();
        assert_eq!(stacks_of(&read.profile), ["main 1"]);
        assert_eq!(read.notes, [Note::LeftOut { count: 1, what: "positions of tasks (asyncio)".into() }]);
    }

    #[test]
    fn a_file_that_is_cut_off_gives_what_is_before() {
        let whole = file("cpu", &[STACK, FRAMES, MAIN, TIME, STACK, MAIN, WORK, TIME]);
        let first = whole.len() - STACK.len() - MAIN.len() - WORK.len() - TIME.len();
        for end in first..whole.len() {
            let read = read_value(&whole[..end], None).unwrap();
            assert_eq!(stacks_of(&read.profile), ["main 1"]);
            assert_eq!(read.notes.len(), usize::from(end > first), "{end}");
        }
        for end in 0..first {
            assert!(read_value(&whole[..end], None).is_err(), "{end}");
        }
    }

    #[test]
    fn unknown_versions_and_keys_are_reported() {
        let error = |bytes: &[u8]| read_value(bytes, None).unwrap_err().to_string();
        assert_eq!(
            error(b"MOJ\x05\x02"),
            "it is a binary file of Austin of version 5, and versions 1 to 4 are known"
        );
        assert_eq!(
            error(&file("cpu", &[STACK, MAIN, TIME])),
            "the file is not a binary file of Austin: it is cut off or damaged at byte 33, before its first sample"
        );
        assert!(read_value(&file("cpu", &[STACK, FRAMES, MAIN, TIME]), Some("memory")).is_err());
    }
}
