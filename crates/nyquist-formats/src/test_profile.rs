//! A small profile for the tests of all formats, and its readable form.

use std::collections::BTreeMap;

use nyquist_profile::{
    CategoryColor, CategoryId, Frame, Func, Lib, LibId, Marker, MarkerTiming, MarkerValue, Measure, Meta,
    NativeSymbol, Process, Profile, ProfileBuilder, Sample, Source, Thread, Unit, allocation_schema,
    well_known,
};

/// A profile of two threads with libs, an inlined function, a name with special characters, and waiting.
pub(crate) fn profile() -> Profile {
    let mut builder = ProfileBuilder::new(Meta {
        product: "app".into(),
        interval: 1_000_000,
        start_time: 1_763_700_000_000_000,
        profiling_end: Some(10_000_000),
        symbolicated: true,
        ..Meta::default()
    });
    builder.add_category(well_known::USER, CategoryColor::Yellow);
    let app = builder.add_lib(lib("app", "aabb"));
    let libc = builder.add_lib(lib("libc.so.6", "ccdd"));
    let main = frame(&mut builder, app, "main", (0x1010, 0, 17));
    let inlined = frame(&mut builder, app, "inlined; x", (0x1010, 1, 3));
    let write = frame(&mut builder, libc, "write", (0x20_0004, 0, 0));
    let root = builder.intern_stack(None, main);
    let inner = builder.intern_stack(Some(root), inlined);
    let leaf = builder.intern_stack(Some(inner), write);
    let worker = builder.intern_label(None, "worker", None);

    let process = builder.add_process(Process { pid: "77".into(), name: "app".into(), ..Process::default() });
    let first = builder.add_thread(Thread { is_main: true, ..Thread::new(process, "77", "app") });
    let second = builder.add_thread(Thread::new(process, "79", "pool 1"));
    let sample = |time: u64, stack, weight| Sample { weight, ..Sample::new(time * 1_000_000, stack, 0) };
    builder.add_sample(first, sample(0, Some(root), 1));
    builder.add_sample(first, sample(1, Some(leaf), 4));
    builder.add_sample(first, sample(5, Some(root), 1));
    builder.add_sample(first, Sample { off_cpu: true, ..sample(6, Some(leaf), 3) });
    builder.add_sample(second, sample(2, Some(worker), 1));
    builder.finish()
}

/// The stacks with their amounts in the unit of the profile's measure.
pub(crate) fn amounts_of(profile: &Profile) -> Vec<String> {
    let amount = |line: &String| {
        let (stack, weight) = line.rsplit_once(' ').unwrap();
        format!("{stack} {}", weight.parse::<u64>().unwrap() * profile.meta().interval)
    };
    stacks_of(profile).iter().map(amount).collect()
}

/// Blocks of 100 bytes of two functions, with 10 and 1 at the peak, when 2 ms had passed.
pub(crate) fn allocations() -> Profile {
    let mut builder = ProfileBuilder::new(Meta {
        product: "app".into(),
        interval: 1_000_000,
        profiling_end: Some(10_000_000),
        ..Meta::default()
    });
    let process = builder.add_process(Process { pid: "77".into(), name: "app".into(), ..Process::default() });
    let thread = builder.add_thread(Thread { is_main: true, ..Thread::new(process, "77", "app") });
    let schema = Some(builder.add_marker_schema(allocation_schema()));
    let main = builder.intern_label(None, "main", None);
    let get = builder.intern_label(Some(main), "get", None);
    let put = builder.intern_label(Some(main), "put", None);
    let (name, category) = (builder.intern_string("allocations"), CategoryId::from_index(0));
    let ms = 1_000_000;
    // Live, at the peak, in all, temporary, the same as blocks, and the distance.
    for (stack, timing, values) in [
        (get, MarkerTiming::Interval(ms, 4 * ms), [0, 1000, 1000, 0, 0, 10, 10, 1]),
        (put, MarkerTiming::Interval(2 * ms, 2 * ms), [0, 100, 500, 4, 0, 1, 5, 1]),
        (get, MarkerTiming::Instant(5 * ms), [300, 0, 300, 0, 3, 0, 3, 1]),
    ] {
        let values = values.map(|value| MarkerValue::Number(f64::from(value))).into();
        builder.add_marker(thread, Marker { name, timing, category, schema, values, stack: Some(stack) });
    }
    builder.finish()
}

fn lib(name: &str, code_id: &str) -> Lib {
    Lib {
        name: name.into(),
        path: format!("/usr/lib/{name}"),
        debug_name: name.into(),
        debug_path: format!("/usr/lib/{name}"),
        code_id: Some(code_id.into()),
        ..Lib::default()
    }
}

fn frame(
    builder: &mut ProfileBuilder,
    lib: LibId,
    name: &str,
    (address, inline_depth, line): (u32, u16, u32),
) -> nyquist_profile::FrameId {
    let filename = builder.intern_string(&format!("/src/{}.c", &name[..4]));
    let source = Some(builder.intern_source(Source { filename }));
    let name = builder.intern_string(name);
    let func = builder.intern_func(Func { source, line: Some(2), ..Func::new(name, Some(lib)) });
    let symbol = NativeSymbol { lib, address: address & !0xf, size: Some(0x100), name };
    let native_symbol = (inline_depth == 0).then(|| builder.intern_native_symbol(symbol));
    builder.intern_frame(Frame {
        address: Some(address),
        inline_depth,
        native_symbol,
        line: (line > 0).then_some(line),
        ..Frame::label(func)
    })
}

/// Samples that count page faults.
pub(crate) fn counted() -> Profile {
    let measure = Measure { name: "page-faults".into(), unit: Unit::Count };
    let mut builder = ProfileBuilder::new(Meta { interval: 1, measure, ..Meta::default() });
    let process = builder.add_process(Process { pid: "7".into(), name: "app".into(), ..Process::default() });
    let thread = builder.add_thread(Thread::new(process, "7", "app"));
    for (time, name, weight) in [(1000, "touch", 1), (2000, "fill", 3)] {
        let stack = builder.intern_label(None, name, None);
        builder.add_sample(thread, Sample { weight, ..Sample::new(time, Some(stack), 0) });
    }
    builder.finish()
}

/// Fails unless two profiles have the same stacks with the same weights, the same interval, and the same
/// start.
pub(crate) fn assert_same_stacks(read: &Profile, written: &Profile) {
    assert_eq!(stacks_of(read), stacks_of(written));
    assert_eq!(waits_of(read), waits_of(written));
    assert_eq!(read.meta().interval, written.meta().interval);
    assert_eq!(read.meta().start_time, written.meta().start_time);
}

/// The stacks that have a weight on the CPU, as folded lines without a process, sorted.
pub(crate) fn stacks_of(profile: &Profile) -> Vec<String> {
    kind_of(profile, false)
}

/// As [`stacks_of`], for waiting.
pub(crate) fn waits_of(profile: &Profile) -> Vec<String> {
    kind_of(profile, true)
}

fn kind_of(profile: &Profile, off_cpu: bool) -> Vec<String> {
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for sample in profile.threads().iter().flat_map(|thread| &thread.samples) {
        if sample.off_cpu == off_cpu && sample.weight > 0 {
            let frames = sample.stack.into_iter().flat_map(|stack| profile.stack_frames(stack));
            let mut names: Vec<_> = frames.map(|frame| profile.func_name(frame.func)).collect();
            names.reverse();
            *lines.entry(names.join(";")).or_default() += sample.weight;
        }
    }
    lines.into_iter().map(|(stack, weight)| format!("{stack} {weight}")).collect()
}
