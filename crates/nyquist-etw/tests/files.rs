//! Files of traces: which events they have, in which order, and what damage does.

use nyquist_etw::PointerSize;
use nyquist_etw::file::{Compression, FileError, FileReader};
use nyquist_etw::kernel::{Image, KernelEvent, ObjectChange, PdbId, Process, Thread, Volume, decode};
use nyquist_test_support::made_trace::{self, Buffer, Header};
use std::io::Cursor;

const SAMPLE: (u8, u8) = (made_trace::PERF_INFO, 46);

/// The times of the events that are read.
fn times(file: Vec<u8>) -> Vec<u64> {
    let mut reader = FileReader::open(Cursor::new(file)).unwrap();
    let mut times = Vec::new();
    while let Some(event) = reader.next_event().unwrap() {
        times.push(event.time);
    }
    let before = times.len();
    reader.rewind();
    while reader.next_event().unwrap().is_some() {
        times.push(0);
    }
    assert_eq!(times.len(), 2 * before, "the same events are read again");
    times.truncate(before);
    times
}

/// What the events of a buffer say.
fn decoded(buffer: Buffer) -> Vec<String> {
    let mut reader = FileReader::open(Cursor::new(made_trace::file(&Header::default(), &[buffer]))).unwrap();
    let mut all = Vec::new();
    while let Some(event) = reader.next_event().unwrap() {
        all.push(match decode(&event) {
            Ok(Some(KernelEvent::Header(_))) => continue,
            Ok(Some(known)) => format!("{known:?}"),
            Ok(None) => "nothing".to_owned(),
            Err(error) => error.to_string(),
        });
    }
    all
}

fn samples(cpu: u8, sequence: u64, times: &[u64]) -> Buffer {
    let mut buffer = Buffer::new(cpu, sequence);
    for time in times {
        buffer.perf_info(SAMPLE, *time, &made_trace::sample(0x1000, 7));
    }
    buffer
}

#[test]
fn the_header_says_what_the_trace_is() {
    let header = Header { events_lost: 3, buffers_lost: 2, frequency: 2_000_000, ..Header::default() };
    let reader = FileReader::open(Cursor::new(made_trace::file(&header, &[]))).unwrap();
    let read = reader.header();
    assert_eq!((read.events_lost, read.buffers_lost, read.build), (3, 2, 19045));
    assert_eq!((read.pointer_size, read.clock.nanoseconds(1)), (PointerSize::Eight, 500));
    assert_eq!(read.start_time, 133_000_000_000_000_000);
    let header = Header { pointer_size: 4, clock: 2, ..Header::default() };
    let reader = FileReader::open(Cursor::new(made_trace::file(&header, &[]))).unwrap();
    let read = reader.header();
    assert_eq!((read.pointer_size, read.clock.nanoseconds(1)), (PointerSize::Four, 100));
}

#[test]
fn events_of_all_cpus_come_by_time() {
    let buffers = [
        samples(1, 3, &[1600, 1700]),
        samples(0, 2, &[1500]),
        samples(1, 1, &[1200, 1450]),
        samples(0, 4, &[1650]),
    ];
    let expected = [1000, 1200, 1450, 1500, 1600, 1650, 1700];
    assert_eq!(times(made_trace::file(&Header::default(), &buffers)), expected);
    assert_eq!(times(made_trace::compressed_file(&Header::default(), &buffers)), expected);
}

#[test]
fn unknown_events_are_passed_over() {
    let mut buffer = samples(0, 1, &[1100]);
    // A message of WPP, an event of another group, one of an unknown kind, one of a provider.
    buffer.raw(&[16, 0, 0, 0x90, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    buffer.perf_info((99, 1), 1200, &[1, 2, 3]);
    buffer.raw(&[12, 0, 13, 0xc0, 1, 2, 3, 4, 5, 6, 7, 8]);
    buffer.described(&made_trace::IMAGE_ID, (0, 2), 1300, 5, &[]);
    buffer.perf_info(SAMPLE, 1400, &made_trace::sample(1, 2));
    assert_eq!(times(made_trace::file(&Header::default(), &[buffer])), [1000, 1100, 1300, 1400]);
}

#[test]
fn damage_ends_a_buffer_and_not_the_file() {
    for damage in
        [&[0; 8][..], &[0xff; 8], &[2, 0, 0x11, 0xc0, 0xff, 0xff, 46, 15], &[2, 0, 0x11, 0xc0, 3, 0, 46, 15]]
    {
        let mut damaged = samples(0, 1, &[1100]);
        damaged.raw(damage).perf_info(SAMPLE, 1200, &[]);
        let file = made_trace::file(&Header::default(), &[damaged, samples(0, 2, &[1300])]);
        assert_eq!(times(file), [1000, 1100, 1300], "{damage:?}");
    }
}

#[test]
fn buffers_of_impossible_sizes_end_the_file() {
    for size in [1, 71, 1 << 30] {
        let odd = Buffer { size, ..samples(0, 1, &[1100]) };
        let file = made_trace::file(&Header::default(), &[samples(0, 0, &[1050]), odd]);
        let reader = FileReader::open(Cursor::new(file.clone())).unwrap();
        assert!(reader.is_cut(), "{size}");
        assert_eq!(times(file)[..2], [1000, 1050]);
    }
    let mut cut = made_trace::file(&Header::default(), &[samples(0, 1, &[1100, 1200])]);
    cut.truncate(cut.len() - 10);
    assert!(FileReader::open(Cursor::new(cut.clone())).unwrap().is_cut());
    assert_eq!(times(cut), [1000, 1100]);
}

#[test]
fn other_files_are_refused() {
    for other in [Vec::new(), vec![0; 1000], b"MZ".repeat(100)] {
        assert!(matches!(FileReader::open(Cursor::new(other)), Err(FileError::NoHeader)));
    }
    let header = Header { file_mode: 0x0400_0000, compression: 4, ..Header::default() };
    let refused = FileReader::open(Cursor::new(made_trace::file(&header, &[]))).unwrap_err();
    assert!(matches!(refused, FileError::Compressed(Compression::Other(4))));
    assert_eq!(
        refused.to_string(),
        "its buffers are compressed (Xpress with Huffman codes), which cannot be read"
    );
}

#[test]
fn events_say_what_is_documented() {
    let mut buffer = Buffer::new(0, 1);
    let (pid, tid) = (100, 104);
    let guid =
        [0xd0, 0xa8, 0x6f, 0x3d, 0x05, 0xfe, 0xd0, 0x11, 0x9d, 0xda, 0x00, 0xc0, 0x4f, 0xd7, 0xba, 0x7c];
    buffer
        .system((3, 1, 4), (pid, tid), 1, &made_trace::process((pid, 4), "app.exe", "app.exe -x"))
        .system((5, 3, 4), (pid, tid), 2, &made_trace::thread((pid, tid), "main"))
        .system((3, 10, 3), (pid, tid), 3, &made_trace::image((0x1_0000, 0x2000), pid, 9, r"\Device\a.exe"))
        .system((20, 2, 3), (pid, tid), 4, &made_trace::image((0x1_0000, 0x2000), pid, 9, r"\Device\a.exe"))
        .full(
            &made_trace::IMAGE_ID,
            (36, 2),
            (pid, 0),
            5,
            &made_trace::pdb_id(0x1_0000, 0, (&guid, 2), r"c:\a.pdb"),
        )
        .full(&made_trace::SYSTEM_CONFIG_EX, (35, 0), (0, 0), 6, &made_trace::volume(r"\Device\V\", r"C:\"));
    let image = |change| {
        let path = r"\Device\a.exe".to_owned();
        KernelEvent::Image(Image {
            change,
            base: 0x1_0000,
            size: 0x2000,
            pid,
            checksum: 0,
            timestamp: 9,
            path,
        })
    };
    let process = Process {
        change: ObjectChange::Start,
        pid,
        parent: 4,
        session: Some(1),
        image_name: "app.exe".into(),
        command_line: "app.exe -x".into(),
    };
    let thread = Thread { change: ObjectChange::ThereAtStart, pid, tid, name: "main".into() };
    let expected = [
        KernelEvent::Process(process),
        KernelEvent::Thread(thread),
        image(ObjectChange::Start),
        image(ObjectChange::End),
        KernelEvent::PdbId(PdbId {
            base: 0x1_0000,
            pid,
            guid: nyquist_etw::Guid(0x3d6f_a8d0_fe05_11d0_9dda_00c0_4fd7_ba7c),
            age: 2,
            path: r"c:\a.pdb".into(),
        }),
        KernelEvent::Volume(Volume { device: r"\Device\V\".into(), drive: r"C:\".into() }),
    ];
    assert_eq!(decoded(buffer), expected.map(|event| format!("{event:?}")));
}

/// Version 0, as the classes `Process_V0`, `Thread_V0` and `Image_V0` are documented: numbers of processes are as wide
/// as pointers, threads come before their process, and an image is of the process that the event's header states.
#[test]
fn the_oldest_events_have_their_processes() {
    let (pid, tid, parent) = (100_u32, 104_u32, 4_u32);
    let wide = |number: u32| u64::from(number).to_le_bytes().to_vec();
    let process = [wide(pid), wide(parent), vec![0; 4], b"app.exe\0".to_vec()].concat();
    let thread = [tid.to_le_bytes(), pid.to_le_bytes()].concat();
    let path = r"\a.exe";
    let path_bytes: Vec<u8> = path.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect();
    let image = [0x1_0000_u64.to_le_bytes().to_vec(), 0x2000_u32.to_le_bytes().to_vec(), path_bytes].concat();
    let mut buffer = Buffer::new(0, 1);
    buffer.system((3, 1, 0), (parent, 5), 1, &process).system((5, 1, 0), (parent, 5), 2, &thread).system(
        (20, 10, 0),
        (pid, tid),
        3,
        &image,
    );
    let change = ObjectChange::Start;
    let (image_name, command_line) = ("app.exe".into(), String::new());
    let expected = [
        KernelEvent::Process(Process { change, pid, parent, session: None, image_name, command_line }),
        KernelEvent::Thread(Thread { change, pid, tid, name: String::new() }),
        KernelEvent::Image(Image {
            change,
            base: 0x1_0000,
            size: 0x2000,
            pid,
            checksum: 0,
            timestamp: 0,
            path: path.into(),
        }),
    ];
    assert_eq!(decoded(buffer), expected.map(|event| format!("{event:?}")));
}

#[test]
fn short_payloads_are_errors_and_no_panics() {
    let payloads = [
        (3, 1, made_trace::process((1, 2), "a", "b")),
        (5, 36, made_trace::switch(1, 2, 3, 4)),
        (5, 1, made_trace::thread((1, 2), "")),
        (3, 10, made_trace::image((1, 2), 3, 4, "")),
        (15, 46, made_trace::sample(1, 2)),
        (24, 32, made_trace::stack(1, (2, 3), &[])),
        (24, 37, made_trace::stack_key(1, (2, 3), 4)),
        (15, 73, made_trace::interval(1)),
        (0, 0, Header::default().payload()),
    ];
    for (group, opcode, payload) in payloads {
        for len in 0..payload.len() {
            let mut buffer = Buffer::new(0, 1);
            buffer.system((group, opcode, 4), (1, 1), 5, &payload[..len]);
            assert!(decoded(buffer).len() <= 1);
        }
        let mut buffer = Buffer::new(0, 1);
        buffer.system((group, opcode, 4), (1, 1), 5, &payload[..3]);
        let message = decoded(buffer).concat();
        assert!(message.contains("ends after 3 bytes, in the middle of its"), "{message}");
    }
}
