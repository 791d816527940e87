//! Converts handmade recordings: which events become samples, their order, and stacks that come late.

use std::io::Cursor;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use nyquist_convert::event::{Event, EventKind, Timestamp};
use nyquist_convert::perf_data::{ImportError, ImportOptions, ImportedProfile, RecordingWriter, import};
use nyquist_convert::{ConversionResult, name_by_address};
use nyquist_object::elf::Architecture;
use nyquist_perf::abi::{context, x86};
use nyquist_perf::file::{Features, FileReader, FileWriter, WrittenEvent, record, tool_record};
use nyquist_perf::{AttrFlags, ByteOrder, EventAttr, MappedIdentity, Mmap, RecordId, SampleType, Task};
use nyquist_profile::{Measure, Profile, Unit};

const MS: u64 = 1_000_000;

fn event(kind: u32, config: u64, id: u64, name: &str, flags: u64) -> WrittenEvent {
    let sample_type = SampleType::IDENTIFIER
        .with(SampleType::IP)
        .with(SampleType::TID)
        .with(SampleType::TIME)
        .with(SampleType::PERIOD)
        .with(SampleType::CALLCHAIN);
    let flags = AttrFlags(AttrFlags::SAMPLE_ID_ALL.0 | flags);
    let attr = EventAttr { kind, config, sample_period: MS, sample_type, flags, ..EventAttr::default() };
    WrittenEvent { attr, name: name.to_owned(), ids: vec![(id, None)] }
}

fn id(id: u64, time_ms: u64) -> RecordId {
    RecordId { task: Some((7, 8)), time: Some(time_ms * MS), id: Some(id), ..RecordId::default() }
}

fn sample(event: &WrittenEvent, time_ms: u64, chain: &[u64]) -> Vec<u8> {
    let format = event.attr.record_format(ByteOrder::Little);
    let mode = if chain[0] == context::KERNEL { 1 } else { 2 };
    format.encode_sample(mode, (chain[1], MS), chain, &id(event.ids[0].0, time_ms))
}

fn written(events: &[WrittenEvent], records: &[Vec<u8>], features: &Features) -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let mut writer = FileWriter::new(Cursor::new(Vec::new()), events.to_vec()).unwrap();
    for record in records {
        writer.write_records(record).unwrap();
    }
    let bytes = writer.finish(features).unwrap().into_inner();
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("nyquist-import-{}-{number}", std::process::id()));
    std::fs::write(&path, bytes).unwrap();
    path
}

fn imported(
    events: &[WrittenEvent],
    records: &[Vec<u8>],
    options: ImportOptions,
) -> Result<ImportedProfile, ImportError> {
    let path = written(events, records, &Features::default());
    let reader = FileReader::open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    import(reader, options)
}

/// Each sample as its time in ms and its stack, outermost first.
fn samples(profile: &Profile) -> Vec<String> {
    let profile = name_by_address(profile.clone());
    let samples = profile.threads().iter().flat_map(|thread| &thread.samples);
    let line = |sample: nyquist_profile::Sample| {
        let mut names: Vec<_> =
            sample.stack.into_iter().flat_map(|stack| profile.stack_frames(stack)).collect();
        names.reverse();
        let names: Vec<_> = names.into_iter().map(|frame| profile.func_name(frame.func)).collect();
        format!("{} {}", sample.time / MS, names.join(";"))
    };
    samples.map(line).collect()
}

fn clock() -> WrittenEvent {
    event(1, 0, 1, "cpu-clock:u", 0)
}

/// As in a recording of a hardware trace, in which perf itself shows no samples.
#[test]
fn without_samples_the_program_is_the_start() {
    let format = clock().attr.record_format(ByteOrder::Little);
    let at = |time_ms| RecordId { time: Some(time_ms * MS), ..id(1, time_ms) };
    let records = [
        format.encode_comm((7, 7), b"before", false, &at(0)),
        format.encode_comm((7, 8), b"app", true, &at(641_000)),
        format.encode_exit(
            &Task { pid: 7, parent_pid: 7, tid: 8, parent_tid: 7, time: 641_002 * MS },
            &at(641_002),
        ),
    ];
    let imported = imported(&[clock()], &records, ImportOptions::default()).unwrap();
    assert_eq!(imported.finished.profile.duration() / MS, 2);
}

fn faults() -> WrittenEvent {
    event(1, 2, 2, "page-faults", 0)
}

#[test]
fn clock_samples_are_shown_and_others_on_request() {
    let events = [faults(), clock()];
    let user = |address| [context::USER, address];
    let records = [sample(&events[1], 10, &user(0x10)), sample(&events[0], 11, &user(0x20))];
    let check = |requested: &[&str], expected: &[&str]| {
        let requested = requested.iter().map(|name| (*name).to_owned()).collect();
        let options = ImportOptions { events: requested, ..ImportOptions::default() };
        let imported = imported(&events, &records, options).unwrap();
        assert_eq!(samples(&imported.finished.profile), expected);
        assert_eq!(imported.events.iter().map(|event| event.samples).collect::<Vec<_>>(), [1, 1]);
    };
    check(&[], &["0 0x10"]);
    check(&["page-faults"], &["0 0x20"]);
    check(&["cpu-clock"], &["0 0x10"]);
    let refused = |requested: &[&str]| {
        let requested = requested.iter().map(|name| (*name).to_owned()).collect();
        let options = ImportOptions { events: requested, ..ImportOptions::default() };
        imported(&events, &records, options).unwrap_err().to_string()
    };
    assert_eq!(refused(&["cycles"]), "the recording has no event named cycles");
    let different = "page-faults and cpu-clock:u count different things, and one profile shows one of them";
    assert_eq!(refused(&["cpu-clock", "page-faults"]), different);
}

/// The measure of a recording of one event, and the weights of its samples. Each sample has its own period.
fn measured(event: &WrittenEvent, periods: &[u64]) -> (Measure, u64, Vec<u64>) {
    let format = event.attr.record_format(ByteOrder::Little);
    let record = |(time, period): (u64, &u64)| {
        format.encode_sample(2, (0x10, *period), &[context::USER, 0x10], &id(1, time))
    };
    let records: Vec<_> = (10..).zip(periods).map(record).collect();
    let profile =
        imported(std::slice::from_ref(event), &records, ImportOptions::default()).unwrap().finished.profile;
    let weights = profile.threads().iter().flat_map(|thread| &thread.samples).map(|sample| sample.weight);
    (profile.meta().measure.clone(), profile.meta().interval, weights.collect())
}

#[test]
fn what_is_no_time_is_counted_by_its_periods() {
    let of = |kind, config, name: &str, period, flags| {
        let mut event = event(kind, config, 1, name, flags);
        event.attr.sample_period = period;
        event
    };
    let count = |name: &str| Measure { name: name.to_owned(), unit: Unit::Count };
    let freq = AttrFlags::FREQ.0;
    let faults = of(1, 2, "page-faults", 1000, freq);
    assert_eq!(measured(&faults, &[1, 300, 7]), (count("page-faults"), 1, vec![1, 300, 7]));
    let tracepoint = of(2, 777, "syscalls:sys_enter_mmap", 1, 0);
    assert_eq!(measured(&tracepoint, &[1, 1]), (count("syscalls:sys_enter_mmap"), 1, vec![1, 1]));
    let instructions = of(0, 1, "instructions:u", 100_000, 0);
    assert_eq!(measured(&instructions, &[100_000; 2]), (count("instructions:u"), 100_000, vec![1, 1]));
    // Cycles at a frequency serve as a clock: each sample has its share of the cycles, in sixteenths of an
    // interval, and the first periods have none. With a fixed period, their time is not known.
    let cycles = of(0, 0, "cycles", 1000, freq);
    assert_eq!(measured(&cycles, &[5, 900_000, 450_000]), (Measure::default(), MS / 16, vec![19, 10]));
    let cycles = of(0, 0, "cycles", 1_000_000, 0);
    assert_eq!(measured(&cycles, &[1_000_000]), (count("cycles"), 1_000_000, vec![1]));
}

/// The profile of a recording of context switches: its measure, and each sample's weight and whether it is
/// off the CPU.
fn of_switches(flags: u64, command_line: &str) -> (Measure, Vec<(u64, bool)>) {
    let mut switch = event(2, 91, 1, "sched:sched_switch", flags);
    switch.attr.sample_period = 1;
    let events = [switch];
    let format = events[0].attr.record_format(ByteOrder::Little);
    let record = |time| format.encode_sample(2, (0x10, 1), &[context::USER, 0x10], &id(1, time));
    let features = Features {
        command_line: command_line.split(' ').map(str::to_owned).collect(),
        ..Features::default()
    };
    let path = written(&events, &[record(10), record(12), record(15)], &features);
    let reader = FileReader::open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let profile = import(reader, ImportOptions::default()).unwrap().finished.profile;
    let samples = profile.threads().iter().flat_map(|thread| &thread.samples);
    (profile.meta().measure.clone(), samples.map(|sample| (sample.weight, sample.off_cpu)).collect())
}

#[test]
fn switches_of_some_threads_measure_no_waits() {
    let switches = Measure { name: "sched:sched_switch".to_owned(), unit: Unit::Count };
    let counted = (switches, vec![(1, false); 3]);
    assert_eq!(
        of_switches(AttrFlags::ENABLE_ON_EXEC.0, "perf record -e sched:sched_switch ./app -a"),
        counted
    );
    assert_eq!(of_switches(0, "perf record -e sched:sched_switch -p 7"), counted);
    assert_eq!(of_switches(0, "perf record -e sched:sched_switch --tid=8"), counted);
    // In recordings of whole CPUs, or with switch records, it is known when threads return.
    for (flags, command_line) in
        [(0, "perf record -ag sleep 1 -p 7"), (AttrFlags::CONTEXT_SWITCH.0, "perf record -p 7")]
    {
        let (measure, samples) = of_switches(flags, command_line);
        assert_eq!(measure, Measure::default());
        assert!(samples.iter().all(|(_, off_cpu)| *off_cpu), "{samples:?}");
    }
}

#[test]
fn records_are_ordered_without_rounds_too() {
    let events = [clock()];
    let records = [30, 10, 20].map(|time| sample(&events[0], time, &[context::USER, time]));
    let imported = imported(&events, &records, ImportOptions::default()).unwrap();
    assert_eq!(samples(&imported.finished.profile), ["0 0xa", "10 0x14", "20 0x1e"]);
}

#[test]
fn a_stack_that_comes_late_is_the_samples() {
    let events = [event(1, 0, 1, "cpu-clock", AttrFlags::DEFER_CALLCHAIN.0)];
    let deferred = |cookie: u64, chain: &[u64]| {
        let mut words = vec![cookie, chain.len() as u64];
        words.extend(chain);
        let trailer = [1_u64, 7 | 8 << 32, 13 * MS];
        // The trailer's order: thread, time, identifier.
        words.extend([trailer[1], trailer[2], trailer[0]]);
        record(22, 2, &words.into_iter().flat_map(u64::to_le_bytes).collect::<Vec<_>>())
    };
    let kernel = |cookie| [context::KERNEL, 0xffff_0010, context::USER_DEFERRED, cookie];
    let records = [
        sample(&events[0], 10, &kernel(5)),
        sample(&events[0], 11, &kernel(5)),
        sample(&events[0], 12, &kernel(6)),
        deferred(5, &[context::USER, 0x30, 0x21]),
    ];
    let imported = imported(&events, &records, ImportOptions::default()).unwrap();
    let profile = &imported.finished.profile;
    let expected = ["0 0x20;0x30;0xffff0010", "1 0x20;0x30;0xffff0010", "2 0xffff0010"];
    assert_eq!(samples(profile), expected);
}

#[test]
fn registers_are_of_the_user_states_architecture() {
    let mut events = [clock()];
    let sample_type = events[0].attr.sample_type.without(SampleType::CALLCHAIN).with(SampleType::REGS_USER);
    events[0].attr.sample_type = sample_type;
    events[0].attr.sample_regs_user = (1 << 33) - 1;
    // Identifier, instruction pointer, thread, time, period; then the kind of registers and their values.
    let mut words = vec![1, 0x10, 7 | 8 << 32, 10 * MS, MS, 2];
    words.extend((0..33).map(|register| 0x1000 + register));
    let sample = record(9, 2, &words.into_iter().flat_map(u64::to_le_bytes).collect::<Vec<_>>());
    let check = |architecture, expected: &str| {
        let options = ImportOptions { architecture: Some(architecture), ..ImportOptions::default() };
        let imported = imported(&events, std::slice::from_ref(&sample), options).unwrap();
        let innermost = samples(&imported.finished.profile)[0].rsplit([' ', ';']).next().unwrap().to_owned();
        assert_eq!(innermost, expected, "{architecture:?}");
    };
    check(Architecture::Aarch64, "0x1020");
    check(Architecture::X86_64, "0x1008");
}

/// A folder with files that a program wrote. It is removed at the end of the test.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A mapping of a file that has been removed from its path.
fn mapping(path: &str, protection: u32) -> Vec<u8> {
    let mmap = Mmap {
        pid: 7,
        tid: 8,
        address: 0x7000,
        len: 0x1000,
        page_offset: 0,
        identity: MappedIdentity::Inode { major: 1, minor: 2, inode: 3, generation: 4 },
        protection: Some(protection),
        flags: Some(2),
        path: path.as_bytes(),
        data: protection & 4 == 0,
    };
    clock().attr.record_format(ByteOrder::Little).encode_mmap(&mmap, 2, &id(1, 1))
}

#[test]
fn files_of_programs_are_found_in_aux_folders() {
    let folder = Folder(std::env::temp_dir().join(format!("nyquist-aux-{}", std::process::id())));
    std::fs::create_dir_all(&folder.0).unwrap();
    std::fs::write(folder.0.join("marker-7-8.txt"), "11000000 12000000 a marker\n").unwrap();
    std::fs::write(folder.0.join("perf-7.map"), "30 20 mapped\n").unwrap();
    let events = [clock()];
    let records = [
        mapping("/nowhere/marker-7-8.txt", 1),
        sample(&events[0], 10, &[context::USER, 0x34]),
        sample(&events[0], 13, &[context::USER, 0x38]),
    ];
    let markers = |aux_folders: Vec<PathBuf>| {
        let options = ImportOptions { aux_folders, ..ImportOptions::default() };
        let imported = imported(&events, &records, options).unwrap();
        let profile = imported.finished.profile;
        let markers = profile.threads().iter().flat_map(|thread| &thread.markers);
        let names: Vec<_> = markers.map(|marker| profile.string(marker.name).to_owned()).collect();
        let libs: Vec<_> = profile.libs().iter().map(|lib| lib.name.clone()).collect();
        (names, libs)
    };
    assert_eq!(markers(Vec::new()), (vec![], vec![]));
    let found = markers(vec![folder.0.join("missing"), folder.0.clone()]);
    assert_eq!(found, (vec!["a marker".to_owned()], vec!["perf-7.map".to_owned()]));
}

#[test]
fn virtual_machines_code_is_shown_as_such() {
    let events = [clock()];
    let format = events[0].attr.record_format(ByteOrder::Little);
    // `PERF_RECORD_MISC_GUEST_KERNEL` and `PERF_RECORD_MISC_GUEST_USER`.
    let guest = |mode, time, chain: &[u64]| format.encode_sample(mode, (0x10, MS), chain, &id(1, time));
    let records = [
        guest(4, 10, &[context::GUEST_KERNEL, 0x10]),
        guest(5, 11, &[context::GUEST_USER, 0x10]),
        guest(5, 12, &[]),
    ];
    let imported = imported(&events, &records, ImportOptions::default()).unwrap();
    let expected =
        ["0 [virtual machine's kernel]", "1 [virtual machine's program]", "2 [virtual machine's program]"];
    assert_eq!(samples(&imported.finished.profile), expected);
}

#[test]
fn hardware_traces_are_passed_over_with_a_word() {
    let events = [clock()];
    // `AUXTRACE`: the size of the data that follows the record, then where it belongs.
    let trace = [record(71, 0, &[&24_u64.to_le_bytes()[..], &[0; 32]].concat()), vec![0xff; 24]].concat();
    let user = |address| [context::USER, address];
    let records = [sample(&events[0], 10, &user(0x10)), trace, sample(&events[0], 11, &user(0x20))];
    let imported = imported(&events, &records, ImportOptions::default()).unwrap();
    assert_eq!(samples(&imported.finished.profile), ["0 0x10", "1 0x20"]);
    let expected = "24 bytes of hardware traces (AUX areas) were passed over: they are not decoded";
    assert_eq!(imported.notes, [expected]);
}

#[test]
fn kernel_code_is_named_while_it_is_there() {
    const CODE: u64 = 0xffff_ffff_c000_1000;
    let events = [clock()];
    let format = events[0].attr.record_format(ByteOrder::Little);
    let appears = format.encode_kernel_symbol((CODE, 0x40), b"bpf_prog_1", &id(1, 11));
    let mut goes = format.encode_kernel_symbol((CODE, 0x40), b"bpf_prog_1", &id(1, 13));
    // The flag comes after header, address, length and type: `PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER`.
    goes[8 + 8 + 4 + 2] = 1;
    let inside = |time| sample(&events[0], time, &[context::KERNEL, CODE + 0x10]);
    let records = [inside(10), appears, inside(12), goes, inside(14)];
    let imported = imported(&events, &records, ImportOptions::default()).unwrap();
    let profile = &imported.finished.profile;
    let libs: Vec<_> = profile
        .threads()
        .iter()
        .flat_map(|thread| &thread.samples)
        .map(|sample| {
            let frame = profile.stack_frames(sample.stack.unwrap()).next().unwrap();
            profile.func(frame.func).lib.map(|lib| profile.lib(lib).name.clone())
        })
        .collect();
    assert_eq!(libs, [None, Some("[kernel code]".to_owned()), None]);
}

#[test]
fn time_off_the_cpu_that_perf_sums_up_is_waiting() {
    let events = [clock(), event(1, 10, 2, "offcpu-time", 0)];
    let format = events[0].attr.record_format(ByteOrder::Little);
    let wait = |time: u64| {
        let at = RecordId { time: Some(time), ..id(2, 0) };
        format.encode_sample(2, (0x20, 5 * MS), &[context::USER, 0x20], &at)
    };
    // Older versions write the sums at their end, with an invalid time.
    let records = [sample(&events[0], 10, &[context::USER, 0x10]), wait(11 * MS), wait(0xffff_ffff << 32)];
    let imported = imported(&events, &records, ImportOptions::default()).unwrap();
    let profile = &imported.finished.profile;
    let rows = profile.threads().iter().flat_map(|thread| &thread.samples);
    let rows: Vec<_> = rows.map(|sample| (sample.time / MS, sample.weight, sample.off_cpu)).collect();
    assert_eq!(rows, [(0, 1, false), (1, 5, true), (1, 5, true)]);
}

/// Our own recording of two runs, with two samples, lost records, and the CPU time of all threads.
fn kept_with_losses() -> Profile {
    let event = clock();
    let mut writer = RecordingWriter::new(Cursor::new(Vec::new()), vec![event.clone()], []).unwrap();
    for time in [1, 2] {
        let record = sample(&event, time, &[context::USER, 0x10]);
        writer.write_records(&record, &[], Timestamp(0)).unwrap();
    }
    let at = |time, kind| Event { time: Timestamp(time), cpu: None, kind };
    let total = |ms| at(0, EventKind::TotalInAll { cpu_time_ns: ms * MS });
    writer.write_events(&[at(3 * MS, EventKind::Lost { records: 9 }), total(4), total(3)]).unwrap();
    let features = Features { version: Some("nyquist 0.1.0".to_owned()), ..Features::default() };
    let path = std::env::temp_dir().join(format!("nyquist-kept-{}", std::process::id()));
    std::fs::write(&path, writer.finish(features).unwrap().into_inner()).unwrap();
    let reader = FileReader::open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    import(reader, ImportOptions::default()).unwrap().finished.profile
}

#[test]
fn leftover_cpu_time_is_kept_with_a_recording() {
    let weights = |profile: &Profile| -> Vec<_> {
        profile.threads().iter().flat_map(|thread| &thread.samples).map(|sample| sample.weight).collect()
    };
    let profile = kept_with_losses();
    assert_eq!(weights(&profile), [1, 1, 5]);
    assert_eq!(samples(&profile).last().unwrap(), "2 [not sampled]");
}

/// An event that copies stacks.
fn copying() -> WrittenEvent {
    let mut event = clock();
    let copied = SampleType::REGS_USER.with(SampleType::STACK_USER);
    event.attr.sample_type = event.attr.sample_type.without(SampleType::CALLCHAIN).with(copied);
    event.attr.sample_regs_user = x86::ALL_64;
    // In a stream, the event has no name of its own.
    "cpu-clock".clone_into(&mut event.name);
    event
}

/// A sample of a thread with `calls` frames that have frame pointers. Each frame is in the code that is
/// mapped at `code`.
fn copied((pid, tid): (u64, u64), time: u64, code: u64, calls: u64) -> Vec<u8> {
    const STACK: u64 = 0x7fff_0000;
    let mut registers = [0; 24];
    registers[x86::BP as usize] = STACK + 16;
    registers[x86::SP as usize] = STACK;
    registers[x86::IP as usize] = code + time % 7;
    let mut words = vec![1, code, pid | tid << 32, time, MS, 2];
    words.extend((0..64).filter(|bit| x86::ALL_64 >> bit & 1 != 0).map(|bit| registers[bit as usize]));
    let mut stack = vec![0; 1024];
    // This is no return address.
    stack[0] = 1;
    for call in 0..calls {
        let at = 2 + 4 * call as usize;
        stack[at] = STACK + 16 + 32 * (call + 1);
        stack[at + 1] = code + 0x100 + call;
    }
    words.push(8 * stack.len() as u64);
    words.append(&mut stack);
    words.push(8 * 1024);
    let mode = if time.is_multiple_of(40) { 1 } else { 2 };
    record(9, mode, &words.into_iter().flat_map(u64::to_le_bytes).collect::<Vec<_>>())
}

/// When something was recorded, in ns.
fn at(time: u64) -> RecordId {
    RecordId { task: Some((7, 7)), time: Some(time), id: Some(1), ..RecordId::default() }
}

/// A mapping of code of a file that does not exist here.
fn mapped_at(pid: u32, time: u64, address: u64) -> Vec<u8> {
    let path = format!("/nowhere/{address:x}");
    let mmap = Mmap {
        pid,
        tid: pid,
        address,
        len: 0x1000,
        page_offset: 0,
        identity: MappedIdentity::None,
        protection: Some(5),
        flags: Some(2),
        path: path.as_bytes(),
        data: false,
    };
    copying().attr.record_format(ByteOrder::Little).encode_mmap(&mmap, 2, &at(time))
}

/// Two processes that are born, become other programs, map code where other code was, and end, while they are
/// sampled. The records of different CPUs are in the order in which the ring buffers were drained.
fn busy_recording() -> Vec<Vec<u8>> {
    let format = copying().attr.record_format(ByteOrder::Little);
    let task = |pid, tid, parent_pid, time| Task { pid, tid, parent_pid, parent_tid: parent_pid, time };
    let mut records = vec![format.encode_comm((7, 7), b"first", true, &at(1)), mapped_at(7, 2, 0x10000)];
    for turn in 1..180_u64 {
        let (start, pid) = (turn * 1000, 100 + turn as u32 / 5);
        let (one, two) = ((7, 7 + turn % 3), (u64::from(pid), u64::from(pid)));
        let mut cpus = [Vec::new(), Vec::new()];
        cpus[0].extend((0..20).map(|time| copied(one, start + 10 * time, 0x10000, time % 9)));
        cpus[1]
            .extend((0..20).map(|time| copied(two, start + 10 * time + 3, 0x10000 << (turn % 3), time % 6)));
        match turn % 5 {
            0 => cpus[0].insert(4, format.encode_fork(&task(pid, pid, 7, start + 35), &at(start + 35))),
            1 => cpus[1].insert(9, mapped_at(pid, start + 85, 0x20000)),
            2 => cpus[1].insert(9, format.encode_comm((pid, pid), b"second", true, &at(start + 86))),
            3 => cpus[1].insert(2, mapped_at(pid, start + 15, 0x10000)),
            _ => cpus[0].insert(7, format.encode_exit(&task(pid, pid, 7, start + 65), &at(start + 65))),
        }
        records.extend(cpus.into_iter().flatten());
        // `FINISHED_ROUND`.
        records.push(record(68, 0, &[]));
    }
    records
}

/// The same records in the order in which one CPU would have written them.
fn by_time(records: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let format = copying().attr.record_format(ByteOrder::Little);
    let mut rounds: Vec<Vec<u8>> = Vec::new();
    let mut round = Vec::new();
    for record in records {
        match format.latest_time(&record) {
            Some(time) => round.push((time, record)),
            None => {
                round.sort();
                rounds.extend(round.drain(..).map(|(_, record)| record));
                rounds.push(record);
            }
        }
    }
    rounds
}

/// A recording with stack copies, as it would come through a pipe.
fn piped(records: &[Vec<u8>]) -> Vec<u8> {
    let event = copying();
    let ids: Vec<u8> = event.ids.iter().flat_map(|(id, _)| id.to_le_bytes()).collect();
    let attr = record(tool_record::HEADER_ATTR, 0, &[&event.attr.to_bytes()[..], &ids].concat());
    [&b"PERFILE2"[..], &16_u64.to_le_bytes(), &attr, &records.concat()].concat()
}

fn converted(reader: FileReader, threads: usize) -> ConversionResult {
    let (threads, architecture) = (NonZeroUsize::new(threads), Some(Architecture::X86_64));
    import(reader, ImportOptions { threads, architecture, ..ImportOptions::default() }).unwrap().finished
}

fn of_file(records: &[Vec<u8>], threads: usize) -> ConversionResult {
    let path = written(&[copying()], records, &Features::default());
    let reader = FileReader::open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    converted(reader, threads)
}

fn of_stream(records: &[Vec<u8>], threads: usize) -> ConversionResult {
    converted(FileReader::open_stream(Cursor::new(piped(records))).unwrap(), threads)
}

#[test]
fn stacks_are_walked_by_the_mappings_at_the_time() {
    let in_order = of_file(&by_time(busy_recording()), 1);
    let deepest = samples(&in_order.profile).iter().map(|line| line.matches(';').count()).max();
    assert!(deepest >= Some(8), "{deepest:?}");
    assert!(in_order.statistics.truncated > 100, "{:?}", in_order.statistics);
    assert_eq!(in_order.statistics.walked_again, 0);
    let by_cpu = busy_recording();
    let check = |finished: ConversionResult| {
        assert_eq!(samples(&finished.profile), samples(&in_order.profile));
        assert!(finished.profile == in_order.profile);
        assert!(finished.statistics.walked_again > 100, "{:?}", finished.statistics);
    };
    for threads in [1, 3] {
        check(of_file(&by_cpu, threads));
        check(of_stream(&by_cpu, threads));
    }
}

#[test]
fn stacks_know_what_another_cpu_recorded_before() {
    let (parent, child) = (7, 8);
    let format = copying().attr.record_format(ByteOrder::Little);
    let fork = Task { pid: child, tid: child, parent_pid: parent, parent_tid: parent, time: 15 };
    let one_cpu =
        |tid| [(10, 1), (20, 1), (30, 1), (41, 2)].map(|(time, code)| copied((8, tid), time, code << 16, 2));
    let other_cpu = [
        format.encode_fork(&fork, &at(15)),
        format.encode_comm((child, child), b"second", true, &at(25)),
        mapped_at(child, 35, 0x20000),
    ];
    // When the first thread's stack is walked, too few mappings are known. For the other thread's stack, too
    // many are known.
    let records = [&[mapped_at(parent, 1, 0x10000)][..], &one_cpu(8), &other_cpu, &one_cpu(9)].concat();
    let before = "0 (truncated: the process's mappings are not known);0x10003";
    let born = "0 0x100;0xff;0x6";
    let another = "0 (truncated: no unwind information);0x10002";
    for finished in [of_file(&records, 1), of_stream(&records, 1)] {
        let expected = [before, before, born, another, born, born, another, born];
        assert_eq!(samples(&finished.profile), expected);
        assert_eq!(finished.statistics.walked_again, 3 + 3);
    }
}
