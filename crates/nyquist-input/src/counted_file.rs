//! A file whose read bytes are counted, so that an observer can show how far its reading is.

use crate::observer::ReadObserver;
use std::io::{self, Read, Seek, SeekFrom};

/// A file that is read from its beginning to its end, once or several times.
pub(crate) struct CountedFile<'a, R> {
    file: R,
    observer: &'a dyn ReadObserver,
    /// How many bytes will be read, and how many were.
    total: u64,
    done: u64,
}

impl<'a, R: Read + Seek> CountedFile<'a, R> {
    /// Counts the bytes of a file, which is read that many times.
    pub(crate) fn new(mut file: R, times: u64, observer: &'a dyn ReadObserver) -> io::Result<Self> {
        let len = file.seek(SeekFrom::End(0))?;
        file.rewind()?;
        Ok(Self { file, observer, total: len.saturating_mul(times), done: 0 })
    }
}

impl<R: Read + Seek> Read for CountedFile<'_, R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(out)?;
        self.done = self.done.saturating_add(read as u64);
        self.observer.bytes_read(self.done, self.total);
        Ok(read)
    }
}

impl<R: Read + Seek> Seek for CountedFile<'_, R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

impl<R> Drop for CountedFile<'_, R> {
    fn drop(&mut self) {
        self.observer.reading_ended();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::note::Note;
    use std::cell::Cell;
    use std::io::Cursor;

    #[derive(Default)]
    struct Counts {
        last: Cell<(u64, u64)>,
        has_ended: Cell<bool>,
    }

    impl ReadObserver for Counts {
        fn note(&self, note: Note) {
            panic!("{note:?}");
        }

        fn bytes_read(&self, done: u64, total: u64) {
            self.last.set((done, total));
        }

        fn reading_ended(&self) {
            self.has_ended.set(true);
        }
    }

    #[test]
    fn what_is_read_is_counted_in_all_passes() {
        let counts = Counts::default();
        let mut file = CountedFile::new(Cursor::new(b"0123456789"), 2, &counts).unwrap();
        for pass in 1..=2 {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).unwrap();
            assert_eq!((&bytes[..], counts.last.get()), (&b"0123456789"[..], (10 * pass, 20)));
            file.rewind().unwrap();
        }
        assert!(!counts.has_ended.get());
        drop(file);
        assert!(counts.has_ended.get());
    }
}
