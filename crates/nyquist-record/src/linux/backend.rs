//! The one place that knows all backends: chooses the best that the machine allows, and speaks for whichever it is.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use nyquist_convert::event::Pid;
use nyquist_convert::{Filter, StackCopyFeedback};
use thiserror::Error;

use super::options::{Options, Target};
use super::perf;
use super::ptrace::{self, Circumstances, Subject};
use super::stop::{EndReason, StopHandle};
use crate::{Chunk, Source};

/// Which backend to record with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// The best that the machine allows.
    #[default]
    Auto,
    /// `perf_event_open`.
    Perf,
    /// ptrace.
    Ptrace,
}

/// A backend that is ready to record.
#[derive(Debug)]
pub enum Backend {
    /// By `perf_event_open`.
    Perf(Box<perf::Perf>),
    /// By ptrace.
    Ptrace(Box<ptrace::Ptrace>),
}

/// What is being recorded, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// By `perf_event_open`.
    Perf(perf::Outcome),
    /// By ptrace.
    Ptrace(ptrace::Outcome),
}

impl Outcome {
    /// Samples for every second, of a thread's CPU time or of the wall clock's.
    pub fn rate_hz(&self) -> u32 {
        match self {
            Self::Perf(outcome) => outcome.rate_hz,
            Self::Ptrace(outcome) => outcome.rate_hz,
        }
    }

    /// Whether all CPU time has samples: where kernel code is not sampled, the time in it is known apart.
    pub fn samples_all_cpu_time(&self) -> bool {
        match self {
            Self::Perf(outcome) => outcome.kernel,
            // Time in the kernel counts for the user code that called it.
            Self::Ptrace(_) => true,
        }
    }

    /// What is to be known of the command before it starts: that it will not have the privileges which its file gives it.
    pub fn loses_privileges(&self) -> Option<&dyn fmt::Display> {
        match self {
            Self::Perf(_) => None,
            Self::Ptrace(outcome) => {
                outcome.loses_privileges.as_ref().map(|notice| notice as &dyn fmt::Display)
            }
        }
    }

    /// What else is less than was asked for.
    pub fn notices(&self) -> Vec<&dyn fmt::Display> {
        fn displayed<T: fmt::Display>(notices: &[T]) -> Vec<&dyn fmt::Display> {
            notices.iter().map(|notice| notice as &dyn fmt::Display).collect()
        }
        match self {
            Self::Perf(outcome) => displayed(&outcome.notices),
            Self::Ptrace(outcome) => displayed(&outcome.notices),
        }
    }
}

/// Why nothing can be recorded.
#[derive(Debug, Error)]
pub enum OpenError {
    /// Not with `perf_event_open`.
    #[error(transparent)]
    Perf(#[from] perf::OpenError),
    /// Not with ptrace.
    #[error(transparent)]
    Ptrace(#[from] ptrace::OpenError),
    /// ptrace was asked for, and it cannot do this.
    #[error("ptrace records a command or processes, not the whole machine and no control group")]
    TooMuchForPtrace,
    /// Without `perf_event_open`, callers are found in copies of stacks or not at all.
    #[error("by ptrace, callers are always found in copies of the stack: it knows no other call graph")]
    CallGraphNeedsPerf,
    /// Without `perf_event_open` there are no events.
    #[error("events (-e) take perf_event_open, which ptrace does without")]
    EventsNeedPerf,
    /// The same, where it is refused.
    #[error("events (-e) take perf_event_open: {0}")]
    NoPerfForEvents(perf::OpenError),
    /// Not with either.
    #[error("{perf}, and {ptrace}")]
    Both {
        /// Why not with `perf_event_open`.
        perf: perf::OpenError,
        /// Why not with ptrace.
        ptrace: ptrace::OpenError,
    },
}

impl OpenError {
    /// The process that is not there, or has ended meanwhile, where that is why.
    pub fn no_such_process(&self) -> Option<Pid> {
        match self {
            Self::Perf(perf::OpenError::NoSuchProcess { pid })
            | Self::Ptrace(ptrace::OpenError::NoSuchProcess { pid }) => Some(*pid),
            _ => None,
        }
    }

    /// What to do about it, a line each.
    pub fn advice(&self) -> Vec<String> {
        let words = |advice: &str| [Some(advice.to_owned()), None];
        let advice = match self {
            Self::Perf(error) => [error.advice(), None],
            Self::Ptrace(error) => [error.advice(), None],
            Self::TooMuchForPtrace => words("name a command, or running processes with -p or --name"),
            Self::CallGraphNeedsPerf => words("leave out --call-graph, or --backend"),
            Self::EventsNeedPerf => words("leave out -e, or --backend"),
            Self::NoPerfForEvents(perf) => {
                [perf.advice(), Some("without -e, the program is sampled by ptrace".to_owned())]
            }
            Self::Both { perf, ptrace } => [perf.advice(), ptrace.advice()],
        };
        advice.into_iter().flatten().collect()
    }
}

impl Backend {
    /// Makes the chosen backend ready for a process; [`Choice::Auto`] takes `perf_event_open` where that works.
    ///
    /// `loses_privileges` is the command's file, if it gives privileges that are lost under ptrace.
    pub fn open(
        choice: Choice,
        target: Target,
        options: &Options,
        loses_privileges: Option<PathBuf>,
    ) -> Result<Self, OpenError> {
        let circumstances = Circumstances { instead_of_perf: None, loses_privileges };
        let subject = Subject::of(&target);
        match choice {
            Choice::Perf => Ok(Self::Perf(Box::new(perf::Perf::open(target, options)?))),
            Choice::Ptrace => Self::by_ptrace(subject, options, circumstances),
            Choice::Auto => match (perf::Perf::open(target, options), subject) {
                (Ok(perf), _) => Ok(Self::Perf(Box::new(perf))),
                (Err(error), Some(subject))
                    if is_of_the_machine(&error) && options.call_graph.copies_stacks() =>
                {
                    Self::instead_of_perf(error, subject, options, circumstances)
                }
                (Err(error), _) => Err(error.into()),
            },
        }
    }

    fn by_ptrace(
        subject: Option<Subject>,
        options: &Options,
        circumstances: Circumstances,
    ) -> Result<Self, OpenError> {
        let subject = subject.ok_or(OpenError::TooMuchForPtrace)?;
        if options.asks_for_events() {
            return Err(OpenError::EventsNeedPerf);
        }
        if !options.call_graph.copies_stacks() {
            return Err(OpenError::CallGraphNeedsPerf);
        }
        // One that is not there is no choice, whatever samples.
        perf::chosen_cpus(&options.cpus)?;
        Ok(Self::Ptrace(Box::new(ptrace::Ptrace::open(subject, options, circumstances)?)))
    }

    fn instead_of_perf(
        perf: perf::OpenError,
        subject: Subject,
        options: &Options,
        circumstances: Circumstances,
    ) -> Result<Self, OpenError> {
        if options.asks_for_events() {
            return Err(OpenError::NoPerfForEvents(perf));
        }
        let why = match perf.advice() {
            Some(advice) => format!("{perf}: {advice}"),
            None => perf.to_string(),
        };
        let circumstances = Circumstances { instead_of_perf: Some(why), ..circumstances };
        match ptrace::Ptrace::open(subject, options, circumstances) {
            Ok(ptrace) => Ok(Self::Ptrace(Box::new(ptrace))),
            Err(error @ ptrace::OpenError::NoSuchProcess { .. }) => Err(error.into()),
            Err(ptrace) => Err(OpenError::Both { perf, ptrace }),
        }
    }

    /// What is being recorded.
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Perf(perf) => Outcome::Perf(perf.outcome().clone()),
            Self::Ptrace(ptrace) => Outcome::Ptrace(ptrace.outcome().clone()),
        }
    }

    /// Which of the samples that come are those of the target: to be told to the converter.
    pub fn filter(&self) -> Filter {
        match self {
            Self::Perf(perf) => perf.filter(),
            Self::Ptrace(_) => Filter::default(),
        }
    }

    /// Begins to record: an attached process at once, a child when it calls exec.
    pub fn record(self) -> Result<Recording, OpenError> {
        Ok(match self {
            Self::Perf(perf) => Recording::Perf(Box::new(perf.record()?)),
            Self::Ptrace(ptrace) => Recording::Ptrace(ptrace.record()),
        })
    }
}

/// Whether the machine is the reason, and not the process that was asked for.
fn is_of_the_machine(error: &perf::OpenError) -> bool {
    use perf::OpenError::{Descriptors, Refused, Rings, System, TooFewDescriptors};
    matches!(
        error,
        Refused { .. } | Descriptors { .. } | TooFewDescriptors { .. } | Rings { .. } | System { .. }
    )
}

/// A recording that runs: an iterator over what it records. Dropping it ends it.
#[derive(Debug)]
pub enum Recording {
    /// By `perf_event_open`.
    Perf(Box<perf::Recording>),
    /// By ptrace.
    Ptrace(ptrace::Recording),
}

/// What a recording came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Why it ended.
    pub reason: EndReason,
    /// The CPU time of all threads together, user and kernel, in nanoseconds; `None` where it was counted with others'.
    pub total_cpu_time_ns: Option<u64>,
    /// Whether processes that descend from what was recorded live on.
    pub left_running: bool,
    /// After which time more of each stack was copied, because many stacks were deeper.
    pub deepened_after: Option<Duration>,
    /// For how long threads were held, where they were.
    pub holds: Option<ptrace::HoldSummary>,
    /// The programs that lost privileges because they were traced, but for the command.
    pub lost_privileges: Vec<ptrace::Notice>,
}

impl Iterator for Recording {
    type Item = Chunk;

    fn next(&mut self) -> Option<Chunk> {
        match self {
            Self::Perf(recording) => recording.next(),
            Self::Ptrace(recording) => recording.next(),
        }
    }
}

impl Source for Recording {}

impl Recording {
    /// What ends the recording before the process does.
    pub fn stop_handle(&self) -> StopHandle {
        match self {
            Self::Perf(recording) => recording.stop_handle(),
            Self::Ptrace(recording) => recording.stop_handle(),
        }
    }

    /// Takes heed of what came of the copies of stacks: a recording that can copies more of each where many end too early.
    pub fn apply_feedback(&mut self, counts: &StackCopyFeedback) {
        if let Self::Perf(recording) = self {
            recording.apply_feedback(counts);
        }
    }

    /// Ends the recording, if it has not ended, and says what it came to. Chunks that were not taken are lost.
    pub fn finish(self) -> Summary {
        match self {
            Self::Perf(recording) => {
                let perf::Summary { reason, total_cpu_time_ns, left_running, deepened_after } =
                    recording.finish();
                let lost_privileges = Vec::new();
                Summary {
                    reason,
                    total_cpu_time_ns,
                    left_running,
                    deepened_after,
                    holds: None,
                    lost_privileges,
                }
            }
            Self::Ptrace(recording) => {
                let ptrace::Summary { reason, total_cpu_time_ns, holds, left_running, lost_privileges } =
                    recording.finish();
                Summary {
                    reason,
                    total_cpu_time_ns: Some(total_cpu_time_ns),
                    left_running,
                    deepened_after: None,
                    holds: Some(holds),
                    lost_privileges,
                }
            }
        }
    }
}
