//! The thread that owns the profile and answers questions about it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use nyquist_analysis::{Index, Selection, View};
use nyquist_profile::Profile;
use nyquist_server::{Answer, Client, Refusal, SymbolSource};

use crate::answer::answer;
use crate::answers::Asked;
use crate::cache::{Answers, Views};
use crate::function_table::FunctionCategories;
use crate::parameters::Parameters;
use crate::progress::Progress;
use crate::refusal::internal;
use crate::selection::{end_of, selection};
use crate::translation::translated;

/// After so long without a question, a part of what later ones need is computed.
const IDLE: Duration = Duration::from_millis(100);

/// A question on its way to the thread.
struct Job {
    question: String,
    query: String,
    client: Client,
    answer: SyncSender<Result<Answer, Refusal>>,
}

/// The messages to the thread.
enum Message {
    Question(Job),
    /// Another profile in place of the present one. The reply is the time of that.
    Subject(Box<Subject>, SyncSender<Duration>),
    /// The same of a profile that is compared with the present one, where that is wanted.
    Other(Box<Profile>, bool, SyncSender<Duration>),
    /// The time up to which the present profile is complete. The reply is the time of answers since the last
    /// message.
    Time(u64, SyncSender<Duration>),
}

/// The profile of questions.
pub(crate) struct Subject {
    pub(crate) profile: Profile,
    /// The run that it is compared with.
    pub(crate) before: Option<Profile>,
    /// Of a recording that goes on: until when it was recorded so far, in ns since the profile's zero.
    pub(crate) until_ns: Option<u64>,
}

/// Where questions are sent. The thread begins with the first one, or on request.
pub(crate) struct Worker {
    state: Mutex<State>,
    /// Of a recording that goes on.
    progress: Option<Arc<Progress>>,
}

enum State {
    /// The thread has not begun.
    Idle(Box<(Subject, Arc<dyn SymbolSource>)>),
    /// The thread works.
    Started(mpsc::Sender<Message>),
    /// The system gave no thread.
    Failed,
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Worker")
    }
}

impl Worker {
    /// Nothing is worked out before the first question, or [`Worker::begin`].
    pub(crate) fn new(
        subject: Subject,
        symbols: Arc<dyn SymbolSource>,
        progress: Option<Arc<Progress>>,
    ) -> Self {
        Self { state: Mutex::new(State::Idle(Box::new((subject, symbols)))), progress }
    }

    /// Begins to compute the data of all answers, and does not wait for that.
    pub(crate) fn begin(&self) {
        let _ = self.sender();
    }

    /// Asks, and waits for the answer.
    pub(crate) fn ask(&self, question: &str, query: &str, client: &Client) -> Result<Answer, Refusal> {
        let (answer, answered) = sync_channel(1);
        let (question, query) = (question.to_owned(), query.to_owned());
        let job = Job { question, query, client: client.clone(), answer };
        self.sender().ok_or_else(internal)?.send(Message::Question(job)).map_err(|_| internal())?;
        answered.recv().map_err(|_| internal())?
    }

    /// Puts another profile in the place of the present one, and waits until it is there. Returns the time of
    /// that, with the time of answers about the one before.
    pub(crate) fn replace(&self, subject: Subject) -> Duration {
        let sender = {
            let Ok(mut state) = self.state.lock() else { return Duration::ZERO };
            match &mut *state {
                State::Idle(owned) => {
                    owned.0 = subject;
                    return self
                        .progress
                        .as_ref()
                        .map_or(Duration::ZERO, |progress| progress.count_version());
                }
                State::Started(sender) => sender.clone(),
                State::Failed => return Duration::ZERO,
            }
        };
        let (taken, reply) = sync_channel(1);
        let _ = sender.send(Message::Subject(Box::new(subject), taken));
        reply.recv().unwrap_or_default()
    }

    /// Shows another profile in place of the present one, or compared with it, and waits until it is there.
    pub(crate) fn open(&self, profile: Profile, compares: bool) {
        // The thread has the present one.
        let Some(sender) = self.sender() else { return };
        let (taken, reply) = sync_channel(1);
        let _ = sender.send(Message::Other(Box::new(profile), compares, taken));
        let _ = reply.recv();
    }

    /// Reports the time up to which the present profile is complete, and returns the time of answers since
    /// the last call.
    pub(crate) fn pass_time(&self, until_ns: u64) -> Duration {
        let Ok(mut state) = self.state.lock() else { return Duration::ZERO };
        match &mut *state {
            State::Idle(owned) => owned.0.until_ns = Some(until_ns),
            State::Started(sender) => {
                let (taken, reply) = sync_channel(1);
                let _ = sender.send(Message::Time(until_ns, taken));
                drop(state);
                return reply.recv().unwrap_or_default();
            }
            State::Failed => {}
        }
        Duration::ZERO
    }

    fn sender(&self) -> Option<mpsc::Sender<Message>> {
        let mut state = self.state.lock().ok()?;
        if let State::Idle(_) = &*state {
            let State::Idle(owned) = std::mem::replace(&mut *state, State::Failed) else { return None };
            let (sender, messages) = channel();
            let (subject, symbols) = *owned;
            let progress = self.progress.clone();
            let work = move || work(subject, &*symbols, progress.as_deref(), &messages);
            if thread::Builder::new().name("nyquist-viewer".to_owned()).spawn(work).is_ok() {
                *state = State::Started(sender);
            }
        }
        match &*state {
            State::Started(sender) => Some(sender.clone()),
            State::Idle(_) | State::Failed => None,
        }
    }
}

/// Answers until no sender of questions is left, about one profile after another.
fn work(
    mut subject: Subject,
    symbols: &dyn SymbolSource,
    progress: Option<&Progress>,
    messages: &Receiver<Message>,
) {
    let mut taken = None;
    while let Some((next, next_taken)) = answer_about(&subject, symbols, progress, messages, taken) {
        subject = match next {
            Next::Subject(next) => *next,
            Next::Other(profile, compares) => {
                Subject { profile: *profile, before: compares.then_some(subject.profile), until_ns: None }
            }
        };
        taken = Some(next_taken);
    }
}

/// The profile of the next questions.
enum Next {
    Subject(Box<Subject>),
    /// A profile, and whether it is compared with the present one.
    Other(Box<Profile>, bool),
}

/// Answers until there is another profile, and gives that back. `taken` gets the time that taking this one in
/// has needed.
fn answer_about(
    subject: &Subject,
    symbols: &dyn SymbolSource,
    progress: Option<&Progress>,
    messages: &Receiver<Message>,
    taken: Option<SyncSender<Duration>>,
) -> Option<(Next, SyncSender<Duration>)> {
    let began = Instant::now();
    let index = Index::new(&subject.profile);
    let before = subject.before.as_ref().map(Index::new);
    let mut desk = Desk {
        subject,
        index: &index,
        categories: FunctionCategories::new(&subject.profile),
        views: Views::new(&index),
        before: before.as_ref().map(Views::new),
        symbols,
        until_ns: subject.until_ns,
        is_live: progress.is_some(),
    };
    let mut answers = Answers::default();
    if let Some(taken) = taken {
        let answering = progress.map_or(Duration::ZERO, Progress::count_version);
        let _ = taken.send(began.elapsed() + answering);
    }
    loop {
        let job = match next_message(messages, &index, progress.is_some())? {
            Message::Question(job) => job,
            Message::Subject(next, taken) => return Some((Next::Subject(next), taken)),
            Message::Other(profile, compares, taken) => return Some((Next::Other(profile, compares), taken)),
            Message::Time(until_ns, taken) => {
                desk.until_ns = Some(until_ns);
                answers = Answers::default();
                let _ = taken.send(progress.map_or(Duration::ZERO, Progress::count_version));
                continue;
            }
        };
        if job.client.has_gone() {
            continue;
        }
        let key = format!("{}?{}", job.question, job.query);
        if let Some(known) = answers.get(&key) {
            let _ = job.answer.send(Ok(known.clone()));
            continue;
        }
        let began = Instant::now();
        let answer = catch_unwind(AssertUnwindSafe(|| desk.answer(&job)));
        let answer = answer.unwrap_or_else(|_| Err(internal()));
        if let Some(progress) = progress {
            progress.add_answering(began.elapsed());
        }
        if let Ok(answer) = &answer {
            answers.keep(key, answer);
        }
        let _ = job.answer.send(answer);
    }
}

/// Waits for the next message, and prepares the index meanwhile. The profiles of a recording are replaced too
/// soon for that.
fn next_message(messages: &Receiver<Message>, index: &Index<'_>, is_live: bool) -> Option<Message> {
    while !is_live {
        match messages.recv_timeout(IDLE) {
            Ok(message) => return Some(message),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) if index.prepare_more() => {}
            Err(RecvTimeoutError::Timeout) => break,
        }
    }
    messages.recv().ok()
}

/// The data for answering a question.
struct Desk<'a> {
    subject: &'a Subject,
    index: &'a Index<'a>,
    categories: FunctionCategories,
    views: Views<'a>,
    before: Option<Views<'a>>,
    symbols: &'a dyn SymbolSource,
    /// Until when a recording that goes on is all there.
    until_ns: Option<u64>,
    is_live: bool,
}

impl Desk<'_> {
    fn answer(&mut self, job: &Job) -> Result<Answer, Refusal> {
        let profile = &self.subject.profile;
        let parameters = Parameters::parse(&job.query);
        let selection = selection(&parameters, profile, self.until_ns)?;
        let (categories, symbols) = (&self.categories, self.symbols);
        let live = self.is_live.then(|| self.until_ns.unwrap_or_else(|| end_of(profile)));
        if let Some(parts) = with_parts_of_range(profile, &selection) {
            let index = Index::new(&parts);
            let view = View::new(&index, &selection);
            let (index, before) = (&index, None);
            let asked =
                Asked { index, view: &view, before, parameters: &parameters, categories, symbols, live };
            return answer(&job.question, &asked);
        }
        let view = self.views.of(&selection);
        let before = match (&mut self.before, &self.subject.before) {
            (Some(views), Some(before)) if compares(&job.question) => {
                Some(views.of(&translated(&selection, profile, before)))
            }
            _ => None,
        };
        let (index, before) = (self.index, before.as_deref());
        let asked = Asked { index, view: &view, before, parameters: &parameters, categories, symbols, live };
        answer(&job.question, &asked)
    }
}

/// Whether a question is about both runs.
fn compares(question: &str) -> bool {
    question.starts_with("diff") || matches!(question, "info" | "flamegraph.svg")
}

/// The profile whose samples end where the selected range does. This is for samples of exact times, as a
/// trace's slices, which the range may cut. O(profile).
fn with_parts_of_range(profile: &Profile, selection: &Selection) -> Option<Profile> {
    let range = selection.range.as_ref().filter(|_| profile.meta().has_exact_times)?;
    let mut parts = profile.clone();
    parts.split_samples(&[range.start, range.end]);
    Some(parts)
}
