//! Tests of the meaning of records.

use nyquist_perf::abi::record;
use nyquist_perf::{ReadFormat, SampleType};

use super::*;
use crate::event::{FieldValue, Registers};
use nyquist_perf::abi::x86;
use std::sync::Arc;

/// The record format of a live recording on x86_64, with the sample's fields from the call chain on.
fn events(sample_type: SampleType, architecture: Architecture) -> PerfDecoder {
    let format = RecordFormat {
        sample_type: SampleType::IDENTIFIER
            .with(SampleType::TID)
            .with(SampleType::TIME)
            .with(SampleType::CPU)
            .with(SampleType::PERIOD)
            .with(sample_type),
        read_format: ReadFormat::ID,
        user_registers: if architecture == Architecture::X86_64 { x86::ALL_64 } else { (1 << 33) - 1 },
        sample_id_all: true,
        ..RecordFormat::default()
    };
    let cpus = [(100, 5), (101, 6)].into_iter().collect();
    let counters = CounterMeaning::CpuTime;
    let successors = [200].into_iter().collect();
    PerfDecoder {
        format,
        architecture,
        kernel: true,
        period: Period::Provided,
        cpus,
        counters,
        successors,
        additional_events: AdditionalEvents::default(),
    }
}

fn read(events: &PerfDecoder, bytes: &Bytes) -> Option<Event> {
    events.event(bytes, bytes).unwrap()
}

fn record(kind: u32, misc: u16, words: &[u64]) -> Bytes {
    let size = 8 + 8 * words.len() as u16;
    let mut bytes = kind.to_le_bytes().to_vec();
    bytes.extend(misc.to_le_bytes().into_iter().chain(size.to_le_bytes()));
    bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    bytes.into()
}

/// A sample of process 11, thread 12, at 1000 ns on CPU 3, for 50 ns.
fn sample(events: &PerfDecoder, misc: u16, fields: &[u64]) -> Option<Event> {
    let words = [&[100, pair(11, 12), 1000, 3, 50], fields].concat();
    read(events, &record(record::SAMPLE, misc, &words))
}

fn pair(low: u64, high: u64) -> u64 {
    low | high << 32
}

/// A record other than a sample, with the trailer of thread 12, 1000 ns, CPU 3, event 100.
fn other(kind: u32, misc: u16, fields: &[u64]) -> Option<Event> {
    let words = [fields, &[pair(11, 12), 1000, 3, 100]].concat();
    let events = events(SampleType::default(), Architecture::X86_64);
    read(&events, &record(kind, misc, &words))
}

fn kind(event: Option<Event>) -> EventKind {
    let event = event.unwrap();
    assert_eq!((event.time, event.cpu), (Timestamp(1000), Some(3)));
    event.kind
}

fn the_sample(event: Option<Event>) -> Sample {
    match kind(event) {
        EventKind::Sample(sample) => sample,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_call_chain_is_split_by_its_contexts() {
    let events = events(SampleType::CALLCHAIN, Architecture::X86_64);
    let chain = [8, 0x99, context::KERNEL, 0xf1, 0xf2, context::USER, 0x11, context::GUEST, 0x21];
    let sample = the_sample(sample(&events, 1, &chain));
    assert!(sample.in_kernel);
    assert_eq!((sample.pid, sample.tid, sample.period_ns), (Pid(11), Tid(12), 50));
    assert_eq!(sample.kernel_stack, [Avma(0xf1), Avma(0xf2)]);
    assert_eq!(sample.user, UserStack::FramePointers(vec![Avma(0x11)]));
}

#[test]
fn without_a_chain_the_kernel_stack_is_its_ip() {
    let mut events = events(SampleType::IP, Architecture::X86_64);
    events.format.sample_type = SampleType::IP.with(SampleType::TID);
    let bytes = record(record::SAMPLE, 1, &[0xf1, pair(11, 12)]);
    let Some(Event { kind: EventKind::Sample(sample), .. }) = read(&events, &bytes) else { panic!() };
    assert_eq!((sample.kernel_stack, sample.user), (vec![Avma(0xf1)], UserStack::None));
    let bytes = record(record::SAMPLE, 2, &[0x11, pair(11, 12)]);
    let Some(Event { kind: EventKind::Sample(sample), .. }) = read(&events, &bytes) else { panic!() };
    assert_eq!((sample.kernel_stack, sample.in_kernel), (vec![], false));
}

#[test]
fn x86_64_registers_come_in_dwarfs_order() {
    let events = events(SampleType::REGS_USER, Architecture::X86_64);
    // ax bx cx dx si di bp sp ip flags cs ss r8..r15, each its place in perf's order.
    let fields: Vec<u64> = [2].into_iter().chain(0..20).collect();
    let UserStack::Copied { registers, stack, limited } = the_sample(sample(&events, 2, &fields)).user else {
        panic!("no registers")
    };
    let expected = [0, 3, 2, 1, 4, 5, 6, 7, 12, 13, 14, 15, 16, 17, 18, 19, 8];
    assert_eq!(*registers, Registers::X86_64(expected));
    assert!(stack.is_empty() && limited);
}

#[test]
fn a_32_bit_program_is_named() {
    let events = events(SampleType::REGS_USER, Architecture::X86_64);
    let fields: Vec<u64> = [1].into_iter().chain(0x1000..0x1014).collect();
    let UserStack::Copied { registers, .. } = the_sample(sample(&events, 2, &fields)).user else { panic!() };
    assert_eq!(*registers, Registers::Bits32 { ip: 0x1008 });
}

#[test]
fn aarch64_registers_keep_their_order() {
    let events = events(SampleType::REGS_USER, Architecture::Aarch64);
    let fields: Vec<u64> = [2].into_iter().chain(0..33).collect();
    let UserStack::Copied { registers, .. } = the_sample(sample(&events, 2, &fields)).user else { panic!() };
    assert_eq!(*registers, Registers::Aarch64(Box::new(std::array::from_fn(|register| register as u64))));
}

/// The interrupt of a counter that does not count in the kernel came late.
#[test]
fn a_late_sample_is_of_the_caller_of_the_kernel() {
    let types = SampleType::IP.with(SampleType::REGS_USER);
    let counts = |kernel| PerfDecoder { kernel, ..events(types, Architecture::Aarch64) };
    let head = [100, 0xffff_8000_8001_0000, pair(11, 12), 1000, 3, 50, 2];
    let words: Vec<u64> = head.into_iter().chain(0..33).collect();
    let of = |kernel| the_sample(read(&counts(kernel), &record(record::SAMPLE, 1, &words)));
    assert_eq!(of(true).kernel_stack, [Avma(0xffff_8000_8001_0000)]);
    assert_eq!(of(false).kernel_stack, []);
    assert!(of(false).in_kernel && matches!(of(false).user, UserStack::Copied { .. }));
}

#[test]
fn a_kernel_thread_has_no_user_stack() {
    let events = events(SampleType::REGS_USER.with(SampleType::STACK_USER), Architecture::X86_64);
    assert_eq!(the_sample(sample(&events, 1, &[0, 0])).user, UserStack::None);
}

#[test]
fn the_stack_is_a_slice_of_the_record() {
    let events = events(SampleType::REGS_USER.with(SampleType::STACK_USER), Architecture::X86_64);
    let registers: Vec<u64> = [2].into_iter().chain(0..20).collect();
    let check = |stack_fields: &[u64], len: usize, is_limited: bool| {
        let words = [&[100, pair(11, 12), 1000, 3, 50], &registers[..], stack_fields].concat();
        let bytes = record(record::SAMPLE, 2, &words);
        let user = the_sample(read(&events, &bytes)).user;
        let UserStack::Copied { stack, limited, .. } = user else { panic!() };
        assert_eq!((stack.len(), limited), (len, is_limited));
        assert!(bytes.as_ptr_range().contains(&stack.as_ptr()), "the stack was copied");
    };
    check(&[16, 1, 2, 16], 16, true);
    check(&[16, 1, 2, 15], 15, false);
}

#[test]
fn counters_are_cpu_time() {
    let mut events = events(SampleType::READ, Architecture::X86_64);
    let first = the_sample(sample(&events, 2, &[777, 100]));
    assert_eq!((first.cpu_time_ns, first.counts_anew), (Some(777), false));
    let words = [200, pair(11, 12), 1000, 3, 50, 7, 200];
    let later = the_sample(read(&events, &record(record::SAMPLE, 2, &words)));
    assert_eq!((later.cpu_time_ns, later.counts_anew), (Some(7), true));
    events.format.read_format = ReadFormat::ID.with(ReadFormat::GROUP);
    events.period = Period::Each(1_000_000);
    let sample = the_sample(sample(&events, 2, &[2, 4_000_000, 99, 778, 100]));
    assert_eq!((sample.cpu_time_ns, sample.period_ns), (Some(778), 1_000_000));
}

#[test]
fn a_final_count_belongs_to_its_counters_cpu() {
    let words = [pair(11, 13), 900, 101, pair(11, 13), 1000, 3, 101];
    let events = events(SampleType::default(), Architecture::X86_64);
    let event = read(&events, &record(record::READ, 0, &words)).unwrap();
    assert_eq!(event.cpu, Some(6));
    assert_eq!(event.kind, EventKind::Total { pid: Pid(11), tid: Tid(13), cpu_time_ns: 900 });
}

const NAME: u64 = u64::from_le_bytes(*b"/bin/x\0\0");

#[test]
fn only_executable_memory_is_a_mapping() {
    let mmap2 = |protection: u64| {
        let identity = [pair(8, 1), 99, 7];
        let fields = [&[pair(11, 12), 0x1000, 0x2000, 0x3000], &identity[..], &[protection, NAME]].concat();
        other(record::MMAP2, 0, &fields)
    };
    assert_eq!(mmap2(3), None);
    let expected = Mapping {
        pid: Some(Pid(11)),
        start: Avma(0x1000),
        len: 0x2000,
        offset: FileOffset(0x3000),
        path: "/bin/x".to_owned(),
        identity: MappedFile::Inode { major: 8, minor: 1, inode: 99, generation: 7 },
    };
    assert_eq!(kind(mmap2(5)), EventKind::Map(expected));
}

#[test]
fn a_marker_file_is_a_mapping_too() {
    let path: [u8; 24] = *b"/t/marker-11-12.txt\0\0\0\0\0";
    let words = path.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap()));
    let mut fields = vec![pair(11, 12), 0x1000, 0x2000, 0, pair(8, 1), 99, 7, 1];
    fields.extend(words);
    let EventKind::Map(mapping) = kind(other(record::MMAP2, 1 << 13, &fields)) else { panic!() };
    assert_eq!(mapping.path, "/t/marker-11-12.txt");
}

#[test]
fn a_mapping_with_a_build_id_has_that_identity() {
    let id = [u64::from_le_bytes([4, 0, 0, 0, 0xaa, 0xbb, 0xcc, 0xdd]), 0, 0];
    let fields = [&[pair(11, 12), 0x1000, 0x2000, 0], &id[..], &[5, NAME]].concat();
    let EventKind::Map(mapping) = kind(other(record::MMAP2, 1 << 14, &fields)) else { panic!() };
    let expected = BuildId::new(&[0xaa, 0xbb, 0xcc, 0xdd]).unwrap();
    assert_eq!(mapping.identity, MappedFile::BuildId(expected));
}

#[test]
fn the_kernels_mappings_have_no_process() {
    let fields = [pair(u64::from(u32::MAX), 0), 0xffff_ffff_8100_0000, 0x100, 0, NAME];
    let EventKind::Map(mapping) = kind(other(record::MMAP, 1, &fields)) else { panic!() };
    assert_eq!((mapping.pid, mapping.identity), (None, MappedFile::Unknown));
    assert_eq!(other(record::MMAP, 1 << 13, &fields), None, "memory for data");
}

#[test]
fn names_keep_what_is_no_utf8() {
    let fields = [pair(11, 12), u64::from_le_bytes(*b"a\xff\0\0\0\0\0\0")];
    let expected = EventKind::Name { pid: Pid(11), tid: Tid(12), name: "a\u{fffd}".to_owned(), exec: true };
    assert_eq!(kind(other(record::COMM, 1 << 13, &fields)), expected);
}

#[test]
fn tasks_and_losses() {
    let check = |record, fields: &[u64], expected| assert_eq!(kind(other(record, 0, fields)), expected);
    let task = [pair(11, 1), pair(14, 2), 1000];
    let (pid, tid) = (Pid(11), Tid(14));
    check(record::FORK, &task, EventKind::Fork { pid, tid, parent_pid: Pid(1), parent_tid: Tid(2) });
    check(record::EXIT, &task, EventKind::Exit { pid, tid });
    check(record::LOST, &[100, 7], EventKind::Lost { records: 7 });
    check(record::LOST_SAMPLES, &[8], EventKind::Lost { records: 8 });
    check(record::THROTTLE, &[1000, 100, 100], EventKind::Throttled);
    check(record::UNTHROTTLE, &[1000, 100, 100], EventKind::Unthrottled);
    assert_eq!(other(99, 0, &[1]), None);
}

#[test]
fn sums_of_losses_have_no_time() {
    let events = events(SampleType::default(), Architecture::X86_64);
    let summed = read(&events, &record(record::LOST_SAMPLES, 0, &[8, 0, 0, 0, 0])).unwrap();
    assert_eq!((summed.kind, summed.cpu), (EventKind::LostInAll { records: 8 }, None));
    let of_an_event = read(&events, &record(record::LOST_SAMPLES, 0, &[8, 0, 0, 0, 101])).unwrap();
    assert_eq!(of_an_event.cpu, Some(6), "that of the event, because the record can be written on any CPU");
    assert_eq!(other(record::LOST_SAMPLES, misc::LOST_SAMPLES_BPF, &[8]), None);
}

#[test]
fn losses_and_pauses_are_on_their_events_cpu() {
    let of_cpu = |format: RecordFormat, kind, fields: &[u64]| {
        let events = PerfDecoder { format, ..events(SampleType::default(), Architecture::X86_64) };
        read(&events, &record(kind, 0, fields)).unwrap().cpu
    };
    let bare = RecordFormat { sample_id_all: false, ..RecordFormat::default() };
    for (kind, fields) in [
        (record::LOST, &[101, 7][..]),
        (record::THROTTLE, &[1000, 101, 101]),
        (record::UNTHROTTLE, &[1000, 101, 101]),
    ] {
        assert_eq!(of_cpu(bare, kind, fields), Some(6));
    }
    assert_eq!(of_cpu(bare, record::LOST, &[99, 7]), None);
}

/// An additional event whose samples become occurrences.
fn occurrences(name: &str, details: Details) -> Arc<AdditionalEvent> {
    let kind = AdditionalEventKind::Occurrences(OccurrenceEvent::new(name, details, None, 10));
    Arc::new(AdditionalEvent { kind, fields: SampleFields::Common })
}

/// The tracepoint that is event 100, with fields from the kernel.
fn tracepoint() -> PerfDecoder {
    let text = "name: b\nID: 7\nformat:\n\tfield:int size;\toffset:8;\tsize:4;\tsigned:1;
\tfield:__data_loc char[] text;\toffset:12;\tsize:4;\tsigned:0;\n\tfield:u8 mac[6];\toffset:2;\tsize:6;\tsigned:0;\n";
    let format = nyquist_perf::file::TracepointFormat::parse("a", text).unwrap();
    let event = occurrences("a:b", Details::Fields(format));
    PerfDecoder {
        additional_events: [(100, event)].into_iter().collect(),
        ..events(SampleType::RAW, Architecture::X86_64)
    }
}

fn occurrence(event: Option<Event>) -> crate::event::Occurrence {
    match kind(event) {
        EventKind::Occurrence(occurrence) => *occurrence,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_sample_of_another_event_is_an_occurrence() {
    let events = tracepoint();
    // The length, then 20 bytes: the fields of all tracepoints, the number -2, the text's place 16 and length
    // 3, and the text.
    let text = u64::from(u32::from_le_bytes(*b"ab\0x"));
    let fields = [20, pair(0, 0xffff_fffe), pair(16 | 3 << 16, text)];
    let occurrence = occurrence(sample(&events, 1, &fields));
    assert_eq!((occurrence.sample.tid, occurrence.count, &*occurrence.kind.name), (Tid(12), 50, "a:b"));
    let text = FieldValue::String("ab".into());
    assert_eq!(occurrence.values, [FieldValue::Integer(-2), text]);
    let keys: Vec<_> = occurrence.kind.schema.fields.iter().map(|field| &*field.key).collect();
    assert_eq!(keys, ["event_count", "size", "text"]);
}

#[test]
fn data_too_short_or_misdirected_has_no_values() {
    let events = tracepoint();
    let short = occurrence(sample(&events, 1, &[4]));
    assert_eq!(short.values, [FieldValue::Missing, FieldValue::Missing]);
    let outside = occurrence(sample(&events, 1, &[20, pair(0, 5), pair(0xffff | 0xffff << 16, 0)]));
    assert_eq!(outside.values, [FieldValue::Integer(5), FieldValue::Missing]);
}

#[test]
fn an_address_is_a_field() {
    let event = occurrences("faults", Details::Address);
    let events = PerfDecoder {
        additional_events: [(100, event)].into_iter().collect(),
        ..events(SampleType::ADDR, Architecture::X86_64)
    };
    let words = [100, pair(11, 12), 1000, 0xadd4, 3, 50];
    let occurrence = occurrence(read(&events, &record(record::SAMPLE, 1, &words)));
    assert_eq!(occurrence.values, [FieldValue::Integer(0xadd4)]);
}

#[test]
fn another_events_losses_are_no_sample_losses() {
    let events = tracepoint();
    let words = [100, 9, pair(11, 12), 1000, 3, 100];
    let lost = read(&events, &record(record::LOST, 0, &words));
    assert_eq!(kind(lost), EventKind::OccurrencesLost { records: 9 });
    let paused = [1000, 100, 100, pair(11, 12), 1000, 3, 100];
    assert_eq!(read(&events, &record(record::THROTTLE, 0, &paused)), None);
}

/// One of 50 occurrences is recorded, as the recorder requested, and the samples have no period.
#[test]
fn a_sample_without_its_period_is_read() {
    let occurs = OccurrenceEvent::new("faults", Details::Address, Some(50), 10);
    let event =
        AdditionalEvent { kind: AdditionalEventKind::Occurrences(occurs), fields: SampleFields::NoPeriod };
    let events = PerfDecoder {
        additional_events: [(100, Arc::new(event))].into_iter().collect(),
        ..events(SampleType::ADDR.with(SampleType::RAW), Architecture::X86_64)
    };
    let words = [100, pair(11, 12), 1000, 0xadd4, 3, 4];
    let occurrence = occurrence(read(&events, &record(record::SAMPLE, 1, &words)));
    assert_eq!((occurrence.count, &*occurrence.values), (50, &[FieldValue::Integer(0xadd4)][..]));
}

/// The tracepoint `sched:sched_waking` in hard interrupts and in system calls.
#[test]
fn a_wakeup_says_which_thread_and_context() {
    let text = "name: sched_waking\nID: 7\nformat:\n\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;
\tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n";
    let format = nyquist_perf::file::TracepointFormat::parse("sched", text).unwrap();
    let event =
        AdditionalEvent { kind: AdditionalEventKind::Wakeups(format), fields: SampleFields::NoPeriod };
    let events = PerfDecoder {
        additional_events: [(100, Arc::new(event))].into_iter().collect(),
        ..events(SampleType::RAW, Architecture::X86_64)
    };
    let woken = |flags: u64| {
        // The length, then 28 bytes: the fields of all tracepoints, a name, and the thread.
        let fields = [pair(28, flags << 16), 0, 0, pair(0, 77)];
        let words: Vec<_> = [100, pair(11, 12), 1000, 3].into_iter().chain(fields).collect();
        match kind(read(&events, &record(record::SAMPLE, 1, &words))) {
            EventKind::Wakeup(wakeup) => (wakeup.sample.tid, wakeup.woken, wakeup.in_interrupt),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(woken(1), (Tid(12), Tid(77), false));
    assert_eq!([8, 16].map(|flags| woken(flags).2), [true; 2]);
}

/// Each CPU has its own counter.
#[test]
fn an_occurrence_has_the_events_counter() {
    let occurs = OccurrenceEvent::new("faults", Details::None, None, 10);
    let event =
        AdditionalEvent { kind: AdditionalEventKind::Occurrences(occurs), fields: SampleFields::Count };
    let mut events = PerfDecoder {
        additional_events: [(100, Arc::new(event))].into_iter().collect(),
        ..events(SampleType::RAW, Architecture::X86_64)
    };
    events.format.read_format = ReadFormat::ID;
    // In place of the period: the count, and the number of the event.
    let words = [100, pair(11, 12), 1000, 3, 777, 100, 4];
    let occurrence = occurrence(read(&events, &record(record::SAMPLE, 1, &words)));
    let value = CounterValue::Total(777);
    assert_eq!(occurrence.counter, Some(OccurrenceCounter { id: 100, tid: None, value }));
}
