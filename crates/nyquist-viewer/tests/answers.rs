//! Tests of the viewer's responses about a small profile, whose figures can be computed by hand.

use std::sync::Arc;

use nyquist_object::RelativeAddress;
use nyquist_profile::{
    CategoryColor, Counter, CounterDisplay, CounterGraph, CounterSample, Frame, Func, GraphColor, Lib,
    Marker, MarkerTiming, Meta, NativeSymbol, Process, Profile, ProfileBuilder, Sample, Source, StackId,
    Thread, ThreadIndex,
};
use nyquist_server::{
    AddressInfo, Assembly, AssemblyInstruction, AssemblyRequest, Client, InlineFrame, LibKey, LookupError,
    SourceRequest, SymbolSource, Viewer, ViewerError,
};
use nyquist_viewer::BuiltinViewer;
use serde_json::{Value, json};

const MS: u64 = 1_000_000;

/// Two threads. `main` calls `parse` for 3 ms, 1 ms of it in `read`, and then `draw` for 1 ms; `worker`
/// computes for 2 ms.
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
    let sample = |time, delta| CounterSample { time: time * MS, delta, operations: None };
    for (name, graph, first) in
        [("memory", CounterGraph::Accumulated, 1000.0), ("faults", CounterGraph::Rate, 9.0)]
    {
        builder.add_counter(Counter {
            name: name.into(),
            category: "Memory".into(),
            description: String::new(),
            process,
            display: CounterDisplay {
                graph,
                unit: "bytes".into(),
                color: GraphColor::Blue,
                marker_schema_location: None,
                sort_weight: 0,
                label: String::new(),
            },
            samples: vec![sample(0, first), sample(2, 500.0), sample(3, -700.0), sample(8, 20.0)],
        });
    }
    builder.finish()
}

/// A source file of ten lines, and eight instructions of two bytes.
struct Files;

impl SymbolSource for Files {
    /// In `parse`, the second instruction is of `trim`, which was inlined, and the third is of line 4.
    fn symbolicate(&self, _: &LibKey, addresses: &[RelativeAddress]) -> Option<Vec<Option<AddressInfo>>> {
        let inlined = |name: &str, line| InlineFrame {
            function: Some(name.to_owned()),
            file: Some("trim.rs".to_owned()),
            line: Some(line),
        };
        let info = |address: &RelativeAddress| {
            let inlines = if address.0 == 0x102 { vec![inlined("trim<u8>", 70)] } else { Vec::new() };
            let line = Some(4).filter(|_| address.0 == 0x104);
            Some(AddressInfo { function: "parse".to_owned(), line, inlines, ..AddressInfo::default() })
        };
        Some(addresses.iter().map(info).collect())
    }

    fn folded_names(&self, _: &LibKey, start: RelativeAddress, name: &str) -> Vec<String> {
        assert_eq!(start, RelativeAddress(0x100));
        if name == "parse" { (0..12).map(|number| format!("other{number:02}")).collect() } else { Vec::new() }
    }

    fn source(&self, request: &SourceRequest) -> Result<String, LookupError> {
        assert_eq!((&*request.file, &*request.lib.debug_name), ("src/main.rs", "app"));
        Ok((1..=10).map(|line| format!("line {line}")).collect::<Vec<_>>().join("\n"))
    }

    fn assembly(&self, request: &AssemblyRequest) -> Result<Assembly, LookupError> {
        let instructions = (0..8)
            .map(|number| AssemblyInstruction { offset: 2 * number, text: format!("op {number}") })
            .collect();
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
    let answer = body.unwrap_or_else(|denied| panic!("{question}?{query}: {denied:?}"));
    serde_json::from_slice(&answer.body).unwrap()
}

fn denied(question: &str, query: &str) -> ViewerError {
    viewer().answer(question, query, &Client::default()).unwrap_err()
}

/// The number of a function, by its name in the response's table.
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
fn functions_are_sorted_searched_and_paged() {
    let viewer = viewer();
    let rows = |query: &str| {
        let answer = ask(&viewer, "functions", query);
        let name = |row: &Value| row["function"].as_str().unwrap().to_owned();
        let rows = answer["rows"].as_array().unwrap();
        let rows: Vec<_> = rows
            .iter()
            .map(|row| (name(row), row["self"].as_u64().unwrap(), row["total"].as_u64().unwrap()))
            .collect();
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
    // With two pixels, boxes narrower than a quarter are left out.
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
    let row = &roots["rows"][0];
    let expected = json!({
        "path": start.to_string(), "depth": 0, "handle": format!("f-{start}"), "function": "start", "lib": "app",
        "inlined": false, "has_children": true, "self": 0, "total": 4, "self_share": 0.0, "total_share": 4.0 / 6.0,
        "self_amount": 0, "total_amount": 4 * MS,
    });
    assert_eq!(*row, expected);
    let below = ask(&viewer, "tree", &format!("path={start}&limit=1"));
    let parse = number(&below, "parse");
    let row = &below["rows"][0];
    assert_eq!((&row["path"], &row["depth"]), (&json!(format!("{start}.{parse}")), &json!(1)));
    assert_eq!((&row["self"], &row["total"], &row["has_children"]), (&json!(2), &json!(3), &json!(true)));
    assert_eq!(below["left_out"], 1);
    // What `parse` does itself is more than what it calls.
    let opened = ask(&viewer, "tree", "expand=1");
    assert_eq!(opened["rows"].as_array().unwrap().len(), 4, "{opened}");
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
    let amounts = |row: &Value| json!([row["handle"], row["self"], row["total"]]);
    assert_eq!(amounts(&callers["function"]), json!([format!("f-{parse}"), 2, 3]));
    assert_eq!(amounts(&callers["callers"][0]), json!([format!("f-{start}"), null, 3]));
    assert_eq!(amounts(&callers["callees"][0]), json!([format!("f-{read}"), null, 1]));
    let site = &callers["sites"][0];
    assert_eq!((amounts(site), &site["line"]), (json!([format!("f-{start}"), null, 3]), &json!(1)));
    assert_eq!(site["file"], "src/main.rs");
    // The names of all of them are in the table.
    assert_eq!(callers["functions"].as_object().unwrap().len(), 3, "{callers}");
    let root = ask(&viewer, "callers", &format!("function={start}"));
    assert_eq!(amounts(&root["callers"][0]), json!([null, null, 4]));
    assert_eq!(root["callers"][0]["function"], "(root)");
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
    let whole = ask(&viewer, "timeline", "parts=1");
    let of = |function: u64| ask(&viewer, "timeline", &format!("parts=1&function={function}"));
    let functions = ask(&viewer, "functions", "");
    let ns = |answer: &Value| answer["tracks"][0]["categories"][0]["ns"][0].as_u64().unwrap_or(0);
    let (start, read) = (of(number(&functions, "start")), of(number(&functions, "read")));
    assert!(0 < ns(&read) && ns(&read) < ns(&start) && ns(&start) < ns(&whole), "{read} {start} {whole}");
    let chart = ask(&viewer, "chart", "thread=0&width=1000");
    assert_eq!((&chart["depth"], &chart["joined"]), (&json!(3), &json!([])));
    let low = ask(&viewer, "chart", "thread=0&width=2");
    let joined = |at: usize| (0..4).map(|i| low["joined"][at][i].clone()).collect::<Vec<_>>();
    let expected =
        |depth, name: &str| vec![json!(depth), json!(0), json!(5 * MS), json!(number(&functions, name))];
    assert_eq!((joined(0), joined(1)), (expected(1, "parse"), expected(2, "read")), "{low}");
    let deep = ask(&viewer, "chart", "thread=0&width=2&first_level=2&levels=9");
    assert_eq!((&deep["depth"], &deep["joined"]), (&low["depth"], &json!([low["joined"][1]])));
    assert_eq!(deep["boxes"], low["boxes"]);
    let markers = ask(&viewer, "markers", "");
    assert_eq!(markers["rows"], json!([[0, 2 * MS, 3 * MS, "frame", "", null]]));
    assert_eq!(
        markers["kinds"],
        json!([{"name": "frame", "count": 1, "total_ns": 3 * MS, "has_stacks": false}])
    );
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
    let lines = listing["lines"].as_array().unwrap().iter();
    let lines: Vec<_> = lines.map(|row| json!([row["line"], row["self"], row["total"]])).collect();
    assert_eq!(lines, [json!([2, 2, 2]), json!([3, 0, 1])]);
    let instructions = listing["assembly"]["instructions"].as_array().unwrap();
    assert_eq!(instructions.len(), 8);
    assert_eq!(instructions[1], json!([0x102, "op 1", 2, 3, 2, 0]));
    // Instructions without samples have lines, too.
    assert_eq!(instructions[2], json!([0x104, "op 2", 0, 0, 4, null]));
    assert_eq!(listing["assembly"]["places"], json!([["trim", "trim.rs", 70]]));
}

#[test]
fn generated_code_counts_at_its_functions_line() {
    let mut builder = ProfileBuilder::new(Meta { interval: MS, ..Meta::default() });
    let process = builder.add_process(Process::default());
    let thread = builder.add_thread(Thread::new(process, "1", "main"));
    let (name, filename) = (builder.intern_string("made"), builder.intern_string("made.js"));
    let source = Some(builder.intern_source(Source { filename }));
    let func = builder.intern_func(Func { source, line: Some(7), ..Func::new(name, None) });
    let frame = builder.intern_frame(Frame::label(func));
    let stack = builder.intern_stack(None, frame);
    builder.add_sample(thread, Sample { weight: 3, ..Sample::new(MS, Some(stack), MS) });
    let viewer = BuiltinViewer::new(builder.finish(), Arc::new(Files));
    let made = number(&ask(&viewer, "functions", ""), "made");
    let line = &ask(&viewer, "source", &format!("function={made}"))["lines"][0];
    assert_eq!((&line["line"], &line["self"], &line["total"]), (&json!(7), &json!(3), &json!(3)));
}

#[test]
fn functions_with_the_same_code_have_all_names() {
    let viewer = viewer();
    let all = ask(&viewer, "functions", "");
    let names = |function: &str| ask(&viewer, "names", &format!("function={}", number(&all, function)));
    let folded = names("parse");
    assert_eq!((&folded["count"], folded["folded"].as_array().unwrap().len()), (&json!(12), 10));
    assert_eq!((&names("draw")["count"], &names("draw")["folded"]), (&json!(0), &json!([])));
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
    assert_eq!(ask(&viewer, "info", "")["has_exact_times"], true);
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
        assert_eq!(denied(question, query), ViewerError { status, message: message.to_owned() });
    };
    check("explode", "", 404, "there is no question explode");
    check("callers", "", 400, "the parameter function is missing");
    check("callers", "function=99", 400, "there is no function 99");
    check("chart", "thread=9", 400, "there is no thread 9");
    check("search", "", 400, "the parameter q is missing");
    check("functions", "sort=name", 400, "sort takes self or total");
    check("tree", "path=1.x", 400, "path takes a number, not \"x\"");
    assert_eq!(denied("search", "q=/(/").status, 400);
    let tracks = vec!["0"; 257].join(",");
    check("timeline", &format!("tracks={tracks}"), 400, "more than 256 tracks");
    check("timeline", "function=4294967296", 400, "there is no function 4294967296");
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

#[test]
fn the_flame_graph_is_a_picture_to_save() {
    let viewer = viewer();
    let picture = viewer.answer("flamegraph.svg", "color=lib&icicle=1", &Client::default()).unwrap();
    assert_eq!((picture.content_type, picture.file_name), ("image/svg+xml", Some("flamegraph.svg")));
    let svg = String::from_utf8(picture.body).unwrap();
    assert!(svg.contains("<title>parse (app, 3.0 ms, 50.0 %)</title>"), "{svg}");
    assert!(svg.contains("data-hangs=\"true\"") && svg.contains(">app</text>"));
    let narrowed = viewer.answer("flamegraph.svg", "focus=compute", &Client::default()).unwrap();
    let svg = String::from_utf8(narrowed.body).unwrap();
    assert!(svg.contains("<title>compute (app, 2.0 ms, 100.0 %)</title>") && !svg.contains("<title>parse"));
    let message = denied("flamegraph.svg", "color=red").message;
    assert_eq!(message, "color takes module, lib, category or change");
}

#[test]
fn the_selection_is_one_file_with_its_answers() {
    let page = viewer().answer("page.html", "threads=0", &Client::default()).unwrap();
    assert_eq!(page.file_name, Some("profile.html"));
    let page = String::from_utf8(page.body).unwrap();
    let data = page.split_once("id=\"answers\">").unwrap().1.split_once("</script>").unwrap().0;
    let data: Value = serde_json::from_str(data).unwrap();
    assert_eq!((&data["info"]["summary"]["weight"], &data["flame"]["weight"]), (&json!(4), &json!(4)));
    assert_eq!(data["tracks"]["tracks"].as_array().unwrap().len(), 1);
    assert_eq!(data["markers"]["count"], 1);
    assert!(!page.contains(" src=") && !page.contains(" href="), "the page names another file");
}

#[test]
fn no_name_ends_the_data_of_the_file() {
    let mut builder = ProfileBuilder::new(Meta { product: "</script><b>".into(), ..Meta::default() });
    let process = builder.add_process(Process::default());
    builder.add_thread(Thread::new(process, "1", "<!--<script>"));
    let mut page = Vec::new();
    nyquist_viewer::write_page(&builder.finish(), &mut page).unwrap();
    let page = String::from_utf8(page).unwrap();
    assert!(!page.contains("</script><b>") && !page.contains("<!--<script>"));
    assert_eq!(page.matches("</script>").count(), 2);
}

/// The same program, in which `parse` takes 30 ms and `draw` 1,000 ms, of 1,030.
fn slower() -> Profile {
    let mut builder = ProfileBuilder::new(Meta { product: "app".into(), interval: MS, ..Meta::default() });
    let process = builder.add_process(Process::default());
    let main = builder.add_thread(Thread::new(process, "9", "main"));
    for (name, weight) in [("parse", 30), ("draw", 1000)] {
        let name = builder.intern_string(name);
        let func = builder.intern_func(Func::new(name, None));
        let frame = builder.intern_frame(Frame::label(func));
        let stack = builder.intern_stack(None, frame);
        builder.add_sample(main, Sample { weight, ..Sample::new(MS, Some(stack), MS) });
    }
    builder.finish()
}

#[test]
fn slower_comes_first_then_faster_then_noise() {
    let viewer = BuiltinViewer::comparing(profile(), slower(), Arc::new(Files));
    assert_eq!(ask(&viewer, "info", "")["before"]["name"], "app");
    let table = ask(&viewer, "diff", "");
    let row = |index: usize| &table["rows"][index];
    assert_eq!((&row(0)["name"], &row(0)["self"]["change"]), (&json!("draw"), &json!(999e6)), "{table}");
    assert_eq!(row(0)["function"], number(&table, "draw"));
    assert_eq!((&row(0)["self"]["is_noise"], &table["whole"]["after"]), (&json!(false), &json!(1030e6)));
    let noise: Vec<_> =
        table["rows"].as_array().unwrap().iter().map(|row| row["self"]["is_noise"] == true).collect();
    assert!(noise.is_sorted(), "{table}");
    assert_eq!(table["noise_count"], noise.iter().filter(|noise| **noise).count());
    let shares = ask(&viewer, "diff", "unit=share");
    assert_eq!((&shares["unit"], &shares["rows"][0]["name"]), (&json!("share"), &json!("draw")));
}

#[test]
fn boxes_have_their_shares_of_before() {
    let viewer = BuiltinViewer::comparing(slower(), slower(), Arc::new(Files));
    let graph = ask(&viewer, "diff/flamegraph", "width=1000");
    let draw =
        graph["boxes"].as_array().unwrap().iter().find(|one| one[3] == number(&graph, "draw")).unwrap();
    assert_eq!(draw[5], json!(1000.0 / 1030.0));
    let focused = ask(&viewer, "diff/flamegraph", &format!("transform=focus-function:{}", draw[3]));
    assert_eq!(focused["boxes"][0][5], json!(1.0), "{focused}");
    let svg = |query| {
        let svg = viewer.answer("flamegraph.svg", query, &Client::default()).unwrap();
        String::from_utf8(svg.body).unwrap()
    };
    assert!(svg("color=change&unit=share").contains("before 97.1 %, +0.0 %"));
    assert!(svg("color=change").contains("1000.0 ms, 97.1 %, before 1000.0 ms"));
    let message = denied("diff", "").message;
    assert_eq!(message, "no other profile is here to compare with: nyquist load BEFORE AFTER");
}

#[test]
fn own_code_is_a_part_of_the_selection() {
    let viewer = viewer();
    assert_eq!(ask(&viewer, "info", "")["has_own_code"], true);
    assert_eq!(ask(&viewer, "functions", "own=1")["count"], 5);
    let other = BuiltinViewer::new(slower(), Arc::new(Files));
    assert_eq!(ask(&other, "info", "")["has_own_code"], false);
    assert_eq!(ask(&other, "functions", "own=1")["weight"], 0);
}

/// `main` calls `parse`, into which `read` was inlined.
fn with_inlined() -> Profile {
    let mut builder = ProfileBuilder::new(Meta { interval: MS, ..Meta::default() });
    let process = builder.add_process(Process::default());
    let thread = builder.add_thread(Thread::new(process, "7", "main"));
    let mut stack = None;
    for (name, inline_depth) in [("start", 0), ("parse", 0), ("read", 1)] {
        let name = builder.intern_string(name);
        let func = builder.intern_func(Func::new(name, None));
        let frame = builder.intern_frame(Frame { inline_depth, ..Frame::label(func) });
        stack = Some(builder.intern_stack(stack, frame));
    }
    builder.add_sample(thread, Sample { weight: 3, ..Sample::new(3 * MS, stack, 3 * MS) });
    builder.finish()
}

#[test]
fn functions_are_shown_as_they_were_compiled() {
    assert_eq!(ask(&viewer(), "info", "")["has_inlined"], false);
    let viewer = BuiltinViewer::new(with_inlined(), Arc::new(Files));
    assert_eq!(ask(&viewer, "info", "")["has_inlined"], true);
    let list = |query: &str| {
        let list = ask(&viewer, "functions", query);
        let rows = list["rows"].as_array().unwrap().iter();
        rows.map(|row| json!([row["function"], row["self"]])).collect::<Vec<_>>()
    };
    assert_eq!(list("")[0], json!(["read", 3]));
    assert_eq!(list("no_inline=1"), [json!(["parse", 3]), json!(["start", 0])]);
    let mut page = Vec::new();
    nyquist_viewer::write_page(&with_inlined(), &mut page).unwrap();
    let page = String::from_utf8(page).unwrap();
    let compiled = page.split("\"compiled\":").nth(1).unwrap().split("</script>").next().unwrap();
    assert!(compiled.contains("\"parse\"") && !compiled.contains("\"read\""), "{compiled}");
    let mut plain = Vec::new();
    nyquist_viewer::write_page(&profile(), &mut plain).unwrap();
    assert!(!String::from_utf8(plain).unwrap().contains("\"compiled\":"), "nothing was inlined");
}

#[test]
fn a_function_says_which_lib_it_is_in_by_number() {
    let viewer = viewer();
    let functions = ask(&viewer, "functions", "");
    let parse = number(&functions, "parse");
    assert_eq!(functions["functions"][parse.to_string()]["lib_number"], 0);
    let collapsed = ask(&viewer, "functions", "transform=collapse-lib:0");
    assert_eq!((&collapsed["count"], &collapsed["rows"][0]["total"]), (&json!(1), &json!(6)));
}

#[test]
fn counters_are_levels_or_sums_over_time() {
    let viewer = viewer();
    let answer = ask(&viewer, "counters", "parts=5");
    let values = |index: usize| answer["counters"][index]["values"].clone();
    // The level of a part is its highest one. A level lasts until the next value.
    assert_eq!((&answer["counters"][0]["label"], &answer["part_ns"]), (&json!("memory"), &json!(2e6)));
    assert_eq!(values(0), json!([1000.0, 1500.0, 800.0, 800.0, 820.0]));
    // The added amount is spread evenly over the time since the previous value.
    assert_eq!(values(1), json!([500.0, -696.0, 8.0, 8.0, 0.0]));
    let later = ask(&viewer, "counters", "parts=1&range=4000000-6000000");
    assert_eq!(later["counters"][0]["values"], json!([800.0]));
    assert_eq!(ask(&viewer, "info", "")["counters"], 2);
}

#[test]
fn a_moments_stack_is_of_the_sample_after_it() {
    let viewer = viewer();
    let at = |time: u64| {
        let answer = ask(&viewer, "moment", &format!("thread=0&time={time}"));
        let name =
            |frame: &Value| answer["functions"][frame.to_string()]["name"].as_str().unwrap().to_owned();
        answer["frames"].as_array().unwrap().iter().map(name).collect::<Vec<_>>()
    };
    assert_eq!(at(MS + MS / 2), ["read", "parse", "start"]);
    assert_eq!(at(4 * MS), ["draw", "start"]);
    assert_eq!(at(5 * MS), [""; 0]);
    assert_eq!(denied("moment", "thread=0&time=soon").message, "time takes a number, not \"soon\"");
}

#[test]
fn a_heat_map_has_a_cell_per_offset_of_a_second() {
    let map = ask(&viewer(), "heatmap", "rows=200");
    assert_eq!(
        (&map["column_ns"], &map["row_ns"], &map["rows"]),
        (&json!(1000 * MS), &json!(5 * MS), &json!(200))
    );
    let cells = map["cells"].as_array().unwrap();
    assert_eq!(
        (cells.len(), &cells[0], &cells[1], &cells[2]),
        (200, &json!(4 * MS), &json!(2 * MS), &json!(0))
    );
    let part = ask(&viewer(), "heatmap", "rows=200&range=0-5000000");
    assert_eq!((&part["cells"][0], &part["cells"][1]), (&json!(4 * MS), &json!(0)));
}

#[test]
fn markers_are_bars_in_lanes_and_short_ones_join() {
    let mut builder = ProfileBuilder::new(Meta {
        profiling_start: Some(0),
        profiling_end: Some(1000 * MS),
        ..Meta::default()
    });
    let category = builder.add_category("User", CategoryColor::Yellow);
    let process = builder.add_process(Process::default());
    let thread = builder.add_thread(Thread::new(process, "1", "main"));
    let mut add = |name: &str, start: u64, end: u64| {
        let timing = MarkerTiming::Interval(start, end);
        let name = builder.intern_string(name);
        builder.add_marker(
            thread,
            Marker { name, timing, category, schema: None, values: Vec::new(), stack: None },
        );
    };
    add("long", 0, 500 * MS);
    add("long", 100 * MS, 200 * MS);
    add("long", 300 * MS, 400 * MS);
    (0..5).for_each(|number| add("short", number * 1000, number * 1000 + 10));
    add("short", 900 * MS, 900 * MS + 10);
    let viewer = BuiltinViewer::new(builder.finish(), Arc::new(Files));
    let chart = ask(&viewer, "markers/chart", "width=1000");
    assert_eq!((&chart["count"], &chart["rows"][0]["lanes"]), (&json!(9), &json!(2)));
    let bars = |row: usize| -> Vec<_> {
        let bars = chart["rows"][row]["bars"].as_array().unwrap();
        bars.iter()
            .map(|bar| (bar[0].as_u64().unwrap(), bar[1].as_u64().unwrap(), bar[3].as_u64().unwrap()))
            .collect()
    };
    assert_eq!(bars(0), [(0, 0, 1), (1, 100 * MS, 1), (1, 300 * MS, 1)]);
    assert_eq!(bars(1), [(0, 0, 5), (0, 900 * MS, 1)]);
    assert_eq!(ask(&viewer, "markers/chart", "kind=short")["count"], 6);
}
