//! The graph of calls that FreeBSD's `pmcstat -G` prints: trees of callers below each sampled function.
//!
//! Its manual page is pmcstat(8). An event begins with `@ EVENT [COUNT samples]`. Lines are `20.86%  [7447]
//! function @ file`, indented by one more space for each caller, and the file is left out while it is the same.

use nyquist_profile::{FrameId, Measure, StackId, Unit};
use rustc_hash::FxHashMap;

use crate::error::{ImportedProfile, ReadError};
use crate::import::{CodePosition, Importer, ThreadName};
use crate::values::{SampleQueue, SampleValueKind, choose};

const FORMAT: &str = "a call graph of pmcstat";

/// The most callers of a function.
const MAX_DEPTH: usize = 1024;

/// The name of an event from `@ EVENT [COUNT samples]`.
fn event(line: &str) -> Option<&str> {
    let (name, count) = line.strip_prefix("@ ")?.rsplit_once(" [")?;
    count.strip_suffix(" samples]")?.parse::<u64>().ok()?;
    Some(name)
}

/// Whether a text begins with such a graph.
pub(crate) fn is_call_graph(first: &str) -> bool {
    event(first.trim_end()).is_some()
}

/// A function, below the one that it calls.
#[derive(Clone, Copy)]
struct Caller<'a> {
    depth: usize,
    count: u64,
    name: &'a str,
    file: &'a str,
}

/// A line of the tree. The file is empty if it is that of the line before.
fn caller(line: &str) -> Option<Caller<'_>> {
    let rest = line.trim_start_matches(' ');
    let (share, rest_of_line) = rest.split_once("%  [")?;
    share.parse::<f64>().ok()?;
    let (count, code) = rest_of_line.split_once(']')?;
    let code = code.trim();
    let (name, file) = code.rsplit_once(" @ ").unwrap_or((code, ""));
    Some(Caller { depth: line.len() - rest.len(), count: count.parse().ok()?, name, file })
}

/// Reads the samples of an event: the requested one, or the first. What is said of a function and not of its callers is
/// of callers that are not known: `pmcstat` leaves out rare ones.
///
/// # Errors
/// If it has no event, or not the requested one.
pub fn read_value(bytes: &[u8], requested: Option<&str>) -> Result<ImportedProfile, ReadError> {
    let text = String::from_utf8_lossy(bytes);
    let mut events: Vec<SampleValueKind> = Vec::new();
    for name in text.lines().filter_map(event) {
        if events.iter().all(|known| known.name != name) {
            events.push(SampleValueKind::new(name, Unit::Count));
        }
    }
    if events.is_empty() {
        return Err(ReadError::Malformed { format: FORMAT, problem: "it names no event".into() });
    }
    let chosen = &events[choose(&events, requested, 0)?];
    let mut graph = Graph::new(chosen.measure());
    let mut is_chosen = false;
    for line in text.lines() {
        if let Some(name) = event(line) {
            graph.close(0);
            is_chosen = name == chosen.name;
        } else if is_chosen {
            graph.add_line(line);
        }
    }
    graph.close(0);
    graph.importer.note_left_out(graph.left_out, "lines that are no function, or have too many callers");
    Ok(graph.importer.finish(Some(1)))
}

/// A function whose callers are not complete.
struct OpenCaller {
    frame: FrameId,
    count: u64,
    /// The sum of its callers.
    called: u64,
}

struct Graph<'a> {
    importer: Importer,
    queue: SampleQueue,
    frames: FxHashMap<(&'a str, &'a str), FrameId>,
    /// The sampled function, and its callers up to the last line.
    open: Vec<OpenCaller>,
    file: &'a str,
    left_out: u64,
}

impl<'a> Graph<'a> {
    fn new(measure: Measure) -> Self {
        let mut importer = Importer::new("pmcstat", "pmcstat");
        importer.meta_mut().measure = measure;
        let name = ThreadName { pid: "0", process: "pmcstat", tid: "0", thread: "pmcstat" };
        let queue = SampleQueue::new(importer.thread(name));
        Self { importer, queue, frames: FxHashMap::default(), open: Vec::new(), file: "", left_out: 0 }
    }

    /// Adds a line of the tree. Empty lines and comments are passed over.
    fn add_line(&mut self, line: &'a str) {
        if line.trim().is_empty() || line.starts_with('#') {
            return;
        }
        let Some(caller) = caller(line).filter(|it| it.depth < MAX_DEPTH && it.depth <= self.open.len())
        else {
            self.left_out += 1;
            return;
        };
        self.close(caller.depth);
        if !caller.file.is_empty() {
            self.file = caller.file;
        }
        if let Some(callee) = self.open.last_mut() {
            callee.called = callee.called.saturating_add(caller.count);
        }
        let frame = self.frame(caller.name);
        self.open.push(OpenCaller { frame, count: caller.count, called: 0 });
    }

    fn frame(&mut self, name: &'a str) -> FrameId {
        let key = (name, self.file);
        if let Some(&frame) = self.frames.get(&key) {
            return frame;
        }
        let lib = (!self.file.is_empty()).then(|| self.importer.lib(self.file, None));
        let is_kernel = self.file.starts_with("/boot/");
        let frame = self.importer.frame(&CodePosition { name, lib, is_kernel, ..CodePosition::default() });
        self.frames.insert(key, frame);
        frame
    }

    /// Completes callers that are as deep or deeper. They get the samples that none of their own callers has.
    fn close(&mut self, depth: usize) {
        while self.open.len() > depth {
            let Some(last) = self.open.last() else { return };
            let own = last.count.saturating_sub(last.called);
            if own > 0 {
                let mut stack: Option<StackId> = None;
                for caller in self.open.iter().rev() {
                    stack = Some(self.importer.stack(stack, caller.frame));
                }
                self.queue.add(&mut self.importer, stack, own);
            }
            self.open.pop();
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::error::Note;
    use crate::test_profile::stacks_of;

    pub(crate) const GRAPH: &str = "@ inst_retired.any [13 samples]\n\n\
        76.92%  [10]     compress @ /boot/kernel/zfs.ko\n 70.00%  [7]      write\n  \
        100.0%  [7]       fork_exit @ /boot/kernel/kernel\n 10.00%  [1]      read\n\n\
        23.07%  [3]      main @ /bin/app\n\n\
        @ cycles [4 samples]\n\n100.0%  [4]      main\n";

    #[test]
    fn callers_are_outside_the_functions_they_call() {
        let read = read_value(GRAPH.as_bytes(), None).unwrap();
        let expected = ["compress 2", "fork_exit;write;compress 7", "main 3", "read;compress 1"];
        assert_eq!(stacks_of(&read.profile), expected);
        assert_eq!(read.notes, []);
        let measure = Measure { name: "inst_retired.any".into(), unit: Unit::Count };
        assert_eq!(read.profile.meta().measure, measure);
        let libs: Vec<_> = read.profile.libs().iter().map(|lib| &*lib.path).collect();
        assert_eq!(libs, ["/boot/kernel/zfs.ko", "/boot/kernel/kernel", "/bin/app"]);
        let cycles = read_value(GRAPH.as_bytes(), Some("cycles")).unwrap().profile;
        assert_eq!(stacks_of(&cycles), ["main 4"]);
    }

    #[test]
    fn lines_that_fit_nowhere_are_counted() {
        let text = "@ x [3 samples]\n100.0%  [3]   a\n   50.00%  [1]   b\nnonsense\n";
        let read = read_value(text.as_bytes(), None).unwrap();
        assert_eq!(stacks_of(&read.profile), ["a 3"]);
        assert!(matches!(read.notes[..], [Note::LeftOut { count: 2, .. }]), "{:?}", read.notes);
        assert!(read_value(b"100.0%  [3]   a\n", None).is_err());
    }
}
