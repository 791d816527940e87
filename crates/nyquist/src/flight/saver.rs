//! The thread that looks up names and writes the profiles of a recording that goes on.

use super::conditions::Met;
use crate::args::RecordArgs;
use crate::ctl::{CtlAnswer, CtlRequest};
use crate::failure::{Failure, io_reason};
use crate::form::Form;
use crate::output::Output;
use crate::printer::Printer;
use crate::save::{SaveFormat, write};
use crate::system::users::give_up_capabilities;
use crate::{finder, identity};
use nyquist_convert::{LibSource, Progress};
use nyquist_input::symbolicator;
use nyquist_profile::{ExtraInfo, LibId, Profile};
use nyquist_symbols::{Finder, KernelFiles};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// A profile to save, without names.
pub(super) struct SaveJob {
    pub(super) profile: Profile,
    pub(super) sources: Vec<(LibId, LibSource)>,
    pub(super) path: PathBuf,
    /// What asked for it.
    pub(super) reason: String,
    /// The condition that the names may not confirm.
    pub(super) met: Option<Met>,
    /// Who waits for the file.
    pub(super) requests: Vec<CtlRequest>,
    /// What they are told besides the file's name.
    pub(super) answer: CtlAnswer,
}

/// The end at which the converter's thread hands over profiles.
pub(super) struct Saver {
    jobs: SyncSender<SaveJob>,
    state: Arc<SaverState>,
    thread: JoinHandle<()>,
}

#[derive(Default)]
struct SaverState {
    is_busy: AtomicBool,
    saved: Mutex<Vec<PathBuf>>,
}

impl Saver {
    /// Starts the thread. It has the rights of the user whose recording it is.
    pub(super) fn start(args: &RecordArgs, printer: Printer) -> Result<Self, Failure> {
        let finder = identity::as_invoking_user(|| finder::offline(&args.presentation.symbols))?;
        let finder = finder.with_kernel_files(KernelFiles::open());
        let format = SaveFormat { form: Form::of(&args.output)?, version: args.profile_version };
        let state = Arc::<SaverState>::default();
        let (jobs, received) = sync_channel(1);
        let work = SaverWork { finder, format, printer, state: Arc::clone(&state) };
        let run = move || {
            let _ = give_up_capabilities();
            work.run(&received);
        };
        let spawn = || thread::Builder::new().name("nyquist-saver".to_owned()).spawn(run);
        let thread = identity::as_invoking_user(spawn)?
            .map_err(|error| Failure::because("no thread can be started", &error))?;
        Ok(Self { jobs, state, thread })
    }

    /// Whether a profile is being saved.
    pub(super) fn is_busy(&self) -> bool {
        self.state.is_busy.load(Ordering::Acquire)
    }

    /// Hands over a profile. The saver must not be busy.
    pub(super) fn save(&self, job: SaveJob) {
        self.state.is_busy.store(true, Ordering::Release);
        // If the thread has panicked, nothing is saved before the recording's end.
        let _ = self.jobs.try_send(job);
    }

    /// The files that were written since the last call.
    pub(super) fn take_saved(&self) -> Vec<PathBuf> {
        std::mem::take(&mut *self.state.saved.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until the last profile is saved.
    pub(super) fn finish(self) {
        drop(self.jobs);
        let _ = self.thread.join();
    }
}

/// What the thread works with.
struct SaverWork {
    finder: Finder,
    format: SaveFormat,
    printer: Printer,
    state: Arc<SaverState>,
}

impl SaverWork {
    fn run(self, jobs: &Receiver<SaveJob>) {
        let mut symbolicator = symbolicator(&self.finder);
        while let Ok(job) = jobs.recv() {
            let named = symbolicator.symbolicate(job.profile, &job.sources, &Progress::default()).profile;
            if job.met.as_ref().is_none_or(|met| met.is_confirmed(&named)) {
                let saved = self.write(named, &job.path, &job.reason);
                if let Ok(path) = &saved {
                    self.state.saved.lock().unwrap_or_else(PoisonError::into_inner).push(path.clone());
                }
                answer_all(job.requests, &job.answer, &saved);
            }
            self.state.is_busy.store(false, Ordering::Release);
        }
    }

    fn write(&self, mut profile: Profile, path: &Path, reason: &str) -> Result<PathBuf, String> {
        profile.add_info(ExtraInfo {
            section: "Recording".to_owned(),
            label: "Saved because of".to_owned(),
            value: reason.to_owned(),
        });
        let cannot = |reason: String| format!("cannot write {}: {reason}", path.display());
        let output = Output::open(path).map_err(|refused| refused.failure(path, "-o").message);
        let saved = output.and_then(|output| {
            write(&profile, output, self.format).map_err(|error| cannot(io_reason(&error)))
        });
        match saved {
            Ok(_) => {
                self.printer.say(format_args!("Saved {} ({reason}); the recording goes on", path.display()));
            }
            Err(ref message) => self.printer.warn(message),
        }
        saved.map(|_| path.to_owned())
    }
}

fn answer_all(requests: Vec<CtlRequest>, answer: &CtlAnswer, saved: &Result<PathBuf, String>) {
    let mut answer = answer.clone();
    match saved {
        Ok(path) => {
            answer.saves += 1;
            answer.saved =
                Some(std::path::absolute(path).unwrap_or_else(|_| path.clone()).display().to_string());
        }
        Err(message) => answer.error = Some(message.clone()),
    }
    for request in requests {
        request.answer(&answer);
    }
}
