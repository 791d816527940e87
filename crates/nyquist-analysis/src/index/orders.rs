//! Functions in the order of their names, and lines in the order of their files. Both are computed on first
//! use, and compared as numbers from then on.

use nyquist_profile::{Frame, FuncId, Profile, SourceId};
use rustc_hash::FxHashMap;

use crate::index::forest::Forest;
use crate::index::function_info::{FunctionInfo, function_count};
use crate::index::self_and_total::NodeKeys;

/// Functions ordered by name, and the functions of all nodes.
#[derive(Debug)]
pub(crate) struct FunctionOrder {
    /// The rank of each function by name. Functions with the same name are in the order of their ids.
    pub(crate) rank: Vec<u32>,
    /// The functions of the nodes.
    pub(crate) keys: NodeKeys,
}

impl FunctionOrder {
    pub(crate) fn new(profile: &Profile, forest: &Forest) -> Self {
        let count = function_count(profile);
        let name = |func: usize| FunctionInfo::new(profile, FuncId::from_index(func)).name;
        let mut order: Vec<_> = (0..count).map(|func| (name(func), func)).collect();
        order.sort_unstable();
        let mut rank = vec![0; count];
        for (place, (_, func)) in order.into_iter().enumerate() {
            rank[func] = place as u32;
        }
        let keys = NodeKeys::new(forest, count, |node| forest.func[node]);
        Self { rank, keys }
    }
}

/// A source line.
pub(crate) type Position = (Option<SourceId>, Option<u32>);

/// The line of a frame.
pub(crate) fn line_of(profile: &Profile, frame: &Frame) -> Position {
    (profile.frame_source(frame), profile.frame_line(frame))
}

/// The lines of all frames.
#[derive(Debug)]
pub(crate) struct LineOrder {
    /// The lines, ordered by the paths of their files, then by number.
    pub(crate) lines: Vec<Position>,
    /// The line of each frame.
    pub(crate) of_frame: Vec<u32>,
    /// The lines of the nodes.
    pub(crate) keys: NodeKeys,
}

impl LineOrder {
    pub(crate) fn new(profile: &Profile, forest: &Forest) -> Self {
        let frames = profile.frames().iter();
        let mut lines: Vec<_> = frames.map(|frame| line_of(profile, frame)).collect();
        let path = |source: SourceId| profile.string(profile.source(source).filename);
        lines.sort_unstable();
        lines.dedup();
        // In the order of source ids first, so that paths are compared once per source.
        lines.sort_by(|a, b| {
            if a.0 == b.0 { a.1.cmp(&b.1) } else { a.0.map(path).cmp(&b.0.map(path)).then(a.1.cmp(&b.1)) }
        });
        let number: FxHashMap<_, _> =
            lines.iter().zip(0_u32..).map(|(&line, number)| (line, number)).collect();
        let frames = profile.frames().iter();
        let of_frame: Vec<_> = frames.map(|frame| number[&line_of(profile, frame)]).collect();
        let keys = NodeKeys::new(forest, lines.len(), |node| {
            of_frame[profile.stacks()[forest.stack[node] as usize].frame.index()]
        });
        Self { lines, of_frame, keys }
    }
}
