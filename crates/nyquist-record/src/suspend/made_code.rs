//! Code that a process has made at run time: executable memory that is of no image.

use std::ops::Range;

use nyquist_convert::event::{EventKind, MappedFile, Mapping, Pid};
use nyquist_object::{Avma, FileOffset};

use super::images::{Images, unmap};

/// The path of memory without a file.
const NO_FILE: &str = "//anon";
/// Looks may take one of this many parts of the time, because they go through all memory of a process. But a look for
/// an address that was sampled is not put off for long: code that is found later is not in the stacks before.
const PART_OF_LOOKS: u64 = 20;
/// The shortest and the longest time between two looks, in nanoseconds.
const MIN_PAUSE_NS: u64 = 5_000_000;
const MAX_PAUSE_NS: u64 = 10_000_000_000;
/// The longest time between two looks for addresses that were sampled.
const MAX_PAUSE_OF_SOUGHT_NS: u64 = 400_000_000;
/// The most pieces of memory that are known of a process.
const MAX_RANGES: usize = 1024;

/// The code that a process has made.
#[derive(Debug, Default)]
pub(crate) struct MadeCode {
    /// By address. None overlaps another or an image.
    ranges: Vec<Range<u64>>,
    /// An address that was sampled, and that is in nothing known.
    sought: Option<u64>,
    looked_at: u64,
    /// When it may be looked for without such an address, and with one.
    next_look: u64,
    next_look_for_sought: u64,
}

impl MadeCode {
    /// Whether an address is in such code.
    pub(crate) fn has(&self, address: u64) -> bool {
        let after = self.ranges.partition_point(|range| range.start <= address);
        after.checked_sub(1).and_then(|at| self.ranges.get(at)).is_some_and(|range| range.contains(&address))
    }

    /// Asks for a look, because an address was sampled that is in nothing known.
    pub(crate) fn seek(&mut self, address: u64) {
        self.sought = Some(address);
    }

    /// Whether a look is asked for.
    pub(crate) fn is_sought(&self) -> bool {
        self.sought.is_some()
    }

    /// Whether a look is due. Code that is only ever a caller is found by looks that nothing asked for.
    pub(crate) fn is_due(&self, now: u64) -> bool {
        now >= if self.is_sought() { self.next_look_for_sought } else { self.next_look }
    }

    /// Takes over what a look between two times has found, less what is of images. Returns the changes. New code gets
    /// the time of the former look, because samples since then may be in it.
    pub(crate) fn accept(
        &mut self,
        pid: u32,
        (began, ended): (u64, u64),
        (found, images): (Vec<Range<u64>>, &Images),
    ) -> Vec<(u64, EventKind)> {
        self.sought = None;
        let before = std::mem::replace(&mut self.looked_at, ended);
        let pause = (ended.saturating_sub(began) * PART_OF_LOOKS).clamp(MIN_PAUSE_NS, MAX_PAUSE_NS);
        self.next_look = ended.saturating_add(pause);
        self.next_look_for_sought = ended.saturating_add(pause.min(MAX_PAUSE_OF_SOUGHT_NS));
        let of_no_image = found.into_iter().filter(|range| !images.overlap(range));
        let former = std::mem::replace(&mut self.ranges, merged(of_no_image.collect()));
        let gone = former.iter().filter(|range| !self.ranges.contains(range)).map(|range| unmap(pid, range));
        let new = self.ranges.iter().filter(|range| !former.contains(range)).map(|range| map(pid, range));
        gone.chain(new).map(|change| (before, change)).collect()
    }

    /// Leaves memory to images that were found there. It was not known that they are images. A sampled address that is
    /// in one is sought no longer.
    pub(crate) fn leave_to(&mut self, images: &Images, pid: u32, time: u64) -> Vec<(u64, EventKind)> {
        self.sought = self.sought.filter(|address| images.find(*address).is_none());
        let gone = self.ranges.extract_if(.., |range| images.overlap(range));
        gone.map(|range| (time, unmap(pid, &range))).collect()
    }
}

/// The ranges in the order of their addresses, and neighbours as one: a system lists pages of different rights apart.
fn merged(mut found: Vec<Range<u64>>) -> Vec<Range<u64>> {
    found.retain(|range| range.start < range.end);
    found.sort_by_key(|range| range.start);
    let mut merged: Vec<Range<u64>> = Vec::new();
    for range in found {
        match merged.last_mut().filter(|last| range.start <= last.end) {
            Some(last) => last.end = last.end.max(range.end),
            None => merged.push(range),
        }
    }
    merged.truncate(MAX_RANGES);
    merged
}

fn map(pid: u32, range: &Range<u64>) -> EventKind {
    EventKind::Map(Mapping {
        pid: Some(Pid(pid)),
        start: Avma(range.start),
        len: range.end - range.start,
        offset: FileOffset(0),
        path: NO_FILE.to_owned(),
        identity: MappedFile::Unknown,
    })
}

#[cfg(test)]
mod tests {
    use super::super::system::{ListedImage, LoadedModule};
    use super::*;

    fn found(made: &mut MadeCode, ranges: &[Range<u64>], at: u64) -> Vec<(u64, EventKind)> {
        made.accept(7, (at, at + 1000), (ranges.to_vec(), &Images::default()))
    }

    #[test]
    fn code_is_reported_once_and_as_it_grows() {
        let mut made = MadeCode::default();
        let both = [0x3000..0x4000, 0x9000..0xa000, 0x2000..0x3000, 5..5];
        let first = found(&mut made, &both, 10_000);
        assert_eq!(first, [(0, map(7, &(0x2000..0x4000))), (0, map(7, &(0x9000..0xa000)))]);
        assert_eq!(found(&mut made, &both, 20_000), []);
        let grown = 0x2000..0x5000;
        let next = found(&mut made, &[grown], 30_000);
        let expected = [unmap(7, &(0x2000..0x4000)), unmap(7, &(0x9000..0xa000)), map(7, &(0x2000..0x5000))];
        assert_eq!(next, expected.map(|change| (21_000, change)));
        assert_eq!([0x1fff, 0x2000, 0x4fff, 0x5000].map(|at| made.has(at)), [false, true, true, false]);
    }

    #[test]
    fn what_is_of_an_image_is_left_to_it() {
        let (mut made, mut images) = (MadeCode::default(), Images::default());
        let before_it_is_known = 0x2000..0x4000;
        found(&mut made, &[before_it_is_known], 0);
        let image = LoadedModule {
            listed: ListedImage { start: 0x3000, stamp: 0 },
            len: 0x2000,
            path: "/lib/late".into(),
            identity: MappedFile::Unknown,
            makes_calls: false,
        };
        images.accept(7, 50, (&[image.listed], vec![image]));
        assert_eq!(made.leave_to(&images, 7, 40), [(40, unmap(7, &(0x2000..0x4000)))]);
        let again = made.accept(7, (60, 70), (vec![0x4000..0x5000, 0x6000..0x7000], &images));
        assert_eq!(again, [(1000, map(7, &(0x6000..0x7000)))]);
    }

    #[test]
    fn long_looks_are_rare_and_ranges_are_bounded() {
        let mut made = MadeCode::default();
        let many: Vec<_> = (0..2 * MAX_RANGES as u64).map(|at| at * 0x2000..at * 0x2000 + 0x1000).collect();
        assert_eq!(made.accept(7, (0, MIN_PAUSE_NS), (many, &Images::default())).len(), MAX_RANGES);
        let next = MIN_PAUSE_NS + PART_OF_LOOKS * MIN_PAUSE_NS;
        assert!(!made.is_due(next - 1) && made.is_due(next));
        made.accept(7, (next, next + MAX_PAUSE_OF_SOUGHT_NS), (Vec::new(), &Images::default()));
        let soon = next + 2 * MAX_PAUSE_OF_SOUGHT_NS;
        assert!(!made.is_due(soon), "nothing is sought");
        made.seek(0x70_0000);
        assert!(!made.is_due(soon - 1) && made.is_due(soon));
    }
}
