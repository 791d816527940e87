//! Handmade records, byte for byte in the layout of the kernel's header, and the parsed results.

use nyquist_perf::abi::{context, misc, record, x86};
use nyquist_perf::{
    ByteOrder, CpuMode, MappedIdentity, ReadFormat, Record, RecordBody, RecordError, RecordFormat,
    RegisterAbi, Sample, SampleType, Switch, Task, parse_record,
};

/// The fields of a record in sequence.
#[derive(Clone, Default)]
struct Bytes(Vec<u8>);

impl Bytes {
    fn u16(mut self, value: u16) -> Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn u32(mut self, value: u32) -> Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn u64(mut self, value: u64) -> Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn words(self, values: impl IntoIterator<Item = u64>) -> Self {
        values.into_iter().fold(self, Self::u64)
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self
    }

    /// A text with a terminating zero, padded to a multiple of 8.
    fn text(mut self, text: &[u8]) -> Self {
        self.0.extend(text);
        self.0.push(0);
        self.0.resize(self.0.len().next_multiple_of(8), 0);
        self
    }

    /// The whole record.
    fn record(self, kind: u32, misc: u16) -> Vec<u8> {
        let size = u16::try_from(self.0.len() + 8).unwrap();
        Bytes::default().u32(kind).u16(misc).u16(size).bytes(&self.0).0
    }
}

fn body() -> Bytes {
    Bytes::default()
}

/// An event whose records end with thread, time and CPU.
fn with_trailer() -> RecordFormat {
    let sample_type = SampleType::TID.with(SampleType::TIME).with(SampleType::CPU);
    RecordFormat { sample_type, sample_id_all: true, ..RecordFormat::default() }
}

fn trailer(body: Bytes) -> Bytes {
    body.u32(11).u32(12).u64(1_000_000).u32(3).u32(0)
}

/// Checks that a record contains its thread, time and CPU, and passes its body to `check`.
fn with_body(bytes: &[u8], check: impl FnOnce(RecordBody<'_>)) {
    let record = parse_record(bytes, &with_trailer()).unwrap();
    assert_eq!(record.id.task, Some((11, 12)));
    assert_eq!(record.id.time, Some(1_000_000));
    assert_eq!(record.id.cpu, Some(3));
    check(record.body);
}

#[test]
fn mmap_records_have_path_and_range() {
    let bytes = body().u32(1).u32(2).u64(0x1000).u64(0x2000).u64(0x3000).text(b"/bin/x");
    with_body(&trailer(bytes).record(record::MMAP, misc::MMAP_DATA), |body| {
        let RecordBody::Mmap(mmap) = body else { panic!("{body:?}") };
        assert_eq!((mmap.pid, mmap.tid), (1, 2));
        assert_eq!((mmap.address, mmap.len, mmap.page_offset), (0x1000, 0x2000, 0x3000));
        assert_eq!((mmap.path, mmap.data), (&b"/bin/x"[..], true));
        assert_eq!((mmap.identity, mmap.protection), (MappedIdentity::None, None));
    });
}

#[test]
fn mmap2_records_have_an_inode() {
    let bytes = body().u32(1).u32(2).u64(0x1000).u64(0x2000).u64(0x3000);
    let bytes = bytes.u32(8).u32(1).u64(99).u64(7).u32(5).u32(2).text(b"/lib/y");
    with_body(&trailer(bytes).record(record::MMAP2, 0), |body| {
        let RecordBody::Mmap(mmap) = body else { panic!("{body:?}") };
        assert_eq!(mmap.identity, MappedIdentity::Inode { major: 8, minor: 1, inode: 99, generation: 7 });
        assert_eq!((mmap.protection, mmap.flags, mmap.data), (Some(5), Some(2), false));
        assert_eq!(mmap.path, b"/lib/y");
    });
}

/// perf of RHEL 7 says `0x400000 /usr/bin/true` of such a record.
#[test]
fn mmap2_of_old_kernels_has_no_protection() {
    for path in [b"/usr/bin/true".as_slice(), b"[vdso]", b"//anon"] {
        let bytes = body().u32(1).u32(2).u64(0x1000).u64(0x2000).u64(0x3000);
        let bytes = bytes.u32(8).u32(1).u64(99).u64(7).text(path);
        with_body(&trailer(bytes).record(record::MMAP2, 0), |body| {
            let RecordBody::Mmap(mmap) = body else { panic!("{body:?}") };
            assert_eq!((mmap.protection, mmap.flags, mmap.data, mmap.path), (None, None, false, path));
        });
    }
}

fn mmap2_with_build_id(identity: [u8; 24]) -> Vec<u8> {
    let bytes = body().u32(1).u32(2).words([0x1000, 0x2000, 0x3000]);
    let bytes = bytes.bytes(&identity).u32(5).u32(2).text(b"/lib/y");
    trailer(bytes).record(record::MMAP2, misc::MMAP_BUILD_ID)
}

#[test]
fn mmap2_records_have_a_build_id() {
    for len in [8, 16, 20] {
        let mut identity = [0; 24];
        identity[0] = len;
        identity[4..4 + usize::from(len)].fill(0xab);
        with_body(&mmap2_with_build_id(identity), |body| {
            let RecordBody::Mmap(mmap) = body else { panic!("{body:?}") };
            assert_eq!(mmap.identity, MappedIdentity::BuildId(&vec![0xab; usize::from(len)]));
            assert_eq!(mmap.path, b"/lib/y");
        });
    }
}

/// The kernel marks records for events without build ids, if they come after an event with build ids.
#[test]
fn a_marked_mmap2_record_can_have_an_inode() {
    for (major, minor, inode, generation) in [
        (254, 1, 99, 7),
        (0, 27, 99, 0),
        (8, 1, 99, 0),
        (7, 255, 1 << 20, 0),
        (8, 1, 99, 1 << 31),
        (259, 4, 5, 6),
    ] {
        let mut identity = [0; 24];
        identity[..4].copy_from_slice(&u32::to_le_bytes(major));
        identity[4..8].copy_from_slice(&u32::to_le_bytes(minor));
        identity[8..16].copy_from_slice(&u64::to_le_bytes(inode));
        identity[16..].copy_from_slice(&u64::to_le_bytes(generation));
        with_body(&mmap2_with_build_id(identity), |body| {
            let RecordBody::Mmap(mmap) = body else { panic!("{body:?}") };
            assert_eq!(mmap.identity, MappedIdentity::Inode { major, minor, inode, generation });
        });
    }
}

#[test]
fn comm_records_have_name_and_exec() {
    let bytes = trailer(body().u32(1).u32(2).text(b"worker"));
    for (misc, exec) in [(misc::COMM_EXEC, true), (0, false)] {
        with_body(&bytes.clone().record(record::COMM, misc), |body| {
            let RecordBody::Comm(comm) = body else { panic!("{body:?}") };
            assert_eq!((comm.pid, comm.tid, comm.name, comm.exec), (1, 2, &b"worker"[..], exec));
        });
    }
}

#[test]
fn fork_and_exit_records_have_tasks() {
    let bytes = trailer(body().u32(1).u32(2).u32(3).u32(4).u64(5));
    let task = Task { pid: 1, parent_pid: 2, tid: 3, parent_tid: 4, time: 5 };
    with_body(&bytes.clone().record(record::FORK, 0), |body| assert_eq!(body, RecordBody::Fork(task)));
    with_body(&bytes.record(record::EXIT, 0), |body| assert_eq!(body, RecordBody::Exit(task)));
}

#[test]
fn loss_records_have_counts() {
    with_body(&trailer(body().u64(7).u64(40)).record(record::LOST, 0), |body| {
        let RecordBody::Lost(lost) = body else { panic!("{body:?}") };
        assert_eq!((lost.id, lost.records), (7, 40));
    });
    with_body(&trailer(body().u64(9)).record(record::LOST_SAMPLES, 0), |body| {
        assert_eq!(body, RecordBody::LostSamples(9));
    });
}

#[test]
fn throttle_records_have_time_and_ids() {
    let bytes = trailer(body().u64(1).u64(2).u64(3));
    with_body(&bytes.clone().record(record::THROTTLE, 0), |body| {
        let RecordBody::Throttle(throttle) = body else { panic!("{body:?}") };
        assert_eq!((throttle.time, throttle.id, throttle.stream_id), (1, 2, 3));
    });
    with_body(&bytes.record(record::UNTHROTTLE, 0), |body| {
        assert!(matches!(body, RecordBody::Unthrottle(_)));
    });
}

#[test]
fn switch_records_have_direction_and_other_task() {
    let (out, preempted) = (misc::SWITCH_OUT, misc::SWITCH_OUT | misc::SWITCH_OUT_PREEMPT);
    let check = |kind, fields: Bytes, misc, expected| {
        with_body(&trailer(fields).record(kind, misc), |body| assert_eq!(body, RecordBody::Switch(expected)));
    };
    check(record::SWITCH, body(), 0, Switch { out: false, preempted: false, other: None });
    check(record::SWITCH, body(), out, Switch { out: true, preempted: false, other: None });
    let other = Some((8, 9));
    let expected = Switch { out: true, preempted: true, other };
    check(record::SWITCH_CPU_WIDE, body().u32(8).u32(9), preempted, expected);
}

#[test]
fn namespace_records_have_links_or_are_refused() {
    let bytes = trailer(body().u32(1).u32(2).u64(2).words([3, 4, 5, 6]));
    with_body(&bytes.record(record::NAMESPACES, 0), |body| {
        let RecordBody::Namespaces(namespaces) = body else { panic!("{body:?}") };
        assert_eq!(namespaces.links().collect::<Vec<_>>(), [(3, 4), (5, 6)]);
    });
    let bytes = trailer(body().u32(1).u32(2).u64(u64::MAX)).record(record::NAMESPACES, 0);
    let error = parse_record(&bytes, &with_trailer()).unwrap_err();
    assert_eq!(error, RecordError::Count { field: "namespaces", count: u64::MAX });
}

#[test]
fn kernel_symbol_records_have_name_and_range() {
    let bytes = trailer(body().u64(0xffff_ffff_c000_0000).u32(64).u16(1).u16(1).text(b"bpf_prog_x"));
    with_body(&bytes.record(record::KSYMBOL, 0), |body| {
        let RecordBody::KernelSymbol(symbol) = body else { panic!("{body:?}") };
        assert_eq!((symbol.address, symbol.len, symbol.kind), (0xffff_ffff_c000_0000, 64, 1));
        assert_eq!((symbol.unregistered, symbol.name), (true, &b"bpf_prog_x"[..]));
    });
}

#[test]
fn bpf_records_have_id_and_tag() {
    let bytes = trailer(body().u16(2).u16(0).u32(77).bytes(b"tagtagta"));
    with_body(&bytes.record(record::BPF_EVENT, 0), |body| {
        let RecordBody::Bpf(event) = body else { panic!("{body:?}") };
        assert_eq!((event.kind, event.flags, event.id, &event.tag), (2, 0, 77, b"tagtagta"));
    });
}

#[test]
fn cgroup_records_have_id_and_path() {
    with_body(&trailer(body().u64(4).text(b"/user.slice")).record(record::CGROUP, 0), |body| {
        let RecordBody::Cgroup(cgroup) = body else { panic!("{body:?}") };
        assert_eq!((cgroup.id, cgroup.path), (4, &b"/user.slice"[..]));
    });
}

#[test]
fn text_poke_records_have_old_and_new_bytes() {
    let bytes = trailer(body().u64(0x8000).u16(1).u16(3).bytes(&[0xcc, 0xe9, 0, 1]));
    with_body(&bytes.record(record::TEXT_POKE, 0), |body| {
        let RecordBody::TextPoke(poke) = body else { panic!("{body:?}") };
        assert_eq!((poke.address, poke.old, poke.new), (0x8000, &[0xcc][..], &[0xe9, 0, 1][..]));
    });
}

#[test]
fn other_types_are_kept() {
    with_body(&trailer(body().u64(5)).record(99, 0), |body| {
        assert_eq!(body, RecordBody::Unknown(&[5, 0, 0, 0, 0, 0, 0, 0]));
    });
}

#[test]
fn counters_at_the_end_of_a_thread() {
    let format = RecordFormat { read_format: ReadFormat::ID.with(ReadFormat::LOST), ..with_trailer() };
    let bytes = trailer(body().u32(1).u32(2).words([500, 7, 1])).record(record::READ, 0);
    let record = parse_record(&bytes, &format).unwrap();
    let RecordBody::Read(read) = record.body else { panic!("{record:?}") };
    let counter = read.counters.first().unwrap();
    assert_eq!((read.pid, read.tid), (1, 2));
    assert_eq!((counter.value, counter.id, counter.lost), (500, Some(7), Some(1)));
}

#[test]
fn an_event_without_trailers_is_all_body() {
    let bytes = body().u32(1).u32(2).text(b"x").record(record::COMM, 0);
    let record = parse_record(&bytes, &RecordFormat::default()).unwrap();
    assert_eq!(record.id, nyquist_perf::RecordId::default());
    assert!(matches!(record.body, RecordBody::Comm(comm) if comm.name == b"x"));
}

#[test]
fn a_trailer_has_its_fields_in_the_kernels_order() {
    let sample_type = [SampleType::TIME, SampleType::ID, SampleType::STREAM_ID, SampleType::IDENTIFIER]
        .into_iter()
        .fold(with_trailer().sample_type, SampleType::with);
    let format = RecordFormat { sample_type, sample_id_all: true, ..RecordFormat::default() };
    let bytes =
        body().u64(1).u32(2).u32(3).words([4, 5, 6]).u32(7).u32(0).u64(8).record(record::LOST_SAMPLES, 0);
    let id = parse_record(&bytes, &format).unwrap().id;
    assert_eq!((id.task, id.time), (Some((2, 3)), Some(4)));
    assert_eq!((id.id, id.stream_id, id.cpu), (Some(8), Some(6), Some(7)));
}

const ALL_BITS: u64 = (1 << 25) - 1;

/// A sample format with all of these fields, and all data that a field's layout depends on.
fn sample_format(sample_type: u64) -> RecordFormat {
    RecordFormat {
        sample_type: SampleType(sample_type),
        read_format: ReadFormat::ID,
        user_registers: 1 << x86::BP | 1 << x86::SP | 1 << x86::IP,
        interrupt_registers: 1 << x86::IP,
        branch_sample_type: 1 << 17,
        sample_id_all: true,
        byte_order: ByteOrder::Little,
    }
}

/// Every field that a sample can have, in the kernel's order, each with different numbers.
fn sample_fields() -> Vec<(SampleType, Bytes)> {
    vec![
        (SampleType::IDENTIFIER, body().u64(100)),
        (SampleType::IP, body().u64(101)),
        (SampleType::TID, body().u32(102).u32(103)),
        (SampleType::TIME, body().u64(104)),
        (SampleType::ADDR, body().u64(105)),
        (SampleType::ID, body().u64(100)),
        (SampleType::STREAM_ID, body().u64(107)),
        (SampleType::CPU, body().u32(108).u32(0)),
        (SampleType::PERIOD, body().u64(109)),
        (SampleType::READ, body().words([110, 100])),
        (SampleType::CALLCHAIN, body().words([3, context::USER, 111, 112])),
        (SampleType::RAW, body().u32(4).bytes(b"rawd")),
        (SampleType::BRANCH_STACK, body().words([1, 113, 114, 115, 116])),
        (SampleType::REGS_USER, body().words([2, 117, 118, 119])),
        (SampleType::STACK_USER, body().words([16, 120, 121, 12])),
        (SampleType::WEIGHT, body().u64(122)),
        (SampleType::DATA_SRC, body().u64(123)),
        (SampleType::TRANSACTION, body().u64(124)),
        (SampleType::REGS_INTR, body().words([2, 125])),
        (SampleType::PHYS_ADDR, body().u64(126)),
        (SampleType::CGROUP, body().u64(127)),
        (SampleType::DATA_PAGE_SIZE, body().u64(128)),
        (SampleType::CODE_PAGE_SIZE, body().u64(129)),
        (SampleType::AUX, body().u64(8).u64(130)),
    ]
}

/// A sample with the requested fields.
fn sample(format: &RecordFormat) -> Vec<u8> {
    let requested = sample_fields().into_iter().filter(|(bit, _)| format.sample_type.contains(*bit));
    requested.fold(body(), |bytes, (_, field)| bytes.bytes(&field.0)).record(record::SAMPLE, 2)
}

/// Checks every field of a sample against its presence in the format.
fn check_sample(record: &Record<'_>, sample: &Sample<'_>, format: &RecordFormat) {
    let has = |bit| format.sample_type.contains(bit);
    let number = |bit, value: u64| has(bit).then_some(value);
    assert_eq!(sample.ip, number(SampleType::IP, 101));
    assert_eq!(record.id.task, has(SampleType::TID).then_some((102, 103)));
    assert_eq!(record.id.time, number(SampleType::TIME, 104));
    assert_eq!(sample.data_address, number(SampleType::ADDR, 105));
    assert_eq!(record.id.stream_id, number(SampleType::STREAM_ID, 107));
    assert_eq!(record.id.cpu, has(SampleType::CPU).then_some(108));
    assert_eq!(sample.period, number(SampleType::PERIOD, 109));
    let counter = sample.counters.and_then(|counters| counters.first());
    assert_eq!(counter.map(|counter| counter.value), number(SampleType::READ, 110));
    let chain = sample.callchain.map(|chain| chain.iter().collect::<Vec<_>>());
    assert_eq!(chain, has(SampleType::CALLCHAIN).then(|| vec![context::USER, 111, 112]));
    assert_eq!(sample.raw, has(SampleType::RAW).then_some(&b"rawd"[..]));
    let branch = sample.branches.and_then(|branches| branches.iter().next());
    assert_eq!(
        branch.map(|branch| (branch.from, branch.to)),
        has(SampleType::BRANCH_STACK).then_some((114, 115))
    );
    assert_eq!(sample.user_registers.and_then(|r| r.get(x86::SP)), number(SampleType::REGS_USER, 118));
    assert_eq!(
        sample.user_stack.map(|s| (s.bytes.len(), s.room)),
        has(SampleType::STACK_USER).then_some((12, 16))
    );
    assert_eq!(sample.weight, number(SampleType::WEIGHT, 122));
    assert_eq!(sample.data_source, number(SampleType::DATA_SRC, 123));
    assert_eq!(sample.transaction, number(SampleType::TRANSACTION, 124));
    assert_eq!(sample.interrupt_registers.and_then(|r| r.get(x86::IP)), number(SampleType::REGS_INTR, 125));
    assert_eq!(sample.physical_address, number(SampleType::PHYS_ADDR, 126));
    assert_eq!(sample.cgroup, number(SampleType::CGROUP, 127));
    assert_eq!(sample.data_page_size, number(SampleType::DATA_PAGE_SIZE, 128));
    assert_eq!(sample.code_page_size, number(SampleType::CODE_PAGE_SIZE, 129));
    assert_eq!(sample.aux.map(<[u8]>::len), has(SampleType::AUX).then_some(8));
}

fn check_format(sample_type: u64) {
    // There are two kinds of weight, and an event can have only one of them.
    let format = sample_format(sample_type & ALL_BITS & !SampleType::WEIGHT_STRUCT.0);
    let bytes = sample(&format);
    let record = parse_record(&bytes, &format).unwrap();
    let RecordBody::Sample(sample) = &record.body else { panic!("{record:?}") };
    assert_eq!(record.header.cpu_mode(), CpuMode::User);
    check_sample(&record, sample, &format);
}

#[test]
fn samples_with_every_pair_of_fields() {
    for first in 0..25 {
        for second in 0..25 {
            check_format(1 << first | 1 << second);
            check_format(!(1 << first | 1 << second));
        }
    }
}

#[test]
fn samples_with_many_mixtures_of_fields() {
    let mut mixture = 1_u64;
    for _ in 0..20_000 {
        mixture = mixture.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        check_format(mixture >> 20);
    }
}

#[test]
fn the_events_number_is_read_from_either_field() {
    for bit in [SampleType::ID, SampleType::IDENTIFIER] {
        let format = sample_format(bit.0);
        assert_eq!(parse_record(&sample(&format), &format).unwrap().id.id, Some(100));
    }
}

/// The only field of a sample.
fn with_field(format: &RecordFormat, field: Bytes, check: impl FnOnce(&Sample<'_>)) {
    let bytes = field.record(record::SAMPLE, 1);
    let record = parse_record(&bytes, format).unwrap();
    let RecordBody::Sample(sample) = &record.body else { panic!("{record:?}") };
    check(sample);
}

#[test]
fn registers_are_found_by_number() {
    let format = sample_format(SampleType::REGS_USER.0);
    with_field(&format, body().words([1, 5, 6, 7]), |sample| {
        let registers = sample.user_registers.unwrap();
        assert_eq!(registers.abi, Some(RegisterAbi::Bits32));
        let found =
            [x86::BP, x86::SP, x86::IP, x86::AX, 64, u32::MAX].map(|register| registers.get(register));
        assert_eq!(found, [Some(5), Some(6), Some(7), None, None, None]);
    });
}

#[test]
fn a_kernel_thread_has_no_registers_and_no_stack() {
    let format = sample_format(SampleType::REGS_USER.with(SampleType::STACK_USER).0);
    with_field(&format, body().words([0, 0]), |sample| {
        let registers = sample.user_registers.unwrap();
        assert_eq!((registers.abi, registers.get(x86::IP)), (None, None));
        assert_eq!(sample.user_stack.map(|stack| (stack.bytes.len(), stack.room)), Some((0, 0)));
    });
}

#[test]
fn groups_of_counters() {
    let read_format = [ReadFormat::GROUP, ReadFormat::ID, ReadFormat::LOST, ReadFormat::TOTAL_TIME_ENABLED]
        .into_iter()
        .fold(ReadFormat::TOTAL_TIME_RUNNING, ReadFormat::with);
    let format = RecordFormat { read_format, ..sample_format(SampleType::READ.0) };
    with_field(&format, body().words([2, 50, 40, 1, 2, 3, 4, 5, 6]), |sample| {
        let counters = sample.counters.unwrap();
        assert_eq!((counters.time_enabled, counters.time_running), (Some(50), Some(40)));
        let values: Vec<_> = counters.iter().map(|c| (c.value, c.id, c.lost)).collect();
        assert_eq!(values, [(1, Some(2), Some(3)), (4, Some(5), Some(6))]);
    });
}

#[test]
fn a_single_counters_times_follow_its_value() {
    let check = |read_format: ReadFormat, words: &[u64], times, counter| {
        let format = RecordFormat { read_format, ..sample_format(SampleType::READ.0) };
        with_field(&format, body().words(words.iter().copied()), |sample| {
            let counters = sample.counters.unwrap();
            assert_eq!((counters.time_enabled, counters.time_running), times);
            let found: Vec<_> = counters.iter().map(|c| (c.value, c.id, c.lost)).collect();
            assert_eq!(found, [counter]);
        });
    };
    let (enabled, running) = (ReadFormat::TOTAL_TIME_ENABLED, ReadFormat::TOTAL_TIME_RUNNING);
    check(ReadFormat::default(), &[1], (None, None), (1, None, None));
    check(running, &[1, 3], (None, Some(3)), (1, None, None));
    check(enabled.with(ReadFormat::LOST), &[1, 2, 3], (Some(2), None), (1, None, Some(3)));
    let all = enabled.with(running).with(ReadFormat::ID).with(ReadFormat::LOST);
    check(all, &[1, 2, 3, 4, 5], (Some(2), Some(3)), (1, Some(4), Some(5)));
}

#[test]
fn branches_can_have_counters() {
    let format = RecordFormat { branch_sample_type: 1 << 19, ..sample_format(SampleType::BRANCH_STACK.0) };
    with_field(&format, body().words([2, 1, 2, 3, 4, 5, 6, 7, 8]), |sample| {
        let branches = sample.branches.unwrap();
        assert_eq!(branches.hardware_index, None);
        assert_eq!(branches.iter().map(|branch| branch.flags).collect::<Vec<_>>(), [3, 6]);
        assert_eq!(branches.counters.unwrap().iter().collect::<Vec<_>>(), [7, 8]);
    });
}

#[test]
fn counts_beyond_the_record_are_errors() {
    let check = |bit: SampleType, field: Bytes, name, count| {
        let error = parse_record(&field.record(record::SAMPLE, 0), &sample_format(bit.0)).unwrap_err();
        assert_eq!(error, RecordError::Count { field: name, count });
    };
    check(SampleType::CALLCHAIN, body().u64(u64::MAX), "call chain", u64::MAX);
    check(SampleType::CALLCHAIN, body().words([2, 1]), "call chain", 2);
    check(SampleType::RAW, body().u32(5).u32(0), "raw data", 5);
    check(SampleType::BRANCH_STACK, body().words([1 << 61, 0]), "branch stack", 1 << 61);
    check(SampleType::STACK_USER, body().words([9, 0]), "stack", 9);
    check(SampleType::STACK_USER, body().words([8, 0, 9]), "stack's dynamic size", 9);
    check(SampleType::AUX, body().u64(1), "AUX data", 1);
}

#[test]
fn a_header_that_lies_is_an_error() {
    let bytes = body().u64(0).record(record::LOST_SAMPLES, 0);
    for size in [0_u16, 7, 17, u16::MAX] {
        let mut bytes = bytes.clone();
        bytes[6..8].copy_from_slice(&size.to_le_bytes());
        let error = parse_record(&bytes, &RecordFormat::default()).unwrap_err();
        assert_eq!(error, RecordError::Size { size, have: 16 });
    }
    assert!(parse_record(&bytes[..7], &RecordFormat::default()).is_err());
    assert!(parse_record(&[], &RecordFormat::default()).is_err());
}

/// Bytes that are not a record, but whose headers lead to every parser.
#[test]
fn no_bytes_make_the_parser_panic() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut understood = 0;
    for _ in 0..100_000 {
        let small = random() % 4;
        let words = random() % 24;
        // Small numbers give counts that fit, so that parsing continues after them.
        let bytes = (0..words).fold(body(), |bytes, _| bytes.u64(random() >> (16 * small + random() % 16)));
        let kind = (random() % 23) as u32;
        let format = RecordFormat {
            sample_type: SampleType(random() & random() & ALL_BITS),
            read_format: ReadFormat(random() % 32),
            user_registers: random() & random() & random(),
            interrupt_registers: random() & random() & random(),
            branch_sample_type: random(),
            sample_id_all: random() % 2 == 0,
            byte_order: if random() % 2 == 0 { ByteOrder::Little } else { ByteOrder::Big },
        };
        let bytes = bytes.record(kind, random() as u16);
        if let Ok(record) = parse_record(&bytes, &format) {
            understood += 1;
            touch(&record);
        }
    }
    assert!(understood > 10_000, "only {understood} of the records were understood");
}

/// Reads every list of a record.
fn touch(record: &Record<'_>) {
    match &record.body {
        RecordBody::Sample(sample) => {
            let _ = sample.counters.map(|counters| counters.iter().count());
            let _ = sample.branches.map(|branches| branches.iter().count());
            let _ = sample.callchain.map(|chain| chain.iter().count());
            let _ = sample.user_registers.map(|registers| registers.get(63));
        }
        RecordBody::Namespaces(namespaces) => drop(namespaces.links().collect::<Vec<_>>()),
        RecordBody::Read(read) => drop(read.counters.iter().collect::<Vec<_>>()),
        _ => {}
    }
}
