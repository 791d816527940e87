//! A profile that uses all features, and its readable form.

use std::fmt::Write;

use nyquist_profile::{
    CategoryColor, CategoryId, Counter, CounterDisplay, CounterGraph, CounterSample, ExtraInfo, Frame, Func,
    FuncId, GraphColor, Lib, LibId, Marker, MarkerDisplay, MarkerField, MarkerFormat, MarkerSchema,
    MarkerSchemaId, MarkerTiming, MarkerValue, Meta, NativeSymbol, Process, Profile, ProfileBuilder, Sample,
    Source, StackId, Thread, ThreadIndex, well_known,
};

/// A profile with two processes, three threads, inlined frames, markers of every phase and a counter.
pub fn sample_profile() -> Profile {
    let mut builder = ProfileBuilder::new(sample_meta());
    let user = builder.add_category(well_known::USER, CategoryColor::Yellow);
    let kernel = builder.add_category(well_known::KERNEL, CategoryColor::Orange);
    let jit = builder.add_subcategory(user, "JIT");
    let app = builder.add_lib(lib("app", Some("aabb")));
    let libc = builder.add_lib(lib("libc.so.6", None));

    let main = add_frame(&mut builder, app, "main", "main", 0x1000, 0);
    let inlined = add_frame(&mut builder, app, "inlined", "main", 0x1000, 1);
    let write = add_frame(&mut builder, libc, "write", "write", 0x20_0000, 0);
    let root = builder.intern_stack(None, main);
    let inner = builder.intern_stack(Some(root), inlined);
    let leaf = builder.intern_stack(Some(inner), write);
    let syscall = builder.intern_label(Some(leaf), "do_syscall_64", Some(kernel));
    let cut = builder.intern_label(None, &well_known::truncated("no unwind info"), Some(user));
    let mut frame = *builder.profile().frame(main);
    frame.category = Some(nyquist_profile::CategoryPair { category: user, subcategory: jit });
    let jitted = builder.intern_frame(frame);
    let jitted = builder.intern_stack(Some(cut), jitted);

    let threads = add_threads(&mut builder);
    let samples = [
        (threads[0], 1_000_001, Some(root), 1, 10),
        (threads[0], 2_000_003, Some(leaf), 1, 1_000_002),
        (threads[0], 3_000_000, Some(syscall), 17, 999_997),
        (threads[1], 500, None, 1, 0),
        (threads[1], 500, Some(jitted), 1, 123_456_789_012),
        (threads[2], 9_000_000, Some(inner), 1, 1_000_000),
    ];
    for (thread, time, stack, weight, cpu_delta) in samples {
        // The sample without CPU time is a wait.
        let off_cpu = cpu_delta == 0;
        builder.add_sample(thread, Sample { time, cpu_delta, stack, weight, off_cpu });
    }
    add_markers(&mut builder, threads[0], user, leaf);
    add_counter(&mut builder, threads[2]);
    builder.finish()
}

fn sample_meta() -> Meta {
    let extra = |section: &str, label: &str, value: &str| ExtraInfo {
        section: section.into(),
        label: label.into(),
        value: value.into(),
    };
    Meta {
        product: "app \"quoted\"".into(),
        interval: 1_000_000,
        start_time: 1_763_700_000_123_456,
        profiling_start: Some(0),
        profiling_end: Some(10_000_000),
        symbolicated: true,
        measure: nyquist_profile::Measure::default(),
        sample_distance: None,
        has_exact_times: false,
        has_cpu_deltas: true,
        arguments: Some("app --fast".into()),
        oscpu: Some("Linux 6.1".into()),
        platform: Some("Linux".into()),
        abi: Some("x86_64".into()),
        cpu_name: Some("A CPU".into()),
        logical_cpus: Some(8),
        physical_cpus: Some(4),
        main_memory: Some(16 << 30),
        imported_from: Some("nyquist".into()),
        lost_samples: 3,
        extra: vec![extra("Recording", "Rate", "1000 Hz"), extra("Recording", "Event", "cpu-clock")],
    }
}

fn lib(name: &str, code_id: Option<&str>) -> Lib {
    Lib {
        name: name.into(),
        path: format!("/usr/lib/{name}"),
        debug_name: name.into(),
        debug_path: format!("/usr/lib/debug/{name}"),
        breakpad_id: "0123456789ABCDEF0123456789ABCDEF0".into(),
        code_id: code_id.map(Into::into),
        arch: Some("x86_64".into()),
    }
}

fn add_func(builder: &mut ProfileBuilder, lib: LibId, name: &str) -> FuncId {
    let source = builder.intern_string(&format!("/src/{name}.c"));
    let source = builder.intern_source(Source { filename: source });
    let name = builder.intern_string(name);
    builder.intern_func(Func { source: Some(source), line: Some(3), ..Func::new(name, Some(lib)) })
}

fn add_frame(
    builder: &mut ProfileBuilder,
    lib: LibId,
    name: &str,
    symbol: &str,
    address: u32,
    inline_depth: u16,
) -> nyquist_profile::FrameId {
    let func = add_func(builder, lib, name);
    let name = builder.intern_string(symbol);
    let symbol = NativeSymbol { lib, address: address & !0xfff, size: Some(0x100), name };
    let native_symbol = Some(builder.intern_native_symbol(symbol));
    let user = builder.profile().categories().iter().position(|category| category.name == well_known::USER);
    builder.intern_frame(Frame {
        address: Some(address),
        inline_depth,
        category: user.map(|user| CategoryId::from_index(user).into()),
        func,
        native_symbol,
        source: None,
        line: Some(17),
        column: Some(4),
    })
}

fn add_threads(builder: &mut ProfileBuilder) -> [ThreadIndex; 3] {
    let app = Process { pid: "77".into(), name: "app".into(), start: 1_000, end: Some(20_000_000) };
    let app = builder.add_process(app);
    let child = Process { pid: "78".into(), name: "child".into(), start: 5, end: None };
    let child = builder.add_process(child);
    [
        builder.add_thread(Thread { is_main: true, end: Some(20_000_000), ..Thread::new(app, "77", "app") }),
        builder.add_thread(Thread { start: 400, ..Thread::new(app, "79", "worker") }),
        builder.add_thread(Thread::new(child, "78", "child")),
    ]
}

fn add_markers(builder: &mut ProfileBuilder, thread: ThreadIndex, category: CategoryId, stack: StackId) {
    let field =
        |key: &str, format| MarkerField { key: key.into(), label: Some(format!("The {key}")), format };
    let schema = builder.add_marker_schema(MarkerSchema {
        name: "Request".into(),
        display: vec![MarkerDisplay::Chart, MarkerDisplay::Table],
        fields: vec![
            field("url", MarkerFormat::Url),
            field("kind", MarkerFormat::UniqueString),
            field("size", MarkerFormat::Bytes),
            field("share", MarkerFormat::Percentage),
        ],
        tooltip_label: Some("{marker.name}".into()),
        table_label: None,
        chart_label: Some("{marker.data.url}".into()),
        description: Some("A request".into()),
        is_stack_based: false,
    });
    let name = builder.intern_string("request");
    let kind = builder.intern_string("GET");
    let url = builder.intern_string("/index.html");
    let marker = |timing, schema: Option<MarkerSchemaId>, values, stack| Marker {
        name,
        timing,
        category,
        schema,
        values,
        stack,
    };
    let values = vec![
        MarkerValue::String(url),
        MarkerValue::String(kind),
        MarkerValue::Integer(-5),
        MarkerValue::Number(0.25),
    ];
    builder.add_marker(
        thread,
        marker(MarkerTiming::Interval(1_000_000, 2_500_000), Some(schema), values, Some(stack)),
    );
    builder.add_marker(thread, marker(MarkerTiming::Instant(3_000_000), Some(schema), Vec::new(), None));
    builder.add_marker(thread, marker(MarkerTiming::IntervalStart(3_000_005), None, Vec::new(), None));
    builder.add_marker(thread, marker(MarkerTiming::IntervalEnd(3_000_006), None, Vec::new(), None));
}

fn add_counter(builder: &mut ProfileBuilder, thread: ThreadIndex) {
    let process = builder.profile().thread(thread).process;
    builder.add_counter(Counter {
        name: "malloc".into(),
        category: "Memory".into(),
        description: "Bytes allocated".into(),
        process,
        display: CounterDisplay {
            graph: CounterGraph::Accumulated,
            unit: "bytes".into(),
            color: GraphColor::Orange,
            marker_schema_location: Some("timeline-memory".into()),
            sort_weight: 0,
            label: "malloc".into(),
        },
        samples: vec![
            CounterSample { time: 1_000, delta: 0.0, operations: Some(1) },
            CounterSample { time: 2_000, delta: -4096.5, operations: Some(2) },
        ],
    });
}

/// The whole content of a profile as text in which every id is resolved. Equal texts mean profiles that
/// are equal for users.
pub fn describe(profile: &Profile) -> String {
    let mut text = format!("{:?}\n{:?}\n{:?}\n", profile.meta(), profile.libs(), profile.categories());
    writeln!(text, "{:?}\n{:?}\n{:?}", profile.marker_schemas(), profile.processes(), profile.counters())
        .unwrap();
    for thread in profile.threads() {
        describe_thread(&mut text, profile, thread);
    }
    text
}

fn describe_thread(text: &mut String, profile: &Profile, thread: &Thread) {
    let Thread { process, tid, name, start, end, is_main, samples, markers } = thread;
    writeln!(text, "thread {:?} {tid} {name} {start} {end:?} {is_main}", profile.process(*process)).unwrap();
    for Sample { time, cpu_delta, stack, weight, off_cpu } in samples {
        writeln!(text, " {time} {cpu_delta} {weight} {off_cpu} {}", describe_stack(profile, stack)).unwrap();
    }
    for Marker { name, timing, category, schema, values, stack } in markers {
        let values = values.iter().map(|value| match value {
            MarkerValue::String(string) => profile.string(*string).to_owned(),
            other => format!("{other:?}"),
        });
        let values: Vec<_> = values.collect();
        let (name, stack) = (profile.string(*name), describe_stack(profile, *stack));
        writeln!(text, " {name} {timing:?} {category:?} {schema:?} {values:?} {stack}").unwrap();
    }
}

fn describe_stack(profile: &Profile, stack: Option<StackId>) -> String {
    let Some(stack) = stack else { return "-".into() };
    profile.stack_frames(stack).map(|frame| describe_frame(profile, frame)).collect::<Vec<_>>().join(" < ")
}

fn describe_frame(profile: &Profile, frame: &Frame) -> String {
    let func = profile.func(frame.func);
    let lib = func.lib.map(|lib| &profile.lib(lib).name);
    let file = func.source.map(|source| profile.string(profile.source(source).filename));
    let symbol = frame.native_symbol.map(|symbol| {
        let symbol = profile.native_symbol(symbol);
        (symbol.address, symbol.size, profile.string(symbol.name), &profile.lib(symbol.lib).name)
    });
    let Frame { address, inline_depth, category, line, column, .. } = frame;
    format!(
        "{} {lib:?} {file:?} {:?} {:?} {symbol:?} {address:?} {inline_depth} {category:?} {line:?} {column:?}",
        profile.string(func.name),
        func.line,
        func.column,
    )
}
