//! The mappings of a process, read again when they may have changed.

use std::ops::Range;

use nyquist_convert::event::{EventKind, MappedFile, Mapping, Pid};
use nyquist_object::Avma;

use crate::linux::proc;
use crate::linux::sys::clock::monotonic_ns;
use crate::linux::target_access;
use crate::linux::writable_memory::writable_range;
use nyquist_system::read_kernel_text;

/// The changes of executable memory since the last reading. Their exact time is unknown: a thread that was
/// sampled meanwhile may have been in a new mapping as well as in a removed one.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// The new mappings, which replace what was there.
    pub(crate) new: Vec<EventKind>,
    /// The removed mappings, where no new one is.
    pub(crate) gone: Vec<EventKind>,
    /// Whether file-backed code was added to a program that had some, or was removed. Other files may replace
    /// it, and may be removed again.
    pub(crate) files_come_and_go: bool,
    /// Whether file-backed code was removed: its replacement may be mistaken for it.
    pub(crate) files_go: bool,
}

/// Signs that the mappings are unchanged, without reading them. A library may replace another one of the same
/// size. The size of the address space is then the same, but the first execution in the library is a page
/// fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Signs {
    /// The pages of the address space.
    size: Option<u64>,
    faults: Option<u64>,
}

impl Signs {
    fn of(pid: u32) -> Self {
        Self { size: address_space_size(pid), faults: proc::page_faults(pid) }
    }

    fn has_memory(self) -> bool {
        self.size.is_some_and(|size| size > 0)
    }
}

/// A reading of a process's memory. Reading takes a fraction of the time of parsing.
#[derive(Debug)]
pub(crate) struct MapsReading {
    /// The time of the reading.
    pub(crate) at: u64,
    /// The signs and the text of the mappings; `None` if they are unchanged or not readable.
    memory: Option<(Signs, Vec<u8>)>,
}

/// The mappings of a process at the last reading.
#[derive(Clone, Debug, Default)]
pub(crate) struct Maps {
    /// Executable memory, by address.
    code: Vec<Mapping>,
    /// Writable memory, including stacks, by address.
    data: Vec<Range<u64>>,
    /// The signs at the last reading.
    signs: Signs,
    /// The thread whose files were read, if it is not the main thread.
    shown_by: Option<u32>,
}

impl Maps {
    /// Whether an address is in executable memory.
    pub(crate) fn has_code(&self, address: u64) -> bool {
        let after = self.code.partition_point(|mapping| mapping.start.0 <= address);
        let before = after.checked_sub(1).and_then(|at| self.code.get(at));
        before.is_some_and(|mapping| address - mapping.start.0 < mapping.len)
    }

    /// The memory that contains a stack pointer.
    pub(crate) fn stack(&self, pointer: u64) -> Option<&Range<u64>> {
        let after = self.data.partition_point(|range| range.start <= pointer);
        self.data.get(after.checked_sub(1)?).filter(|range| range.contains(&pointer))
    }

    /// Reads the mappings if they may have changed.
    pub(crate) fn refresh_if_touched(&mut self, pid: u32) -> MapsReading {
        let signs = Signs::of(self.shown_by.unwrap_or(pid));
        let memory = if signs == self.signs { None } else { self.read(pid, signs) };
        MapsReading { at: monotonic_ns(), memory }
    }

    /// Reads the mappings.
    pub(crate) fn refresh(&mut self, pid: u32) -> MapsReading {
        let memory = self.read(pid, Signs::of(self.shown_by.unwrap_or(pid)));
        MapsReading { at: monotonic_ns(), memory }
    }

    /// The mappings, with the signs from before they were read. A mapping made in between is found at the
    /// next reading.
    fn read(&mut self, pid: u32, mut signs: Signs) -> Option<(Signs, Vec<u8>)> {
        if !signs.has_memory() {
            // The files of an ended main thread are empty, although others may live on in its process's
            // memory.
            let shown_by = proc::live_thread(Pid(pid));
            self.shown_by = (shown_by != pid).then_some(shown_by);
            signs = Signs::of(shown_by);
        }
        let shown_by = self.shown_by.unwrap_or(pid);
        let text = target_access::mappings(shown_by);
        // The text of an address space that is gone is empty.
        (!text.is_empty()).then_some((signs, text))
    }

    /// Applies a reading, and returns the changes of executable memory.
    pub(crate) fn accept(&mut self, pid: u32, seen: &MapsReading) -> Changes {
        let Some((signs, text)) = &seen.memory else { return Changes::default() };
        self.signs = *signs;
        self.update(Pid(pid), text)
    }

    fn update(&mut self, pid: Pid, text: &[u8]) -> Changes {
        let lines = || text.split(|byte| *byte == b'\n');
        self.data = lines().filter_map(writable_range).collect();
        let code: Vec<Mapping> = lines().filter_map(|line| proc::mapping(pid, line)).collect();
        let former = Self { code: std::mem::replace(&mut self.code, code), ..Self::default() };
        let new = self.code.iter().filter(|mapping| !former.holds(mapping));
        let gone = || former.code.iter().filter(|mapping| !self.holds(mapping));
        let unmap = |range: Range<u64>| EventKind::Unmap {
            pid,
            start: Avma(range.start),
            len: range.end - range.start,
        };
        let is_file = |mapping: &Mapping| mapping.identity != MappedFile::Unknown;
        let files_go = gone().any(is_file);
        Changes {
            files_come_and_go: files_go || !former.code.is_empty() && new.clone().any(is_file),
            files_go,
            new: new.cloned().map(EventKind::Map).collect(),
            gone: gone().flat_map(|mapping| self.free_parts(mapping)).map(unmap).collect(),
        }
    }

    /// The parts of a former mapping without executable memory.
    fn free_parts(&self, former: &Mapping) -> Vec<Range<u64>> {
        let end = |mapping: &Mapping| mapping.start.0.saturating_add(mapping.len);
        let mut free = former.start.0;
        let mut parts = Vec::new();
        // The mappings are sorted and do not overlap.
        let first = self.code.partition_point(|mapping| end(mapping) <= former.start.0);
        for mapping in self.code.iter().skip(first).take_while(|mapping| mapping.start.0 < end(former)) {
            parts.push(free..mapping.start.0);
            free = end(mapping);
        }
        parts.push(free..end(former));
        parts.retain(|part| part.start < part.end);
        parts
    }

    fn holds(&self, mapping: &Mapping) -> bool {
        let at = self.code.binary_search_by_key(&mapping.start, |other| other.start);
        at.is_ok_and(|at| self.code.get(at) == Some(mapping))
    }
}

/// The pages of a process's address space: the first number of `statm`.
fn address_space_size(pid: u32) -> Option<u64> {
    read_kernel_text(format!("/proc/{pid}/statm")).ok()?.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "1000-2000 r-xp 00000000 fe:00 9 /bin/x\n\
                          5000-6000 r-xp 00000000 fe:00 8 /lib/plugin.so\n\
                          7000-9000 rw-p 00000000 00:00 0 [stack]\n";
    const AFTER: &str = "1000-2000 r-xp 00000000 fe:00 9 /bin/x\n\
                         5000-5800 r-xp 00000000 fe:00 7 /lib/other.so\n\
                         6000-9000 rw-p 00000000 00:00 0 [stack]\n";

    fn texts(changes: &[EventKind]) -> Vec<String> {
        let line = |kind: &EventKind| match kind {
            EventKind::Map(mapping) => format!("+{:x} {}", mapping.start.0, mapping.path),
            EventKind::Unmap { start, len, .. } => format!("-{:x} {len:x}", start.0),
            other => panic!("{other:?}"),
        };
        changes.iter().map(line).collect()
    }

    #[test]
    fn a_file_that_comes_later_may_go_again() {
        let mut maps = Maps::default();
        maps.update(Pid(1), b"1000-2000 r-xp 00000000 fe:00 9 /bin/x\n");
        let mut next = |text: &str| maps.update(Pid(1), text.as_bytes());
        let changes = [next(BEFORE), next(BEFORE), next(AFTER)];
        assert_eq!(changes.each_ref().map(|changes| changes.files_come_and_go), [true, false, true]);
        assert_eq!(changes.map(|changes| changes.files_go), [false, false, true]);
    }

    #[test]
    fn only_changes_are_reported() {
        let mut maps = Maps::default();
        let first = maps.update(Pid(1), BEFORE.as_bytes());
        assert_eq!(texts(&first.new), ["+1000 /bin/x", "+5000 /lib/plugin.so"]);
        assert_eq!(texts(&first.gone), [""; 0]);
        let same = maps.update(Pid(1), BEFORE.as_bytes());
        assert_eq!((texts(&same.new), texts(&same.gone)), (Vec::new(), Vec::new()));
        let next = maps.update(Pid(1), AFTER.as_bytes());
        assert_eq!(texts(&next.new), ["+5000 /lib/other.so"]);
        assert_eq!(texts(&next.gone), ["-5800 800"]);
        let come_and_go = [first, same, next].map(|changes| changes.files_come_and_go);
        assert_eq!(come_and_go, [false, false, true]);
        assert_eq!([0x1fff, 0x2000, 0x57ff, 0x5800].map(|at| maps.has_code(at)), [true, false, true, false]);
    }

    #[test]
    fn only_uncovered_gone_mappings_are_reported() {
        let mut maps = Maps::default();
        maps.update(Pid(1), b"1000-9000 r-xp 00000000 fe:00 9 /lib/a.so\n");
        let holes = b"0500-1800 r-xp 00000000 fe:00 1 /lib/b.so\n\
                      3000-4000 r-xp 00000000 fe:00 2 /lib/c.so\n\
                      8000-a000 r-xp 00000000 fe:00 3 /lib/d.so\n";
        let changes = maps.update(Pid(1), holes);
        assert_eq!(texts(&changes.new).len(), 3);
        assert_eq!(texts(&changes.gone), ["-1800 1800", "-4000 4000"]);
    }

    #[test]
    fn a_look_at_many_mappings_takes_no_longer_each() {
        let text = |first: u64, name: &str| -> String {
            let line =
                |at: u64| format!("{:x}000-{:x}000 r-xp 00000000 fe:00 9 {name}\n", at * 2, at * 2 + 1);
            (first..first + 40_000).map(line).collect()
        };
        let mut maps = Maps::default();
        maps.update(Pid(1), text(1, "/a").as_bytes());
        let began = std::time::Instant::now();
        let changes = maps.update(Pid(1), text(20_001, "/b").as_bytes());
        assert_eq!((changes.new.len(), changes.gone.len()), (40_000, 20_000));
        assert!(began.elapsed().as_secs() < 5, "{:?}", began.elapsed());
    }

    #[test]
    fn a_stack_is_found_by_its_pointer() {
        let mut maps = Maps::default();
        maps.update(Pid(1), AFTER.as_bytes());
        assert_eq!(maps.stack(0x8ff8), Some(&(0x6000..0x9000)));
        assert_eq!([0x5fff, 0x9000, 0x1000].map(|at| maps.stack(at)), [None; 3]);
    }

    #[test]
    fn code_made_at_run_time_is_no_file() {
        let mut maps = Maps::default();
        maps.update(Pid(1), b"1000-2000 rwxp 00000000 00:00 0 \n");
        let changes = maps.update(Pid(1), b"1000-3000 rwxp 00000000 00:00 0 \n");
        assert_eq!(
            (texts(&changes.new), changes.files_come_and_go),
            (vec!["+1000 //anon".to_owned()], false)
        );
    }

    #[test]
    fn this_process_is_looked_at_once() {
        let mut maps = Maps::default();
        let pid = std::process::id();
        let seen = maps.refresh(pid);
        assert!(!maps.accept(pid, &seen).new.is_empty());
        assert!(maps.has_code(this_process_is_looked_at_once as fn() as usize as u64));
        let local = 0_u8;
        assert!(maps.stack(&raw const local as u64).is_some());
    }
}
