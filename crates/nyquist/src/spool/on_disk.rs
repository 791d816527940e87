//! The spool of a recording: the converter's thread passes on what is new, and another thread writes it.

use super::writer::{Message, Writer};
use crate::args::SpoolArgs;
use crate::failure::Failure;
use crate::folders::UserFolders;
use crate::identity;
use crate::number::counted;
use crate::printer::Printer;
use crate::system::users::give_up_capabilities;
use nyquist_convert::event::Timestamp;
use nyquist_convert::{Converter, SpoolTap};
use nyquist_record::linux::file_user;
use nyquist_spool::folder::{Entry, SpoolFolder};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// The most bytes of all spools together.
const DEFAULT_MAX_SIZE: u64 = 4 << 30;

/// The shortest time between two batches: what comes each half second is passed on at once, so less than a second is
/// lost.
const EVERY: Duration = Duration::from_millis(400);

/// How long the end of a recording waits for a disk that does not answer.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// The smallest spool that has something.
const MIN_SIZE: u64 = 100;

/// The spool of a recording.
pub(crate) struct Spool {
    path: PathBuf,
    max_size: u64,
    is_requested: bool,
    printer: Printer,
    state: RefCell<SpoolState>,
}

struct SpoolState {
    tap: SpoolTap,
    /// Not before then is anything passed on.
    next: Instant,
    /// The thread that writes, once something was passed on.
    writer: Option<SyncSender<Message>>,
    is_busy: Arc<AtomicBool>,
}

/// The folder of spools: the one that the user has named, or that in the user's folder for the state of programs.
/// `None` without a home folder in which the user, with whose rights this runs, may create files.
pub(crate) fn folder(named: Option<&Path>) -> Option<PathBuf> {
    named.map(Path::to_owned).or_else(|| Some(UserFolders::of_user().state()?.join("spool")))
}

impl Spool {
    /// The spool of a recording that is about to begin; `None` if none is requested, or there is no place for it.
    /// Nothing is written before the recording has lasted for some time. Says if there is something to recover.
    /// `by_default` says whether it is requested without `--spool`.
    pub(crate) fn of(args: &SpoolArgs, by_default: bool, printer: Printer) -> Result<Option<Self>, Failure> {
        let place = identity::as_invoking_user(|| folder(args.spool.as_deref()))?;
        let Some(path) = place else { return Ok(None) };
        if args.spool.is_some() {
            let made = identity::as_invoking_user(|| SpoolFolder::create(&path, file_user()))?;
            made.map_err(|error| {
                let what = format!("cannot keep the recording in {}", path.display());
                Failure::because(what, &error)
                    .hint("--spool takes a folder of yours that others cannot write to")
            })?;
        }
        announce(&path, printer);
        if args.no_spool || !(by_default || args.spool.is_some()) {
            return Ok(None);
        }
        let state = SpoolState {
            tap: SpoolTap::default(),
            next: Instant::now() + EVERY,
            writer: None,
            is_busy: Arc::default(),
        };
        let max_size = args.max_size.unwrap_or(DEFAULT_MAX_SIZE);
        Ok(Some(Self {
            path,
            max_size,
            is_requested: args.spool.is_some(),
            printer,
            state: RefCell::new(state),
        }))
    }

    /// Passes on what is new in a recording that is complete up to `until`, if it is time. Never waits for the disk.
    pub(crate) fn offer(&self, converter: &Converter, until: Timestamp) {
        if Instant::now() >= self.state.borrow().next {
            self.pass_on(converter, until);
        }
    }

    /// Passes on the rest of a recording that has ended, if something was passed on before.
    pub(crate) fn offer_rest(&self, converter: &Converter, until: Timestamp) {
        if self.state.borrow().writer.is_some() {
            self.state.borrow_mut().tap.want_names();
            self.pass_on(converter, until);
        }
    }

    fn pass_on(&self, converter: &Converter, until: Timestamp) {
        let mut state = self.state.borrow_mut();
        state.next = Instant::now() + EVERY;
        if state.is_busy.swap(true, Ordering::Acquire) {
            return;
        }
        let Some(writer) = state.writer.clone().or_else(|| self.start_writer(&state.is_busy)) else { return };
        let batch = converter.spool(&mut state.tap, until);
        // There is room, because the writer is not busy.
        let _ = writer.try_send(Message::Write(batch, state.tap.epoch()));
        state.writer = Some(writer);
    }

    fn start_writer(&self, is_busy: &Arc<AtomicBool>) -> Option<SyncSender<Message>> {
        // One batch, and the request to remove all.
        let (sender, messages) = sync_channel(2);
        let writer = Writer {
            path: self.path.clone(),
            max_size: self.max_size,
            is_requested: self.is_requested,
            printer: self.printer,
            messages,
            is_busy: Arc::clone(is_busy),
        };
        // The files are the user's.
        let run = move || {
            let _ = give_up_capabilities();
            writer.run();
        };
        let spawn = || thread::Builder::new().name("nyquist-spool".to_owned()).spawn(run);
        identity::as_invoking_user(spawn).ok()?.ok()?;
        Some(sender)
    }

    /// Removes the spool of a recording that has ended well.
    pub(crate) fn remove(self) {
        if let Some(writer) = self.state.into_inner().writer {
            let (done, is_done) = mpsc::channel();
            if writer.try_send(Message::Remove(done)).is_ok() {
                let _ = is_done.recv_timeout(MAX_WAIT);
            }
        }
    }
}

/// Says in a line if recordings can be recovered.
fn announce(path: &Path, printer: Printer) {
    let abandoned = || {
        let entries =
            SpoolFolder::open(path, file_user()).and_then(|folder| folder.entries()).unwrap_or_default();
        let has_data = |entry: &&Entry| matches!(entry, Entry::Abandoned(spool) if spool.size().is_ok_and(|size| size >= MIN_SIZE));
        entries.iter().filter(has_data).count()
    };
    let count = identity::as_invoking_user(abandoned).unwrap_or(0);
    if count > 0 {
        let recordings = counted(count as u64, "recording");
        let verb = if count == 1 { "was" } else { "were" };
        printer.say(format_args!(
            "{recordings} {verb} not saved: `nyquist recover` lists what can be recovered"
        ));
    }
}
