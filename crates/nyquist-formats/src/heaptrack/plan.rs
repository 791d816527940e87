//! The order of allocations and frees that gives the known sums: what was allocated, what stayed, and what was there at
//! the peak.
//!
//! A profile has groups of blocks, and not each block's time. heaptrack finds the peak by counting, so blocks are kept
//! only as long as there are no more of them than at the known peak.

use std::collections::VecDeque;

use nyquist_profile::{AllocatedGroup, AllocationMeasure, StackId};
use rustc_hash::FxHashMap;

/// Blocks of one stack that are allocated together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Blocks {
    pub(super) stack: Option<StackId>,
    pub(super) bytes: u64,
    pub(super) count: u64,
}

/// What happens to blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Allocated,
    Freed,
    /// Each is freed before the next one is allocated.
    OneByOne,
    /// All are allocated, and then all are freed.
    AllAtOnce,
}

/// Blocks, with the time at which something happens to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) time: u64,
    pub(super) blocks: Blocks,
    pub(super) change: Change,
}

/// Blocks with their times.
#[derive(Clone, Copy)]
struct Part {
    blocks: Blocks,
    start: u64,
    /// `None` if they stay.
    end: Option<u64>,
    is_at_peak: bool,
    temporary: bool,
}

/// What is to be done next, in the order of time; at one time in the order of these kinds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Turn {
    Begin,
    AfterPeak,
    End,
}

/// Orders the blocks of groups.
pub(super) fn plan(groups: &[AllocatedGroup]) -> Vec<Step> {
    let parts = parts(groups);
    let at_peak = || parts.iter().filter(|part| part.is_at_peak);
    let peak = at_peak().map(|part| part.start).max().unwrap_or(0);
    let most = at_peak().fold(0_u64, |sum, part| sum.saturating_add(part.blocks.bytes));
    let mut turns: Vec<(u64, Turn, usize)> = Vec::new();
    for (number, part) in parts.iter().enumerate() {
        let is_late = !part.is_at_peak && part.end.is_none();
        let begin = if is_late { (part.start.max(peak), Turn::AfterPeak) } else { (part.start, Turn::Begin) };
        turns.push((begin.0, begin.1, number));
        let end = part.end.map(|end| if part.is_at_peak { end.max(peak) } else { end });
        turns.extend(end.map(|end| (end, Turn::End, number)));
    }
    turns.sort_unstable();
    let mut planner = Planner {
        parts: &parts,
        peak,
        most,
        held: 0,
        open: vec![false; parts.len()],
        others: VecDeque::new(),
        late: Vec::new(),
        steps: Vec::new(),
        early: Vec::new(),
    };
    for (time, turn, number) in turns {
        if turn == Turn::End { planner.end(time, number) } else { planner.begin(time, number) }
    }
    planner.finish()
}

struct Planner<'a> {
    parts: &'a [Part],
    /// When the peak was.
    peak: u64,
    /// The bytes of the peak.
    most: u64,
    held: u64,
    open: Vec<bool>,
    /// What is held and was not there at the peak, the oldest first.
    others: VecDeque<usize>,
    /// What stays, and had no room yet.
    late: Vec<usize>,
    steps: Vec<Step>,
    /// What had no room later.
    early: Vec<Step>,
}

impl Planner<'_> {
    fn begin(&mut self, time: u64, number: usize) {
        let Some(part) = self.parts.get(number).copied() else { return };
        if part.is_at_peak {
            while self.held.saturating_add(part.blocks.bytes) > self.most
                && let Some(other) = self.others.pop_front()
            {
                self.end(time, other);
            }
            return self.open(time, number);
        }
        let has_room = self.held.saturating_add(part.blocks.bytes) <= self.most;
        let Some(end) = part.end else {
            if has_room {
                return self.open(time, number);
            }
            return self.late.push(number);
        };
        // They were not there at the peak, so they were freed before, or allocated later.
        let is_at_once = end <= part.start || (part.start <= self.peak && self.peak <= end);
        if part.temporary {
            self.step(time, part.blocks, Change::OneByOne);
        } else if is_at_once || !has_room {
            self.steps_at_once(time, part.blocks);
        } else {
            self.others.push_back(number);
            self.open(time, number);
        }
    }

    /// Allocates and frees blocks, as many at a time as there is room for.
    fn steps_at_once(&mut self, time: u64, blocks: Blocks) {
        let has_room = self.held.saturating_add(blocks.bytes) <= self.most;
        self.step(time, blocks, if has_room { Change::AllAtOnce } else { Change::OneByOne });
    }

    fn open(&mut self, time: u64, number: usize) {
        let Some((part, open)) = self.parts.get(number).zip(self.open.get_mut(number)) else { return };
        *open = true;
        self.held = self.held.saturating_add(part.blocks.bytes);
        let blocks = part.blocks;
        self.step(time, blocks, Change::Allocated);
    }

    /// Frees blocks, if they are held.
    fn end(&mut self, time: u64, number: usize) {
        let Some((part, open)) = self.parts.get(number).zip(self.open.get_mut(number)) else { return };
        if std::mem::take(open) {
            self.held = self.held.saturating_sub(part.blocks.bytes);
            let blocks = part.blocks;
            self.step(time, blocks, Change::Freed);
        }
    }

    fn step(&mut self, time: u64, blocks: Blocks, change: Change) {
        let largest = blocks.bytes.div_ceil(blocks.count.max(1));
        if change == Change::OneByOne && self.held.saturating_add(largest) > self.most {
            // There is room for each block before all others.
            self.early.push(Step { time: 0, blocks, change });
            return;
        }
        self.steps.push(Step { time, blocks, change });
    }

    fn finish(mut self) -> Vec<Step> {
        let time = self.steps.last().map_or(0, |step| step.time);
        for number in std::mem::take(&mut self.late) {
            self.open(time, number);
        }
        self.early.append(&mut self.steps);
        self.early
    }
}

/// The blocks of groups that have the same fate. What rounding takes from a part is added to the next one of the stack.
fn parts(groups: &[AllocatedGroup]) -> Vec<Part> {
    let mut rests: FxHashMap<Option<StackId>, f64> = FxHashMap::default();
    let mut parts = Vec::new();
    for group in groups {
        let rest = rests.entry(group.stack).or_default();
        for (bytes, count, part) in amounts(group) {
            if bytes <= 0.0 && count <= 0.0 {
                continue;
            }
            let whole = (count + *rest).round().max(1.0);
            *rest += count - whole;
            let blocks = Blocks { stack: group.stack, bytes: bytes.round() as u64, count: whole as u64 };
            parts.push(Part { blocks, ..part });
        }
    }
    parts
}

/// The parts of a group with their bytes and blocks: each of what stayed and what was freed, at the peak and not, and
/// what was freed at once.
fn amounts(group: &AllocatedGroup) -> [(f64, f64, Part); 5] {
    use AllocationMeasure::{Allocations, Live, LiveBlocks, Peak, PeakBlocks, Temporary, Total};
    let split = |all, live, peak| {
        let (all, live, peak) = (group.amount(all), group.amount(live), group.amount(peak));
        let live_at_peak = peak.min(live);
        let (freed, freed_at_peak) = ((all - live).max(0.0), peak - live_at_peak);
        [live_at_peak, live - live_at_peak, freed_at_peak, (freed - freed_at_peak).max(0.0)]
    };
    let [bytes, mut blocks] = [split(Total, Live, Peak), split(Allocations, LiveBlocks, PeakBlocks)];
    let mut bytes = bytes;
    let temporary = group.amount(Temporary).min(blocks[3]);
    let temporary_bytes = if blocks[3] > 0.0 { bytes[3] * temporary / blocks[3] } else { 0.0 };
    blocks[3] -= temporary;
    bytes[3] -= temporary_bytes;
    let none = Blocks { stack: group.stack, bytes: 0, count: 0 };
    let part =
        |end, is_at_peak, temporary| Part { blocks: none, start: group.start, end, is_at_peak, temporary };
    let end = Some(group.end.unwrap_or(group.start));
    [
        (bytes[0], blocks[0], part(None, true, false)),
        (bytes[1], blocks[1], part(None, false, false)),
        (bytes[2], blocks[2], part(end, true, false)),
        (bytes[3], blocks[3], part(end, false, false)),
        (temporary_bytes, temporary, part(end, false, true)),
    ]
}
