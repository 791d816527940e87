//! The thread that writes a spool. A disk that is slow or full is its own concern, and never that of the recording.

use crate::failure::io_reason;
use crate::printer::Printer;
use nyquist_record::linux::file_user;
use nyquist_spool::folder::{OwnSpool, SpoolFolder, boot_id};
use nyquist_spool::{Batch, Header, SegmentWriter};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

/// The size at which a segment ends, and the next one begins, in bytes.
const MAX_SEGMENT: u64 = 64 << 20;

/// How often what was written is put on the disk, so that it survives a power cut.
const SYNC_EVERY: Duration = Duration::from_secs(30);

/// What the thread is told.
pub(super) enum Message {
    /// Write this, of the tables of an epoch.
    Write(Batch, u32),
    /// Remove all, and say when that is done.
    Remove(Sender<()>),
}

/// Writes a spool.
pub(super) struct Writer {
    pub(super) path: PathBuf,
    /// The most bytes of all spools together.
    pub(super) max_size: u64,
    /// Whether the user has named the folder, and is told if it cannot be used.
    pub(super) is_requested: bool,
    pub(super) printer: Printer,
    pub(super) messages: Receiver<Message>,
    /// Whether the thread writes, and takes nothing else meanwhile.
    pub(super) is_busy: Arc<AtomicBool>,
}

/// The files of a spool.
struct OpenSpool {
    own: OwnSpool,
    segment: SegmentWriter<File>,
    epoch: u32,
    /// How much it may still grow.
    room: u64,
    synced: Instant,
}

/// Why a spool goes on no more.
enum Stop {
    /// All spools together are as large as they may be.
    Full(u64),
    Io(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Writer {
    /// Writes until the recording ends.
    pub(super) fn run(self) {
        let mut spool = None;
        while let Ok(message) = self.messages.recv() {
            match message {
                Message::Write(batch, epoch) => {
                    if let Err(stop) = self.write(&mut spool, &batch, epoch) {
                        self.report(&stop, spool.is_some());
                        // Nothing is taken any more, but what was written stays.
                        return self.wait_for_end(spool);
                    }
                    self.is_busy.store(false, Ordering::Release);
                }
                Message::Remove(done) => return remove(spool, &done),
            }
        }
    }

    fn write(&self, spool: &mut Option<OpenSpool>, batch: &Batch, epoch: u32) -> Result<(), Stop> {
        let opened = match spool {
            Some(opened) => opened,
            None => spool.insert(OpenSpool::new(&self.path, self.max_size, epoch)?),
        };
        if opened.epoch == epoch {
            opened.append(batch, self.max_size)
        } else {
            opened.begin_epoch(batch, epoch)
        }
    }

    /// Says once why the spool has stopped.
    fn report(&self, stop: &Stop, has_begun: bool) {
        let place = self.path.display();
        let what = "what is recorded from now on is lost if nyquist is killed";
        match stop {
            Stop::Full(max) => {
                let max = indicatif::DecimalBytes(*max);
                self.printer.warn(format_args!(
                    "the recordings in {place} have {max}, which is all that --max-size allows: {what} (`nyquist recover --discard` makes room)"
                ));
            }
            Stop::Io(error) if has_begun || self.is_requested || is_full(error) => {
                self.printer.warn(format_args!("cannot write to {place}: {}: {what}", io_reason(error)));
            }
            Stop::Io(error) => {
                self.printer.detail(format_args!("No spool in {place}: {}", io_reason(error)));
            }
        }
    }

    /// Waits for the end of the recording, while the lock says that its recorder lives.
    fn wait_for_end(&self, spool: Option<OpenSpool>) {
        while let Ok(message) = self.messages.recv() {
            if let Message::Remove(done) = message {
                return remove(spool, &done);
            }
        }
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOSPC | Errno::DQUOT | Errno::FBIG))
}

fn remove(spool: Option<OpenSpool>, done: &Sender<()>) {
    if let Some(OpenSpool { own, .. }) = spool {
        // What stays is listed by `nyquist recover`.
        let _ = own.remove();
    }
    let _ = done.send(());
}

impl OpenSpool {
    fn new(path: &std::path::Path, max_size: u64, epoch: u32) -> Result<Self, Stop> {
        let folder = SpoolFolder::create(path, file_user())?;
        let room = max_size.saturating_sub(folder.size()?);
        if room == 0 {
            return Err(Stop::Full(max_size));
        }
        let mut own = folder.make_spool()?;
        match begin_segment(&mut own, epoch) {
            Ok(segment) => Ok(Self { own, segment, epoch, room, synced: Instant::now() }),
            Err(error) => {
                let _ = own.remove();
                Err(error.into())
            }
        }
    }

    /// Appends a batch.
    fn append(&mut self, batch: &Batch, max_size: u64) -> Result<(), Stop> {
        let size = batch.size() as u64;
        self.room = self.room.checked_sub(size).ok_or(Stop::Full(max_size))?;
        if self.segment.size() > MAX_SEGMENT {
            self.segment = begin_segment(&mut self.own, self.epoch)?;
        }
        match self.segment.append(batch.records()) {
            // A file that may be damaged is written to no more. Rows that come twice count once.
            Err(error) if !is_full(&error) => {
                self.segment = begin_segment(&mut self.own, self.epoch)?;
                self.segment.append(batch.records())?;
            }
            appended => appended?,
        }
        if self.synced.elapsed() >= SYNC_EVERY {
            self.segment.get_ref().sync_data()?;
            self.synced = Instant::now();
        }
        Ok(())
    }

    /// The tables were made anew: what was written before is replaced.
    fn begin_epoch(&mut self, batch: &Batch, epoch: u32) -> Result<(), Stop> {
        let first = self.own.next_segment();
        self.segment = begin_segment(&mut self.own, epoch)?;
        self.epoch = epoch;
        self.segment.append(batch.records())?;
        Ok(self.own.remove_before(first)?)
    }
}

fn begin_segment(own: &mut OwnSpool, epoch: u32) -> io::Result<SegmentWriter<File>> {
    let header = Header { boot: boot_id(), epoch, number: own.next_segment() };
    SegmentWriter::begin(own.make_segment()?, header)
}
