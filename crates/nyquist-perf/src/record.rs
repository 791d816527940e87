//! One record: its header, its body by type, and its process and thread.

use crate::abi::{misc, record};
use crate::cursor::RecordCursor;
use crate::sample::Sample;
use crate::tasks::{
    BpfEvent, Cgroup, Comm, DeferredCallchain, KernelSymbol, Lost, Mmap, Namespaces, Read, Switch, Task,
    TextPoke, Throttle,
};
use crate::{ByteOrder, RecordError, RecordFormat, RecordId};

/// `struct perf_event_header`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The record's type (see [`crate::abi::record`]).
    pub kind: u32,
    /// Bits whose meaning depends on the type (see [`crate::abi::misc`]).
    pub misc: u16,
    /// The record's size in bytes, with the header.
    pub size: u16,
}

impl Header {
    /// The size of a header in bytes.
    pub const LEN: usize = 8;
    /// The offset of the record's size, which is the last field.
    pub const SIZE_AT: usize = 6;

    /// Parses the header at the start of `bytes`, which need not contain the rest of the record.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<Self, RecordError> {
        Self::parse_in(bytes, ByteOrder::Little)
    }

    /// Parses the header of a record with that byte order.
    #[inline]
    pub fn parse_in(bytes: &[u8], order: ByteOrder) -> Result<Self, RecordError> {
        let mut cursor = RecordCursor::new(bytes, order);
        Ok(Self { kind: cursor.u32("header")?, misc: cursor.u16("header")?, size: cursor.u16("header")? })
    }

    /// The CPU mode of the thread when the record was written.
    pub fn cpu_mode(&self) -> CpuMode {
        match self.misc & misc::CPUMODE_MASK {
            misc::KERNEL => CpuMode::Kernel,
            misc::USER => CpuMode::User,
            misc::HYPERVISOR => CpuMode::Hypervisor,
            misc::GUEST_KERNEL => CpuMode::GuestKernel,
            misc::GUEST_USER => CpuMode::GuestUser,
            _ => CpuMode::Unknown,
        }
    }
}

/// The CPU mode of a thread when a record was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuMode {
    /// Unknown.
    Unknown,
    /// In the kernel.
    Kernel,
    /// In the program.
    User,
    /// In the hypervisor.
    Hypervisor,
    /// In a guest's kernel.
    GuestKernel,
    /// In a guest's program.
    GuestUser,
}

/// A parsed record, which borrows from its bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Record<'a> {
    /// The header.
    pub header: Header,
    /// The origin of the record.
    pub id: RecordId,
    /// Its contents.
    pub body: RecordBody<'a>,
}

/// The contents of a record, by its type.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordBody<'a> {
    /// `MMAP` and `MMAP2`: a file or memory was mapped.
    Mmap(Mmap<'a>),
    /// `LOST`: the ring was full.
    Lost(Lost),
    /// `COMM`: a thread changed its name.
    Comm(Comm<'a>),
    /// `EXIT`: a thread ended.
    Exit(Task),
    /// `FORK`: a thread started.
    Fork(Task),
    /// `THROTTLE`: sampling stopped because it took too long.
    Throttle(Throttle),
    /// `UNTHROTTLE`: sampling continues.
    Unthrottle(Throttle),
    /// `READ`: an inherited counter's value when its thread ended.
    Read(Read<'a>),
    /// `SAMPLE`.
    Sample(Box<Sample<'a>>),
    /// `LOST_SAMPLES`: the hardware or the kernel dropped this many samples.
    LostSamples(u64),
    /// `SWITCH` and `SWITCH_CPU_WIDE`: a thread was scheduled on or off a CPU.
    Switch(Switch),
    /// `NAMESPACES`: a thread's namespaces.
    Namespaces(Namespaces<'a>),
    /// `KSYMBOL`: the kernel gained or lost a symbol.
    KernelSymbol(KernelSymbol<'a>),
    /// `BPF_EVENT`: a BPF program was loaded or unloaded.
    Bpf(BpfEvent),
    /// `CGROUP`: a cgroup's id and path.
    Cgroup(Cgroup<'a>),
    /// `TEXT_POKE`: the kernel changed its own code.
    TextPoke(TextPoke<'a>),
    /// `CALLCHAIN_DEFERRED`: the user's part of samples' call chains.
    DeferredCallchain(DeferredCallchain<'a>),
    /// A type that is not parsed here: the bytes after the header.
    Unknown(&'a [u8]),
}

/// Parses the record at the start of `bytes`, which may contain more data: the record is
/// [`Header::size`] bytes long.
///
/// `format` must be that of the event that wrote it. Takes constant time, except for the borrowed lists and
/// texts.
pub fn parse_record<'a>(bytes: &'a [u8], format: &RecordFormat) -> Result<Record<'a>, RecordError> {
    let header = Header::parse_in(bytes, format.byte_order)?;
    let body = bytes
        .get(Header::LEN..usize::from(header.size))
        .ok_or(RecordError::Size { size: header.size, have: bytes.len() })?;
    let mut cursor = RecordCursor::new(body, format.byte_order);
    if header.kind == record::SAMPLE {
        let (sample, id) = Sample::parse(&mut cursor, format)?;
        return Ok(Record { header, id, body: RecordBody::Sample(Box::new(sample)) });
    }
    let mut trailer = cursor.split_tail(format.trailer_len(), "sample id")?;
    let id = if format.sample_id_all {
        RecordId::parse_trailer(&mut trailer, format.sample_type)?
    } else {
        RecordId::default()
    };
    let body = parse_body(header, &mut cursor, format)?;
    Ok(Record { header, id, body })
}

fn parse_body<'a>(
    header: Header,
    cursor: &mut RecordCursor<'a>,
    format: &RecordFormat,
) -> Result<RecordBody<'a>, RecordError> {
    Ok(match header.kind {
        record::MMAP => RecordBody::Mmap(Mmap::parse(cursor, header.misc)?),
        record::MMAP2 => RecordBody::Mmap(Mmap::parse2(cursor, header.misc)?),
        record::LOST => RecordBody::Lost(Lost::parse(cursor)?),
        record::COMM => RecordBody::Comm(Comm::parse(cursor, header.misc)?),
        record::EXIT => RecordBody::Exit(Task::parse(cursor)?),
        record::FORK => RecordBody::Fork(Task::parse(cursor)?),
        record::THROTTLE => RecordBody::Throttle(Throttle::parse(cursor)?),
        record::UNTHROTTLE => RecordBody::Unthrottle(Throttle::parse(cursor)?),
        record::READ => RecordBody::Read(Read::parse(cursor, format.read_format)?),
        record::LOST_SAMPLES => RecordBody::LostSamples(cursor.u64("count")?),
        record::SWITCH => RecordBody::Switch(Switch::parse(header.misc)),
        record::SWITCH_CPU_WIDE => RecordBody::Switch(Switch::parse_cpu_wide(cursor, header.misc)?),
        record::NAMESPACES => RecordBody::Namespaces(Namespaces::parse(cursor)?),
        record::KSYMBOL => RecordBody::KernelSymbol(KernelSymbol::parse(cursor)?),
        record::BPF_EVENT => RecordBody::Bpf(BpfEvent::parse(cursor)?),
        record::CGROUP => RecordBody::Cgroup(Cgroup::parse(cursor)?),
        record::TEXT_POKE => RecordBody::TextPoke(TextPoke::parse(cursor)?),
        record::CALLCHAIN_DEFERRED => RecordBody::DeferredCallchain(DeferredCallchain::parse(cursor)?),
        _ => RecordBody::Unknown(cursor.rest()),
    })
}
