//! The thread that traces a command for its counts. It opens the counters of each new thread, and reads them
//! when the thread has ended.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nyquist_convert::event::Pid;

use super::counted_threads::{CountedThreads, ThreadCounts};
use super::counters::{CountedScope, EventCounters};
use super::error::CountError;
use super::thread_account::ThreadAccount;
use crate::linux::arch::registers::{self, TracedRegisters};
use crate::linux::event_names::RequestedEvent;
use crate::linux::ptrace::OpenError;
use crate::linux::ptrace::privileges::Privileges;
use crate::linux::ptrace::restart::{Signals, only_epoll_descriptor, repeat_interrupted_call};
use crate::linux::ptrace::stop::PtraceStop;
use crate::linux::sys::clock::monotonic_ns;
use crate::linux::sys::job_control::Suspension;
use crate::linux::sys::process::{Preference, group_of};
use crate::linux::sys::ptrace::{self, WaitMode, WaitResult};
use crate::linux::sys::ticker::Ticker;
use crate::linux::{proc, thread_state};

/// How often to check, while nothing happens, whether the end was requested.
const BETWEEN_QUESTIONS_NS: u64 = 20_000_000;

/// How long to sleep when the only event left is the command's end, which another thread reaps.
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);

/// The most threads whose counts are kept. A command that starts processes without end would fill the memory.
const MAX_THREADS: usize = 100_000;

/// How often a thread gets a CPU between the stop after which it restarts its call and the next signal.
const TURNS_OF_A_REPEATED_CALL: u64 = 2;

/// How long programs may clean up before they stop by Ctrl-Z.
const MAX_STOP_DELAY_NS: u64 = 1_000_000_000;

/// A live thread.
struct CountedThread {
    pid: u32,
    /// How many threads were born before it.
    number: usize,
    name: String,
    counters: EventCounters,
    /// The kernel's counts for it when counting began.
    before: ThreadAccount,
    /// The kernel's counts for it when it began to end.
    account: Option<ThreadAccount>,
    is_ending: bool,
    /// Whether job control has stopped it.
    has_stopped: bool,
    /// When its system call was last restarted, and how often it had got a CPU by then.
    repeated: Option<(u64, u64)>,
}

/// The state of the tracing thread.
pub(super) struct ThreadTracer {
    events: Vec<RequestedEvent>,
    child: Pid,
    stop: Arc<AtomicBool>,
    ticker: Ticker,
    suspension: Suspension,
    privileges: Privileges,
    /// Whether the process has not called exec for the command yet.
    awaits_exec: bool,
    /// By their thread ids.
    live: HashMap<u32, CountedThread>,
    born: usize,
    ended: Vec<(usize, ThreadCounts)>,
    /// The live threads that are not counted, because there are too many.
    uncounted: HashSet<u32>,
    not_counted: u64,
}

impl ThreadTracer {
    /// Makes the calling thread the tracer of a process with one thread, which is counted from its next exec
    /// on.
    pub(super) fn seize(
        events: Vec<RequestedEvent>,
        child: Pid,
        privileges: Privileges,
        stop: Arc<AtomicBool>,
    ) -> Result<Self, CountError> {
        let system = |what| move |source| OpenError::System { what, source };
        let ticker = Ticker::new().map_err(system("no timer can be made"))?;
        let suspension = Suspension::take_over().map_err(system("SIGTSTP cannot be taken over"))?;
        ptrace::seize(child.0).map_err(|error| OpenError::of_seizing(child, error))?;
        let mut tracer = Self {
            events,
            child,
            stop,
            ticker,
            suspension,
            privileges,
            awaits_exec: true,
            live: HashMap::new(),
            born: 0,
            ended: Vec::new(),
            uncounted: HashSet::new(),
            not_counted: 0,
        };
        tracer.count(child.0, child.0, true)?;
        Ok(tracer)
    }

    /// Traces until all threads have ended, or the end is requested.
    pub(super) fn run(mut self) -> CountedThreads {
        // A thread stays stopped until this one gets the CPU.
        let _preference = Preference::of_this_thread();
        self.ticker.set(monotonic_ns(), BETWEEN_QUESTIONS_NS);
        while !self.stop.load(Ordering::Relaxed) {
            match ptrace::wait(WaitMode::UntilSignal) {
                Ok(Some(waited)) => self.handle(waited),
                Ok(None) => {}
                // No traced thread is left.
                Err(_) => break,
            }
            self.stop_after_the_command();
        }
        for tid in self.live.keys().copied().collect::<Vec<_>>() {
            self.note_end(tid);
            self.close(tid);
        }
        self.ended.sort_by_key(|(number, _)| *number);
        CountedThreads {
            threads: self.ended.into_iter().map(|(_, thread)| thread).collect(),
            not_counted: self.not_counted,
            lost_privileges: self.privileges.lost,
        }
    }

    /// Handles a stopped or ended thread and resumes it. It is no error if the thread is gone meanwhile,
    /// because its end is reported separately.
    fn handle(&mut self, waited: WaitResult) {
        let tid = waited.tid;
        let stop = PtraceStop::of(waited);
        if stop == PtraceStop::Ended {
            return self.end(tid);
        }
        // A new thread stops by itself before it runs, whether or not its parent's stop was reported.
        if !self.live.contains_key(&tid) && !self.uncounted.contains(&tid) {
            self.adopt(tid);
        }
        if let Some(thread) = self.live.get_mut(&tid) {
            thread.has_stopped = stop == PtraceStop::Group;
        }
        match stop {
            PtraceStop::Group => {
                // It stays stopped until SIGCONT.
                let _ = ptrace::listen(tid);
                return;
            }
            PtraceStop::Signal(signal) => return self.deliver(tid, signal),
            PtraceStop::Exec => self.exec(tid),
            PtraceStop::Exit => self.note_end(tid),
            PtraceStop::Ended | PtraceStop::Trap | PtraceStop::Birth => {}
        }
        let _ = ptrace::resume(tid, 0);
    }

    /// Adds a thread that was born from a traced one.
    fn adopt(&mut self, tid: u32) {
        let pid = proc::status_number(tid, "Tgid").unwrap_or(tid);
        if self.born >= MAX_THREADS || self.count(pid, tid, false).is_err() {
            self.uncounted.insert(tid);
            self.not_counted += 1;
        }
    }

    /// Opens the counters of a thread.
    fn count(&mut self, pid: u32, tid: u32, from_exec: bool) -> Result<(), CountError> {
        let counters = EventCounters::open(&self.events, CountedScope::Thread { tid, from_exec })?;
        if !from_exec {
            counters.enable();
        }
        let live = CountedThread {
            pid,
            number: self.born,
            name: name_of(pid, tid).unwrap_or_default(),
            counters,
            before: ThreadAccount::read(pid, tid).unwrap_or_default(),
            account: None,
            is_ending: false,
            has_stopped: false,
            repeated: None,
        };
        self.born += 1;
        self.live.insert(tid, live);
        Ok(())
    }

    /// Delivers a signal to a thread. Without a tracer, a signal without effect would not have ended a system
    /// call.
    fn deliver(&mut self, tid: u32, signal: i32) {
        self.repeat_call(tid, signal);
        let _ = ptrace::resume(tid, signal);
    }

    /// Makes a thread restart its system call if a signal without effect has ended it.
    fn repeat_call(&mut self, tid: u32, signal: i32) {
        let Some(thread) = self.live.get_mut(&tid).filter(|_| registers::SHOW_CALLS) else { return };
        let Ok(mut stopped) = TracedRegisters::read(tid) else { return };
        if stopped.interrupted_call().is_none() {
            return;
        }
        let Some(signals) = Signals::of(thread.pid, tid).filter(|signals| signals.ignores(signal)) else {
            return;
        };
        let now = monotonic_ns();
        let turns = thread_state::ThreadFiles::open(thread.pid, tid).schedule().unwrap_or_default().turns;
        // A thread that got a CPU once to restart the call, and once for this signal, has waited in that call
        // meanwhile. It may have made another call in between. Then the timeout of this one comes early,
        // which programs must expect. A call that began at another time waits for its whole timeout again.
        let waited_ns = match thread.repeated {
            Some((at, before)) if turns <= before + TURNS_OF_A_REPEATED_CALL => now.saturating_sub(at),
            _ => 0,
        };
        let epoll = || only_epoll_descriptor(thread.pid, tid);
        if repeat_interrupted_call(&mut stopped, &signals, waited_ns, epoll) && stopped.write(tid).is_ok() {
            thread.repeated = Some((now, turns));
        }
    }

    /// Handles an exec. All other threads of the process are gone, and the one that called exec now has the
    /// pid as its thread id.
    fn exec(&mut self, tid: u32) {
        ptrace::take_stop(tid);
        let former = ptrace::event_message(tid).unwrap_or(tid);
        if former != tid {
            self.close(tid);
            if let Some(thread) = self.live.remove(&former) {
                self.live.insert(tid, thread);
            }
        }
        if let Some(thread) = self.live.get_mut(&tid) {
            if self.child.0 == tid && std::mem::take(&mut self.awaits_exec) {
                thread.before = ThreadAccount::read(tid, tid).unwrap_or_default();
            }
            thread.name = name_of(tid, tid).unwrap_or_default();
        }
        self.privileges.note_exec(tid);
    }

    /// Handles a thread that is about to end: this is the last time that its name can be read.
    fn note_end(&mut self, tid: u32) {
        let Some(thread) = self.live.get_mut(&tid).filter(|thread| !thread.is_ending) else { return };
        thread.is_ending = true;
        if let Some(name) = name_of(thread.pid, tid) {
            thread.name = name;
        }
        thread.account = ThreadAccount::read(thread.pid, tid).map(|now| now.since(thread.before));
    }

    /// Handles the end of a thread. Its parent reaps it, or for the command, another thread of this process.
    fn end(&mut self, tid: u32) {
        let is_known = self.live.contains_key(&tid);
        self.uncounted.remove(&tid);
        self.close(tid);
        if self.child.0 != tid {
            ptrace::reap(tid);
        } else if !is_known {
            // The kernel reports it again and again until it is reaped.
            std::thread::sleep(BETWEEN_LOOKS);
        }
    }

    /// Reads the counters of a thread for the last time.
    fn close(&mut self, tid: u32) {
        let Some(thread) = self.live.remove(&tid) else { return };
        let CountedThread { pid, number, name, counters, account, .. } = thread;
        let counts = ThreadCounts { pid, tid, name, readings: counters.read(), account };
        self.ended.push((number, counts));
    }

    /// Stops this process after a request by Ctrl-Z, when all others with the same request have stopped.
    /// Without the tracer, no signal is delivered to them.
    fn stop_after_the_command(&self) {
        let Some(requested_at) = self.suspension.requested_at() else { return };
        let own = group_of(std::process::id());
        let is_late = monotonic_ns().saturating_sub(requested_at) >= MAX_STOP_DELAY_NS;
        let mut threads = self.live.values();
        if is_late || threads.all(|it| it.has_stopped || it.is_ending || group_of(it.pid) != own) {
            self.suspension.stop();
        }
    }
}

fn name_of(pid: u32, tid: u32) -> Option<String> {
    let name = fs::read(format!("/proc/{pid}/task/{tid}/comm")).ok()?;
    Some(String::from_utf8_lossy(name.strip_suffix(b"\n").unwrap_or(&name)).into_owned())
}
