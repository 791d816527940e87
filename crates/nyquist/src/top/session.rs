//! What is watched: the command or process, the thread that takes over what is recorded of it, and the one that makes
//! snapshots.

use super::command_output::CommandOutput;
use super::live::{Live, Snapshot};
use crate::args::TopArgs;
use crate::failure::Failure;
use crate::live_page::{Pace, Shown};
use crate::memory;
use crate::printer::Printer;
use crate::record::{command_of, launch_failure, open_failure};
use crate::summary;
use crate::{finder, identity};
use nyquist_convert::event::{Pid, Timestamp};
use nyquist_convert::{Converter, Options, Shape, Symbolicator, Symbols};
use nyquist_perf::Budget;
use nyquist_profile::Meta;
use nyquist_record::linux::backend::{Backend, Choice, Outcome, Recording};
use nyquist_record::linux::launch::{self, ExitStatus, Running, Signaller, Suspended};
use nyquist_record::linux::signals::EndSignal;
use nyquist_record::linux::{self, EndReason, Preference, StopHandle, Target, now};
use nyquist_record::{Chunk, Decoder};
use nyquist_symbols::{Finder, KernelFiles, KernelSymbols};
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How often what was sampled is taken over.
const HAND_OVER_EVERY: Duration = Duration::from_millis(100);

/// A snapshot of a large recording takes long: for each second of that there are so many without one.
const PAUSE: u32 = 4;

/// How many of the last seconds a page has in detail: as far back as it can be asked to look.
const PAGE_WINDOW: u64 = 60;

/// How often it is looked whether somebody looks at the page.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// How long a command may take to end when it is told to.
const GRACE: Duration = Duration::from_secs(2);

/// So many processes are named by their ids.
const PIDS_NAMED: usize = 4;

/// What happens while something is watched.
#[derive(Debug)]
pub(super) enum Message {
    /// There is something new to show.
    Snapshot(Box<Snapshot>),
    /// What was watched has ended: the last snapshot follows. Of a command it is known how.
    Ended(Option<ExitStatus>),
    /// Something was done at the terminal.
    Input(ratatui::crossterm::event::Event),
    /// Somebody sent a signal to end.
    Asked(EndSignal),
    /// There will be no more input, or no more snapshots.
    Gone,
}

/// What the thread that makes snapshots is told.
#[derive(Clone, Copy, Debug)]
pub(super) enum Order {
    /// How many of the last seconds are to be kept in detail.
    Window(Duration),
    /// Forget everything so far.
    Reset,
    /// The recording has ended.
    Finish,
}

/// Something that is being watched.
pub(super) struct Session {
    /// What it is, and how it is sampled.
    pub(super) about: About,
    /// What the command has printed.
    pub(super) output: CommandOutput,
    pub(super) orders: Sender<Order>,
    stop: StopHandle,
    command: Option<Signaller>,
    recorder: JoinHandle<Option<Running>>,
}

/// What is watched.
#[derive(Clone, Debug)]
pub(super) struct About {
    pub(super) name: String,
    pub(super) pids: Vec<u32>,
    pub(super) outcome: Outcome,
}

impl About {
    /// The name and the processes, as `app (17, 18)`, or how many they are.
    pub(super) fn title(&self) -> String {
        let pids: Vec<_> = self.pids.iter().map(u32::to_string).collect();
        if pids.len() > PIDS_NAMED {
            return format!("{} ({} processes)", self.name, pids.len());
        }
        format!("{} ({})", self.name, pids.join(", "))
    }
}

impl Session {
    /// Launches the command or attaches to the process, and begins to send snapshots.
    pub(super) fn start(
        args: &TopArgs,
        page: Option<Arc<Shown>>,
        messages: &Sender<Message>,
    ) -> Result<Self, Failure> {
        let (output, child) = prepare(args)?;
        let target = match &child {
            Some(child) => Target::Child(child.pid()),
            None => Target::Attach(attached(args)),
        };
        let pids = match &child {
            Some(child) => vec![child.pid().0],
            None => attached(args).into_iter().map(|pid| pid.0).collect(),
        };
        let hand_over_every = Some(HAND_OVER_EVERY);
        let options = linux::Options { rate_hz: args.rate, hand_over_every, ..linux::Options::default() };
        let options = args.stacks.apply(options)?;
        let loses_privileges = child.as_ref().and_then(Suspended::loses_privileges);
        let backend = Backend::open(Choice::Auto, target, &options, loses_privileges);
        let backend = backend.map_err(|error| open_failure(&error))?;
        let about = About { name: name(args), pids, outcome: backend.outcome() };
        let zero = now();
        let side_files = memory::side_files(args.symbols.max_memory);
        let mut converter = converter(&about, zero, side_files);
        converter.keep_only(backend.filter());
        let converter = converter.walking_with(about.outcome.walkers());
        let decoder = Decoder::new(about.outcome.walkers());
        let live = Arc::new(Mutex::new(Live::new(converter, zero)));
        let recording = backend.record().map_err(|error| open_failure(&error))?;
        summary::print_before_start(Printer::new(args.verbosity), &about.outcome);
        let running = child.map(Suspended::start).transpose().map_err(|error| launch_failure(&error))?;
        let (stop, command) = (recording.stop_handle(), running.as_ref().map(Running::signaller));
        let (orders, ordered) = mpsc::channel();
        let recorder = spawn("top-recorder", {
            let recorder = Recorder { live: Arc::clone(&live), orders: orders.clone() };
            let messages = AddressSender(messages.clone());
            move || recorder.run(recording, decoder, running, &messages)
        })?;
        let refresher = Refresher {
            live,
            orders: ordered,
            finder: identity::as_invoking_user(|| finder::offline(&args.symbols))?
                .with_kernel_files(KernelFiles::open()),
            interval: args.interval,
            window: Duration::from_secs(if args.web { args.window.max(PAGE_WINDOW) } else { args.window }),
            page,
        };
        let messages = AddressSender(messages.clone());
        spawn("top-refresher", move || refresher.run(&messages))?;
        Ok(Self { about, output, orders, stop, command, recorder })
    }

    /// Ends what is left of the recording, and the command. Says in a sentence what could not be ended.
    pub(super) fn finish(self) -> Option<String> {
        self.stop.stop();
        if let Some(command) = &self.command {
            // One that cannot be signalled has ended already.
            let _ = command.send(EndSignal::Terminate.number());
        }
        let running = self.recorder.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let (sender, ended) = mpsc::channel();
        thread::spawn(move || sender.send(running.wait().is_ok()));
        let late = ended.recv_timeout(GRACE) == Err(RecvTimeoutError::Timeout);
        late.then(|| format!("{} still runs: it does not end on SIGTERM", self.about.title()))
    }
}

/// Prepares the command, if there is one, with what it prints collected.
fn prepare(args: &TopArgs) -> Result<(CommandOutput, Option<Suspended>), Failure> {
    if !args.pid.is_empty() {
        return Ok((CommandOutput::default(), None));
    }
    let command = command_of(&args.command, identity::invoking_user())?;
    let (output, pipe) = CommandOutput::collect()?;
    let child = launch::prepare_apart(&command, pipe.as_fd()).map_err(|error| launch_failure(&error))?;
    Ok((output, Some(child)))
}

/// The processes that are asked for, each once.
fn attached(args: &TopArgs) -> Vec<Pid> {
    let pids: BTreeSet<_> = args.pid.iter().copied().collect();
    pids.into_iter().map(Pid).collect()
}

/// The names of the processes, each once, or that of the program without its folder.
pub(super) fn name(args: &TopArgs) -> String {
    if !args.pid.is_empty() {
        let name = |pid: Pid| std::fs::read_to_string(format!("/proc/{}/comm", pid.0)).unwrap_or_default();
        let mut names: Vec<_> = attached(args).into_iter().map(|pid| name(pid).trim().to_owned()).collect();
        names.dedup();
        return names.join(", ");
    }
    let command = nyquist_record::linux::Command::from_words(args.command.iter().cloned());
    let program = command.unwrap_or_default().program;
    Path::new(&program).file_name().unwrap_or(&program).to_string_lossy().into_owned()
}

fn converter(about: &About, zero: Timestamp, side_files: Budget) -> Converter {
    let outcome = &about.outcome;
    let interval = 1_000_000_000 / u64::from(outcome.rate_hz().max(1));
    let meta = Meta { interval, has_cpu_deltas: true, product: about.name.clone(), ..Meta::default() };
    // Who starts threads again and again should find one row for them, and not thousands.
    let shape = Shape { reuse_threads: true, ..Shape::default() };
    Converter::new(Options { start: zero, kernel_permitted: outcome.samples_all_cpu_time(), meta })
        .shaped(shape)
        .limiting_side_files(side_files)
}

fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, Failure> {
    let thread = thread::Builder::new().name(name.to_owned()).spawn(work);
    thread.map_err(|error| Failure::because("no thread can be started", &error))
}

/// Sends messages, the last of them when it is dropped by a panic: nobody must wait for more.
struct AddressSender(Sender<Message>);

impl AddressSender {
    /// Whether somebody still listens.
    fn tell(&self, message: Message) -> bool {
        self.0.send(message).is_ok()
    }
}

impl Drop for AddressSender {
    fn drop(&mut self) {
        if thread::panicking() {
            self.tell(Message::Gone);
        }
    }
}

/// Takes over everything that is recorded, until the recording ends.
struct Recorder {
    live: Arc<Mutex<Live>>,
    orders: Sender<Order>,
}

impl Recorder {
    /// Gives the command back if it has not ended.
    fn run(
        self,
        mut recording: Recording,
        mut decoder: Decoder,
        running: Option<Running>,
        messages: &AddressSender,
    ) -> Option<Running> {
        let _preference = Preference::of_this_thread();
        while let Some(chunks) = recording.next_few(decoder.most_at_once()) {
            let complete_before = chunks.last().map_or(Timestamp(0), Chunk::complete_before);
            let decoded = decoder.decode(chunks);
            let counts = self.with_live(|live| {
                let events = decoded.iter_mut().flat_map(|events| events.drain(..));
                live.push(events, complete_before, now());
                live.take_copy_counts()
            });
            recording.apply_feedback(&counts);
        }
        self.with_live(|live| live.end(now()));
        let has_exited = recording.finish().reason == EndReason::Exited;
        let ended = running.as_ref().filter(|_| has_exited).and_then(|command| command.wait().ok());
        messages.tell(Message::Ended(ended.map(|ended| ended.status)));
        // A refresher that is gone has no snapshot to make.
        let _ = self.orders.send(Order::Finish);
        running.filter(|_| ended.is_none())
    }

    fn with_live<T>(&self, change: impl FnOnce(&mut Live) -> T) -> T {
        change(&mut self.live.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Makes snapshots, and gives them names.
struct Refresher {
    live: Arc<Mutex<Live>>,
    orders: Receiver<Order>,
    finder: Finder,
    interval: Duration,
    window: Duration,
    /// The page that shows the snapshots, in the place of the terminal.
    page: Option<Arc<Shown>>,
}

impl Refresher {
    fn run(mut self, messages: &AddressSender) {
        let threads = thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
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
            // What is looked up is kept in the user's folders, where root does nothing.
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
            if !messages.tell(Message::Snapshot(snapshot)) || is_last {
                return;
            }
            wait = self.interval.max(began.elapsed() * PAUSE);
        }
    }

    /// Does what it is told until the time is over. Says whether the recording has ended.
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
