//! The companions of a recording, which produce events of their own: markers, allocations, counters, CPU quotas, and
//! waits of threads.

use super::allocations;
use super::subject::ancestors;
use crate::number::counted;
use crate::printer::Printer;
use crate::record::linux::markers;
use nyquist_convert::Converter;
use nyquist_convert::event::{Event, Pid};
use nyquist_record::linux::allocations::AllocationReader;
use nyquist_record::linux::backend::RecordingOutcome;
use nyquist_record::linux::counters::ProcessCounters;
use nyquist_record::linux::cpu_quota::QuotaWatch;
use nyquist_record::linux::machine::lack_of_wait_tracepoints;
use nyquist_record::linux::markers::MarkerReader;
use nyquist_record::linux::wait_stacks::WaitStacks;
use nyquist_record::linux::{Companion, RecordingTarget};

/// The companions of a recording.
#[derive(Debug)]
pub(super) struct Companions {
    markers: Option<MarkerReader>,
    allocations: Option<AllocationReader>,
    counters: Option<ProcessCounters>,
    waits: Option<WaitStacks>,
    quota: Option<QuotaWatch>,
}

impl Companions {
    /// The companions that exist before the recording begins.
    pub(super) fn new(markers: Option<MarkerReader>, allocations: Option<AllocationReader>) -> Self {
        Self { markers, allocations, counters: None, waits: None, quota: None }
    }

    /// Starts counting the resources that the recorded processes use, and watching their CPU quotas. On failure the
    /// recording continues without them.
    pub(super) fn count(&mut self, target: &RecordingTarget, printer: Printer) {
        // For all processes of a machine or a container, each process could be read too rarely.
        if !matches!(target, RecordingTarget::Child(_) | RecordingTarget::Attach(_)) {
            return;
        }
        let pids: Vec<_> = ancestors(target).into_iter().map(Pid).collect();
        match QuotaWatch::of(&pids) {
            Ok(quota) => self.quota = quota,
            Err(error) => printer.detail(format_args!("CPU quotas are not watched: {error}")),
        }
        match ProcessCounters::of(&pids, matches!(target, RecordingTarget::Child(_))) {
            Ok(counters) => self.counters = Some(counters),
            Err(error) => {
                printer.detail(format_args!("the resources that the program uses are not counted: {error}"));
            }
        }
    }

    /// Starts reading where threads wait. The ptrace backend does this itself.
    pub(super) fn watch_waits(&mut self, outcome: &RecordingOutcome, printer: Printer) {
        if let RecordingOutcome::Perf(_) = outcome {
            if let Some((reason, advice)) = lack_of_wait_tracepoints() {
                printer.warn(format_args!(
                    "where in the kernel threads wait, and what ends their waits, is not recorded: {reason}; {advice}"
                ));
            }
            match WaitStacks::start() {
                Ok(waits) => self.waits = Some(waits),
                Err(error) => {
                    printer.warn(format_args!("where threads wait is not recorded: {error}"));
                }
            }
        }
    }

    fn each(&mut self) -> impl Iterator<Item = &mut dyn Companion> {
        let markers = self.markers.as_mut().map(|markers| markers as &mut dyn Companion);
        let allocations = self.allocations.as_mut().map(|it| it as &mut dyn Companion);
        let counters = self.counters.as_mut().map(|counters| counters as &mut dyn Companion);
        let waits = self.waits.as_mut().map(|waits| waits as &mut dyn Companion);
        let quota = self.quota.as_mut().map(|quota| quota as &mut dyn Companion);
        markers.into_iter().chain(allocations).chain(counters).chain(waits).chain(quota)
    }

    /// Passes the events of a chunk to each.
    pub(super) fn notice(&mut self, events: &[Event]) {
        self.each().for_each(|companion| events.iter().for_each(|event| companion.notice(event)));
    }

    /// Appends the events of each so far.
    pub(super) fn collect(&mut self, events: &mut Vec<Event>) {
        self.each().for_each(|companion| companion.collect(events));
    }

    /// Adds the last counts of the processes. A command that has ended still has them, until it is waited for.
    pub(super) fn finish_counters(&mut self, converter: &mut Converter) {
        if let Some(counters) = self.counters.take() {
            let mut events = Vec::new();
            counters.finish(&mut events);
            push(converter, events);
        }
    }

    /// Adds the remaining events to the recording, and reports losses.
    pub(super) fn finish(mut self, converter: &mut Converter, printer: Printer) {
        self.finish_counters(converter);
        if let Some(quota) = self.quota {
            let mut events = Vec::new();
            quota.finish(&mut events);
            push(converter, events);
        }
        if let Some(waits) = self.waits {
            finish_waits(waits, converter, printer);
        }
        if let Some(allocations) = self.allocations {
            allocations::finish(allocations, converter, printer);
        }
        if let Some(markers) = self.markers {
            markers::finish(markers, converter, printer);
        }
    }
}

fn push(converter: &mut Converter, events: Vec<Event>) {
    for event in events {
        converter.push(event);
    }
}

/// Adds the last observations of waiting threads, and reports threads that may not be read.
fn finish_waits(waits: WaitStacks, converter: &mut Converter, printer: Printer) {
    let mut events = Vec::new();
    let refused = waits.finish(&mut events);
    push(converter, events);
    if let Some(unread) = unread_waits(refused) {
        printer.warn(unread);
    }
}

/// A message about threads whose wait stacks may not be read; `None` for none.
pub(crate) fn unread_waits(refused: usize) -> Option<String> {
    let threads = counted(refused as u64, "thread");
    let text = format!("where {threads} waited could not be read: sudo, or CAP_SYS_PTRACE, permits it");
    (refused > 0).then_some(text)
}
