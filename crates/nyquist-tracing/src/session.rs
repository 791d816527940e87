//! Whether a recorder listens, and the place of its markers.

use crate::area::Area;
use crate::protocol::{DIR_VARIABLE, control};
use crate::sys;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, Once, PoisonError};

/// 0 while no recorder listens, otherwise the number of the session. A session ends when its recorder
/// does, and in a child process at the fork.
static SESSION: AtomicU32 = AtomicU32::new(0);

/// The number of the last session.
static LAST: AtomicU32 = AtomicU32::new(0);

/// The place of new rings.
#[derive(Clone, Debug)]
pub(crate) enum RingStorage {
    /// Each ring is a file in a folder.
    Folder(PathBuf),
    /// Rings are in the control file, in the recording with that number.
    Area(&'static Area, u32),
}

/// The place of the session's rings.
static STORAGE: Mutex<Option<RingStorage>> = Mutex::new(None);

static STARTED: Once = Once::new();

/// The session's number; 0 while no recorder listens.
pub(crate) fn current() -> u32 {
    SESSION.load(Ordering::Relaxed)
}

/// The number of attempts of a thread to read the place of rings. The lock is held only for a moment. But
/// if another thread held it at a fork, it is never released in the child.
const TRIES: u32 = 1000;

/// The place of new rings.
pub(crate) fn place() -> Option<RingStorage> {
    for _ in 0..TRIES {
        if let Ok(place) = STORAGE.try_lock() {
            return place.clone();
        }
        std::thread::yield_now();
    }
    None
}

/// Determines whether this program runs under a recorder; if not, listens for one that attaches later.
/// Does so once.
pub(crate) fn start() {
    STARTED.call_once(|| {
        sys::after_fork(begin_anew_in_child);
        match std::env::var_os(DIR_VARIABLE) {
            Some(folder) if !folder.is_empty() => begin(RingStorage::Folder(folder.into())),
            _ => listen(),
        }
    });
}

fn begin(place: RingStorage) {
    *STORAGE.lock().unwrap_or_else(PoisonError::into_inner) = Some(place);
    SESSION.store(next(), Ordering::Relaxed);
    changed();
}

fn end() {
    if SESSION.swap(0, Ordering::Relaxed) != 0 {
        changed();
    }
}

fn next() -> u32 {
    (LAST.fetch_add(1, Ordering::Relaxed) + 1).max(1)
}

/// The child's threads must not write to their parent's rings.
extern "C" fn begin_anew_in_child() {
    if current() != 0 {
        SESSION.store(next(), Ordering::Relaxed);
    }
}

/// Makes every callsite check again whether it is enabled.
fn changed() {
    #[cfg(feature = "tracing")]
    tracing_core::callsite::rebuild_interest_cache();
}

/// Starts the thread that sleeps until a recorder attaches or detaches. Without it (on a system that
/// provides no thread or no memory file) no recorder can attach, which must not disturb the program.
fn listen() {
    let _ = std::thread::Builder::new().name(control::NAME.to_owned()).spawn(|| {
        if let Ok(area) = Area::create() {
            // The program's children have it, too, so it is never closed.
            follow_switch(Box::leak(Box::new(area)));
        }
    });
}

fn follow_switch(area: &'static Area) -> ! {
    let mut seen = control::OFF;
    loop {
        area.wait(seen);
        let state = area.state();
        if state == seen {
            continue;
        }
        seen = state;
        end();
        if state != control::STOPPING {
            // Memory that stays longer than needed must not disturb the program either.
            let _ = area.free();
        }
        if ![control::OFF, control::STOPPING].contains(&state) {
            begin(RingStorage::Area(area, state));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_ask_at_once_all_learn_the_place() {
        *STORAGE.lock().unwrap() = Some(RingStorage::Folder("/here".into()));
        let ask = || (0..2000).all(|_| place().is_some());
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
            assert!(threads.into_iter().all(|thread| thread.join().unwrap()));
        });
    }
}
