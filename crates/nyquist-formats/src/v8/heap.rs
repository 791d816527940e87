//! V8's sampled heap profiles (`.heapprofile`) from `node --heap-prof` and DevTools: the type
//! `HeapProfiler.SamplingHeapProfile` of the DevTools protocol
//! (<https://chromedevtools.github.io/devtools-protocol/tot/HeapProfiler/#type-SamplingHeapProfile>).

use nyquist_profile::{Measure, Unit};

use super::tree::{CallFrame, Node, Tree};
use crate::error::{ImportedProfile, ReadError};
use crate::import::{Importer, ThreadName};
use crate::json_tree::{self, TreeShape};
use crate::values::SampleQueue;

const FORMAT: &str = "a heap profile of V8";

const SHAPE: TreeShape = TreeShape {
    root: "head",
    children: "children",
    members: &[
        "callFrame.functionName",
        "callFrame.url",
        "callFrame.lineNumber",
        "callFrame.columnNumber",
        "selfSize",
    ],
};

/// Reads a heap profile: bytes by the stack that allocated them. V8 writes the bytes that are still in use
/// when the profile is made.
///
/// # Errors
/// If it is no such JSON.
pub fn read(bytes: &[u8]) -> Result<ImportedProfile, ReadError> {
    let malformed = |problem: &str| ReadError::Malformed { format: FORMAT, problem: problem.into() };
    let document = json_tree::read(bytes, &SHAPE).ok_or_else(|| malformed("it is cut off or no JSON"))?;
    if document.nodes.is_empty() {
        return Err(malformed("it has no head"));
    }
    let mut importer = Importer::new("JavaScript", "V8 heap profile");
    importer.meta_mut().measure = Measure { name: "allocated and in use".into(), unit: Unit::Bytes };
    let name = ThreadName { pid: "0", process: "JavaScript", tid: "0", thread: "JavaScript" };
    let mut queue = SampleQueue::new(importer.thread(name));
    let nodes: Vec<_> = document.nodes.iter().enumerate().map(|(id, node)| node_of(id, node)).collect();
    let tree = Tree::of(&mut importer, &nodes);
    for (id, node) in document.nodes.iter().enumerate() {
        let size = node.members[4].number().unwrap_or(0.0) as u64;
        queue.add(&mut importer, tree.stack(id as u64), size);
    }
    Ok(importer.finish(None))
}

fn node_of(id: usize, node: &json_tree::JsonNode) -> Node {
    let [name, url, line, column, _] = &node.members[..] else { return Node::default() };
    Node {
        id: id as u64,
        parent: node.parent.map(|parent| parent as u64),
        call_frame: CallFrame {
            function_name: name.text().to_owned(),
            url: url.text().to_owned(),
            line_number: line.number(),
            column_number: column.number(),
        },
        ..Node::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_profile::stacks_of;

    #[test]
    fn bytes_are_counted_by_stack() {
        let frame = |name: &str, line: i32| {
            format!(
                r#""callFrame":{{"functionName":"{name}","scriptId":"1","url":"a.js","lineNumber":{line},"columnNumber":2}}"#
            )
        };
        let text = format!(
            r#"{{"head":{{{},"selfSize":0,"id":1,"children":[{{{},"selfSize":64,"id":2,"children":[{{"selfSize":128,"id":3,"children":[],{}}}]}}]}},
            "samples":[{{"size":64,"nodeId":2,"ordinal":1}}]}}"#,
            frame("(root)", -1),
            frame("keep", 4),
            frame("", 0)
        );
        let profile = read(text.as_bytes()).unwrap().profile;
        assert_eq!((profile.meta().measure.unit, profile.meta().interval), (Unit::Bytes, 64));
        assert_eq!(stacks_of(&profile), ["keep 1", "keep;(anonymous) 2"]);
        let keep = profile.frames().iter().find(|frame| profile.func_name(frame.func) == "keep").unwrap();
        assert_eq!((keep.line, keep.column), (Some(5), Some(3)));
        assert!(read(b"{}").is_err() && read(&text.as_bytes()[..200]).is_err());
    }
}
