//! Whole recordings: written here and read again, truncated, damaged, streamed and compressed.

use std::fs::File;
use std::io::Cursor;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use nyquist_perf::abi::record::{COMM, SAMPLE};
use nyquist_perf::file::{
    ClockMoment, DamageKind, Features, FileBuildId, FileError, FileReader, FileWriter, RecordingItem,
    WrittenEvent, record, tool_record,
};
use nyquist_perf::{AttrFlags, EventAttr, ReadFormat, RecordId, SampleType};

fn event(kind: u32, config: u64, extra: SampleType, ids: &[u64]) -> WrittenEvent {
    let sample_type = SampleType::IDENTIFIER
        .with(SampleType::IP)
        .with(SampleType::TID)
        .with(SampleType::TIME)
        .with(SampleType::PERIOD)
        .with(SampleType::CALLCHAIN)
        .with(extra);
    let attr = EventAttr {
        kind,
        config,
        sample_type,
        read_format: ReadFormat::ID,
        flags: AttrFlags::SAMPLE_ID_ALL,
        ..EventAttr::default()
    };
    let ids = ids.iter().map(|id| (*id, Some(*id as u32))).collect();
    WrittenEvent { attr, name: format!("event-{kind}-{config}"), ids }
}

/// A clock, and an event whose records also contain the CPU.
fn events() -> Vec<WrittenEvent> {
    vec![event(1, 0, SampleType::default(), &[1, 2]), event(1, 2, SampleType::CPU, &[3])]
}

fn sample(event: &WrittenEvent, id: u64, time: u64) -> Vec<u8> {
    let format = event.attr.record_format(nyquist_perf::ByteOrder::Little);
    let id =
        RecordId { task: Some((7, 8)), time: Some(time), id: Some(id), cpu: Some(5), ..RecordId::default() };
    format.encode_sample(2, (0x1000, 1), &[0x1000, 0x2000], &id)
}

fn features() -> Features {
    Features {
        hostname: Some("far-away".into()),
        os_release: Some("6.1".into()),
        version: Some("nyquist 1".into()),
        arch: Some("aarch64".into()),
        cpus: Some((8, 4)),
        cpu_name: Some("Fast CPU".into()),
        memory_kb: Some(99),
        command_line: vec!["nyquist".into(), "record".into(), "./a b".into()],
        sample_time: Some((10, 20)),
        clock: Some(ClockMoment { clock: 1, wall_ns: 5, clock_ns: 6 }),
        build_ids: vec![FileBuildId {
            misc: 2 | 1 << 15,
            pid: -1,
            build_id: vec![7; 16],
            path: "/bin/x".into(),
        }],
        requested: vec!["family".into(), "7".into()],
        ..Features::default()
    }
}

/// Samples of both events at 10, 20 and so on, with a round after each pair.
fn written(pairs: u64) -> Vec<u8> {
    let [first, second] = &events()[..] else { unreachable!() };
    let mut writer = FileWriter::new(Cursor::new(Vec::new()), events()).unwrap();
    for pair in 0..pairs {
        writer.write_records(&sample(second, 3, 20 * pair + 20)).unwrap();
        writer.write_records(&sample(first, 2, 20 * pair + 10)).unwrap();
        writer.finish_round().unwrap();
    }
    writer.finish(&features()).unwrap().into_inner()
}

/// A file that is removed at the end of the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(bytes: &[u8]) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("nyquist-recording-{}-{number}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        Self(path)
    }

    fn open(bytes: &[u8]) -> Result<FileReader, FileError> {
        let scratch = Self::new(bytes);
        FileReader::open_file(File::open(&scratch.0).unwrap())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Each item: "event time" for a record, "<time" for completeness.
fn items(reader: &mut FileReader) -> Vec<String> {
    let mut items = Vec::new();
    while let Some(item) = reader.read_next() {
        items.push(match item {
            RecordingItem::Record(record) => format!("{} {}", record.event, record.time.unwrap_or_default()),
            RecordingItem::CompleteBefore(time) => format!("<{time}"),
        });
    }
    items
}

#[test]
fn what_is_written_is_read_back() {
    let mut reader = Scratch::open(&written(3)).unwrap();
    let mut expected = features();
    let described = std::mem::take(&mut reader.features().clone().events);
    assert_eq!(
        described.iter().map(|event| event.name.as_str()).collect::<Vec<_>>(),
        ["event-1-0", "event-1-2"]
    );
    expected.events = described;
    assert_eq!(*reader.features(), expected);
    assert_eq!(items(&mut reader), ["1 20", "0 10", "1 40", "0 30", "<20", "1 60", "0 50", "<40"]);
    assert_eq!(reader.event_cpus(), [(1, 1), (2, 2), (3, 3)]);
    assert_eq!(reader.events()[1].name, "event-1-2");
    assert!(reader.damages().is_empty());
}

#[test]
fn a_cut_file_gives_what_stands_before_the_cut() {
    let whole = written(3);
    let all = items(&mut Scratch::open(&whole).unwrap());
    for len in 0..whole.len() {
        match Scratch::open(&whole[..len]) {
            Ok(mut reader) => {
                let items = items(&mut reader);
                assert!(all.starts_with(&items), "{len}: {items:?}");
                let missing = items.len() < all.len();
                let noted = reader.damages().iter().any(|damage| damage.kind == DamageKind::Cut);
                assert!(noted || !missing, "{len}");
            }
            Err(FileError::Empty) => assert_eq!(len, 0),
            Err(FileError::CutHeader { have }) => assert_eq!(have, len as u64),
            Err(FileError::NotPerfData) => assert!(len < 8),
            Err(error) => assert!(matches!(error, FileError::NoEvents), "{len}: {error}"),
        }
    }
}

#[test]
fn zeros_end_a_recording_and_are_named() {
    let mut bytes = written(3);
    let [first, _] = &events()[..] else { unreachable!() };
    let one = sample(first, 2, 30);
    let at = bytes.windows(one.len()).position(|window| window == one).unwrap();
    bytes[at..].fill(0);
    let mut reader = Scratch::open(&bytes).unwrap();
    assert_eq!(items(&mut reader), ["1 20", "0 10", "1 40"]);
    let [damage] = reader.damages() else { panic!("{:?}", reader.damages()) };
    assert_eq!((&damage.kind, damage.offset), (&DamageKind::Zeros, at as u64));
    assert!(
        damage
            .to_string()
            .starts_with(&format!("the recording is damaged at byte {at}: only zeros follow; "))
    );
}

#[test]
fn a_killed_recorders_file_is_read_to_its_end() {
    let mut bytes = written(2);
    let end = bytes.windows(8).position(|window| window == b"far-away").unwrap() - 100;
    bytes.truncate(end);
    bytes[48..56].fill(0);
    let mut reader = Scratch::open(&bytes).unwrap();
    assert_eq!(items(&mut reader)[..4], ["1 20", "0 10", "1 40", "0 30"]);
    assert_eq!(reader.damages()[0].kind, DamageKind::Unfinished);
}

#[test]
fn what_is_no_recording_is_refused() {
    let check = |bytes: &[u8], expected: &str| {
        assert_eq!(Scratch::open(bytes).unwrap_err().to_string(), expected);
    };
    check(b"", "the file is empty");
    check(&[0; 4096], "not a perf.data file");
    check(b"PERFILE2\x68\0\0\0", "the file ends after 12 bytes, within its header");
    check(
        &[&b"PERFILE2"[..], &[104, 0, 0, 0, 0, 0, 0, 0], &[0xff; 88]].concat(),
        "the file describes no event",
    );
}

/// The stream with the same contents as a file: attributes are in records.
fn stream() -> Vec<u8> {
    let mut bytes = b"PERFILE2\x10\0\0\0\0\0\0\0".to_vec();
    for event in events() {
        let ids: Vec<u8> = event.ids.iter().flat_map(|(id, _)| id.to_le_bytes()).collect();
        bytes.extend(record(tool_record::HEADER_ATTR, 0, &[&event.attr.to_bytes()[..], &ids].concat()));
    }
    let name = [&2_u64.to_le_bytes()[..], &3_u64.to_le_bytes(), b"faults\0\0"].concat();
    bytes.extend(record(tool_record::EVENT_UPDATE, 0, &name));
    let host = [&3_u64.to_le_bytes()[..], &8_u32.to_le_bytes(), b"streamer"].concat();
    bytes.extend(record(tool_record::HEADER_FEATURE, 0, &host));
    bytes.extend(record(tool_record::TRACING_DATA, 0, &5_u32.to_le_bytes()));
    bytes.extend(b"trace");
    bytes.extend(record(tool_record::AUXTRACE, 0, &[&9_u64.to_le_bytes()[..], &[0; 32]].concat()));
    bytes.extend(b"aux bytes");
    let [first, second] = &events()[..] else { unreachable!() };
    bytes.extend(sample(first, 1, 10));
    bytes.extend(sample(second, 3, 11));
    bytes
}

#[test]
fn a_stream_says_all_in_records() {
    let mut reader = FileReader::open_stream(Cursor::new(stream())).unwrap();
    assert_eq!(items(&mut reader), ["0 10", "1 11"]);
    assert_eq!(reader.events()[1].name, "faults");
    assert_eq!(reader.features().hostname.as_deref(), Some("streamer"));
    assert_eq!((reader.features().tracing.as_slice(), reader.auxtrace_bytes()), (&b"trace"[..], 9));
    assert!(reader.damages().is_empty());
}

#[test]
fn a_file_in_a_pipe_is_refused_with_advice() {
    let error = FileReader::open_stream(Cursor::new(written(1))).unwrap_err();
    assert!(error.to_string().contains("give its name"), "{error}");
}

#[test]
fn a_cut_stream_ends_with_a_word() {
    let whole = stream();
    for len in 16..whole.len() {
        let mut reader = FileReader::open_stream(Cursor::new(whole[..len].to_vec())).unwrap();
        let count = items(&mut reader).len();
        assert!(count < 2, "{len}");
    }
    let mut reader = FileReader::open_stream(Cursor::new(whole[..whole.len() - 1].to_vec())).unwrap();
    assert_eq!(items(&mut reader), ["0 10"]);
    assert_eq!(reader.damages()[0].kind, DamageKind::Cut);
}

/// Compressed records with raw zstd blocks, a given number of bytes in each, and a round after each.
fn compressed(parts: usize) -> Vec<u8> {
    let [first, _] = &events()[..] else { unreachable!() };
    let samples: Vec<u8> = (1..=8_u64).flat_map(|time| sample(first, 1, time)).collect();
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0];
    for block in samples.chunks(100) {
        frame.extend(&((block.len() as u32) << 3).to_le_bytes()[..3]);
        frame.extend(block);
    }
    let mut writer = FileWriter::new(Cursor::new(Vec::new()), events()).unwrap();
    for part in frame.chunks(parts) {
        writer.write_records(&record(tool_record::COMPRESSED, 0, part)).unwrap();
        writer.finish_round().unwrap();
    }
    writer.finish(&features()).unwrap().into_inner()
}

#[test]
fn compressed_records_come_before_their_round() {
    for parts in [33, 120, 10_000] {
        let mut reader = Scratch::open(&compressed(parts)).unwrap();
        let items = items(&mut reader);
        let times: Vec<&str> = items.iter().filter_map(|item| item.strip_prefix("0 ")).collect();
        assert_eq!(times, ["1", "2", "3", "4", "5", "6", "7", "8"], "parts of {parts}");
        let mut latest = 0;
        for item in &items {
            match item.strip_prefix('<') {
                Some(complete) => assert!(complete.parse::<u64>().unwrap() <= latest),
                None => latest = item[2..].parse().unwrap(),
            }
        }
        assert!(reader.damages().is_empty(), "{:?}", reader.damages());
    }
}

#[test]
fn garbage_in_compressed_records_is_named() {
    let mut writer = FileWriter::new(Cursor::new(Vec::new()), events()).unwrap();
    let [first, _] = &events()[..] else { unreachable!() };
    writer.write_records(&sample(first, 1, 10)).unwrap();
    writer.write_records(&record(tool_record::COMPRESSED, 0, b"garbage")).unwrap();
    let bytes = writer.finish(&features()).unwrap().into_inner();
    let mut reader = Scratch::open(&bytes).unwrap();
    assert_eq!(items(&mut reader), ["0 10"]);
    assert!(matches!(reader.damages()[0].kind, DamageKind::Compression(_)));
}

#[test]
fn a_folders_files_are_read_as_one() {
    let folder = std::env::temp_dir().join(format!("nyquist-folder-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("data"), written(0)).unwrap();
    let [first, _] = &events()[..] else { unreachable!() };
    for (number, start) in [(0, 1), (1, 2)] {
        let bytes: Vec<u8> = (0..1000).flat_map(|at| sample(first, 1, start + 2 * at)).collect();
        std::fs::write(folder.join(format!("data.{number}")), bytes).unwrap();
    }
    let mut reader = FileReader::open(&folder).unwrap();
    let items = items(&mut reader);
    std::fs::remove_dir_all(&folder).unwrap();
    let mut complete = 0;
    for item in &items {
        match item.strip_prefix('<') {
            Some(time) => complete = time.parse().unwrap(),
            None => assert!(item[2..].parse::<u64>().unwrap() >= complete, "{item} after <{complete}"),
        }
    }
    assert!(complete > 1000);
    assert_eq!(items.iter().filter(|item| !item.starts_with('<')).count(), 2000);
}

#[test]
fn a_big_endian_recording_is_read() {
    let mut bytes = b"2ELIFREP".to_vec();
    let word = |bytes: &mut Vec<u8>, word: u64| bytes.extend(word.to_be_bytes());
    for value in [104, 64 + 16, 104, 80, 184, 8 + 16 + 8 + 8 + 16, 0, 0, 0, 0, 0, 0] {
        word(&mut bytes, value);
    }
    bytes.truncate(104);
    // type 1, size 64; config, period; IP | TID | TIME; read format; sample_id_all, the nineteenth bit
    // from above.
    word(&mut bytes, 1 << 32 | 64);
    for value in [0, 1000, 7, 0, 1 << (63 - 18), 0, 0] {
        word(&mut bytes, value);
    }
    bytes.extend([0; 16]);
    let header =
        |kind: u32, size: u16| [&kind.to_be_bytes()[..], &2_u16.to_be_bytes(), &size.to_be_bytes()].concat();
    bytes.extend(header(SAMPLE, 32));
    for value in [0x1234, 7 << 32 | 8, 99] {
        word(&mut bytes, value);
    }
    bytes.extend(header(COMM, 8 + 16 + 16));
    for value in [7 << 32 | 8, u64::from_be_bytes(*b"s390x\0\0\0"), 7 << 32 | 8, 100] {
        word(&mut bytes, value);
    }
    bytes[40 + 8..40 + 16].copy_from_slice(&72_u64.to_be_bytes());
    let mut reader = Scratch::open(&bytes).unwrap();
    let Some(RecordingItem::Record(found)) = reader.read_next() else { panic!() };
    let bytes = found.bytes.to_vec();
    let format = reader.events()[0].format;
    let parsed = nyquist_perf::parse_record(&bytes, &format).unwrap();
    assert_eq!((parsed.id.task, parsed.id.time), (Some((7, 8)), Some(99)));
    let Some(RecordingItem::Record(found)) = reader.read_next() else { panic!() };
    assert_eq!((found.header.kind, found.time), (COMM, Some(100)));
}
