//! `cargo nyquist`: builds the program that cargo would run, and records it the way cargo would run it.
//!
//! Cargo itself builds the program and determines how to run it. This program is configured as cargo's
//! `runner`, so cargo calls it instead of the program ([`launch`]). It reports the arguments, the folder
//! and the environment. So it needs to repeat none of cargo's rules for them.

mod advice;
mod build;
mod calls;
mod choose;
mod configuration;
mod frame_pointers;
mod harness;
mod launch;
mod targets;

use crate::args::cargo::{self, BenchArgs, CargoCommand, CommonArgs, RunArgs, TestArgs};
use crate::completions::{self, Program};
use crate::failure::Failure;
use crate::{page, shell};
use build::{Build, Built, Outcome};
use calls::{CARGO_FAILED, current_folder, this_program};
use choose::Candidate;
use launch::Launch;
use nyquist_system::replace_process;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use targets::{Metadata, Selection, TargetKind};

/// Runs `cargo nyquist` with these arguments and returns the exit status. The recorder replaces this process.
pub(crate) fn run(argv: Vec<OsString>) -> Result<u8, Failure> {
    match cargo::parse(argv)?.command {
        CargoCommand::Run(args) => run_program(args),
        CargoCommand::Example(args) => {
            run_only(TargetKind::Example, args.name.as_deref(), &args.common, &args.args)
        }
        CargoCommand::Bench(args) => run_benchmark(&args),
        CargoCommand::Test(args) => run_test(&args),
        CargoCommand::Launch { argv } => launch::report(argv),
        CargoCommand::Completions { shell } => {
            page::print_script(&completions::script(shell, Program::CargoNyquist)).map(|()| 0)
        }
    }
}

fn run_program(args: RunArgs) -> Result<u8, Failure> {
    let RunArgs { bin, example, bench, test, common, args } = args;
    if bench.is_some() {
        return run_benchmark(&BenchArgs { filter: None, bench, lib: false, profile_time: 5, common, args });
    }
    if test.is_some() {
        return run_test(&TestArgs { filter: None, test, lib: false, bin: None, common, args });
    }
    match example {
        Some(name) => run_only(TargetKind::Example, Some(&name), &common, &args),
        None => run_only(TargetKind::Bin, bin.as_deref(), &common, &args),
    }
}

/// Records the only program that `cargo run` runs.
fn run_only(
    kind: TargetKind,
    name: Option<&str>,
    common: &CommonArgs,
    own: &[OsString],
) -> Result<u8, Failure> {
    let selection = select(kind, name, common)?;
    let build = Build::new("run", common, &selection.argv)?;
    if common.dry_run {
        return dry_run(&build, common, (kind, &selection), own);
    }
    match build.run()? {
        Outcome::Failed(status) => Ok(status),
        Outcome::Built(built) => record(&built, built.only()?, common, &build, own),
    }
}

/// The target that the user named, or the only one.
fn select(kind: TargetKind, name: Option<&str>, common: &CommonArgs) -> Result<Selection, Failure> {
    match name {
        Some(name) => Ok(Selection::named(kind, name)),
        None => Metadata::read(&common.cargo)?.select(kind, &common.cargo),
    }
}

fn run_benchmark(args: &BenchArgs) -> Result<u8, Failure> {
    let common = &args.common;
    let selection = if args.lib {
        Selection::of_words(&["--lib"])
    } else {
        select(TargetKind::Bench, args.bench.as_deref(), common)?
    };
    let build = Build::new("bench", common, &selection.argv)?;
    let own = args.filter.iter().map(OsString::from).chain(args.args.iter().cloned());
    if common.dry_run {
        let own: Vec<_> = ["--bench".into()].into_iter().chain(own).collect();
        return dry_run(&build, common, (TargetKind::Bench, &selection), &own);
    }
    let built = match build.run()? {
        Outcome::Failed(status) => return Ok(status),
        Outcome::Built(built) => built,
    };
    let mut has_any = false;
    for launch in &built.launches {
        has_any |= harness::has_benchmarks(launch)?;
    }
    if !has_any && !built.launches.is_empty() {
        let hint =
            "`cargo nyquist run` and `cargo nyquist test` record the programs and tests that there are";
        return Err(Failure::new("there are no benchmarks").hint(hint).status(CARGO_FAILED));
    }
    let launch = built.choose("bench")?;
    let is_set = args.args.iter().any(|word| word == "--profile-time");
    // With this, Criterion only runs the benchmark, without warm-up, analysis and comparison.
    let profile_time = if harness::is_criterion(&launch.program())? && !is_set {
        vec!["--profile-time".into(), args.profile_time.to_string().into()]
    } else {
        Vec::new()
    };
    record(&built, launch, common, &build, &profile_time.into_iter().chain(own).collect::<Vec<_>>())
}

fn run_test(args: &TestArgs) -> Result<u8, Failure> {
    let common = &args.common;
    let selection = match (&args.test, &args.bin) {
        (Some(name), _) => Selection::named(TargetKind::Test, name),
        (None, Some(name)) => Selection::named(TargetKind::Bin, name),
        (None, None) if args.lib => Selection::of_words(&["--lib"]),
        // Without documentation tests, which are no separate programs.
        (None, None) => Selection::of_words(&["--tests"]),
    };
    let build = Build::new("test", common, &selection.argv)?;
    if common.dry_run {
        let mut own = harness::one_test(args.filter.as_deref().unwrap_or("NAME"));
        own.extend(args.args.iter().cloned());
        return dry_run(&build, common, (TargetKind::Test, &selection), &own);
    }
    let built = match build.run()? {
        Outcome::Failed(status) => return Ok(status),
        Outcome::Built(built) => built,
    };
    let Test { launch, mut argv } = find_test(&built, args.filter.as_deref())?;
    argv.extend(args.args.iter().cloned());
    record(&built, launch, common, &build, &argv)
}

/// A test, and the arguments that run it alone.
struct Test<'a> {
    launch: &'a Launch,
    argv: Vec<OsString>,
}

/// The test with exactly this name, or the only one whose name contains it, or the one that the user chooses.
fn find_test<'a>(built: &'a Built, filter: Option<&str>) -> Result<Test<'a>, Failure> {
    let mut found = Vec::new();
    for launch in &built.launches {
        let target = built.target_name(launch);
        if harness::is_libtest(&launch.program())? {
            let names = harness::list_tests(launch)?;
            found.extend(names.into_iter().map(|name| (name, Some(()), launch, target.clone())));
        } else {
            // The tests of such a harness cannot be selected from outside.
            found.push((target.clone(), None, launch, target));
        }
    }
    let filter = filter.unwrap_or_default();
    let exact = found.iter().any(|(name, ..)| name == filter);
    found.retain(|(name, ..)| if exact { name == filter } else { name.contains(filter) });
    let candidates = found.into_iter().map(|(name, in_libtest, launch, target)| {
        let argv = if in_libtest.is_some() { harness::one_test(&name) } else { Vec::new() };
        Candidate {
            label: format!("{name} (in {target})"),
            argv: format!("cargo nyquist test {}", shell::quoted(name.as_ref())),
            value: Test { launch, argv },
        }
    });
    let none = if filter.is_empty() {
        "there are no tests".to_owned()
    } else {
        format!("no test's name contains `{filter}`")
    };
    choose::one(candidates.collect(), "test", &none)
}

/// Records a program the way cargo would have run it, by replacing this process.
fn record(
    built: &Built,
    launch: &Launch,
    common: &CommonArgs,
    build: &Build,
    own: &[OsString],
) -> Result<u8, Failure> {
    if !common.record.quiet() {
        advice::give(built, launch, build.profile());
    }
    let mut command = recorder(common, &launch.folder, launch.argv.iter().chain(own))?;
    command.envs(build.without_own(&launch.variables)).current_dir(&launch.folder);
    let error = replace_process(&mut command);
    Err(Failure::because("the recorder cannot be started", &error))
}

/// The call of `nyquist record`.
fn recorder<'a>(
    common: &CommonArgs,
    folder: &Path,
    argv: impl IntoIterator<Item = &'a OsString>,
) -> Result<Command, Failure> {
    let mut command = Command::new(this_program()?);
    command.arg("record").args(common.record.argv(&current_folder()?, folder)).arg("--").args(argv);
    Ok(command)
}

/// Prints the commands that would be run.
fn dry_run(
    build: &Build,
    common: &CommonArgs,
    (kind, selection): (TargetKind, &Selection),
    own: &[OsString],
) -> Result<u8, Failure> {
    let here = current_folder()?;
    let program = Metadata::read(&common.cargo)?.place(kind, selection, build, &here);
    let argv = [OsString::from(&program.path)];
    let recorder = recorder(common, &program.folder, argv.iter().chain(own))?;
    let built = shell::line(build.command());
    let change = if program.folder == here {
        String::new()
    } else {
        format!("cd {} && ", shell::quoted(program.folder.as_os_str()))
    };
    page::print(format!("{built}\n{change}{}\n", shell::line(&recorder)))?;
    Ok(0)
}
