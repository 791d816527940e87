//! The fields of a sample, each optional, and the lists in it.

use crate::cursor::RecordCursor;
use crate::{ByteOrder, ReadFormat, RecordError, RecordFormat, RecordId, SampleType};

/// `SAMPLE`. Fields that were not requested are `None`. Process, thread, time, CPU and the event's ids are
/// in the record's [`RecordId`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample<'a> {
    /// The instruction pointer.
    pub ip: Option<u64>,
    /// The data address.
    pub data_address: Option<u64>,
    /// The period of the sample, in the event's own unit (nanoseconds for clocks).
    pub period: Option<u64>,
    /// The counters' values.
    pub counters: Option<CounterValues<'a>>,
    /// The call chain with its context words (see [`crate::abi::context`]), innermost first.
    pub callchain: Option<WordList<'a>>,
    /// Raw bytes of a tracepoint.
    pub raw: Option<&'a [u8]>,
    /// The branch stack, latest first.
    pub branches: Option<Branches<'a>>,
    /// The user's registers.
    pub user_registers: Option<Registers<'a>>,
    /// A copy of the user's stack.
    pub user_stack: Option<UserStackCopy<'a>>,
    /// The hardware's weight, whole or in its three parts.
    pub weight: Option<u64>,
    /// The source of the data.
    pub data_source: Option<u64>,
    /// The transaction.
    pub transaction: Option<u64>,
    /// The registers at the interrupt.
    pub interrupt_registers: Option<Registers<'a>>,
    /// The physical data address.
    pub physical_address: Option<u64>,
    /// The cgroup's id.
    pub cgroup: Option<u64>,
    /// The size of the data's page.
    pub data_page_size: Option<u64>,
    /// The size of the code's page.
    pub code_page_size: Option<u64>,
    /// Bytes of the AUX area.
    pub aux: Option<&'a [u8]>,
}

impl<'a> Sample<'a> {
    /// Reads the fields in the order of the kernel's `perf_output_sample`.
    pub(crate) fn parse(
        cursor: &mut RecordCursor<'a>,
        format: &RecordFormat,
    ) -> Result<(Self, RecordId), RecordError> {
        let mut fields = SampleFieldReader { cursor, kind: format.sample_type };
        let (mut sample, mut id) = (Self::default(), RecordId::default());
        sample.parse_words(&mut fields, &mut id)?;
        sample.parse_lists(&mut fields, format)?;
        sample.parse_hardware(&mut fields, format)?;
        Ok((sample, id))
    }

    fn parse_words(
        &mut self,
        fields: &mut SampleFieldReader<'_, 'a>,
        id: &mut RecordId,
    ) -> Result<(), RecordError> {
        let identifier = fields.word(SampleType::IDENTIFIER, "identifier")?;
        self.ip = fields.word(SampleType::IP, "instruction pointer")?;
        id.task = fields.pair(SampleType::TID, "thread")?;
        id.time = fields.word(SampleType::TIME, "time")?;
        self.data_address = fields.word(SampleType::ADDR, "data address")?;
        id.id = fields.word(SampleType::ID, "event id")?.or(identifier);
        id.stream_id = fields.word(SampleType::STREAM_ID, "stream id")?;
        id.cpu = fields.pair(SampleType::CPU, "CPU")?.map(|(cpu, _)| cpu);
        self.period = fields.word(SampleType::PERIOD, "period")?;
        Ok(())
    }

    fn parse_lists(
        &mut self,
        fields: &mut SampleFieldReader<'_, 'a>,
        format: &RecordFormat,
    ) -> Result<(), RecordError> {
        self.counters =
            fields.field(SampleType::READ, |cursor| CounterValues::parse(cursor, format.read_format))?;
        self.callchain = fields.field(SampleType::CALLCHAIN, |cursor| {
            let count = cursor.u64("call chain")?;
            Ok(WordList::new(cursor.counted(count, 8, "call chain")?, cursor.order()))
        })?;
        self.raw = fields.field(SampleType::RAW, |cursor| {
            let len = cursor.u32("raw data")?;
            cursor.counted(u64::from(len), 1, "raw data")
        })?;
        self.branches = fields.field(SampleType::BRANCH_STACK, |cursor| Branches::parse(cursor, format))?;
        self.user_registers =
            fields.field(SampleType::REGS_USER, |cursor| Registers::parse(cursor, format.user_registers))?;
        self.user_stack = fields.field(SampleType::STACK_USER, UserStackCopy::parse)?;
        Ok(())
    }

    fn parse_hardware(
        &mut self,
        fields: &mut SampleFieldReader<'_, 'a>,
        format: &RecordFormat,
    ) -> Result<(), RecordError> {
        let weight = fields.word(SampleType::WEIGHT, "weight")?;
        // The kernel refuses to open an event with both kinds of weight.
        self.weight = match weight {
            None => fields.word(SampleType::WEIGHT_STRUCT, "weight")?,
            weight => weight,
        };
        self.data_source = fields.word(SampleType::DATA_SRC, "data source")?;
        self.transaction = fields.word(SampleType::TRANSACTION, "transaction")?;
        self.interrupt_registers = fields
            .field(SampleType::REGS_INTR, |cursor| Registers::parse(cursor, format.interrupt_registers))?;
        self.physical_address = fields.word(SampleType::PHYS_ADDR, "physical address")?;
        self.cgroup = fields.word(SampleType::CGROUP, "cgroup")?;
        self.data_page_size = fields.word(SampleType::DATA_PAGE_SIZE, "page size")?;
        self.code_page_size = fields.word(SampleType::CODE_PAGE_SIZE, "page size")?;
        self.aux = fields.field(SampleType::AUX, |cursor| {
            let len = cursor.u64("AUX data")?;
            cursor.counted(len, 1, "AUX data")
        })?;
        Ok(())
    }
}

/// A sample's bytes and its present fields.
struct SampleFieldReader<'c, 'a> {
    cursor: &'c mut RecordCursor<'a>,
    kind: SampleType,
}

impl<'a> SampleFieldReader<'_, 'a> {
    fn field<T>(
        &mut self,
        bit: SampleType,
        parse: impl FnOnce(&mut RecordCursor<'a>) -> Result<T, RecordError>,
    ) -> Result<Option<T>, RecordError> {
        if self.kind.contains(bit) { parse(self.cursor).map(Some) } else { Ok(None) }
    }

    fn word(&mut self, bit: SampleType, name: &'static str) -> Result<Option<u64>, RecordError> {
        self.field(bit, |cursor| cursor.u64(name))
    }

    fn pair(&mut self, bit: SampleType, name: &'static str) -> Result<Option<(u32, u32)>, RecordError> {
        self.field(bit, |cursor| Ok((cursor.u32(name)?, cursor.u32(name)?)))
    }
}

/// A list of 64-bit words in a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WordList<'a> {
    bytes: &'a [u8],
    order: ByteOrder,
}

impl<'a> WordList<'a> {
    pub(crate) fn new(bytes: &'a [u8], order: ByteOrder) -> Self {
        Self { bytes, order }
    }

    /// The words, in the record's order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = u64> + use<'a> {
        let order = self.order;
        self.bytes.as_chunks::<8>().0.iter().map(move |word| order.u64(*word))
    }

    /// The word at an index.
    pub fn get(&self, at: usize) -> Option<u64> {
        self.bytes.as_chunks::<8>().0.get(at).map(|word| self.order.u64(*word))
    }

    /// The number of words.
    pub fn len(&self) -> usize {
        self.bytes.len() / 8
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The values of a counter, or of a group of them (perf_event_open(2), "Reading results").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterValues<'a> {
    /// The time for which the event was enabled, in nanoseconds.
    pub time_enabled: Option<u64>,
    /// The time for which the event was counting, in nanoseconds.
    pub time_running: Option<u64>,
    values: WordList<'a>,
    format: ReadFormat,
}

/// One counter's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterValue {
    /// The count.
    pub value: u64,
    /// The event's id.
    pub id: Option<u64>,
    /// The number of its lost samples.
    pub lost: Option<u64>,
}

impl<'a> CounterValues<'a> {
    pub(crate) fn parse(cursor: &mut RecordCursor<'a>, format: ReadFormat) -> Result<Self, RecordError> {
        if format.contains(ReadFormat::GROUP) {
            Self::parse_group(cursor, format)
        } else {
            Self::parse_one(cursor, format)
        }
    }

    fn parse_times(
        cursor: &mut RecordCursor<'a>,
        format: ReadFormat,
    ) -> Result<(Option<u64>, Option<u64>), RecordError> {
        let mut time = |bit| {
            if format.contains(bit) { cursor.u64("counter times").map(Some) } else { Ok(None) }
        };
        Ok((time(ReadFormat::TOTAL_TIME_ENABLED)?, time(ReadFormat::TOTAL_TIME_RUNNING)?))
    }

    fn parse_group(cursor: &mut RecordCursor<'a>, format: ReadFormat) -> Result<Self, RecordError> {
        let count = cursor.u64("number of counters")?;
        let (time_enabled, time_running) = Self::parse_times(cursor, format)?;
        let values =
            WordList::new(cursor.counted(count, 8 * words_each(format), "counters")?, cursor.order());
        Ok(Self { time_enabled, time_running, values, format })
    }

    fn parse_one(cursor: &mut RecordCursor<'a>, format: ReadFormat) -> Result<Self, RecordError> {
        // A single value is before the times, and its other words are after them. So all words are read
        // together, and `value_at` finds the value's own words.
        let times = [ReadFormat::TOTAL_TIME_ENABLED, ReadFormat::TOTAL_TIME_RUNNING];
        let time_words = times.iter().filter(|bit| format.contains(**bit)).count();
        let values =
            WordList::new(cursor.bytes(8 * (words_each(format) + time_words), "counter")?, cursor.order());
        let time = |bit: ReadFormat, at| if format.contains(bit) { values.get(at) } else { None };
        let time_enabled = time(ReadFormat::TOTAL_TIME_ENABLED, 1);
        let time_running = time(ReadFormat::TOTAL_TIME_RUNNING, time_words);
        Ok(Self { time_enabled, time_running, values, format })
    }

    /// The counters; a group's leader first.
    pub fn iter(&self) -> impl Iterator<Item = CounterValue> + use<'a> {
        let Self { values, format, .. } = *self;
        let group = format.contains(ReadFormat::GROUP);
        let each = words_each(format);
        let count = if group { values.len() / each } else { 1 };
        let skipped = if group { 0 } else { values.len() - each };
        (0..count).filter_map(move |index| {
            let value = values.get(index * each)?;
            let mut next = index * each + skipped + 1;
            let mut extra = |bit| {
                let word = if format.contains(bit) { values.get(next) } else { None };
                next += usize::from(format.contains(bit));
                word
            };
            Some(CounterValue { value, id: extra(ReadFormat::ID), lost: extra(ReadFormat::LOST) })
        })
    }

    /// The first counter's value: the leader's, or the only one's.
    pub fn first(&self) -> Option<CounterValue> {
        self.iter().next()
    }
}

/// The number of words of one counter of a group, or of a single one without its times.
fn words_each(format: ReadFormat) -> usize {
    1 + usize::from(format.contains(ReadFormat::ID)) + usize::from(format.contains(ReadFormat::LOST))
}

/// The latest branches that the hardware recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branches<'a> {
    /// The hardware's index of the latest branch; -1 as `u64` if it is not known.
    pub hardware_index: Option<u64>,
    entries: WordList<'a>,
    /// A word of counters for every branch, if requested.
    pub counters: Option<WordList<'a>>,
}

/// `struct perf_branch_entry`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    /// The branch's address.
    pub from: u64,
    /// Its target.
    pub to: u64,
    /// Mispredicted, predicted, cycles, type and the like, in the layout of the kernel's header.
    pub flags: u64,
}

impl<'a> Branches<'a> {
    fn parse(cursor: &mut RecordCursor<'a>, format: &RecordFormat) -> Result<Self, RecordError> {
        let count = cursor.u64("branch stack")?;
        let hardware_index = if format.has_branch_index() { Some(cursor.u64("branch index")?) } else { None };
        let entries = WordList::new(cursor.counted(count, 24, "branch stack")?, cursor.order());
        let counters = if format.has_branch_counters() {
            Some(WordList::new(cursor.counted(count, 8, "branch counters")?, cursor.order()))
        } else {
            None
        };
        Ok(Self { hardware_index, entries, counters })
    }

    /// The branches, latest first.
    pub fn iter(&self) -> impl Iterator<Item = Branch> + use<'a> {
        let entries = self.entries;
        (0..entries.len() / 3).filter_map(move |at| {
            Some(Branch {
                from: entries.get(3 * at)?,
                to: entries.get(3 * at + 1)?,
                flags: entries.get(3 * at + 2)?,
            })
        })
    }
}

/// The kind of program that the registers belong to (`enum perf_sample_regs_abi`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisterAbi {
    /// A 32-bit program.
    Bits32,
    /// A 64-bit program.
    Bits64,
    /// A number that is not in the kernel's header.
    Unknown(u64),
}

/// A thread's registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers<'a> {
    /// The kind of program; `None` if there are no registers, as for a kernel thread.
    pub abi: Option<RegisterAbi>,
    mask: u64,
    values: WordList<'a>,
}

impl<'a> Registers<'a> {
    fn parse(cursor: &mut RecordCursor<'a>, mask: u64) -> Result<Self, RecordError> {
        let abi = match cursor.u64("register ABI")? {
            0 => return Ok(Self { abi: None, mask: 0, values: WordList::default() }),
            1 => RegisterAbi::Bits32,
            2 => RegisterAbi::Bits64,
            other => RegisterAbi::Unknown(other),
        };
        let values =
            WordList::new(cursor.counted(u64::from(mask.count_ones()), 8, "registers")?, cursor.order());
        Ok(Self { abi: Some(abi), mask, values })
    }

    /// The register with a number in the architecture's `enum perf_event_..._regs`; `None` if it was not
    /// requested.
    pub fn get(&self, register: u32) -> Option<u64> {
        let bit = 1_u64.checked_shl(register)?;
        let before = (self.mask & (bit - 1)).count_ones() as usize;
        if self.mask & bit == 0 { None } else { self.values.get(before) }
    }
}

/// A copy of the innermost bytes of a user's stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserStackCopy<'a> {
    /// The bytes from the stack pointer upwards that could be copied.
    pub bytes: &'a [u8],
    /// The maximum number of bytes. If the copy has as many, the stack may continue.
    pub room: usize,
}

impl<'a> UserStackCopy<'a> {
    fn parse(cursor: &mut RecordCursor<'a>) -> Result<Self, RecordError> {
        let room = cursor.u64("stack")?;
        if room == 0 {
            return Ok(Self { bytes: &[], room: 0 });
        }
        let copied = cursor.counted(room, 1, "stack")?;
        let len = cursor.u64("stack's dynamic size")?;
        let bytes = usize::try_from(len).ok().and_then(|len| copied.get(..len));
        let bytes = bytes.ok_or(RecordError::Count { field: "stack's dynamic size", count: len })?;
        Ok(Self { bytes, room: copied.len() })
    }
}
