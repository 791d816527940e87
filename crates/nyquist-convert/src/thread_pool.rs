//! Threads that stay, for work of which much comes at once from time to time: they sleep in between.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, Result};

/// Threads that do jobs beside the one that has them to do. Each is started when it is first of use, with that one's priority,
/// and ends with the pool.
#[derive(Debug)]
pub struct ThreadPool<J, R> {
    name: &'static str,
    most: usize,
    started: usize,
    jobs: Arc<Jobs<J>>,
    out: Sender<Done<R>>,
    done: Receiver<Done<R>>,
}

/// The place of a job among all, and what came of it, or how its thread panicked.
type Done<R> = (usize, Result<R>);

/// Jobs that nobody has begun, with their places, the first first.
#[derive(Debug)]
struct Jobs<J> {
    waiting: Mutex<Waiting<J>>,
    has_come: Condvar,
}

#[derive(Debug)]
struct Waiting<J> {
    jobs: VecDeque<(usize, J)>,
    is_end: bool,
}

impl<J: Send + 'static, R: Send + 'static> ThreadPool<J, R> {
    /// A pool of so many threads at most, which have this name.
    pub fn new(name: &'static str, most: usize) -> Self {
        let (out, done) = channel();
        let waiting = Mutex::new(Waiting { jobs: VecDeque::new(), is_end: false });
        let jobs = Arc::new(Jobs { waiting, has_come: Condvar::new() });
        Self { name, most, started: 0, jobs, out, done }
    }

    /// How many threads there may be.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Does some jobs, and hands on what comes of them in their order. So many threads at most take part: each does what
    /// `worker` gives it to do, and the one that calls does `own`. Where threads cannot be started, there are fewer.
    ///
    /// # Panics
    ///
    /// Where one of the threads has.
    pub fn do_all<W: FnMut(J) -> R + Send + 'static>(
        &mut self,
        jobs: Vec<J>,
        threads: usize,
        worker: impl Fn() -> W,
        mut own: impl FnMut(J) -> R,
        mut take: impl FnMut(R),
    ) {
        let threads = threads.min(self.most).min(jobs.len());
        if threads == 0 {
            return jobs.into_iter().for_each(|job| take(own(job)));
        }
        while self.started < threads && self.start(worker()) {
            self.started += 1;
        }
        let count = jobs.len();
        self.jobs.waiting().jobs.extend(jobs.into_iter().enumerate());
        (0..threads.min(self.started)).for_each(|_| self.jobs.has_come.notify_one());
        let mut ready = BTreeMap::new();
        for place in 0..count {
            while !ready.contains_key(&place) {
                ready.extend(self.done.try_iter());
                if !ready.contains_key(&place) {
                    let next = self.jobs.waiting().jobs.pop_front();
                    let next = next.map(|(place, job)| (place, Ok(own(job))));
                    ready.extend(next.or_else(|| self.done.recv().ok()));
                }
            }
            match ready.remove(&place) {
                Some(Err(panic)) => resume_unwind(panic),
                done => done.and_then(Result::ok).into_iter().for_each(&mut take),
            }
        }
    }

    /// Starts a thread; false where that cannot be done.
    fn start(&self, mut work: impl FnMut(J) -> R + Send + 'static) -> bool {
        let (jobs, out) = (Arc::clone(&self.jobs), self.out.clone());
        let thread = Builder::new().name(self.name.to_owned());
        let run = move || {
            while let Some((place, job)) = jobs.next() {
                let done = catch_unwind(AssertUnwindSafe(|| work(job)));
                let has_panicked = done.is_err();
                if out.send((place, done)).is_err() || has_panicked {
                    break;
                }
            }
        };
        thread.spawn(run).is_ok()
    }
}

impl<J> Jobs<J> {
    fn waiting(&self) -> MutexGuard<'_, Waiting<J>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next job, when there is one; `None` when no more will come.
    fn next(&self) -> Option<(usize, J)> {
        let mut waiting = self.waiting();
        loop {
            if waiting.is_end {
                return None;
            }
            match waiting.jobs.pop_front() {
                Some(job) => return Some(job),
                None => waiting = self.has_come.wait(waiting).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

impl<J, R> Drop for ThreadPool<J, R> {
    fn drop(&mut self) {
        self.jobs.waiting().is_end = true;
        self.jobs.has_come.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::thread::{self, ThreadId};

    /// What comes of so many jobs, and who has done each, as far as a thread of the pool has.
    fn done(
        pool: &mut ThreadPool<u32, (u32, Option<ThreadId>)>,
        jobs: u32,
        threads: usize,
    ) -> Vec<(u32, Option<ThreadId>)> {
        let mut all = Vec::new();
        let worker = || |job: u32| (2 * job, Some(thread::current().id()));
        pool.do_all((0..jobs).collect(), threads, worker, |job| (2 * job, None), |done| all.push(done));
        all
    }

    #[test]
    fn jobs_are_handed_on_in_order() {
        let mut pool = ThreadPool::new("pool", 3);
        for (jobs, threads, started) in
            [(0, 3, 0), (1, 0, 0), (500, 0, 0), (500, 2, 2), (1, 3, 2), (500, 7, 3)]
        {
            let numbers: Vec<u32> =
                done(&mut pool, jobs, threads).into_iter().map(|(number, _)| number).collect();
            assert_eq!(numbers, (0..jobs).map(|job| 2 * job).collect::<Vec<_>>(), "{jobs} by {threads}");
            assert_eq!(pool.started, started);
        }
    }

    #[test]
    fn as_many_threads_take_part_as_are_asked_for() {
        // All have to be there at once for any of them to go on.
        let barrier = Arc::new(Barrier::new(4));
        let mut pool = ThreadPool::new("pool", 3);
        for _ in 0..3 {
            let meet = |barrier: &Barrier| usize::from(barrier.wait().is_leader());
            let worker = || {
                let barrier = Arc::clone(&barrier);
                move |_: u32| meet(&barrier)
            };
            let mut leaders = 0;
            pool.do_all((0..4).collect(), 3, worker, |_| meet(&barrier), |is_leader| leaders += is_leader);
            assert_eq!((leaders, pool.started), (1, 3));
        }
    }

    #[test]
    fn who_has_jobs_hears_of_a_panic() {
        let mut pool: ThreadPool<u32, u32> = ThreadPool::new("pool", 1);
        let (begun, wait) = channel();
        let begun = Mutex::new(begun);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let worker = || {
                let begun = begun.lock().unwrap().clone();
                move |_| {
                    begun.send(()).unwrap();
                    panic!("a job that goes wrong")
                }
            };
            // It does its own job only when the thread has begun another.
            let own = |job| wait.recv().map(|()| job).unwrap();
            pool.do_all(vec![1, 2], 1, worker, own, |_| {});
        }));
        let panic = outcome.unwrap_err();
        assert_eq!(panic.downcast_ref(), Some(&"a job that goes wrong"));
    }
}
