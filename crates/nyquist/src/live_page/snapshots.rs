//! Snapshots of a recording for its page. While a page is open, the converter's thread copies the profile,
//! and another thread adds names.

use super::{Pace, PageProfile};
use crate::args::SymbolArgs;
use crate::failure::Failure;
use crate::system::signals::now;
use crate::system::users::give_up_capabilities;
use crate::{finder, identity};
use nyquist_convert::event::Timestamp;
use nyquist_convert::{Converter, LibSource, Progress};
use nyquist_input::symbolicator;
use nyquist_profile::{LibId, Profile};
use nyquist_symbols::{Finder, KernelFiles};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The least time between two updates of a page.
const EVERY: Duration = Duration::from_secs(1);

/// The interval of checking whether a page is visible.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The maximum delay of samples on their way to the converter.
const ON_ITS_WAY: Duration = Duration::from_millis(300);

/// The end at which the converter's thread delivers snapshots.
pub(crate) struct SnapshotSender {
    requested: Arc<AtomicBool>,
    copies: SyncSender<CopiedProfile>,
    /// The profile's zero: the start of the first of several runs.
    start: OnceLock<Timestamp>,
    maker: JoinHandle<()>,
}

/// The profile of a recording so far, without names.
struct CopiedProfile {
    profile: Profile,
    sources: Vec<(LibId, LibSource)>,
    until: Timestamp,
    /// The profile's zero.
    start: Timestamp,
    cost: Duration,
}

impl SnapshotSender {
    /// Starts making snapshots for a page, while it is visible.
    pub(crate) fn of(shown: &Arc<PageProfile>, symbols: &SymbolArgs) -> Result<Self, Failure> {
        let finder = identity::as_invoking_user(|| finder::offline(symbols))?;
        let finder = finder.with_kernel_files(KernelFiles::open());
        let requested = Arc::new(AtomicBool::new(false));
        let (copies, copied) = sync_channel(1);
        let maker = Maker { shown: Arc::clone(shown), requested: Arc::clone(&requested), copied, finder };
        // Names are cached in the user's folders, in which root writes no files.
        let run = move || {
            let _ = give_up_capabilities();
            maker.run();
        };
        let spawn = || thread::Builder::new().name("nyquist-live".to_owned()).spawn(run);
        let maker = identity::as_invoking_user(spawn)?
            .map_err(|error| Failure::because("no thread can be started", &error))?;
        Ok(Self { requested, copies, start: OnceLock::new(), maker })
    }

    /// Copies the profile of a recording so far, if a copy was requested. It is complete up to `until`.
    /// This run of the program began at `start`.
    pub(crate) fn offer(&self, converter: &Converter, start: Timestamp, until: Timestamp) {
        let start = *self.start.get_or_init(|| start);
        if !self.requested.swap(false, Ordering::Relaxed) {
            return;
        }
        let began = Instant::now();
        let (profile, sources) = (converter.snapshot(), converter.lib_sources());
        // The channel has space, because a snapshot is requested only after the previous one was received.
        let _ = self.copies.try_send(CopiedProfile { profile, sources, until, start, cost: began.elapsed() });
    }

    /// Stops making snapshots.
    pub(crate) fn finish(self) {
        drop(self.copies);
        // If the thread has panicked, the page shows its last snapshot until the recording's end.
        let _ = self.maker.join();
    }
}

/// Makes the snapshots.
struct Maker {
    shown: Arc<PageProfile>,
    requested: Arc<AtomicBool>,
    copied: Receiver<CopiedProfile>,
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
                self.requested.store(true, Ordering::Relaxed);
            }
            let began = Instant::now();
            let cost = match self.copied.recv_timeout(if wants { EVERY } else { LOOK_EVERY }) {
                Ok(CopiedProfile { profile, sources, until, start: zero, cost }) => {
                    start = Some(zero);
                    let began = Instant::now();
                    let named = symbolicator.symbolicate(profile, &sources, &Progress::default()).profile;
                    cost + began.elapsed() + self.shown.show(named, until.0.saturating_sub(zero.0))
                }
                // There are no samples, so only the time advances.
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

/// The progress of a recording without new events.
fn since(zero: Timestamp) -> u64 {
    now().0.saturating_sub(zero.0).saturating_sub(ON_ITS_WAY.as_nanos() as u64)
}
