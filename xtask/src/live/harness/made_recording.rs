//! Files in the format of perf.data that the tests make record by record, for what perf itself would not record.

/// What each record says about its process: `PERF_SAMPLE_TID` and `PERF_SAMPLE_TIME`; samples also have
/// `PERF_SAMPLE_IP`.
const SAMPLE_TYPE: u64 = 1 | 1 << 1 | 1 << 2;

/// Flags of the event: `mmap`, `comm`, `task` and `sample_id_all`.
const FLAGS: u64 = 1 << 8 | 1 << 9 | 1 << 13 | 1 << 18;

const HEADER_BYTES: u64 = 104;
const ATTR_BYTES: u64 = 128;

/// A recording of the CPU clock, in memory.
#[derive(Default)]
pub(crate) struct MadeRecording {
    records: Vec<u8>,
    time: u64,
}

impl MadeRecording {
    /// A file is mapped as code.
    pub(crate) fn map(&mut self, pid: u32, start: u64, len: u64, path: &str) {
        let mut body = [pid, pid].map(u32::to_le_bytes).concat();
        body.extend([start, len, 0].map(u64::to_le_bytes).concat());
        body.extend(path.bytes());
        body.resize((body.len() + 1).next_multiple_of(8), 0);
        self.put(1, pid, body);
    }

    /// A process is born.
    pub(crate) fn fork(&mut self, pid: u32, parent: u32) {
        let mut body = [pid, parent, pid, parent].map(u32::to_le_bytes).concat();
        body.extend(self.time.to_le_bytes());
        self.put(7, pid, body);
    }

    /// A process is sampled at an address.
    pub(crate) fn sample(&mut self, pid: u32, address: u64) {
        self.put(9, pid, address.to_le_bytes().to_vec());
    }

    fn put(&mut self, kind: u32, pid: u32, body: Vec<u8>) {
        self.time += 1000;
        let identity = [[pid, pid].map(u32::to_le_bytes).concat(), self.time.to_le_bytes().to_vec()].concat();
        let len = (8 + body.len() + identity.len()) as u16;
        let in_user_code = 2_u16;
        self.records.extend(kind.to_le_bytes());
        self.records.extend([in_user_code, len].map(u16::to_le_bytes).concat());
        self.records.extend(body);
        self.records.extend(identity);
    }

    /// The file.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let cpu_clock = [1_u32, ATTR_BYTES as u32].map(u32::to_le_bytes).concat();
        let mut attr = [cpu_clock, [0, 1000, SAMPLE_TYPE, 0, FLAGS].map(u64::to_le_bytes).concat()].concat();
        attr.resize(ATTR_BYTES as usize, 0);
        let entry = ATTR_BYTES + 16;
        let sections = [(HEADER_BYTES, entry), (HEADER_BYTES + entry, self.records.len() as u64), (0, 0)];
        let mut file = b"PERFILE2".to_vec();
        file.extend([HEADER_BYTES, entry].map(u64::to_le_bytes).concat());
        file.extend(sections.iter().flat_map(|(at, len)| [at, len]).flat_map(|number| number.to_le_bytes()));
        file.resize(HEADER_BYTES as usize, 0);
        file.extend(attr);
        file.extend([0; 16]);
        file.extend(&self.records);
        file
    }
}
