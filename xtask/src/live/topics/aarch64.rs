//! Recordings of 64-bit ARM: a program samples itself in an emulator. The stacks of `nyquist import` are
//! compared with those of libgcc's unwinder in the program, frame by frame. This needs Debian's
//! `gcc-aarch64-linux-gnu` and `qemu-user-static`.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::context::Context;
use super::expect::{Stop, Verdict, expect, expect_eq, skip};
use super::profile::Profile;
use super::test::Test;

pub(super) const TESTS: &[Test] = &[
    Test::new("stacks_in_an_emulator_are_libgccs", |test| stacks(test, &["-O2"])),
    Test::new("stacks_of_unoptimised_code_are_libgccs", |test| stacks(test, &["-O0"])),
    Test::new("stacks_without_frame_pointers_are_libgccs", |test| {
        stacks(test, &["-O2", "-fomit-frame-pointer"])
    }),
    Test::new("signed_return_addresses_unwind_as_by_libgcc", |test| {
        stacks(test, &["-O2", "-mbranch-protection=standard"])
    }),
];

/// The address at which a program is loaded that is not position-independent.
const IMAGE_BASE: u64 = 0x40_0000;

/// Words of a call chain that are not below this value name the context of the addresses that follow.
const CONTEXT: u64 = -4095_i64 as u64;

/// Builds the workload and runs it, and it samples itself at every instruction. Returns the program and the
/// recording.
fn record(test: &Context<'_>, flags: &[&str]) -> Result<(PathBuf, PathBuf), Stop> {
    let (program, recording) = (test.fresh("samples_itself"), test.fresh("arm.data"));
    let source = crate::paths::root().join("workloads/samples_itself.c");
    let compiler = test.program("aarch64-linux-gnu-gcc").args(&["-static", "-g"]).args(flags);
    match compiler.path(&source).args(&["-lm", "-o"]).path(&program).run() {
        Ok(finished) => drop(finished.succeeded()?),
        Err(error) => return skip(format_args!("there is no compiler for 64-bit ARM here: {error}")),
    }
    match test.program("qemu-aarch64-static").args(&["-singlestep"]).path(&program).path(&recording).run() {
        Ok(finished) => finished.succeeded().map(|_| (program, recording)).map_err(Into::into),
        Err(error) => skip(format_args!("there is no emulator of 64-bit ARM here: {error}")),
    }
}

/// The call chains of a recording's samples, innermost first, as addresses to look up.
fn chains(recording: &Path) -> Result<Vec<Vec<u64>>, Stop> {
    /// The offset of a sample's chain. Before it are the record's head, the instruction pointer, the thread,
    /// the time and the period.
    const CHAIN: usize = 40;
    const SAMPLE: u32 = 9;
    let bytes = std::fs::read(recording)?;
    let word = |at: usize| {
        bytes.get(at..at + 8).map_or(0, |b| b.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b)))
    };
    let (mut at, mut chains) = (word(40) as usize, Vec::new());
    let end = at + word(48) as usize;
    while at < end {
        let (kind, size) = (word(at) as u32, (word(at) >> 48) as usize);
        if kind == SAMPLE {
            let args = (1..=word(at + CHAIN) as usize).map(|number| word(at + CHAIN + 8 * number));
            let args: Vec<_> = args.filter(|word| *word < CONTEXT).collect();
            // The address after the emulator's own code is where a signal interrupted the program. It is not
            // a return address.
            let is_call = |depth: usize| depth > 0 && args[depth - 1] < 1 << 32;
            let addresses = args.iter().enumerate();
            chains.push(addresses.map(|(depth, address)| address - u64::from(is_call(depth))).collect());
        }
        expect(size > 0, "a record of no bytes")?;
        at += size;
    }
    Ok(chains)
}

/// The address range of the linker's stubs in a program.
fn stubs(program: &Path) -> Result<Range<u64>, Stop> {
    let sections = Command::new("aarch64-linux-gnu-readelf").arg("-SW").arg(program).output()?;
    let sections = String::from_utf8_lossy(&sections.stdout).into_owned();
    let line = sections.lines().find_map(|line| line.split_once("] .plt "));
    let mut numbers = line.into_iter().flat_map(|(_, rest)| rest.split_whitespace().skip(1));
    let mut number = || u64::from_str_radix(numbers.next().unwrap_or_default(), 16);
    let (start, _offset, size) = (number()?, number()?, number()?);
    Ok(start..start + size)
}

fn stacks(test: &Context<'_>, flags: &[&str]) -> Verdict {
    let (program, recording) = record(test, flags)?;
    let profile = test.fresh("arm.json.gz");
    test.nyquist(&["import", "-s", "-o"]).path(&profile).path(&recording).run()?.succeeded()?;
    let (profile, chains) = (Profile::read(&profile)?, chains(&recording)?);
    let (stubs, mut ended_in_stubs) = (stubs(&program)?, 0);
    let stacks: Vec<_> = profile.stacks().map(|(stack, _)| stack).collect();
    expect(chains.len() >= 500, format_args!("only {} samples", chains.len()))?;
    expect_eq("samples", stacks.len(), chains.len())?;
    for (number, (stack, chain)) in stacks.iter().zip(&chains).enumerate() {
        // The emulator's own code, to which a signal handler returns, is in no file.
        let is_in_file = |lib: &str| lib != "[JIT]";
        let frames = stack.iter().rev().filter(|frame| frame.inline_depth == 0);
        let frames = frames.filter(|frame| frame.lib.as_deref().is_some_and(is_in_file));
        let addresses: Vec<_> = frames.map(|frame| frame.address as u64 + IMAGE_BASE).collect();
        let in_program = |all: &[u64]| all.iter().copied().filter(|at| *at < 1 << 32).collect::<Vec<_>>();
        let root = stack.first().map(|frame| frame.function.as_str());
        expect(root == Some("_start"), format_args!("the root of sample {number} is {root:?}"))?;
        let (found, mut expected) = (in_program(&addresses), in_program(chain));
        // libgcc stops in the linker's stubs, which have no unwind information. The frames beyond them are
        // not compared.
        if expected.last().is_some_and(|last| stubs.contains(last)) {
            let behind = found.get(expected.len()..).unwrap_or_default();
            expected.extend_from_slice(behind);
            ended_in_stubs += 1;
        }
        expect_eq(&format!("the frames of sample {number}"), found, expected)?;
    }
    let few = chains.len() / 20;
    expect(ended_in_stubs <= few, format_args!("libgcc ended in stubs {ended_in_stubs} times"))?;
    let names = ["main", "recurses", "sorts", "formats"];
    names.into_iter().try_for_each(|name| {
        let share = profile.total_share(name);
        expect(share > 0.005, format_args!("{share} of the samples are in {name}"))
    })
}
