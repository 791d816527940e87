//! One run: opens counters, waits for the command or for the time, and reads the counters.

use super::counting::Counting;
use super::events::CountedEvents;
use super::measured::RunMeasurements;
use super::{interval, json, table};
use crate::args::{StatArgs, TargetArgs};
use crate::control::{Control, Phase};
use crate::failure::{FAILED, Failure};
use crate::identity;
use crate::number::counted;
use crate::page;
use crate::printer::{self, Printer};
use crate::record::linux::{command_of, launch_failure, running_target};
use crate::system::launch::end_message;
use crate::text::Text;
use nyquist_convert::event::{Pid, Tid};
use nyquist_record::linux::RecordingTarget;
use nyquist_record::linux::counting::{
    CommandThreads, CountError, CountedScope, EventCounters, WaitEnd, Waiter,
};
use nyquist_record::linux::launch::{self, ChildExit, RunningChild, SuspendedChild};
use nyquist_record::linux::ptrace::Notice;
use nyquist_record::linux::signals::EndSignal;
use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::io;
use std::time::{Duration, Instant};

/// How long a command may take to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);

/// Measures several runs in the same way.
pub(super) struct Meter<'a> {
    args: &'a StatArgs,
    requested: &'a CountedEvents,
    control: &'a Control,
    printer: Printer,
    /// The intervals, if they are not printed immediately.
    retained: RefCell<Text>,
    /// The number of the run that is measured, from 1.
    run: Cell<u32>,
}

/// The counted target, and its command.
struct CountedTarget {
    counting: Counting,
    child: Option<SuspendedChild>,
    /// What was running already. Its end ends the run, if there is no command.
    running: Option<RecordingTarget>,
    /// Whether the command is counted.
    is_command: bool,
}

impl<'a> Meter<'a> {
    pub(super) fn new(
        args: &'a StatArgs,
        requested: &'a CountedEvents,
        control: &'a Control,
        printer: Printer,
    ) -> Self {
        Self { args, requested, control, printer, retained: RefCell::default(), run: Cell::new(0) }
    }

    /// Measures one run of a command. Or measures running processes, until they or a command beside them end.
    pub(super) fn measure(&self, command: &[OsString]) -> Result<RunMeasurements, Failure> {
        self.run.set(self.run.get() + 1);
        let target = self.open(command)?;
        let cannot_wait = |error: io::Error| Failure::because("the end cannot be waited for", &error);
        let mut waiter = target.waiter().map_err(cannot_wait)?;
        let CountedTarget { counting, child, is_command, .. } = target;
        let began = Instant::now();
        if !is_command {
            counting.enable();
        }
        let running = child.map(SuspendedChild::start).transpose().map_err(|error| launch_failure(&error))?;
        self.control.enter(Phase::Recording {
            stop: waiter.stop_handle(),
            command: running.as_ref().map(RunningChild::signaller),
            interrupts: 0,
        });
        let waited = self.wait(&mut waiter, &counting, began).map_err(cannot_wait)?;
        if !is_command {
            counting.disable();
        }
        let mut wall = began.elapsed();
        let ended = running.map(|running| self.end(&running, waited)).transpose();
        let ended = ended.map_err(cannot_wait)?.flatten();
        if is_command && waited != WaitEnd::Exited {
            wall = began.elapsed();
        }
        self.control.enter(Phase::Starting);
        let counts = counting.finish(self.printer);
        let status = match (&ended, waited) {
            // The same as for a recording: the command did not end by itself.
            (_, WaitEnd::Time) => 0,
            (Some(ended), _) if is_command => ended.status.shell_code(),
            (None, WaitEnd::Stopped) if is_command => 128 + EndSignal::Terminate.number() as u8,
            _ => 0,
        };
        let used = ended.filter(|_| is_command).map(|ended| (ended.user, ended.system, ended.usage));
        self.report_signal(ended.as_ref(), command);
        Ok(RunMeasurements { wall, used, counts, status })
    }

    /// Whether no more runs follow, because one has failed, or because of a signal.
    pub(super) fn ends_early(&self, last: Option<&RunMeasurements>, left: u32) -> bool {
        if self.control.end_requested().is_some() {
            return true;
        }
        let failed = last.map(|run| run.status).filter(|status| *status != 0 && !self.args.ignore_exit_code);
        if let Some(status) = failed.filter(|_| left > 0) {
            let runs = counted(left.into(), "run");
            self.printer.warn(format_args!(
                "the command failed with {status}: {runs} left out (-i continues in spite of a failure)"
            ));
        }
        failed.is_some()
    }

    fn open(&self, command: &[OsString]) -> Result<CountedTarget, Failure> {
        let child = (!command.is_empty()).then(|| {
            let command = command_of(command, identity::invoking_user())?;
            launch::prepare(&command).map_err(|error| launch_failure(&error))
        });
        let child = child.transpose()?;
        let running = running_target(&TargetArgs {
            pid: self.args.pid.clone(),
            tid: self.args.tid,
            all_cpus: self.args.all_cpus,
            ..TargetArgs::default()
        })?;
        let is_command = self.args.is_command();
        let counting = match &child {
            Some(child) if is_command && self.args.per_thread => {
                let lost = child.loses_privileges();
                if let Some(program) = lost.clone() {
                    self.printer.warn(Notice::LosesPrivileges { program });
                }
                let threads = CommandThreads::trace(&self.requested.events, child.pid(), lost);
                threads.map(Counting::CommandThreads)
            }
            _ => self.counters(child.as_ref(), running.as_ref())?.map(Counting::of),
        };
        let counting = counting.map_err(|error| count_failure(&error))?;
        if !is_command && counting.is_refused() {
            return Err(nothing_counts(self.args));
        }
        Ok(CountedTarget { counting, child, running, is_command })
    }

    fn counters(
        &self,
        child: Option<&SuspendedChild>,
        running: Option<&RecordingTarget>,
    ) -> Result<Result<EventCounters, CountError>, Failure> {
        let scope = match (running, child) {
            (Some(RecordingTarget::Thread { tid: Tid(tid), .. }), _) => {
                CountedScope::Thread { tid: *tid, from_exec: false }
            }
            (Some(RecordingTarget::Attach(pids)), _) if self.args.per_thread => {
                CountedScope::EachThread(pids)
            }
            (Some(RecordingTarget::Attach(pids)), _) => CountedScope::Running(pids),
            (Some(_), _) => CountedScope::Everyone,
            (None, Some(child)) => CountedScope::Child(child.pid()),
            (None, None) => return Err(Failure::new("no command is given").hint("nyquist stat COMMAND")),
        };
        Ok(EventCounters::open(&self.requested.events, scope))
    }

    /// Waits for the end, and prints each interval.
    fn wait(&self, waiter: &mut Waiter, counting: &Counting, began: Instant) -> io::Result<WaitEnd> {
        let end = self.args.duration.and_then(|duration| began.checked_add(duration));
        let interval = self.args.interval.map(Duration::from_millis);
        let (Some(interval), Some(counters)) = (interval, counting.counters()) else {
            return waiter.wait(end);
        };
        let mut before = counters.read();
        let mut next = began + interval;
        loop {
            let until = end.map_or(next, |end| end.min(next));
            let waited = waiter.wait(Some(until))?;
            let now = counters.read();
            let is_last = waited != WaitEnd::Time || end.is_some_and(|end| Instant::now() >= end);
            let counts = interval::counts(&self.requested.events, &before, &now);
            self.print_interval(began.elapsed(), &counts);
            if is_last {
                return Ok(waited);
            }
            before = now;
            // If printing took longer than an interval, the passed intervals are printed as one.
            while next <= Instant::now() {
                next += interval;
            }
        }
    }

    /// Prints an interval immediately, or keeps it for the file.
    fn print_interval(&self, since: Duration, counts: &[interval::IntervalCount<'_>]) {
        let run = self.args.repeat.map(|_| self.run.get());
        let text = if self.args.json {
            format!("{}\n", json::interval(run, since, counts)).into()
        } else {
            table::interval(run, since, counts)
        };
        match (&self.args.output, self.args.json) {
            (Some(_), _) => *self.retained.borrow_mut() += text,
            // If the reader has closed the pipe, the rest is dropped.
            (None, true) => drop(page::print_at_once(text)),
            (None, false) => printer::print_result(&text),
        }
    }

    /// The intervals kept for the file.
    pub(super) fn into_kept(self) -> Text {
        self.retained.into_inner()
    }

    /// Waits for a command that has ended. A running command gets SIGTERM, and is waited for at most for
    /// the grace period.
    fn end(&self, running: &RunningChild, waited: WaitEnd) -> io::Result<Option<ChildExit>> {
        if waited == WaitEnd::Exited {
            let is_child = self.args.is_command() || running_has_ended(running);
            if !is_child {
                let _ = running.signaller().send(EndSignal::Terminate.number());
            }
            return running.wait().map(Some);
        }
        if waited == WaitEnd::Time {
            // If the command has ended by now, the signal is not needed.
            let _ = running.signaller().send(EndSignal::Terminate.number());
        }
        // Waits only for the process, because the request that stopped the other wait would stop this
        // one, too.
        let mut waiter = Waiter::new(&[running.pid().0])?;
        match waiter.wait(Some(Instant::now() + GRACE))? {
            WaitEnd::Exited => running.wait().map(Some),
            _ => Ok(None),
        }
    }

    fn report_signal(&self, ended: Option<&ChildExit>, command: &[OsString]) {
        let program = command.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
        if let Some(line) = ended.and_then(|ended| end_message(&program, ended.status)) {
            self.printer.say(line);
        }
    }
}

impl CountedTarget {
    /// Waits for the command, or for what was running already.
    fn waiter(&self) -> io::Result<Waiter> {
        match (&self.child, &self.running) {
            (Some(child), _) => Waiter::new(&[child.pid().0]),
            (None, Some(RecordingTarget::Thread { tid, .. })) => Waiter::for_thread(*tid),
            (None, Some(RecordingTarget::Attach(pids))) => {
                Waiter::new(&pids.iter().map(|Pid(pid)| *pid).collect::<Vec<_>>())
            }
            (None, _) => Waiter::new(&[]),
        }
    }
}

fn running_has_ended(running: &RunningChild) -> bool {
    nyquist_record::linux::process_has_ended(running.pid().0)
}

fn count_failure(error: &CountError) -> Failure {
    error.advice().into_iter().fold(Failure::new(error.to_string()), Failure::hint)
}

/// The failure if nothing can be counted for running processes. A command still has its times.
fn nothing_counts(args: &StatArgs) -> Failure {
    let what = match args.tid {
        Some(_) => "this thread",
        None if args.all_cpus => "the whole machine",
        None => "these processes",
    };
    Failure::new(format!("no event of {what} can be counted"))
        .hint("`nyquist list` says which events need more rights; root may count all, and `nyquist setup` changes what you may")
        .status(FAILED)
}
