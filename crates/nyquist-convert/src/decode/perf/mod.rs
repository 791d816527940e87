//! Converts perf records to events. The records come from the kernel's ring buffers or from a perf.data file.

mod additional_events;
mod counters;
mod stack;

pub use additional_events::{
    AdditionalEvent, AdditionalEventKind, AdditionalEvents, Details, OccurrenceEvent, SampleFields,
};
pub(crate) use additional_events::{field_value, marker_format, shown_fields};
pub use counters::{CounterMeaning, EventCpus, Period, Successors};
pub(crate) use stack::{deferred_cookie, user_part};

use bytes::Bytes;
use nyquist_object::elf::Architecture;
use nyquist_object::{Avma, BuildId, FileOffset};
use nyquist_perf::abi::{context, misc, record};
use nyquist_perf::{
    CpuMode, Header, KernelSymbol, Lost, MappedIdentity, Mmap, Read, Record, RecordBody, RecordError,
    RecordFormat, SampleLayout, SampleType, Switch, Task, Throttle, WordList,
};
use nyquist_symbols::KERNEL_LIB;
use stack::{branch_call_stack, part_of_chain, registers};

use super::marker_text;
use crate::event::{
    CounterValue, Event, EventKind, MappedFile, Mapping, OccurrenceCounter, Pid, Sample, SampleState, Tid,
    Timestamp, UserStack,
};

/// The `PROT_EXEC` of mmap(2).
const PROT_EXEC: u32 = 4;

/// The process that the kernel's own mappings name: -1.
const KERNEL_PID: u32 = u32::MAX;

/// How to decode the records of one event that was opened for several threads and CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerfDecoder {
    /// The layout of the records.
    pub format: RecordFormat,
    /// The machine, which determines the set of registers.
    pub architecture: Architecture,
    /// Whether the events count in the kernel. If they do not, a sample in the kernel stands for the code
    /// that called the kernel, because the counter's interrupt comes late.
    pub kernel: bool,
    /// The unit of a sample's period.
    pub period: Period,
    /// On which CPU each event counts.
    pub cpus: EventCpus,
    /// The meaning of the counter values in samples.
    pub counters: CounterMeaning,
    /// The events that have taken over from others. Their counters begin at that time.
    pub successors: Successors,
    /// The events whose samples are occurrences of the event, and not observations of a running thread.
    pub additional_events: AdditionalEvents,
}

impl PerfDecoder {
    /// Parses the record at the start of `bytes`, a part of `piece`, and returns its event. `None` for
    /// records that have no event.
    ///
    /// A sample's stack is a slice of `piece` and is not copied.
    pub fn event(&self, piece: &Bytes, bytes: &[u8]) -> Result<Option<Event>, RecordError> {
        let record = nyquist_perf::parse_record(bytes, &self.format_of(bytes))?;
        let time = Timestamp(record.id.time.unwrap_or_default());
        let kind = self.kind(&record, piece);
        Ok(kind.map(|kind| Event { time, cpu: self.cpu(&record), kind }))
    }

    /// The CPU that a record is about.
    fn cpu(&self, record: &Record<'_>) -> Option<u32> {
        // Perf writes -1 into records that it synthesizes.
        let written_on = record.id.cpu.filter(|cpu| *cpu != u32::MAX);
        match &record.body {
            // A counter's final value is written on the CPU on which its thread ended, and not on the CPU
            // that it counts.
            RecordBody::Read(_) => self.cpus.get(record.id.id?),
            RecordBody::LostSamples(_) if is_sum(record) => self.cpus.get(record.id.id?),
            RecordBody::Lost(Lost { id, .. })
            | RecordBody::Throttle(Throttle { id, .. })
            | RecordBody::Unthrottle(Throttle { id, .. }) => written_on.or_else(|| self.cpus.get(*id)),
            _ => written_on,
        }
    }

    fn kind(&self, record: &Record<'_>, piece: &Bytes) -> Option<EventKind> {
        Some(match &record.body {
            RecordBody::Sample(sample) => {
                let observed = self.sample(record, sample, piece)?;
                match self.additional_events.get(record.id.id) {
                    Some(event) => event.event_kind(observed, sample, self.counter(record, sample))?,
                    None => EventKind::Sample(observed),
                }
            }
            RecordBody::Mmap(mmap) => EventKind::Map(mapping(mmap)?),
            RecordBody::Comm(comm) => EventKind::Name {
                pid: Pid(comm.pid),
                tid: Tid(comm.tid),
                name: text(comm.name),
                exec: comm.exec,
            },
            RecordBody::Fork(task) => fork(task),
            RecordBody::Exit(task) => EventKind::Exit { pid: Pid(task.pid), tid: Tid(task.tid) },
            RecordBody::Read(read) if self.counters == CounterMeaning::CpuTime => total(record, read)?,
            RecordBody::Lost(lost) if self.is_additional_event(lost.id) => {
                let is_requested =
                    self.additional_events.get(Some(lost.id)).is_some_and(AdditionalEvent::is_requested);
                is_requested.then_some(EventKind::OccurrencesLost { records: lost.records })?
            }
            // The clock does not pause then.
            RecordBody::Throttle(throttle) | RecordBody::Unthrottle(throttle)
                if self.is_additional_event(throttle.id) =>
            {
                return None;
            }
            RecordBody::Lost(lost) => EventKind::Lost { records: lost.records },
            RecordBody::LostSamples(records) => lost_samples(record, *records)?,
            RecordBody::Throttle(_) => EventKind::Throttled,
            RecordBody::Unthrottle(_) => EventKind::Unthrottled,
            RecordBody::KernelSymbol(symbol) => kernel_code(symbol),
            RecordBody::Switch(switch) => switched(*switch, record.id.task?),
            _ => return None,
        })
    }

    /// The layout of a record. A sample begins with the number of its event (`PERF_SAMPLE_IDENTIFIER`).
    fn format_of(&self, bytes: &[u8]) -> RecordFormat {
        let is_sample = || Header::parse(bytes).is_ok_and(|header| header.kind == record::SAMPLE);
        if self.additional_events.is_empty() || !is_sample() {
            return self.format;
        }
        let fields = SampleLayout::event_in(bytes).map(|id| self.additional_events.fields(id));
        fields.unwrap_or_default().format(self.format)
    }

    /// The counter of a sample's event, if the sample has it. If the clock counts by thread, so does this
    /// event, because it has the same layout.
    fn counter(&self, record: &Record<'_>, sample: &nyquist_perf::Sample<'_>) -> Option<OccurrenceCounter> {
        let (id, tid) = (record.id.id?, record.id.task.map(|(_, tid)| Tid(tid)));
        if self.additional_events.fields(id) == SampleFields::NextPeriod {
            return Some(OccurrenceCounter { id, tid, value: CounterValue::UntilNext(sample.period?) });
        }
        let value = CounterValue::Total(sample.counters?.iter().next()?.value);
        let by_thread = self.format.sample_type.contains(SampleType::READ);
        Some(OccurrenceCounter { id, tid: tid.filter(|_| by_thread), value })
    }

    /// Whether the event with this id is an additional one.
    fn is_additional_event(&self, id: u64) -> bool {
        self.additional_events.get(Some(id)).is_some()
    }

    fn sample(
        &self,
        record: &Record<'_>,
        sample: &nyquist_perf::Sample<'_>,
        piece: &Bytes,
    ) -> Option<Sample> {
        let (pid, tid) = record.id.task?;
        let in_kernel = record.header.cpu_mode() == CpuMode::Kernel;
        let chain = sample.callchain.unwrap_or_default();
        let guest = match record.header.cpu_mode() {
            CpuMode::GuestKernel => Some("[virtual machine's kernel]"),
            CpuMode::GuestUser => Some("[virtual machine's program]"),
            _ => None,
        };
        let user_ip = sample.ip.filter(|_| record.header.cpu_mode() == CpuMode::User).map(Avma);
        let mut kernel_stack = part_of_chain(chain, context::KERNEL);
        if in_kernel && kernel_stack.is_empty() && self.kernel {
            kernel_stack.extend(sample.ip.map(Avma));
        }
        Some(Sample {
            pid: Pid(pid),
            tid: Tid(tid),
            in_kernel,
            state: match self.period {
                Period::Cycles => SampleState::Counted { cycles: sample.period.unwrap_or_default() },
                Period::Provided | Period::Each(_) => SampleState::Clocked,
            },
            period_ns: self.period_ns(sample.period),
            cpu_time_ns: self.cpu_time_ns(sample),
            counts_anew: record.id.id.is_some_and(|id| self.successors.contains(id)),
            kernel_stack,
            user: match guest {
                Some(name) => UserStack::Named(name),
                None => self.user_stack(sample, (chain, user_ip), piece),
            },
        })
    }

    fn period_ns(&self, period: Option<u64>) -> u64 {
        match self.period {
            Period::Provided => period.unwrap_or_default(),
            Period::Cycles => 0,
            Period::Each(nanoseconds) => nanoseconds,
        }
    }

    /// In a group, the clock that counts CPU time is the last member.
    fn cpu_time_ns(&self, sample: &nyquist_perf::Sample<'_>) -> Option<u64> {
        let counters = sample.counters.filter(|_| self.counters == CounterMeaning::CpuTime)?;
        counters.iter().last().map(|last| last.value)
    }

    /// The user's part of the stack: registers and a copy to unwind, otherwise the call chain of the kernel
    /// or the hardware, otherwise the instruction pointer.
    fn user_stack(
        &self,
        sample: &nyquist_perf::Sample<'_>,
        (chain, ip): (WordList<'_>, Option<Avma>),
        piece: &Bytes,
    ) -> UserStack {
        let mut chain = part_of_chain(chain, context::USER);
        let copy = sample.user_stack;
        if (copy.is_some() || chain.is_empty())
            && let Some(registers) =
                sample.user_registers.and_then(|values| registers(&values, self.architecture))
        {
            return UserStack::Copied {
                registers: Box::new(registers),
                stack: copy.map_or_else(Bytes::new, |copy| piece.slice_ref(copy.bytes)),
                limited: copy.is_none_or(|copy| copy.bytes.len() >= copy.room),
            };
        }
        if let Some(branches) = sample.branches.as_ref().filter(|_| self.format.has_branch_call_stack()) {
            let walked = branch_call_stack(branches, chain.first().copied().or(ip));
            if !walked.is_empty() {
                return UserStack::Walked(walked);
            }
        }
        if chain.is_empty() {
            chain.extend(ip);
        }
        if chain.is_empty() { UserStack::None } else { UserStack::FramePointers(chain) }
    }
}

/// The event of a `LOST_SAMPLES` record, if anything was lost. The kernel and our own recordings write the
/// losses up to the record's time. At a file's end perf writes records without a time: the total loss of each
/// event, and the number of samples that a filter has left out.
fn lost_samples(record: &Record<'_>, records: u64) -> Option<EventKind> {
    let is_left_out = record.header.misc & misc::LOST_SAMPLES_BPF != 0;
    match is_sum(record) {
        _ if is_left_out => None,
        true => Some(EventKind::LostInAll { records }),
        false => Some(EventKind::Lost { records }),
    }
}

/// The final value of a counter for a thread that has ended. A record without a time comes from our own
/// recordings, and contains the total of all threads.
fn total(record: &Record<'_>, read: &Read<'_>) -> Option<EventKind> {
    let cpu_time_ns = read.counters.iter().last()?.value;
    let of_all = is_sum(record).then_some(EventKind::TotalInAll { cpu_time_ns });
    of_all.or(Some(EventKind::Total { pid: Pid(read.pid), tid: Tid(read.tid), cpu_time_ns }))
}

fn is_sum(record: &Record<'_>) -> bool {
    record.id.time.unwrap_or_default() == 0
}

fn kernel_code(symbol: &KernelSymbol<'_>) -> EventKind {
    let (start, len, name) = (Avma(symbol.address), u64::from(symbol.len), text(symbol.name));
    if symbol.unregistered {
        return EventKind::KernelCodeGone { start, len, name };
    }
    EventKind::KernelCode { start, len, name }
}

fn fork(task: &Task) -> EventKind {
    EventKind::Fork {
        pid: Pid(task.pid),
        tid: Tid(task.tid),
        parent_pid: Pid(task.parent_pid),
        parent_tid: Tid(task.parent_tid),
    }
}

fn switched(switch: Switch, (pid, tid): (u32, u32)) -> EventKind {
    let (pid, tid) = (Pid(pid), Tid(tid));
    if switch.out {
        EventKind::Descheduled { pid, tid, preempted: switch.preempted }
    } else {
        EventKind::SwitchIn { tid }
    }
}

fn mapping(mmap: &Mmap<'_>) -> Option<Mapping> {
    let executable = mmap.protection.map_or(!mmap.data, |protection| protection & PROT_EXEC != 0);
    // A program maps samply's marker files only to show them to the recorder.
    let is_requested =
        executable || marker_text::owner_in_path(&String::from_utf8_lossy(mmap.path)).is_some();
    is_requested.then(|| any_mapping(mmap))
}

/// A mapping, whether of code or not.
pub(crate) fn any_mapping(mmap: &Mmap<'_>) -> Mapping {
    Mapping {
        pid: (mmap.pid != KERNEL_PID).then_some(Pid(mmap.pid)),
        start: Avma(mmap.address),
        len: mmap.len,
        offset: FileOffset(mmap.page_offset),
        path: mapped_name(text(mmap.path)),
        identity: identity(mmap.identity),
    }
}

/// Perf names the kernel's mapping after its first symbol.
fn mapped_name(path: String) -> String {
    if path.starts_with(KERNEL_LIB) { KERNEL_LIB.to_owned() } else { path }
}

fn identity(identity: MappedIdentity<'_>) -> MappedFile {
    match identity {
        MappedIdentity::BuildId(bytes) => {
            BuildId::new(bytes).map_or(MappedFile::Unknown, MappedFile::BuildId)
        }
        // Anonymous memory and pseudo files have no inode.
        MappedIdentity::None | MappedIdentity::Inode { inode: 0, .. } => MappedFile::Unknown,
        MappedIdentity::Inode { major, minor, inode, generation } => {
            MappedFile::Inode { major, minor, inode, generation }
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests;
