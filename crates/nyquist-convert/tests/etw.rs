//! Converts handmade traces of Windows: whose the samples are, their stacks, images and weights.

use nyquist_convert::etw::{EtwError, EtwImported, EtwOptions, import};
use nyquist_convert::{Progress, Symbols, name_by_address, symbolicate};
use nyquist_etw::file::FileReader;
use nyquist_profile::{MarkerValue, Profile, StackId};
use nyquist_symbols::{Finder, KernelError};
use nyquist_test_support::made_trace::{self, Buffer, Header};
use std::io::Cursor;
use std::num::NonZeroUsize;

const SWITCH: (u8, u8) = (made_trace::THREAD, 36);
const READY: (u8, u8) = (made_trace::THREAD, 50);
const SAMPLE: (u8, u8) = (made_trace::PERF_INFO, 46);
const STACK: (u8, u8) = (made_trace::STACK_WALK, 32);
/// The process, its first thread, and another one.
const PID: u32 = 100;
const MAIN: u32 = 104;
const OTHER: u32 = 108;
const KERNEL: u64 = 0xffff_f800_0000_0000;
const APP: (u64, u64) = (0x7ff6_0000_0000, 0x1_0000);
/// A millisecond of the clock.
const MS: u64 = 10_000;

/// A CPU with a process of two threads, its program, and the kernel's image.
fn started() -> Buffer {
    let mut buffer = Buffer::new(0, 1);
    buffer
        .system((3, 3, 4), (0, 0), 10 * MS, &made_trace::process((PID, 4), "app.exe", "app.exe"))
        .system((5, 3, 4), (0, 0), 10 * MS, &made_trace::thread((PID, MAIN), ""))
        .system((5, 3, 4), (0, 0), 10 * MS, &made_trace::thread((PID, OTHER), "worker"))
        .system((20, 3, 3), (0, 0), 10 * MS, &made_trace::image(APP, PID, 9, r"\Device\V3\b\app.exe"))
        .system(
            (20, 3, 3),
            (0, 0),
            10 * MS,
            &made_trace::image((KERNEL, 0x10_0000), 0, 8, r"\SystemRoot\system32\ntoskrnl.exe"),
        );
    buffer
}

fn read(header: &Header, buffers: &[Buffer], options: EtwOptions) -> Result<EtwImported, EtwError> {
    let file = made_trace::file(header, buffers);
    import(FileReader::open(Cursor::new(file)).unwrap(), options)
}

fn imported(buffers: &[Buffer]) -> EtwImported {
    read(&Header::default(), buffers, EtwOptions::default()).unwrap()
}

/// Each sample as its process, thread, time in ms, and stack, outermost first.
fn samples(profile: &Profile) -> Vec<String> {
    let profile = name_by_address(profile.clone());
    let mut lines = Vec::new();
    for thread in profile.threads() {
        let process = profile.process(thread.process);
        for sample in &thread.samples {
            let stacks = sample.stack.into_iter().flat_map(|stack| profile.ancestors(stack));
            let mut names: Vec<_> = stacks.map(|stack| frame_name(&profile, stack)).collect();
            names.reverse();
            let time = sample.time / 1_000_000;
            lines.push(format!("{} {} {time}: {}", process.name, thread.tid, names.join(";")));
        }
    }
    lines
}

/// A frame as its lib and its address there. That of a caller is the address before the one it returns to.
fn frame_name(profile: &Profile, stack: StackId) -> String {
    let frame = profile.stack(stack).frame;
    let address = profile.func_name(profile.frame(frame).func);
    match profile.frame_lib(frame) {
        Some(lib) => format!("{}+{address}", profile.lib(lib).name),
        None => address.to_owned(),
    }
}

fn checked(buffers: &[Buffer], expected: &[&str]) {
    assert_eq!(samples(&imported(buffers).finished.profile), expected);
}

#[test]
fn a_stack_belongs_to_the_sample_that_it_names() {
    let mut buffer = started();
    buffer
        .perf_info(SAMPLE, 11 * MS, &made_trace::sample(APP.0 + 0x10, MAIN))
        .perf_info(STACK, 11 * MS, &made_trace::stack(11 * MS, (PID, MAIN), &[APP.0 + 0x10, APP.0 + 0x20]))
        .perf_info(SAMPLE, 12 * MS, &made_trace::sample(APP.0 + 0x30, OTHER))
        // Stacks of other events, of unknown ones, and of other threads.
        .perf_info(STACK, 12 * MS, &made_trace::stack(12 * MS - 1, (PID, OTHER), &[APP.0 + 0x40]))
        .perf_info(STACK, 12 * MS, &made_trace::stack(12 * MS, (PID, MAIN), &[APP.0 + 0x50]));
    checked(&[buffer], &["app.exe 100 0: app.exe+0x1f;app.exe+0x10", "app.exe 108 1: app.exe+0x30"]);
}

#[test]
fn kernel_and_user_parts_become_one_stack() {
    let mut buffer = started();
    let kernel = |offset: u64| KERNEL + offset;
    // The thread leaves the kernel after its second sample there: both have the same user part.
    for (time, offset) in [(11, 0x100), (12, 0x200)] {
        let stack = [kernel(offset), kernel(offset + 8)];
        buffer.perf_info(SAMPLE, time * MS, &made_trace::sample(kernel(offset), MAIN)).perf_info(
            STACK,
            time * MS,
            &made_trace::stack(time * MS, (PID, MAIN), &stack),
        );
    }
    let user = [APP.0 + 0x10, APP.0 + 0x20];
    buffer.perf_info(STACK, 13 * MS, &made_trace::stack(11 * MS, (PID, MAIN), &user));
    // One that never returns.
    buffer.perf_info(SAMPLE, 14 * MS, &made_trace::sample(kernel(0x300), MAIN)).perf_info(
        STACK,
        14 * MS,
        &made_trace::stack(14 * MS, (PID, MAIN), &[kernel(0x300)]),
    );
    checked(
        &[buffer],
        &[
            "app.exe 100 0: app.exe+0x1f;app.exe+0x10;ntoskrnl.exe+0x107;ntoskrnl.exe+0x100",
            "app.exe 100 1: app.exe+0x1f;app.exe+0x10;ntoskrnl.exe+0x207;ntoskrnl.exe+0x200",
            "app.exe 100 3: ntoskrnl.exe+0x300",
        ],
    );
}

#[test]
fn stacks_by_number_are_found_anywhere() {
    let key = |opcode| (made_trace::STACK_WALK, opcode);
    let mut buffer = started();
    buffer
        .perf_info(SAMPLE, 11 * MS, &made_trace::sample(KERNEL + 0x100, MAIN))
        .perf_info(key(37), 11 * MS, &made_trace::stack_key(11 * MS, (PID, MAIN), 0xaa))
        .perf_info(key(38), 11 * MS, &made_trace::stack_key(11 * MS, (PID, MAIN), 0xbb))
        .perf_info(key(35), 12 * MS, &made_trace::keyed_stack(0xbb, &[APP.0 + 0x10]))
        .perf_info(SAMPLE, 13 * MS, &made_trace::sample(APP.0 + 0x30, MAIN))
        .perf_info(key(38), 13 * MS, &made_trace::stack_key(13 * MS, (PID, MAIN), 0xbb))
        .perf_info(key(36), 14 * MS, &made_trace::keyed_stack(0xbb, &[APP.0 + 0x30, APP.0 + 0x40]))
        .perf_info(key(36), 14 * MS, &made_trace::keyed_stack(0xaa, &[KERNEL + 0x100]));
    checked(
        &[buffer],
        &["app.exe 100 0: app.exe+0x10;ntoskrnl.exe+0x100", "app.exe 100 2: app.exe+0x3f;app.exe+0x30"],
    );
}

#[test]
fn the_end_of_a_trace_names_earlier_images() {
    let mut buffer = Buffer::new(0, 1);
    buffer
        .perf_info(SAMPLE, 11 * MS, &made_trace::sample(APP.0 + 0x10, MAIN))
        .system((3, 4, 4), (0, 0), 20 * MS, &made_trace::process((PID, 4), "app.exe", ""))
        .system((5, 4, 4), (0, 0), 20 * MS, &made_trace::thread((PID, MAIN), ""))
        .system((20, 4, 3), (0, 0), 20 * MS, &made_trace::image(APP, PID, 9, r"\Device\V3\app.exe"))
        .full(
            &made_trace::SYSTEM_CONFIG_EX,
            (35, 0),
            (0, 0),
            21 * MS,
            &made_trace::volume(r"\Device\V3\", r"D:\"),
        );
    let profile = imported(&[buffer]).finished.profile;
    assert_eq!(samples(&profile), ["app.exe 100 0: app.exe+0x10"]);
    assert_eq!(profile.libs()[0].path, r"D:\app.exe");
}

#[test]
fn libs_have_the_identities_of_the_trace() {
    let guid = [1, 2, 3, 4, 5, 6, 7, 8, 9, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16];
    let mut buffer = started();
    buffer
        .perf_info(SAMPLE, 11 * MS, &made_trace::sample(APP.0 + 0x10, MAIN))
        .perf_info(SAMPLE, 12 * MS, &made_trace::sample(KERNEL + 0x10, MAIN))
        .full(
            &made_trace::IMAGE_ID,
            (0, 2),
            (PID, 0),
            13 * MS,
            &made_trace::image_id(APP, PID, 0x5ca1_2c43, "app.exe"),
        )
        .full(
            &made_trace::IMAGE_ID,
            (36, 2),
            (PID, 0),
            13 * MS,
            &made_trace::pdb_id(APP.0, PID, (&guid, 10), "c:\\b\\app.pdb"),
        );
    let profile = imported(&[buffer]).finished.profile;
    let app = profile.libs().iter().find(|lib| lib.name == "app.exe").unwrap();
    assert_eq!(app.path, r"\\?\GLOBALROOT\Device\V3\b\app.exe");
    assert_eq!(
        (app.debug_name.as_str(), app.breakpad_id.as_str()),
        ("app.pdb", "04030201060508070910111213141516a")
    );
    assert_eq!(app.code_id.as_deref(), Some("5CA12C4310000"));
    let kernel = profile.libs().iter().find(|lib| lib.name == "ntoskrnl.exe").unwrap();
    assert_eq!(
        (kernel.path.as_str(), kernel.code_id.as_deref()),
        (r"C:\Windows\system32\ntoskrnl.exe", None)
    );
}

#[test]
fn a_sample_weighs_the_interval_of_the_trace() {
    let mut buffer = started();
    buffer.perf_info((made_trace::PERF_INFO, 73), 10 * MS, &made_trace::interval(1221)).perf_info(
        SAMPLE,
        11 * MS,
        &made_trace::sample(APP.0, MAIN),
    );
    let profile = imported(&[buffer]).finished.profile;
    assert_eq!(profile.meta().interval, 122_100);
    let sample = profile.threads()[0].samples.iter().next().unwrap();
    assert_eq!((sample.weight, sample.cpu_delta), (1, 122_100));
}

#[test]
fn idle_cpus_and_unknown_threads_have_no_samples() {
    let mut buffer = started();
    buffer
        .perf_info(SAMPLE, 11 * MS, &made_trace::sample(KERNEL, 0))
        .perf_info(SAMPLE, 12 * MS, &made_trace::sample(APP.0, 77))
        .perf_info(SAMPLE, 13 * MS, &made_trace::sample(APP.0, MAIN));
    let imported = imported(&[buffer]);
    assert_eq!(samples(&imported.finished.profile), ["app.exe 100 1: app.exe+0x0"]);
    assert_eq!(imported.notes, ["1 samples of threads whose process is not known were passed over"]);
}

#[test]
fn a_short_process_has_its_own_images() {
    let mut buffer = started();
    let other = (APP.0, 0x2000);
    buffer
        .system((3, 1, 4), (PID, MAIN), 11 * MS, &made_trace::process((200, PID), "short.exe", ""))
        .system((5, 1, 4), (PID, MAIN), 11 * MS, &made_trace::thread((200, 204), ""))
        .system((3, 10, 3), (200, 204), 11 * MS, &made_trace::image(other, 200, 9, r"C:\short.exe"))
        .perf_info(SAMPLE, 12 * MS, &made_trace::sample(APP.0 + 0x10, 204))
        .perf_info(SAMPLE, 13 * MS, &made_trace::sample(APP.0 + 0x3000, 204))
        .system((5, 2, 4), (200, 204), 14 * MS, &made_trace::thread((200, 204), ""))
        .system((3, 2, 4), (200, 204), 14 * MS, &made_trace::process((200, PID), "short.exe", ""))
        .perf_info(SAMPLE, 15 * MS, &made_trace::sample(APP.0 + 0x10, MAIN));
    checked(
        &[buffer],
        &[
            "short.exe 200 0: short.exe+0x10",
            "short.exe 200 1: 0x7ff600003000",
            "app.exe 100 3: app.exe+0x10",
        ],
    );
}

/// A trace in which the main thread sleeps until the other one, which runs on another CPU, wakes it, and is then
/// preempted. Its stack of each wait comes when it is back.
fn waiting() -> [Buffer; 2] {
    const SLEEPS: (u8, u8) = (4, 5);
    const IS_READY: (u8, u8) = (32, 1);
    let [user, kernel] = [APP.0 + 0x10, KERNEL + 0x100];
    let (mut buffer, mut other) = (started(), Buffer::new(1, 2));
    let switch = |new, old, (reason, state)| made_trace::switch(new, old, reason, state);
    let stack = |ms: u64, addresses: &[u64]| made_trace::stack(ms * MS, (PID, MAIN), addresses);
    other
        .perf_info(SWITCH, 10 * MS, &switch(OTHER, 0, (0, 2)))
        .perf_info(READY, 28 * MS, &made_trace::ready(MAIN, 0))
        .perf_info(STACK, 28 * MS, &made_trace::stack(28 * MS, (PID, OTHER), &[KERNEL + 0x200]))
        .perf_info(STACK, 28 * MS, &made_trace::stack(28 * MS, (PID, OTHER), &[APP.0 + 0x90]))
        .perf_info(READY, 47 * MS, &made_trace::ready(MAIN, 1));
    buffer
        .perf_info(SAMPLE, 11 * MS, &made_trace::sample(user, MAIN))
        .perf_info(SWITCH, 12 * MS, &switch(0, MAIN, SLEEPS))
        .perf_info(SWITCH, 30 * MS, &switch(MAIN, 0, (0, 2)))
        .perf_info(STACK, 30 * MS, &stack(30, &[kernel]))
        .perf_info(STACK, 31 * MS, &stack(30, &[user, APP.0 + 0x20]))
        .perf_info(SWITCH, 32 * MS, &switch(777, MAIN, IS_READY))
        .perf_info(SWITCH, 36 * MS, &switch(MAIN, 777, IS_READY))
        .perf_info(STACK, 36 * MS, &stack(36, &[APP.0 + 0x30]))
        .perf_info(SWITCH, 40 * MS, &switch(0, MAIN, SLEEPS))
        .perf_info(SWITCH, 50 * MS, &switch(MAIN, 0, (0, 2)))
        .perf_info(SAMPLE, 51 * MS, &made_trace::sample(user, MAIN));
    [buffer, other]
}

#[test]
fn a_wait_has_the_stack_of_its_last_switch() {
    let profile = imported(&waiting()).finished.profile;
    assert_eq!(
        samples(&profile),
        [
            "app.exe 100 0: app.exe+0x10",
            "app.exe 100 19: app.exe+0x1f;app.exe+0x10;ntoskrnl.exe+0x100;[waiting: sleep]",
            "app.exe 100 25: app.exe+0x30;[waiting for a CPU]",
            "app.exe 100 39: [waiting: sleep]",
            "app.exe 100 40: app.exe+0x10",
        ]
    );
}

#[test]
fn a_long_wait_names_the_thread_that_ended_it() {
    let profile = imported(&waiting()).finished.profile;
    let mut lines = Vec::new();
    for thread in profile.threads() {
        for marker in &thread.markers {
            let texts = marker.values.iter().filter_map(|value| match value {
                MarkerValue::String(id) => Some(profile.string(*id)),
                _ => None,
            });
            let texts: Vec<_> = texts.collect();
            lines.push(format!("{}: {} {}", thread.tid, profile.string(marker.name), texts.join(" ")));
        }
    }
    lines.sort();
    assert_eq!(
        lines,
        [
            "100: Wait: CPU CPU",
            "100: Wait: sleep sleep an interrupt",
            "100: Wait: sleep sleep worker (108)",
            "108: Wake app.exe (100)",
        ]
    );
}

/// Many events name one stack of many addresses: a small file does not become a large profile.
#[test]
fn one_long_stack_of_many_samples_is_cut() {
    let key = |opcode| (made_trace::STACK_WALK, opcode);
    let long: Vec<u64> = (0..8000).map(|index| KERNEL + 8 * index).collect();
    let mut buffer = started();
    buffer.perf_info(SAMPLE, 11 * MS, &made_trace::sample(KERNEL + 0x100, MAIN));
    for _ in 0..1000 {
        buffer.perf_info(key(37), 11 * MS, &made_trace::stack_key(11 * MS, (PID, MAIN), 0xbb));
    }
    let mut numbers = Buffer::new(0, 2);
    numbers.perf_info(key(36), 14 * MS, &made_trace::keyed_stack(0xbb, &long));
    let profile = imported(&[buffer, numbers]).finished.profile;
    let sample = profile.threads()[0].samples.first().unwrap();
    assert_eq!(profile.stack_frames(sample.stack.unwrap()).count(), 256);
}

#[test]
fn losses_are_counted() {
    let mut buffer = started();
    buffer.perf_info(SAMPLE, 11 * MS, &made_trace::sample(APP.0, MAIN));
    let header = Header { events_lost: 5, buffers_lost: 2, ..Header::default() };
    let imported = read(&header, &[buffer], EtwOptions::default()).unwrap();
    assert_eq!(imported.finished.statistics.lost, 5);
    assert_eq!(imported.notes, ["the session lost 2 buffers, each with many events"]);
}

#[test]
fn a_trace_without_samples_is_refused() {
    let refused = read(&Header::default(), &[started()], EtwOptions::default()).unwrap_err();
    assert_eq!(refused.to_string(), "the trace has no samples of CPUs");
}

/// `Microsoft-Windows-DotNETRuntimeRundown`, as its bytes are in files.
const RUNDOWN: [u8; 16] =
    [0x1c, 0x02, 0x69, 0xa6, 0x50, 0xc4, 0x09, 0x46, 0xa0, 0x35, 0x5a, 0xf5, 0x9a, 0xf4, 0xdf, 0x18];

/// The payload of `MethodDCEndVerbose`.
fn method((start, size): (u64, u32), class: &str, name: &str) -> Vec<u8> {
    let numbers = made_trace::words(&[size, 0, 0]);
    let texts = [class, name, "void  (int32)"].map(made_trace::utf16).concat();
    [[1_u64, 2, start].into_iter().flat_map(u64::to_le_bytes).collect(), numbers, texts, vec![9, 0]].concat()
}

/// The profile with the names that the trace states.
fn named(imported: EtwImported) -> Profile {
    let finder = Finder::default();
    let symbols =
        Symbols { finder: &finder, kernel: |_| Err(KernelError::Empty), threads: NonZeroUsize::MIN };
    let finished = imported.finished;
    symbolicate(finished.profile, finished.libs.sources(), symbols, &Progress::default()).profile
}

/// PerfView names methods by these events, which come at the end of a trace.
#[test]
fn methods_of_dotnet_have_their_names() {
    let compiled = 0x7ff5_1234_0000;
    let (work, main, ahead) = ((compiled, 0x40), (compiled + 0x40, 0x40), (APP.0 + 0x100, 0x20));
    let mut buffer = started();
    let addresses = [work.0 + 8, main.0 + 0x40, ahead.0 + 0x20];
    buffer.perf_info(SAMPLE, 11 * MS, &made_trace::sample(work.0 + 8, MAIN)).perf_info(
        STACK,
        11 * MS,
        &made_trace::stack(11 * MS, (PID, MAIN), &addresses),
    );
    for (code, name) in [(work, "Work"), (main, "Main"), (ahead, "Ahead")] {
        buffer.full(&RUNDOWN, (40, 1), (PID, MAIN), 20 * MS, &method(code, "My.App", name));
        // Another process has other methods there.
        buffer.full(&RUNDOWN, (40, 1), (PID + 100, MAIN), 20 * MS, &method(code, "Other", name));
    }
    let profile = named(imported(&[buffer]));
    let stack = profile.threads()[0].samples.first().unwrap().stack.unwrap();
    let names: Vec<_> = profile.stack_frames(stack).map(|frame| profile.func_name(frame.func)).collect();
    assert_eq!(names, ["My.App.Work(int32)", "My.App.Main(int32)", "My.App.Ahead(int32)"]);
    let libs: Vec<_> = profile.libs().iter().map(|lib| &*lib.name).collect();
    assert!(libs.contains(&"app.exe") && libs.iter().any(|lib| lib.starts_with("[.NET 100:")), "{libs:?}");
}
