//! The fields of an event's records, as requested when the event was opened.

use crate::cursor::RecordCursor;
use crate::{ByteOrder, RecordError};

macro_rules! bits {
    ($(#[$doc:meta])* $name:ident { $($(#[$bit_doc:meta])* $bit:ident = $shift:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub struct $name(pub u64);

        impl $name {
            $($(#[$bit_doc])* pub const $bit: Self = Self(1 << $shift);)*

            /// Whether all bits of `other` are set.
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }

            /// The bits of both.
            #[must_use]
            pub const fn with(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }

            /// The bits that are not in `other`.
            #[must_use]
            pub const fn without(self, other: Self) -> Self {
                Self(self.0 & !other.0)
            }
        }
    };
}

bits! {
    /// `perf_event_attr.sample_type`: the fields of a sample (`enum perf_event_sample_format`).
    SampleType {
        /// The instruction pointer.
        IP = 0,
        /// Process and thread.
        TID = 1,
        /// The time.
        TIME = 2,
        /// The data address.
        ADDR = 3,
        /// The counters' values.
        READ = 4,
        /// The call chain.
        CALLCHAIN = 5,
        /// The id of the event.
        ID = 6,
        /// The CPU.
        CPU = 7,
        /// The period.
        PERIOD = 8,
        /// The id of the event, also of an inherited one.
        STREAM_ID = 9,
        /// Raw bytes of a tracepoint.
        RAW = 10,
        /// The branch stack.
        BRANCH_STACK = 11,
        /// The user's registers.
        REGS_USER = 12,
        /// A copy of the user's stack.
        STACK_USER = 13,
        /// The hardware's weight.
        WEIGHT = 14,
        /// The source of the data.
        DATA_SRC = 15,
        /// The id of the event, at the same position in every record.
        IDENTIFIER = 16,
        /// The transaction.
        TRANSACTION = 17,
        /// The registers at the interrupt.
        REGS_INTR = 18,
        /// The physical data address.
        PHYS_ADDR = 19,
        /// Bytes of the AUX area.
        AUX = 20,
        /// The cgroup.
        CGROUP = 21,
        /// The size of the data's page.
        DATA_PAGE_SIZE = 22,
        /// The size of the code's page.
        CODE_PAGE_SIZE = 23,
        /// The hardware's weight, in three parts.
        WEIGHT_STRUCT = 24,
    }
}

bits! {
    /// `perf_event_attr.read_format`: the data beside a counter's value (`enum perf_event_read_format`).
    ReadFormat {
        /// The time for which the event was enabled.
        TOTAL_TIME_ENABLED = 0,
        /// The time for which the event was counting.
        TOTAL_TIME_RUNNING = 1,
        /// The id of the event.
        ID = 2,
        /// The values of a whole group.
        GROUP = 3,
        /// The number of lost samples.
        LOST = 4,
    }
}

/// The properties that determine the layout of an event's records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RecordFormat {
    /// The fields of a sample.
    pub sample_type: SampleType,
    /// The data beside a counter's value.
    pub read_format: ReadFormat,
    /// `sample_regs_user`: the registers, a bit each.
    pub user_registers: u64,
    /// `sample_regs_intr`: the registers, a bit each.
    pub interrupt_registers: u64,
    /// `branch_sample_type`: the contents of the branch stack.
    pub branch_sample_type: u64,
    /// `sample_id_all`: records other than samples end in a [`RecordId`].
    pub sample_id_all: bool,
    /// The byte order of all numbers.
    pub byte_order: ByteOrder,
}

impl RecordFormat {
    const BRANCH_CALL_STACK: u64 = 1 << 11;
    const BRANCH_HW_INDEX: u64 = 1 << 17;
    const BRANCH_COUNTERS: u64 = 1 << 19;

    /// The layout of the same records without the period of samples.
    #[must_use]
    pub fn without_period(self) -> Self {
        Self { sample_type: self.sample_type.without(SampleType::PERIOD), ..self }
    }

    /// Whether a branch stack contains the calls that have not returned (`PERF_SAMPLE_BRANCH_CALL_STACK`).
    pub fn has_branch_call_stack(&self) -> bool {
        self.branch_sample_type & Self::BRANCH_CALL_STACK != 0
    }

    /// Whether a branch stack begins with the hardware's index.
    pub(crate) fn has_branch_index(&self) -> bool {
        self.branch_sample_type & Self::BRANCH_HW_INDEX != 0
    }

    /// Whether a branch stack ends with a word of counters for every branch.
    pub(crate) fn has_branch_counters(&self) -> bool {
        self.branch_sample_type & Self::BRANCH_COUNTERS != 0
    }

    /// The size in bytes of the trailer of a record that is not a sample.
    pub(crate) fn trailer_len(&self) -> usize {
        if !self.sample_id_all {
            return 0;
        }
        let fields = SampleType::TID
            .with(SampleType::TIME)
            .with(SampleType::ID)
            .with(SampleType::STREAM_ID)
            .with(SampleType::CPU)
            .with(SampleType::IDENTIFIER);
        8 * (self.sample_type.0 & fields.0).count_ones() as usize
    }
}

/// The origin of a record: `struct sample_id`, the trailer of a record, or the same fields of a
/// sample. Fields that were not requested are `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordId {
    /// The process and the thread.
    pub task: Option<(u32, u32)>,
    /// The time, in nanoseconds of the requested clock.
    pub time: Option<u64>,
    /// The id of the opened event.
    pub id: Option<u64>,
    /// The id of the event itself, also of an inherited one.
    pub stream_id: Option<u64>,
    /// The CPU.
    pub cpu: Option<u32>,
}

impl RecordId {
    /// Parses the trailer of a record that is not a sample.
    pub(crate) fn parse_trailer(
        cursor: &mut RecordCursor<'_>,
        kind: SampleType,
    ) -> Result<Self, RecordError> {
        let mut id = Self::default();
        if kind.contains(SampleType::TID) {
            id.task = Some((cursor.u32("process")?, cursor.u32("thread")?));
        }
        if kind.contains(SampleType::TIME) {
            id.time = Some(cursor.u64("time")?);
        }
        if kind.contains(SampleType::ID) {
            id.id = Some(cursor.u64("event id")?);
        }
        if kind.contains(SampleType::STREAM_ID) {
            id.stream_id = Some(cursor.u64("stream id")?);
        }
        if kind.contains(SampleType::CPU) {
            id.cpu = Some(cursor.u32("CPU")?);
            cursor.u32("CPU")?;
        }
        if kind.contains(SampleType::IDENTIFIER) {
            id.id = Some(cursor.u64("identifier")?);
        }
        Ok(id)
    }
}
