//! The records that are not samples: mappings, tasks, names, losses, and the kernel's own events.

use crate::abi::misc;
use crate::cursor::RecordCursor;
use crate::sample::{CounterValues, WordList};
use crate::{ReadFormat, RecordError};

/// `MMAP` and `MMAP2`: a range of a process's memory maps a file, or is anonymous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mmap<'a> {
    /// The process; -1 as `u32` for the kernel.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// The first address.
    pub address: u64,
    /// The number of bytes.
    pub len: u64,
    /// The offset of the first byte in the file, in bytes.
    pub page_offset: u64,
    /// The file's identity.
    pub identity: MappedIdentity<'a>,
    /// `PROT_*` of mmap(2), only in `MMAP2`.
    pub protection: Option<u32>,
    /// `MAP_*` of mmap(2), only in `MMAP2`.
    pub flags: Option<u32>,
    /// The path, or a pseudo name.
    pub path: &'a [u8],
    /// Whether the memory is not executable.
    pub data: bool,
}

/// The identity of a mapped file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MappedIdentity<'a> {
    /// Nothing (`MMAP`).
    None,
    /// The device and the inode.
    Inode {
        /// The device's major number.
        major: u32,
        /// The device's minor number.
        minor: u32,
        /// The inode.
        inode: u64,
        /// The inode's generation.
        generation: u64,
    },
    /// The build id, at most 20 bytes.
    BuildId(&'a [u8]),
}

impl<'a> Mmap<'a> {
    pub(crate) fn parse(cursor: &mut RecordCursor<'a>, misc: u16) -> Result<Self, RecordError> {
        Ok(Self {
            pid: cursor.u32("process")?,
            tid: cursor.u32("thread")?,
            address: cursor.u64("address")?,
            len: cursor.u64("length")?,
            page_offset: cursor.u64("file offset")?,
            identity: MappedIdentity::None,
            protection: None,
            flags: None,
            path: cursor.text(),
            data: misc & misc::MMAP_DATA != 0,
        })
    }

    pub(crate) fn parse2(cursor: &mut RecordCursor<'a>, misc: u16) -> Result<Self, RecordError> {
        let [pid, tid] = [cursor.u32("process")?, cursor.u32("thread")?];
        let [address, len] = [cursor.u64("address")?, cursor.u64("length")?];
        let page_offset = cursor.u64("file offset")?;
        let identity = MappedIdentity::parse(cursor, misc)?;
        let (protection, flags) = if begins_path(cursor.peek()) {
            (None, None)
        } else {
            (Some(cursor.u32("protection")?), Some(cursor.u32("flags")?))
        };
        let (path, data) = (cursor.text(), misc & misc::MMAP_DATA != 0);
        Ok(Self { pid, tid, address, len, page_offset, identity, protection, flags, path, data })
    }
}

/// Whether a path follows, in place of the protection and the flags. Kernels before Linux 3.16, that of RHEL 7
/// included, write neither. The bits of a protection are never those of letters.
fn begins_path(bytes: &[u8]) -> bool {
    matches!(bytes, [b'/' | b'[', second, ..] if second.is_ascii_graphic())
}

impl<'a> MappedIdentity<'a> {
    fn parse(cursor: &mut RecordCursor<'a>, misc: u16) -> Result<Self, RecordError> {
        let order = cursor.order();
        let identity = cursor.bytes(24, "file identity")?;
        if misc & misc::MMAP_BUILD_ID != 0
            && let Some(id) = build_id(identity)
        {
            return Ok(Self::BuildId(id));
        }
        let mut cursor = RecordCursor::new(identity, order);
        Ok(Self::Inode {
            major: cursor.u32("device")?,
            minor: cursor.u32("device")?,
            inode: cursor.u64("inode")?,
            generation: cursor.u64("inode generation")?,
        })
    }
}

/// The build id in the identity of a mapped file: a byte of length, one and two reserved ones, and up to
/// 20 bytes, padded with zeros. `None` if the data are a device, inode and generation. The kernel writes a
/// record for one event after the other. After an event that has requested build ids, it also marks the
/// records of all later events (`perf_event_mmap_output`).
fn build_id(identity: &[u8]) -> Option<&[u8]> {
    let [len, 0, 0, 0, id @ ..] = identity else { return None };
    let (id, rest) = id.split_at_checked(usize::from(*len)).filter(|(id, _)| !id.is_empty())?;
    // Small numbers of a device and an inode without a generation look like a short id with zeros after
    // its first byte.
    let may_be_device = id.len() < 16 && matches!(id, [_, 0, 0, 0, ..]);
    (rest.iter().all(|byte| *byte == 0) && !may_be_device).then_some(id)
}

/// `LOST`: records that did not fit into the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The event's id.
    pub id: u64,
    /// The number of records.
    pub records: u64,
}

impl Lost {
    pub(crate) fn parse(cursor: &mut RecordCursor<'_>) -> Result<Self, RecordError> {
        Ok(Self { id: cursor.u64("event id")?, records: cursor.u64("count")? })
    }
}

/// `COMM`: a thread changed its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Comm<'a> {
    /// The process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// The name.
    pub name: &'a [u8],
    /// Whether `exec` set it.
    pub exec: bool,
}

impl<'a> Comm<'a> {
    pub(crate) fn parse(cursor: &mut RecordCursor<'a>, misc: u16) -> Result<Self, RecordError> {
        Ok(Self {
            pid: cursor.u32("process")?,
            tid: cursor.u32("thread")?,
            name: cursor.text(),
            exec: misc & misc::COMM_EXEC != 0,
        })
    }
}

/// `FORK` and `EXIT`: a thread started or ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// The process.
    pub pid: u32,
    /// The parent's process.
    pub parent_pid: u32,
    /// The thread.
    pub tid: u32,
    /// The parent's thread.
    pub parent_tid: u32,
    /// The time.
    pub time: u64,
}

impl Task {
    pub(crate) fn parse(cursor: &mut RecordCursor<'_>) -> Result<Self, RecordError> {
        Ok(Self {
            pid: cursor.u32("process")?,
            parent_pid: cursor.u32("parent process")?,
            tid: cursor.u32("thread")?,
            parent_tid: cursor.u32("parent thread")?,
            time: cursor.u64("time")?,
        })
    }
}

/// `THROTTLE` and `UNTHROTTLE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throttle {
    /// The time.
    pub time: u64,
    /// The event's id.
    pub id: u64,
    /// The id of the event itself, also of an inherited one.
    pub stream_id: u64,
}

impl Throttle {
    pub(crate) fn parse(cursor: &mut RecordCursor<'_>) -> Result<Self, RecordError> {
        Ok(Self {
            time: cursor.u64("time")?,
            id: cursor.u64("event id")?,
            stream_id: cursor.u64("stream id")?,
        })
    }
}

/// `READ`: the count of an inherited counter when its thread ended (`attr.inherit_stat`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read<'a> {
    /// The process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// The value. Its id is that of the opened event.
    pub counters: CounterValues<'a>,
}

impl<'a> Read<'a> {
    pub(crate) fn parse(cursor: &mut RecordCursor<'a>, format: ReadFormat) -> Result<Self, RecordError> {
        Ok(Self {
            pid: cursor.u32("process")?,
            tid: cursor.u32("thread")?,
            counters: CounterValues::parse(cursor, format)?,
        })
    }
}

/// `SWITCH` and `SWITCH_CPU_WIDE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch {
    /// Whether the thread left the CPU.
    pub out: bool,
    /// Whether it was preempted while runnable.
    pub preempted: bool,
    /// The process and thread that ran before or will run next, in `SWITCH_CPU_WIDE`.
    pub other: Option<(u32, u32)>,
}

impl Switch {
    pub(crate) fn parse(misc: u16) -> Self {
        let out = misc & misc::SWITCH_OUT != 0;
        Self { out, preempted: out && misc & misc::SWITCH_OUT_PREEMPT != 0, other: None }
    }

    pub(crate) fn parse_cpu_wide(cursor: &mut RecordCursor<'_>, misc: u16) -> Result<Self, RecordError> {
        let other = (cursor.u32("process")?, cursor.u32("thread")?);
        Ok(Self { other: Some(other), ..Self::parse(misc) })
    }
}

/// `NAMESPACES`: a thread's namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Namespaces<'a> {
    /// The process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    links: WordList<'a>,
}

impl<'a> Namespaces<'a> {
    pub(crate) fn parse(cursor: &mut RecordCursor<'a>) -> Result<Self, RecordError> {
        let (pid, tid) = (cursor.u32("process")?, cursor.u32("thread")?);
        let count = cursor.u64("number of namespaces")?;
        Ok(Self { pid, tid, links: WordList::new(cursor.counted(count, 16, "namespaces")?, cursor.order()) })
    }

    /// Device and inode of each namespace, in the order net, uts, ipc, pid, user, mnt, cgroup.
    pub fn links(&self) -> impl Iterator<Item = (u64, u64)> + use<'a> {
        let words = self.links;
        words.iter().step_by(2).zip(words.iter().skip(1).step_by(2))
    }
}

/// `KSYMBOL`: the kernel gained or lost a symbol: a BPF program, or out-of-line code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelSymbol<'a> {
    /// The first address.
    pub address: u64,
    /// The number of bytes.
    pub len: u32,
    /// `enum perf_record_ksymbol_type`: 1 BPF, 2 out of line.
    pub kind: u16,
    /// Whether the symbol was removed.
    pub unregistered: bool,
    /// The name.
    pub name: &'a [u8],
}

impl<'a> KernelSymbol<'a> {
    pub(crate) fn parse(cursor: &mut RecordCursor<'a>) -> Result<Self, RecordError> {
        Ok(Self {
            address: cursor.u64("address")?,
            len: cursor.u32("length")?,
            kind: cursor.u16("type")?,
            unregistered: cursor.u16("flags")? & 1 != 0,
            name: cursor.text(),
        })
    }
}

/// `BPF_EVENT`: a BPF program was loaded or unloaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BpfEvent {
    /// `enum perf_bpf_event_type`: 1 loaded, 2 unloaded.
    pub kind: u16,
    /// No bit is defined yet.
    pub flags: u16,
    /// The program's id.
    pub id: u32,
    /// The program's tag, a hash of its instructions.
    pub tag: [u8; 8],
}

impl BpfEvent {
    pub(crate) fn parse(cursor: &mut RecordCursor<'_>) -> Result<Self, RecordError> {
        Ok(Self {
            kind: cursor.u16("type")?,
            flags: cursor.u16("flags")?,
            id: cursor.u32("program id")?,
            tag: cursor.array("tag")?,
        })
    }
}

/// `CGROUP`: a cgroup's id and path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cgroup<'a> {
    /// The id.
    pub id: u64,
    /// The path from the root of the hierarchy.
    pub path: &'a [u8],
}

impl<'a> Cgroup<'a> {
    pub(crate) fn parse(cursor: &mut RecordCursor<'a>) -> Result<Self, RecordError> {
        Ok(Self { id: cursor.u64("cgroup id")?, path: cursor.text() })
    }
}

/// `CALLCHAIN_DEFERRED`: the user's part of the call chain of samples, recorded when the thread left the
/// kernel (Linux 6.19).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeferredCallchain<'a> {
    /// The number by which samples refer to it, after [`crate::abi::context::USER_DEFERRED`].
    pub cookie: u64,
    /// The addresses with their context words, innermost first.
    pub chain: WordList<'a>,
}

impl<'a> DeferredCallchain<'a> {
    pub(crate) fn parse(cursor: &mut RecordCursor<'a>) -> Result<Self, RecordError> {
        let (cookie, count) = (cursor.u64("cookie")?, cursor.u64("call chain")?);
        Ok(Self { cookie, chain: WordList::new(cursor.counted(count, 8, "call chain")?, cursor.order()) })
    }
}

/// `TEXT_POKE`: the kernel changed its own code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextPoke<'a> {
    /// The address.
    pub address: u64,
    /// The old bytes; empty for new code.
    pub old: &'a [u8],
    /// The new bytes; empty for removed code.
    pub new: &'a [u8],
}

impl<'a> TextPoke<'a> {
    pub(crate) fn parse(cursor: &mut RecordCursor<'a>) -> Result<Self, RecordError> {
        let address = cursor.u64("address")?;
        let (old, new) = (cursor.u16("old length")?, cursor.u16("new length")?);
        Ok(Self {
            address,
            old: cursor.counted(u64::from(old), 1, "old bytes")?,
            new: cursor.counted(u64::from(new), 1, "new bytes")?,
        })
    }
}
