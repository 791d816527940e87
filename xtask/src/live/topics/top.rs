//! `nyquist top`: the screen, the effects of keys, and that the terminal is restored.

use super::context::Context;
use super::expect::{Verdict, expect, expect_contains, expect_eq, expect_measured, need_root};
use super::invocation::Running;
use super::permissions::at_paranoid;
use super::test::{SHARES, Test};

pub(super) const TESTS: &[Test] = &[
    Test::new("a_commands_functions_are_shown_until_q", command).quick().everywhere(),
    Test::new("a_process_is_watched_by_thread_and_left_alone", attached),
    Test::new("signals_restore_the_terminal_and_end_commands", terminated),
    Test::new("several_processes_are_watched_together", several),
    Test::new("an_ended_command_can_still_be_looked_at", ended),
    Test::new("a_command_that_fails_is_not_silent", failed),
    Test::new("a_commands_output_does_not_disturb_the_screen", output),
    Test::new("batches_are_tables_of_the_right_shares", batch).quick().in_pairs(SHARES).everywhere(),
    Test::new("waits_are_shown_while_they_last", waits).quick().in_pairs(SHARES),
    Test::new("a_plain_user_sees_where_threads_wait", waits_of_plain_user).in_pairs(SHARES),
    Test::new("allocated_and_live_bytes_are_shown", allocations),
    Test::new("a_plain_user_sees_where_memory_goes", allocations_of_plain_user),
    Test::new("what_cannot_be_seen_of_memory_is_said", refused_allocations),
    Test::new("a_missing_command_leaves_the_terminal_alone", not_there),
];

/// The sequence that leaves the alternate screen (xterm's private mode 1049).
const LEAVE: &str = "\u{1b}[?1049l";

fn watch<'a>(test: &'a Context<'a>, args: &[&str]) -> Result<Running<'a>, anyhow::Error> {
    let args: Vec<&str> = ["top", "--interval", "0.2"].iter().chain(args).copied().collect();
    test.nyquist(&args).env("LANG", "C.UTF-8").env("TERM", "xterm").on_terminal().start()
}

fn workload(test: &Context<'_>, name: &str) -> String {
    test.workload(name).display().to_string()
}

/// Checks that the terminal has its earlier settings, and that the alternate screen was left.
fn expect_given_back(running: &Running<'_>, before: &str) -> Verdict {
    running.wait_until("the terminal to be as it was", || running.terminal_settings() == before)?;
    // The last output may arrive a moment later.
    running.wait_until("the alternate screen to be left", || running.shown_so_far().contains(LEAVE))?;
    Ok(())
}

fn command(test: &Context<'_>) -> Verdict {
    let mut running = watch(test, &[&workload(test, "shares"), "60000"])?;
    let before = running.terminal_settings_before();
    // All three functions have samples only after a whole turn.
    running.wait_until_on_screen("alpha")?;
    expect(running.terminal_settings() != before, "the terminal was not taken over")?;
    running.press("2")?;
    running.wait_until_on_screen("FUNCTION AND WHAT IT CALLS")?;
    running.press("/alp")?;
    running.wait_until_on_screen("/alp")?;
    running.press("\r")?;
    running.wait_until_on_screen("search alp")?;
    running.press("3")?;
    running.wait_until_on_screen("TID")?;
    running.press("5\u{1b}")?;
    running.wait_until_on_screen("▏main")?;
    running.wait_until_on_screen("▏alpha")?;
    running.press("?")?;
    running.wait_until_on_screen("forget everything so far")?;
    running.press("xq")?;
    expect_given_back(&running, &before)?;
    expect_eq("the status", running.wait()?.code(), 0)
}

fn attached(test: &Context<'_>) -> Verdict {
    let ready = test.fresh("ready");
    let call = test.program(test.workload("endless")).args(&["2"]);
    let target = call.env("WORKLOAD_READY", ready.display().to_string()).start()?;
    target.wait_for_file(&ready)?;
    let mut running = watch(test, &["-p", &target.pid().to_string()])?;
    running.wait_until_on_screen("helper_loop")?;
    running.press("3")?;
    running.wait_until_on_screen("TID")?;
    running.press("/helper\r")?;
    running.wait_until_on_screen("search helper")?;
    running.press("\r")?;
    running.wait_until_on_screen("thread helper")?;
    running.press("q")?;
    expect_eq("the status", running.wait()?.code(), 0)?;
    target.signal(libc::SIGKILL)?;
    expect_eq("how the process has ended", target.wait()?.code(), 128 + libc::SIGKILL)
}

fn terminated(test: &Context<'_>) -> Verdict {
    for signal in [libc::SIGTERM, libc::SIGHUP, libc::SIGINT] {
        let running = watch(test, &[&workload(test, "endless"), "1"])?;
        let before = running.terminal_settings_before();
        running.wait_until_on_screen("main_loop")?;
        running.signal(signal)?;
        expect_given_back(&running, &before)?;
        let finished = running.wait()?;
        expect_eq("the status", finished.code(), 128 + signal)?;
        expect(!finished.stderr.contains("still runs"), "the command was not ended")?;
    }
    Ok(())
}

fn several(test: &Context<'_>) -> Verdict {
    let mut targets = Vec::new();
    for name in ["first", "second"] {
        let ready = test.fresh(name);
        let call = test.program(test.workload("endless")).args(&["1"]);
        let target = call.env("WORKLOAD_READY", ready.display().to_string()).start()?;
        target.wait_for_file(&ready)?;
        targets.push(target);
    }
    let pids: Vec<_> = targets.iter().map(|target| target.pid().to_string()).collect();
    let mut running = watch(test, &["-p", &pids.join(",")])?;
    running.wait_until_on_screen(&format!("({})", pids.join(", ")))?;
    running.press("3")?;
    running.wait_until("a thread of each process", || {
        let screen = super::emulator::screen(&running.shown_so_far());
        pids.iter().all(|pid| screen.iter().skip(1).any(|line| line.contains(pid.as_str())))
    })?;
    running.press("q")?;
    expect_eq("the status", running.wait()?.code(), 0)?;
    for target in targets {
        target.signal(libc::SIGKILL)?;
        expect_eq("how the process has ended", target.wait()?.code(), 128 + libc::SIGKILL)?;
    }
    Ok(())
}

fn ended(test: &Context<'_>) -> Verdict {
    let mut running = watch(test, &[&workload(test, "shares"), "500"])?;
    let before = running.terminal_settings_before();
    running.wait_until_on_screen("ended with status 0")?;
    running.wait_until_on_screen("gamma_")?;
    running.press("q")?;
    expect_given_back(&running, &before)?;
    expect_eq("the status", running.wait()?.code(), 0)
}

fn failed(test: &Context<'_>) -> Verdict {
    let mut running = watch(test, &["sh", "-c", "echo cannot do that >&2; exit 3"])?;
    running.wait_until_on_screen("ended with status 3")?;
    running.press("q")?;
    let finished = running.wait()?;
    expect_eq("the status", finished.code(), 3)?;
    let after = finished.stderr.rsplit(LEAVE).next().unwrap_or_default();
    expect_contains("what is said in the end", after, "cannot do that")
}

fn output(test: &Context<'_>) -> Verdict {
    let script = "echo OUT; echo ERR >&2; read line || echo NOTHING TO READ; while :; do :; done";
    let mut running = watch(test, &["sh", "-c", script])?;
    running.wait_until_on_screen("sh (")?;
    running.wait_until_on_screen("LIB")?;
    let shown = running.shown_so_far();
    expect(!shown.contains("ERR"), "it was printed over the screen")?;
    running.press("4")?;
    running.wait_until_on_screen("OUT\nERR\n")?;
    running.wait_until_on_screen("NOTHING TO READ")?;
    running.press("\u{3}")?;
    expect_eq("the status", running.wait()?.code(), 0)
}

fn batch(test: &Context<'_>) -> Verdict {
    let shares = workload(test, "shares");
    let finished =
        test.nyquist(&["top", "-w", "60", "--interval", "0.5", &shares, "1500"]).run()?.succeeded()?;
    let text = finished.stdout_text();
    let tables: Vec<&str> = text.split("\n\n").filter(|table| !table.is_empty()).collect();
    expect(tables.len() >= 2, format_args!("there are {} tables: {text}", tables.len()))?;
    let last = tables[tables.len() - 1];
    for (function, share) in [("alpha", 50.0), ("beta", 30.0), ("gamma_", 20.0)] {
        let line = last.lines().find(|line| line.trim_end().ends_with(function));
        let own = line.and_then(|line| line.split('%').next()).and_then(|own| own.trim().parse::<f64>().ok());
        let close = own.is_some_and(|own| (own - share).abs() < 6.0);
        expect_measured(close, format_args!("{function} has {own:?} %, not {share}: {last}"))?;
    }
    let finished = test.nyquist(&["top", "-b", "-n", "1", "--", &shares, "60000"]).run()?.succeeded()?;
    expect_eq("the tables", finished.stdout_text().matches("FUNCTION").count(), 1)
}

/// Checks that the last table says that one thread has slept all the time.
fn expect_sleeping(text: &str) -> Verdict {
    let last = text.trim_end().rsplit("\n\n").next().unwrap_or_default();
    let heading = last.lines().next().unwrap_or_default();
    let number = |before: &str| heading.split(before).next()?.rsplit(' ').next()?.parse::<f64>().ok();
    expect_measured(
        number(" threads waiting").is_some_and(|threads| (0.9..=1.1).contains(&threads)),
        format_args!("one thread that sleeps: {heading}"),
    )?;
    let line = last.lines().find(|line| line.trim_end().ends_with("[waiting: sleep]")).unwrap_or_default();
    let share = line.split('%').next().and_then(|share| share.trim().parse::<f64>().ok());
    expect_measured(share.is_some_and(|share| share > 95.0), format_args!("the share of sleep: {last}"))
}

fn waits(test: &Context<'_>) -> Verdict {
    // The only wait of this program lasts longer than it is observed.
    let batch = ["top", "--off-cpu", "-b", "-n", "3", "--interval", "0.5"];
    let text = test.nyquist(&batch).args(&["sleep", "60"]).run()?.succeeded()?.stdout_text();
    expect_sleeping(&text)?;
    let file = test.fresh("file").display().to_string();
    let mut running = watch(test, &["--off-cpu", &workload(test, "reasons"), "60", &file])?;
    running.wait_until_on_screen("threads waiting")?;
    running.wait_until_on_screen("[waiting: lock]")?;
    running.press("3")?;
    running.wait_until_on_screen("WAITS")?;
    running.press("1w")?;
    running.wait_until_on_screen("CPU time and waiting")?;
    running.press("w")?;
    running.wait_until("CPU time alone", || {
        let screen = super::emulator::screen(&running.shown_so_far());
        screen.iter().take(2).any(|line| line.trim_end().ends_with("CPU time"))
            && !screen.iter().any(|line| line.contains("[waiting: lock]"))
    })?;
    running.press("q")?;
    expect_eq("the status", running.wait()?.code(), 0)
}

fn waits_of_plain_user(test: &Context<'_>) -> Verdict {
    let _held = at_paranoid(2)?;
    let batch = ["top", "--off-cpu", "-b", "-n", "8", "--interval", "0.5", "sleep", "60"];
    expect_sleeping(&test.nyquist(&batch).by_plain_user().run()?.succeeded()?.stdout_text())
}

/// The amounts of a function in a table: of the last seconds its own and its total, and the same of the whole.
fn amounts<'t>(table: &'t str, function: &str) -> Vec<&'t str> {
    let line = table.lines().find(|line| line.trim_end().ends_with(&format!(" {function}")));
    line.unwrap_or_default().split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect()
}

/// Checks the last table of a program that allocates 3,000,000 bytes in `temps`, which it frees, and 2,000,000 in
/// `keeps`, which it does not.
fn expect_allocations(test: &Context<'_>, event: &str, by_plain_user: bool) -> Verdict {
    let options = ["top", "-b", "-w", "60", "--alloc", "--alloc-rate", "1", "--event", event];
    let call = test.nyquist(&options).args(&[&workload(test, "allocates")]);
    let call = if by_plain_user { call.by_plain_user() } else { call };
    let finished = call.run()?.succeeded()?;
    expect_contains("what is said", &finished.stderr, "Recording each allocation by a library")?;
    let text = finished.stdout_text();
    let last = text.trim_end().rsplit("\n\n").next().unwrap_or_default();
    let keeps = amounts(last, "keeps");
    expect_eq("the bytes of keeps", keeps.get(..4).unwrap_or_default(), &["1.9 MB"; 4][..])?;
    let temps = amounts(last, "temps");
    let expected = if event == "live" { &[][..] } else { &["2.9 MB"; 4][..] };
    expect_eq("the bytes of temps", temps.get(..4).unwrap_or_default(), expected)
}

fn allocations(test: &Context<'_>) -> Verdict {
    expect_allocations(test, "total", false)?;
    expect_allocations(test, "live", false)?;
    // It allocates and frees for longer than it is watched. Only what is sampled has an error.
    let allocates = workload(test, "allocates");
    let mut running = watch(test, &["--alloc", "--", &allocates, "pairs", "1000000000"])?;
    running.wait_until_on_screen("allocated bytes")?;
    running.wait_until_on_screen("B/s")?;
    running.wait_until_on_screen("±")?;
    running.press("m")?;
    running.wait_until_on_screen("live bytes")?;
    running.press("m")?;
    running.wait_until_on_screen("CPU time")?;
    running.press("q")?;
    expect_eq("the status", running.wait()?.code(), 0)
}

fn allocations_of_plain_user(test: &Context<'_>) -> Verdict {
    need_root()?;
    expect_allocations(test, "total", true)
}

/// The same sentences as those of `record --alloc`.
fn refused_allocations(test: &Context<'_>) -> Verdict {
    let pid = std::process::id().to_string();
    let refused = test.nyquist(&["top", "-b", "--alloc", "-p", &pid]).run()?;
    expect_eq("the status", refused.code(), 1)?;
    expect_contains("what is said", &refused.stderr, "not of those that run already")?;
    expect_contains("what works", &refused.stderr, "nyquist top --alloc COMMAND")?;
    let call = test.nyquist(&["top", "-b", "--alloc", &workload(test, "shares-static"), "500"]);
    let watched = call.run()?.succeeded()?;
    expect_contains("what is said", &watched.stderr, "allocations are not recorded: ")?;
    expect_contains("what is said", &watched.stderr, "linked statically")?;
    expect_contains("its CPU time", &watched.stdout_text(), "alpha")?;
    let command = format!("ulimit -f 100; exec '{}'", workload(test, "allocates"));
    let call = test.nyquist(&["top", "-b", "--alloc", "--alloc-rate", "1", "sh", "-c", &command]);
    let watched = call.run()?.succeeded()?;
    expect_contains("what is said", &watched.stderr, "there was no space for the records")
}

fn not_there(test: &Context<'_>) -> Verdict {
    let running = watch(test, &["./nobody-has-this"])?;
    let finished = running.wait()?;
    expect_eq("the status", finished.code(), 127)?;
    expect_contains("what is said", &finished.stderr, "nobody-has-this")?;
    expect(!finished.stderr.contains("1049"), "the screen was taken")
}
