//! Files of samply's protocol: text that grows, found by its mapping.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};

use nyquist_convert::event::{Event, Mapping, Pid, Tid, Timestamp};
use nyquist_convert::marker_file::Period;
use nyquist_convert::marker_text;

use super::ids;
use crate::linux::now;
use crate::linux::sys::clock;

/// The most that is read of one file.
const MAX_BYTES: u64 = 1 << 30;

/// How much is read at a time.
const PIECE: u64 = 1 << 20;

/// A text file of markers.
#[derive(Debug)]
pub(super) struct TextFile {
    pub(super) path: String,
    file: File,
    owner: (Pid, Tid),
    /// How far the program's clock is ahead of ours.
    ahead_ns: i64,
    read: u64,
    pub(super) unreadable: u64,
}

impl TextFile {
    /// Opens the file that a mapping shows, if its name is that of a marker file.
    pub(super) fn of_mapping(mapping: &Mapping) -> Option<Self> {
        let pid = mapping.pid?;
        let (_, tid) = marker_text::owner_in_path(&mapping.path)?;
        // The path is the program's, which has its own root; and by the time it is opened, the program may be gone.
        let inside = format!("/proc/{}/root{}", pid.0, mapping.path);
        let open = |path: &str| OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).ok();
        let file = open(&inside).or_else(|| open(&mapping.path))?;
        file.metadata().ok()?.is_file().then_some(())?;
        let owner = (pid, Tid(ids::thread(pid, tid.0)));
        Some(Self {
            path: mapping.path.clone(),
            file,
            owner,
            ahead_ns: clock::ahead_ns(pid.0),
            read: 0,
            unreadable: 0,
        })
    }

    /// Reads the whole lines that were written since the last time; at the end of a recording, also one that was cut.
    pub(super) fn read(&mut self, since: Timestamp, last: bool, events: &mut Vec<Event>) {
        let len = self.file.metadata().map_or(0, |metadata| metadata.len()).min(MAX_BYTES);
        while self.read < len {
            let mut bytes = vec![0; (len - self.read).min(PIECE) as usize];
            if self.file.read_exact_at(&mut bytes, self.read).is_err() {
                return;
            }
            let lines = bytes.iter().rposition(|byte| *byte == b'\n').map(|at| at + 1);
            let whole = if last { Some(lines.unwrap_or(bytes.len())) } else { lines };
            let Some(whole) = whole else { return };
            // Only now: the program has gone on writing.
            let period = Period { since, until: now(), ahead_ns: self.ahead_ns };
            self.unreadable += marker_text::decode(&bytes[..whole], self.owner, period, events);
            self.read += whole as u64;
        }
    }
}
