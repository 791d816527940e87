//! Tests of screens of several sizes, with a known profile.

use super::*;
use crate::args::SortBy;
use crate::top::live::Snapshot;
use crate::top::page::{PageData, page};
use crate::top::question::Question;
use nyquist_analysis::Index;
use nyquist_profile::{
    AllocationMeasure, CategoryId, Frame, Func, Lib, LibId, Marker, MarkerTiming, MarkerValue, Meta, Process,
    ProfileBuilder, Sample, StackId, Thread, allocation_schema,
};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

const MS: u64 = 1_000_000;

/// A stack of functions, the outermost first.
fn stack(builder: &mut ProfileBuilder, lib: LibId, functions: &[&str]) -> StackId {
    let mut stack = None;
    for function in functions {
        let name = builder.intern_string(function);
        let func = builder.intern_func(Func::new(name, Some(lib)));
        let frame = builder.intern_frame(Frame::label(func));
        stack = Some(builder.intern_stack(stack, frame));
    }
    stack.unwrap()
}

/// Ten seconds of two threads, of which one works at a time. Alpha runs for five seconds, called by
/// `main`. Then `main` itself runs for one, and beta for four, two of them in a worker.
pub(in crate::top) fn snapshot() -> Snapshot {
    let mut builder = ProfileBuilder::new(Meta { interval: MS, ..Meta::default() });
    let lib = builder.add_lib(Lib { name: "app".into(), ..Lib::default() });
    let process = builder.add_process(Process { pid: "7".into(), name: "app".into(), ..Process::default() });
    let threads = [("7", "app"), ("8", "worker")]
        .map(|(tid, name)| builder.add_thread(Thread::new(process, tid, name)));
    let alpha = stack(&mut builder, lib, &["main", "app::work<u8>", "alpha"]);
    let beta = stack(&mut builder, lib, &["main", "beta"]);
    let main = stack(&mut builder, lib, &["main"]);
    for time in 0..10_000 {
        let (thread, stack) = match time {
            0..5000 => (0, alpha),
            5000..6000 => (0, main),
            6000..8000 => (0, beta),
            _ => (1, beta),
        };
        builder.add_sample(threads[thread], Sample::new(time * MS, Some(stack), 1));
    }
    Snapshot { profile: builder.finish(), until: 10_000 * MS, ..Snapshot::default() }
}

/// The same, with the worker waiting for the five seconds before the last two.
fn snapshot_with_waits() -> Snapshot {
    let mut builder = ProfileBuilder::new(Meta { interval: MS, ..Meta::default() });
    let lib = builder.add_lib(Lib { name: "app".into(), ..Lib::default() });
    let process = builder.add_process(Process { pid: "7".into(), name: "app".into(), ..Process::default() });
    let thread = builder.add_thread(Thread::new(process, "8", "worker"));
    let (runs, waits) = (stack(&mut builder, lib, &["main"]), stack(&mut builder, lib, &["main", "lock"]));
    builder.add_sample(thread, Sample { weight: 3000, ..Sample::new(3_000 * MS, Some(runs), 0) });
    let wait = Sample { weight: 5000, off_cpu: true, ..Sample::new(8_000 * MS, Some(waits), 0) };
    builder.add_sample(thread, wait);
    builder.add_sample(thread, Sample { weight: 2000, ..Sample::new(10_000 * MS, Some(runs), 0) });
    Snapshot { profile: builder.finish(), until: 10_000 * MS, ..Snapshot::default() }
}

#[test]
fn running_and_waiting_are_shown_in_turn() {
    let check = |keys: &str, title: &str, name: &str, first: &str| {
        let lines =
            shown_in(ScreenState::new(SortBy::Own, 5, false).with_waits(true), &snapshot_with_waits(), keys);
        assert_eq!(lines[0], format!("app (7)  {title}"), "{keys}");
        assert_eq!(
            lines[1],
            format!(" 1 functions  2 tree  3 threads  4 output  5 flame graph   {name}"),
            "{keys}"
        );
        assert!(lines[4].starts_with(first), "{keys}: {}", lines[4]);
    };
    check(
        "",
        "1.0 threads waiting  10.0 s watched  5.0 s waited",
        "waiting",
        "100.0%  100.0%  100.0%  100.0%  lock",
    );
    check(
        "w",
        "1.4 threads running or waiting  10.0 s watched  10.0 s of threads",
        "CPU time and waiting",
        " 71.4%   71.4%   50.0%   50.0%  lock",
    );
    check(
        "ww",
        "CPU 40.0%  10.0 s watched  5,000 samples",
        "CPU time",
        "100.0%  100.0%  100.0%  100.0%  main",
    );
    check("www", "1.0 threads waiting  10.0 s watched  5.0 s waited", "waiting", "100.0%");
    check("3", "1.0 threads waiting  10.0 s watched  5.0 s waited", "waiting", " 100.0%    50.0%");
}

/// Ten seconds in which `main` allocates 3,072 bytes after one second, and frees 1,024 of them. Beta allocates 1,024
/// after eight. One in `distance` bytes was sampled.
pub(in crate::top) fn snapshot_with_allocations(distance: f64) -> Snapshot {
    let mut builder = ProfileBuilder::new(Meta { interval: MS, ..Meta::default() });
    let lib = builder.add_lib(Lib { name: "app".into(), ..Lib::default() });
    let process = builder.add_process(Process { pid: "7".into(), name: "app".into(), ..Process::default() });
    let thread = builder.add_thread(Thread::new(process, "7", "app"));
    let schema = Some(builder.add_marker_schema(allocation_schema()));
    let (name, category) = (builder.intern_string("allocations"), CategoryId::from_index(0));
    let (main, beta) = (stack(&mut builder, lib, &["main"]), stack(&mut builder, lib, &["main", "beta"]));
    builder.add_sample(thread, Sample::new(500 * MS, Some(main), 0));
    for (second, stack, total, live) in [(1, main, 3072.0, 2048.0), (8, beta, 1024.0, 1024.0)] {
        let values = [live, live, total, 0.0, 1.0, 1.0, 1.0, distance].map(MarkerValue::Number).to_vec();
        let timing = MarkerTiming::Instant(second * 1_000 * MS);
        builder.add_marker(thread, Marker { name, timing, category, schema, values, stack: Some(stack) });
    }
    Snapshot { profile: builder.finish(), until: 10_000 * MS, ..Snapshot::default() }
}

#[test]
fn allocated_and_live_bytes_are_shown_in_turn() {
    let shown = |keys: &str| {
        let state = ScreenState::new(SortBy::Own, 5, false);
        let state = state.with_allocations(Some(AllocationMeasure::Total));
        shown_in(state, &snapshot_with_allocations(1.0), keys)
    };
    let lines = shown("");
    assert_eq!(lines[0], "app (7)  204 B/s  10.0 s watched  4.0 kB allocated");
    assert!(lines[1].ends_with("  allocated bytes"), "{}", lines[1]);
    assert_eq!(
        lines[2..7],
        [
            "last 5 s              overall",
            "     SELF      TOTAL       SELF      TOTAL  FUNCTION               LIB",
            "   1.0 kB     1.0 kB     1.0 kB     1.0 kB  beta                   app",
            "              1.0 kB     3.0 kB     4.0 kB  main                   app",
            "",
        ]
    );
    let lines = shown("m");
    assert_eq!(lines[0], "app (7)  204 B/s  10.0 s watched  3.0 kB allocated and not freed");
    assert!(lines[1].ends_with("  live bytes"), "{}", lines[1]);
    assert!(shown("mm")[1].ends_with("  CPU time"));
    assert!(shown("mm")[0].ends_with("  1 sample") && shown("mmm") == shown(""));
    let tree = shown("o2");
    assert!(tree[4].starts_with("   4.0 kB     3.0 kB  ") && tree[4].contains("main"), "{}", tree[4]);
    let threads = shown("3");
    assert!(threads[3].starts_with("ALLOCATED  ALLOCATED         SHARE"), "{}", threads[3]);
    assert!(threads[4].starts_with("   1.0 kB     4.0 kB        100.0%"), "{}", threads[4]);
}

#[test]
fn sampled_bytes_have_their_error() {
    let state = ScreenState::new(SortBy::Own, 5, false).with_allocations(Some(AllocationMeasure::Live));
    let lines = shown_by(state, &snapshot_with_allocations(256.0), "o", (120, 24), true);
    // The root of 256 × 3,072, and of 256 × 1,024.
    assert_eq!(lines[0], "app (7)  204 B/s  10.0 s watched  3.0 kB ± 28.9% allocated and not freed");
    assert_eq!(lines[3].matches('±').count(), 2, "{}", lines[3]);
    assert!(lines[4].contains("2.0 kB     3.0 kB   28.9%  main"), "{}", lines[4]);
    assert!(lines[5].contains("1.0 kB     1.0 kB   50.0%  beta"), "{}", lines[5]);
}

#[test]
fn without_allocations_no_key_shows_them() {
    assert_eq!(shown("m", 80, 24), shown("", 80, 24));
}

#[test]
fn without_waits_there_is_only_cpu_time() {
    assert_eq!(shown("w", 80, 24), shown("", 80, 24));
}

/// The screen after these keys, line by line, without trailing spaces. `E` is Enter.
fn shown(keys: &str, width: u16, height: u16) -> Vec<String> {
    shown_with(&snapshot(), keys, width, height, true)
}

fn shown_with(snapshot: &Snapshot, keys: &str, width: u16, height: u16, unicode: bool) -> Vec<String> {
    shown_by(ScreenState::new(SortBy::Own, 5, false), snapshot, keys, (width, height), unicode)
}

fn shown_in(state: ScreenState, snapshot: &Snapshot, keys: &str) -> Vec<String> {
    shown_by(state, snapshot, keys, (80, 24), true)
}

fn shown_by(
    mut state: ScreenState,
    snapshot: &Snapshot,
    keys: &str,
    (width, height): (u16, u16),
    unicode: bool,
) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    state.height = body_height(height);
    state.flame.area = Rect::new(0, 2, width, height.saturating_sub(4));
    let output = ["hello".to_owned(), "wor\u{1b}[31mld".to_owned()];
    let answer = |question: &Question| {
        let profile = snapshot.measured(question.memory);
        let index = Index::new(&profile);
        page(PageData { index: &index, snapshot, output: &output }, question)
    };
    let mut page = answer(&state.question);
    for key in keys.chars() {
        let code = match key {
            'E' => KeyCode::Enter,
            '<' => KeyCode::Left,
            key => KeyCode::Char(key),
        };
        state.press(KeyEvent::new(code, KeyModifiers::NONE), &page);
        page = answer(&state.question);
    }
    let caption = Caption {
        name: "app (7)".into(),
        notes: vec!["Samples of user code at 1000 Hz".into()],
        ..Caption::default()
    };
    let screen = Screen { width: Some(usize::from(width)), colour: true, unicode };
    terminal.draw(|frame| draw(frame, &mut state, &page, &caption, screen)).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..height).map(|y| line(y).trim_end().to_owned()).collect()
}

#[test]
fn functions_have_shares_of_last_seconds_and_all() {
    let lines = shown("", 80, 24);
    assert_eq!(lines[0], "app (7)  CPU 100.0%  10.0 s watched  10,000 samples");
    assert_eq!(lines[1], " 1 functions  2 tree  3 threads  4 output  5 flame graph");
    assert_eq!(
        lines[2..9],
        [
            "last 5 s        overall",
            "  SELF   TOTAL    SELF   TOTAL  FUNCTION                           LIB",
            " 80.0%   80.0%   40.0%   40.0%  beta                               app",
            " 20.0%  100.0%   10.0%  100.0%  main                               app",
            "                 50.0%   50.0%  alpha                              app",
            "                         50.0%  app::work                          app",
            "",
        ]
    );
    assert_eq!(lines[23], "? help  q quit  1-5 views  s sort  / search  space pause  o overall  +- window");
}

#[test]
fn a_wide_screen_has_bars_and_room() {
    let lines = shown("", 200, 50);
    assert!(lines[4].starts_with(" 80.0%  █████████▋     80.0%   40.0%   40.0%  beta  "), "{}", lines[4]);
    assert!(lines[49].ends_with("+- window  i invert"), "{}", lines[49]);
    assert!(shown_with(&snapshot(), "", 200, 50, false)[4].starts_with(" 80.0%  ##########  "));
}

#[test]
fn functions_are_ordered_as_requested() {
    let order = |keys| -> Vec<String> {
        shown(keys, 80, 24)[4..8]
            .iter()
            .map(|line| line[32..].split(' ').next().unwrap().to_owned())
            .collect()
    };
    assert_eq!(order(""), ["beta", "main", "alpha", "app::work"]);
    assert_eq!(order("s"), ["main", "beta", "alpha", "app::work"], "by total");
    assert_eq!(order("ss"), ["alpha", "app::work", "beta", "main"], "by name");
    assert_eq!(order("o"), ["alpha", "beta", "main", "app::work"], "by all");
}

#[test]
fn names_are_short_or_full() {
    assert!(shown("n", 80, 24)[7].contains("app::work<u8>"));
}

#[test]
fn a_shorter_window_has_less() {
    let lines = shown("--", 80, 24);
    assert!(lines[2].starts_with("last 1 s "), "{}", lines[2]);
    assert!(lines[4].starts_with("100.0%  100.0%   40.0%   40.0%  beta"), "{}", lines[4]);
}

#[test]
fn the_window_is_no_longer_than_the_detail() {
    let snapshot = Snapshot { detailed_since: 7_000 * MS, ..snapshot() };
    assert!(shown_with(&snapshot, "", 80, 24, true)[2].starts_with("last 3 s "));
}

#[test]
fn a_search_leaves_the_functions_of_that_name() {
    let lines = shown("/ALPE", 80, 24);
    assert!(lines[1].ends_with("search ALP"), "{}", lines[1]);
    assert!(lines[4].contains("alpha") && lines[5].is_empty());
    assert_eq!(shown("/ALP", 80, 24)[23], "/ALP");
    assert!(shown("/nobodyE", 80, 24)[5].contains("No function of that name was sampled"));
    assert!(shown("/app::workE", 80, 24)[4].contains("app::work"), "as it is shown");
}

#[test]
fn the_tree_opens_and_closes() {
    let tree = |keys: &str| -> Vec<String> {
        let lines = shown(keys, 80, 24);
        lines[3..].iter().take_while(|line| !line.is_empty()).cloned().collect()
    };
    assert_eq!(
        tree("2"),
        [
            " TOTAL    SELF  FUNCTION AND WHAT IT CALLS                         LIB",
            "100.0%   20.0%  ▾ main                                             app",
            " 80.0%   80.0%      beta                                           app",
        ]
    );
    assert_eq!(
        tree("2o")[1..],
        [
            "100.0%   10.0%  ▾ main                                             app",
            " 50.0%            ▾ app::work                                      app",
            " 50.0%   50.0%        alpha                                        app",
            " 40.0%   40.0%      beta                                           app",
        ]
    );
    assert_eq!(tree("2<")[1..], ["100.0%   20.0%  ▸ main                                             app"]);
    assert_eq!(
        tree("2io")[1..4],
        [
            " 50.0%   50.0%  ▾ alpha                                            app",
            " 50.0%            ▾ app::work                                      app",
            " 50.0%                main                                         app",
        ]
    );
}

#[test]
fn a_function_leads_to_the_stacks_that_it_is_in() {
    let lines = shown("oE", 80, 24);
    assert!(lines[1].ends_with("search alpha"), "{}", lines[1]);
    assert!(lines[4].starts_with(" 50.0%          ▾ main "), "a share of all: {}", lines[4]);
    assert!(lines[6].contains("alpha") && lines[7].is_empty());
}

#[test]
fn threads_have_cpu_time_and_one_can_be_chosen() {
    let lines = shown("3", 80, 24);
    assert_eq!(
        lines[3..6],
        [
            "    CPU      CPU          TIME       TID  THREAD            PROCESS",
            "  60.0%    80.0%      8,000 ms         7  app               app (7)",
            "  40.0%    20.0%      2,000 ms         8  worker            app (7)",
        ]
    );
    let lines = shown("3jE", 80, 24);
    assert!(lines[0].starts_with("app (7)  CPU 40.0%") && lines[1].ends_with("thread worker"));
    assert!(lines[4].starts_with("100.0%  100.0%  100.0%  100.0%  beta"), "{}", lines[4]);
}

#[test]
fn printed_output_cannot_act_on_the_terminal() {
    assert_eq!(shown("4", 80, 24)[4..6], ["hello", "wor\\x1b[31mld"]);
}

#[test]
fn help_has_every_key_and_how_it_is_sampled() {
    let lines = shown("?", 80, 24);
    assert!(lines.iter().all(|line| line.chars().count() < 80), "a line is cut: {lines:#?}");
    for (keys, what) in KEYS {
        assert!(lines.iter().any(|line| line.contains(keys) && line.ends_with(what)), "{keys}");
    }
    assert!(lines.iter().any(|line| line.contains("Samples of user code")));
}

#[test]
fn a_pause_shows() {
    assert!(shown(" ", 80, 24)[0].ends_with("PAUSED"));
}

#[test]
fn a_narrow_screen_keeps_the_names() {
    let lines = shown("", 40, 24);
    assert!(lines[3].contains("FUNCTION") && !lines[3].contains("LIB"), "{}", lines[3]);
    assert!(lines[4].starts_with(" 80.0%   80.0%") && lines[4].contains("beta"), "{}", lines[4]);
    let lines = shown("3", 40, 24);
    assert!(lines[3].contains("THREAD") && lines[5].contains("worker"), "{lines:?}");
}

#[test]
fn before_the_first_sample_the_screen_says_so() {
    assert!(shown_with(&Snapshot::default(), "", 80, 24, true)[5].contains("Nothing was sampled yet"));
}

#[test]
fn the_chosen_row_is_on_the_screen_however_small() {
    assert!(shown("jjj", 80, 7).iter().any(|line| line.contains("app::work")));
    for (width, height) in [(1, 1), (3, 2), (10, 4), (20, 6), (79, 5)] {
        for keys in ["", "2", "2ojjj", "3", "4", "?", "/abc"] {
            assert_eq!(shown(keys, width, height).len(), usize::from(height));
        }
    }
}

#[test]
fn times_are_said_as_people_do() {
    let check = |seconds: u64, expected: &str| assert_eq!(duration(seconds * 1_000_000_000), expected);
    check(59, "59.0 s");
    check(61, "1 min 1 s");
    check(7260, "2 h 1 min");
}

#[test]
fn the_flame_graph_is_zoomed_by_keys() {
    let lines = shown("5", 80, 24);
    assert!(lines[2].starts_with("▏main"), "{}", lines[2]);
    assert!(lines[3].contains("▏beta"), "{}", lines[3]);
    assert_eq!(lines[22], "100.0% 5,000 ms, self 20.0%  main  app");
    let zoomed = shown("5jE", 40, 12);
    assert_eq!((zoomed[2].as_str(), zoomed[3].as_str()), ("▏main", "▏beta"));
    assert!(zoomed[10].starts_with("80.0% 4,000 ms"), "{}", zoomed[10]);
    let whole = shown("5o", 80, 24);
    assert!(whole[3].contains("▏app::work"), "{}", whole[3]);
}
