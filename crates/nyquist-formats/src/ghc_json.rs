//! The profile of a Haskell program as JSON (`+RTS -pj`), with a tree of cost centres.
//!
//! It is described in <https://downloads.haskell.org/ghc/latest/docs/users_guide/profiling.html>, "JSON profile
//! format".

use nyquist_profile::{FrameId, StackId, Unit};
use rustc_hash::FxHashMap;

use crate::error::{ImportedProfile, ReadError};
use crate::import::{CodePosition, Importer, ThreadName};
use crate::json_tree::{self, JsonNode, Scalar, TreeShape};
use crate::values::{SampleQueue, SampleValueKind, choose};

const FORMAT: &str = "a profile of GHC";

/// The list of cost centres, as a tree without children.
const CENTRES: TreeShape =
    TreeShape { root: "cost_centres", children: "", members: &["id", "label", "module", "src_loc"] };

/// The tree of cost centres. Its last members are the amounts, in the order of the values.
const CALLS: TreeShape =
    TreeShape { root: "profile", children: "children", members: &["id", "ticks", "alloc", "entries"] };

/// Reads a value: CPU time, which is ticks of the program's running threads, the default; allocated bytes; or how often
/// a cost centre was entered.
///
/// # Errors
/// If it is no such JSON, or does not have the requested value.
pub fn read_value(bytes: &[u8], requested: Option<&str>) -> Result<ImportedProfile, ReadError> {
    let malformed = |problem: &str| ReadError::Malformed { format: FORMAT, problem: problem.into() };
    let tree = |shape| json_tree::read(bytes, shape).ok_or_else(|| malformed("it is cut off or no JSON"));
    let (centres, calls) = (tree(&CENTRES)?, tree(&CALLS)?);
    if calls.nodes.is_empty() {
        return Err(malformed("it has no tree of cost centres"));
    }
    if calls.nodes[0].members[0].number().is_none() {
        return Err(malformed("its tree is not of cost centres"));
    }
    let micros = calls.top.get("tick_interval").and_then(Scalar::number).unwrap_or(1000.0);
    let tick = (micros * 1000.0) as u64;
    let values = [
        SampleValueKind { factor: tick, ..SampleValueKind::new("CPU time", Unit::Time) },
        SampleValueKind::new("allocated", Unit::Bytes),
        SampleValueKind::new("entries", Unit::Count),
    ];
    let at = choose(&values, requested, 0)?;
    let program = calls.top.get("program").map_or("", Scalar::text).rsplit('/').next().unwrap_or_default();
    let program = if program.is_empty() { "Haskell" } else { program };
    let mut importer = Importer::new(program, FORMAT);
    if at > 0 {
        importer.meta_mut().measure = values[at].measure();
    }
    let name = ThreadName { pid: "0", process: program, tid: "0", thread: program };
    let mut queue = SampleQueue::new(importer.thread(name));
    let known: FxHashMap<u64, Place<'_>> = centres.nodes.iter().map(|it| (id(it), place(it))).collect();
    let mut frames: FxHashMap<u64, FrameId> = FxHashMap::default();
    let mut stacks: Vec<StackId> = Vec::with_capacity(calls.nodes.len());
    for node in &calls.nodes {
        let prefix = node.parent.and_then(|parent| stacks.get(parent).copied());
        let centre = known.get(&id(node)).copied();
        // Many nodes have the same centre, whose name may be long.
        let frame = *frames.entry(id(node)).or_insert_with(|| frame(&mut importer, centre));
        let stack = importer.stack(prefix, frame);
        stacks.push(stack);
        let amount = node.members[1 + at].number().unwrap_or(0.0) as u64;
        queue.add(&mut importer, Some(stack), amount.saturating_mul(values[at].factor));
    }
    Ok(importer.finish(Some(tick).filter(|_| at == 0)))
}

fn id(node: &JsonNode) -> u64 {
    node.members[0].number().unwrap_or(0.0) as u64
}

fn place(node: &JsonNode) -> Place<'_> {
    Place { label: node.members[1].text(), module: node.members[2].text(), source: node.members[3].text() }
}

/// A cost centre's name and its place.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) module: &'a str,
    pub(crate) label: &'a str,
    /// As `src/Main.hs:7:3-9`, or `src/Main.hs:(7,1)-(9,4)` if it has several lines.
    pub(crate) source: &'a str,
}

/// The frame of a cost centre, which is called `Main.work`.
pub(crate) fn frame(importer: &mut Importer, centre: Option<Place<'_>>) -> FrameId {
    let name = centre.map_or_else(|| "(unknown)".to_owned(), |it| format!("{}.{}", it.module, it.label));
    let place = centre.and_then(|it| it.source.split_once(':'));
    let line = place.and_then(|(_, place)| {
        let digits = place.trim_start_matches('(');
        let end = digits.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(digits.len());
        digits[..end].parse().ok()
    });
    let file = place.map(|(file, _)| file);
    importer.frame(&CodePosition { name: &name, file, line, start_line: line, ..CodePosition::default() })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::test_profile::stacks_of;
    use crate::{Format, detect};

    pub(crate) const FILE: &str = r#"{"program": "/bin/app", "arguments": ["app"], "rts_arguments": ["-pj"], "end_time": "x",
        "initial_capabilities": 1, "total_time": 0.02, "total_ticks": 23, "tick_interval": 1000, "total_alloc": 900,
        "cost_centres": [{"id": 1, "label": "MAIN", "module": "MAIN", "src_loc": "<built-in>", "is_caf": false},
        {"id": 2, "label": "work", "module": "Main", "src_loc": "src/Main.hs:(7,1)-(9,4)", "is_caf": false}],
        "profile": {"id": 1, "entries": 0, "alloc": 100, "ticks": 3, "children": [
        {"id": 2, "entries": 5, "alloc": 800, "ticks": 20, "children": []}]}}"#;

    #[test]
    fn cost_centres_have_ticks_bytes_and_entries() {
        assert_eq!(detect(FILE.as_bytes(), "x"), Some(Format::GhcJson));
        let stacks = |requested| stacks_of(&read_value(FILE.as_bytes(), requested).unwrap().profile);
        assert_eq!(stacks(None), ["MAIN.MAIN 3", "MAIN.MAIN;Main.work 20"]);
        assert_eq!(stacks(Some("allocated")), ["MAIN.MAIN 1", "MAIN.MAIN;Main.work 8"]);
        assert_eq!(stacks(Some("entries")), ["MAIN.MAIN;Main.work 1"]);
        let profile = read_value(FILE.as_bytes(), None).unwrap().profile;
        assert_eq!((profile.meta().interval, profile.meta().measure.is_cpu_time()), (1_000_000, true));
        let work = profile.frames().iter().find(|it| profile.func_name(it.func) == "Main.work").unwrap();
        assert_eq!(work.line, Some(7));
        assert!(
            read_value(b"{}", None).is_err()
                && read_value(&FILE.as_bytes()[..FILE.len() - 40], None).is_err()
        );
        // A long name costs once. If it did for each node, this would take hours.
        let long = FILE.replace("work", &"x".repeat(1 << 19)).replace(
            r#"{"id": 2, "entries": 5, "alloc": 800, "ticks": 20, "children": []}"#,
            &vec![r#"{"id":2,"ticks":1}"#; 100_000].join(","),
        );
        assert_eq!(read_value(long.as_bytes(), None).unwrap().profile.funcs().len(), 2);
        // As deep as calls are.
        let nodes = 5000;
        let deep = format!(
            r#"{{"tick_interval":1000,"cost_centres":[],"profile":{}{{"id":1,"ticks":1}}{}}}"#,
            r#"{"id":1,"ticks":1,"children":["#.repeat(nodes),
            "]}".repeat(nodes)
        );
        let deep = read_value(deep.as_bytes(), None).unwrap().profile;
        assert_eq!(deep.threads()[0].samples.len(), nodes + 1);
    }
}
