//! Converts and symbolicates recordings of Android's simpleperf, handmade according to its headers.

use std::io::Cursor;
use std::num::NonZeroUsize;

use nyquist_convert::perf_data::{ImportOptions, import};
use nyquist_convert::{Progress, Symbols, symbolicate};
use nyquist_perf::abi::context;
use nyquist_perf::file::{Features, FileReader, FileWriter, WrittenEvent, record};
use nyquist_perf::{
    AttrFlags, ByteOrder, EventAttr, MappedIdentity, Mmap, RecordFormat, RecordId, SampleType,
};
use nyquist_profile::Profile;
use nyquist_symbols::{Finder, KernelError};

const MS: u64 = 1_000_000;
const FILE: u32 = 128;
const META_INFO: u32 = 129;
const FILE2: u32 = 132;

/// `cpu-clock:u` and `sched:sched_switch`, whose ids come in a record.
fn events() -> Vec<WrittenEvent> {
    let sample_type = SampleType::IDENTIFIER
        .with(SampleType::IP)
        .with(SampleType::TID)
        .with(SampleType::TIME)
        .with(SampleType::PERIOD)
        .with(SampleType::CALLCHAIN);
    let event = |kind, config| WrittenEvent {
        attr: EventAttr {
            kind,
            config,
            sample_period: MS,
            sample_type,
            flags: AttrFlags::SAMPLE_ID_ALL,
            ..EventAttr::default()
        },
        name: String::new(),
        ids: Vec::new(),
    };
    vec![event(1, 0), event(2, 91)]
}

fn format() -> RecordFormat {
    events()[0].attr.record_format(ByteOrder::Little)
}

fn id(id: u64, time_ms: u64) -> RecordId {
    RecordId { task: Some((7, 7)), time: Some(time_ms * MS), id: Some(id), ..RecordId::default() }
}

fn sample(event: u64, time_ms: u64, chain: &[u64]) -> Vec<u8> {
    let mode = if chain[0] == context::KERNEL { 1 } else { 2 };
    format().encode_sample(mode, (chain[1], MS), chain, &id(event, time_ms))
}

fn mapping(pid: u32, path: &str, (address, len, page_offset): (u64, u64, u64), protection: u32) -> Vec<u8> {
    let mmap = Mmap {
        pid,
        tid: 7,
        address,
        len,
        page_offset,
        identity: MappedIdentity::None,
        protection: Some(protection),
        flags: Some(2),
        path: path.as_bytes(),
        data: false,
    };
    format().encode_mmap(&mmap, if pid == u32::MAX { 1 } else { 2 }, &id(10, 1))
}

/// A record of simpleperf: the upper half of its size comes before the lower half.
fn large(kind: u32, body: &[u8]) -> Vec<u8> {
    let size = (body.len() + 8) as u32;
    let mut bytes = kind.to_le_bytes().to_vec();
    bytes.extend([(size >> 16) as u16, size as u16].into_iter().flat_map(u16::to_le_bytes));
    bytes.extend(body);
    bytes
}

fn event_ids() -> Vec<u8> {
    large(32774, &[2_u64, 0, 10, 1, 11].into_iter().flat_map(u64::to_le_bytes).collect::<Vec<_>>())
}

/// A field of a message.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2, bytes.len() as u8], bytes].concat()
}

fn number(field: u8, mut value: u64) -> Vec<u8> {
    let mut bytes = vec![field << 3];
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// A file with a symbol, as the feature `FILE2` has it.
fn file(path: &str, kind: u64, (min_vaddr, offset): (u64, u64), (address, name): (u64, &str)) -> Vec<u8> {
    let symbol = [number(1, address), number(2, 0x40), field(3, name.as_bytes())].concat();
    let info = if kind == 2 { field(6, &number(1, offset)) } else { Vec::new() };
    let message =
        [field(1, path.as_bytes()), number(2, kind), number(3, min_vaddr), field(4, &symbol), info].concat();
    [(message.len() as u32).to_le_bytes().to_vec(), message].concat()
}

fn meta() -> Vec<u8> {
    let pairs = [
        ("simpleperf_version", "1.build.1"),
        ("event_type_info", "cpu-clock:u,1,0\nsched:sched_switch,2,91"),
        ("trace_offcpu", "true"),
        ("app_package_name", "org.example.app"),
        ("product_props", "Google:Pixel 6:oriole"),
        ("android_version", "13"),
        ("timestamp", "1696864401"),
    ];
    pairs.iter().flat_map(|(key, value)| [key.as_bytes(), b"\0", value.as_bytes(), b"\0"].concat()).collect()
}

fn converted(records: &[Vec<u8>], features: &[(u32, Vec<u8>)], name: &str) -> Profile {
    let mut writer = FileWriter::new(Cursor::new(Vec::new()), events()).unwrap();
    for record in records {
        writer.write_records(record).unwrap();
    }
    for (number, section) in features {
        writer.add_feature(*number, section.clone());
    }
    let features = Features { arch: Some("aarch64".into()), ..Features::default() };
    let bytes = writer.finish(&features).unwrap().into_inner();
    let path = std::env::temp_dir().join(format!("nyquist-simpleperf-{name}-{}", std::process::id()));
    std::fs::write(&path, bytes).unwrap();
    let reader = FileReader::open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let names: Vec<_> = reader.events().iter().map(|event| event.name.clone()).collect();
    assert_eq!(names, ["cpu-clock:u", "sched:sched_switch"]);
    let imported = import(reader, ImportOptions::default()).unwrap();
    assert_eq!(imported.notes, Vec::<String>::new());
    let finder = Finder::default();
    let symbols =
        Symbols { finder: &finder, kernel: |_| Err(KernelError::Empty), threads: NonZeroUsize::MIN };
    let finished = imported.finished;
    symbolicate(finished.profile, finished.libs.sources(), symbols, &Progress::default()).profile
}

/// Each sample: its time in ms, its weight, whether the thread waits, and its stack, outermost first.
fn samples(profile: &Profile) -> Vec<String> {
    let samples = profile.threads().iter().flat_map(|thread| &thread.samples);
    let line = |sample: nyquist_profile::Sample| {
        let frames = sample.stack.into_iter().flat_map(|stack| profile.stack_frames(stack));
        let mut names: Vec<_> = frames.map(|frame| profile.func_name(frame.func)).collect();
        names.reverse();
        let off = if sample.off_cpu { " off" } else { "" };
        format!("{} {}{off} {}", sample.time / MS, sample.weight, names.join(";"))
    };
    samples.map(line).collect()
}

const LIB: &str = "/data/app/org.example.app/lib/arm64/libapp.so";
const DEX: &str = "/system/framework/boot.vdex";
const JIT: &str = "/data/local/tmp/7_jit_app_cache:0-64";

#[test]
fn names_come_from_the_symbol_tables_in_the_file() {
    let files = [
        file(LIB, 2, (0x5000, 0x1000), (0x5100, "_ZN3app4workEv")),
        file(DEX, 3, (0, 0), (0x2100, "void org.example.Main.run()")),
        file(JIT, 2, (0, 0), (0x7100_0000, "int org.example.Hot.loop(int)")),
        file("[kernel.kallsyms]", 0, (0, 0), (0xffff_ff80_0000_0100, "do_wait")),
    ];
    let records = [
        event_ids(),
        mapping(u32::MAX, "[kernel.kallsyms]", (0xffff_ff80_0000_0000, 0x100_0000, 0), 5),
        mapping(7, LIB, (0x7000_0000, 0x1000, 0x1000), 5),
        mapping(7, DEX, (0x7200_0000, 0x4000, 0x1000), 1),
        mapping(7, JIT, (0x7100_0000, 0x40, 0), 5),
        // Callers' addresses are within their calls.
        sample(10, 10, &[context::USER, 0x7100_0010, 0x7200_1100, 0x7000_0100]),
        sample(10, 11, &[context::KERNEL, 0xffff_ff80_0000_0120, context::USER, 0x7000_0110]),
    ];
    let profile = converted(&records, &[(META_INFO, meta()), (FILE2, files.concat())], "names");
    assert_eq!(
        samples(&profile),
        [
            "0 1 app::work();void org.example.Main.run();int org.example.Hot.loop(int)",
            "1 1 app::work();do_wait"
        ]
    );
    let meta = profile.meta();
    assert_eq!(meta.product, "org.example.app on Google Pixel 6");
    assert_eq!((meta.oscpu.as_deref(), meta.platform.as_deref()), (Some("Android 13"), Some("Android")));
    assert_eq!(meta.imported_from.as_deref(), Some("simpleperf 1.build.1"));
    assert_eq!(meta.start_time, 1_696_864_401_000_000);
}

#[test]
fn the_older_symbol_tables_are_read_too() {
    let mut first = [LIB.as_bytes(), b"\0\x02\0\0\0"].concat();
    first.extend(0x5000_u64.to_le_bytes());
    first.extend(1_u32.to_le_bytes());
    first.extend(0x5100_u64.to_le_bytes());
    first.extend(0x40_u32.to_le_bytes());
    first.extend(b"work\0");
    let section = [(first.len() as u32).to_le_bytes().to_vec(), first].concat();
    let records = [
        event_ids(),
        mapping(7, LIB, (0x7000_0000, 0x1000, 0x1000), 5),
        sample(10, 10, &[context::USER, 0x7000_0110]),
    ];
    let profile = converted(&records, &[(META_INFO, meta()), (FILE, section)], "older");
    assert_eq!(samples(&profile), ["0 1 work"]);
}

#[test]
fn off_cpu_time_lasts_until_the_thread_is_seen() {
    let records = [
        event_ids(),
        sample(10, 10, &[context::USER, 0x100]),
        sample(11, 11, &[context::USER, 0x200]),
        sample(10, 19, &[context::USER, 0x100]),
    ];
    let profile = converted(&records, &[(META_INFO, meta())], "off");
    assert_eq!(samples(&profile), ["0 1 0x100", "9 8 off 0x200", "9 1 0x100"]);
}

#[test]
fn records_too_large_for_perf_or_split_are_read() {
    const KERNEL_SYMBOL: u32 = 32769;
    let mut lines = "0000000000000001 d not_code_but_a_name_of_data\n".repeat(2000);
    lines.push_str("ffffff8000000100 t do_wait\nffffff8000000200 T do_more\n");
    let body = [&(lines.len() as u32).to_le_bytes()[..], lines.as_bytes()].concat();
    let whole = large(KERNEL_SYMBOL, &body);
    assert!(whole.len() > usize::from(u16::MAX));
    let pieces: Vec<u8> = whole.chunks(60_000).flat_map(|piece| large(32772, piece)).collect();
    for (name, kernel) in [("whole", whole.clone()), ("pieces", [pieces, large(32773, &[])].concat())] {
        let records = [
            event_ids(),
            kernel,
            mapping(u32::MAX, "[kernel.kallsyms]", (0xffff_ff80_0000_0000, 0x100_0000, 0), 5),
            // An unknown record is skipped, however large it is.
            large(32800, &vec![0xff; 100_000]),
            sample(10, 10, &[context::KERNEL, 0xffff_ff80_0000_0120]),
        ];
        let profile = converted(&records, &[(META_INFO, meta())], name);
        assert_eq!(samples(&profile), ["0 1 do_wait"], "{name}");
    }
}

#[test]
fn a_cut_recording_says_so_and_gives_the_rest() {
    // A record that claims to be larger than the rest of the file.
    let mut claiming = large(32775, &[]);
    claiming[4..8].copy_from_slice(&[0xff; 4]);
    let mut writer = FileWriter::new(Cursor::new(Vec::new()), events()).unwrap();
    for record in [event_ids(), sample(10, 10, &[context::USER, 0x100]), claiming, record(3, 0, &[0; 8])] {
        writer.write_records(&record).unwrap();
    }
    writer.add_feature(META_INFO, meta());
    let bytes = writer.finish(&Features::default()).unwrap().into_inner();
    let path = std::env::temp_dir().join(format!("nyquist-simpleperf-cut-{}", std::process::id()));
    std::fs::write(&path, bytes).unwrap();
    let imported = import(FileReader::open(&path).unwrap(), ImportOptions::default()).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(samples(&imported.finished.profile), ["0 1 0x100"]);
    assert!(imported.notes[0].contains("cut off"), "{:?}", imported.notes);
}
