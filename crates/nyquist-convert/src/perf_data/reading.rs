//! Reads a recording, on several threads if enough CPUs are available. The threads take turns at reading. The
//! bytes are then in the caches of the thread that has read them, so this thread walks the stacks in them
//! while the next one reads. A thread that waits for its turn converts walked stacks.

use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::thread;

use nyquist_perf::file::{FileReader, FileRecord, RecordingItem};
use nyquist_resources::spawn_helper;

use super::conversion::WalkBatch;
use super::converting::Converting;
use super::error::ImportError;
use super::import::Import;
use super::options::ImportedProfile;
use crate::event::Timestamp;
use crate::unwind::copy_walker::CopyWalker;

/// The most events that are held back before the profile's zero is decided.
const MAX_EVENTS_BEFORE_START: usize = 1 << 20;
/// The most threads that work. More are not needed, because the sequential part is more than a third of the
/// work.
const MAX_THREADS: usize = 3;
/// The most threads that work if there are no stacks to walk.
const MAX_THREADS_WITHOUT_WALKS: usize = 2;

/// Reads a recording to its end, on as many threads as are allowed and useful.
pub(super) fn read(
    reader: FileReader,
    import: Import,
    threads: usize,
) -> Result<ImportedProfile, ImportError> {
    let reading = Mutex::new(Reading { reader, import, failed: None });
    thread::scope(|scope| {
        let mut at_work = 1;
        let mut worker = Worker::new(&reading);
        while let Some(walks) = worker.next() {
            let most = if walks.has_walks() { MAX_THREADS } else { MAX_THREADS_WITHOUT_WALKS };
            if at_work < threads.min(most) {
                at_work += 1;
                // If no other thread can be started, this thread reads everything.
                spawn_helper(scope, || Worker::new(&reading).work());
            }
            worker.walk(walks);
        }
    });
    reading.into_inner().unwrap_or_else(PoisonError::into_inner).finish()
}

/// A thread that reads when it is its turn, walks the stacks that it has read, and converts meanwhile.
struct Worker<'a> {
    reading: &'a Mutex<Reading>,
    walker: CopyWalker,
    converting: Option<Arc<Converting>>,
}

impl<'a> Worker<'a> {
    fn new(reading: &'a Mutex<Reading>) -> Self {
        Self { reading, walker: CopyWalker::default(), converting: None }
    }

    fn work(mut self) {
        while let Some(walks) = self.next() {
            self.walk(walks);
        }
    }

    /// Continues to read when it is this thread's turn. `None` at the end, and if another thread has
    /// panicked.
    fn next(&self) -> Option<WalkBatch> {
        loop {
            match self.reading.try_lock() {
                Ok(mut reading) => return reading.next(),
                Err(TryLockError::Poisoned(_)) => return None,
                Err(TryLockError::WouldBlock) => {
                    if !self.converting.as_ref().is_some_and(|converting| converting.convert_next()) {
                        return self.reading.lock().ok()?.next();
                    }
                }
            }
        }
    }

    fn walk(&mut self, walks: WalkBatch) {
        self.converting = Some(walks.walk(&mut self.walker));
    }
}

/// The state of the sequential part, which one thread at a time does.
struct Reading {
    reader: FileReader,
    import: Import,
    failed: Option<ImportError>,
}

impl Reading {
    /// Reads until a batch is full, or a piece of the file is in it. `None` at the end.
    fn next(&mut self) -> Option<WalkBatch> {
        while self.failed.is_none() {
            let end_batch = !self.reader.has_next();
            if let Some(walks) = self.import.conversion.as_mut().and_then(|it| it.walks(end_batch)) {
                return Some(walks);
            }
            match self.reader.read_next()? {
                RecordingItem::CompleteBefore(time) => {
                    self.import.complete_before(Timestamp(time), &self.reader);
                }
                RecordingItem::Record(record) if record.event < self.import.events.len() => {
                    self.import.record(&record);
                }
                RecordingItem::Record(record) => {
                    // A stream describes its events before their records.
                    let FileRecord { event, time, header, bytes, place, .. } = record;
                    let piece = record.piece.clone();
                    let bytes = piece.slice_ref(bytes);
                    if let Err(error) = self.import.prepare(&self.reader) {
                        self.failed = Some(error);
                        continue;
                    }
                    self.import.record(&FileRecord {
                        event,
                        time,
                        header,
                        bytes: &bytes,
                        piece: &piece,
                        place,
                    });
                }
            }
            if self.import.before_start.len() > MAX_EVENTS_BEFORE_START {
                self.import.conversion = Some(self.import.started(&self.reader));
            }
        }
        None
    }

    fn finish(mut self) -> Result<ImportedProfile, ImportError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.import.prepare(&self.reader)?;
        Ok(self.import.finish(&self.reader))
    }
}
