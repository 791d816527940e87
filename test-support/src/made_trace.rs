//! Makes traces of Windows for tests: payloads of events, events, buffers and files.

/// The classes of events of KernelTraceControl, as their bytes are in files.
pub const IMAGE_ID: [u8; 16] =
    [0xd7, 0x75, 0xe6, 0xb3, 0x54, 0x25, 0x18, 0x4f, 0x83, 0x0b, 0x27, 0x62, 0x73, 0x25, 0x60, 0xde];
/// The other one.
pub const SYSTEM_CONFIG_EX: [u8; 16] =
    [0x91, 0xee, 0x79, 0x9b, 0xfd, 0xb5, 0xc0, 0x41, 0xa2, 0x43, 0x42, 0x48, 0xe2, 0x66, 0xe9, 0xd0];

/// The group of events of processes.
pub const PROCESS: u8 = 3;
/// The group of events of threads.
pub const THREAD: u8 = 5;
/// The group of samples.
pub const PERF_INFO: u8 = 15;
/// The group of events of images.
pub const IMAGE: u8 = 20;
/// The group of stacks.
pub const STACK_WALK: u8 = 24;

/// The events of one CPU.
#[derive(Clone, Debug)]
pub struct Buffer {
    /// The CPU.
    pub cpu: u8,
    /// Its number.
    pub sequence: u64,
    /// The size of the whole buffer in the file; 0 means as much as it needs.
    pub size: u32,
    /// The events.
    pub events: Vec<u8>,
}

impl Buffer {
    /// A buffer without events.
    pub fn new(cpu: u8, sequence: u64) -> Self {
        Self { cpu, sequence, size: 0, events: Vec::new() }
    }

    /// An event without a thread: samples, stacks, context switches.
    pub fn perf_info(&mut self, (group, opcode): (u8, u8), time: u64, payload: &[u8]) -> &mut Self {
        let mut event = words16(&[2, 0xc011, 16 + payload.len() as u16]);
        event.extend([opcode, group]);
        event.extend(time.to_le_bytes());
        self.add(event, payload)
    }

    /// An event of a thread: what happens to processes, threads and images.
    pub fn system(
        &mut self,
        (group, opcode, version): (u8, u8, u16),
        (pid, tid): (u32, u32),
        time: u64,
        payload: &[u8],
    ) -> &mut Self {
        let mut event = words16(&[version, 0xc002, 32 + payload.len() as u16]);
        event.extend([opcode, group]);
        event.extend(words(&[tid, pid]));
        event.extend(time.to_le_bytes());
        event.extend([0; 8]);
        self.add(event, payload)
    }

    /// An event of a class.
    pub fn full(
        &mut self,
        class: &[u8; 16],
        (opcode, version): (u8, u16),
        (pid, tid): (u32, u32),
        time: u64,
        payload: &[u8],
    ) -> &mut Self {
        let mut event = words16(&[48 + payload.len() as u16, 0xc014]);
        event.extend([opcode, 0]);
        event.extend(words16(&[version]));
        event.extend(words(&[tid, pid]));
        event.extend(time.to_le_bytes());
        event.extend(class);
        event.extend([0; 8]);
        self.add(event, payload)
    }

    /// An event of a manifest's provider, with extended data of that many bytes.
    pub fn described(
        &mut self,
        class: &[u8; 16],
        (opcode, version): (u8, u8),
        time: u64,
        extended: usize,
        payload: &[u8],
    ) -> &mut Self {
        let flags = u16::from(extended > 0);
        let padded = if extended > 0 { (8 + extended).next_multiple_of(8) } else { 0 };
        let mut event = words16(&[(80 + padded + payload.len()) as u16, 0xc013, flags, 0]);
        event.extend(words(&[7, 6]));
        event.extend(time.to_le_bytes());
        event.extend(class);
        event.extend([1, 0, version, 0, 0, opcode, 0, 0]);
        event.resize(80, 0);
        if extended > 0 {
            event.extend(words16(&[0, 1, 0, extended as u16]));
            event.resize(80 + padded, 0xee);
        }
        self.add(event, payload)
    }

    /// Any bytes in place of an event.
    pub fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.add(bytes.to_vec(), &[])
    }

    fn add(&mut self, header: Vec<u8>, payload: &[u8]) -> &mut Self {
        self.events.extend(header);
        self.events.extend(payload);
        self.events.resize(self.events.len().next_multiple_of(8), 0);
        self
    }

    fn bytes(&self, kind: u16, flags: u16, state: u32) -> Vec<u8> {
        let used = 72 + self.events.len() as u32;
        self.with_events(&self.events, (used, kind, flags, state))
    }

    fn with_events(&self, events: &[u8], (used, kind, flags, state): (u32, u16, u16, u32)) -> Vec<u8> {
        let in_file = 72 + events.len() as u32;
        let size = if self.size == 0 { in_file } else { self.size };
        let mut bytes = words(&[size, used, used, 0, 0, 0]);
        bytes.extend(self.sequence.to_le_bytes());
        bytes.extend([0; 8]);
        bytes.extend([self.cpu, 0, 0, 0]);
        bytes.extend(words(&[state, used]));
        bytes.extend(words16(&[flags, kind]));
        bytes.extend([0; 16]);
        bytes.extend(events);
        if self.size > 0 {
            bytes.resize(bytes.len().max(self.size.min(1 << 20) as usize), 0xff);
        }
        bytes
    }
}

/// What a trace says of itself.
#[derive(Clone, Debug)]
pub struct Header {
    /// The size of the buffers of the session.
    pub buffer_size: u32,
    /// The size of pointers.
    pub pointer_size: u32,
    /// How many events were lost.
    pub events_lost: u32,
    /// How many buffers were lost.
    pub buffers_lost: u32,
    /// The performance counter's frequency.
    pub frequency: u64,
    /// The kind of clock.
    pub clock: u32,
    /// When the trace began, in units of 100 nanoseconds since 1601.
    pub start_time: u64,
    /// How the file is written.
    pub file_mode: u32,
    /// How the buffers are compressed.
    pub compression: u32,
}

impl Default for Header {
    fn default() -> Self {
        Self {
            buffer_size: 65536,
            pointer_size: 8,
            events_lost: 0,
            buffers_lost: 0,
            frequency: 10_000_000,
            clock: 1,
            start_time: 133_000_000_000_000_000,
            file_mode: 0,
            compression: 0,
        }
    }
}

impl Header {
    /// Its event's payload.
    pub fn payload(&self) -> Vec<u8> {
        let mut bytes = words(&[self.buffer_size, 10, 19045, 4, 0, 0, 0, 0, self.file_mode, 1, 0]);
        bytes.extend(words(&[self.pointer_size, self.events_lost, 2000]));
        bytes.extend(vec![0; 2 * self.pointer_size as usize + 176 + 8]);
        bytes.extend(self.frequency.to_le_bytes());
        bytes.extend(self.start_time.to_le_bytes());
        bytes.extend(words(&[self.clock, self.buffers_lost]));
        bytes.extend([0; 4]);
        bytes
    }

    fn buffer(&self) -> Vec<u8> {
        let mut first = Buffer::new(0, 0);
        first.system((0, 0, 2), (4, 8), 1000, &self.payload());
        first.bytes(4, 1, self.compression)
    }
}

/// A file with these buffers behind its header.
pub fn file(header: &Header, buffers: &[Buffer]) -> Vec<u8> {
    let buffers = buffers.iter().flat_map(|buffer| buffer.bytes(0, 0, 0));
    header.buffer().into_iter().chain(buffers).collect()
}

/// The same with Xpress, in which every byte stands for itself.
pub fn compressed_file(header: &Header, buffers: &[Buffer]) -> Vec<u8> {
    let header = Header { file_mode: 0x0400_0000, compression: 3, ..header.clone() };
    let mut bytes = header.buffer();
    for buffer in buffers {
        let packed: Vec<u8> =
            buffer.events.chunks(32).flat_map(|chunk| [&[0; 4][..], chunk].concat()).collect();
        let used = 72 + buffer.events.len() as u32;
        bytes.extend(buffer.with_events(&packed, (used, 0, 0x40, 0)));
    }
    bytes
}

/// Numbers of 4 bytes.
pub fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Numbers of 2 bytes.
pub fn words16(words: &[u16]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Numbers of 8 bytes.
pub fn pointers(pointers: &[u64]) -> Vec<u8> {
    pointers.iter().flat_map(|pointer| pointer.to_le_bytes()).collect()
}

/// A text with a zero behind it.
pub fn utf16(text: &str) -> Vec<u8> {
    words16(&text.encode_utf16().chain([0]).collect::<Vec<_>>())
}

/// PerfInfo SampledProfile (opcode 46).
pub fn sample(address: u64, tid: u32) -> Vec<u8> {
    [pointers(&[address]), words(&[tid, 1])].concat()
}

/// PerfInfo CollectionStart (opcode 73), in units of 100 nanoseconds.
pub fn interval(interval: u32) -> Vec<u8> {
    [words(&[0, interval, 10_000]), utf16("Timer")].concat()
}

/// StackWalk Stack (opcode 32).
pub fn stack(event_time: u64, (pid, tid): (u32, u32), addresses: &[u64]) -> Vec<u8> {
    [event_time.to_le_bytes().to_vec(), words(&[pid, tid]), pointers(addresses)].concat()
}

/// StackWalk KeyKernel and KeyUser (opcodes 37 and 38).
pub fn stack_key(event_time: u64, (pid, tid): (u32, u32), key: u64) -> Vec<u8> {
    stack(event_time, (pid, tid), &[key])
}

/// StackWalk KeyRundown (opcode 36).
pub fn keyed_stack(key: u64, addresses: &[u64]) -> Vec<u8> {
    [pointers(&[key]), pointers(addresses)].concat()
}

/// Process, version 4, with a user of one sub-authority.
pub fn process((pid, parent): (u32, u32), name: &str, command_line: &str) -> Vec<u8> {
    let mut bytes = [pointers(&[0xffff_8000_0000_1000]), words(&[pid, parent, 1, 0])].concat();
    bytes.extend([pointers(&[0]), words(&[0]), pointers(&[0x1234, 0])].concat());
    bytes.extend([1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0]);
    bytes.extend(name.bytes().chain([0]));
    bytes.extend([utf16(command_line), utf16(""), utf16("")].concat());
    bytes
}

/// Thread, version 4.
pub fn thread((pid, tid): (u32, u32), name: &str) -> Vec<u8> {
    [words(&[pid, tid]), pointers(&[0; 7]), words(&[0, 0]), utf16(name)].concat()
}

/// Thread CSwitch (opcode 36).
pub fn switch(new: u32, old: u32, reason: u8, state: u8) -> Vec<u8> {
    [words(&[new, old, 0]), vec![reason, 0, state, 0], words(&[0, 0])].concat()
}

/// Thread ReadyThread (opcode 50).
pub fn ready(tid: u32, flags: u8) -> Vec<u8> {
    [words(&[tid]), vec![1, 0, flags, 0]].concat()
}

/// Image, version 3.
pub fn image((base, size): (u64, u64), pid: u32, timestamp: u32, path: &str) -> Vec<u8> {
    let numbers = [pointers(&[base, size]), words(&[pid, 0, timestamp, 0]), pointers(&[base])].concat();
    [numbers, words(&[0; 4]), utf16(path)].concat()
}

/// ImageID Info (opcode 0).
pub fn image_id((base, size): (u64, u64), pid: u32, timestamp: u32, name: &str) -> Vec<u8> {
    [pointers(&[base, size]), words(&[pid, timestamp]), utf16(name)].concat()
}

/// ImageID DbgID_RSDS (opcode 36), with the GUID as it is in files.
pub fn pdb_id(base: u64, pid: u32, (guid, age): (&[u8; 16], u32), path: &str) -> Vec<u8> {
    [pointers(&[base]), words(&[pid]), guid.to_vec(), words(&[age]), path.as_bytes().to_vec(), vec![0]]
        .concat()
}

/// SysConfigEx VolumeMapping (opcode 35).
pub fn volume(device: &str, drive: &str) -> Vec<u8> {
    [utf16(device), utf16(drive)].concat()
}
