//! The thread that owns the profile and answers questions about it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use nyquist_analysis::{Index, Selection, View};
use nyquist_profile::Profile;
use nyquist_server::{Client, Refusal, SymbolSource};

use crate::answers::{self, Asked};
use crate::cache::{Answers, Views};
use crate::function_table::FunctionCategories;
use crate::parameters::Parameters;
use crate::refusal::internal;
use crate::selection::selection;

type Answer = Result<Vec<u8>, Refusal>;

/// A question on its way to the thread.
struct Job {
    question: String,
    query: String,
    client: Client,
    answer: SyncSender<Answer>,
}

/// Where questions are sent. The thread begins with the first one.
pub(crate) struct Worker(Mutex<State>);

enum State {
    /// Nothing was asked so far.
    Idle(Box<(Profile, Arc<dyn SymbolSource>)>),
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
    pub(crate) fn new(profile: Profile, symbols: Arc<dyn SymbolSource>) -> Self {
        Self(Mutex::new(State::Idle(Box::new((profile, symbols)))))
    }

    /// Asks, and waits for the answer.
    pub(crate) fn ask(&self, question: &str, query: &str, client: &Client) -> Answer {
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
            let (profile, symbols) = *owned;
            let work = move || work(&profile, &*symbols, &jobs);
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
fn work(profile: &Profile, symbols: &dyn SymbolSource, jobs: &Receiver<Job>) {
    let index = Index::new(profile);
    let categories = &FunctionCategories::new(profile);
    let mut views = Views::new(&index);
    let mut answers = Answers::default();
    while let Ok(job) = jobs.recv() {
        if job.client.has_gone() {
            continue;
        }
        let key = format!("{}?{}", job.question, job.query);
        if let Some(known) = answers.get(&key) {
            let _ = job.answer.send(Ok(known.to_vec()));
            continue;
        }
        let answer = catch_unwind(AssertUnwindSafe(|| {
            let parameters = Parameters::parse(&job.query);
            let selection = selection(&parameters, profile)?;
            if let Some(parts) = with_parts_of_range(profile, &selection) {
                let index = Index::new(&parts);
                let view = View::new(&index, &selection);
                let asked =
                    Asked { index: &index, view: &view, parameters: &parameters, categories, symbols };
                return answers::answer(&job.question, &asked);
            }
            let view = views.of(&selection);
            let asked = Asked { index: &index, view: &view, parameters: &parameters, categories, symbols };
            answers::answer(&job.question, &asked)
        }));
        let answer = answer.unwrap_or_else(|_| Err(internal()));
        if let Ok(body) = &answer {
            answers.keep(key, body);
        }
        let _ = job.answer.send(answer);
    }
}

/// The profile whose samples end where the selected range does, where they stand for exact times, of which the range may have a
/// part: a trace's slices are as long as they are. O(profile).
fn with_parts_of_range(profile: &Profile, selection: &Selection) -> Option<Profile> {
    let range = selection.range.as_ref().filter(|_| profile.meta().has_exact_times)?;
    let mut parts = profile.clone();
    parts.split_samples(&[range.start, range.end]);
    Some(parts)
}
