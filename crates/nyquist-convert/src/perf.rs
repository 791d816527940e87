//! Perf records to events: what the kernel's rings or a perf.data file say, in the terms of the event model.

use std::sync::Arc;

use bytes::Bytes;
use nyquist_object::elf::Architecture;
use nyquist_object::{Avma, BuildId, FileOffset};
use nyquist_perf::abi::{context, x86};
use nyquist_perf::{
    Body, CpuMode, MappedIdentity, Mmap, Record, RecordError, RecordFormat, RegisterAbi, Task, Words,
};

use crate::event::{
    Event, EventKind, MappedFile, Mapping, Pid, Registers, Sample, Tid, Timestamp, UserStack,
};

/// The `PROT_EXEC` of mmap(2).
const PROT_EXEC: u32 = 4;

/// The process that the kernel's own mappings name: -1.
const KERNEL_PID: u32 = u32::MAX;

/// How the records of one event, opened for several threads and CPUs, are to be understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerfEvents {
    /// The layout of the records.
    pub format: RecordFormat,
    /// The machine, which decides what the registers are.
    pub architecture: Architecture,
    /// What a sample's period counts.
    pub period: Period,
    /// On which CPU each event counts.
    pub cpus: EventCpus,
}

/// On which CPU each event counts, by the kernel's number of the event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventCpus {
    /// Ascending by number.
    by_id: Arc<[(u64, u32)]>,
}

impl FromIterator<(u64, u32)> for EventCpus {
    fn from_iter<I: IntoIterator<Item = (u64, u32)>>(events: I) -> Self {
        let mut by_id: Vec<_> = events.into_iter().collect();
        by_id.sort_unstable();
        Self { by_id: by_id.into() }
    }
}

impl EventCpus {
    /// The CPU of the event of that number. Takes time logarithmic in the number of events.
    pub fn get(&self, id: u64) -> Option<u32> {
        let at = self.by_id.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        self.by_id.get(at).map(|(_, cpu)| *cpu)
    }
}

/// What a sample's period counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// Nanoseconds of CPU time: a clock's.
    Nanoseconds,
    /// Something else, as cycles; every sample stands for this many nanoseconds, the inverse of the rate.
    Each(u64),
}

impl PerfEvents {
    /// Parses the record at the start of `bytes` and says what it means; `None` for records that say nothing
    /// about programs.
    ///
    /// A sample's stack is a slice of `bytes` and is not copied.
    pub fn event(&self, bytes: &Bytes) -> Result<Option<Event>, RecordError> {
        let record = nyquist_perf::parse_record(bytes, &self.format)?;
        let time = Timestamp(record.id.time.unwrap_or_default());
        let kind = self.kind(&record, bytes);
        Ok(kind.map(|kind| Event { time, cpu: self.cpu(&record), kind }))
    }

    /// A counter's final value is written on the CPU on which its thread ended, whatever CPU it has counted on.
    fn cpu(&self, record: &Record<'_>) -> Option<u32> {
        match &record.body {
            Body::Read(_) => self.cpus.get(record.id.id?),
            _ => record.id.cpu,
        }
    }

    fn kind(&self, record: &Record<'_>, bytes: &Bytes) -> Option<EventKind> {
        Some(match &record.body {
            Body::Sample(sample) => EventKind::Sample(self.sample(record, sample, bytes)?),
            Body::Mmap(mmap) => EventKind::Map(mapping(mmap)?),
            Body::Comm(comm) => EventKind::Name {
                pid: Pid(comm.pid),
                tid: Tid(comm.tid),
                name: text(comm.name),
                exec: comm.exec,
            },
            Body::Fork(task) => fork(task),
            Body::Exit(task) => EventKind::Exit { pid: Pid(task.pid), tid: Tid(task.tid) },
            Body::Read(read) => EventKind::Total {
                pid: Pid(read.pid),
                tid: Tid(read.tid),
                cpu_time_ns: read.counters.iter().last()?.value,
            },
            Body::Lost(lost) => EventKind::Lost { records: lost.records },
            Body::LostSamples(records) => EventKind::Lost { records: *records },
            Body::Throttle(_) => EventKind::Throttled,
            _ => return None,
        })
    }

    fn sample(
        &self,
        record: &Record<'_>,
        sample: &nyquist_perf::Sample<'_>,
        bytes: &Bytes,
    ) -> Option<Sample> {
        let (pid, tid) = record.id.task?;
        let in_kernel = record.header.cpu_mode() == CpuMode::Kernel;
        let chain = sample.callchain.unwrap_or_default();
        let mut kernel_stack = part_of_chain(chain, context::KERNEL);
        if in_kernel && kernel_stack.is_empty() {
            kernel_stack.extend(sample.ip.map(Avma));
        }
        Some(Sample {
            pid: Pid(pid),
            tid: Tid(tid),
            in_kernel,
            period_ns: self.period_ns(sample.period),
            // In a group, the clock that counts CPU time is the last member.
            cpu_time_ns: sample.counters.and_then(|counters| counters.iter().last()).map(|last| last.value),
            kernel_stack,
            user: self.user_stack(sample, chain, bytes),
        })
    }

    fn period_ns(&self, period: Option<u64>) -> u64 {
        match self.period {
            Period::Nanoseconds => period.unwrap_or_default(),
            Period::Each(nanoseconds) => nanoseconds,
        }
    }

    fn user_stack(&self, sample: &nyquist_perf::Sample<'_>, chain: Words<'_>, bytes: &Bytes) -> UserStack {
        let Some(registers) = sample.user_registers else {
            let walked = part_of_chain(chain, context::USER);
            return if walked.is_empty() { UserStack::None } else { UserStack::Walked(walked) };
        };
        let Some(registers) = self.registers(&registers) else { return UserStack::None };
        let copy = sample.user_stack;
        UserStack::Copied {
            registers: Box::new(registers),
            stack: copy.map_or_else(Bytes::new, |copy| bytes.slice_ref(copy.bytes)),
            limited: copy.is_none_or(|copy| copy.bytes.len() >= copy.room),
        }
    }

    fn registers(&self, registers: &nyquist_perf::Registers<'_>) -> Option<Registers> {
        match (registers.abi?, self.architecture) {
            (RegisterAbi::Bits64, Architecture::X86_64) => x86_64_registers(registers),
            (RegisterAbi::Bits32, Architecture::X86_64) => {
                Some(Registers::X86 { ip: registers.get(x86::IP)? as u32 })
            }
            (RegisterAbi::Bits64, Architecture::Aarch64) => aarch64_registers(registers),
            _ => None,
        }
    }
}

/// Perf's order to DWARF's.
fn x86_64_registers(registers: &nyquist_perf::Registers<'_>) -> Option<Registers> {
    const ORDER: [u32; 17] = [
        x86::AX,
        x86::DX,
        x86::CX,
        x86::BX,
        x86::SI,
        x86::DI,
        x86::BP,
        x86::SP,
        x86::R8,
        x86::R8 + 1,
        x86::R8 + 2,
        x86::R8 + 3,
        x86::R8 + 4,
        x86::R8 + 5,
        x86::R8 + 6,
        x86::R8 + 7,
        x86::IP,
    ];
    in_order(registers, ORDER).map(Registers::X86_64)
}

/// The two orders are the same: x0 to x30, the stack pointer, the instruction pointer
/// (`arch/arm64/include/uapi/asm/perf_regs.h`).
fn aarch64_registers(registers: &nyquist_perf::Registers<'_>) -> Option<Registers> {
    in_order(registers, std::array::from_fn(|register| register as u32)).map(Registers::Aarch64)
}

/// The registers' values in another order. Those that were not captured are 0, but there is no unwinding
/// without a stack pointer and an instruction pointer.
fn in_order<const N: usize>(registers: &nyquist_perf::Registers<'_>, order: [u32; N]) -> Option<[u64; N]> {
    order.last().and_then(|ip| registers.get(*ip))?;
    Some(order.map(|register| registers.get(register).unwrap_or_default()))
}

/// The addresses of a call chain that follow the word `wanted`, up to the next context.
fn part_of_chain(chain: Words<'_>, wanted: u64) -> Vec<Avma> {
    let mut part = Vec::new();
    let mut current = None;
    for word in chain.iter() {
        if word >= context::MAX {
            current = Some(word);
        } else if current == Some(wanted) {
            part.push(Avma(word));
        }
    }
    part
}

fn fork(task: &Task) -> EventKind {
    EventKind::Fork {
        pid: Pid(task.pid),
        tid: Tid(task.tid),
        parent_pid: Pid(task.parent_pid),
        parent_tid: Tid(task.parent_tid),
    }
}

fn mapping(mmap: &Mmap<'_>) -> Option<Mapping> {
    let executable = mmap.protection.map_or(!mmap.data, |protection| protection & PROT_EXEC != 0);
    executable.then(|| Mapping {
        pid: (mmap.pid != KERNEL_PID).then_some(Pid(mmap.pid)),
        start: Avma(mmap.address),
        len: mmap.len,
        offset: FileOffset(mmap.page_offset),
        path: text(mmap.path),
        identity: identity(mmap.identity),
    })
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
