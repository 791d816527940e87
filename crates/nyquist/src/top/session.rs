//! A watched target: the command or process, the thread that receives its recording, and the thread that
//! makes snapshots.

use super::command_output::CommandOutput;
use super::live::{Live, Snapshot, Unread};
use crate::args::{TargetArgs, TopArgs};
use crate::delegates;
use crate::failure::Failure;
use crate::live_page::{Pace, PageProfile};
use crate::memory;
use crate::printer::Printer;
use crate::record::drive::{ChunkSink, drive};
use crate::record::linux::allocations;
use crate::record::linux::options::with_stacks;
use crate::record::linux::outcome_messages;
use crate::record::linux::{
    command_of, functions_of_waits, launch_failure, open_failure, running_target, unread_waits,
};
use crate::{finder, identity};
use bytes::Bytes;
use nyquist_convert::event::{Event, Timestamp};
use nyquist_convert::{Converter, Options, Shape, Symbolicator, Symbols};
use nyquist_profile::Meta;
use nyquist_record::linux::allocations::AllocationReader;
use nyquist_record::linux::backend::{Backend, BackendChoice, Recording, RecordingOutcome};
use nyquist_record::linux::event_names::EventSources;
use nyquist_record::linux::launch::{self, ExitStatus, RunningChild, Signaller, SuspendedChild};
use nyquist_record::linux::signals::EndSignal;
use nyquist_record::linux::wait_stacks::WaitStacks;
use nyquist_record::linux::{self, EndReason, RecordedEvent, RecordingTarget, StopHandle, now};
use nyquist_resources::cpu_count;
use nyquist_symbols::{Finder, KernelFiles, KernelSymbols};
use nyquist_system::read_kernel_text;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The interval of receiving samples.
const HAND_OVER_EVERY: Duration = Duration::from_millis(100);

/// The pause after a snapshot, as a multiple of its cost, because a snapshot of a large recording takes long.
const PAUSE: u32 = 4;

/// The number of last seconds that a page has in detail: the longest range that it offers.
const PAGE_WINDOW: u64 = 60;

/// The interval of checking whether a page is visible.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// How long a command may take to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);

/// The number of processes that are named by their ids.
const PIDS_NAMED: usize = 4;

/// The events while a target is watched.
#[derive(Debug)]
pub(super) enum Message {
    /// A new snapshot.
    Snapshot(Box<Snapshot>),
    /// The snapshot of the whole recording. It follows the end of the target.
    LastSnapshot(Box<Snapshot>),
    /// The watched target has ended. The last snapshot follows, perhaps after one that was begun before. The
    /// status of a command is known.
    Ended(Option<ExitStatus>),
    /// Input from the terminal.
    Input(ratatui::crossterm::event::Event),
    /// A signal requests the end.
    Signal(EndSignal),
    /// No more input, or no more snapshots, will follow.
    Gone,
}

/// The messages to the thread that makes snapshots.
#[derive(Clone, Copy, Debug)]
pub(super) enum Order {
    /// The length of the last period to keep in detail.
    Window(Duration),
    /// Drop everything so far.
    Reset,
    /// The recording has ended.
    Finish,
}

/// A watch session.
pub(super) struct Session {
    /// The target and the sampling method.
    pub(super) about: WatchedTarget,
    /// The command's output.
    pub(super) output: CommandOutput,
    pub(super) orders: Sender<Order>,
    stop: StopHandle,
    command: Option<Signaller>,
    recorder: JoinHandle<RecorderEnd>,
}

/// The remaining state after the end of the recording.
struct RecorderEnd {
    /// The command, if it has not ended.
    running: Option<RunningChild>,
    /// What could not be read.
    unread: Unread,
}

/// A target before it is watched.
struct PreparedTarget {
    output: CommandOutput,
    /// The command, if there is one, suspended before its start.
    child: Option<SuspendedChild>,
    allocations: Option<AllocationReader>,
}

/// A watched target.
#[derive(Clone, Debug)]
pub(super) struct WatchedTarget {
    pub(super) name: String,
    /// The ids of the processes, or of the thread.
    pub(super) numbers: Vec<u32>,
    pub(super) outcome: RecordingOutcome,
    /// How allocations are recorded, if they are requested, or why they are not.
    pub(super) allocations: Option<Result<String, String>>,
}

impl WatchedTarget {
    /// The name and the processes, such as `app (17, 18)`, or the number of processes.
    pub(super) fn title(&self) -> String {
        let numbers: Vec<_> = self.numbers.iter().map(u32::to_string).collect();
        if numbers.len() > PIDS_NAMED {
            return format!("{} ({} processes)", self.name, numbers.len());
        }
        format!("{} ({})", self.name, numbers.join(", "))
    }
}

impl Session {
    /// Launches the command or attaches to the process, and begins to send snapshots.
    pub(super) fn start(
        args: &TopArgs,
        page: Option<Arc<PageProfile>>,
        messages: &Sender<Message>,
    ) -> Result<Self, Failure> {
        allocations::check(args.alloc, !args.command.is_empty(), "nyquist top --alloc COMMAND")?;
        let (PreparedTarget { output, child, allocations }, how) = prepare(args)?;
        let backend = open_backend(args, child.as_ref())?;
        let numbers = child.as_ref().map_or_else(|| args.numbers(), |child| vec![child.pid().0]);
        let about = WatchedTarget { name: name(args), numbers, outcome: backend.outcome(), allocations: how };
        let zero = now();
        let options = converter_options(args, &about, zero);
        let converter = Converter::new(Options { filter: backend.filter(), ..options });
        // A page shows markers, and each wait should have one.
        let live = Live::new(converter, zero).counting_waits(args.off_cpu && page.is_none());
        let live = live.watching(watch_waits(args, &about.outcome)?).reading_allocations(allocations);
        let live = Arc::new(Mutex::new(live));
        let recording = backend.record().map_err(|error| open_failure(&error))?;
        outcome_messages::print_before_start(Printer::new(args.verbosity), &about.outcome);
        let running = child.map(SuspendedChild::start).transpose().map_err(|error| launch_failure(&error))?;
        let (stop, command) = (recording.stop_handle(), running.as_ref().map(RunningChild::signaller));
        let (orders, ordered) = mpsc::channel();
        let recorder = spawn("top-recorder", {
            let recorder = Recorder { live: Arc::clone(&live), orders: orders.clone() };
            let messages = MessageSender(messages.clone());
            move || recorder.run(recording, running, &messages)
        })?;
        let refresher = Refresher::new(args, live, ordered, page)?;
        let messages = MessageSender(messages.clone());
        spawn("top-refresher", move || refresher.run(&messages))?;
        Ok(Self { about, output, orders, stop, command, recorder })
    }

    /// Ends the rest of the recording, and the command. Returns messages about what could not be ended or
    /// read.
    pub(super) fn finish(self) -> Vec<String> {
        self.stop.stop();
        if let Some(command) = &self.command {
            // A command that cannot be signalled has already ended.
            let _ = command.send(EndSignal::Terminate.number());
        }
        let recorded = self.recorder.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let Unread { waits, allocations } = recorded.unread;
        let mut sentences: Vec<_> = unread_waits(waits).into_iter().collect();
        sentences.extend(allocations.iter().flat_map(allocations::losses));
        let Some(running) = recorded.running else { return sentences };
        let (sender, ended) = mpsc::channel();
        thread::spawn(move || sender.send(running.wait().is_ok()));
        let late = ended.recv_timeout(GRACE) == Err(RecvTimeoutError::Timeout);
        let title = self.about.title();
        sentences.extend(late.then(|| format!("{title} still runs: it does not end on SIGTERM")));
        sentences
    }
}

/// Prepares the command, if there is one, and collects its output.
fn prepare(args: &TopArgs) -> Result<(PreparedTarget, Option<Result<String, String>>), Failure> {
    if args.command.is_empty() {
        let output = CommandOutput::default();
        return Ok((PreparedTarget { output, child: None, allocations: None }, None));
    }
    let user = identity::invoking_user();
    let mut command = command_of(&args.command, user)?;
    let begun = args.alloc.then(|| allocations::begin(args.alloc_rate, &mut command, user));
    let (allocations, how) = match begun {
        Some(Ok((reader, how))) => (Some(reader), Some(Ok(how))),
        Some(Err(denied)) => (None, Some(Err(denied))),
        None => (None, None),
    };
    let (output, pipe) = CommandOutput::collect()?;
    let child =
        launch::prepare_with_output(&command, pipe.as_fd()).map_err(|error| launch_failure(&error))?;
    Ok((PreparedTarget { output, child: Some(child), allocations }, how))
}

/// Opens the events of the command, or of what runs already.
fn open_backend(args: &TopArgs, child: Option<&SuspendedChild>) -> Result<Backend, Failure> {
    let named = TargetArgs { pid: args.pid.clone(), tid: args.tid, ..TargetArgs::default() };
    let child_target = child.map(|child| RecordingTarget::Child(child.pid()));
    let target = match child_target {
        Some(child) => Some(child),
        None => running_target(&named)?,
    };
    let target = target.ok_or_else(|| Failure::new("no command is given").hint("nyquist top COMMAND"))?;
    let waits = || RecordedEvent::of_waits(&EventSources::of_machine());
    let options = linux::Options {
        rate_hz: args.rate,
        hand_over_every: Some(HAND_OVER_EVERY),
        context_switches: args.off_cpu,
        wait_reasons: args.off_cpu,
        events: if args.off_cpu { waits() } else { Vec::new() },
        ..linux::Options::default()
    };
    let options = with_stacks(args.stacks, options)?;
    let loses_privileges = child.and_then(SuspendedChild::loses_privileges);
    let backend = Backend::open(BackendChoice::Auto, target, &options, loses_privileges);
    backend.map_err(|error| open_failure(&error))
}

/// The names of the processes or of the thread, each once, or that of the program without its folder.
pub(super) fn name(args: &TopArgs) -> String {
    let numbers = args.numbers();
    if !numbers.is_empty() {
        let name = |number: u32| read_kernel_text(format!("/proc/{number}/comm")).unwrap_or_default();
        let mut names: Vec<_> = numbers.into_iter().map(|number| name(number).trim().to_owned()).collect();
        names.dedup();
        return names.join(", ");
    }
    let command = nyquist_record::linux::Command::from_words(args.command.iter().cloned());
    let program = command.unwrap_or_default().program;
    Path::new(&program).file_name().unwrap_or(&program).to_string_lossy().into_owned()
}

/// Starts reading where threads wait, if requested. The ptrace backend does this itself.
fn watch_waits(args: &TopArgs, outcome: &RecordingOutcome) -> Result<Option<WaitStacks>, Failure> {
    let waits = (args.off_cpu && matches!(outcome, RecordingOutcome::Perf(_))).then(WaitStacks::start);
    waits.transpose().map_err(|error| Failure::because("cannot record where threads wait", &error))
}

fn converter_options(args: &TopArgs, about: &WatchedTarget, zero: Timestamp) -> Options {
    let outcome = &about.outcome;
    // With ptrace, samples themselves record how long their threads have waited.
    let waits = args.off_cpu && matches!(outcome, RecordingOutcome::Perf(_));
    let interval = 1_000_000_000 / u64::from(outcome.rate_hz().max(1));
    let meta = Meta { interval, has_cpu_deltas: true, product: about.name.clone(), ..Meta::default() };
    // A program that starts threads repeatedly should have one row for them, and not thousands.
    let shape = Shape { reuse_threads: true, waits, ..Shape::default() };
    let options = Options {
        kernel_permitted: outcome.samples_all_cpu_time(),
        shape,
        process_memory: memory::of_processes(args.symbols.max_memory),
        side_files: memory::side_files(args.symbols.max_memory),
        kernel_symbols: functions_of_waits(outcome),
        targets: delegates::targets().clone(),
        ..Options::new(zero, meta)
    };
    if outcome.counts_cycles() { options.of_cycles() } else { options }
}

fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, Failure> {
    let thread = thread::Builder::new().name(name.to_owned()).spawn(work);
    thread.map_err(|error| Failure::because("no thread can be started", &error))
}

/// Sends messages. If a panic drops it, it sends the last one, so that no receiver waits for more.
struct MessageSender(Sender<Message>);

impl MessageSender {
    /// Sends a message. Returns whether there is still a receiver.
    fn tell(&self, message: Message) -> bool {
        self.0.send(message).is_ok()
    }
}

impl Drop for MessageSender {
    fn drop(&mut self) {
        if thread::panicking() {
            self.tell(Message::Gone);
        }
    }
}

/// Converts all recorded events, until the recording ends.
struct Recorder {
    live: Arc<Mutex<Live>>,
    orders: Sender<Order>,
}

impl Recorder {
    fn run(
        self,
        mut recording: Recording,
        running: Option<RunningChild>,
        messages: &MessageSender,
    ) -> RecorderEnd {
        drive(&mut recording, &mut &self);
        let unread = self.with_live(|live| live.end(now()));
        let has_exited = recording.finish().reason == EndReason::Exited;
        let ended = running.as_ref().filter(|_| has_exited).and_then(|command| command.wait().ok());
        messages.tell(Message::Ended(ended.map(|ended| ended.status)));
        // A refresher that has ended makes no snapshot.
        let _ = self.orders.send(Order::Finish);
        RecorderEnd { running: running.filter(|_| ended.is_none()), unread }
    }

    fn with_live<T>(&self, change: impl FnOnce(&mut Live) -> T) -> T {
        change(&mut self.live.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ChunkSink for &Recorder {
    fn take(&mut self, events: &mut Vec<Event>, _records: Option<Bytes>, complete_before: Timestamp) {
        self.with_live(|live| live.push(events.drain(..), complete_before, now()));
    }

    fn with_converter(&mut self, call: impl FnOnce(&mut Converter)) {
        self.with_live(|live| call(live.converter()));
    }
}

/// Makes snapshots, and looks up their names.
struct Refresher {
    live: Arc<Mutex<Live>>,
    orders: Receiver<Order>,
    finder: Finder,
    interval: Duration,
    window: Duration,
    /// The page that shows the snapshots instead of the terminal.
    page: Option<Arc<PageProfile>>,
}

impl Refresher {
    fn new(
        args: &TopArgs,
        live: Arc<Mutex<Live>>,
        orders: Receiver<Order>,
        page: Option<Arc<PageProfile>>,
    ) -> Result<Self, Failure> {
        let finder = identity::as_invoking_user(|| finder::offline(&args.symbols))?;
        Ok(Self {
            live,
            orders,
            finder: finder.with_kernel_files(KernelFiles::open()),
            interval: args.interval,
            window: Duration::from_secs(if args.web { args.window.max(PAGE_WINDOW) } else { args.window }),
            page,
        })
    }

    fn run(mut self, messages: &MessageSender) {
        let threads = cpu_count();
        let finder = std::mem::take(&mut self.finder);
        let mut symbolicator =
            Symbolicator::new(Symbols { finder: &finder, kernel: KernelSymbols::running, threads });
        let mut wait = self.interval.min(HAND_OVER_EVERY * 5);
        let mut pace = Pace::new(self.interval);
        loop {
            let is_last = self.is_finished_within(wait);
            if !is_last && self.page.as_ref().is_some_and(|page| !page.is_watched()) {
                wait = LOOK_EVERY;
                continue;
            }
            let began = Instant::now();
            let unnamed = self.live().snapshot(self.window, now());
            // Names are cached in the user's folders, in which root writes no files.
            let named = identity::as_invoking_user(|| unnamed.named(&mut symbolicator, self.page.is_none()));
            let Ok(snapshot) = named.map(Box::new) else { return };
            if let Some(page) = &self.page {
                let made = began.elapsed();
                if is_last {
                    return page.end(snapshot.profile);
                }
                wait = pace.pause_after(made + page.show(snapshot.profile, snapshot.until));
                continue;
            }
            if is_last {
                messages.tell(Message::LastSnapshot(snapshot));
                return;
            }
            if !messages.tell(Message::Snapshot(snapshot)) {
                return;
            }
            wait = self.interval.max(began.elapsed() * PAUSE);
        }
    }

    /// Processes messages until the time is over. Returns whether the recording has ended.
    fn is_finished_within(&mut self, wait: Duration) -> bool {
        let end = Instant::now() + wait;
        loop {
            match self.orders.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(Order::Window(window)) => self.window = window,
                Ok(Order::Reset) => {
                    self.live().reset(now());
                    return false;
                }
                Ok(Order::Finish) | Err(RecvTimeoutError::Disconnected) => return true,
                Err(RecvTimeoutError::Timeout) => return false,
            }
        }
    }

    fn live(&self) -> std::sync::MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
