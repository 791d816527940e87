//! Reads V8's CPU profiles (`.cpuprofile`) from `node --cpu-prof` and `DevTools`: the type `Profiler.Profile` of the
//! `DevTools` protocol (<https://chromedevtools.github.io/devtools-protocol/tot/Profiler/#type-Profile>).

use std::fmt;
use std::io::Read;

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::samples::{CpuProfileSamples, signed_step};
use super::tree::{Node, Tree};
use crate::error::{ImportedProfile, ReadError};
use crate::import::{Importer, ThreadName};
use crate::json::nanoseconds;
use crate::number_list::{ListOf, NumberList};

pub(super) const FORMAT: &str = "a CPU profile of V8";

/// Reads a CPU profile, whose text is never in memory as a whole. Each sample stands for the time until the next one, as
/// in `DevTools`, because V8's clock is uneven. The last one stands for the time until the end. Samples of `(idle)` are
/// waiting.
///
/// # Errors
/// If it is no such JSON, or its nodes are no tree.
pub fn read(text: impl Read) -> Result<ImportedProfile, ReadError> {
    let mut importer = Importer::new("JavaScript", "V8 CPU profile");
    let name = ThreadName { pid: "0", process: "JavaScript", tid: "0", thread: "JavaScript" };
    let thread = importer.thread(name);
    let mut document = serde_json::Deserializer::from_reader(text);
    let read = FileVisitor(&mut importer).deserialize(&mut document);
    let members = read.and_then(|members| document.end().map(|()| members));
    let CpuProfileFile { tree, start, end, nodes, deltas } =
        members.map_err(|error| ReadError::Json { format: FORMAT, error })?;
    let mut samples = CpuProfileSamples::of(thread, start, nodes, deltas);
    samples.end_at(end);
    let unknown = samples.add_to(&mut importer, &tree);
    importer.note_left_out(unknown, "samples of nodes that are not in the tree");
    Ok(importer.finish(None))
}

/// What a file has. Its nodes are stacks at once, so that they are not in memory while its samples are read.
#[derive(Default)]
struct CpuProfileFile {
    tree: Tree,
    /// In ns.
    start: u64,
    end: u64,
    /// The node of each sample.
    nodes: NumberList,
    /// The time between a sample and the one before it, as [`signed_step`].
    deltas: NumberList,
}

/// The members of the document.
#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum Member {
    Nodes,
    StartTime,
    EndTime,
    Samples,
    TimeDeltas,
    #[serde(other)]
    Other,
}

/// Reads the document, and adds its nodes to a profile.
struct FileVisitor<'a>(&'a mut Importer);

impl<'de> DeserializeSeed<'de> for FileVisitor<'_> {
    type Value = CpuProfileFile;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for FileVisitor<'_> {
    type Value = CpuProfileFile;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(FORMAT)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut file = CpuProfileFile::default();
        let mut has_nodes = false;
        while let Some(member) = members.next_key()? {
            match member {
                Member::Nodes => {
                    file.tree.add(self.0, &members.next_value::<Vec<Node>>()?);
                    has_nodes = true;
                }
                Member::StartTime => file.start = nanoseconds(members.next_value()?, 1000.0),
                Member::EndTime => file.end = nanoseconds(members.next_value()?, 1000.0),
                Member::Samples => file.nodes = members.next_value_seed(ListOf::new(|node: u64| node))?,
                Member::TimeDeltas => file.deltas = members.next_value_seed(ListOf::new(signed_step))?,
                Member::Other => drop(members.next_value::<IgnoredAny>()?),
            }
        }
        if has_nodes { Ok(file) } else { Err(serde::de::Error::missing_field("nodes")) }
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
        assert!(read(&b"{}"[..]).is_err());
        assert!(read(&b"[1"[..]).is_err());
    }
}
