//! pyinstrument's JSON (`pyinstrument -r json`): a tree of Python functions with wall time.
//!
//! The members are those of its renderer (<https://pyinstrument.readthedocs.io/>, renderers).

use nyquist_profile::{Measure, StackId, Unit};

use crate::error::{ImportedProfile, ReadError};
use crate::import::{CodePosition, Importer, ThreadName};
use crate::json::{nanoseconds, position};
use crate::json_tree::{self, JsonTree, TreeShape};
use crate::values::SampleQueue;

const FORMAT: &str = "a profile of pyinstrument";

const SHAPE: TreeShape = TreeShape {
    root: "root_frame",
    children: "children",
    members: &["function", "file_path", "line_no", "time", "file_path_short"],
};

/// Reads a profile. A function's own time is its time less that of its children.
///
/// # Errors
/// If it is no such JSON.
pub fn read(bytes: &[u8]) -> Result<ImportedProfile, ReadError> {
    let malformed = |problem: &str| ReadError::Malformed { format: FORMAT, problem: problem.into() };
    let document = json_tree::read(bytes, &SHAPE).ok_or_else(|| malformed("it is cut off or no JSON"))?;
    if document.nodes.is_empty() {
        return Err(malformed("it has no root_frame"));
    }
    let target = document.top.get("target_description").map_or("", |target| target.text());
    let program = target.strip_prefix("Program: ").unwrap_or(target);
    let program = if program.is_empty() { "Python" } else { program };
    let mut importer = Importer::new(program, "pyinstrument");
    importer.meta_mut().measure = Measure { name: "wall time".into(), unit: Unit::Time };
    if let Some(start) = document.top.get("start_time").and_then(json_tree::Scalar::number) {
        importer.meta_mut().start_time = (start * 1e6) as u64;
    }
    let name = ThreadName { pid: "0", process: program, tid: "0", thread: program };
    let mut queue = SampleQueue::new(importer.thread(name));
    let stacks = stacks(&mut importer, &document);
    for (stack, time) in stacks.into_iter().zip(own_times(&document)) {
        queue.add(&mut importer, Some(stack), time);
    }
    Ok(importer.finish(None))
}

fn stacks(importer: &mut Importer, document: &JsonTree) -> Vec<StackId> {
    let mut stacks = Vec::with_capacity(document.nodes.len());
    for node in &document.nodes {
        let [name, file, line, _, short] = &node.members[..] else { break };
        let file = if file.text().is_empty() { short } else { file };
        let start_line = position(line.number());
        let code = CodePosition {
            name: name.text(),
            file: Some(file.text()),
            start_line,
            ..CodePosition::default()
        };
        let frame = importer.frame(&code);
        let prefix = node.parent.and_then(|parent| stacks.get(parent).copied());
        stacks.push(importer.stack(prefix, frame));
    }
    stacks
}

/// The own time of each node, in ns.
fn own_times(document: &JsonTree) -> Vec<u64> {
    let time = |node: &json_tree::JsonNode| nanoseconds(node.members[3].number().unwrap_or(0.0), 1e9);
    let mut own: Vec<u64> = document.nodes.iter().map(time).collect();
    for node in &document.nodes {
        if let Some(parent) = node.parent {
            own[parent] = own[parent].saturating_sub(time(node));
        }
    }
    own
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_profile::stacks_of;

    #[test]
    fn own_time_is_without_that_of_children() {
        let text = r#"{"start_time":1700000000.5,"duration":0.5,"sample_count":5,"target_description":"Program: a.py","cpu_time":0.2,
            "root_frame":{"function":"<module>","file_path":"a.py","line_no":1,"time":0.5,"children":[
            {"function":"work","file_path":"a.py","line_no":7,"time":0.3,"children":[]},
            {"function":"read","file_path_short":"b.py","line_no":3,"time":0.1,"children":[]}]}}"#;
        let profile = read(text.as_bytes()).unwrap().profile;
        let expected = ["<module> 1", "<module>;read 1", "<module>;work 3"];
        assert_eq!(
            (stacks_of(&profile), profile.meta().interval),
            (expected.map(String::from).to_vec(), 100_000_000)
        );
        let measure = Measure { name: "wall time".into(), unit: Unit::Time };
        assert_eq!((&profile.meta().measure, profile.meta().start_time), (&measure, 1_700_000_000_500_000));
        assert!(read(b"{}").is_err() && read(b"x").is_err());
    }
}
