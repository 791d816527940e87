//! `nyquist agent`: records all the time, and hands over a profile of each window of time.

mod brief_clients;
mod budget;
mod config;
mod container_names;
mod counts;
mod delivery;
mod folder;
mod headers;
mod kinds;
mod label_rules;
mod metrics;
mod plan;
mod relief;
mod server;
mod service_labels;
mod session;
mod unit;
mod window;

use crate::args::AgentArgs;
use crate::failure::Failure;
use crate::number::counted;
use crate::printer::Printer;
use crate::record::dropped_events;
use crate::record::linux::allocations;
use crate::record::linux::outcome_messages;
use crate::record::linux::{check_limits, command_of, launch_failure};
use crate::system::users::give_up_capabilities;
use crate::{finder, identity};
use budget::Budget;
use counts::Counts;
use delivery::Delivery;
use folder::Folder;
use kinds::{AllocationValues, by_kind};
use label_rules::LabelRules;
use metrics::{Metrics, Pulse};
use nyquist_convert::event::Pid;
use nyquist_convert::{Progress, Symbolicator, Symbols};
use nyquist_formats::ProcessLabels;
use nyquist_profile::Profile;
use nyquist_record::linux::RecordingTarget;
use nyquist_record::linux::allocations::AllocationReader;
use nyquist_record::linux::launch::{self, RunningChild, SuspendedChild};
use nyquist_record::linux::signals::{EndSignal, Requests};
use nyquist_symbols::{Finder, KernelFiles, KernelSymbols};
use plan::Plan;
use relief::{AllocationsAnew, Relief};
use server::Server;
use service_labels::{Labelling, Origins};
use session::{Losses, Remainder, Session, WindowProfile};
use std::num::NonZero;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long the agent may take to end, and how much of that is for names.
const END_WITHIN: Duration = Duration::from_secs(4);
const NAMES_WITHIN: Duration = Duration::from_millis(1500);

/// How much lower the priority of everything but the recorder is.
const NICE: i32 = 10;

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Message {
    Signal(EndSignal),
    /// The recording of that number has ended by itself.
    Ended(u32),
}

/// Runs the subcommand and returns the exit status.
pub(crate) fn run(typed: &AgentArgs) -> Result<u8, Failure> {
    let plan = Plan::of(typed)?;
    if plan.args.check {
        return plan.print().map(|()| 0);
    }
    check_limits()?;
    let requests =
        Requests::take_over().map_err(|error| Failure::because("cannot take over signals", &error))?;
    let (sender, messages) = mpsc::channel();
    let progress: SharedProgress = Arc::default();
    let mut agent = Agent::start(typed, plan, sender.clone(), Arc::clone(&progress))?;
    thread::spawn(move || forward(&requests, &sender, &progress));
    agent.run(&messages)
}

/// The lookup of names that a signal ends.
type SharedProgress = Arc<Mutex<Arc<Progress>>>;

fn forward(requests: &Requests, messages: &Sender<Message>, progress: &SharedProgress) {
    // It only waits.
    let _ = give_up_capabilities();
    while let Ok(request) = requests.wait().and_then(|()| requests.take()) {
        let Some(request) = request else { continue };
        if request.signal != EndSignal::HangUp {
            progress.lock().unwrap_or_else(PoisonError::into_inner).cancel.store(true, Ordering::Relaxed);
        }
        if messages.send(Message::Signal(request.signal)).is_err() {
            return;
        }
    }
}

/// What follows a recording.
#[derive(Clone, Copy, Debug)]
enum Next {
    /// Another one of the same target.
    Recording,
    /// Nothing.
    End,
}

struct Agent<'a> {
    typed: &'a AgentArgs,
    plan: Plan,
    printer: Printer,
    counts: Arc<Counts>,
    pulse: Arc<Pulse>,
    deliveries: Vec<(Server, Delivery)>,
    origins: Origins,
    labelling: Labelling,
    messages: Sender<Message>,
    progress: SharedProgress,
    session: Option<Session>,
    command: Option<RunningChild>,
    target: RecordingTarget,
    rate: u32,
    /// The number of the recording, which begins anew when it takes too much.
    number: u32,
    budget: Budget,
    lost: Losses,
    /// The reader of allocations, between two recordings.
    allocations: Option<AllocationReader>,
    values: AllocationValues,
}

impl<'a> Agent<'a> {
    fn start(
        typed: &'a AgentArgs,
        plan: Plan,
        messages: Sender<Message>,
        progress: SharedProgress,
    ) -> Result<Self, Failure> {
        let counts = Arc::<Counts>::default();
        let origins =
            Origins::start().map_err(|error| Failure::because("no thread can be started", &error))?;
        let pulse = Arc::new(Pulse::new());
        if let Some(port) = plan.args.metrics {
            let (counts, pulse) = (Arc::clone(&counts), Arc::clone(&pulse));
            Metrics { counts, pulse, every: plan.args.every }.serve(port)?;
        }
        let printer = Printer::new(plan.args.verbosity);
        let (target, child, allocations) = target_of(&plan.args, printer)?;
        let mut agent = Self {
            typed,
            printer,
            deliveries: plan.deliveries(&counts)?,
            counts,
            pulse,
            origins,
            labelling: labelling_of(&plan),
            messages,
            progress,
            session: None,
            command: None,
            target,
            rate: plan.args.rate,
            number: 0,
            budget: Budget::new(),
            lost: Losses::default(),
            allocations,
            values: AllocationValues::All,
            plan,
        };
        agent.record(child)?;
        if let Some(session) = &agent.session {
            outcome_messages::print_outcome(agent.printer, &session.outcome);
        }
        Ok(agent)
    }

    /// Begins to record the target, with its command if it is one.
    fn record(&mut self, child: Option<SuspendedChild>) -> Result<(), Failure> {
        self.number += 1;
        let ended = (self.messages.clone(), Message::Ended(self.number));
        let by = (self.origins.clone(), ended);
        let started = (child, self.allocations.take());
        let (session, running) =
            Session::start(&self.plan.args, self.rate, self.target.clone(), started, by)?;
        self.session = Some(session);
        if let Some(running) = running {
            // A recording that begins anew attaches to it.
            self.target = RecordingTarget::Attach(vec![running.pid()]);
            self.command = Some(running);
        }
        Ok(())
    }

    /// Works until the end. Names are kept until the recording begins anew.
    fn run(&mut self, messages: &Receiver<Message>) -> Result<u8, Failure> {
        // The recorder's thread has the usual priority. A lower one is no reason to end.
        let _ = rustix::process::nice(NICE);
        loop {
            let finder = identity::as_invoking_user(|| finder::offline(&self.plan.args.symbols))?;
            let finder = finder.with_kernel_files(KernelFiles::open());
            if let Some(signal) = self.work(messages, &finder)? {
                return Ok(signal.map_or_else(|| self.status(), |signal| 128 + signal.number() as u8));
            }
            self.record(None)?;
        }
    }

    /// Works until the end, or until the recording has to begin anew (`None`). Returns the signal that ended it.
    #[expect(clippy::option_option, reason = "the end, and the signal, if it is the reason")]
    fn work(
        &mut self,
        messages: &Receiver<Message>,
        finder: &Finder,
    ) -> Result<Option<Option<EndSignal>>, Failure> {
        let mut symbolicator = Symbolicator::new(Symbols {
            finder,
            kernel: KernelSymbols::running,
            threads: NonZero::<usize>::MIN,
        });
        loop {
            let left = self.session.as_ref().map_or(Duration::ZERO, Session::left);
            match messages.recv_timeout(left) {
                Err(RecvTimeoutError::Timeout) => {
                    if let Some(session) = &self.session {
                        let taken = session.take(self.plan.args.every);
                        self.hand_over(taken, &mut symbolicator, true)?;
                    }
                    if self.takes_too_much() {
                        self.finish_session(&mut symbolicator, Next::Recording)?;
                        return Ok(None);
                    }
                }
                Ok(Message::Signal(EndSignal::HangUp)) => self.read_again(),
                Ok(Message::Signal(signal)) => {
                    self.end(&mut symbolicator, Some(signal))?;
                    return Ok(Some(Some(signal)));
                }
                Ok(Message::Ended(number)) if number == self.number => {
                    self.end(&mut symbolicator, None)?;
                    return Ok(Some(None));
                }
                Ok(Message::Ended(_)) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(Some(None)),
            }
        }
    }

    /// Looks names up, and hands the profile to the folder and to the servers.
    fn hand_over(
        &mut self,
        taken: WindowProfile,
        symbolicator: &mut Symbolicator<'_>,
        spreads: bool,
    ) -> Result<(), Failure> {
        self.pulse.beat();
        let WindowProfile { profile, sources, events, window, lost } = taken;
        self.lost.add(lost);
        if lost.records > 0 {
            self.printer.detail(format_args!("the kernel dropped {} records", lost.records));
        }
        if lost.events > 0 {
            self.printer.detail(dropped_events(lost.events));
        }
        if lost.blocks > 0 {
            self.printer.detail(too_many_blocks(lost.blocks));
        }
        let progress = Arc::clone(&self.progress.lock().unwrap_or_else(PoisonError::into_inner));
        let named = identity::as_invoking_user(|| symbolicator.symbolicate(profile, &sources, &progress))?;
        let length = Duration::from_nanos(window.end.0.saturating_sub(window.start.0));
        let delay = if spreads { spread(length) } else { Duration::ZERO };
        for profile in by_kind(named.profile, &events, self.values) {
            let processes = profile.processes().iter();
            let labels: Vec<_> =
                processes.map(|process| self.labelling.labels(process, &self.origins)).collect();
            self.write(&profile, &labels);
            self.send(&profile, &labels, delay);
        }
        Ok(())
    }

    fn send(&self, profile: &Profile, labels: &[ProcessLabels], delay: Duration) {
        for (server, delivery) in &self.deliveries {
            match server.payloads(profile, labels) {
                Ok(payloads) => delivery.add(payloads, delay, &self.counts),
                Err(error) => self.printer.warn(format_args!("a profile cannot be converted: {error}")),
            }
        }
    }

    fn write(&self, profile: &Profile, labels: &[ProcessLabels]) {
        let Plan { args, host, .. } = &self.plan;
        let Some(path) = &args.to else { return };
        match (Folder { path, host, max_file_size: args.max_file_size }).write(profile, labels) {
            Ok(files) => Counts::add(&self.counts.written, files),
            Err(failure) => {
                Counts::add(&self.counts.lost, 1);
                self.printer.warn(failure.message);
            }
        }
    }

    /// Whether the recording has to begin anew, and at what rate.
    fn takes_too_much(&mut self) -> bool {
        let command = self.command.as_ref().map(|command| command.pid().0);
        // What the stated rate permits: a part of the cost does not fall with the rate.
        let excess = self.budget.check(self.plan.args.rate, command);
        let relief = Relief::due(excess, &self.plan.args, self.rate, || self.budget.has_room());
        let Some(relief) = relief else { return false };
        relief.apply(&mut self.plan.args, &mut self.rate);
        match relief {
            Relief::Memory(_) => self.printer.detail(relief),
            Relief::GivesUp(..) => self.printer.warn(relief),
            Relief::HigherRate(_) => self.printer.say(relief),
        }
        true
    }

    fn finish_session(&mut self, symbolicator: &mut Symbolicator<'_>, next: Next) -> Result<(), Failure> {
        let Some(session) = self.session.take() else { return Ok(()) };
        let goes_on =
            matches!(next, Next::Recording) && session.records_allocations() && self.plan.args.alloc;
        let anew = goes_on.then(|| AllocationsAnew::of(self.plan.args.alloc_rate, self.values));
        let is_last = matches!(anew, None | Some(AllocationsAnew::End));
        let Remainder { taken, allocations, summary } = session.finish(self.plan.args.every, is_last);
        for taken in taken {
            self.hand_over(taken, symbolicator, false)?;
        }
        if let Some(summary) = summary {
            for sentence in allocations::losses(&summary) {
                self.printer.warn(sentence);
            }
        }
        self.allocations = allocations;
        let Some(anew) = anew else { return Ok(()) };
        match anew {
            AllocationsAnew::End => self.plan.args.alloc = false,
            AllocationsAnew::Allocated | AllocationsAnew::AllocatedAsBefore => {
                self.values = AllocationValues::Allocated;
            }
        }
        if let Some(sentence) = anew.sentence() {
            self.printer.warn(sentence);
        }
        Ok(())
    }

    /// Reads the configuration again: where profiles go, and their labels. What is recorded stays.
    fn read_again(&mut self) {
        let read = Plan::of(self.typed).and_then(|plan| Ok((plan.deliveries(&self.counts)?, plan)));
        match read {
            Ok((deliveries, plan)) => {
                let until = Instant::now() + END_WITHIN;
                for (server, old) in std::mem::replace(&mut self.deliveries, deliveries) {
                    match self.deliveries.iter().find(|(other, _)| *other == server) {
                        Some((_, new)) => old.leave_to(new, until),
                        None => old.close(until),
                    }
                }
                self.labelling = labelling_of(&plan);
                let AgentArgs { off_cpu, events, alloc, alloc_rate, .. } =
                    std::mem::replace(&mut self.plan, plan).args;
                let args = &mut self.plan.args;
                (args.off_cpu, args.events) = (off_cpu, events);
                (args.alloc, args.alloc_rate) = (alloc, alloc_rate);
                self.printer.say("The configuration was read again");
            }
            Err(failure) => self.printer.warn(format_args!("nothing is changed: {}", failure.message)),
        }
    }

    /// Hands over what is there, and waits for the servers as long as the end may take.
    fn end(&mut self, symbolicator: &mut Symbolicator<'_>, signal: Option<EndSignal>) -> Result<(), Failure> {
        let until = Instant::now() + END_WITHIN;
        if let (Some(command), Some(signal)) = (&self.command, signal) {
            // A command that cannot be signalled has ended.
            let _ = command.signaller().send(signal.number());
        }
        let progress = Arc::<Progress>::default();
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&progress);
        thread::spawn(move || {
            thread::sleep(NAMES_WITHIN);
            progress.cancel.store(true, Ordering::Relaxed);
        });
        self.finish_session(symbolicator, Next::End)?;
        self.deliveries.iter().for_each(|(_, delivery)| delivery.close(until));
        self.deliveries.iter().for_each(|(_, delivery)| delivery.wait(&self.counts));
        self.printer.say(&self.counts);
        if self.lost.records > 0 {
            self.printer.warn(format_args!("the kernel dropped {} records", self.lost.records));
        }
        if self.lost.events > 0 {
            self.printer.warn(dropped_events(self.lost.events));
        }
        if self.lost.blocks > 0 {
            self.printer.warn(too_many_blocks(self.lost.blocks));
        }
        Ok(())
    }

    /// The status of the command that ended, if there is one.
    fn status(&self) -> u8 {
        let ended = self.command.as_ref().and_then(|command| command.wait().ok());
        ended.map_or(0, |ended| ended.status.shell_code())
    }
}

fn labelling_of(plan: &Plan) -> Labelling {
    let rules = LabelRules::of(&plan.args);
    Labelling::new(plan.labels.clone(), plan.args.max_services, plan.service.clone(), rules)
}

/// What is recorded, the command that waits for its start, and the reader of its allocations.
type Target = (RecordingTarget, Option<SuspendedChild>, Option<AllocationReader>);

fn target_of(args: &AgentArgs, printer: Printer) -> Result<Target, Failure> {
    if args.all_cpus {
        return Ok((RecordingTarget::System, None, None));
    }
    if let Some(unit) = &args.unit {
        return Ok((RecordingTarget::Cgroup(unit::group(unit)?), None, None));
    }
    if !args.pid.is_empty() {
        return Ok((RecordingTarget::Attach(args.pid.iter().copied().map(Pid).collect()), None, None));
    }
    let user = identity::invoking_user();
    let mut command = command_of(&args.command, user)?;
    let begun = args.alloc.then(|| allocations::begin(args.alloc_rate, &mut command, user));
    let allocations = match begun {
        Some(Ok((reader, how))) => {
            printer.say(how);
            Some(reader)
        }
        Some(Err(denied)) => {
            printer.warn(denied);
            None
        }
        None => None,
    };
    let child = launch::prepare(&command).map_err(|error| launch_failure(&error))?;
    Ok((RecordingTarget::Child(child.pid()), Some(child), allocations))
}

/// The sentence about blocks that were not followed.
fn too_many_blocks(count: u64) -> String {
    let blocks = counted(count, "allocated block");
    format!(
        "too many to follow until they are freed: {blocks}; what is live lacks them, or they have no stack"
    )
}

/// A part of a window, other on each host: windows end at the same time everywhere.
fn spread(window: Duration) -> Duration {
    let own = u64::from(std::process::id()).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    window.mul_f64(own as f64 / f64::from(u32::MAX) / 4.0)
}
