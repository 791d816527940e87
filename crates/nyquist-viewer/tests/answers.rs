//! What the viewer answers of a small profile, whose figures can be worked out by hand.

use std::sync::Arc;

use nyquist_object::RelativeAddress;
use nyquist_profile::{
    CategoryColor, Frame, Func, Lib, Marker, MarkerTiming, Meta, NativeSymbol, Process, Profile,
    ProfileBuilder, Sample, Source, StackId, Thread, ThreadIndex,
};
use nyquist_server::{
    AddressInfo, Assembly, AssemblyRequest, Client, Instruction, LibKey, LookupError, Refusal, SourceRequest,
    SymbolSource, Viewer,
};
use nyquist_viewer::BuiltinViewer;
use serde_json::{Value, json};

const MS: u64 = 1_000_000;

/// Two threads: `main` calls `parse` for 3 ms, of which `read` takes 1, and then `draw` for 1 ms; `worker` computes for 2 ms.
fn profile() -> Profile {
    let meta = Meta {
        product: "app".to_owned(),
        interval: MS,
        profiling_start: Some(0),
        profiling_end: Some(10 * MS),
        arguments: Some("./app --fast".to_owned()),
        ..Meta::default()
    };
    let mut builder = ProfileBuilder::new(meta);
    let user = builder.add_category("User", CategoryColor::Yellow);
    let process = builder.add_process(Process { pid: "7".into(), name: "app".into(), ..Process::default() });
    let main = builder.add_thread(Thread::new(process, "7", "main"));
    let worker = builder.add_thread(Thread::new(process, "8", "worker"));
    let lib = builder.add_lib(Lib {
        name: "app".into(),
        debug_name: "app".into(),
        breakpad_id: "AB0".into(),
        ..Lib::default()
    });
    let filename = builder.intern_string("src/main.rs");
    let source = builder.intern_source(Source { filename });
    let stack = |builder: &mut ProfileBuilder, words: &str| -> Option<StackId> {
        let mut prefix = None;
        for word in words.split(' ') {
            let (name, line) = word.split_once('#').unwrap();
            let line: u32 = line.parse().unwrap();
            let name = builder.intern_string(name);
            let func = builder.intern_func(Func {
                source: Some(source),
                line: Some(1),
                ..Func::new(name, Some(lib))
            });
            let symbol =
                builder.intern_native_symbol(NativeSymbol { lib, address: 0x100, size: Some(16), name });
            let frame = Frame {
                address: Some(0x100 + line),
                category: Some(user.into()),
                native_symbol: Some(symbol),
                line: Some(line),
                ..Frame::label(func)
            };
            let frame = builder.intern_frame(frame);
            prefix = Some(builder.intern_stack(prefix, frame));
        }
        prefix
    };
    let add = |builder: &mut ProfileBuilder, thread: ThreadIndex, time: u64, words: &str| {
        let stack = stack(builder, words);
        builder.add_sample(thread, Sample { weight: 1, ..Sample::new(time * MS, stack, MS) });
    };
    add(&mut builder, main, 1, "start#1 parse#2");
    add(&mut builder, main, 2, "start#1 parse#3 read#5");
    add(&mut builder, main, 3, "start#1 parse#2");
    add(&mut builder, main, 4, "start#1 draw#7");
    add(&mut builder, worker, 6, "compute#9");
    add(&mut builder, worker, 7, "compute#9");
    let name = builder.intern_string("frame");
    builder.add_marker(
        main,
        Marker {
            name,
            timing: MarkerTiming::Interval(2 * MS, 5 * MS),
            category: user,
            schema: None,
            values: Vec::new(),
            stack: None,
        },
    );
    builder.finish()
}

/// A file of ten lines, and eight instructions of two bytes.
struct Files;

impl SymbolSource for Files {
    fn symbolicate(&self, _: &LibKey, _: &[RelativeAddress]) -> Option<Vec<Option<AddressInfo>>> {
        None
    }

    fn source(&self, request: &SourceRequest) -> Result<String, LookupError> {
        assert_eq!((&*request.file, &*request.lib.debug_name), ("src/main.rs", "app"));
        Ok((1..=10).map(|line| format!("line {line}")).collect::<Vec<_>>().join("\n"))
    }

    fn assembly(&self, request: &AssemblyRequest) -> Result<Assembly, LookupError> {
        let instructions =
            (0..8).map(|number| Instruction { offset: 2 * number, text: format!("op {number}") }).collect();
        Ok(Assembly {
            start: request.start,
            size: request.size,
            arch: "x86_64".into(),
            syntax: "Intel".into(),
            instructions,
        })
    }
}

fn viewer() -> BuiltinViewer {
    BuiltinViewer::new(profile(), Arc::new(Files))
}

fn ask(viewer: &BuiltinViewer, question: &str, query: &str) -> Value {
    let body = viewer.answer(question, query, &Client::default());
    serde_json::from_slice(&body.unwrap_or_else(|refusal| panic!("{question}?{query}: {refusal:?}"))).unwrap()
}

fn refusal(question: &str, query: &str) -> Refusal {
    viewer().answer(question, query, &Client::default()).unwrap_err()
}

/// The number of a function, by its name in the answer's table.
fn number(answer: &Value, name: &str) -> u64 {
    let functions = answer["functions"].as_object().unwrap();
    let found = functions.iter().find(|(_, function)| function["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {answer}")).0.parse().unwrap()
}

#[test]
fn info_says_what_was_recorded() {
    let info = ask(&viewer(), "info", "");
    assert_eq!(
        (&info["name"], &info["interval_ns"], &info["end_ns"]),
        (&json!("app"), &json!(MS), &json!(10 * MS))
    );
    assert_eq!(info["measure"], json!({"name": "CPU time", "unit": "ns"}));
    assert_eq!((&info["summary"]["weight"], &info["summary"]["threads"]), (&json!(6), &json!(2)));
    let threads: Vec<_> =
        info["threads"].as_array().unwrap().iter().map(|it| (&it["name"], &it["weight"])).collect();
    assert_eq!(threads, [(&json!("main"), &json!(4)), (&json!("worker"), &json!(2))]);
    assert!(info["extra"].as_array().unwrap().iter().any(|it| it["value"] == "./app --fast"));
}

#[test]
fn functions_are_sorted_searched_and_cut_into_pages() {
    let viewer = viewer();
    let rows = |query: &str| {
        let answer = ask(&viewer, "functions", query);
        let name = |row: &Value| answer["functions"][row[0].to_string()]["name"].as_str().unwrap().to_owned();
        let rows = answer["rows"].as_array().unwrap();
        let rows: Vec<_> =
            rows.iter().map(|row| (name(row), row[1].as_u64().unwrap(), row[2].as_u64().unwrap())).collect();
        (rows, answer["count"].as_u64().unwrap())
    };
    let row = |name: &str, own, total| (name.to_owned(), own, total);
    let (by_own, count) = rows("");
    assert_eq!((count, by_own[0].1, by_own[1].1), (5, 2, 2));
    assert_eq!(rows("sort=total&limit=1"), (vec![row("start", 0, 4)], 5));
    assert_eq!(rows("search=REA"), (vec![row("read", 1, 1)], 1));
    assert_eq!(rows("search=/^(read|draw)$/&offset=1").1, 2);
    assert_eq!(rows("threads=1"), (vec![row("compute", 2, 2)], 1));
    assert_eq!(rows("range=0-2500000&sort=total").0[0], row("parse", 1, 2));
    let focused = rows("focus=read").0;
    assert_eq!(focused, [row("read", 1, 1), row("parse", 0, 1), row("start", 0, 1)]);
}

#[test]
fn boxes_stand_on_their_callers() {
    let viewer = viewer();
    let graph = ask(&viewer, "flamegraph", "width=1000");
    let (start, parse, read) = (number(&graph, "start"), number(&graph, "parse"), number(&graph, "read"));
    let boxes = graph["boxes"].as_array().unwrap();
    for expected in [json!([0, 2, 4, start, 0]), json!([1, 3, 3, parse, 2]), json!([2, 3, 1, read, 1])] {
        assert!(boxes.contains(&expected), "{expected} is not in {graph}");
    }
    assert_eq!((&graph["weight"], &graph["depth"]), (&json!(6), &json!(3)));
    // Of two pixels, what is narrower than a quarter is left out.
    let narrow = ask(&viewer, "flamegraph", "width=2");
    assert!(narrow["boxes"].as_array().unwrap().iter().all(|one| one[2].as_u64().unwrap() >= 2), "{narrow}");
    let zoomed = ask(&viewer, "flamegraph", &format!("transform=focus-subtree:{start}.{parse}"));
    assert_eq!((&zoomed["weight"], &zoomed["boxes"][0]), (&json!(3), &json!([0, 0, 3, parse, 2])));
}

#[test]
fn the_tree_opens_along_the_heaviest_path() {
    let viewer = viewer();
    let roots = ask(&viewer, "tree", "");
    let start = number(&roots, "start");
    assert_eq!(roots["rows"][0], json!([start.to_string(), start, 0, 4, true]));
    let below = ask(&viewer, "tree", &format!("path={start}&limit=1"));
    let parse = number(&below, "parse");
    assert_eq!(below["rows"], json!([[format!("{start}.{parse}"), parse, 2, 3, true]]));
    assert_eq!(below["left_out"], 1);
    let opened = ask(&viewer, "tree", "expand=1");
    assert_eq!(opened["rows"].as_array().unwrap().len(), 5, "{opened}");
    let inverted = ask(&viewer, "tree", "inverted=1");
    assert_eq!(inverted["rows"].as_array().unwrap().len(), 4);
    assert_eq!(ask(&viewer, "tree", &format!("path={parse}"))["rows"], json!([]));
}

#[test]
fn callers_and_matches_are_counted_once_a_sample() {
    let viewer = viewer();
    let all = ask(&viewer, "functions", "");
    let (start, parse, read) = (number(&all, "start"), number(&all, "parse"), number(&all, "read"));
    let callers = ask(&viewer, "callers", &format!("function={parse}"));
    assert_eq!(callers["function"], json!([parse, 2, 3]));
    assert_eq!((&callers["callers"], &callers["callees"]), (&json!([[start, 3]]), &json!([[read, 1]])));
    let root = ask(&viewer, "callers", &format!("function={start}"));
    assert_eq!(root["callers"], json!([[null, 4]]));
    assert_eq!(ask(&viewer, "search", "q=a"), json!({"weight": 6, "matched": 4, "functions": 4}));
    assert_eq!(ask(&viewer, "search", "q=compute")["matched"], 2);
    assert_eq!(ask(&viewer, "search", "q=nothing")["matched"], 0);
}

#[test]
fn time_is_shown_where_it_was_used() {
    let viewer = viewer();
    let both = ask(&viewer, "timeline", "parts=10&tracks=0,1");
    assert_eq!((&both["start_ns"], &both["end_ns"]), (&json!(0), &json!(10 * MS)));
    let part =
        |track: usize, part: usize| both["tracks"][track]["categories"][0]["ns"][part].as_u64().unwrap();
    let sum = |track: usize| (0..10).map(|at| part(track, at)).sum::<u64>();
    assert_eq!((sum(1), part(1, 8)), (2 * MS, 0));
    assert!(sum(0) >= 3 * MS && part(0, 6) == 0, "{both}");
    let chart = ask(&viewer, "chart", "thread=0&width=1000");
    assert_eq!(chart["depth"], 3);
    let markers = ask(&viewer, "markers", "");
    assert_eq!(markers["rows"], json!([[0, 2 * MS, 3 * MS, "frame", ""]]));
    assert_eq!(markers["kinds"], json!([{"name": "frame", "count": 1, "total_ns": 3 * MS}]));
    assert_eq!(ask(&viewer, "markers", "threads=1")["count"], 0);
    assert_eq!(ask(&viewer, "markers", "range=6000000-7000000")["count"], 0);
}

#[test]
fn source_and_instructions_have_their_shares() {
    let viewer = viewer();
    let all = ask(&viewer, "functions", "");
    let parse = number(&all, "parse");
    let listing = ask(&viewer, "source", &format!("function={parse}"));
    assert_eq!(listing["file"], "src/main.rs");
    assert_eq!(listing["text"].as_str().unwrap().lines().count(), 10);
    assert_eq!(listing["lines"], json!([[2, 2, 2], [3, 0, 1]]));
    let instructions = listing["assembly"]["instructions"].as_array().unwrap();
    assert_eq!(instructions.len(), 8);
    assert_eq!(instructions[1], json!([0x102, "op 1", 2, 3, 2]));
}

#[test]
fn a_range_has_its_part_of_a_long_slice() {
    let meta = Meta { interval: MS, has_exact_times: true, ..Meta::default() };
    let mut builder = ProfileBuilder::new(meta);
    let process = builder.add_process(Process { pid: "7".into(), ..Process::default() });
    let thread = builder.add_thread(Thread::new(process, "7", "main"));
    let stack = builder.intern_label(None, "slice", None);
    builder.add_sample(thread, Sample { weight: 800, ..Sample::new(900 * MS, Some(stack), 0) });
    let viewer = BuiltinViewer::new(builder.finish(), Arc::new(Files));
    let weight = |query: &str| {
        let answer = ask(&viewer, "functions", query);
        answer["weight"].as_u64().unwrap() * answer["interval_ns"].as_u64().unwrap() / MS
    };
    assert_eq!(weight(""), 800);
    assert_eq!(weight("range=500000000-600000000"), 100);
}

#[test]
fn what_cannot_be_answered_is_said() {
    let check = |question: &str, query: &str, status: u16, message: &str| {
        assert_eq!(refusal(question, query), Refusal { status, message: message.to_owned() });
    };
    check("explode", "", 404, "there is no question explode");
    check("callers", "", 400, "the parameter function is missing");
    check("callers", "function=99", 400, "there is no function 99");
    check("chart", "thread=9", 400, "there is no thread 9");
    check("search", "", 400, "the parameter q is missing");
    check("functions", "sort=name", 400, "sort takes own or total");
    check("tree", "path=1.x", 400, "path takes a number, not \"x\"");
    assert_eq!(refusal("search", "q=/(/").status, 400);
    let tracks = vec!["0"; 65].join(",");
    check("timeline", &format!("tracks={tracks}"), 400, "more than 64 tracks");
}

#[test]
fn a_profile_without_samples_has_empty_answers() {
    let viewer = BuiltinViewer::new(Profile::default(), Arc::new(Files));
    for question in ["info", "timeline", "flamegraph", "tree", "functions", "markers"] {
        ask(&viewer, question, "");
    }
    assert_eq!(ask(&viewer, "flamegraph", "")["boxes"], json!([]));
    assert_eq!(ask(&viewer, "tree", "expand=1&inverted=1")["rows"], json!([]));
}
