//! Profiles that are written as perf.data, compared in perf, samply and nyquist.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::context::Context;
use super::expect::{Stop, Verdict, expect, expect_contains, expect_eq, skip};
use super::profile::Profile;
use super::test::Test;

pub(super) const TESTS: &[Test] = &[
    Test::new("perf_shows_the_profiles_shares_and_chains", shares_and_chains).quick(),
    Test::new("perf_reports_what_was_exported", report),
    Test::new("an_export_read_again_is_the_same_profile", again).quick(),
    Test::new("samply_reads_what_was_exported", samply),
    Test::new("names_without_a_binary_are_shown_by_perf", names),
    Test::new("perf_has_the_kernels_functions_in_one_dso", kernel),
    Test::new("an_export_needs_a_file", no_stream).quick(),
];

/// The workload's own functions, on which perf and nyquist must agree. For the C library's functions, they
/// use different symbols.
const OWN: [&str; 5] = ["alpha", "beta", "gamma_", "middle", "main"];

/// Records the workload and exports the profile.
fn exported(test: &Context<'_>) -> Result<(Profile, PathBuf), Stop> {
    let profile = test.fresh("recorded.json.gz");
    let call = test.nyquist(&["record", "-s", "-o"]).path(&profile).args(&["--"]);
    call.path(&test.workload("shares")).args(&["500"]).run()?.succeeded()?;
    let recording = export(test, &profile)?;
    Ok((Profile::read(&profile)?, recording))
}

fn export(test: &Context<'_>, profile: &Path) -> Result<PathBuf, Stop> {
    let recording = test.fresh("exported.data");
    let call = test.nyquist(&["export", "--format", "perf.data", "-o"]).path(&recording);
    call.path(profile).run()?.succeeded()?;
    Ok(recording)
}

/// The output of `perf` for a recording.
fn perf(test: &Context<'_>, args: &[&str], recording: &Path) -> Result<String, Stop> {
    match test.program("perf").args(args).args(&["-i"]).path(recording).run() {
        Ok(finished) => Ok(finished.succeeded()?.stdout_text()),
        Err(error) => skip(format_args!("there is no perf here: {error}")),
    }
}

/// How often each call chain of the workload's functions occurs in `perf script`, outermost function first.
fn perf_chains(test: &Context<'_>, recording: &Path) -> Result<BTreeMap<String, usize>, Stop> {
    let text = perf(test, &["script", "-F", "ip,sym"], recording)?;
    let chains = text.split("\n\n").filter(|sample| !sample.trim().is_empty());
    let names = |sample: &str| -> Vec<String> {
        let names = sample.lines().filter_map(|line| line.split_whitespace().nth(1));
        names.map(str::to_owned).collect()
    };
    Ok(counted(chains.map(|sample| names(sample).into_iter().rev().collect())))
}

fn counted(chains: impl Iterator<Item = Vec<String>>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for chain in chains {
        let own: Vec<_> = chain.into_iter().filter(|name| OWN.contains(&name.as_str())).collect();
        *counts.entry(own.join(";")).or_default() += 1;
    }
    counts
}

fn our_chains(profile: &Profile) -> BTreeMap<String, usize> {
    let names = |frames: Vec<&super::profile::Frame>| {
        frames.into_iter().map(|frame| frame.function.clone()).collect::<Vec<_>>()
    };
    counted(profile.stacks().map(|(frames, _)| names(frames)))
}

fn shares_and_chains(test: &Context<'_>) -> Verdict {
    let (profile, recording) = exported(test)?;
    let (perfs, ours) = (perf_chains(test, &recording)?, our_chains(&profile));
    expect(ours.keys().any(|chain| chain == "main;middle;alpha"), format_args!("{ours:?}"))?;
    expect_eq("call chains", perfs, ours)
}

fn report(test: &Context<'_>) -> Verdict {
    let (profile, recording) = exported(test)?;
    let text = perf(test, &["report", "--stdio", "-g", "none", "--no-children"], &recording)?;
    let share = |function: &str| {
        let line = text.lines().find(|line| line.split_whitespace().last() == Some(function));
        line.and_then(|line| line.trim().split('%').next()?.parse::<f64>().ok()).unwrap_or_default()
    };
    for function in ["alpha", "beta", "gamma_"] {
        // Perf counts samples by symbol, including those in calls that are inlined into it.
        let is_symbol = |frame: &&&super::profile::Frame| frame.inline_depth == 0;
        let ours = profile.share_of_stacks(|stack| {
            stack.iter().rev().find(is_symbol).is_some_and(|frame| frame.function == function)
        });
        let (perfs, ours) = (share(function), 100.0 * ours);
        expect((perfs - ours).abs() < 0.02, format_args!("{function}: {perfs} % instead of {ours} %"))?;
    }
    let header = perf(test, &["report", "--header-only"], &recording)?;
    expect_contains("perf's header", &header, "perf version : nyquist")?;
    let ids = perf(test, &["buildid-list"], &recording)?;
    expect_contains("the build ids", &ids, &test.workload("shares").display().to_string())
}

fn again(test: &Context<'_>) -> Verdict {
    let (profile, recording) = exported(test)?;
    let imported = test.fresh("again.json.gz");
    let call = test.nyquist(&["import", "-s", "-o"]).path(&imported).path(&recording);
    call.run()?.succeeded()?;
    let imported = Profile::read(&imported)?;
    let samples = |profile: &Profile| -> Vec<String> {
        let of_thread = |thread: &super::profile::Thread| {
            let stacks = thread.stacks().map(|(stack, _)| {
                stack.iter().map(|frame| frame.function.clone()).collect::<Vec<_>>().join(";")
            });
            let times = thread.samples.iter().map(|sample| (sample.time, sample.weight));
            let whose = format!("{} {} {}", thread.pid, thread.process, thread.name);
            times.zip(stacks).map(move |(at, stack)| format!("{whose} {at:?} {stack}")).collect::<Vec<_>>()
        };
        profile.threads.iter().flat_map(of_thread).collect()
    };
    let (imported, recorded) = (samples(&imported), samples(&profile));
    expect_eq("samples", imported.len(), recorded.len())?;
    for (imported, recorded) in imported.iter().zip(&recorded) {
        expect_eq("a sample", imported, recorded)?;
    }
    Ok(())
}

fn samply(test: &Context<'_>) -> Verdict {
    let Some(folder) = std::env::var_os("PEERS_DIR") else {
        return skip("PEERS_DIR does not say where samply is");
    };
    let (profile, recording) = exported(test)?;
    let imported = test.fresh("samply.json.gz");
    let samply = Path::new(&folder).join("bin/samply");
    let call = test.program(samply).args(&["import", "--save-only", "-o"]).path(&imported);
    call.path(&recording).run()?.succeeded()?;
    let named = test.fresh("samply-named.json.gz");
    let call = test.nyquist(&["export", "--format", "firefox", "-o"]).path(&named).path(&imported);
    call.run()?.succeeded()?;
    let named = Profile::read(&named)?;
    expect_eq("samples", named.count(), profile.count())?;
    // Numbers of samples are compared, because weights are lost. samply counts each sample as an interval.
    let innermost = |profile: &Profile, function: &str| {
        profile
            .stacks()
            .filter(|(stack, _)| stack.last().is_some_and(|frame| frame.function == function))
            .count()
    };
    for function in ["alpha", "beta", "gamma_"] {
        expect_eq(function, innermost(&named, function), innermost(&profile, function))?;
    }
    Ok(())
}

fn names(test: &Context<'_>) -> Verdict {
    let folded = test.fresh("stacks.folded");
    std::fs::write(&folded, "app;outer::<T>;inner 30\napp;outer::<T>;other(int) 10\n")?;
    let recording = export(test, &folded)?;
    let text =
        perf(test, &["report", "--stdio", "-g", "none", "--no-children", "-F", "overhead,sym"], &recording)?;
    let line =
        |name: &str| text.lines().find(|line| line.contains(name)).unwrap_or_default().trim().to_owned();
    expect_contains("inner", &line("inner"), "75.00%")?;
    expect_contains("other", &line("other(int)"), "25.00%")?;
    let script = perf(test, &["script", "-F", "ip,sym"], &recording)?;
    expect_contains("perf script", &script, "outer::<T>")
}

/// A profile of the kernel of another machine.
fn kernel(test: &Context<'_>) -> Verdict {
    let sample = |time: u32, function: &str| {
        format!(
            "app 7 {time}.000000: 1000000 cpu-clock: \n\tffffffff81000010 {function}+0x10 ([kernel.kallsyms])\n\
             \tffffffff81000020 our_entry+0x1 ([kernel.kallsyms])\n\t401000 main+0x10 (/bin/app)\n\n"
        )
    };
    let text = test.fresh("stacks.perf");
    std::fs::write(&text, sample(1, "our_work") + &sample(2, "our_wait") + &sample(3, "our_work"))?;
    let recording = export(test, &text)?;
    let dsos =
        perf(test, &["report", "--stdio", "-g", "none", "--no-children", "--sort", "dso"], &recording)?;
    let rows: Vec<_> = dsos.lines().map(str::trim).filter(|line| line.contains('%')).collect();
    expect_eq("the rows by DSO", rows.join(", "), "100.00%  [kernel]".to_owned())?;
    let symbols =
        perf(test, &["report", "--stdio", "-g", "none", "--no-children", "--sort", "sym"], &recording)?;
    for (name, share) in [("our_work", "66.67%"), ("our_wait", "33.33%")] {
        let line = symbols.lines().find(|line| line.contains(name)).unwrap_or_default();
        expect_contains(name, line, share)?;
    }
    let script = perf(test, &["script", "-F", "ip,sym"], &recording)?;
    expect_contains("perf script", &script, "our_entry")
}

fn no_stream(test: &Context<'_>) -> Verdict {
    let folded = test.fresh("stacks.folded");
    std::fs::write(&folded, "a;b 1\n")?;
    let finished = test.nyquist(&["export", "--format", "perf.data"]).path(&folded).run()?;
    expect_eq("exit status", finished.code(), 1)?;
    expect_contains("the hint", &finished.stderr, "-o perf.data")
}
