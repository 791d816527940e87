//! The thread that owns the profile and handles requests about it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use nyquist_analysis::{Index, Selection, View};
use nyquist_profile::Profile;
use nyquist_server::{Client, SymbolSource, ViewerError, ViewerResponse};

use crate::answer::answer;
use crate::answers::QueryContext;
use crate::cache::{ResponseCache, ViewCache};
use crate::errors::{bad_request, internal};
use crate::function_table::FunctionCategories;
use crate::measures::{RecordedMeasures, of_event};
use crate::parameters::Parameters;
use crate::progress::Progress;
use crate::selection::{end_of, selection};
use crate::translation::translated;
use crate::viewed_profile::{FileNames, ViewedProfile};

/// After this time without a request, data for later requests is computed in parts. It is longer than a page
/// takes between the requests with which it is drawn.
const IDLE: Duration = Duration::from_millis(300);

/// A request on its way to the thread.
struct WorkerJob {
    question: String,
    query: String,
    client: Client,
    answer: SyncSender<Result<ViewerResponse, ViewerError>>,
}

/// The messages to the thread.
enum WorkerMessage {
    Question(WorkerJob),
    /// Replaces the current profile. The reply is the time that this took.
    ViewedProfile(Box<ViewedProfile>, SyncSender<Duration>),
    /// The same for a profile that a client has opened.
    Other(OpenedProfile, SyncSender<Duration>),
    /// The time up to which the current profile is complete. The reply is the time spent on requests since
    /// the last message.
    Time(u64, SyncSender<Duration>),
}

/// A profile that a client has opened.
pub(crate) struct OpenedProfile {
    pub(crate) profile: Box<Profile>,
    pub(crate) file: Option<String>,
    /// Whether to compare it with the current one.
    pub(crate) compares: bool,
}

/// The sender of requests. The thread starts with the first one, or on demand.
pub(crate) struct Worker {
    state: Mutex<WorkerState>,
    /// For a running recording.
    progress: Option<Arc<Progress>>,
}

enum WorkerState {
    /// The thread has not started.
    Idle(Box<(ViewedProfile, Arc<dyn SymbolSource>)>),
    /// The thread is running.
    Started(mpsc::Sender<WorkerMessage>),
    /// The thread could not be started.
    Failed,
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Worker")
    }
}

impl Worker {
    /// Computes nothing before the first request, or [`Worker::begin`].
    pub(crate) fn new(
        subject: ViewedProfile,
        symbols: Arc<dyn SymbolSource>,
        progress: Option<Arc<Progress>>,
    ) -> Self {
        Self { state: Mutex::new(WorkerState::Idle(Box::new((subject, symbols)))), progress }
    }

    /// Sets the names of the files, before the first request.
    pub(crate) fn name(&self, files: FileNames) {
        if let Ok(mut state) = self.state.lock()
            && let WorkerState::Idle(owned) = &mut *state
        {
            owned.0.files = files;
        }
    }

    /// Starts computing the data for all responses, without waiting for it.
    pub(crate) fn begin(&self) {
        let _ = self.sender();
    }

    /// Sends a request, and waits for the response.
    pub(crate) fn ask(
        &self,
        question: &str,
        query: &str,
        client: &Client,
    ) -> Result<ViewerResponse, ViewerError> {
        let (answer, answered) = sync_channel(1);
        let (question, query) = (question.to_owned(), query.to_owned());
        let job = WorkerJob { question, query, client: client.clone(), answer };
        self.sender().ok_or_else(internal)?.send(WorkerMessage::Question(job)).map_err(|_| internal())?;
        answered.recv().map_err(|_| internal())?
    }

    /// Replaces the current profile, and waits until this is done. Returns the time that it took, plus
    /// that of requests about the previous one.
    pub(crate) fn replace(&self, subject: ViewedProfile) -> Duration {
        let sender = {
            let Ok(mut state) = self.state.lock() else { return Duration::ZERO };
            match &mut *state {
                WorkerState::Idle(owned) => {
                    owned.0 = subject;
                    return self
                        .progress
                        .as_ref()
                        .map_or(Duration::ZERO, |progress| progress.count_version());
                }
                WorkerState::Started(sender) => sender.clone(),
                WorkerState::Failed => return Duration::ZERO,
            }
        };
        let (taken, reply) = sync_channel(1);
        let _ = sender.send(WorkerMessage::ViewedProfile(Box::new(subject), taken));
        reply.recv().unwrap_or_default()
    }

    /// Shows another profile instead of the current one, or compared with it, and waits until this is done.
    pub(crate) fn open(&self, opened: OpenedProfile) {
        // The thread owns the current profile.
        let Some(sender) = self.sender() else { return };
        let (taken, reply) = sync_channel(1);
        let _ = sender.send(WorkerMessage::Other(opened, taken));
        let _ = reply.recv();
    }

    /// Reports the time up to which the current profile is complete, and returns the time spent on
    /// requests since the last call.
    pub(crate) fn pass_time(&self, until_ns: u64) -> Duration {
        let Ok(mut state) = self.state.lock() else { return Duration::ZERO };
        match &mut *state {
            WorkerState::Idle(owned) => owned.0.until_ns = Some(until_ns),
            WorkerState::Started(sender) => {
                let (taken, reply) = sync_channel(1);
                let _ = sender.send(WorkerMessage::Time(until_ns, taken));
                drop(state);
                return reply.recv().unwrap_or_default();
            }
            WorkerState::Failed => {}
        }
        Duration::ZERO
    }

    fn sender(&self) -> Option<mpsc::Sender<WorkerMessage>> {
        let mut state = self.state.lock().ok()?;
        if let WorkerState::Idle(_) = &*state {
            let WorkerState::Idle(owned) = std::mem::replace(&mut *state, WorkerState::Failed) else {
                return None;
            };
            let (sender, messages) = channel();
            let (subject, symbols) = *owned;
            let progress = self.progress.clone();
            let work = move || work(subject, &*symbols, progress.as_deref(), &messages);
            if thread::Builder::new().name("nyquist-viewer".to_owned()).spawn(work).is_ok() {
                *state = WorkerState::Started(sender);
            }
        }
        match &*state {
            WorkerState::Started(sender) => Some(sender.clone()),
            WorkerState::Idle(_) | WorkerState::Failed => None,
        }
    }
}

/// Handles requests until no sender is left, about one profile after another.
fn work(
    mut subject: ViewedProfile,
    symbols: &dyn SymbolSource,
    progress: Option<&Progress>,
    messages: &Receiver<WorkerMessage>,
) {
    let mut begin = Begin::default();
    loop {
        let recorded = RecordedMeasures::of(&subject.profile);
        let derived = begin.event.as_ref().and_then(|event| of_event(&subject, event));
        let waits = derived.as_ref().map(|_| has_waits(&subject.profile));
        let of = AskedAbout { recorded: &recorded, waits, event: begin.event.take() };
        let shown = derived.as_ref().unwrap_or(&subject);
        let Some(next) = answer_about(shown, &of, symbols, progress, messages, begin) else { return };
        begin = match next {
            NextProfile::ViewedProfile(next, taken) => {
                subject = *next;
                Begin { event: of.event, taken: Some(taken), job: None }
            }
            NextProfile::Other(OpenedProfile { profile, file, compares }, taken) => {
                let files = FileNames { shown: file, before: subject.files.shown.filter(|_| compares) };
                let before = compares.then_some(subject.profile);
                subject = ViewedProfile { profile: *profile, before, until_ns: None, files };
                Begin { event: None, taken: Some(taken), job: None }
            }
            NextProfile::Event(event, job) => Begin { event, taken: None, job: Some(job) },
        };
    }
}

/// Whether a profile has samples of waiting. O(samples).
fn has_waits(profile: &Profile) -> bool {
    profile.threads().iter().any(|thread| thread.samples.iter().any(|sample| sample.off_cpu))
}

/// How requests about a profile begin.
#[derive(Default)]
struct Begin {
    /// The event that is shown instead of samples.
    event: Option<String>,
    /// Receives the time that the switch to the profile took.
    taken: Option<SyncSender<Duration>>,
    /// The request that led to this.
    job: Option<WorkerJob>,
}

/// What requests are about.
struct AskedAbout<'a> {
    recorded: &'a RecordedMeasures,
    /// Whether waits were recorded, if the shown profile does not say.
    waits: Option<bool>,
    /// The event that is shown instead of samples.
    event: Option<String>,
}

impl AskedAbout<'_> {
    /// The event that a request is about. Requests for one that was not recorded are refused.
    fn event_of(&self, job: &WorkerJob) -> Option<String> {
        let parameters = Parameters::parse(&job.query);
        let event = parameters.get("event").filter(|event| self.recorded.has_event(event));
        event.map(str::to_owned)
    }
}

/// The profile of the next requests.
enum NextProfile {
    /// Another profile, and the receiver of the time that the switch takes.
    ViewedProfile(Box<ViewedProfile>, SyncSender<Duration>),
    /// The same for a profile that a client has opened.
    Other(OpenedProfile, SyncSender<Duration>),
    /// The same profile with another event, or with its samples, and the request about that.
    Event(Option<String>, WorkerJob),
}

/// Handles requests until there is another profile, and returns that.
fn answer_about(
    subject: &ViewedProfile,
    of: &AskedAbout<'_>,
    symbols: &dyn SymbolSource,
    progress: Option<&Progress>,
    messages: &Receiver<WorkerMessage>,
    begin: Begin,
) -> Option<NextProfile> {
    let began = Instant::now();
    let index = Index::new(&subject.profile);
    let before = subject.before.as_ref().map(Index::new);
    let mut handler = RequestHandler {
        subject,
        index: &index,
        categories: FunctionCategories::new(&subject.profile),
        views: ViewCache::new(&index),
        before: before.as_ref().map(ViewCache::new),
        symbols,
        recorded: of.recorded,
        has_waits: of.waits.unwrap_or_else(|| index.has_waits()),
        until_ns: subject.until_ns,
        progress,
        answers: ResponseCache::default(),
    };
    // The profiles of a recording are replaced too early for data of later requests.
    let prepares = progress.is_none();
    let mut is_open = begin.job.is_some();
    if let Some(taken) = begin.taken {
        let answering = progress.map_or(Duration::ZERO, Progress::count_version);
        let _ = taken.send(began.elapsed() + answering);
    }
    if let Some(job) = begin.job {
        handler.handle(&job);
    }
    loop {
        match next_message(messages, IDLE, prepares && is_open, || index.prepare_more())? {
            WorkerMessage::Question(job) => {
                is_open = true;
                let event = of.event_of(&job);
                if event != of.event {
                    return Some(NextProfile::Event(event, job));
                }
                handler.handle(&job);
            }
            WorkerMessage::ViewedProfile(next, taken) => {
                return Some(NextProfile::ViewedProfile(next, taken));
            }
            WorkerMessage::Other(opened, taken) => return Some(NextProfile::Other(opened, taken)),
            WorkerMessage::Time(until_ns, taken) => {
                handler.pass_time(until_ns);
                let _ = taken.send(progress.map_or(Duration::ZERO, Progress::count_version));
            }
        }
    }
}

/// Waits for the next message: the oldest one. If a page is open (`prepares`), data for later requests is computed
/// meanwhile, one part after each `idle` time without a message, because a page that opens must not wait for it.
/// `prepare_more` returns whether it has computed a part.
fn next_message(
    messages: &Receiver<WorkerMessage>,
    idle: Duration,
    prepares: bool,
    mut prepare_more: impl FnMut() -> bool,
) -> Option<WorkerMessage> {
    let mut has_more = prepares;
    while has_more {
        match messages.recv_timeout(idle) {
            Ok(message) => return Some(message),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => has_more = prepare_more(),
        }
    }
    messages.recv().ok()
}

/// Handles requests about one profile.
struct RequestHandler<'a> {
    subject: &'a ViewedProfile,
    index: &'a Index<'a>,
    categories: FunctionCategories,
    views: ViewCache<'a>,
    before: Option<ViewCache<'a>>,
    symbols: &'a dyn SymbolSource,
    recorded: &'a RecordedMeasures,
    /// Whether waits were recorded.
    has_waits: bool,
    /// The time up to which a running recording is complete.
    until_ns: Option<u64>,
    /// For a running recording.
    progress: Option<&'a Progress>,
    /// The answers so far. They are valid until the profile is complete up to a later time.
    answers: ResponseCache,
}

impl RequestHandler<'_> {
    fn pass_time(&mut self, until_ns: u64) {
        self.until_ns = Some(until_ns);
        self.answers = ResponseCache::default();
    }

    /// Answers a request, unless its client has gone. Measures the time for a running recording.
    fn handle(&mut self, job: &WorkerJob) {
        if job.client.has_gone() {
            return;
        }
        let key = format!("{}?{}", job.question, job.query);
        if let Some(known) = self.answers.get(&key) {
            let _ = job.answer.send(Ok(known.clone()));
            return;
        }
        let began = Instant::now();
        let answer = catch_unwind(AssertUnwindSafe(|| self.answer(job)));
        let answer = answer.unwrap_or_else(|_| Err(internal()));
        if let Some(progress) = self.progress {
            progress.add_answering(began.elapsed());
        }
        if let Ok(answer) = &answer {
            self.answers.keep(key, answer);
        }
        let _ = job.answer.send(answer);
    }

    fn answer(&mut self, job: &WorkerJob) -> Result<ViewerResponse, ViewerError> {
        let profile = &self.subject.profile;
        let parameters = Parameters::parse(&job.query);
        if let Some(event) = parameters.get("event").filter(|event| !self.recorded.has_event(event)) {
            let shown: String = event.chars().take(40).collect();
            return Err(bad_request(format_args!("the event {shown:?} was not recorded")));
        }
        let selection = selection(&parameters, profile, self.until_ns)?;
        let split = with_parts_of_range(profile, &selection);
        let index_of_parts = split.as_ref().map(Index::new);
        let view = match &index_of_parts {
            Some(index) => Rc::new(View::new(index, &selection)),
            None => self.views.of(&selection),
        };
        let before = match (&mut self.before, &self.subject.before) {
            (Some(views), Some(before)) if compares(&job.question) && split.is_none() => {
                Some(views.of(&translated(&selection, profile, before)))
            }
            _ => None,
        };
        let requested = QueryContext {
            index: index_of_parts.as_ref().unwrap_or(self.index),
            view: &view,
            before: before.as_deref(),
            parameters: &parameters,
            categories: &self.categories,
            symbols: self.symbols,
            recorded: self.recorded,
            files: &self.subject.files,
            has_waits: self.has_waits,
            live: self.progress.is_some().then(|| self.until_ns.unwrap_or_else(|| end_of(profile))),
        };
        answer(&job.question, &requested)
    }
}

/// Whether a request is about both runs.
fn compares(question: &str) -> bool {
    question.starts_with("diff") || matches!(question, "info" | "flamegraph.svg")
}

/// The profile whose samples are split at the ends of the selected range. This is for samples of exact
/// times, such as slices of a trace, which the range may cut. O(profile).
fn with_parts_of_range(profile: &Profile, selection: &Selection) -> Option<Profile> {
    let range = selection.range.as_ref().filter(|_| profile.meta().has_exact_times)?;
    let mut parts = profile.clone();
    parts.split_samples(&[range.start, range.end]);
    Some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(until_ns: u64) -> WorkerMessage {
        WorkerMessage::Time(until_ns, sync_channel(1).0)
    }

    /// The number of the next message, and how many parts were prepared before it came. It is sent when the
    /// part of the number `sent_at` is requested; there are three parts.
    fn next(waiting: &[u64], prepares: bool, sent_at: Option<u32>) -> (Option<u64>, u32) {
        let (sender, messages) = channel();
        for number in waiting {
            sender.send(time(*number)).unwrap();
        }
        let mut sender = sent_at.map(|_| sender);
        let mut requested = 0;
        let found = next_message(&messages, Duration::ZERO, prepares, || {
            requested += 1;
            if sent_at == Some(requested)
                && let Some(sender) = sender.take()
            {
                sender.send(time(9)).unwrap();
            }
            requested <= 3
        });
        let number = found.map(|message| match message {
            WorkerMessage::Time(until_ns, _) => until_ns,
            _ => unreachable!("only times are sent"),
        });
        (number, requested.min(3))
    }

    #[test]
    fn a_waiting_message_comes_before_preparation() {
        assert_eq!(next(&[1, 2], true, None), (Some(1), 0));
    }

    #[test]
    fn parts_are_prepared_until_a_message_comes() {
        assert_eq!(next(&[], true, Some(1)), (Some(9), 1));
        assert_eq!(next(&[], true, Some(2)), (Some(9), 2));
        // When all parts are prepared, it waits.
        assert_eq!(next(&[], true, Some(4)), (Some(9), 3));
    }

    #[test]
    fn without_a_page_nothing_is_prepared() {
        assert_eq!(next(&[1], false, None), (Some(1), 0));
        assert_eq!(next(&[], false, None), (None, 0));
    }

    #[test]
    fn without_senders_the_wait_ends() {
        assert_eq!(next(&[], true, None), (None, 0));
    }
}
