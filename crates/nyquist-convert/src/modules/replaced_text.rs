//! Text of files that programs have replaced by their own memory. A program that moves its code to huge pages
//! copies it, maps anonymous memory over it and copies it back. If the memory has the file's bytes, it is
//! treated as the file.
//!
//! When the kernel reports the mapping, the memory may still be empty. So it is compared later, at some of
//! the process's samples.

use crate::event::Pid;
use crate::mappings::{Mappings, Range};
use crate::module_index::ModuleIndex;
use crate::modules::store::ModuleStore;
use nyquist_object::Avma;

/// The most ranges of a process that are remembered. A program replaces its own text, and that of a few
/// libraries.
const MAX_RANGES: usize = 64;

/// A range is compared at its first sample, the second, the fourth and so on, up to this one.
const LAST_COMPARISON: u32 = 1 << 16;

/// The number of places of a range that are compared, and the bytes of each.
const PLACES: u64 = 8;
const PLACE: usize = 4096;

/// Memory of one process that may hold a file's text.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReplacedText {
    ranges: Vec<Candidate>,
}

#[derive(Clone, Copy, Debug)]
struct Candidate {
    start: Avma,
    end: Avma,
    /// The mapping that was there before. If it is not known, the neighbouring mappings are used.
    module: Option<(ModuleIndex, Avma)>,
    samples: u32,
}

impl ReplacedText {
    /// Notes that memory without a file was mapped. `mappings` are those before it.
    pub(crate) fn note(&mut self, start: Avma, end: Avma, mappings: &Mappings) {
        // More of them than are remembered are of no use.
        let before = mappings.within_span(start, end).filter(|range| range.module.is_some());
        let before: Vec<_> = before.take(MAX_RANGES).collect();
        let is_known = |known: &Candidate| known.start < end && start < known.end;
        if before.is_empty() && self.ranges.iter().any(is_known) {
            // The memory was mapped before, and only its protection has changed.
            return;
        }
        self.forget(start, end);
        let room = MAX_RANGES.saturating_sub(self.ranges.len());
        if before.is_empty() {
            self.ranges.extend([Candidate { start, end, module: None, samples: 0 }].iter().take(room));
        }
        let parts = before.into_iter().map(|range| Candidate {
            start: range.start.max(start),
            end: range.end.min(end),
            module: range.module,
            samples: 0,
        });
        self.ranges.extend(parts.take(room));
    }

    /// Forgets ranges that were unmapped or replaced.
    pub(crate) fn forget(&mut self, start: Avma, end: Avma) {
        self.ranges.retain(|known| known.end <= start || end <= known.start);
    }

    /// Compares the memory of a sampled process, if that is due, and returns the ranges that are a file's
    /// text.
    pub(crate) fn compare_due(&mut self, pid: Pid, mappings: &Mappings, modules: &ModuleStore) -> Vec<Range> {
        let mut found = Vec::new();
        let Some(targets) = modules.targets() else { return found };
        self.ranges.retain_mut(|candidate| {
            candidate.samples += 1;
            if !candidate.samples.is_power_of_two() {
                return true;
            }
            let Some(module) = candidate.module.or_else(|| neighbour_file(candidate, mappings)) else {
                return false;
            };
            let memory = |at: Avma, room: &mut [u8]| targets.read_memory(pid, at.0, room) == room.len();
            let is_same = candidate.is_of(module, memory, modules);
            if is_same {
                found.push(Range { start: candidate.start, end: candidate.end, module: Some(module) });
            }
            !is_same && candidate.samples < LAST_COMPARISON
        });
        found
    }

    /// How much memory the ranges take.
    pub(crate) fn bytes(&self) -> usize {
        self.ranges.capacity() * size_of::<Candidate>()
    }

    /// Whether there are no ranges to compare.
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }
}

/// The file that is mapped right before a range, or right after it.
fn neighbour_file(candidate: &Candidate, mappings: &Mappings) -> Option<(ModuleIndex, Avma)> {
    let before = mappings.find(Avma(candidate.start.0.checked_sub(1)?)).and_then(|range| range.module);
    before.or_else(|| mappings.find(candidate.end)?.module)
}

impl Candidate {
    /// Whether the memory has the file's bytes there.
    fn is_of(
        &self,
        (module, base): (ModuleIndex, Avma),
        is_read: impl Fn(Avma, &mut [u8]) -> bool,
        modules: &ModuleStore,
    ) -> bool {
        let module = modules.get(module);
        let len = self.end.0 - self.start.0;
        let last = len.saturating_sub(PLACE as u64);
        let (mut expected, mut found) = ([0; PLACE], [0; PLACE]);
        let mut has_code = false;
        for place in 0..PLACES {
            // Places are on page boundaries, as ranges are. The last place ends with the range.
            let offset =
                if place + 1 == PLACES { last } else { (last / PLACES * place) & !(PLACE as u64 - 1) };
            let at = Avma(self.start.0 + offset);
            let room = PLACE.min(usize::try_from(len - offset).unwrap_or(PLACE));
            let read = module.read_code(base, at, &mut expected[..room]);
            let (expected, found) = (&expected[..read], &mut found[..read]);
            if read == 0 || !is_read(at, found) || expected != found {
                return false;
            }
            has_code |= expected.iter().any(|byte| *byte != expected[0]);
        }
        has_code
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{MappedFile, Mapping};
    use nyquist_object::FileOffset;

    /// The code of this program, as it is mapped.
    fn own_text() -> Mapping {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let own = std::env::current_exe().unwrap();
        let own = own.to_str().unwrap();
        let line = maps.lines().find(|line| line.contains("r-xp") && line.ends_with(own)).unwrap();
        let mut fields = line.split_whitespace();
        let hex = |digits: &str| u64::from_str_radix(digits, 16).unwrap();
        let (start, end) = fields.next().unwrap().split_once('-').unwrap();
        let offset = FileOffset(hex(fields.nth(1).unwrap()));
        let (start, len) = (Avma(hex(start)), hex(end) - hex(start));
        let pid = Some(Pid(std::process::id()));
        Mapping { pid, start, len, offset, path: own.to_owned(), identity: MappedFile::Unknown }
    }

    /// The result of a comparison after memory was mapped over the text of a file. The text is moved by `moved`
    /// bytes.
    fn compared(moved: u64, replaces: bool) -> Vec<Range> {
        let text = own_text();
        let mut modules = ModuleStore::default();
        let index = modules.of_mapping(&text).unwrap();
        let base = Avma(modules.get(index).base(&text).0.wrapping_add(moved));
        let (start, end) = (text.start, Avma(text.start.0 + text.len));
        let module = Some((index, base));
        let mut mappings = Mappings::default();
        let middle = [Avma(start.0 + 0x4000), Avma(start.0 + 0x24000)];
        mappings.insert(Range { start, end, module }, 0);
        let mut replaced = ReplacedText::default();
        if replaces {
            replaced.note(middle[0], middle[1], &mappings);
        }
        mappings.insert(Range { start: middle[0], end: middle[1], module: None }, 0);
        if !replaces {
            replaced.note(middle[0], middle[1], &mappings);
        }
        replaced.note(middle[0], middle[1], &mappings);
        let found = replaced.compare_due(Pid(std::process::id()), &mappings, &modules);
        assert_eq!(replaced.is_empty(), !found.is_empty());
        assert!(
            found
                .iter()
                .all(|range| (range.start, range.end, range.module) == (middle[0], middle[1], module))
        );
        found
    }

    #[test]
    #[cfg_attr(not(target_os = "linux"), ignore = "/proc has the mappings and the memory of a process")]
    fn memory_with_a_files_bytes_is_that_file() {
        assert_eq!(compared(0, true).len(), 1, "heard of when it was mapped");
        assert_eq!(compared(0, false).len(), 1, "mapped before the recording");
        assert!(compared(0x1000, true).is_empty(), "other bytes");
        assert!(compared(0x1000, false).is_empty(), "other bytes");
    }

    #[test]
    fn what_is_nobodys_is_forgotten() {
        let mut replaced = ReplacedText::default();
        let (mappings, modules) = (Mappings::default(), ModuleStore::default());
        replaced.note(Avma(0x1000), Avma(0x2000), &mappings);
        assert!(!replaced.is_empty());
        assert!(replaced.compare_due(Pid(std::process::id()), &mappings, &modules).is_empty());
        assert!(replaced.is_empty());
        for number in 0..100 {
            replaced.note(Avma(number << 12), Avma((number + 1) << 12), &mappings);
        }
        assert_eq!(replaced.ranges.len(), MAX_RANGES);
    }
}
