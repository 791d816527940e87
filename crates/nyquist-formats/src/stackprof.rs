//! stackprof's profiles of Ruby programs as JSON (`stackprof --json`, `JSON.generate(StackProf.run { ...
//! })`).
//!
//! The members are described in its README (<https://github.com/tmm1/stackprof>, internals).

use nyquist_profile::{FrameId, Measure, Unit};
use rustc_hash::FxHashMap;
use serde::Deserialize;

use crate::call_graph::CallGraph;
use crate::error::{ImportedProfile, ReadError};
use crate::import::{CodePosition, Importer, ThreadName};
use crate::json::position;
use crate::values::{SampleQueue, SampleValueKind};

const FORMAT: &str = "a profile of stackprof";

#[derive(Deserialize)]
struct StackprofFile {
    mode: String,
    #[serde(default)]
    interval: f64,
    frames: FxHashMap<String, StackprofFrame>,
    /// Stacks, each as the number of its frames, their ids from the outermost on, and the number of
    /// consecutive samples.
    #[serde(default)]
    raw: Vec<u64>,
    /// The same with lines instead of ids.
    #[serde(default)]
    raw_lines: Vec<f64>,
}

#[derive(Deserialize)]
struct StackprofFrame {
    name: String,
    file: Option<String>,
    line: Option<f64>,
    #[serde(default)]
    samples: u64,
    /// The ids of its callees, with the numbers of samples.
    #[serde(default)]
    edges: FxHashMap<String, u64>,
}

/// Reads a profile. Its mode determines the measure: CPU time, wall time, objects, or samples. Without `raw`
/// it only has a call graph, from which stacks are made as for callgrind.
///
/// # Errors
/// If it is no such JSON.
pub fn read(bytes: &[u8]) -> Result<ImportedProfile, ReadError> {
    let file: StackprofFile =
        serde_json::from_slice(bytes).map_err(|error| ReadError::Json { format: FORMAT, error })?;
    let mut importer = Importer::new("Ruby", "stackprof");
    let value = value(&file);
    let is_cpu_time = file.mode == "cpu";
    importer.meta_mut().measure = if is_cpu_time { Measure::default() } else { value.measure() };
    let name = ThreadName { pid: "0", process: "Ruby", tid: "0", thread: "Ruby" };
    let thread = importer.thread(name);
    let cut = if file.raw.is_empty() {
        graph(&mut importer, &file, value.factor).add_to(&mut importer, thread);
        0
    } else {
        add_stacks(&mut importer, &mut SampleQueue::new(thread), &file, value.factor)
    };
    importer.note_left_out(cut, "stacks that are cut off");
    Ok(importer.finish(Some(value.factor)))
}

/// The value of a sample.
fn value(file: &StackprofFile) -> SampleValueKind {
    let interval = (file.interval as u64).max(1);
    match &*file.mode {
        "cpu" => SampleValueKind {
            factor: interval.saturating_mul(1000),
            ..SampleValueKind::new("cpu", Unit::Time)
        },
        "wall" => SampleValueKind {
            factor: interval.saturating_mul(1000),
            ..SampleValueKind::new("wall time", Unit::Time)
        },
        "object" => SampleValueKind { factor: interval, ..SampleValueKind::new("objects", Unit::Count) },
        _ => SampleValueKind::new("samples", Unit::Count),
    }
}

fn code(frame: &StackprofFrame) -> CodePosition<'_> {
    let file = frame.file.as_deref().filter(|file| *file != "<cfunc>");
    CodePosition { name: &frame.name, file, start_line: position(frame.line), ..CodePosition::default() }
}

/// Adds the stacks that were sampled, and returns how many are truncated.
fn add_stacks(importer: &mut Importer, queue: &mut SampleQueue, file: &StackprofFile, factor: u64) -> u64 {
    let by_id: FxHashMap<u64, &StackprofFrame> =
        file.frames.iter().filter_map(|(id, frame)| Some((id.parse().ok()?, frame))).collect();
    let mut frames: FxHashMap<(u64, Option<u32>), FrameId> = FxHashMap::default();
    let has_lines = file.raw_lines.len() == file.raw.len();
    let mut at = 0;
    while let Some(&count) = file.raw.get(at) {
        let first = at + 1;
        let end = usize::try_from(count).ok().and_then(|count| first.checked_add(count));
        let Some((ids, &times)) = end.and_then(|end| Some((file.raw.get(first..end)?, file.raw.get(end)?)))
        else {
            return 1;
        };
        let stack = ids.iter().enumerate().fold(None, |prefix, (offset, &id)| {
            let line = file.raw_lines.get(first + offset).copied().filter(|_| has_lines);
            let line = position(line);
            let frame = *frames.entry((id, line)).or_insert_with(|| {
                let code = by_id.get(&id).map_or(CodePosition::default(), |frame| code(frame));
                importer.frame(&CodePosition { line, ..code })
            });
            Some(importer.stack(prefix, frame))
        });
        queue.add(importer, stack, times.saturating_mul(factor));
        at = first + ids.len() + 1;
    }
    0
}

fn graph(importer: &mut Importer, file: &StackprofFile, factor: u64) -> CallGraph {
    let mut graph = CallGraph::default();
    // The map has no defined order.
    let mut ids: Vec<_> = file.frames.keys().collect();
    ids.sort_unstable();
    let functions: FxHashMap<&str, (usize, FrameId)> = (ids.iter())
        .map(|id| (id.as_str(), (graph.add_function(), importer.frame(&code(&file.frames[*id])))))
        .collect();
    for id in ids {
        let (caller, site) = functions[id.as_str()];
        let frame = &file.frames[id];
        graph.add_own(caller, site, frame.samples.saturating_mul(factor));
        for (callee, samples) in &frame.edges {
            if let Some(&(callee, _)) = functions.get(callee.as_str()) {
                graph.add_call((caller, site), callee, samples.saturating_mul(factor));
            }
        }
    }
    graph
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_profile::stacks_of;

    fn file(mode: &str, more: &str) -> String {
        format!(
            r#"{{"version":1.2,"mode":"{mode}","interval":1000,"samples":5,"gc_samples":0,"missed_samples":0,"metadata":{{}},
            "frames":{{"140":{{"name":"Object#main","file":"/a.rb","line":3,"total_samples":5,"samples":2,"edges":{{"7":3}}}},
            "7":{{"name":"Integer#times","file":"<cfunc>","line":null,"total_samples":3,"samples":3}}}}{more}}}"#
        )
    }

    #[test]
    fn raw_stacks_count_what_the_mode_says() {
        let raw =
            r#","raw":[1,140,2,2,140,7,3],"raw_lines":[1,4,2,2,5,0,3],"raw_timestamp_deltas":[1,2,3,4,5]"#;
        let imported = read(file("cpu", raw).as_bytes()).unwrap();
        let profile = imported.profile;
        assert_eq!(stacks_of(&profile), ["Object#main 2", "Object#main;Integer#times 3"]);
        assert!(profile.meta().measure.is_cpu_time() && profile.meta().interval == 1_000_000);
        let lines: Vec<_> = profile.frames().iter().map(|frame| frame.line).collect();
        assert_eq!(lines, [Some(4), Some(5), None]);
        let objects = read(file("object", raw).as_bytes()).unwrap().profile;
        assert_eq!((&*objects.meta().measure.name, objects.meta().interval), ("objects", 1000));
        let wall = read(file("wall", raw).as_bytes()).unwrap().profile;
        assert_eq!(wall.meta().measure, Measure { name: "wall time".into(), unit: Unit::Time });
    }

    #[test]
    fn without_stacks_the_calls_make_them() {
        let profile = read(file("cpu", "").as_bytes()).unwrap().profile;
        assert_eq!(stacks_of(&profile), ["Object#main 2", "Object#main;Integer#times 3"]);
    }

    #[test]
    fn what_is_cut_off_is_said() {
        let imported = read(file("cpu", r#","raw":[1,140,2,9999999999,140]"#).as_bytes()).unwrap();
        assert_eq!((imported.notes.len(), stacks_of(&imported.profile)), (1, vec!["Object#main 2".into()]));
        assert!(read(b"{}").is_err());
    }
}
