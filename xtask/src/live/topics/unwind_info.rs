//! Stacks through files with little information: Go programs without symbols and debug information, and
//! programs without section headers.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::context::Context;
use super::expect::{Stop, Verdict, expect_measured, skip};
use super::profile::{Frame, Profile};
use super::stacks::{begins_at_start, expect_roots};
use super::test::{SHARES, Test};

pub(super) const TESTS: &[Test] = &[
    Test::new("stripped_go_stacks_end_where_go_begins", |test| go(test, "-s -w", "exe")).in_pairs(SHARES),
    Test::new("stripped_pie_go_stacks_end_where_go_begins", |test| go(test, "-s -w", "pie")).in_pairs(SHARES),
    Test::new("go_stacks_with_debug_info_end_where_go_begins", |test| go(test, "", "exe")).in_pairs(SHARES),
    Test::new("stacks_begin_at_start_without_section_headers", no_section_headers).in_pairs(SHARES),
];

/// The functions of Go's runtime that have no caller, or no caller on their stack.
const ROOTS: &[&str] = &[
    "_rt0_amd64_linux",
    "runtime.asmcgocall",
    "runtime.goexit",
    "runtime.mcall",
    "runtime.morestack",
    "runtime.mstart",
    "runtime.rt0_go",
    "runtime.systemstack",
];

fn file_name(program: &Path) -> Option<String> {
    Some(program.file_name()?.to_string_lossy().into_owned())
}

/// The address at which a program is linked: its lowest segment, rounded down to a page.
fn image_base(program: &Path) -> Result<i64, Stop> {
    const LOADED: i64 = 1;
    let bytes = fs::read(program)?;
    let number = |at: usize, len: usize| {
        let bytes = bytes.get(at..at + len).unwrap_or_default();
        bytes.iter().rev().fold(0, |number, byte| number << 8 | i64::from(*byte))
    };
    let headers = (0..number(0x38, 2) as usize).map(|header| number(0x20, 8) as usize + 56 * header);
    let loaded = headers.filter(|header| number(*header, 4) == LOADED);
    Ok(loaded.map(|header| number(header + 16, 8) & !0xfff).min().unwrap_or_default())
}

/// Builds the workload with these flags for the linker.
fn build(test: &Context<'_>, name: &str, flags: &str, mode: &str) -> Result<PathBuf, Stop> {
    let (program, source) = (test.fresh(name), crate::paths::root().join("workloads/routines.go"));
    let (flags, mode) = (format!("-ldflags={flags}"), format!("-buildmode={mode}"));
    let cache = test.path("go-cache").display().to_string();
    let build = test.program("go").env("GOCACHE", cache).args(&["build", &flags, &mode, "-o"]);
    match build.path(&program).path(&source).run() {
        Ok(finished) => finished.succeeded().map(|_| program).map_err(Into::into),
        Err(_) => skip("go is not installed"),
    }
}

/// The addresses of a program's functions, and whether each is a root.
fn functions(test: &Context<'_>, program: &Path) -> Result<Vec<(i64, bool)>, Stop> {
    let finished = test.program("go").args(&["tool", "nm", "-n"]).path(program).run()?.succeeded()?;
    let function = |line: &str| {
        let mut args = line.split_whitespace();
        let address = i64::from_str_radix(args.next()?, 16).ok()?;
        args.next().filter(|kind| matches!(*kind, "T" | "t"))?;
        let name = args.next()?;
        Some((address, ROOTS.contains(&name.trim_end_matches(".abi0"))))
    };
    Ok(finished.stdout_text().lines().filter_map(function).collect())
}

fn go(test: &Context<'_>, flags: &str, mode: &str) -> Verdict {
    let program = build(test, "routines", flags, mode)?;
    // In a build with symbols, the same code has the same addresses.
    let functions = functions(test, &build(test, "routines-with-symbols", "", mode)?)?;
    let base = image_base(&program)?;
    let name = file_name(&program);
    let recorded = test.record_command(&[&program.display().to_string(), "1500"]).run_well()?;
    let profile = &recorded.profile;
    let is_root = |frame: &Frame| {
        let after = functions.partition_point(|(start, _)| *start <= frame.address + base);
        frame.lib == name && after.checked_sub(1).is_some_and(|at| functions[at].1)
    };
    let complete = profile.share_of_stacks(|stack| stack.first().is_some_and(|root| is_root(root)));
    println!("        go {flags} {mode}: {complete:.4} complete of {}; {}", profile.total(), ends(profile));
    expect_measured(profile.total() > 500.0, format_args!("only {} samples", profile.total()))?;
    expect_measured(
        complete > 0.97,
        format_args!("{complete} of the stacks end where Go begins: {}", ends(profile)),
    )?;
    let deep = profile.share_of_stacks(|stack| stack.len() > 5);
    expect_measured(deep > 0.3, format_args!("only {deep} of the stacks have more than five frames"))
}

/// The roots of truncated stacks, with their weight.
fn ends(profile: &Profile) -> String {
    let roots = profile.roots();
    let missing = roots.iter().filter(|(root, _)| root.starts_with("(truncated"));
    let missing: Vec<_> = missing.map(|(root, weight)| format!("{weight} {root}")).collect();
    missing.join(", ")
}

/// The program without section headers, and the address range of its first function.
fn without_section_headers(test: &Context<'_>, workload: &str) -> Result<(PathBuf, Range<i64>), Stop> {
    let mut bytes = fs::read(test.workload(workload))?;
    let entry =
        bytes.get(0x18..0x20).and_then(|entry| entry.first_chunk()).map_or(0, |b| i64::from_le_bytes(*b));
    for field in [0x28..0x30, 0x3c..0x40] {
        bytes.get_mut(field).into_iter().for_each(|field| field.fill(0));
    }
    let path = test.fresh("no-sections");
    fs::copy(test.workload(workload), &path)?;
    fs::write(&path, bytes)?;
    Ok((path, entry..entry + 0x40))
}

fn no_section_headers(test: &Context<'_>) -> Verdict {
    let (program, start) = without_section_headers(test, "shares")?;
    let name = file_name(&program);
    let recorded = test.record_command(&[&program.display().to_string(), "600"]).run_well()?;
    expect_roots(&recorded.profile, |stack| {
        let is_entry = |root: &&Frame| root.lib == name && start.contains(&root.address);
        begins_at_start(stack) || stack.first().is_some_and(is_entry)
    })
}
