//! V8's CPU profiles (`.cpuprofile`) from `node --cpu-prof` and DevTools: the type `Profiler.Profile` of the
//! DevTools protocol (<https://chromedevtools.github.io/devtools-protocol/tot/Profiler/#type-Profile>).

use nyquist_profile::{FuncKind, StackId, ThreadIndex};
use rustc_hash::FxHashMap;
use serde::Deserialize;

use crate::error::{ImportedProfile, ReadError};
use crate::import::{CodePosition, Importer, MILLISECOND, ThreadName};
use crate::json::nanoseconds;

const FORMAT: &str = "a CPU profile of V8";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CpuProfileFile {
    nodes: Vec<Node>,
    #[serde(default)]
    start_time: f64,
    #[serde(default)]
    end_time: f64,
    #[serde(default)]
    samples: Vec<u64>,
    #[serde(default)]
    time_deltas: Vec<f64>,
}

/// A node of the tree of calls. DevTools' traces have parents, and files have children.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Node {
    pub id: u64,
    #[serde(default)]
    pub parent: Option<u64>,
    #[serde(default)]
    pub children: Vec<u64>,
    pub call_frame: CallFrame,
    /// The lines at which it was sampled, with the numbers of samples.
    #[serde(default)]
    pub position_ticks: Vec<PositionTick>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct PositionTick {
    /// From 1 on.
    line: f64,
    ticks: f64,
}

impl Node {
    /// A node that is a part of another document. `None` if it is invalid.
    pub(crate) fn deserialize_from(value: &serde_json::Value) -> Option<Self> {
        Self::deserialize(value).ok()
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct CallFrame {
    pub function_name: String,
    pub url: String,
    /// Counts from 0 in files. -1 if there is none.
    pub line_number: Option<f64>,
    /// Counts from 0 in files. -1 if there is none.
    pub column_number: Option<f64>,
}

/// Reads a CPU profile. Each sample stands for the time until the next one, as in `DevTools`, because V8's
/// clock is uneven. The last one stands for the time until the end. Samples of `(idle)` are waiting.
///
/// # Errors
/// If it is no such JSON, or its nodes are no tree.
pub fn read(bytes: &[u8]) -> Result<ImportedProfile, ReadError> {
    let CpuProfileFile { nodes, start_time, end_time, samples: sampled, time_deltas } =
        serde_json::from_slice(bytes).map_err(|error| ReadError::Json { format: FORMAT, error })?;
    let mut importer = Importer::new("JavaScript", "V8 CPU profile");
    let name = ThreadName { pid: "0", process: "JavaScript", tid: "0", thread: "JavaScript" };
    let thread = importer.thread(name);
    let mut tree = Tree::default();
    tree.add(&mut importer, &nodes);
    drop(nodes);
    let mut samples = CpuProfileSamples::new(thread, nanoseconds(start_time, 1000.0));
    samples.add(sampled, time_deltas);
    samples.end_at(nanoseconds(end_time, 1000.0));
    let unknown = samples.add_to(&mut importer, &tree);
    importer.note_left_out(unknown, "samples of nodes that are not in the tree");
    Ok(importer.finish(None))
}

/// The nodes' stacks.
#[derive(Default)]
pub(crate) struct Tree {
    stacks: Vec<NodeStack>,
    /// Where the stacks of nodes with small ids are, which V8's own are. 0 for none, and otherwise one more.
    small: Vec<u32>,
    /// Ids below it are small: a multiple of the number of nodes, so that memory is linear in them.
    small_end: u64,
    /// Where the stacks of other nodes are.
    large: FxHashMap<u64, usize>,
}

struct NodeStack {
    /// `None` for the root, which is no function.
    stack: Option<StackId>,
    is_idle: bool,
    /// The stacks of its lines, each with the number of samples up to and including this line.
    lines: Vec<(u64, StackId)>,
}

impl NodeStack {
    /// The stack of one of its samples, by its number. A file does not state the line of each sample, but
    /// only the number of samples for each line. So samples are assigned in the order of the lines.
    fn of_sample(&self, number: u64) -> Option<StackId> {
        let place = self.lines.partition_point(|&(until, _)| until <= number);
        self.lines.get(place).or(self.lines.last()).map(|&(_, stack)| stack).or(self.stack)
    }
}

impl Tree {
    /// The stack of a node. `None` for the root and for unknown nodes.
    pub(crate) fn stack(&self, node: u64) -> Option<StackId> {
        self.find(node)?.stack
    }

    /// Where the stack of a node is.
    fn place(&self, node: u64) -> Option<usize> {
        let number = usize::try_from(node).ok().and_then(|node| self.small.get(node)).copied().unwrap_or(0);
        (number as usize).checked_sub(1).or_else(|| self.large.get(&node).copied())
    }

    fn find(&self, node: u64) -> Option<&NodeStack> {
        self.stacks.get(self.place(node)?)
    }

    /// Adds the stack of a node, in place of that of another one with the same id.
    fn insert(&mut self, node: u64, stack: NodeStack) {
        let place = self.stacks.len();
        self.stacks.push(stack);
        let Some(number) = u32::try_from(place + 1).ok().filter(|_| node < self.small_end) else {
            self.large.insert(node, place);
            return;
        };
        let at = node as usize;
        if at >= self.small.len() {
            self.small.resize(at + 1, 0);
        }
        self.small[at] = number;
    }

    /// Adds nodes in any order. Nodes that are not reachable from a root, or form a cycle, are left out.
    pub(crate) fn add(&mut self, importer: &mut Importer, nodes: &[Node]) {
        const IDS_OF_A_NODE: u64 = 8;
        self.small_end = self.small_end.saturating_add((nodes.len() as u64).saturating_mul(IDS_OF_A_NODE));
        let mut parents: FxHashMap<u64, u64> = FxHashMap::default();
        for node in nodes {
            parents.extend(node.parent.map(|parent| (node.id, parent)));
            parents.extend(node.children.iter().map(|&child| (child, node.id)));
        }
        let mut children: FxHashMap<u64, Vec<&Node>> = FxHashMap::default();
        let mut waiting: Vec<&Node> = Vec::new();
        for node in nodes.iter().rev() {
            match parents.get(&node.id) {
                Some(parent) if self.place(*parent).is_none() => {
                    children.entry(*parent).or_default().push(node);
                }
                _ => waiting.push(node),
            }
        }
        while let Some(node) = waiting.pop() {
            let parent = parents.get(&node.id).and_then(|&parent| self.find(parent));
            let stack = add_node(importer, parent.and_then(|parent| parent.stack), node);
            self.insert(node.id, stack);
            waiting.extend(children.remove(&node.id).unwrap_or_default());
        }
    }
}

fn add_node(importer: &mut Importer, prefix: Option<StackId>, node: &Node) -> NodeStack {
    let code = &node.call_frame;
    let is_root = code.function_name == "(root)" && prefix.is_none();
    if is_root {
        return NodeStack { stack: None, is_idle: false, lines: Vec::new() };
    }
    let name = if code.function_name.is_empty() { "(anonymous)" } else { &code.function_name };
    let url = &code.url;
    // The line of a call frame is that of its function.
    let position = |number: Option<f64>| {
        number
            .filter(|&number| number >= 0.0 && !url.is_empty())
            .map(|number| (number as u32).saturating_add(1))
    };
    let code_of = CodePosition {
        name,
        file: Some(url),
        start_line: position(code.line_number),
        line: position(code.line_number),
        column: position(code.column_number),
        // `(program)` and the runtime's own functions have no place in the source.
        kind: if url.is_empty() { FuncKind::Native } else { FuncKind::JavaScript },
        ..CodePosition::default()
    };
    let frame = importer.frame(&code_of);
    let stack = Some(importer.stack(prefix, frame));
    let mut until = 0_u64;
    let ticks = node.position_ticks.iter().filter(|tick| !url.is_empty() && tick.line >= 1.0);
    let lines = ticks.map(|tick| {
        until = until.saturating_add(tick.ticks as u64);
        let frame = importer.frame(&CodePosition { line: Some(tick.line as u32), column: None, ..code_of });
        (until, importer.stack(prefix, frame))
    });
    NodeStack { stack, is_idle: code.function_name == "(idle)", lines: lines.collect() }
}

/// The samples of a thread: nodes at times.
pub(crate) struct CpuProfileSamples {
    thread: ThreadIndex,
    start: u64,
    clock: u64,
    /// The time of each sample.
    times: Vec<u64>,
    /// The node of each sample.
    nodes: Vec<u64>,
    /// When the last sample ended, or 0 if that is not known.
    end: u64,
}

impl CpuProfileSamples {
    /// The samples of a recording that began at `start` ns.
    pub(crate) fn new(thread: ThreadIndex, start: u64) -> Self {
        Self { thread, start, clock: start, times: Vec::new(), nodes: Vec::new(), end: 0 }
    }

    /// Adds sampled nodes, each `deltas` µs after the previous one. V8's times sometimes go backwards.
    pub(crate) fn add(&mut self, nodes: Vec<u64>, deltas: Vec<f64>) {
        let deltas = deltas.into_iter().chain(std::iter::repeat(0.0));
        self.times.reserve(nodes.len());
        for delta in deltas.take(nodes.len()) {
            let step = nanoseconds(delta.abs(), 1000.0);
            let clock =
                if delta < 0.0 { self.clock.saturating_sub(step) } else { self.clock.saturating_add(step) };
            self.clock = clock;
            self.times.push(clock);
        }
        if self.nodes.is_empty() {
            self.nodes = nodes;
        } else {
            self.nodes.extend(nodes);
        }
    }

    /// Adds sampled nodes with their times, in ns.
    pub(crate) fn add_at(&mut self, nodes: Vec<u64>, times: Vec<u64>) {
        (self.nodes, self.times) = (nodes, times);
    }

    /// Notes when the recording ended, in ns.
    pub(crate) fn end_at(&mut self, end: u64) {
        self.end = end;
    }

    /// Adds the samples to the profile, and returns the number of samples whose node is not known.
    pub(crate) fn add_to(mut self, importer: &mut Importer, tree: &Tree) -> u64 {
        self.sort();
        let mut unknown = 0;
        let mut counts = vec![0_u64; tree.stacks.len()];
        let nexts = self.times.iter().skip(1).copied().chain([self.end_of_last()]);
        for ((&time, &id), next) in self.times.iter().zip(&self.nodes).zip(nexts) {
            let Some(place) = tree.place(id) else {
                unknown += 1;
                continue;
            };
            let (node, count) = (&tree.stacks[place], &mut counts[place]);
            let stack = node.of_sample(*count);
            importer.span(self.thread, time, (stack, node.is_idle), next.saturating_sub(time));
            *count += 1;
        }
        unknown
    }

    /// Sorts the samples by time. Most are.
    fn sort(&mut self) {
        if self.times.is_sorted() {
            return;
        }
        let mut taken: Vec<_> = self.times.iter().copied().zip(self.nodes.iter().copied()).collect();
        taken.sort_by_key(|&(time, _)| time);
        (self.times, self.nodes) = taken.into_iter().unzip();
    }

    /// When the last sample ends. It ends with the recording or, if the end is not known, it lasts as long as
    /// the previous sample. If a recording ends with its last sample, or before it by V8's uneven clock, the
    /// sample has no time. It lasts no longer than any other, because some programs state an end of another
    /// clock.
    fn end_of_last(&self) -> u64 {
        let mut backwards = self.times.iter().rev().copied();
        let Some(last) = backwards.next() else { return self.end };
        if self.end == 0 {
            let step = backwards.next().map_or(MILLISECOND, |before| last - before);
            return last.saturating_add(step);
        }
        let times = std::iter::once(self.start).chain(self.times.iter().copied());
        let steps = times.clone().zip(times.skip(1)).map(|(time, next)| next.saturating_sub(time));
        let longest = steps.max().filter(|&step| step > 0).unwrap_or(MILLISECOND);
        self.end.min(last.saturating_add(longest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_profile::{stacks_of, waits_of};

    const FILE: &str = r#"{"nodes":[
        {"id":1,"callFrame":{"functionName":"(root)","scriptId":"0","url":"","lineNumber":-1,"columnNumber":-1},"children":[3,2]},
        {"id":2,"callFrame":{"functionName":"(idle)","scriptId":"0","url":"","lineNumber":-1,"columnNumber":-1}},
        {"id":4,"callFrame":{"functionName":"","scriptId":"9","url":"file:///a.js","lineNumber":6,"columnNumber":2}},
        {"id":3,"callFrame":{"functionName":"run","scriptId":"9","url":"file:///a.js","lineNumber":0,"columnNumber":0},"children":[4]}],
        "startTime":100,"endTime":6100,"samples":[3,4,4,2,77],"timeDeltas":[10,1000,1000,-5,1000]}"#;

    #[test]
    fn nodes_become_stacks_and_idling_waiting() {
        let read = read(FILE.as_bytes()).unwrap();
        assert_eq!(stacks_of(&read.profile), ["run 200", "run;(anonymous) 398"]);
        assert_eq!(waits_of(&read.profile), ["(idle) 1"]);
        assert_eq!(read.profile.meta().interval, 5_000);
        assert_eq!(read.notes.len(), 1);
        let anonymous = read.profile.frames().iter().find(|frame| frame.line == Some(7)).unwrap();
        assert_eq!((anonymous.column, read.profile.func_name(anonymous.func)), (Some(3), "(anonymous)"));
    }

    #[test]
    fn samples_are_in_the_lines_that_were_sampled() {
        let text = r#"{"nodes":[{"id":1,"callFrame":{"functionName":"run","url":"a.js","lineNumber":9,"columnNumber":0},
            "positionTicks":[{"line":12,"ticks":1},{"line":14,"ticks":2}]}],
            "startTime":0,"endTime":400,"samples":[1,1,1,1],"timeDeltas":[0,100,100,100]}"#;
        let profile = read(text.as_bytes()).unwrap().profile;
        let lines: Vec<_> = profile.threads()[0]
            .samples
            .iter()
            .map(|sample| {
                let frame = profile.stack_frames(sample.stack.unwrap()).next().unwrap();
                (frame.line, profile.func(frame.func).line)
            })
            .collect();
        assert_eq!(lines, [12, 14, 14, 14].map(|line| (Some(line), Some(10))));
    }

    #[test]
    fn samples_stand_for_the_time_until_the_next() {
        let check = |end: u32, expected: &[&str]| {
            let text = format!(
                r#"{{"nodes":[{{"id":1,"callFrame":{{"functionName":"a"}}}},{{"id":2,"callFrame":{{"functionName":"b"}}}}],
                "startTime":50,"endTime":{end},"samples":[1,2,1],"timeDeltas":[50,200,500]}}"#
            );
            assert_eq!(stacks_of(&read(text.as_bytes()).unwrap().profile), expected);
        };
        check(900, &["a 3", "b 5"]);
        check(0, &["a 7", "b 5"]);
        // The last sample ends with the recording, or was recorded after its end.
        check(800, &["a 2", "b 5"]);
        check(790, &["a 2", "b 5"]);
        // The end is of another clock. No other sample lasts longer than 500 µs.
        check(470_030_000, &["a 7", "b 5"]);
    }

    #[test]
    fn circles_and_other_json_do_no_harm() {
        let circle = r#"{"nodes":[{"id":1,"callFrame":{},"children":[2]},{"id":2,"callFrame":{},"children":[1]},
            {"id":3,"callFrame":{},"children":[3]}],"samples":[1,2,3]}"#;
        assert_eq!(read(circle.as_bytes()).unwrap().profile.stacks().len(), 0);
        assert!(read(b"{}").is_err());
        assert!(read(b"[1").is_err());
    }
}
