//! The context switches of a process: the sum over its threads, because the kernel keeps no sum.

use std::collections::HashMap;

use super::texts::context_switches;
use crate::linux::sys::process_folder::ProcessFolder;

/// The most threads of a process whose switches are counted: each thread costs as much as all else of the
/// process.
const MAX_THREADS: u64 = 16;

/// The counts so far.
#[derive(Debug, Default)]
pub(super) struct Switches {
    threads: HashMap<u32, u64>,
    sum: u64,
}

impl Switches {
    /// Reads the threads of a process; `None` if there are too many, or if they are not readable.
    pub(super) fn read(
        &mut self,
        pid: u32,
        folder: &ProcessFolder,
        threads: u64,
        text: &mut Vec<u8>,
    ) -> Option<u64> {
        if threads > MAX_THREADS {
            return None;
        }
        if threads == 1 {
            // The process's own file is that of its main thread.
            folder.read(c"status", text).ok()?;
            self.note([(pid, context_switches(text)?)]);
            return Some(self.sum);
        }
        let mut found = Vec::new();
        for tid in folder.threads().ok()? {
            let name = std::ffi::CString::new(format!("task/{tid}/status")).ok()?;
            // The last count of a thread that has ended meanwhile is kept.
            let count = folder.read(&name, text).ok().and_then(|()| context_switches(text));
            found.extend(count.map(|count| (tid, count)));
        }
        self.note(found);
        Some(self.sum)
    }

    /// Adds the switches of threads since their last reading. Threads that are not in `found` have ended.
    fn note(&mut self, found: impl IntoIterator<Item = (u32, u64)>) {
        let before = std::mem::take(&mut self.threads);
        for (tid, count) in found {
            // A reused thread id counts from 0.
            let last = before.get(&tid).copied().filter(|last| *last <= count).unwrap_or(0);
            self.sum = self.sum.saturating_add(count - last);
            self.threads.insert(tid, count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_end_keep_what_they_had() {
        let mut switches = Switches::default();
        for (found, sum) in [
            (vec![(1, 10)], 10),
            (vec![(1, 12), (2, 5)], 17),
            (vec![(1, 13), (3, 1)], 19),
            (vec![(3, 1), (1, 13)], 19),
            (vec![(1, 4)], 23),
        ] {
            switches.note(found);
            assert_eq!(switches.sum, sum);
        }
    }
}
