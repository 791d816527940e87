//! Makes a capture of sysprof, for unit tests and as a first input of the fuzz target.

/// The first bytes, and the lengths of the header and of what each record begins with.
const MAGIC: [u8; 4] = 0xfdca_975e_u32.to_le_bytes();
const HEADER: usize = 256;
const RECORD: usize = 24;

/// Kinds of records.
const SAMPLE: u8 = 2;
const MAP: u8 = 3;
const PROCESS: u8 = 4;
const FORK: u8 = 5;
const JITMAP: u8 = 7;
const FILE_CHUNK: u8 = 13;

/// The file with the names of functions.
const SYMBOLS: &[u8] = b"__symbols__";

fn record(kind: u8, pid: i32, time: u64, data: &[u8]) -> Vec<u8> {
    let length = (RECORD + data.len()).next_multiple_of(8);
    let mut out = (length as u16).to_le_bytes().to_vec();
    out.extend([0, 0]);
    out.extend(pid.to_le_bytes());
    out.extend(time.to_le_bytes());
    out.extend([kind, 0, 0, 0, 0, 0, 0, 0]);
    out.extend(data);
    out.resize(length, 0);
    out
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn sample(pid: i32, tid: u64, time: u64, addresses: &[u64]) -> Vec<u8> {
    let head = addresses.len() as u64 | tid << 32;
    record(SAMPLE, pid, time, &[words(&[head]), words(addresses)].concat())
}

/// A range of packed names.
fn packed(start: u64, last: u64, pid: u64, name: u64) -> Vec<u8> {
    words(&[start, last, pid | name << 32, 0])
}

/// A file of the capture, in one piece.
fn file(path: &[u8], contents: &[u8]) -> Vec<u8> {
    let mut data = (1 | (contents.len() as u32) << 16).to_le_bytes().to_vec();
    data.extend(path);
    data.resize(4 + 256, 0);
    record(FILE_CHUNK, -1, 0, &[&*data, contents].concat())
}

/// A capture of a program, its child, and code of the kernel and of a just-in-time compiler.
pub fn capture() -> Vec<u8> {
    let mut header = MAGIC.to_vec();
    header.extend([1, 1, 0, 0]);
    header.resize(HEADER, 0);
    let map = [words(&[0x40_0000, 0x50_0000, 0x1000, 7]), b"/usr/bin/app\0".to_vec()].concat();
    let jit = [&1_u32.to_le_bytes()[..], &words(&[0xe000_0000_0000_0001]), b"made\0"].concat();
    // As sysprof 3.46 packs them: code of the kernel has the process, too, and ranges have their last addresses.
    let names = [
        packed(0xffff_8000, 0xffff_8010, 5, 128),
        packed(0x40_1001, 0x40_1001, 5, 135),
        packed(0x40_3000, 0x40_3fff, 5, 140),
        words(&[0; 4]),
    ];
    let names = [&names.concat()[..], b"kernel\0main\0In file /usr/bin/app\0"].concat();
    [
        header,
        // Records of processors are not in the order of time. The last two are of threads.
        record(PROCESS, 5, 900, b"opt cgu.1\0"),
        record(PROCESS, 5, 0, b"bin/app --fast\0"),
        record(PROCESS, 5, 800, b"ctrl-c\0"),
        record(PROCESS, 9, 0, b"kworker/0:1\0"),
        record(MAP, 5, 0, &map),
        record(FORK, 5, 0, &6_u32.to_le_bytes()),
        record(JITMAP, 5, 0, &jit),
        sample(5, 5, 1_000, &[(-128_i64) as u64, 0xffff_8010, (-512_i64) as u64, 0x40_3000, 0x40_1001]),
        sample(5, 7, 2_000, &[0xe000_0000_0000_0001, 0x40_1001]),
        sample(6, 6, 3_000, &[0x40_1000]),
        sample(6, 6, 4_000, &[0x99_0000]),
        sample(9, 9, 5_000, &[(-128_i64) as u64, 0xffff_8010]),
        record(99, 0, 0, b"later kinds"),
        file(b"/proc/kallsyms", b"x"),
        file(SYMBOLS, &names),
    ]
    .concat()
}
