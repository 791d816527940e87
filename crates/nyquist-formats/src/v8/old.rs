//! V8's CPU profiles as its C++ interface makes them: those of Node.js up to version 6, of `v8-profiler` and its
//! successors. The calls are a tree (`head`), and samples have times (`timestamps`) in place of differences.
//!
//! The members are described at <https://github.com/hyj1991/v8-profiler-node8>.

use rustc_hash::FxHashMap;
use serde::Deserialize;

use super::samples::CpuProfileSamples;
use super::tree::{CallFrame, Node, Tree};
use crate::error::{ImportedProfile, ReadError};
use crate::import::{Importer, ThreadName};
use crate::json::nanoseconds;
use crate::json_tree::{self, JsonNode, TreeShape};

const FORMAT: &str = "a CPU profile of V8";

const SHAPE: TreeShape = TreeShape {
    root: "head",
    children: "children",
    members: &["id", "functionName", "url", "lineNumber", "columnNumber"],
};

/// What the file has besides its tree.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct OldSamples {
    /// In s.
    start_time: f64,
    end_time: f64,
    /// The ids of nodes.
    samples: Vec<u64>,
    /// In µs.
    timestamps: Vec<f64>,
}

/// Reads a CPU profile. Each sample stands for the time until the next one, and the last one until the end. A file
/// without times has the same time for each sample.
///
/// # Errors
/// If it is no such JSON.
pub fn read(bytes: &[u8]) -> Result<ImportedProfile, ReadError> {
    let file: OldSamples =
        serde_json::from_slice(bytes).map_err(|error| ReadError::Json { format: FORMAT, error })?;
    let malformed = |problem: &str| ReadError::Malformed { format: FORMAT, problem: problem.into() };
    let document = json_tree::read(bytes, &SHAPE).ok_or_else(|| malformed("it is cut off or no JSON"))?;
    if document.nodes.is_empty() {
        return Err(malformed("it has no head"));
    }
    let mut importer = Importer::new("JavaScript", "V8 CPU profile");
    let name = ThreadName { pid: "0", process: "JavaScript", tid: "0", thread: "JavaScript" };
    let thread = importer.thread(name);
    let tree = Tree::of(&mut importer, &nodes(&document.nodes));
    let start = nanoseconds(file.start_time, 1e9);
    let mut samples = CpuProfileSamples::new(&mut importer, &tree, (thread, start));
    let times = times(&file);
    let places = places(&document.nodes);
    let sampled: Vec<u64> =
        file.samples.iter().map(|id| places.get(id).copied().unwrap_or(u64::MAX)).collect();
    for (&node, &time) in sampled.iter().zip(&times) {
        samples.add(node, time);
    }
    let unknown = samples.finish(nanoseconds(file.end_time, 1e9));
    importer.note_left_out(unknown, "samples of nodes that are not in the tree");
    Ok(importer.finish(None))
}

/// The nodes. Their ids are their places, because some programs have given several nodes the same. Lines and columns
/// count from 1, and those of [`Node`] from 0.
fn nodes(tree: &[JsonNode]) -> Vec<Node> {
    let position = |number: Option<f64>| number.map(|number| number - 1.0);
    let node = |(at, node): (usize, &JsonNode)| {
        let [_, name, url, line, column] = &node.members[..] else { return None };
        Some(Node {
            id: at as u64,
            parent: node.parent.map(|parent| parent as u64),
            call_frame: CallFrame {
                function_name: name.text().to_owned(),
                url: url.text().to_owned(),
                line_number: position(line.number()),
                column_number: position(column.number()),
            },
            ..Node::default()
        })
    };
    tree.iter().enumerate().filter_map(node).collect()
}

/// The place of the node that each id of samples refers to, the last one with it.
fn places(tree: &[JsonNode]) -> FxHashMap<u64, u64> {
    let id = |node: &JsonNode| Some(node.members.first()?.number()? as u64);
    tree.iter().enumerate().filter_map(|(at, node)| Some((id(node)?, at as u64))).collect()
}

/// The time of each sample, in ns.
fn times(file: &OldSamples) -> Vec<u64> {
    if file.timestamps.len() == file.samples.len() {
        return file.timestamps.iter().map(|&time| nanoseconds(time, 1000.0)).collect();
    }
    let step = (file.end_time - file.start_time) / file.samples.len().max(1) as f64;
    let times = (0..file.samples.len()).map(|at| nanoseconds(file.start_time + step * at as f64, 1e9));
    times.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_profile::stacks_of;

    /// speedscope, which reads such files, gives `f` 2 ms and `g` 1 ms.
    #[test]
    fn samples_have_times_and_calls_are_a_tree() {
        let text = r#"{"typeId":"CPU","uid":"1","title":"a","head":{"functionName":"(root)","url":"","lineNumber":0,"hitCount":0,"id":1,
            "children":[{"functionName":"f","url":"a.js","lineNumber":3,"columnNumber":9,"hitCount":2,"id":2,"children":[
            {"functionName":"g","url":"a.js","lineNumber":7,"hitCount":1,"id":5,"children":[]}]}]},
            "startTime":1,"endTime":1.003,"samples":[2,5,2],"timestamps":[1000000,1001000,1002000]}"#;
        let imported = read(text.as_bytes()).unwrap();
        let profile = imported.profile;
        assert_eq!((stacks_of(&profile), imported.notes), (vec!["f 2".into(), "f;g 1".into()], vec![]));
        assert_eq!(profile.meta().interval, 1_000_000);
        let f = profile.frames().iter().find(|frame| profile.func_name(frame.func) == "f").unwrap();
        assert_eq!((f.line, f.column), (Some(3), Some(9)));
        let untimed = text.replace(",\"timestamps\":[1000000,1001000,1002000]", "");
        assert_eq!(stacks_of(&read(untimed.as_bytes()).unwrap().profile), ["f 2", "f;g 1"]);
    }

    #[test]
    fn other_json_is_refused() {
        for text in ["{}", "[]", r#"{"head":"#, r#"{"head":{},"samples":[-1]}"#] {
            assert!(read(text.as_bytes()).is_err(), "{text}");
        }
        let lost = r#"{"head":{"functionName":"f","id":2},"samples":[7,2],"timestamps":[0,1000]}"#;
        let imported = read(lost.as_bytes()).unwrap();
        assert_eq!((stacks_of(&imported.profile), imported.notes.len()), (vec!["f 1".into()], 1));
    }

    /// A converter has numbered its nodes from 0 on below a root of the number 0.
    #[test]
    fn nodes_may_have_the_same_number() {
        let text = r#"{"head":{"functionName":"(root)","id":0,"hitCount":0,"children":[{"functionName":"main","id":0,"children":[
            {"functionName":"work","id":1,"children":[]}]}]},"startTime":0,"endTime":2,"samples":[1,0]}"#;
        assert_eq!(stacks_of(&read(text.as_bytes()).unwrap().profile), ["main 1", "main;work 1"]);
    }
}
