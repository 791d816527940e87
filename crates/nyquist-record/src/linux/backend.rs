//! The only module that knows all backends: it chooses the best that the machine allows, and dispatches to
//! it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use nyquist_convert::event::Pid;
use nyquist_convert::{ProcessFilter, StackCopyFeedback};
use thiserror::Error;

use super::options::{Options, RecordingTarget};
use super::pause::PauseHandle;
use super::perf;
use super::ptrace::{self, PtraceContext, TracedTarget};
use super::stop::{EndReason, StopHandle};
use crate::{Chunk, ChunkSource};

/// The backend to record with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BackendChoice {
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

/// What is recorded, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordingOutcome {
    /// By `perf_event_open`.
    Perf(perf::PerfOutcome),
    /// By ptrace.
    Ptrace(ptrace::PtraceOutcome),
}

impl RecordingOutcome {
    /// Samples per second, of a thread's CPU time or of wall-clock time.
    pub fn rate_hz(&self) -> u32 {
        match self {
            Self::Perf(outcome) => outcome.rate_hz,
            Self::Ptrace(outcome) => outcome.rate_hz,
        }
    }

    /// Whether a command that is launched has to inherit its events
    /// ([`start_with_inherited_events`](crate::linux::launch::SuspendedChild::start_with_inherited_events)).
    pub fn command_inherits_events(&self) -> bool {
        matches!(self, Self::Perf(outcome) if outcome.command_inherits_events())
    }

    /// Whether a counter of cycles triggers the samples.
    pub fn counts_cycles(&self) -> bool {
        matches!(self, Self::Perf(outcome) if outcome.trigger == perf::Trigger::Cycles)
    }

    /// Whether all CPU time has samples. If kernel code is not sampled, its time is known separately.
    pub fn samples_all_cpu_time(&self) -> bool {
        match self {
            Self::Perf(outcome) => outcome.kernel,
            // Time in the kernel counts for the user code that called it.
            Self::Ptrace(_) => true,
        }
    }

    /// A notice for the user before the command starts: the command will not have the privileges that its
    /// file gives it.
    pub fn loses_privileges(&self) -> Option<&dyn fmt::Display> {
        match self {
            Self::Perf(_) => None,
            Self::Ptrace(outcome) => {
                outcome.loses_privileges.as_ref().map(|notice| notice as &dyn fmt::Display)
            }
        }
    }

    /// The other limitations of the recording.
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
#[non_exhaustive]
pub enum OpenError {
    /// `perf_event_open` failed.
    #[error(transparent)]
    Perf(#[from] perf::OpenError),
    /// ptrace failed.
    #[error(transparent)]
    Ptrace(#[from] ptrace::OpenError),
    /// ptrace was requested, and it does not support this target.
    #[error(
        "ptrace can record a command or processes, but not the whole machine, a control group or a single thread"
    )]
    TooMuchForPtrace,
    /// Without `perf_event_open`, callers are found in stack copies or not at all.
    #[error("with ptrace, callers are always found in copies of the stack; no other call graph is supported")]
    CallGraphNeedsPerf,
    /// Without `perf_event_open` there are no events.
    #[error("events (-e) need perf_event_open, which ptrace does not use")]
    EventsNeedPerf,
    /// The same, if it is refused.
    #[error("events (-e) need perf_event_open: {0}")]
    NoPerfForEvents(perf::OpenError),
    /// Both failed.
    #[error("{perf}, and {ptrace}")]
    Both {
        /// Why `perf_event_open` failed.
        perf: perf::OpenError,
        /// Why ptrace failed.
        ptrace: ptrace::OpenError,
    },
}

impl OpenError {
    /// The process that does not exist or has ended, if that is the reason.
    pub fn no_such_process(&self) -> Option<Pid> {
        match self {
            Self::Perf(perf::OpenError::NoSuchProcess { pid })
            | Self::Ptrace(ptrace::OpenError::NoSuchProcess { pid }) => Some(*pid),
            _ => None,
        }
    }

    /// Advice for the user, one line each.
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
    /// Prepares the chosen backend for a process. [`BackendChoice::Auto`] uses `perf_event_open` if that works.
    ///
    /// `loses_privileges` is the command's file, if it gives privileges that are lost under ptrace.
    pub fn open(
        choice: BackendChoice,
        target: RecordingTarget,
        options: &Options,
        loses_privileges: Option<PathBuf>,
    ) -> Result<Self, OpenError> {
        let context = PtraceContext { instead_of_perf: None, loses_privileges };
        let subject = TracedTarget::of(&target);
        match choice {
            BackendChoice::Perf => Ok(Self::Perf(Box::new(perf::Perf::open(target, options)?))),
            BackendChoice::Ptrace => Self::by_ptrace(subject, options, context),
            BackendChoice::Auto => match (perf::Perf::open(target, options), subject) {
                (Ok(perf), _) => Ok(Self::Perf(Box::new(perf))),
                (Err(error), Some(subject))
                    if is_of_the_machine(&error) && options.call_graph.copies_stacks() =>
                {
                    Self::instead_of_perf(error, subject, options, context)
                }
                (Err(error), _) => Err(error.into()),
            },
        }
    }

    fn by_ptrace(
        subject: Option<TracedTarget>,
        options: &Options,
        context: PtraceContext,
    ) -> Result<Self, OpenError> {
        let subject = subject.ok_or(OpenError::TooMuchForPtrace)?;
        if options.asks_for_events() {
            return Err(OpenError::EventsNeedPerf);
        }
        if !options.call_graph.copies_stacks() {
            return Err(OpenError::CallGraphNeedsPerf);
        }
        // A CPU that does not exist cannot be chosen, with any backend.
        perf::requested_cpus(&options.cpus)?;
        Ok(Self::Ptrace(Box::new(ptrace::Ptrace::open(subject, options, context)?)))
    }

    fn instead_of_perf(
        perf: perf::OpenError,
        subject: TracedTarget,
        options: &Options,
        context: PtraceContext,
    ) -> Result<Self, OpenError> {
        if options.asks_for_events() {
            return Err(OpenError::NoPerfForEvents(perf));
        }
        let why = match perf.advice() {
            Some(advice) => format!("{perf}: {advice}"),
            None => perf.to_string(),
        };
        let context = PtraceContext { instead_of_perf: Some(why), ..context };
        match ptrace::Ptrace::open(subject, options, context) {
            Ok(ptrace) => Ok(Self::Ptrace(Box::new(ptrace))),
            Err(error @ ptrace::OpenError::NoSuchProcess { .. }) => Err(error.into()),
            Err(ptrace) => Err(OpenError::Both { perf, ptrace }),
        }
    }

    /// What is recorded, and how.
    pub fn outcome(&self) -> RecordingOutcome {
        match self {
            Self::Perf(perf) => RecordingOutcome::Perf(perf.outcome().clone()),
            Self::Ptrace(ptrace) => RecordingOutcome::Ptrace(ptrace.outcome().clone()),
        }
    }

    /// Selects the samples of the target; to be passed to the converter.
    pub fn filter(&self) -> ProcessFilter {
        match self {
            Self::Perf(perf) => perf.filter(),
            Self::Ptrace(_) => ProcessFilter::default(),
        }
    }

    /// Starts recording: an attached process at once, a child when it calls exec.
    pub fn record(self) -> Result<Recording, OpenError> {
        Ok(match self {
            Self::Perf(perf) => Recording::Perf(Box::new(perf.record()?)),
            Self::Ptrace(ptrace) => Recording::Ptrace(ptrace.record()),
        })
    }
}

/// Whether the machine is the reason, and not the requested process.
fn is_of_the_machine(error: &perf::OpenError) -> bool {
    use perf::OpenError::{Descriptors, Refused, Rings, System, TooFewDescriptors};
    matches!(
        error,
        Refused { .. } | Descriptors { .. } | TooFewDescriptors { .. } | Rings { .. } | System { .. }
    )
}

/// A running recording: an iterator over the recorded chunks. Dropping it ends it.
#[derive(Debug)]
pub enum Recording {
    /// By `perf_event_open`.
    Perf(Box<perf::PerfRecording>),
    /// By ptrace.
    Ptrace(ptrace::PtraceRecording),
}

/// The summary of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingSummary {
    /// Why it ended.
    pub reason: EndReason,
    /// The CPU time of all threads together, user and kernel, in nanoseconds; `None` if it was counted
    /// together with other processes.
    pub total_cpu_time_ns: Option<u64>,
    /// Whether descendants of the recorded processes live on.
    pub left_running: bool,
    /// How many times requested events have happened in all, for those whose records do not add up to that. By their
    /// indices in [`Options::events`](super::Options::events).
    pub event_counts: BTreeMap<usize, u64>,
    /// How long threads were stopped, if they were.
    pub holds: Option<ptrace::HoldSummary>,
    /// The programs that lost privileges because they were traced, except the command.
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

impl ChunkSource for Recording {
    fn apply_feedback(&self, feedback: &StackCopyFeedback) {
        match self {
            Self::Perf(recording) => recording.apply_feedback(feedback),
            Self::Ptrace(recording) => recording.apply_feedback(feedback),
        }
    }
}

impl Recording {
    /// A handle that ends the recording before the process ends.
    pub fn stop_handle(&self) -> StopHandle {
        match self {
            Self::Perf(recording) => recording.stop_handle(),
            Self::Ptrace(recording) => recording.stop_handle(),
        }
    }

    /// A handle that pauses and resumes the recording.
    pub fn pause_handle(&self) -> PauseHandle {
        match self {
            Self::Perf(recording) => recording.pause_handle(),
            Self::Ptrace(recording) => recording.pause_handle(),
        }
    }

    /// Ends the recording if it has not ended, and returns its summary. Chunks that were not taken are lost.
    pub fn finish(self) -> RecordingSummary {
        match self {
            Self::Perf(recording) => {
                let perf::PerfSummary { reason, total_cpu_time_ns, left_running, event_counts } =
                    recording.finish();
                RecordingSummary {
                    reason,
                    total_cpu_time_ns,
                    left_running,
                    event_counts,
                    holds: None,
                    lost_privileges: Vec::new(),
                }
            }
            Self::Ptrace(recording) => {
                let ptrace::PtraceSummary { reason, total_cpu_time_ns, holds, left_running, lost_privileges } =
                    recording.finish();
                RecordingSummary {
                    reason,
                    total_cpu_time_ns: Some(total_cpu_time_ns),
                    left_running,
                    event_counts: BTreeMap::new(),
                    holds: Some(holds),
                    lost_privileges,
                }
            }
        }
    }
}
