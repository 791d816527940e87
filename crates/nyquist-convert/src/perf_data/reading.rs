//! Reading a recording, on several threads where there are CPUs for them: they take turns, for what is read is in the caches of the
//! thread that has read it, which walks the stacks in it while the next one reads.

use std::sync::{Mutex, PoisonError};
use std::thread;

use nyquist_perf::file::{FileReader, FileRecord, Item};
use nyquist_unwind::Unwinder;

use super::conversion::Walks;
use super::{Import, ImportError, Imported, MOST_BEFORE_START};
use crate::event::Timestamp;

/// How many threads take turns at most: what is done in turn is more than a third of the work.
const MOST_READERS: usize = 2;

/// Reads a recording to its end, on as many threads as may work and are of use.
pub(super) fn read(
    reader: FileReader,
    import: Import<'_, '_>,
    threads: usize,
) -> Result<Imported, ImportError> {
    let reading = Mutex::new(Reading { reader, import, failed: None });
    thread::scope(|scope| {
        let mut others = threads.min(MOST_READERS).saturating_sub(1);
        let mut unwinder = Unwinder::new();
        while let Some(walks) = next(&reading) {
            if others > 0 && walks.are_some() {
                others -= 1;
                scope.spawn(|| walk_all(&reading));
            }
            walks.walk(&mut unwinder);
        }
    });
    reading.into_inner().unwrap_or_else(PoisonError::into_inner).finish()
}

fn walk_all(reading: &Mutex<Reading<'_, '_>>) {
    let mut unwinder = Unwinder::new();
    while let Some(walks) = next(reading) {
        walks.walk(&mut unwinder);
    }
}

/// Reads on when it is this thread's turn; `None` at the end, and where another thread has panicked.
fn next(reading: &Mutex<Reading<'_, '_>>) -> Option<Walks> {
    reading.lock().ok()?.next()
}

/// What is done by one thread at a time.
struct Reading<'scope, 'env> {
    reader: FileReader,
    import: Import<'scope, 'env>,
    failed: Option<ImportError>,
}

impl Reading<'_, '_> {
    /// Reads until a batch is full, or all of a piece is in it; `None` at the end.
    fn next(&mut self) -> Option<Walks> {
        while self.failed.is_none() {
            let end_batch = !self.reader.has_next();
            if let Some(walks) = self.import.conversion.as_mut().and_then(|it| it.walks(end_batch)) {
                return Some(walks);
            }
            match self.reader.read_next()? {
                Item::CompleteBefore(time) => self.import.complete_before(Timestamp(time), &self.reader),
                Item::Record(record) if record.event < self.import.chosen.len() => {
                    self.import.record(&record);
                }
                Item::Record(record) => {
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
            if self.import.before_start.len() > MOST_BEFORE_START {
                self.import.conversion = Some(self.import.started(&self.reader));
            }
        }
        None
    }

    fn finish(mut self) -> Result<Imported, ImportError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.import.prepare(&self.reader)?;
        Ok(self.import.finish(&self.reader))
    }
}
