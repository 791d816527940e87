//! The thread that owns the profile and answers questions about it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use nyquist_analysis::{Index, Selection, View};
use nyquist_profile::Profile;
use nyquist_server::{Answer, Client, Refusal, SymbolSource};

use crate::answers::{self, Asked};
use crate::cache::{Answers, Views};
use crate::function_table::FunctionCategories;
use crate::parameters::Parameters;
use crate::refusal::internal;
use crate::selection::selection;
use crate::translation::translated;

/// A question on its way to the thread.
struct Job {
    question: String,
    query: String,
    client: Client,
    answer: SyncSender<Result<Answer, Refusal>>,
}

/// What is asked about.
pub(crate) struct Subject {
    pub(crate) profile: Profile,
    /// The run that it is compared with.
    pub(crate) before: Option<Profile>,
}

/// Where questions are sent. The thread begins with the first one.
pub(crate) struct Worker(Mutex<State>);

enum State {
    /// Nothing was asked so far.
    Idle(Box<(Subject, Arc<dyn SymbolSource>)>),
    /// The thread works.
    Started(mpsc::Sender<Job>),
    /// The system gave no thread.
    Failed,
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Worker")
    }
}

impl Worker {
    /// Nothing is worked out before the first question.
    pub(crate) fn new(subject: Subject, symbols: Arc<dyn SymbolSource>) -> Self {
        Self(Mutex::new(State::Idle(Box::new((subject, symbols)))))
    }

    /// Asks, and waits for the answer.
    pub(crate) fn ask(&self, question: &str, query: &str, client: &Client) -> Result<Answer, Refusal> {
        let (answer, answered) = sync_channel(1);
        let (question, query) = (question.to_owned(), query.to_owned());
        let job = Job { question, query, client: client.clone(), answer };
        self.sender().ok_or_else(internal)?.send(job).map_err(|_| internal())?;
        answered.recv().map_err(|_| internal())?
    }

    fn sender(&self) -> Option<mpsc::Sender<Job>> {
        let mut state = self.0.lock().ok()?;
        if let State::Idle(_) = &*state {
            let State::Idle(owned) = std::mem::replace(&mut *state, State::Failed) else { return None };
            let (sender, jobs) = channel();
            let (subject, symbols) = *owned;
            let work = move || work(&subject, &*symbols, &jobs);
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

/// Answers until nobody can ask any more.
fn work(subject: &Subject, symbols: &dyn SymbolSource, jobs: &Receiver<Job>) {
    let index = Index::new(&subject.profile);
    let before = subject.before.as_ref().map(Index::new);
    let mut desk = Desk {
        subject,
        index: &index,
        categories: FunctionCategories::new(&subject.profile),
        views: Views::new(&index),
        before: before.as_ref().map(Views::new),
        symbols,
    };
    let mut answers = Answers::default();
    while let Ok(job) = jobs.recv() {
        if job.client.has_gone() {
            continue;
        }
        let key = format!("{}?{}", job.question, job.query);
        if let Some(known) = answers.get(&key) {
            let _ = job.answer.send(Ok(known.clone()));
            continue;
        }
        let answer = catch_unwind(AssertUnwindSafe(|| desk.answer(&job)));
        let answer = answer.unwrap_or_else(|_| Err(internal()));
        if let Ok(answer) = &answer {
            answers.keep(key, answer);
        }
        let _ = job.answer.send(answer);
    }
}

/// What answering a question needs.
struct Desk<'a> {
    subject: &'a Subject,
    index: &'a Index<'a>,
    categories: FunctionCategories,
    views: Views<'a>,
    before: Option<Views<'a>>,
    symbols: &'a dyn SymbolSource,
}

impl Desk<'_> {
    fn answer(&mut self, job: &Job) -> Result<Answer, Refusal> {
        let profile = &self.subject.profile;
        let parameters = Parameters::parse(&job.query);
        let selection = selection(&parameters, profile)?;
        let (categories, symbols) = (&self.categories, self.symbols);
        if let Some(parts) = with_parts_of_range(profile, &selection) {
            let index = Index::new(&parts);
            let view = View::new(&index, &selection);
            let (index, before) = (&index, None);
            let asked = Asked { index, view: &view, before, parameters: &parameters, categories, symbols };
            return answers::answer(&job.question, &asked);
        }
        let view = self.views.of(&selection);
        let before = match (&mut self.before, &self.subject.before) {
            (Some(views), Some(before)) if compares(&job.question) => {
                Some(views.of(&translated(&selection, profile, before)))
            }
            _ => None,
        };
        let (index, before) = (self.index, before.as_deref());
        let asked = Asked { index, view: &view, before, parameters: &parameters, categories, symbols };
        answers::answer(&job.question, &asked)
    }
}

/// Whether a question is about both runs.
fn compares(question: &str) -> bool {
    question.starts_with("diff") || matches!(question, "info" | "flamegraph.svg")
}

/// The profile whose samples end where the selected range does, where they stand for exact times, of which the range may have a
/// part: a trace's slices are as long as they are. O(profile).
fn with_parts_of_range(profile: &Profile, selection: &Selection) -> Option<Profile> {
    let range = selection.range.as_ref().filter(|_| profile.meta().has_exact_times)?;
    let mut parts = profile.clone();
    parts.split_samples(&[range.start, range.end]);
    Some(parts)
}
