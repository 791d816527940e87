//! Becoming the tracer of all threads of what is recorded, and of all that descends from it, while it runs.

use std::io;

use nyquist_convert::event::Pid;

use super::outcome::{Notice, OpenError};
use super::subject::Subject;
use super::task::{Activity, Task};
use super::tracer::Tracer;
use crate::linux::proc;
use crate::linux::sys::clock::monotonic_ns;
use crate::linux::sys::ptrace;

/// Processes that descend from what is recorded and cannot be traced, with the reason.
type LeftOut = Vec<(Pid, OpenError)>;

/// Whether a thread was born from one that is traced, and its birth is only not heard of yet.
fn is_traced_by_us(tid: u32) -> bool {
    proc::tracer(tid) == Some(std::process::id())
}

impl Tracer {
    /// Traces all threads of all processes, and those that are born meanwhile, until a look at them finds no new one. Says
    /// which processes had to be left out.
    pub(super) fn seize_all(&mut self) -> Result<Option<Notice>, OpenError> {
        let named = self.target.named().to_vec();
        if let Some(pid) = named.iter().find(|pid| proc::has_ended(pid.0)) {
            return Err(OpenError::NoSuchProcess { pid: *pid });
        }
        let mut left_out = LeftOut::new();
        while self.seize_new(&named, &mut left_out)? {
            // Who is born meanwhile does not wait until all others are found.
            self.handle_all();
        }
        self.living = named.iter().map(|pid| pid.0).filter(|pid| self.tasks.any_of(*pid)).collect();
        if let (true, Some(pid)) = (self.living.is_empty(), named.first()) {
            return Err(OpenError::NoSuchProcess { pid: *pid });
        }
        for task in self.tasks.all_mut().iter_mut().filter(|_| self.awaits_exec) {
            task.activity = Activity::Aside;
        }
        Ok(notice(left_out))
    }

    /// Traces what is not traced yet, and says whether there was anything. Who has ended meanwhile is none to record, and a
    /// process that nobody has named is no reason not to record the others.
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

    /// All processes that are to be traced. This one cannot trace itself, and has to hear itself of the end of what it has
    /// launched: where it descends from what is recorded, it is left out with its own.
    fn family(&self) -> Vec<Pid> {
        match &self.target {
            Subject::Child(pid) => vec![*pid],
            Subject::Attach(pids) => proc::other_families(pids).into_iter().map(Pid).collect(),
        }
    }

    /// Traces the threads of a process that are not traced yet, and says whether there were any.
    fn seize_process(&mut self, pid: Pid) -> Result<bool, OpenError> {
        let threads = proc::threads(pid).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => OpenError::NoSuchProcess { pid },
            _ => OpenError::System { what: "the threads of the process cannot be listed", source },
        })?;
        let mut found = false;
        for tid in threads {
            if self.tasks.get(tid).is_some() {
                continue;
            }
            match ptrace::seize(tid) {
                Ok(()) => {
                    found = true;
                    self.begin(pid.0, tid);
                }
                Err(_) if proc::has_ended(pid.0) => return Err(OpenError::NoSuchProcess { pid }),
                // A thread that has ended meanwhile, or a main thread before the others, is none to record; nor is one that is traced by now, for it
                // was born from one that is.
                Err(_) if proc::thread_has_ended(tid) || is_traced_by_us(tid) => {}
                Err(error) => return Err(OpenError::of_seizing(pid, error)),
            }
        }
        Ok(found)
    }

    fn begin(&mut self, pid: u32, tid: u32) {
        let mut task = Task::new(pid, tid, monotonic_ns());
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
