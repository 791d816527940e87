//! Perf records to events: what the kernel's rings or a perf.data file say, in the terms of the event model.

use std::sync::Arc;

use bytes::Bytes;
use nyquist_object::elf::Architecture;
use nyquist_object::{Avma, BuildId, FileOffset};
use nyquist_perf::abi::{context, misc, x86};
use nyquist_perf::{
    Body, Branches, CpuMode, KernelSymbol, Lost, MappedIdentity, Mmap, Read, Record, RecordError,
    RecordFormat, RegisterAbi, Switch, Task, Throttle, Words,
};
use nyquist_symbols::KERNEL_LIB;

use crate::event::{
    Event, EventKind, MappedFile, Mapping, Pid, Registers, Sample, SampleState, Tid, Timestamp, UserStack,
};
use crate::marker_text;

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
    /// What the counters' values are that come with samples.
    pub counters: CounterMeaning,
    /// The events that have taken over from others: what they count begins with that.
    pub successors: Successors,
}

/// The events that have taken over from others, by the kernel's numbers of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Successors {
    /// Ascending.
    ids: Arc<[u64]>,
}

impl FromIterator<u64> for Successors {
    fn from_iter<I: IntoIterator<Item = u64>>(ids: I) -> Self {
        let mut ids: Vec<_> = ids.into_iter().collect();
        ids.sort_unstable();
        Self { ids: ids.into() }
    }
}

impl Successors {
    fn contains(&self, id: u64) -> bool {
        self.ids.binary_search(&id).is_ok()
    }
}

/// What the counters' values are that come with samples and when threads end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterMeaning {
    /// The last one is the thread's CPU time in nanoseconds.
    CpuTime,
    /// Something else: they are not looked at.
    Other,
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
    /// Parses the record at the start of `bytes`, a part of `piece`, and says what it means; `None` for records that say
    /// nothing about programs.
    ///
    /// A sample's stack is a slice of `piece` and is not copied.
    pub fn event(&self, piece: &Bytes, bytes: &[u8]) -> Result<Option<Event>, RecordError> {
        let record = nyquist_perf::parse_record(bytes, &self.format)?;
        let time = Timestamp(record.id.time.unwrap_or_default());
        let kind = self.kind(&record, piece);
        Ok(kind.map(|kind| Event { time, cpu: self.cpu(&record), kind }))
    }

    /// The CPU that a record tells of.
    fn cpu(&self, record: &Record<'_>) -> Option<u32> {
        // Perf writes -1 where it makes a record up.
        let written_on = record.id.cpu.filter(|cpu| *cpu != u32::MAX);
        match &record.body {
            // A counter's final value is written on the CPU on which its thread ended, whatever CPU it has counted on.
            Body::Read(_) => self.cpus.get(record.id.id?),
            Body::LostSamples(_) if is_sum(record) => self.cpus.get(record.id.id?),
            Body::Lost(Lost { id, .. })
            | Body::Throttle(Throttle { id, .. })
            | Body::Unthrottle(Throttle { id, .. }) => written_on.or_else(|| self.cpus.get(*id)),
            _ => written_on,
        }
    }

    fn kind(&self, record: &Record<'_>, piece: &Bytes) -> Option<EventKind> {
        Some(match &record.body {
            Body::Sample(sample) => EventKind::Sample(self.sample(record, sample, piece)?),
            Body::Mmap(mmap) => EventKind::Map(mapping(mmap)?),
            Body::Comm(comm) => EventKind::Name {
                pid: Pid(comm.pid),
                tid: Tid(comm.tid),
                name: text(comm.name),
                exec: comm.exec,
            },
            Body::Fork(task) => fork(task),
            Body::Exit(task) => EventKind::Exit { pid: Pid(task.pid), tid: Tid(task.tid) },
            Body::Read(read) if self.counters == CounterMeaning::CpuTime => total(record, read)?,
            Body::Lost(lost) => EventKind::Lost { records: lost.records },
            Body::LostSamples(records) => lost_samples(record, *records)?,
            Body::Throttle(_) => EventKind::Throttled,
            Body::Unthrottle(_) => EventKind::Unthrottled,
            Body::KernelSymbol(symbol) => kernel_code(symbol),
            Body::Switch(switch) => switched(*switch, record.id.task?),
            _ => return None,
        })
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
        if in_kernel && kernel_stack.is_empty() {
            kernel_stack.extend(sample.ip.map(Avma));
        }
        Some(Sample {
            pid: Pid(pid),
            tid: Tid(tid),
            in_kernel,
            state: SampleState::Clocked,
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
            Period::Nanoseconds => period.unwrap_or_default(),
            Period::Each(nanoseconds) => nanoseconds,
        }
    }

    /// In a group, the clock that counts CPU time is the last member.
    fn cpu_time_ns(&self, sample: &nyquist_perf::Sample<'_>) -> Option<u64> {
        let counters = sample.counters.filter(|_| self.counters == CounterMeaning::CpuTime)?;
        counters.iter().last().map(|last| last.value)
    }

    /// The user's part of the stack: what can be unwound, else what the kernel or the hardware has walked, else the
    /// instruction pointer.
    fn user_stack(
        &self,
        sample: &nyquist_perf::Sample<'_>,
        (chain, ip): (Words<'_>, Option<Avma>),
        piece: &Bytes,
    ) -> UserStack {
        let mut chain = part_of_chain(chain, context::USER);
        let copy = sample.user_stack;
        if (copy.is_some() || chain.is_empty())
            && let Some(registers) = sample.user_registers.and_then(|registers| self.registers(&registers))
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

    fn registers(&self, registers: &nyquist_perf::Registers<'_>) -> Option<Registers> {
        match (registers.abi?, self.architecture) {
            (RegisterAbi::Bits64, Architecture::X86_64) => x86_64_registers(registers),
            (RegisterAbi::Bits32, Architecture::X86_64 | Architecture::X86) => {
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
    in_order(registers, std::array::from_fn(|register| register as u32))
        .map(|values| Registers::Aarch64(Box::new(values)))
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
    for (place, word) in chain.iter().enumerate() {
        if word >= context::MAX {
            current = Some(word);
        } else if current == Some(wanted) {
            // Mostly it goes on to the end.
            if part.is_empty() {
                part.reserve_exact(chain.len() - place);
            }
            part.push(Avma(word));
        }
    }
    part
}

/// The number of the record in which the user's part of a call chain comes, where it does not come with the sample.
pub(crate) fn deferred_cookie(chain: Words<'_>) -> Option<u64> {
    let mut words = chain.iter();
    words.find(|word| *word == context::USER_DEFERRED)?;
    words.next()
}

/// The user's part of a call chain.
pub(crate) fn user_part(chain: Words<'_>) -> Vec<Avma> {
    part_of_chain(chain, context::USER)
}

/// The stack that the hardware has kept of calls that have not returned (`PERF_SAMPLE_BRANCH_CALL_STACK`): the instruction
/// pointer, then the call that each branch is.
fn branch_call_stack(branches: &Branches<'_>, ip: Option<Avma>) -> Vec<Avma> {
    let mut branches = branches.iter().peekable();
    let innermost = ip.or_else(|| branches.peek().map(|latest| Avma(latest.to)));
    // Callers are looked up a byte before their return addresses: so that this is the call, a byte more.
    let calls = branches.map(|branch| Avma(branch.from.wrapping_add(1)));
    innermost.into_iter().chain(calls).collect()
}

/// What `LOST_SAMPLES` says, if anything was lost. The kernel and our own recordings say what was lost up to a time; perf says
/// at a file's end, without a time, how much each event has lost in all, and what a filter of its own has left out.
fn lost_samples(record: &Record<'_>, records: u64) -> Option<EventKind> {
    let is_left_out = record.header.misc & misc::LOST_SAMPLES_BPF != 0;
    match is_sum(record) {
        _ if is_left_out => None,
        true => Some(EventKind::LostInAll { records }),
        false => Some(EventKind::Lost { records }),
    }
}

/// What a counter has counted of a thread that has ended; without a time, what our own recordings say that all of them have.
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
    // A program that writes samply's marker files maps them for no other reason than to say so.
    let is_wanted = executable || marker_text::owner_in_path(&String::from_utf8_lossy(mmap.path)).is_some();
    is_wanted.then(|| any_mapping(mmap))
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

/// Perf names the kernel's mapping after the symbol that it begins with.
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
mod tests {
    use nyquist_perf::abi::record;
    use nyquist_perf::{ReadFormat, SampleType};

    use super::*;

    /// What a live recording on x86_64 asks for, with the sample's fields from the call chain on.
    fn events(sample_type: SampleType, architecture: Architecture) -> PerfEvents {
        let format = RecordFormat {
            sample_type: SampleType::IDENTIFIER
                .with(SampleType::TID)
                .with(SampleType::TIME)
                .with(SampleType::CPU)
                .with(SampleType::PERIOD)
                .with(sample_type),
            read_format: ReadFormat::ID,
            user_registers: if architecture == Architecture::X86_64 { x86::ALL_64 } else { (1 << 33) - 1 },
            sample_id_all: true,
            ..RecordFormat::default()
        };
        let cpus = [(100, 5), (101, 6)].into_iter().collect();
        let counters = CounterMeaning::CpuTime;
        let successors = [200].into_iter().collect();
        PerfEvents { format, architecture, period: Period::Nanoseconds, cpus, counters, successors }
    }

    fn read(events: &PerfEvents, bytes: &Bytes) -> Option<Event> {
        events.event(bytes, bytes).unwrap()
    }

    fn record(kind: u32, misc: u16, words: &[u64]) -> Bytes {
        let size = 8 + 8 * words.len() as u16;
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend(misc.to_le_bytes().into_iter().chain(size.to_le_bytes()));
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        bytes.into()
    }

    /// A sample of process 11, thread 12, at 1000 ns on CPU 3, for 50 ns.
    fn sample(events: &PerfEvents, misc: u16, fields: &[u64]) -> Option<Event> {
        let words = [&[100, pair(11, 12), 1000, 3, 50], fields].concat();
        read(events, &record(record::SAMPLE, misc, &words))
    }

    fn pair(low: u64, high: u64) -> u64 {
        low | high << 32
    }

    /// A record other than a sample, with the trailer of thread 12, 1000 ns, CPU 3, event 100.
    fn other(kind: u32, misc: u16, fields: &[u64]) -> Option<Event> {
        let words = [fields, &[pair(11, 12), 1000, 3, 100]].concat();
        let events = events(SampleType::default(), Architecture::X86_64);
        read(&events, &record(kind, misc, &words))
    }

    fn kind(event: Option<Event>) -> EventKind {
        let event = event.unwrap();
        assert_eq!((event.time, event.cpu), (Timestamp(1000), Some(3)));
        event.kind
    }

    fn the_sample(event: Option<Event>) -> Sample {
        match kind(event) {
            EventKind::Sample(sample) => sample,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_call_chain_is_split_by_its_contexts() {
        let events = events(SampleType::CALLCHAIN, Architecture::X86_64);
        let chain = [8, 0x99, context::KERNEL, 0xf1, 0xf2, context::USER, 0x11, context::GUEST, 0x21];
        let sample = the_sample(sample(&events, 1, &chain));
        assert!(sample.in_kernel);
        assert_eq!((sample.pid, sample.tid, sample.period_ns), (Pid(11), Tid(12), 50));
        assert_eq!(sample.kernel_stack, [Avma(0xf1), Avma(0xf2)]);
        assert_eq!(sample.user, UserStack::FramePointers(vec![Avma(0x11)]));
    }

    #[test]
    fn without_a_chain_the_kernels_stack_is_its_instruction() {
        let mut events = events(SampleType::IP, Architecture::X86_64);
        events.format.sample_type = SampleType::IP.with(SampleType::TID);
        let bytes = record(record::SAMPLE, 1, &[0xf1, pair(11, 12)]);
        let Some(Event { kind: EventKind::Sample(sample), .. }) = read(&events, &bytes) else { panic!() };
        assert_eq!((sample.kernel_stack, sample.user), (vec![Avma(0xf1)], UserStack::None));
        let bytes = record(record::SAMPLE, 2, &[0x11, pair(11, 12)]);
        let Some(Event { kind: EventKind::Sample(sample), .. }) = read(&events, &bytes) else { panic!() };
        assert_eq!((sample.kernel_stack, sample.in_kernel), (vec![], false));
    }

    #[test]
    fn x86_64_registers_come_in_dwarfs_order() {
        let events = events(SampleType::REGS_USER, Architecture::X86_64);
        // ax bx cx dx si di bp sp ip flags cs ss r8..r15, each its place in perf's order.
        let fields: Vec<u64> = [2].into_iter().chain(0..20).collect();
        let UserStack::Copied { registers, stack, limited } = the_sample(sample(&events, 2, &fields)).user
        else {
            panic!("no registers")
        };
        let expected = [0, 3, 2, 1, 4, 5, 6, 7, 12, 13, 14, 15, 16, 17, 18, 19, 8];
        assert_eq!(*registers, Registers::X86_64(expected));
        assert!(stack.is_empty() && limited);
    }

    #[test]
    fn a_32_bit_program_is_named() {
        let events = events(SampleType::REGS_USER, Architecture::X86_64);
        let fields: Vec<u64> = [1].into_iter().chain(0x1000..0x1014).collect();
        let UserStack::Copied { registers, .. } = the_sample(sample(&events, 2, &fields)).user else {
            panic!()
        };
        assert_eq!(*registers, Registers::X86 { ip: 0x1008 });
    }

    #[test]
    fn aarch64_registers_keep_their_order() {
        let events = events(SampleType::REGS_USER, Architecture::Aarch64);
        let fields: Vec<u64> = [2].into_iter().chain(0..33).collect();
        let UserStack::Copied { registers, .. } = the_sample(sample(&events, 2, &fields)).user else {
            panic!()
        };
        assert_eq!(*registers, Registers::Aarch64(Box::new(std::array::from_fn(|register| register as u64))));
    }

    #[test]
    fn a_kernel_thread_has_no_user_stack() {
        let events = events(SampleType::REGS_USER.with(SampleType::STACK_USER), Architecture::X86_64);
        assert_eq!(the_sample(sample(&events, 1, &[0, 0])).user, UserStack::None);
    }

    #[test]
    fn the_stack_is_a_slice_of_the_record() {
        let events = events(SampleType::REGS_USER.with(SampleType::STACK_USER), Architecture::X86_64);
        let registers: Vec<u64> = [2].into_iter().chain(0..20).collect();
        let check = |stack_fields: &[u64], len: usize, is_limited: bool| {
            let words = [&[100, pair(11, 12), 1000, 3, 50], &registers[..], stack_fields].concat();
            let bytes = record(record::SAMPLE, 2, &words);
            let user = the_sample(read(&events, &bytes)).user;
            let UserStack::Copied { stack, limited, .. } = user else { panic!() };
            assert_eq!((stack.len(), limited), (len, is_limited));
            assert!(bytes.as_ptr_range().contains(&stack.as_ptr()), "the stack was copied");
        };
        check(&[16, 1, 2, 16], 16, true);
        check(&[16, 1, 2, 15], 15, false);
    }

    #[test]
    fn counters_are_cpu_time() {
        let mut events = events(SampleType::READ, Architecture::X86_64);
        let first = the_sample(sample(&events, 2, &[777, 100]));
        assert_eq!((first.cpu_time_ns, first.counts_anew), (Some(777), false));
        let words = [200, pair(11, 12), 1000, 3, 50, 7, 200];
        let later = the_sample(read(&events, &record(record::SAMPLE, 2, &words)));
        assert_eq!((later.cpu_time_ns, later.counts_anew), (Some(7), true));
        events.format.read_format = ReadFormat::ID.with(ReadFormat::GROUP);
        events.period = Period::Each(1_000_000);
        let sample = the_sample(sample(&events, 2, &[2, 4_000_000, 99, 778, 100]));
        assert_eq!((sample.cpu_time_ns, sample.period_ns), (Some(778), 1_000_000));
    }

    #[test]
    fn a_final_count_belongs_to_the_cpu_that_it_was_counted_on() {
        let words = [pair(11, 13), 900, 101, pair(11, 13), 1000, 3, 101];
        let events = events(SampleType::default(), Architecture::X86_64);
        let event = read(&events, &record(record::READ, 0, &words)).unwrap();
        assert_eq!(event.cpu, Some(6));
        assert_eq!(event.kind, EventKind::Total { pid: Pid(11), tid: Tid(13), cpu_time_ns: 900 });
    }

    const NAME: u64 = u64::from_le_bytes(*b"/bin/x\0\0");

    #[test]
    fn only_executable_memory_is_a_mapping() {
        let mmap2 = |protection: u64| {
            let identity = [pair(8, 1), 99, 7];
            let fields =
                [&[pair(11, 12), 0x1000, 0x2000, 0x3000], &identity[..], &[protection, NAME]].concat();
            other(record::MMAP2, 0, &fields)
        };
        assert_eq!(mmap2(3), None);
        let expected = Mapping {
            pid: Some(Pid(11)),
            start: Avma(0x1000),
            len: 0x2000,
            offset: FileOffset(0x3000),
            path: "/bin/x".to_owned(),
            identity: MappedFile::Inode { major: 8, minor: 1, inode: 99, generation: 7 },
        };
        assert_eq!(kind(mmap2(5)), EventKind::Map(expected));
    }

    #[test]
    fn a_marker_file_is_a_mapping_too() {
        let path: [u8; 24] = *b"/t/marker-11-12.txt\0\0\0\0\0";
        let words = path.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap()));
        let mut fields = vec![pair(11, 12), 0x1000, 0x2000, 0, pair(8, 1), 99, 7, 1];
        fields.extend(words);
        let EventKind::Map(mapping) = kind(other(record::MMAP2, 1 << 13, &fields)) else { panic!() };
        assert_eq!(mapping.path, "/t/marker-11-12.txt");
    }

    #[test]
    fn a_mapping_with_a_build_id_has_that_identity() {
        let id = [u64::from_le_bytes([4, 0, 0, 0, 0xaa, 0xbb, 0xcc, 0xdd]), 0, 0];
        let fields = [&[pair(11, 12), 0x1000, 0x2000, 0], &id[..], &[5, NAME]].concat();
        let EventKind::Map(mapping) = kind(other(record::MMAP2, 1 << 14, &fields)) else { panic!() };
        let expected = BuildId::new(&[0xaa, 0xbb, 0xcc, 0xdd]).unwrap();
        assert_eq!(mapping.identity, MappedFile::BuildId(expected));
    }

    #[test]
    fn the_kernels_mappings_have_no_process() {
        let fields = [pair(u64::from(u32::MAX), 0), 0xffff_ffff_8100_0000, 0x100, 0, NAME];
        let EventKind::Map(mapping) = kind(other(record::MMAP, 1, &fields)) else { panic!() };
        assert_eq!((mapping.pid, mapping.identity), (None, MappedFile::Unknown));
        assert_eq!(other(record::MMAP, 1 << 13, &fields), None, "memory for data");
    }

    #[test]
    fn names_keep_what_is_no_utf8() {
        let fields = [pair(11, 12), u64::from_le_bytes(*b"a\xff\0\0\0\0\0\0")];
        let expected =
            EventKind::Name { pid: Pid(11), tid: Tid(12), name: "a\u{fffd}".to_owned(), exec: true };
        assert_eq!(kind(other(record::COMM, 1 << 13, &fields)), expected);
    }

    #[test]
    fn tasks_and_losses() {
        let check = |record, fields: &[u64], expected| assert_eq!(kind(other(record, 0, fields)), expected);
        let task = [pair(11, 1), pair(14, 2), 1000];
        let (pid, tid) = (Pid(11), Tid(14));
        check(record::FORK, &task, EventKind::Fork { pid, tid, parent_pid: Pid(1), parent_tid: Tid(2) });
        check(record::EXIT, &task, EventKind::Exit { pid, tid });
        check(record::LOST, &[100, 7], EventKind::Lost { records: 7 });
        check(record::LOST_SAMPLES, &[8], EventKind::Lost { records: 8 });
        check(record::THROTTLE, &[1000, 100, 100], EventKind::Throttled);
        check(record::UNTHROTTLE, &[1000, 100, 100], EventKind::Unthrottled);
        assert_eq!(other(99, 0, &[1]), None);
    }

    #[test]
    fn sums_of_losses_have_no_time_and_samples_left_out_are_not_lost() {
        let events = events(SampleType::default(), Architecture::X86_64);
        let summed = read(&events, &record(record::LOST_SAMPLES, 0, &[8, 0, 0, 0, 0])).unwrap();
        assert_eq!((summed.kind, summed.cpu), (EventKind::LostInAll { records: 8 }, None));
        let of_an_event = read(&events, &record(record::LOST_SAMPLES, 0, &[8, 0, 0, 0, 101])).unwrap();
        assert_eq!(of_an_event.cpu, Some(6), "that of the event, for the record itself was written anywhere");
        assert_eq!(other(record::LOST_SAMPLES, misc::LOST_SAMPLES_BPF, &[8]), None);
    }

    #[test]
    fn losses_and_pauses_are_on_the_cpu_of_their_event() {
        let of_cpu = |format: RecordFormat, kind, fields: &[u64]| {
            let events = PerfEvents { format, ..events(SampleType::default(), Architecture::X86_64) };
            read(&events, &record(kind, 0, fields)).unwrap().cpu
        };
        let bare = RecordFormat { sample_id_all: false, ..RecordFormat::default() };
        for (kind, fields) in [
            (record::LOST, &[101, 7][..]),
            (record::THROTTLE, &[1000, 101, 101]),
            (record::UNTHROTTLE, &[1000, 101, 101]),
        ] {
            assert_eq!(of_cpu(bare, kind, fields), Some(6));
        }
        assert_eq!(of_cpu(bare, record::LOST, &[99, 7]), None);
    }
}
