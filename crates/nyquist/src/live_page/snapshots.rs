//! Snapshots of a recording for its page: while a page is open, the converter's thread copies the profile,
//! and another one gives names.

use super::{Pace, Shown};
use crate::args::SymbolArgs;
use crate::failure::Failure;
use crate::symbolicate::symbolicator;
use crate::{finder, identity};
use nyquist_convert::event::Timestamp;
use nyquist_convert::{Converter, LibSource, Progress};
use nyquist_profile::{LibId, Profile};
use nyquist_record::linux::now;
use nyquist_symbols::{Finder, KernelFiles};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How often a page gets something new, at most.
const EVERY: Duration = Duration::from_secs(1);

/// How often it is checked whether a page is watched.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// How long samples may be on their way to the converter.
const ON_ITS_WAY: Duration = Duration::from_millis(300);

/// Where the converter's thread gives snapshots.
pub(crate) struct Tap {
    wanted: Arc<AtomicBool>,
    copies: SyncSender<Copied>,
    /// The profile's zero: when the first of several runs began.
    start: OnceLock<Timestamp>,
    maker: JoinHandle<()>,
}

/// The profile so far of a recording, without names.
struct Copied {
    profile: Profile,
    sources: Vec<(LibId, LibSource)>,
    until: Timestamp,
    /// The profile's zero.
    start: Timestamp,
    cost: Duration,
}

impl Tap {
    /// Begins to make snapshots for a page, while it is watched.
    pub(crate) fn of(shown: &Arc<Shown>, symbols: &SymbolArgs) -> Result<Self, Failure> {
        let finder = identity::as_invoking_user(|| finder::offline(symbols))?;
        let finder = finder.with_kernel_files(KernelFiles::open());
        let wanted = Arc::new(AtomicBool::new(false));
        let (copies, copied) = sync_channel(1);
        let maker = Maker { shown: Arc::clone(shown), wanted: Arc::clone(&wanted), copied, finder };
        // Names are cached in the user's folders, where root does nothing.
        let spawn = || thread::Builder::new().name("nyquist-live".to_owned()).spawn(move || maker.run());
        let maker = identity::as_invoking_user(spawn)?
            .map_err(|error| Failure::because("no thread can be started", &error))?;
        Ok(Self { wanted, copies, start: OnceLock::new(), maker })
    }

    /// Copies the profile so far of a recording, if it is waited for. `until` is how far that is complete,
    /// `start` when this run of the program began.
    pub(crate) fn offer(&self, converter: &Converter, start: Timestamp, until: Timestamp) {
        let start = *self.start.get_or_init(|| start);
        if !self.wanted.swap(false, Ordering::Relaxed) {
            return;
        }
        let began = Instant::now();
        let (profile, sources) = (converter.snapshot(), converter.lib_sources());
        // The channel has space, because a snapshot is requested only after the last one was taken.
        let _ = self.copies.try_send(Copied { profile, sources, until, start, cost: began.elapsed() });
    }

    /// Ends making snapshots.
    pub(crate) fn finish(self) {
        drop(self.copies);
        // Where it has panicked, the page shows its last snapshot until the recording's end.
        let _ = self.maker.join();
    }
}

/// Makes the snapshots.
struct Maker {
    shown: Arc<Shown>,
    wanted: Arc<AtomicBool>,
    copied: Receiver<Copied>,
    finder: Finder,
}

impl Maker {
    fn run(self) {
        let mut symbolicator = symbolicator(&self.finder);
        let mut pace = Pace::new(EVERY);
        let (mut next, mut start) = (Instant::now(), None);
        loop {
            let wants = self.shown.is_watched() && Instant::now() >= next;
            if wants {
                self.wanted.store(true, Ordering::Relaxed);
            }
            let began = Instant::now();
            let cost = match self.copied.recv_timeout(if wants { EVERY } else { LOOK_EVERY }) {
                Ok(Copied { profile, sources, until, start: zero, cost }) => {
                    start = Some(zero);
                    let began = Instant::now();
                    let named = symbolicator.symbolicate(profile, &sources, &Progress::default()).profile;
                    cost + began.elapsed() + self.shown.show(named, until.0.saturating_sub(zero.0))
                }
                // Nothing is sampled: only time goes on.
                Err(RecvTimeoutError::Timeout) => match start.filter(|_| wants) {
                    Some(zero) => self.shown.pass_time(since(zero)),
                    None => continue,
                },
                Err(RecvTimeoutError::Disconnected) => return,
            };
            next = began + pace.pause_after(cost);
        }
    }
}

/// How far a recording without new events is.
fn since(zero: Timestamp) -> u64 {
    now().0.saturating_sub(zero.0).saturating_sub(ON_ITS_WAY.as_nanos() as u64)
}
