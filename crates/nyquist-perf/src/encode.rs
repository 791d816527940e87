//! Substitute records, as bytes in an event's layout. They describe the state before the kernel's first
//! record.

use crate::abi::{misc, record};
use crate::file::record as whole_record;
use crate::{MappedIdentity, Mmap, ReadFormat, RecordFormat, RecordId, SampleType, Task, TextPoke};

impl RecordFormat {
    /// `MMAP2`: `mode` is the mapping's [`crate::CpuMode`] as a number: 1 for the kernel, 2 for a program.
    pub fn encode_mmap(&self, mmap: &Mmap<'_>, mode: u16, id: &RecordId) -> Vec<u8> {
        let mut body = Vec::new();
        body.extend(mmap.pid.to_le_bytes());
        body.extend(mmap.tid.to_le_bytes());
        body.extend([mmap.address, mmap.len, mmap.page_offset].into_iter().flat_map(u64::to_le_bytes));
        let mut bits = mode;
        match mmap.identity {
            MappedIdentity::BuildId(bytes) => {
                bits |= misc::MMAP_BUILD_ID;
                let len = bytes.len().min(20);
                body.extend([len as u8, 0, 0, 0]);
                body.extend(&bytes[..len]);
                body.resize(body.len() + 20 - len, 0);
            }
            MappedIdentity::Inode { major, minor, inode, generation } => {
                body.extend([major, minor].into_iter().flat_map(u32::to_le_bytes));
                body.extend([inode, generation].into_iter().flat_map(u64::to_le_bytes));
            }
            MappedIdentity::None => body.extend([0; 24]),
        }
        body.extend(mmap.protection.unwrap_or_default().to_le_bytes());
        body.extend(mmap.flags.unwrap_or_default().to_le_bytes());
        push_text(&mut body, mmap.path);
        self.with_trailer(record::MMAP2, bits, body, id)
    }

    /// `COMM`.
    pub fn encode_comm(&self, (pid, tid): (u32, u32), name: &[u8], exec: bool, id: &RecordId) -> Vec<u8> {
        let mut body = [pid, tid].map(u32::to_le_bytes).concat();
        push_text(&mut body, name);
        self.with_trailer(record::COMM, if exec { misc::COMM_EXEC } else { 0 }, body, id)
    }

    /// `FORK`.
    pub fn encode_fork(&self, task: &Task, id: &RecordId) -> Vec<u8> {
        self.with_trailer(record::FORK, 0, task_body(task), id)
    }

    /// `EXIT`.
    pub fn encode_exit(&self, task: &Task, id: &RecordId) -> Vec<u8> {
        self.with_trailer(record::EXIT, 0, task_body(task), id)
    }

    /// `KSYMBOL` for new code in the kernel: its address, its length, and its name.
    pub fn encode_kernel_symbol(&self, (address, len): (u64, u32), name: &[u8], id: &RecordId) -> Vec<u8> {
        /// `PERF_RECORD_KSYMBOL_TYPE_OOL`: code that belongs neither to the kernel's image nor to a BPF
        /// program.
        const OUT_OF_LINE: u16 = 2;
        let mut body = address.to_le_bytes().to_vec();
        body.extend(len.to_le_bytes());
        body.extend([OUT_OF_LINE, 0].into_iter().flat_map(u16::to_le_bytes));
        push_text(&mut body, name);
        self.with_trailer(record::KSYMBOL, 0, body, id)
    }

    /// `READ`: a counter's final value.
    pub fn encode_read(&self, (pid, tid): (u32, u32), value: u64, id: &RecordId) -> Vec<u8> {
        let mut body = [pid, tid].map(u32::to_le_bytes).concat();
        let mut words = Vec::new();
        let times = [ReadFormat::TOTAL_TIME_ENABLED, ReadFormat::TOTAL_TIME_RUNNING];
        let times = times.iter().filter(|bit| self.read_format.contains(**bit)).map(|_| 0);
        if self.read_format.contains(ReadFormat::GROUP) {
            words.push(1);
            words.extend(times);
            words.push(value);
        } else {
            words.push(value);
            words.extend(times);
        }
        words.extend(self.read_format.contains(ReadFormat::ID).then(|| id.id.unwrap_or_default()));
        words.extend(self.read_format.contains(ReadFormat::LOST).then_some(0));
        body.extend(words.into_iter().flat_map(u64::to_le_bytes));
        self.with_trailer(record::READ, 0, body, id)
    }

    /// `TEXT_POKE`: `mode` is the CPU mode of the memory. Bytes that do not fit into a record are cut off.
    pub fn encode_text_poke(&self, mode: u16, poke: &TextPoke<'_>, id: &RecordId) -> Vec<u8> {
        let mut body = poke.address.to_le_bytes().to_vec();
        let fits = |bytes: &[u8]| u16::try_from(bytes.len()).unwrap_or(u16::MAX);
        let (old, new) = (fits(poke.old), fits(poke.new));
        body.extend([old, new].into_iter().flat_map(u16::to_le_bytes));
        body.extend(&poke.old[..usize::from(old)]);
        body.extend(&poke.new[..usize::from(new)]);
        body.resize(body.len().next_multiple_of(8), 0);
        self.with_trailer(record::TEXT_POKE, mode, body, id)
    }

    /// `LOST_SAMPLES`.
    pub fn encode_lost_samples(&self, lost: u64, id: &RecordId) -> Vec<u8> {
        self.with_trailer(record::LOST_SAMPLES, 0, lost.to_le_bytes().to_vec(), id)
    }

    /// `SAMPLE` of an event with these fields: identifier, instruction pointer, thread, time, CPU, period
    /// and call chain. Other fields are left out, so the format must not include them.
    pub fn encode_sample(
        &self,
        mode: u16,
        (ip, period): (u64, u64),
        chain: &[u64],
        id: &RecordId,
    ) -> Vec<u8> {
        let (pid, tid) = id.task.unwrap_or_default();
        let fields = [
            (SampleType::IDENTIFIER, id.id.unwrap_or_default()),
            (SampleType::IP, ip),
            (SampleType::TID, u64::from(pid) | u64::from(tid) << 32),
            (SampleType::TIME, id.time.unwrap_or_default()),
            (SampleType::CPU, u64::from(id.cpu.unwrap_or_default())),
            (SampleType::PERIOD, period),
        ];
        let words = fields.iter().filter(|(bit, _)| self.sample_type.contains(*bit)).map(|(_, word)| *word);
        let mut body: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        if self.sample_type.contains(SampleType::CALLCHAIN) {
            body.extend((chain.len() as u64).to_le_bytes());
            body.extend(chain.iter().flat_map(|word| word.to_le_bytes()));
        }
        whole_record(record::SAMPLE, mode, &body)
    }

    fn with_trailer(&self, kind: u32, bits: u16, mut body: Vec<u8>, id: &RecordId) -> Vec<u8> {
        if self.sample_id_all {
            let (pid, tid) = id.task.unwrap_or_default();
            let number = id.id.unwrap_or_default();
            let fields = [
                (SampleType::TID, u64::from(pid) | u64::from(tid) << 32),
                (SampleType::TIME, id.time.unwrap_or_default()),
                (SampleType::ID, number),
                (SampleType::STREAM_ID, id.stream_id.unwrap_or_default()),
                // Perf also writes -1 for a record without a CPU.
                (SampleType::CPU, u64::from(id.cpu.unwrap_or(u32::MAX))),
                (SampleType::IDENTIFIER, number),
            ];
            let words =
                fields.iter().filter(|(bit, _)| self.sample_type.contains(*bit)).map(|(_, word)| *word);
            body.extend(words.flat_map(u64::to_le_bytes));
        }
        whole_record(kind, bits, &body)
    }
}

fn task_body(task: &Task) -> Vec<u8> {
    let mut body = [task.pid, task.parent_pid, task.tid, task.parent_tid].map(u32::to_le_bytes).concat();
    body.extend(task.time.to_le_bytes());
    body
}

/// A text with a terminating zero, padded to a multiple of 8.
fn push_text(body: &mut Vec<u8>, text: &[u8]) {
    /// The kernel's maximum length of a path (`PATH_MAX`).
    const MAX_PATH_LEN: usize = 4096;
    let text = &text[..text.len().min(MAX_PATH_LEN)];
    body.extend(text);
    body.resize(body.len() + (text.len() + 1).next_multiple_of(8) - text.len(), 0);
}
