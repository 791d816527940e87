//! A marker file that is being written: a ring of records with one writer.

use crate::protocol::{CAPACITY, EXTENSION, MAGIC, header, record};
use crate::sys::Shared;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

/// Makes the names of this process's files distinct.
static FILES: AtomicU32 = AtomicU32::new(0);

/// The writer's end of a marker file.
#[derive(Debug)]
pub(crate) struct Ring {
    memory: Shared,
    written: u64,
    /// What the recorder had taken when it was last asked.
    read: u64,
}

impl Ring {
    /// Makes a new file in the folder.
    pub(crate) fn create(folder: &Path) -> io::Result<Self> {
        let pid = std::process::id();
        let name = format!("{pid}-{}.{EXTENSION}", FILES.fetch_add(1, Ordering::Relaxed));
        let file =
            OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(folder.join(name))?;
        let mut memory = Shared::map_new(&file, header::LEN + CAPACITY)?;
        memory.write(header::CAPACITY, &(CAPACITY as u64).to_le_bytes());
        memory.write(header::PID, &pid.to_le_bytes());
        let namespace = std::fs::metadata("/proc/self/ns/pid").map_or(0, |metadata| metadata.ino());
        memory.write(header::PID_NAMESPACE, &namespace.to_le_bytes());
        // Last: a file without it is not ready.
        memory.write(header::MAGIC, &MAGIC);
        Ok(Self { memory, written: 0, read: 0 })
    }

    /// Appends records, all or nothing. Where there is no room the loss is counted. Their length is a multiple of 8.
    pub(crate) fn push(&mut self, records: &[u8]) -> bool {
        let at = (self.written % CAPACITY as u64) as usize;
        let to_end = CAPACITY - at;
        let padding = if records.len() > to_end { to_end } else { 0 };
        if !self.has_room((padding + records.len()) as u64) {
            self.memory.u64_at(header::LOST).fetch_add(1, Ordering::Relaxed);
            return false;
        }
        if padding > 0 {
            let [a, b, c, d] = (padding as u32).to_le_bytes();
            self.memory.write(header::LEN + at, &[a, b, c, d, record::PAD, 0, 0, 0]);
        }
        let start = if padding > 0 { 0 } else { at };
        self.memory.write(header::LEN + start, records);
        self.written += (padding + records.len()) as u64;
        self.memory.u64_at(header::WRITTEN).store(self.written, Ordering::Release);
        true
    }

    fn has_room(&mut self, len: u64) -> bool {
        let free = |read: u64| CAPACITY as u64 - (self.written - read);
        if free(self.read) >= len {
            return true;
        }
        let read = self.memory.u64_at(header::READ).load(Ordering::Acquire);
        // Only what can be true is believed.
        if read >= self.read && read <= self.written {
            self.read = read;
        }
        CAPACITY as u64 - (self.written - self.read) >= len
    }
}
