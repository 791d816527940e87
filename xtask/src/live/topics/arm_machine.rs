//! Recordings on 64-bit ARM by the real program in a virtual machine. The machine's clocks count
//! instructions, so the measured values do not depend on the load of this machine.

use super::context::Context;
use super::expect::{
    Stop, Verdict, expect, expect_contains, expect_eq, expect_measured, expect_share, expect_within,
};
use super::markers::{Marker, markers};
use super::profile::{Frame, Profile, Thread};
use super::test::Test;
use super::virtual_machine::{LIMIT, VirtualMachine};
use crate::arm::machine::{Left, STEADY, STEADY_AND_FAST};

pub(super) const TESTS: &[Test] = &[
    test("cycles_give_shares_and_whole_stacks", by_cycles),
    test("kernel_code_has_names_and_callers", kernel),
    test("a_plain_user_sees_user_code_alone", plain_user),
    test("ptrace_gives_shares_and_whole_stacks", by_ptrace),
    test("exit_statuses_are_the_commands", exit_statuses),
    test("waiting_threads_have_reasons_and_callers", waits),
    test("interrupted_waits_for_events_go_on", no_interrupted_calls),
    test("cycles_and_instructions_are_counted", counters),
    test("stacks_deeper_than_their_copies_are_whole", deep_stacks),
    test("top_shows_shares_while_a_program_runs", top),
    test("bpf_programs_have_names", bpf_names),
    test("markers_are_on_their_thread", marked),
    test("profiles_are_served_to_who_has_the_token", served),
    test("groups_filter_events_without_controllers", groups_without_controllers),
];

const fn test(name: &'static str, run: fn(&Context<'_>) -> Verdict) -> Test {
    Test { limit: LIMIT, ..Test::new(name, run) }
}

/// The shares of the functions of `shares`.
const SHARES: [(&str, f64); 3] = [("alpha", 0.5), ("beta", 0.3), ("gamma_", 0.2)];

/// A machine that contains `shares`, built with these flags.
fn with_shares<'a>(test: &'a Context<'a>, flags: &[&str]) -> Result<VirtualMachine<'a>, Stop> {
    Ok(VirtualMachine::new(test)?.with_options(STEADY).with_workload("shares", flags)?)
}

/// No program has enabled a controller in this machine, so that the kernel does not filter events by groups by itself.
fn groups_without_controllers(test: &Context<'_>) -> Verdict {
    let machine = VirtualMachine::new(test)?.with_options(STEADY);
    let left = machine.run(
        "nyquist record -s -o short.json.gz -- sh -c 'ls > /dev/null' 2> messages || exit 1
nyquist doctor > advice
cat /sys/fs/cgroup/cgroup.subtree_control > controllers",
    )?;
    let messages = left.text("messages")?;
    expect(!messages.contains("whole CPUs"), format_args!("{messages}"))?;
    expect_contains("doctor", &left.text("advice")?, "short processes are sampled too")?;
    expect_eq("the controllers that are left enabled", left.text("controllers")?.trim(), "")
}

/// A profile that the machine has written.
fn profile(left: &Left, name: &str) -> Result<Profile, Stop> {
    Ok(Profile::read(&left.path(name))?)
}

/// Checks the shares of the functions of `shares`, and that stacks reach the root.
fn expect_shares(what: &str, profile: &Profile) -> Verdict {
    let root = profile.share_of_stacks(|stack| stack.first().is_some_and(|frame| frame.function == "_start"));
    let root = profile.of_taken(root);
    expect_measured(root > 0.97, format_args!("{what}: {root:.3} of the stacks begin in _start"))?;
    let in_shares = profile.total_share("middle");
    for (function, share) in SHARES {
        let found = profile.total_share(function) / in_shares;
        expect_share(&format!("{what}: {function}"), found, share, profile.equal_count())?;
    }
    Ok(())
}

fn by_cycles(test: &Context<'_>) -> Verdict {
    let machine = with_shares(test, &[])?;
    let left = machine.run(
        "nyquist record -s -o shares.json.gz -- shares 2000 2> messages || exit 1
nyquist record -s --call-graph fp -o fp.json.gz -- shares 1000 || exit 1
nyquist report shares.json.gz > report",
    )?;
    expect_contains("the recorder", &left.text("messages")?, "by the CPU's cycle counter")?;
    expect_contains("the report", &left.text("report")?, "alpha")?;
    let shares = profile(&left, "shares.json.gz")?;
    expect_shares("by unwind information", &shares)?;
    expect_shares("by frame pointers", &profile(&left, "fp.json.gz")?)?;
    let meta = &shares.json["meta"];
    expect_eq("the ABI", meta["abi"].as_str(), Some("aarch64-gcc3"))?;
    expect_contains("the processor", meta["CPUName"].as_str().unwrap_or_default(), "part 0x")?;
    for flags in ["-mbranch-protection=standard", "-fomit-frame-pointer"] {
        let script = "nyquist record -s -o shares.json.gz -- shares 1000";
        let left = with_shares(test, &[flags])?.run(script)?;
        expect_shares(flags, &profile(&left, "shares.json.gz")?)?;
    }
    Ok(())
}

fn is_kernels(frame: &Frame) -> bool {
    frame.lib.as_deref() == Some("[kernel.kallsyms]")
}

fn kernel(test: &Context<'_>) -> Verdict {
    let machine = VirtualMachine::new(test)?.with_options(STEADY).with_workload("kernel_heavy", &[])?;
    let left = machine.run("nyquist record -s -o kernel.json.gz -- kernel_heavy 1000 zero")?;
    let profile = profile(&left, "kernel.json.gz")?;
    let share = profile.share_with(is_kernels);
    expect_measured(share > 0.8, format_args!("{share:.3} of the time is in the kernel"))?;
    let reads = profile.share_of_stacks(|stack| {
        let names: Vec<&str> = stack.iter().map(|frame| frame.function.as_str()).collect();
        names.first() == Some(&"_start")
            && ["read_zeroes", "ksys_read"].iter().all(|name| names.contains(name))
    });
    expect_measured(reads > 0.6, format_args!("{reads:.3} of the stacks lead from _start to ksys_read"))
}

fn plain_user(test: &Context<'_>) -> Verdict {
    let left = with_shares(test, &[])?.run(
        "echo 2 > /proc/sys/kernel/perf_event_paranoid
chmod 1777 /tmp
su user -s /bin/sh -c 'cd /tmp && nyquist record -s --backend perf -o /tmp/shares.json.gz -- shares 1000' || exit 1
cp /tmp/shares.json.gz .",
    )?;
    let profile = profile(&left, "shares.json.gz")?;
    expect_shares("a plain user's", &profile)?;
    let kernels = profile.share_with(|frame| is_kernels(frame) || frame.function.starts_with("0xffff"));
    expect_eq("the share of the kernel's addresses", kernels, 0.0)
}

fn by_ptrace(test: &Context<'_>) -> Verdict {
    for flags in [&[][..], &["-mbranch-protection=standard"]] {
        let machine = with_shares(test, flags)?.with_workload("fork_tree", &[])?;
        let left = machine.run(
            "nyquist record -s --backend ptrace -o shares.json.gz -- shares 2000 || exit 1
nyquist record -s --backend ptrace -o tree.json.gz -- fork_tree 1000",
        )?;
        expect_shares("by ptrace", &profile(&left, "shares.json.gz")?)?;
        let tree = profile(&left, "tree.json.gz")?;
        for (name, share) in
            [("parent-20", 0.2), ("child-30", 0.3), ("child-40", 0.4), ("grandchild-10", 0.1)]
        {
            let beside = format!("fork_tree ({name})");
            let its = tree.threads.iter().filter(|thread| thread.process == name || thread.name == beside);
            let found = its.map(Thread::total).sum::<f64>() / tree.total();
            expect_within(name, found, share, 0.2)?;
        }
    }
    Ok(())
}

fn exit_statuses(test: &Context<'_>) -> Verdict {
    let machine = VirtualMachine::new(test)?.with_options(STEADY).with_workload("ending", &[])?;
    let left = machine.run(
        "for backend in perf ptrace; do
nyquist record -s --backend $backend -o exit.json.gz -- ending 100 exit 7; echo $? >> statuses
nyquist record -s --backend $backend -o signal.json.gz -- ending 100 signal 15; echo $? >> statuses
nyquist record -s --backend $backend -o none.json.gz -- /bin/no-such-program; echo $? >> statuses
done",
    )?;
    expect_eq("the statuses", left.text("statuses")?.as_str(), "7\n143\n127\n7\n143\n127\n")
}

fn waits(test: &Context<'_>) -> Verdict {
    let machine = VirtualMachine::new(test)?.with_options(STEADY).with_workload("reasons", &[])?;
    let left = machine.run("nyquist record -s --off-cpu -o waits.json.gz -- reasons 2 /tmp/file")?;
    let profile = profile(&left, "waits.json.gz")?;
    let cases = [
        ("sleeps", "sleep", "sleeps"),
        ("pipe", "pipe", "reads_pipe"),
        ("socket", "network", "receives"),
        ("polls", "events", "polls"),
        ("wants", "lock", "wants_lock"),
        ("child", "child process", "awaits_child"),
    ];
    for (thread, reason, function) in cases {
        let reason = format!("[waiting: {reason}]");
        let stacks = profile.threads_named(thread).flat_map(Thread::stacks_of_rows);
        let named = stacks.map(|stack| stack.iter().map(|frame| frame.function.clone()).collect::<Vec<_>>());
        let found = named.filter(|names| names.last() == Some(&reason)).last().unwrap_or_default();
        let is_whole = found.iter().any(|name| name == function) && found.iter().any(|name| name == "run");
        expect(
            is_whole,
            format_args!("{thread} waits in {found:?}, which does not lead to {function} and run"),
        )?;
    }
    Ok(())
}

fn no_interrupted_calls(test: &Context<'_>) -> Verdict {
    let machine = VirtualMachine::new(test)?.with_options(STEADY).with_workload("waits_for_events", &[])?;
    let left = machine
        .run("nyquist record -s --backend ptrace -o waits.json.gz -- waits_for_events 3000 > counts")?;
    let counts = left.text("counts")?;
    let numbers: Vec<u64> = counts.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [waits, interrupted] = numbers[..] else { return Err(Stop::Failed(format!("it says {counts:?}"))) };
    expect(waits > 500, format_args!("it has waited {waits} times only"))?;
    expect_eq("waits that were interrupted", interrupted, 0)
}

fn counters(test: &Context<'_>) -> Verdict {
    let left = with_shares(test, &[])?.run(
        "nyquist stat -e cycles,instructions -- shares 500 > counts 2>&1 || exit 1
nyquist record -s -e instructions -o shares.json.gz -- shares 1000 2> recorded",
    )?;
    let counts = left.text("counts")?;
    let count = |event: &str| -> Result<f64, Stop> {
        let line = counts.lines().find(|line| line.split_whitespace().nth(1) == Some(event));
        let digits =
            line.and_then(|line| line.split_whitespace().next()).map(|digits| digits.replace(',', ""));
        digits.and_then(|digits| digits.parse().ok()).ok_or(Stop::Failed(format!("no {event} in {counts}")))
    };
    // The emulator counts nanoseconds as cycles.
    expect_within("cycles an instruction", count("cycles")? / count("instructions")?, 4.0, 0.02)?;
    expect_contains("the recorder", &left.text("recorded")?, "Events: instructions")?;
    expect_shares("beside instructions", &profile(&left, "shares.json.gz")?)
}

fn deep_stacks(test: &Context<'_>) -> Verdict {
    // This machine is faster than the others, because reading the memory of a running program has a time
    // limit.
    let machine = VirtualMachine::new(test)?.with_options(STEADY_AND_FAST);
    let left = machine
        .with_workload("recursion", &[])?
        .run("nyquist record -v -s -o deep.json.gz -- recursion 1000 400 2> recorded")?;
    let profile = profile(&left, "deep.json.gz")?;
    let whole = profile.share_of_stacks(|stack| {
        let calls = stack.iter().filter(|frame| frame.function == "descend").count();
        stack.first().is_some_and(|frame| frame.function == "_start") && calls == 400
    });
    let recorded = left.text("recorded")?;
    expect_measured(whole > 0.5, format_args!("{whole:.3} of the stacks have all calls: {recorded}"))
}

fn top(test: &Context<'_>) -> Verdict {
    let left = with_shares(test, &[])?.run("nyquist top -b --interval 2 -- shares 6000 > tables")?;
    let text = left.text("tables")?;
    let last = text.trim_end().rsplit("\n\n").next().unwrap_or_default();
    for (function, share) in SHARES {
        let line = last.lines().find(|line| line.trim_end().ends_with(function)).unwrap_or_default();
        // The shares of the last interval come before those of all samples: of the function itself, and with
        // what it calls.
        let own = line.split('%').nth(2).and_then(|own| own.trim().parse::<f64>().ok());
        let is_close = own.is_some_and(|own| (own / 100.0 - share).abs() < 0.05);
        expect_measured(is_close, format_args!("{function} has {own:?} %, and not {share}: {text}"))?;
    }
    Ok(())
}

fn bpf_names(test: &Context<'_>) -> Verdict {
    let machine = VirtualMachine::new(test)?.with_options(STEADY).with_workload("bpf_program", &[])?;
    let left = machine.run("nyquist record -s -o bpf.json.gz -- bpf_program 500")?;
    let profile = profile(&left, "bpf.json.gz")?;
    let share = profile
        .share_with(|frame| frame.function.starts_with("bpf_prog_") && frame.function.ends_with("_spin"));
    let names = profile.functions();
    expect_measured(share > 0.7, format_args!("{share:.3} are in the program; functions: {:?}", names.keys()))
}

fn marked(test: &Context<'_>) -> Verdict {
    // The recorder works on the same CPU as the program, and delays the ends of its steps.
    let machine = VirtualMachine::new(test)?.with_options(STEADY_AND_FAST).with_workload("markers", &[])?;
    let left = machine.with_example("nyquist-tracing", "steps")?.run(
        "nyquist record -s -o library.json.gz -- steps || exit 1
nyquist record -s -o records.json.gz -- markers records",
    )?;
    let found = markers(&profile(&left, "library.json.gz")?)?;
    let named = |name: &str| found.iter().filter(|marker| marker.name == name).collect::<Vec<_>>();
    let (steps, ends) = (named("step"), named("step is done"));
    let numbers = |markers: &[&Marker]| {
        let number = |marker: &&Marker| marker.data["number"].as_u64();
        markers.iter().map(number).collect::<Vec<_>>()
    };
    let expected: Vec<_> = (0..10).map(Some).collect();
    expect_eq("the numbers of the steps", numbers(&steps), expected.clone())?;
    expect_eq("the numbers of the moments", numbers(&ends), expected)?;
    for step in steps {
        let (thread, took) = (&step.thread, step.end - step.start);
        expect_eq("the thread of a step", thread.as_str(), "steps")?;
        expect_measured((20.0..40.0).contains(&took), format_args!("a step of 20 ms took {took} ms"))?;
    }
    let by_hand = markers(&profile(&left, "records.json.gz")?)?;
    let names: Vec<_> = by_hand.iter().map(|marker| marker.name.as_str()).collect();
    expect_eq("markers without a library", names, vec!["load file", "load file", "tick"])
}

/// The machine's own client asks for the profile and for the viewer's page, with the token and without it.
fn served(test: &Context<'_>) -> Verdict {
    let left = with_shares(test, &[])?.run(
        "ifconfig lo up
nyquist record -s -o shares.json.gz -- shares 300 || exit 1
nyquist load --no-open --ui builtin -P 3000 shares.json.gz > said 2>&1 &
until grep -q http said; do sleep 0.1; done
page=$(grep -o 'http://[^ ]*' said | head -n 1)
base=${page%/}
wget -q -O page.html $base/ || exit 1
wget -q -O served.json $base/profile.json || exit 1
wget -O refused http://127.0.0.1:3000/profile.json 2> refusal && exit 1
kill %1; wait %1; echo $? > ended",
    )?;
    expect_contains("the page", &left.text("page.html")?, "<script")?;
    expect_contains("without the token", &left.text("refusal")?, "404 Not Found")?;
    expect_shares("the served profile's", &profile(&left, "served.json")?)?;
    expect_eq("the server's status", left.text("ended")?.trim(), "0")
}
