//! Becoming the tracer of all threads of the target and its descendants, while they run.

use std::io;

use nyquist_convert::event::Pid;

use super::outcome::{Notice, OpenError};
use super::subject::TracedTarget;
use super::tracee::{Activity, Tracee};
use super::tracer::Tracer;
use crate::linux::sys::clock::monotonic_ns;
use crate::linux::sys::ptrace;
use crate::linux::{proc, target_access};

/// Descendants of the target that cannot be traced, with the reason.
type LeftOut = Vec<(Pid, OpenError)>;

/// Whether a thread was born from a traced one, and its birth was not reported yet.
fn is_traced_by_us(tid: u32) -> bool {
    proc::tracer(tid) == Some(std::process::id())
}

impl Tracer {
    /// Traces all threads of all processes, including those born meanwhile, until no new one is found.
    /// Returns a notice of the processes that had to be left out.
    pub(super) fn seize_all(&mut self) -> Result<Option<Notice>, OpenError> {
        let named = self.target.named().to_vec();
        if let Some(pid) = named.iter().find(|pid| proc::has_ended(pid.0)) {
            return Err(OpenError::NoSuchProcess { pid: *pid });
        }
        let mut left_out = LeftOut::new();
        while self.seize_new(&named, &mut left_out)? {
            // Resumes threads that are born meanwhile, so that they do not wait until all others are found.
            self.handle_all();
        }
        self.live = named.iter().map(|pid| pid.0).filter(|pid| self.tasks.any_of(*pid)).collect();
        if let (true, Some(pid)) = (self.live.is_empty(), named.first()) {
            return Err(OpenError::NoSuchProcess { pid: *pid });
        }
        for task in self.tasks.all_mut().iter_mut().filter(|_| self.awaits_exec) {
            task.activity = Activity::Aside;
        }
        Ok(notice(left_out))
    }

    /// Traces what is not traced yet, and returns whether there was anything. A process that has ended
    /// meanwhile need not be recorded. A process that the user has not named does not prevent the recording
    /// of the others.
    fn seize_new(&mut self, named: &[Pid], left_out: &mut LeftOut) -> Result<bool, OpenError> {
        let mut found = false;
        for pid in self.family() {
            if left_out.iter().any(|(other, _)| *other == pid) {
                continue;
            }
            match self.seize_process(pid) {
                Ok(any) => found |= any,
                Err(OpenError::NoSuchProcess { .. }) => {}
                Err(error) if named.contains(&pid) => return Err(error),
                Err(error) => left_out.push((pid, error)),
            }
        }
        Ok(found)
    }

    /// All processes to trace. This process cannot trace itself, and must wait for the processes that it has
    /// launched. If it descends from the target, it is left out with its descendants.
    fn family(&self) -> Vec<Pid> {
        match &self.target {
            TracedTarget::Child(pid) => vec![*pid],
            TracedTarget::Attach(pids) => proc::other_families(pids).into_iter().map(Pid).collect(),
        }
    }

    /// Traces the threads of a process that are not traced yet, and returns whether there were any.
    fn seize_process(&mut self, pid: Pid) -> Result<bool, OpenError> {
        let threads = proc::threads(pid).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => OpenError::NoSuchProcess { pid },
            _ => OpenError::System { what: "the threads of the process cannot be listed", source },
        })?;
        // The kernel would wait for it.
        if target_access::withholds_itself(pid.0) {
            return Err(OpenError::NoAccess { pid });
        }
        let mut found = false;
        for tid in threads {
            if self.tasks.get(tid).is_some() {
                continue;
            }
            match self.attaching.to(pid, || ptrace::seize(tid)) {
                Ok(()) => {
                    found = true;
                    self.begin(pid.0, tid);
                }
                Err(_) if proc::has_ended(pid.0) => return Err(OpenError::NoSuchProcess { pid }),
                // A thread that has ended meanwhile, or a main thread that has ended before the others, need
                // not be recorded. Nor is a thread that is traced by now, because it was born from a traced
                // one.
                Err(_) if proc::thread_has_ended(tid) || is_traced_by_us(tid) => {}
                Err(error) => return Err(OpenError::of_seizing(pid, error)),
            }
        }
        Ok(found)
    }

    fn begin(&mut self, pid: u32, tid: u32) {
        let mut task = Tracee::new(pid, tid, monotonic_ns());
        task.start_counting();
        self.tasks.add(task);
        self.processes.entry(pid).or_default();
    }
}

fn notice(left_out: LeftOut) -> Option<Notice> {
    let (pids, reasons): (Vec<Pid>, Vec<OpenError>) = left_out.into_iter().unzip();
    let first = reasons.first()?;
    let reason = match first.advice() {
        Some(advice) => format!("{first} ({advice})"),
        None => first.to_string(),
    };
    Some(Notice::LeftOut { pids, reason })
}
