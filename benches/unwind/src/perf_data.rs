//! Reads what `perf record --call-graph dwarf` wrote: mappings, forks, and samples with registers and stacks.
//!
//! The format is described in the kernel's `tools/perf/Documentation/perf.data-file-format.txt` and
//! `include/uapi/linux/perf_event.h`.

use anyhow::{Context, Result, bail};
use std::ops::Range;
use std::path::Path;

/// One record.
#[derive(Clone, Debug)]
pub enum Record {
    /// Executable memory was mapped.
    Map { pid: u32, start: u64, len: u64, offset: u64, path: String },
    /// A process was born; or a thread, where both are the same process.
    Fork { pid: u32, parent: u32 },
    /// A process has a new address space.
    Exec { pid: u32 },
    /// A thread was observed in user code.
    Sample { pid: u32, registers: Vec<u64>, chain: Vec<u64>, stack: Range<usize> },
}

/// A file's bytes, and the records in them by time.
pub struct PerfData {
    /// The whole file; stacks are ranges of it.
    pub bytes: Vec<u8>,
    /// By time.
    pub records: Vec<Record>,
}

const IP: u64 = 1 << 0;
const TID: u64 = 1 << 1;
const TIME: u64 = 1 << 2;
const ADDR: u64 = 1 << 3;
const READ: u64 = 1 << 4;
const CALLCHAIN: u64 = 1 << 5;
const ID: u64 = 1 << 6;
const CPU: u64 = 1 << 7;
const PERIOD: u64 = 1 << 8;
const STREAM_ID: u64 = 1 << 9;
const RAW: u64 = 1 << 10;
const BRANCH_STACK: u64 = 1 << 11;
const REGS_USER: u64 = 1 << 12;
const STACK_USER: u64 = 1 << 13;
const IDENTIFIER: u64 = 1 << 16;

/// The kernel's numbers (`arch/x86/include/uapi/asm/perf_regs.h`) of DWARF's registers, in DWARF's order.
const X86_REGISTERS: [u32; 17] = [0, 3, 2, 1, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23, 8];

/// The registers of 64-bit ARM, which have DWARF's order.
const ARM64_REGISTERS: u64 = (1 << 33) - 1;

struct Attributes {
    sample_type: u64,
    registers: u64,
}

/// A cursor that fails at the end.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let bytes = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk::<N>());
        self.at += N;
        bytes.copied().context("the file ends within a record")
    }

    fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }
}

/// Reads the file.
pub fn read(path: &Path) -> Result<PerfData> {
    let bytes = std::fs::read(path).with_context(|| format!("reading {}", path.display()))?;
    let mut header = Cursor { bytes: &bytes, at: 0 };
    if header.array::<8>()? != *b"PERFILE2" {
        bail!("{} is no perf.data file", path.display());
    }
    let (_header_size, _attr_size) = (header.u64()?, header.u64()?);
    let (attrs, _attrs_size) = (header.u64()? as usize, header.u64()?);
    let (data, data_size) = (header.u64()? as usize, header.u64()? as usize);
    let mut attr = Cursor { bytes: &bytes, at: attrs + 24 };
    let sample_type = attr.u64()?;
    attr.at = attrs + 80;
    let attributes = Attributes { sample_type, registers: attr.u64()? };

    let mut timed = Vec::new();
    let mut at = data;
    while at < data + data_size {
        let mut record = Cursor { bytes: &bytes, at };
        let (kind, misc_and_size) = (record.u32()?, record.u32()?);
        let (misc, size) = (misc_and_size as u16, (misc_and_size >> 16) as usize);
        if size < 8 {
            bail!("a record of {size} bytes at {at:#x}");
        }
        let record = Cursor { bytes: &bytes[..(at + size).min(bytes.len())], at: at + 8 };
        timed.extend(parse(kind, misc, record, &attributes)?);
        at += size;
    }
    timed.sort_by_key(|(time, _)| *time);
    Ok(PerfData { bytes, records: timed.into_iter().map(|(_, record)| record).collect() })
}

fn parse(kind: u32, misc: u16, record: Cursor<'_>, attributes: &Attributes) -> Result<Option<(u64, Record)>> {
    // The identification of records that are no samples stands at their end: TID and TIME come first in it.
    let id_len = 8 * [TID, TIME, ID, STREAM_ID, CPU, IDENTIFIER]
        .iter()
        .filter(|&&bit| attributes.sample_type & bit != 0)
        .count();
    let time_at = (record.bytes.len()).saturating_sub(id_len) + 8;
    let time = |bytes| Cursor { bytes, at: time_at }.u64();
    let parsed = match kind {
        3 if misc & 1 << 13 != 0 => {
            let mut fields = record;
            Some((time(fields.bytes)?, Record::Exec { pid: fields.u32()? }))
        }
        7 => {
            let mut fields = record;
            Some((time(fields.bytes)?, Record::Fork { pid: fields.u32()?, parent: fields.u32()? }))
        }
        10 => {
            let time = time(record.bytes)?;
            map(record)?.map(|map| (time, map))
        }
        9 => sample(record, attributes)?,
        _ => None,
    };
    Ok(parsed)
}

fn map(mut fields: Cursor<'_>) -> Result<Option<Record>> {
    let (pid, _tid) = (fields.u32()?, fields.u32()?);
    let (start, len, offset) = (fields.u64()?, fields.u64()?, fields.u64()?);
    fields.at += 24;
    let (protection, _flags) = (fields.u32()?, fields.u32()?);
    let name = fields.bytes.get(fields.at..).unwrap_or_default();
    let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
    let path = String::from_utf8_lossy(name).into_owned();
    let is_user_code = protection & 4 != 0 && pid != u32::MAX;
    Ok(is_user_code.then_some(Record::Map { pid, start, len, offset, path }))
}

fn sample(mut fields: Cursor<'_>, attributes: &Attributes) -> Result<Option<(u64, Record)>> {
    let has = |bit| attributes.sample_type & bit != 0;
    if has(READ) || has(RAW) || has(BRANCH_STACK) {
        bail!("samples with fields that are not read here: {:#x}", attributes.sample_type);
    }
    let (mut pid, mut time) = (0, 0);
    if has(IDENTIFIER) {
        fields.u64()?;
    }
    if has(IP) {
        fields.u64()?;
    }
    if has(TID) {
        (pid, _) = (fields.u32()?, fields.u32()?);
    }
    if has(TIME) {
        time = fields.u64()?;
    }
    for bit in [ADDR, ID, STREAM_ID, CPU, PERIOD] {
        if has(bit) {
            fields.u64()?;
        }
    }
    let mut chain = Vec::new();
    if has(CALLCHAIN) {
        for _ in 0..fields.u64()? {
            chain.push(fields.u64()?);
        }
    }
    if !has(REGS_USER) || !has(STACK_USER) || fields.u64()? != 2 {
        return Ok(None);
    }
    let mut registers = Vec::new();
    for _ in 0..attributes.registers.count_ones() {
        registers.push(fields.u64()?);
    }
    if attributes.registers != ARM64_REGISTERS {
        let place = |expected: &u32| (attributes.registers & ((1 << expected) - 1)).count_ones() as usize;
        registers = X86_REGISTERS.iter().map(|expected| registers[place(expected)]).collect();
    }
    let size = fields.u64()? as usize;
    let start = fields.at;
    fields.at += size;
    let copied = if size == 0 { 0 } else { fields.u64()? as usize };
    Ok(Some((time, Record::Sample { pid, registers, chain, stack: start..start + copied.min(size) })))
}
