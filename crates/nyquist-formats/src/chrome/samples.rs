//! Samples in a trace that refer to a table of frames (`samples` and `stackFrames` of the document), as
//! Hermes, React Native's JavaScript engine, writes them.

use nyquist_profile::{FuncKind, Measure, StackId, ThreadIndex, Unit};
use rustc_hash::FxHashMap;
use serde::Deserialize;
use serde_json::Value;

use super::unparsed_value::{ThreadId, UnparsedValue, microseconds};
use crate::import::{CodePosition, Importer, MILLISECOND};
use crate::json::id_text;

/// Hermes' name of the outermost frame. A sample whose only frame it is was taken outside of JavaScript.
const ROOT: &str = "[root]";

#[derive(Default)]
pub(super) struct TraceSamples {
    samples: Vec<TraceSample>,
    stack_frames: FxHashMap<String, TraceFrame>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TraceSample {
    /// In µs.
    ts: Value,
    pid: Value,
    tid: Value,
    /// The innermost frame.
    sf: Value,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TraceFrame {
    name: String,
    /// The frame that called it.
    parent: Value,
    line: Value,
    column: Value,
}

impl TraceSamples {
    /// Reads the samples. Anything but a list has no samples.
    pub(super) fn read_samples(&mut self, samples: UnparsedValue<'_>) {
        self.samples = serde_json::from_str(samples.json()).unwrap_or_default();
    }

    /// Reads the table of frames.
    pub(super) fn read_frames(&mut self, frames: UnparsedValue<'_>) {
        self.stack_frames = serde_json::from_str(frames.json()).unwrap_or_default();
    }

    /// Whether no sample has a frame that could be looked up.
    pub(super) fn is_empty(&self) -> bool {
        self.samples.is_empty() || self.stack_frames.is_empty()
    }

    /// Adds the samples, each for the time until the next one of its thread. Returns the number of samples
    /// whose frame is not known. Hermes samples by the wall clock.
    pub(super) fn add_to(
        self,
        importer: &mut Importer,
        mut thread: impl FnMut(&mut Importer, &ThreadId) -> ThreadIndex,
    ) -> u64 {
        if self.is_empty() {
            return 0;
        }
        importer.meta_mut().measure = Measure { name: "wall time".into(), unit: Unit::Time };
        let mut stacks = Stacks { frames: &self.stack_frames, known: FxHashMap::default() };
        let mut by_thread: FxHashMap<ThreadId, Vec<(u64, Option<StackId>)>> = FxHashMap::default();
        let mut unknown = 0;
        for sample in &self.samples {
            let frame = id_text(&sample.sf);
            if !stacks.has(&frame) {
                unknown += 1;
                continue;
            }
            let id = (id_text(&sample.pid), id_text(&sample.tid));
            let stack = stacks.stack(importer, frame).unwrap_or_else(|| root(importer));
            by_thread.entry(id).or_default().push((microseconds(&sample.ts), Some(stack)));
        }
        let mut threads: Vec<_> = by_thread.into_iter().collect();
        threads.sort_by(|(one, _), (next, _)| one.cmp(next));
        for (id, mut samples) in threads {
            let thread = thread(importer, &id);
            samples.sort_by_key(|&(time, _)| time);
            add_thread(importer, thread, &samples);
        }
        unknown
    }
}

/// The last sample lasts as long as the previous one.
fn add_thread(importer: &mut Importer, thread: ThreadIndex, samples: &[(u64, Option<StackId>)]) {
    let mut step = MILLISECOND;
    for (at, &(time, stack)) in samples.iter().enumerate() {
        step = samples.get(at + 1).map_or(step, |&(next, _)| next - time);
        importer.span(thread, time, (stack, false), step);
    }
}

/// The stacks of frames by their ids.
struct Stacks<'a> {
    frames: &'a FxHashMap<String, TraceFrame>,
    /// A cycle of frames is cut at the first frame whose caller is already in it.
    known: FxHashMap<String, Option<StackId>>,
}

impl Stacks<'_> {
    /// Whether the table has this frame.
    fn has(&self, id: &str) -> bool {
        self.frames.contains_key(id)
    }

    /// The stack of a frame. `None` for the root, which is no function.
    fn stack(&mut self, importer: &mut Importer, innermost: String) -> Option<StackId> {
        let (mut id, mut open) = (innermost, Vec::new());
        let mut stack = loop {
            if let Some(&known) = self.known.get(&id) {
                break known;
            }
            // Until its stack is known, it has none, so that a cycle of callers ends here.
            self.known.insert(id.clone(), None);
            let Some(frame) = self.frames.get(&id) else { break None };
            let parent = id_text(&frame.parent);
            open.push((id, frame));
            if parent.is_empty() {
                break None;
            }
            id = parent;
        };
        while let Some((id, frame)) = open.pop() {
            stack = push(importer, stack, frame).or(stack);
            self.known.insert(id, stack);
        }
        stack
    }
}

/// The stack of a sample in no function.
fn root(importer: &mut Importer) -> StackId {
    let frame = importer.frame(&CodePosition { name: ROOT, ..CodePosition::default() });
    importer.stack(None, frame)
}

/// `None` for the root, which is no function.
fn push(importer: &mut Importer, prefix: Option<StackId>, frame: &TraceFrame) -> Option<StackId> {
    if frame.name == ROOT {
        return None;
    }
    let (name, url) = split_name(&frame.name);
    let position = |value: &Value| {
        let number = value.as_f64().or_else(|| value.as_str().and_then(|text| text.parse().ok()));
        crate::json::position(number).filter(|_| url.is_some())
    };
    let kind = if url.is_some() { FuncKind::JavaScript } else { FuncKind::Native };
    let code = CodePosition {
        name,
        file: url,
        line: position(&frame.line),
        column: position(&frame.column),
        kind,
        ..CodePosition::default()
    };
    let frame = importer.frame(&code);
    Some(importer.stack(prefix, frame))
}

/// Splits `render(http://host/index.bundle:7:12)` into the function and its file.
fn split_name(text: &str) -> (&str, Option<&str>) {
    let parts = text.strip_suffix(')').and_then(|text| text.split_once('('));
    let Some((name, place)) = parts else { return (text, None) };
    let name = if name.is_empty() { "(anonymous)" } else { name };
    let mut parts = place.rsplitn(3, ':');
    let is_number = |part: Option<&str>| part.is_some_and(|part| part.parse::<u32>().is_ok());
    let has_place = is_number(parts.next()) && is_number(parts.next());
    match parts.next() {
        Some(url) if has_place => (name, Some(url)),
        _ => (text, None),
    }
}

#[cfg(test)]
mod tests {
    use super::super::read;
    use crate::test_profile::stacks_of;
    use nyquist_profile::{Measure, Unit};

    const FILE: &str = r#"{"traceEvents":[{"name":"thread_name","ph":"M","pid":7,"tid":"9","ts":"1","args":{"name":"JS"}}],
        "samples":[{"cpu":"-1","name":"","ts":"3000","pid":7,"tid":"9","weight":"1","sf":3},
        {"ts":"1000","pid":7,"tid":"9","sf":2},{"ts":"4000","pid":7,"tid":"9","sf":3},{"ts":"1","pid":7,"tid":"9","sf":77}],
        "stackFrames":{"1":{"name":"[root]","category":"root"},
        "2":{"line":"4","column":"2","funcLine":"1","name":"run(http://h:1/a.js:4:2)","category":"JavaScript","parent":1},
        "3":{"name":"[Host Function] now","category":"Native","parent":2},
        "4":{"name":"x","parent":5},"5":{"name":"y","parent":4}}}"#;

    #[test]
    fn samples_refer_to_a_table_of_frames() {
        let imported = read(FILE.as_bytes()).unwrap();
        assert_eq!(imported.notes.len(), 1);
        let profile = imported.profile;
        assert_eq!(stacks_of(&profile), ["run 2", "run;[Host Function] now 2"]);
        assert_eq!(profile.meta().measure, Measure { name: "wall time".into(), unit: Unit::Time });
        assert_eq!((profile.meta().interval, &*profile.threads()[0].name), (1_000_000, "JS"));
        let run = profile.frames().iter().find(|frame| frame.line == Some(4)).unwrap();
        let file = profile.string(profile.source(profile.frame_source(run).unwrap()).filename);
        assert_eq!((file, run.column), ("http://h:1/a.js", Some(2)));
    }

    /// speedscope shows all samples of such a file, those at `[root]` too.
    #[test]
    fn time_outside_of_functions_is_kept() {
        let text = r#"{"traceEvents":[],"samples":[{"ts":"0","pid":1,"tid":"2","sf":1},{"ts":"4000","pid":1,"tid":"2","sf":2},
            {"ts":"7000","pid":1,"tid":"2","sf":1},{"ts":"9000","pid":1,"tid":"2","sf":1}],
            "stackFrames":{"1":{"name":"[root]","category":"root"},"2":{"name":"[GC Young Gen]","parent":1}}}"#;
        let imported = read(text.as_bytes()).unwrap();
        assert_eq!(stacks_of(&imported.profile), ["[GC Young Gen] 3", "[root] 8"]);
        assert_eq!((imported.notes, imported.profile.meta().interval), (vec![], 1_000_000));
    }

    #[test]
    fn frames_in_a_circle_do_no_harm() {
        let text = FILE.replace(
            "\"ts\":\"1\",\"pid\":7,\"tid\":\"9\",\"sf\":77",
            "\"ts\":\"5000\",\"pid\":7,\"tid\":\"9\",\"sf\":5",
        );
        assert_eq!(
            stacks_of(&read(text.as_bytes()).unwrap().profile)[..2],
            ["run 2", "run;[Host Function] now 2"]
        );
        let alone = r#"{"traceEvents":[],"samples":[{"ts":1,"pid":1,"tid":1,"sf":"a"}],"stackFrames":{"a":{"name":"f"}}}"#;
        assert_eq!(stacks_of(&read(alone.as_bytes()).unwrap().profile), ["f 1"]);
    }
}
