//! The profile of a Haskell program as JSON (`+RTS -pj`), with a tree of cost centres.
//!
//! It is described in <https://downloads.haskell.org/ghc/latest/docs/users_guide/profiling.html>, "JSON profile
//! format".

use nyquist_profile::{StackId, Unit};
use rustc_hash::FxHashMap;
use serde::Deserialize;

use crate::error::{ImportedProfile, ReadError};
use crate::import::{CodePosition, Importer, ThreadName};
use crate::values::{SampleQueue, SampleValueKind, choose};

const FORMAT: &str = "a profile of GHC";

/// The deepest tree that is read. GHC's own are as deep as calls of different cost centres.
const MAX_DEPTH: usize = 100;

#[derive(Deserialize)]
struct GhcProfile {
    program: String,
    /// In µs.
    tick_interval: u64,
    cost_centres: Vec<CostCentre>,
    profile: CostNode,
}

#[derive(Deserialize)]
struct CostCentre {
    id: u64,
    label: String,
    module: String,
    #[serde(default)]
    src_loc: String,
}

impl CostCentre {
    fn place(&self) -> Place<'_> {
        Place { module: &self.module, label: &self.label, source: &self.src_loc }
    }
}

#[derive(Deserialize)]
struct CostNode {
    id: u64,
    #[serde(default)]
    entries: u64,
    #[serde(default)]
    alloc: u64,
    #[serde(default)]
    ticks: u64,
    #[serde(default)]
    children: Vec<CostNode>,
}

/// Reads a value: CPU time, which is ticks of the program's running threads, the default; allocated bytes; or how often
/// a cost centre was entered.
///
/// # Errors
/// If it is no such JSON, or does not have the wanted value.
pub fn read_value(bytes: &[u8], wanted: Option<&str>) -> Result<ImportedProfile, ReadError> {
    let file: GhcProfile =
        serde_json::from_slice(bytes).map_err(|error| ReadError::Json { format: FORMAT, error })?;
    let tick = file.tick_interval.saturating_mul(1000);
    let values = [
        SampleValueKind { factor: tick, ..SampleValueKind::new("CPU time", Unit::Time) },
        SampleValueKind::new("allocated", Unit::Bytes),
        SampleValueKind::new("entries", Unit::Count),
    ];
    let at = choose(&values, wanted, 0)?;
    let program = file.program.rsplit('/').next().unwrap_or_default();
    let mut importer = Importer::new(program, FORMAT);
    if at > 0 {
        importer.meta_mut().measure = values[at].measure();
    }
    let thread = importer.thread(ThreadName { pid: "0", process: program, tid: "0", thread: program });
    let amount =
        |node: &CostNode| [node.ticks, node.alloc, node.entries][at].saturating_mul(values[at].factor);
    let centres: FxHashMap<u64, &CostCentre> = file.cost_centres.iter().map(|it| (it.id, it)).collect();
    let mut queue = SampleQueue::new(thread);
    let mut left_out = 0;
    let mut waiting: Vec<(&CostNode, Option<StackId>, usize)> = vec![(&file.profile, None, 0)];
    while let Some((node, prefix, depth)) = waiting.pop() {
        let stack = Some(push(&mut importer, prefix, centres.get(&node.id).map(|it| it.place())));
        queue.add(&mut importer, stack, amount(node));
        if depth < MAX_DEPTH {
            waiting.extend(node.children.iter().rev().map(|child| (child, stack, depth + 1)));
        } else {
            left_out += node.children.len() as u64;
        }
    }
    importer.note_left_out(left_out, "cost centres below a hundred others");
    Ok(importer.finish(Some(tick).filter(|_| at == 0)))
}

/// A cost centre's name and its place.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) module: &'a str,
    pub(crate) label: &'a str,
    /// As `src/Main.hs:7:3-9`, or `src/Main.hs:(7,1)-(9,4)` if it has several lines.
    pub(crate) source: &'a str,
}

/// The stack with a cost centre, which is called `Main.work`.
pub(crate) fn push(importer: &mut Importer, prefix: Option<StackId>, centre: Option<Place<'_>>) -> StackId {
    let name = centre.map_or_else(|| "(unknown)".to_owned(), |it| format!("{}.{}", it.module, it.label));
    let place = centre.and_then(|it| it.source.split_once(':'));
    let line = place.and_then(|(_, place)| {
        let digits = place.trim_start_matches('(');
        let end = digits.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(digits.len());
        digits[..end].parse().ok()
    });
    let file = place.map(|(file, _)| file);
    let frame = importer.frame(&CodePosition {
        name: &name,
        file,
        line,
        start_line: line,
        ..CodePosition::default()
    });
    importer.stack(prefix, frame)
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
        let stacks = |wanted| stacks_of(&read_value(FILE.as_bytes(), wanted).unwrap().profile);
        assert_eq!(stacks(None), ["MAIN.MAIN 3", "MAIN.MAIN;Main.work 20"]);
        assert_eq!(stacks(Some("allocated")), ["MAIN.MAIN 1", "MAIN.MAIN;Main.work 8"]);
        assert_eq!(stacks(Some("entries")), ["MAIN.MAIN;Main.work 1"]);
        let profile = read_value(FILE.as_bytes(), None).unwrap().profile;
        assert_eq!((profile.meta().interval, profile.meta().measure.is_cpu_time()), (1_000_000, true));
        let work = profile.frames().iter().find(|it| profile.func_name(it.func) == "Main.work").unwrap();
        assert_eq!(work.line, Some(7));
        assert!(read_value(b"{}", None).is_err());
    }
}
