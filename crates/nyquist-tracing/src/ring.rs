//! A ring of records with one writer, in use: a separate marker file, or a part of the control file.

use crate::protocol::{CAPACITY, EXTENSION, MAGIC, header, record};
use crate::session::RingStorage;
use crate::sys::Shared;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

/// Makes the names of this process's files distinct.
static FILES: AtomicU32 = AtomicU32::new(0);

/// The writer's end of a ring.
#[derive(Debug)]
pub(crate) struct Ring {
    memory: Shared,
    written: u64,
    /// The recorder's read position when it was last checked.
    read: u64,
}

impl Ring {
    /// Makes a new ring.
    pub(crate) fn create(place: &RingStorage) -> io::Result<Self> {
        let mut memory = match place {
            RingStorage::Folder(folder) => new_file(folder)?,
            // Forked children of this process do not notice that the recording has ended.
            RingStorage::Area(area, recording) if area.state() == *recording => area.ring()?,
            RingStorage::Area(..) => return Err(io::ErrorKind::NotFound.into()),
        };
        memory.write(header::CAPACITY, &(CAPACITY as u64).to_le_bytes());
        memory.write(header::PID, &std::process::id().to_le_bytes());
        let namespace = std::fs::metadata("/proc/self/ns/pid").map_or(0, |metadata| metadata.ino());
        memory.write(header::PID_NAMESPACE, &namespace.to_le_bytes());
        // Last, because a ring without it is not ready.
        memory.write(header::MAGIC, &MAGIC);
        Ok(Self { memory, written: 0, read: 0 })
    }

    /// Appends records, all or nothing. If they do not fit, the loss is counted. Their length must be a
    /// multiple of 8.
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
        // Impossible values are ignored.
        if read >= self.read && read <= self.written {
            self.read = read;
        }
        CAPACITY as u64 - (self.written - self.read) >= len
    }
}

/// Memory for a ring in a new file in the folder.
fn new_file(folder: &Path) -> io::Result<Shared> {
    let name = format!("{}-{}.{EXTENSION}", std::process::id(), FILES.fetch_add(1, Ordering::Relaxed));
    let file =
        OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(folder.join(name))?;
    Shared::map_new(&file, 0, header::LEN + CAPACITY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::area::Area;
    use std::fs::File;
    use std::os::unix::fs::FileExt as _;
    use std::path::PathBuf;

    /// A ring in a separate folder, and its file.
    fn ring(test: &str) -> (Ring, File, PathBuf) {
        let folder = std::env::temp_dir().join(format!("nyquist-ring-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let ring = Ring::create(&RingStorage::Folder(folder.clone())).unwrap();
        let entry = std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap();
        let file = OpenOptions::new().read(true).write(true).open(entry.path()).unwrap();
        (ring, file, folder)
    }

    fn number(file: &File, at: usize) -> u64 {
        let mut bytes = [0; 8];
        file.read_exact_at(&mut bytes, at as u64).unwrap();
        u64::from_le_bytes(bytes)
    }

    fn record(len: usize) -> Vec<u8> {
        let mut record = vec![7; len];
        record[..8].copy_from_slice(&[0, 0, 0, 0, record::INSTANT, 0, 0, 0]);
        record[..4].copy_from_slice(&(len as u32).to_le_bytes());
        record
    }

    #[test]
    fn what_finds_no_room_is_counted_until_a_read() {
        let (mut ring, file, folder) = ring("full");
        let record = record(CAPACITY / 2);
        assert_eq!([ring.push(&record), ring.push(&record)], [true, true]);
        assert!(!ring.push(&record));
        assert_eq!((number(&file, header::WRITTEN), number(&file, header::LOST)), (CAPACITY as u64, 1));
        file.write_all_at(&(CAPACITY as u64 / 2).to_le_bytes(), header::READ as u64).unwrap();
        assert_eq!([ring.push(&record), ring.push(&record)], [true, false]);
        assert_eq!(number(&file, header::LOST), 2);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_record_does_not_wrap() {
        let (mut ring, file, folder) = ring("wrap");
        assert!(ring.push(&record(CAPACITY - 64)));
        file.write_all_at(&(CAPACITY as u64 - 64).to_le_bytes(), header::READ as u64).unwrap();
        assert!(ring.push(&record(128)));
        assert_eq!(number(&file, header::WRITTEN), CAPACITY as u64 + 128);
        let padding = u64::from(record::PAD) << 32 | 64;
        assert_eq!(number(&file, header::LEN + CAPACITY - 64), padding);
        assert_eq!(number(&file, header::LEN) as u32, 128);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_reader_that_lies_gains_nothing() {
        let (mut ring, file, folder) = ring("liar");
        assert!(ring.push(&record(CAPACITY)));
        for read in [CAPACITY as u64 + 1, u64::MAX] {
            file.write_all_at(&read.to_le_bytes(), header::READ as u64).unwrap();
            assert!(!ring.push(&record(8)), "{read}");
        }
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_control_files_ring_is_of_the_live_recording() {
        let area: &'static Area = Box::leak(Box::new(Area::create().unwrap()));
        assert!(Ring::create(&RingStorage::Area(area, 7)).is_err());
        assert!(Ring::create(&RingStorage::Area(area, 0)).unwrap().push(&record(64)));
    }
}
