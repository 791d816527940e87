//! The images that a process has loaded, and what changes between two looks at them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use nyquist_convert::event::{EventKind, Mapping, Pid};
use nyquist_object::{Avma, FileOffset};

use super::system::LoadedModule;

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
    /// How long to wait before the next look for the sake of unknown code. Generated code is in no image, so
    /// looks that find nothing become rare.
    pause_ns: u64,
}

#[derive(Debug)]
struct LoadedImage {
    end: u64,
    makes_calls: bool,
}

impl Images {
    /// Whether an address is in a known image, and whether system calls are made there.
    pub(crate) fn find(&self, address: u64) -> Option<bool> {
        let (_, image) = self.by_start.range(..=address).next_back()?;
        (address < image.end).then_some(image.makes_calls)
    }

    /// Whether an image begins at an address.
    pub(crate) fn has(&self, start: u64) -> bool {
        self.by_start.contains_key(&start)
    }

    /// Whether a look is due for the sake of code that is in no known image.
    pub(crate) fn may_look_again(&self, now: u64) -> bool {
        now.saturating_sub(self.looked_at) >= self.pause_ns
    }

    /// Takes over what a look has found: the first addresses of all images, and those that were not known.
    /// Returns the changes. New images get the time of the former look, because samples since then may be in
    /// them; removed ones get the time of this look.
    pub(crate) fn accept(
        &mut self,
        pid: u32,
        now: u64,
        (starts, new): (&[u64], Vec<LoadedModule>),
    ) -> Vec<(u64, EventKind)> {
        let before = std::mem::replace(&mut self.looked_at, now);
        let mut changes = self.remove_all_but(pid, now, starts);
        let known = changes.len();
        for module in new {
            let len = module.len.min(u64::MAX - module.start);
            if let Entry::Vacant(place) = self.by_start.entry(module.start) {
                place.insert(LoadedImage { end: module.start + len, makes_calls: module.makes_calls });
                changes.push((before, EventKind::Map(mapping(pid, module))));
            }
        }
        let found_none = changes.len() == known;
        self.pause_ns = if found_none { self.pause_ns * 2 } else { 0 };
        self.pause_ns = self.pause_ns.clamp(MIN_PAUSE_NS, MAX_PAUSE_NS);
        changes
    }

    fn remove_all_but(&mut self, pid: u32, now: u64, starts: &[u64]) -> Vec<(u64, EventKind)> {
        let living: std::collections::HashSet<u64> = starts.iter().copied().collect();
        let gone = self.by_start.extract_if(.., |start, _| !living.contains(start));
        let unmap = |(start, image): (u64, LoadedImage)| {
            (now, EventKind::Unmap { pid: Pid(pid), start: Avma(start), len: image.end - start })
        };
        gone.map(unmap).collect()
    }
}

/// The mapping of a whole image.
fn mapping(pid: u32, module: LoadedModule) -> Mapping {
    Mapping {
        pid: Some(Pid(pid)),
        start: Avma(module.start),
        len: module.len,
        offset: FileOffset(0),
        path: module.path,
        identity: module.identity,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nyquist_convert::event::MappedFile;

    fn module(start: u64) -> LoadedModule {
        LoadedModule {
            start,
            len: 0x1000,
            path: format!(r"C:\{start:x}.dll"),
            identity: MappedFile::Unknown,
            makes_calls: start == 0x5000,
        }
    }

    #[test]
    fn changes_are_reported_once() {
        let mut images = Images::default();
        let both = images.accept(7, 10, (&[0x1000, 0x5000], vec![module(0x1000), module(0x5000)]));
        assert_eq!(both.iter().map(|(time, _)| *time).collect::<Vec<_>>(), [0, 0]);
        assert_eq!(
            [0xfff, 0x1000, 0x1fff, 0x2000, 0x5800].map(|at| images.find(at)),
            [None, Some(false), Some(false), None, Some(true)]
        );
        assert_eq!(images.accept(7, 20, (&[0x1000, 0x5000], vec![])), []);
        let next = images.accept(7, 30, (&[0x1000, 0x9000], vec![module(0x9000)]));
        let gone = EventKind::Unmap { pid: Pid(7), start: Avma(0x5000), len: 0x1000 };
        assert_eq!((next[0].clone(), next[1].0, next.len()), ((30, gone), 20, 2));
        assert!(images.has(0x9000) && !images.has(0x5000));
    }

    #[test]
    fn looks_for_unknown_code_become_rare() {
        let mut images = Images::default();
        assert!(images.may_look_again(0));
        let mut pauses = Vec::new();
        let mut now = 0;
        for _ in 0..8 {
            images.accept(7, now, (&[], vec![]));
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
        images.accept(7, 1, (&[0x1000], vec![absurd.clone(), absurd]));
        assert_eq!(images.find(u64::MAX - 1), Some(false));
        images.accept(7, 1, (&[], vec![]));
        assert_eq!(images.find(0x1000), None);
    }
}
