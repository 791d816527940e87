//! Reads V8's CPU profiles (`.cpuprofile`) from `node --cpu-prof` and `DevTools`: the type `Profiler.Profile` of the
//! `DevTools` protocol (<https://chromedevtools.github.io/devtools-protocol/tot/Profiler/#type-Profile>).

use std::io::Read;
use std::{fmt, iter};

use nyquist_profile::ThreadIndex;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer as _};

use super::samples::{CpuProfileSamples, Step};
use super::tree::{Node, Tree, TreeBuilder};
use crate::error::{ImportedProfile, ReadError};
use crate::import::{Importer, ThreadName};
use crate::json::nanoseconds;
use crate::number_list::{EachOf, NumberList};

pub(super) const FORMAT: &str = "a CPU profile of V8";

/// Reads a CPU profile, whose text is never in memory as a whole. Each sample stands for the time until the next one,
/// as in `DevTools`, because V8's clock is uneven. The last one stands for the time until the end. Samples of `(idle)`
/// are waiting.
///
/// # Errors
/// If it is no such JSON, or its nodes are no tree.
pub fn read(text: impl Read) -> Result<ImportedProfile, ReadError> {
    let mut importer = Importer::new("JavaScript", "V8 CPU profile");
    let name = ThreadName { pid: "0", process: "JavaScript", tid: "0", thread: "JavaScript" };
    let thread = importer.thread(name);
    let mut document = serde_json::Deserializer::from_reader(text);
    let mut reader = FileReader { importer: &mut importer, thread, file: CpuProfileFile::default() };
    let read = document.deserialize_map(&mut reader).and_then(|()| document.end());
    read.map_err(|error| ReadError::Json { format: FORMAT, error })?;
    let unknown = reader.finish();
    importer.note_left_out(unknown, "samples of nodes that are not in the tree");
    Ok(importer.finish(None))
}

/// What is known of a file. What is a part of the profile is not kept here.
#[derive(Default)]
struct CpuProfileFile {
    tree: Option<Tree>,
    /// In ns.
    start: Option<u64>,
    end: Option<u64>,
    /// The node of each sample.
    nodes: Option<NumberList>,
    /// The time between a sample and the one before it, as a [`Step`]. They are kept only if the rest is not known
    /// when they are read, which V8 writes before.
    deltas: NumberList,
    /// The number of samples of unknown nodes, if the samples are in the profile.
    unknown: Option<u64>,
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

/// Reads the document, and adds its nodes and samples to a profile.
struct FileReader<'a> {
    importer: &'a mut Importer,
    thread: ThreadIndex,
    file: CpuProfileFile,
}

impl FileReader<'_> {
    /// Adds the samples, if that was not possible before. If deltas are missing at the end, there is no time between
    /// samples. Returns the number of samples of unknown nodes.
    fn finish(self) -> u64 {
        let CpuProfileFile { tree, start, end, nodes, deltas, unknown } = self.file;
        unknown.unwrap_or_else(|| {
            let (tree, nodes) = (tree.unwrap_or_default(), nodes.unwrap_or_default());
            let place = (self.thread, start.unwrap_or(0));
            let mut samples = CpuProfileSamples::new(self.importer, &tree, place);
            for (node, step) in nodes.into_iter().zip(deltas.into_iter().chain(iter::repeat(0))) {
                samples.add_after(node, step);
            }
            samples.finish(end.unwrap_or(0))
        })
    }

    fn read_nodes<'de, A: MapAccess<'de>>(&mut self, members: &mut A) -> Result<(), A::Error> {
        let mut tree = TreeBuilder::default();
        members.next_value_seed(EachOf::new(|node: Node| tree.add(self.importer, &node)))?;
        self.file.tree = Some(tree.finish(self.importer));
        Ok(())
    }

    /// Reads the times between samples. The samples become a part of the profile at once if the rest is known.
    fn read_deltas<'de, A: MapAccess<'de>>(&mut self, members: &mut A) -> Result<(), A::Error> {
        let file = &mut self.file;
        let (Some(tree), Some(start), Some(end), Some(nodes), None) =
            (&file.tree, file.start, file.end, &mut file.nodes, file.unknown)
        else {
            file.deltas = NumberList::default();
            return members.next_value_seed(EachOf::new(|Step(step)| file.deltas.push(step)));
        };
        let mut samples = CpuProfileSamples::new(self.importer, tree, (self.thread, start));
        let mut nodes = std::mem::take(nodes).into_iter();
        members.next_value_seed(EachOf::new(|Step(step)| {
            if let Some(node) = nodes.next() {
                samples.add_after(node, step);
            }
        }))?;
        for node in nodes {
            samples.add_after(node, 0);
        }
        file.unknown = Some(samples.finish(end));
        Ok(())
    }
}

impl<'de> Visitor<'de> for &mut FileReader<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(FORMAT)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(member) = members.next_key()? {
            match member {
                Member::Nodes => self.read_nodes(&mut members)?,
                Member::StartTime => self.file.start = Some(nanoseconds(members.next_value()?, 1000.0)),
                Member::EndTime => self.file.end = Some(nanoseconds(members.next_value()?, 1000.0)),
                Member::Samples => {
                    let mut nodes = NumberList::default();
                    members.next_value_seed(EachOf::new(|node: u64| nodes.push(node)))?;
                    self.file.nodes = Some(nodes);
                }
                Member::TimeDeltas => self.read_deltas(&mut members)?,
                Member::Other => drop(members.next_value::<IgnoredAny>()?),
            }
        }
        let has_nodes = self.file.tree.is_some();
        if has_nodes { Ok(()) } else { Err(serde::de::Error::missing_field("nodes")) }
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

    /// Samples in any order of members, and with a clock that goes back, have the times that a sorted list gives them.
    #[test]
    fn samples_are_those_of_a_sorted_list() {
        const NODES: &str = r#""nodes":[{"id":1,"callFrame":{"functionName":"a"}},{"id":2,"callFrame":{"functionName":"b"}},
            {"id":3,"callFrame":{"functionName":"(idle)"}}]"#;
        let check = |count: u64, delta: fn(u64) -> i64| {
            let nodes: Vec<u64> = (0..count).map(|at| 1 + (at * 7 + at / 3) % 4).collect();
            let deltas: Vec<i64> = (0..count).map(delta).collect();
            let mut clock = 100_000_000;
            let times = deltas.iter().map(|delta| {
                clock += delta;
                clock
            });
            let mut sorted: Vec<_> = times.zip(nodes.iter().copied()).collect();
            sorted.sort_by_key(|&(time, _)| time);
            let ends = sorted.iter().skip(1).map(|&(time, _)| time);
            let mut sums = [0; 5];
            for (&(time, node), end) in sorted.iter().zip(ends) {
                sums[node as usize] += end - time;
            }
            let (start, end) =
                (r#""startTime":100000000"#, format!(r#""endTime":{}"#, sorted[sorted.len() - 1].0));
            let (nodes, deltas) = (format!(r#""samples":{nodes:?}"#), format!(r#""timeDeltas":{deltas:?}"#));
            for order in [
                [NODES, start, &end, &nodes, &deltas],
                [&deltas, &nodes, &end, start, NODES],
                [NODES, &nodes, &deltas, start, &end],
            ] {
                let read = read(format!("{{{}}}", order.join(",")).as_bytes()).unwrap();
                let interval = read.profile.meta().interval as i64 / 1000;
                let of = |texts: Vec<String>, name: &str| -> i64 {
                    let sum = texts.iter().find_map(|text| text.strip_prefix(name)?.trim().parse().ok());
                    sum.unwrap_or(0) * interval
                };
                let (stacks, waits) = (stacks_of(&read.profile), waits_of(&read.profile));
                assert_eq!(
                    [of(stacks.clone(), "a"), of(stacks, "b"), of(waits, "(idle)")],
                    sums[1..4],
                    "{count}"
                );
                assert_eq!(read.notes.len(), 1);
            }
        };
        check(50, |at| (at % 7) as i64);
        check(50, |at| if at % 5 == 3 { -4 } else { 9 });
        // A clock that is set back, far behind what is in the profile then.
        check(30_000, |at| if at == 20_000 { -99_990 } else { 5 });
        check(30_000, |at| if at % 9_000 == 8_999 { -45_003 } else { 5 });
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
