//! A file whose reading is shown on the terminal if it takes long.

use crate::printer::Printer;
use crate::watch::{BARS, SHOW_AFTER};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{self, Read, Seek, SeekFrom};
use std::time::Instant;

/// A file that is read from its beginning to its end, once or several times.
#[derive(Debug)]
pub(crate) struct WatchedFile<R> {
    file: R,
    printer: Printer,
    /// How many bytes will be read, and how many were.
    total: u64,
    done: u64,
    since: Instant,
    bar: Option<ProgressBar>,
}

impl<R: Read + Seek> WatchedFile<R> {
    /// Watches the reading of a file, which is read that many times.
    pub(crate) fn new(mut file: R, times: u64, printer: Printer) -> io::Result<Self> {
        let len = file.seek(SeekFrom::End(0))?;
        file.rewind()?;
        let total = len.saturating_mul(times);
        Ok(Self { file, printer, total, done: 0, since: Instant::now(), bar: None })
    }

    fn show(&mut self) {
        if self.since.elapsed() < SHOW_AFTER || !self.printer.shows_progress() {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let style = ProgressStyle::with_template("Reading the trace {wide_bar} {bytes} of {total_bytes}");
            let bar = BARS.add(ProgressBar::new(self.total));
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        bar.set_position(self.done.min(self.total));
    }
}

impl<R: Read + Seek> Read for WatchedFile<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(out)?;
        self.done = self.done.saturating_add(read as u64);
        self.show();
        Ok(read)
    }
}

impl<R: Read + Seek> Seek for WatchedFile<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

impl<R> Drop for WatchedFile<R> {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Verbosity;
    use std::io::Cursor;

    #[test]
    fn what_is_read_is_counted_in_all_passes() {
        let printer = Printer::new(Verbosity { quiet: true, ..Verbosity::default() });
        let mut file = WatchedFile::new(Cursor::new(b"0123456789"), 2, printer).unwrap();
        for pass in 1..=2 {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).unwrap();
            assert_eq!((&bytes[..], file.done, file.total), (&b"0123456789"[..], 10 * pass, 20));
            file.rewind().unwrap();
        }
        assert!(file.bar.is_none(), "it takes no second");
    }
}
