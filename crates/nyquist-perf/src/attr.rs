//! `struct perf_event_attr`: the configuration of an opened event.

use crate::cursor::RecordCursor;
use crate::{ByteOrder, ReadFormat, RecordError, RecordFormat, SampleType};

/// The parts of `struct perf_event_attr` that define what an event counts and the layout of its records.
///
/// All versions of the structure are supported: fields beyond the end of a shorter one are 0, as in the
/// kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventAttr {
    /// `type`: hardware 0, software 1, tracepoint 2, cache 3, raw 4, breakpoint 5, and the numbers of
    /// other units.
    pub kind: u32,
    /// The counted event, in the terms of the type.
    pub config: u64,
    /// `sample_period`, or `sample_freq` if [`AttrFlags::FREQ`] is set.
    pub sample_period: u64,
    /// The fields of a sample.
    pub sample_type: SampleType,
    /// The data beside a counter's value.
    pub read_format: ReadFormat,
    /// The bit field.
    pub flags: AttrFlags,
    /// `wakeup_events` or `wakeup_watermark`.
    pub wakeup: u32,
    /// `bp_type`.
    pub breakpoint_type: u32,
    /// `config1`, or `bp_addr`.
    pub config1: u64,
    /// `config2`, or `bp_len`.
    pub config2: u64,
    /// The contents of a branch stack.
    pub branch_sample_type: u64,
    /// The user's registers in a sample, a bit each.
    pub sample_regs_user: u64,
    /// The bytes of a stack copy.
    pub sample_stack_user: u32,
    /// The clock of the times, if [`AttrFlags::USE_CLOCKID`] is set.
    pub clock: i32,
    /// The registers at the interrupt, a bit each.
    pub sample_regs_intr: u64,
    /// The maximum number of frames of a call chain.
    pub sample_max_stack: u16,
}

/// The bit field of `struct perf_event_attr`, with its first bit as the lowest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AttrFlags(pub u64);

impl AttrFlags {
    /// Children inherit the event.
    pub const INHERIT: Self = Self(1 << 1);
    /// Kernel code is not counted.
    pub const EXCLUDE_KERNEL: Self = Self(1 << 5);
    /// Mappings of code are recorded.
    pub const MMAP: Self = Self(1 << 8);
    /// Names are recorded.
    pub const COMM: Self = Self(1 << 9);
    /// The period is a frequency.
    pub const FREQ: Self = Self(1 << 10);
    /// The event starts when its process calls exec, so it belongs to a command.
    pub const ENABLE_ON_EXEC: Self = Self(1 << 12);
    /// Starts and ends of threads are recorded.
    pub const TASK: Self = Self(1 << 13);
    /// Records other than samples end in a [`crate::RecordId`].
    pub const SAMPLE_ID_ALL: Self = Self(1 << 18);
    /// Records of mappings have more fields than in their first version.
    pub const MMAP2: Self = Self(1 << 23);
    /// The times are those of the clock in `clock`.
    pub const USE_CLOCKID: Self = Self(1 << 25);
    /// Context switches are recorded.
    pub const CONTEXT_SWITCH: Self = Self(1 << 26);
    /// New code in the kernel is recorded.
    pub const KSYMBOL: Self = Self(1 << 29);
    /// Users' call chains are in separate records (Linux 6.19).
    pub const DEFER_CALLCHAIN: Self = Self(1 << 38);

    /// Whether all bits of `other` are set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The bits of both.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl EventAttr {
    /// The bytes of the first version of the structure (`PERF_ATTR_SIZE_VER0`).
    pub const MIN_LEN: usize = 64;
    /// The bytes that [`to_bytes`](Self::to_bytes) makes (`PERF_ATTR_SIZE_VER6`).
    pub const LEN: usize = 120;

    /// Parses the structure at the start of `bytes`, which end where it does.
    pub fn parse(bytes: &[u8], order: ByteOrder) -> Result<Self, RecordError> {
        let mut whole = [0; Self::LEN];
        let len = bytes.len().min(Self::LEN);
        if len < Self::MIN_LEN {
            return Err(RecordError::Truncated { field: "event attributes", have: bytes.len() });
        }
        whole[..len].copy_from_slice(&bytes[..len]);
        let mut cursor = RecordCursor::new(&whole, order);
        Self::parse_whole(&mut cursor, order)
    }

    fn parse_whole(cursor: &mut RecordCursor<'_>, order: ByteOrder) -> Result<Self, RecordError> {
        const FIELD: &str = "event attributes";
        let kind = cursor.u32(FIELD)?;
        cursor.u32(FIELD)?;
        let attr = Self {
            kind,
            config: cursor.u64(FIELD)?,
            sample_period: cursor.u64(FIELD)?,
            sample_type: SampleType(cursor.u64(FIELD)?),
            read_format: ReadFormat(cursor.u64(FIELD)?),
            flags: AttrFlags(flags(cursor.u64(FIELD)?, order)),
            wakeup: cursor.u32(FIELD)?,
            breakpoint_type: cursor.u32(FIELD)?,
            config1: cursor.u64(FIELD)?,
            config2: cursor.u64(FIELD)?,
            branch_sample_type: cursor.u64(FIELD)?,
            sample_regs_user: cursor.u64(FIELD)?,
            sample_stack_user: cursor.u32(FIELD)?,
            clock: cursor.u32(FIELD)?.cast_signed(),
            sample_regs_intr: cursor.u64(FIELD)?,
            sample_max_stack: 0,
        };
        cursor.u32(FIELD)?;
        Ok(Self { sample_max_stack: cursor.u16(FIELD)?, ..attr })
    }

    /// The structure in the layout of a little-endian machine.
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        put(0, &self.kind.to_le_bytes());
        put(4, &(Self::LEN as u32).to_le_bytes());
        put(8, &self.config.to_le_bytes());
        put(16, &self.sample_period.to_le_bytes());
        put(24, &self.sample_type.0.to_le_bytes());
        put(32, &self.read_format.0.to_le_bytes());
        put(40, &self.flags.0.to_le_bytes());
        put(48, &self.wakeup.to_le_bytes());
        put(52, &self.breakpoint_type.to_le_bytes());
        put(56, &self.config1.to_le_bytes());
        put(64, &self.config2.to_le_bytes());
        put(72, &self.branch_sample_type.to_le_bytes());
        put(80, &self.sample_regs_user.to_le_bytes());
        put(88, &self.sample_stack_user.to_le_bytes());
        put(92, &self.clock.to_le_bytes());
        put(96, &self.sample_regs_intr.to_le_bytes());
        put(108, &self.sample_max_stack.to_le_bytes());
        bytes
    }

    /// The layout of the event's records.
    pub fn record_format(&self, byte_order: ByteOrder) -> RecordFormat {
        RecordFormat {
            sample_type: self.sample_type,
            read_format: self.read_format,
            user_registers: self.sample_regs_user,
            interrupt_registers: self.sample_regs_intr,
            branch_sample_type: self.branch_sample_type,
            sample_id_all: self.flags.contains(AttrFlags::SAMPLE_ID_ALL),
            byte_order,
        }
    }

    /// Perf's name of the event, if perf knows it by number (`perf list`).
    pub fn generic_name(&self) -> Option<&'static str> {
        const HARDWARE: [&str; 10] = [
            "cycles",
            "instructions",
            "cache-references",
            "cache-misses",
            "branches",
            "branch-misses",
            "bus-cycles",
            "stalled-cycles-frontend",
            "stalled-cycles-backend",
            "ref-cycles",
        ];
        const SOFTWARE: [&str; 12] = [
            "cpu-clock",
            "task-clock",
            "page-faults",
            "context-switches",
            "cpu-migrations",
            "minor-faults",
            "major-faults",
            "alignment-faults",
            "emulation-faults",
            "dummy",
            "bpf-output",
            "cgroup-switches",
        ];
        let names: &[&str] = match self.kind {
            // The upper half contains the unit of one kind of core.
            0 => return HARDWARE.get((self.config & 0xffff_ffff) as usize).copied(),
            1 => &SOFTWARE,
            _ => &[],
        };
        names.get(usize::try_from(self.config).ok()?).copied()
    }
}

/// Converts the bit field, whose first field is the lowest bit on a little-endian machine and the highest
/// on a big-endian one. The only field of two bits, `precise_ip`, is ignored.
fn flags(bits: u64, order: ByteOrder) -> u64 {
    match order {
        ByteOrder::Little => bits,
        ByteOrder::Big => bits.reverse_bits(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attr() -> EventAttr {
        EventAttr {
            kind: 1,
            config: 2,
            sample_period: 3,
            sample_type: SampleType(4),
            read_format: ReadFormat(5),
            flags: AttrFlags(6),
            wakeup: 7,
            breakpoint_type: 8,
            config1: 9,
            config2: 10,
            branch_sample_type: 11,
            sample_regs_user: 12,
            sample_stack_user: 13,
            clock: -14,
            sample_regs_intr: 15,
            sample_max_stack: 16,
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        assert_eq!(EventAttr::parse(&attr().to_bytes(), ByteOrder::Little), Ok(attr()));
    }

    #[test]
    fn an_older_structure_has_zeros_for_what_is_new() {
        let old = EventAttr::parse(&attr().to_bytes()[..64], ByteOrder::Little).unwrap();
        assert_eq!((old.config1, old.config2, old.branch_sample_type, old.clock), (9, 0, 0, 0));
        let error = EventAttr::parse(&[0; 63], ByteOrder::Little).unwrap_err();
        assert_eq!(error, RecordError::Truncated { field: "event attributes", have: 63 });
    }

    #[test]
    fn a_big_endian_bit_field_begins_at_its_top_bit() {
        let mut bytes = [0; 64];
        // disabled and inherit, then sample_id_all, the nineteenth.
        bytes[40] = 0b1100_0000;
        bytes[42] = 0b0010_0000;
        let attr = EventAttr::parse(&bytes, ByteOrder::Big).unwrap();
        assert_eq!(attr.flags.0, 0b11 | 1 << 18);
    }

    #[test]
    fn known_events_have_names() {
        let check = |kind, config, expected| {
            assert_eq!(EventAttr { kind, config, ..EventAttr::default() }.generic_name(), expected);
        };
        check(0, 0, Some("cycles"));
        check(0, 4 << 32, Some("cycles"));
        check(1, 2, Some("page-faults"));
        check(1, 99, None);
        check(2, 0, None);
    }
}
