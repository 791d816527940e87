//! Recordings of Android's simpleperf, which also records on Linux. The program comes from `PEERS_DIR` or
//! from PATH.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::context::Context;
use super::expect::{Stop, Verdict, expect, expect_contains, expect_eq, need_root, skip};
use super::profile::Profile;
use super::test::Test;

pub(super) const TESTS: &[Test] = &[
    Test::new("frame_pointers_are_as_simpleperf_reports_them", frame_pointers),
    Test::new("stacks_that_it_unwound_reach_main", unwound),
    Test::new("names_come_from_the_file_and_lines_from_cache", binary_cache),
    Test::new("time_off_the_cpu_is_waiting", off_cpu),
];

fn simpleperf() -> PathBuf {
    let there = std::env::var_os("PEERS_DIR").map(|folder| Path::new(&folder).join("bin/simpleperf"));
    there.filter(|path| path.is_file()).unwrap_or_else(|| PathBuf::from("simpleperf"))
}

/// Records a program.
fn record(test: &Context<'_>, options: &[&str], program: &Path, args: &[&str]) -> Result<PathBuf, Stop> {
    let recording = test.fresh("simpleperf.data");
    let call = test.program(simpleperf()).args(&["record", "-e", "cpu-clock"]).args(options).args(&["-o"]);
    match call.path(&recording).args(&["--"]).path(program).args(args).run() {
        Ok(finished) => finished.succeeded().map(|_| recording).map_err(Into::into),
        Err(error) => skip(format_args!("there is no simpleperf here: {error}")),
    }
}

fn import(test: &Context<'_>, recording: &Path, options: &[&str]) -> Result<(Profile, String), Stop> {
    let profile = test.fresh("imported.json.gz");
    let call = test.nyquist(&["import", "-s", "-o"]).path(&profile).args(options).path(recording);
    let finished = call.run()?.succeeded()?;
    Ok((Profile::read(&profile)?, finished.stderr))
}

/// How often each call chain occurs in simpleperf's output, innermost function first.
fn its_chains(test: &Context<'_>, recording: &Path) -> Result<BTreeMap<String, usize>, Stop> {
    let call = test.program(simpleperf()).args(&["report-sample", "--show-callchain", "-i"]).path(recording);
    let text = call.run()?.succeeded()?.stdout_text();
    let samples = text.split("sample:\n").skip(1).map(|sample| {
        let symbols = sample.lines().filter_map(|line| line.trim().strip_prefix("symbol: "));
        symbols.map(str::to_owned).collect::<Vec<_>>()
    });
    Ok(counted(samples))
}

fn our_chains(profile: &Profile) -> BTreeMap<String, usize> {
    let names = |frames: Vec<&super::profile::Frame>| {
        frames.into_iter().rev().map(|frame| frame.function.clone()).collect::<Vec<_>>()
    };
    counted(profile.stacks().map(|(frames, _)| names(frames)))
}

/// Counts the chains of the workload's own functions. The names of other functions depend on the source of
/// their symbols.
fn counted(chains: impl Iterator<Item = Vec<String>>) -> BTreeMap<String, usize> {
    const OWN: [&str; 5] = ["alpha", "beta", "gamma_", "middle", "main"];
    let mut counts = BTreeMap::new();
    for chain in chains {
        let own: Vec<_> = chain.into_iter().filter(|name| OWN.contains(&name.as_str())).collect();
        *counts.entry(own.join(";")).or_default() += 1;
    }
    counts
}

fn frame_pointers(test: &Context<'_>) -> Verdict {
    let recording = record(test, &["-f", "1000", "--call-graph", "fp"], &test.workload("shares"), &["400"])?;
    let (profile, _) = import(test, &recording, &[])?;
    expect(profile.self_share("alpha") > 0.3, "no share of alpha")?;
    expect_eq("call chains", our_chains(&profile), its_chains(test, &recording)?)
}

fn unwound(test: &Context<'_>) -> Verdict {
    let recording = record(test, &["-f", "1000", "-g"], &test.workload("shares"), &["400"])?;
    let (profile, _) = import(test, &recording, &[])?;
    let under_main = profile.total_share("main");
    expect(under_main > 0.95, format_args!("only {under_main} of the samples are under main"))?;
    expect_eq("call chains", our_chains(&profile), its_chains(test, &recording)?)
}

fn binary_cache(test: &Context<'_>) -> Verdict {
    let (program, cache) = (test.fresh("gone"), test.fresh("binary_cache"));
    std::fs::copy(test.workload("shares"), &program)?;
    let recording = record(test, &["-f", "1000", "-g"], &program, &["300"])?;
    std::fs::create_dir_all(&cache)?;
    let name = program.strip_prefix("/").map_err(|error| Stop::Failed(error.to_string()))?;
    let cached = cache.join(name);
    std::fs::create_dir_all(cached.parent().unwrap_or(&cache))?;
    std::fs::rename(&program, &cached)?;
    let has_lines = |profile: &Profile| {
        profile.share_with(|frame| frame.function == "alpha" && frame.line.is_some()) > 0.3
    };
    let (from_file, printed) = import(test, &recording, &[])?;
    expect(from_file.self_share("alpha") > 0.3, "no share of alpha")?;
    expect(!printed.contains(&program.display().to_string()), &printed)?;
    expect(!has_lines(&from_file), "the recording has lines")?;
    let folder = cache.display().to_string();
    let (from_cache, _) = import(test, &recording, &["--simpleperf-binary-cache", &folder])?;
    expect(has_lines(&from_cache), "no lines of alpha")?;
    expect_eq("call chains", our_chains(&from_cache), our_chains(&from_file))
}

fn off_cpu(test: &Context<'_>) -> Verdict {
    need_root()?;
    let recording =
        record(test, &["-f", "1000", "--call-graph", "fp", "--trace-offcpu"], Path::new("sleep"), &["0.3"])?;
    let profile = test.fresh("waits.json.gz");
    let call = test.nyquist(&["import", "-s", "--profile-version", "66", "-o"]).path(&profile);
    call.path(&recording).run()?.succeeded()?;
    let text = Profile::read(&profile)?.json.to_string();
    expect_contains("the profile", &text, "nyquistOffCpuWeight")?;
    expect_contains("the profile", &text, "nanosleep")
}
