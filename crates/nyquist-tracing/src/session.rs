//! Whether a recorder listens, and where it looks for marker files.

use crate::protocol::{DIR_VARIABLE, control};
use crate::sys;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, Once, PoisonError};

/// 0 while no recorder listens, else the number of the session. A session ends when its recorder does, and in a child
/// process at the fork.
static SESSION: AtomicU32 = AtomicU32::new(0);

/// The number of the last session.
static LAST: AtomicU32 = AtomicU32::new(0);

/// Where the session's marker files go.
static FOLDER: Mutex<Option<PathBuf>> = Mutex::new(None);

static STARTED: Once = Once::new();

/// The session's number; 0 while no recorder listens.
pub(crate) fn current() -> u32 {
    SESSION.load(Ordering::Relaxed)
}

/// How often a thread tries to learn where marker files go. The lock is held for a moment, but in the child of a process
/// whose other threads held it at the fork it is never freed.
const TRIES: u32 = 1000;

/// Where marker files go.
pub(crate) fn folder() -> Option<PathBuf> {
    for _ in 0..TRIES {
        if let Ok(folder) = FOLDER.try_lock() {
            return folder.clone();
        }
        std::thread::yield_now();
    }
    None
}

/// Finds out whether this program runs under a recorder; if not, listens for one that attaches later. Does so once.
pub(crate) fn start() {
    STARTED.call_once(|| {
        sys::after_fork(begin_anew_in_child);
        match std::env::var_os(DIR_VARIABLE) {
            Some(folder) if !folder.is_empty() => begin(folder.into()),
            _ => listen(),
        }
    });
}

fn begin(folder: PathBuf) {
    *FOLDER.lock().unwrap_or_else(PoisonError::into_inner) = Some(folder);
    SESSION.store(next(), Ordering::Relaxed);
    changed();
}

fn end() {
    SESSION.store(0, Ordering::Relaxed);
    changed();
}

fn next() -> u32 {
    (LAST.fetch_add(1, Ordering::Relaxed) + 1).max(1)
}

/// The child's threads must not write to their parent's files.
extern "C" fn begin_anew_in_child() {
    if current() != 0 {
        SESSION.store(next(), Ordering::Relaxed);
    }
}

/// Every callsite asks again whether it is wanted.
fn changed() {
    #[cfg(feature = "tracing")]
    tracing_core::callsite::rebuild_interest_cache();
}

/// Starts the thread that sleeps until a recorder attaches or goes. Without it (a system that gives no thread or no
/// memory file) nobody can attach, which is no reason to disturb the program.
fn listen() {
    let _ = std::thread::Builder::new().name(control::NAME.to_owned()).spawn(|| {
        let name = std::ffi::CString::new(control::NAME).unwrap_or_default();
        let Ok(file) = sys::memory_file(&name) else { return };
        let Ok(mut page) = sys::Shared::map_new(&file, control::LEN) else { return };
        page.write(0, &control::MAGIC);
        let mut seen = 0;
        loop {
            page.wait(control::STATE, seen);
            let state = page.u32_at(control::STATE).load(Ordering::Acquire);
            if state != seen {
                seen = state;
                if state == 0 { end() } else { begin(folder_in(&page)) }
            }
        }
    });
}

fn folder_in(page: &sys::Shared) -> PathBuf {
    let len = page.u32_at(control::PATH_LEN).load(Ordering::Relaxed) as usize;
    let mut path = vec![0; len.min(control::LEN - control::PATH)];
    page.read(control::PATH, &mut path);
    OsString::from_vec(path).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_ask_at_once_all_learn_the_folder() {
        *FOLDER.lock().unwrap() = Some("/here".into());
        let ask = || (0..2000).all(|_| folder().is_some());
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
            assert!(threads.into_iter().all(|thread| thread.join().unwrap()));
        });
    }
}
