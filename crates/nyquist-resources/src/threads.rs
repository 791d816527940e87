//! Threads for work that can also be done without them. If the system cannot start one, the caller does
//! the work itself.
//!
//! Starting a thread can fail at any time, because of a limit of processes, or of memory, which includes
//! its stack.

use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Builder, Scope, ScopedJoinHandle};

/// The number of CPUs that this process may use, and so of threads that can work at once. 1 if the system does
/// not state it.
pub fn cpu_count() -> NonZeroUsize {
    thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// Starts a helper thread, if the system allows it. Otherwise the work must be done without it.
pub fn spawn_helper<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Option<ScopedJoinHandle<'scope, T>> {
    Builder::new().spawn_scoped(scope, work).ok()
}

/// Runs `work` on that many threads in parallel, including the caller's. It must distribute the work
/// dynamically, because if fewer threads can be started, the others do all of it.
pub fn on_threads(count: usize, work: impl Fn() + Sync) {
    thread::scope(|scope| {
        for _ in 1..count {
            if spawn_helper(scope, &work).is_none() {
                break;
            }
        }
        work();
    });
}

/// Runs two functions in parallel, the first on a separate thread. If that cannot be started, runs one
/// after the other.
///
/// # Panics
///
/// If one of them panics.
pub fn join<A: Send, B>(first: impl FnOnce() -> A + Send, second: impl FnOnce() -> B) -> (A, B) {
    // If the thread does not start, its closure is dropped.
    let first = Mutex::new(Some(first));
    let take = || first.lock().unwrap_or_else(PoisonError::into_inner).take();
    thread::scope(|scope| {
        let helper = spawn_helper(scope, || take().map(|first| first()));
        let second = second();
        let done = match helper.map(ScopedJoinHandle::join) {
            Some(Ok(done)) => done,
            Some(Err(panic)) => resume_unwind(panic),
            None => take().map(|first| first()),
        };
        let Some(done) = done else { unreachable!("the thread, or else the caller, has taken it") };
        (done, second)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn two_things_are_done() {
        assert_eq!(join(|| 1, || 2), (1, 2));
    }

    #[test]
    fn all_is_shared_out() {
        for threads in [0, 1, 4] {
            let (next, sum) = (AtomicUsize::new(0), AtomicUsize::new(0));
            on_threads(threads, || {
                while let Some(item @ ..100) = Some(next.fetch_add(1, Ordering::Relaxed)) {
                    sum.fetch_add(item, Ordering::Relaxed);
                }
            });
            assert_eq!(sum.into_inner(), 4950, "{threads}");
        }
    }

    #[test]
    fn a_panic_is_handed_on() {
        let caught = std::panic::catch_unwind(|| join(|| panic!("of the first"), || 2));
        assert_eq!(caught.unwrap_err().downcast_ref(), Some(&"of the first"));
    }
}
