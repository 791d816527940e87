//! The images that a process has loaded, and what changes between two looks at them.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use nyquist_convert::event::{EventKind, Mapping, Pid};
use nyquist_object::{Avma, FileOffset};

use super::system::{ListedImage, LoadedModule};

/// The shortest and the longest time between two looks at the images of a process that runs code outside of
/// all known images.
const MIN_PAUSE_NS: u64 = 5_000_000;
const MAX_PAUSE_NS: u64 = 100_000_000;

/// The images of a process.
#[derive(Debug, Default)]
pub(crate) struct Images {
    by_start: BTreeMap<u64, LoadedImage>,
    /// When they were last looked at.
    pub(crate) looked_at: u64,
    /// How long to wait before the next look for the sake of unknown code. Looks that find nothing become rare.
    pause_ns: u64,
}

#[derive(Debug)]
struct LoadedImage {
    end: u64,
    stamp: u64,
    makes_calls: bool,
}

impl Images {
    /// Whether an address is in a known image, and whether system calls are made there.
    pub(crate) fn find(&self, address: u64) -> Option<bool> {
        let (_, image) = self.by_start.range(..=address).next_back()?;
        (address < image.end).then_some(image.makes_calls)
    }

    /// Whether an image is known. Another one may be where a known one was.
    pub(crate) fn has(&self, listed: ListedImage) -> bool {
        self.by_start.get(&listed.start).is_some_and(|image| image.stamp == listed.stamp)
    }

    /// The end of the known image that has an address.
    pub(crate) fn end_at(&self, address: u64) -> Option<u64> {
        let (_, image) = self.by_start.range(..=address).next_back()?;
        (address < image.end).then_some(image.end)
    }

    /// Whether a known image has addresses in a range.
    pub(crate) fn overlap(&self, range: &Range<u64>) -> bool {
        let last = self.by_start.range(..range.end).next_back();
        last.is_some_and(|(_, image)| image.end > range.start)
    }

    /// Whether a look is due for the sake of code that is in no known image.
    pub(crate) fn may_look_again(&self, now: u64) -> bool {
        now.saturating_sub(self.looked_at) >= self.pause_ns
    }

    /// Takes over what a look has found: all images, and those that were not known. Returns the changes.
    ///
    /// New images get the time of the former look, because samples since then may be in them; removed ones get the
    /// time of this look. Where an image has taken the place of another, both changes have the time between.
    pub(crate) fn accept(
        &mut self,
        pid: u32,
        now: u64,
        (listed, new): (&[ListedImage], Vec<LoadedModule>),
    ) -> Vec<(u64, EventKind)> {
        let before = std::mem::replace(&mut self.looked_at, now);
        let between = before + now.saturating_sub(before) / 2;
        let gone = self.remove_all_but(listed);
        let new: Vec<_> = new.into_iter().filter_map(|module| Some((self.add(&module)?, module))).collect();
        self.pause_ns = if new.is_empty() { self.pause_ns * 2 } else { 0 };
        self.pause_ns = self.pause_ns.clamp(MIN_PAUSE_NS, MAX_PAUSE_NS);
        let added: Vec<_> = new.iter().map(|(range, _)| range.clone()).collect();
        let time_of = |range: &Range<u64>, others: &[Range<u64>], alone: u64| {
            let is_replaced = others.iter().any(|other| other.start < range.end && range.start < other.end);
            if is_replaced { between } else { alone }
        };
        let unmaps = gone.iter().map(|range| (time_of(range, &added, now), unmap(pid, range)));
        let maps = new.iter().map(|(range, module)| {
            (time_of(range, &gone, before), EventKind::Map(mapping(pid, range, module)))
        });
        unmaps.chain(maps).collect()
    }

    /// Adds an image, and returns its addresses. `None` if one is known there.
    fn add(&mut self, module: &LoadedModule) -> Option<Range<u64>> {
        let (start, stamp) = (module.listed.start, module.listed.stamp);
        let end = start.saturating_add(module.len);
        let Entry::Vacant(place) = self.by_start.entry(start) else { return None };
        place.insert(LoadedImage { end, stamp, makes_calls: module.makes_calls });
        Some(start..end)
    }

    fn remove_all_but(&mut self, listed: &[ListedImage]) -> Vec<Range<u64>> {
        let live: HashMap<u64, u64> = listed.iter().map(|image| (image.start, image.stamp)).collect();
        let gone = self.by_start.extract_if(.., |start, image| live.get(start) != Some(&image.stamp));
        gone.map(|(start, image)| start..image.end).collect()
    }
}

/// The event of memory that is not mapped any more.
pub(super) fn unmap(pid: u32, range: &Range<u64>) -> EventKind {
    EventKind::Unmap { pid: Pid(pid), start: Avma(range.start), len: range.end - range.start }
}

/// The mapping of a whole image.
fn mapping(pid: u32, range: &Range<u64>, module: &LoadedModule) -> Mapping {
    Mapping {
        pid: Some(Pid(pid)),
        start: Avma(range.start),
        len: range.end - range.start,
        offset: FileOffset(0),
        path: module.path.clone(),
        identity: module.identity.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nyquist_convert::event::MappedFile;

    fn listed<const N: usize>(starts: [u64; N]) -> [ListedImage; N] {
        starts.map(|start| ListedImage { start, stamp: 1 })
    }

    fn module(start: u64) -> LoadedModule {
        LoadedModule {
            listed: ListedImage { start, stamp: 1 },
            len: 0x1000,
            path: format!(r"C:\{start:x}.dll"),
            identity: MappedFile::Unknown,
            makes_calls: start == 0x5000,
        }
    }

    #[test]
    fn changes_are_reported_once() {
        let mut images = Images::default();
        let both = images.accept(7, 10, (&listed([0x1000, 0x5000]), vec![module(0x1000), module(0x5000)]));
        assert_eq!(both.iter().map(|(time, _)| *time).collect::<Vec<_>>(), [0, 0]);
        assert_eq!(
            [0xfff, 0x1000, 0x1fff, 0x2000, 0x5800].map(|at| images.find(at)),
            [None, Some(false), Some(false), None, Some(true)]
        );
        assert_eq!(images.accept(7, 20, (&listed([0x1000, 0x5000]), vec![])), []);
        let next = images.accept(7, 30, (&listed([0x1000, 0x9000]), vec![module(0x9000)]));
        let gone = EventKind::Unmap { pid: Pid(7), start: Avma(0x5000), len: 0x1000 };
        assert_eq!((next[0].clone(), next[1].0, next.len()), ((30, gone), 20, 2));
        assert!(images.has(module(0x9000).listed) && !images.has(module(0x5000).listed));
    }

    #[test]
    fn an_image_where_another_was_has_its_own_name() {
        let mut images = Images::default();
        images.accept(7, 10, (&listed([0x1000, 0x9000]), vec![module(0x1000), module(0x9000)]));
        let second = ListedImage { start: 0x1000, stamp: 2 };
        assert!(!images.has(second));
        let other =
            LoadedModule { listed: second, path: r"C:\second.dll".into(), len: 0x2000, ..module(0x1000) };
        let next = images.accept(7, 30, (&[second, module(0x9000).listed], vec![other]));
        let EventKind::Map(mapped) = &next[1].1 else { panic!("{next:?}") };
        assert_eq!((next.len(), next[0].1.clone()), (2, unmap(7, &(0x1000..0x2000))));
        assert_eq!((next[0].0, next[1].0), (20, 20), "between the two looks, the old one first");
        assert_eq!((mapped.path.as_str(), mapped.len), (r"C:\second.dll", 0x2000));
        let shifted = LoadedModule { listed: ListedImage { start: 0x2000, stamp: 3 }, ..module(0x2000) };
        let last = images.accept(7, 50, (&[shifted.listed], vec![shifted]));
        let times: Vec<u64> = last.iter().map(|(time, _)| *time).collect();
        assert_eq!(times, [40, 50, 40], "an unmapping must not end what took a part of its place");
    }

    #[test]
    fn looks_for_unknown_code_become_rare() {
        let mut images = Images::default();
        assert!(images.may_look_again(0));
        let mut pauses = Vec::new();
        let mut now = 0;
        for _ in 0..8 {
            images.accept(7, now, (&listed([]), vec![]));
            let pause = (1..1000).map(|ms| ms * 1_000_000).find(|pause| images.may_look_again(now + pause));
            pauses.push(pause.unwrap() / 1_000_000);
            now += 200_000_000;
        }
        assert_eq!(pauses, [5, 10, 20, 40, 80, 100, 100, 100]);
    }

    #[test]
    fn an_absurd_image_does_no_harm() {
        let mut images = Images::default();
        let absurd = LoadedModule { len: u64::MAX, ..module(0x1000) };
        images.accept(7, 1, (&listed([0x1000]), vec![absurd.clone(), absurd]));
        assert_eq!(images.find(u64::MAX - 1), Some(false));
        images.accept(7, 1, (&listed([]), vec![]));
        assert_eq!(images.find(0x1000), None);
    }
}
