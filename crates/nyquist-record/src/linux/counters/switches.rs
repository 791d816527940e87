//! The context switches of a process: the sum of its threads', because the kernel keeps no sum.

use std::collections::HashMap;

use super::texts::context_switches;
use crate::linux::sys::process_folder::ProcessFolder;

/// How many threads a process may have for their switches to be counted: each costs as much as all else of the process.
const MOST_THREADS: u64 = 16;

/// What was counted so far.
#[derive(Debug, Default)]
pub(super) struct Switches {
    threads: HashMap<u32, u64>,
    sum: u64,
}

impl Switches {
    /// Looks at the threads of a process; `None` where there are too many, or they cannot be seen.
    pub(super) fn look(
        &mut self,
        pid: u32,
        folder: &ProcessFolder,
        threads: u64,
        text: &mut Vec<u8>,
    ) -> Option<u64> {
        if threads > MOST_THREADS {
            return None;
        }
        if threads == 1 {
            // The process's own file is that of its main thread.
            folder.read(c"status", text).ok()?;
            self.note([(pid, context_switches(text)?)]);
            return Some(self.sum);
        }
        let mut found = Vec::new();
        for entry in folder.path("task").read_dir().ok()? {
            let Some(tid) = entry.ok()?.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
                continue;
            };
            let name = std::ffi::CString::new(format!("task/{tid}/status")).ok()?;
            // One that has ended meanwhile keeps what it had.
            let count = folder.read(&name, text).ok().and_then(|()| context_switches(text));
            found.extend(count.map(|count| (tid, count)));
        }
        self.note(found);
        Some(self.sum)
    }

    /// Adds what threads have switched since they were last looked at. Those that are not among them have ended.
    fn note(&mut self, found: impl IntoIterator<Item = (u32, u64)>) {
        let before = std::mem::take(&mut self.threads);
        for (tid, count) in found {
            // A number that is used again counts from 0.
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
