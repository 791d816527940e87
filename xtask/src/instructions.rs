//! The step `instructions`: compares the instructions of unwinding and symbolication with a limit. They do
//! not depend on the load of the machine.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::live::harness::made_recording::MadeRecording;
use crate::tally::Tally;
use crate::workspace::Workspace;
use crate::{builds, paths};

/// Work that a program repeats.
struct Work {
    /// The name that the program uses for it.
    name: &'static str,
    /// The counted unit.
    unit: &'static str,
    /// The limit of instructions for one unit. It is a few per cent above the count when the limit was last
    /// set.
    most: f64,
}

/// Stacks and modules are generated, and are the same on every machine. The limits apply to a development
/// build, which is not optimised across crates.
const UNWINDING: &[Work] = &[
    Work { name: "walk", unit: "frame", most: 238.0 },
    Work { name: "compile", unit: "row", most: 293.0 },
    Work { name: "map", unit: "mapping", most: 2000.0 },
];

/// The unit is an entry of debug info that is skipped. Most entries belong to functions that are not looked
/// up. Where names have scopes and no linkage names, the entries are read a second time.
const SYMBOLICATION: &[Work] = &[
    Work { name: "look-up", unit: "debug entry", most: 93.0 },
    Work { name: "look-up-of-scopes", unit: "debug entry", most: 148.0 },
];

/// The most instructions of an import for a mapping at a lower address than all before it. If these were put into a
/// list, each would move the others, and the count would grow with their number.
const MAX_FOR_A_MAPPING: f64 = 15_000.0;

/// The numbers of mappings in two files. The difference contains only the work for mappings.
const MAPPINGS: (u32, u32) = (2_000, 22_000);

/// The passes of two runs. The difference contains only warm work.
const PASSES: (u32, u32) = (2, 12);

/// Counts the instructions, and returns whether all counts are within their limits.
pub(crate) fn run(tally: &mut Tally) -> Result<bool> {
    if cfg!(not(target_arch = "x86_64")) {
        tally.skip("instructions", "the bars are those of 64-bit x86");
        return Ok(true);
    }
    let mut clean = hold(&builds::symbolication()?, SYMBOLICATION)?;
    if let Some(workspace) = Workspace::fetched("benches/unwind", "instructions", tally) {
        clean &= hold(&workspace.build("count")?, UNWINDING)?;
    }
    clean &= hold_mappings(&builds::development()?)?;
    Ok(clean)
}

/// Returns whether the import of mappings at falling addresses is within its limit.
fn hold_mappings(nyquist: &Path) -> Result<bool> {
    let (few, many) = (count_mappings(nyquist, MAPPINGS.0)?, count_mappings(nyquist, MAPPINGS.1)?);
    ensure!(few < many, "more mappings took no more instructions");
    let each = (many - few) as f64 / f64::from(MAPPINGS.1 - MAPPINGS.0);
    println!("import: {each:.1} instructions a mapping; {MAX_FOR_A_MAPPING:.0} are allowed");
    Ok(each <= MAX_FOR_A_MAPPING)
}

/// The instructions for importing a recording of so many mappings at falling addresses.
fn count_mappings(nyquist: &Path, mappings: u32) -> Result<u64> {
    let mut recording = MadeRecording::default();
    for number in (0..mappings).rev() {
        recording.map(1, (u64::from(number) + 8) << 13, 1 << 12, "/x/a");
        if number % 100 == 0 {
            recording.sample(1, 8 << 13);
        }
    }
    let folder = paths::target().join("tmp/instructions");
    fs::create_dir_all(&folder)?;
    let (input, output) = (folder.join("perf.data"), folder.join("profile.json"));
    fs::write(&input, recording.bytes())?;
    let mut import = Command::new(nyquist);
    import.args(["import", "--save-only", "--no-symbols"]).arg(&input).arg("-o").arg(&output);
    Ok(collected(&import)?.0)
}

/// Returns whether all work of a program is within its limits.
fn hold(program: &Path, all: &[Work]) -> Result<bool> {
    let mut clean = true;
    for work in all {
        let ((few, done_few), (many, done_many)) =
            (count(program, work, PASSES.0)?, count(program, work, PASSES.1)?);
        ensure!(done_few < done_many && few < many, "{}: more passes did no more", work.name);
        let each = (many - few) as f64 / (done_many - done_few) as f64;
        println!("{}: {each:.1} instructions a {}; {:.0} are allowed", work.name, work.unit, work.most);
        clean &= each <= work.most;
    }
    Ok(clean)
}

/// The instructions of a run, and the number of its units.
fn count(program: &Path, work: &Work, passes: u32) -> Result<(u64, u64)> {
    let (instructions, done) = collected(Command::new(program).arg(work.name).arg(passes.to_string()))?;
    Ok((instructions, done.trim().parse().with_context(|| format!("no count of what was done: {done}"))?))
}

/// The instructions of a program's run, and its output.
pub(crate) fn collected(command: &Command) -> Result<(u64, String)> {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    valgrind.arg(command.get_program()).args(command.get_args());
    let output = valgrind.output().context("cannot start valgrind")?;
    let printed = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?} under valgrind failed ({}):\n{printed}", output.status);
    let collected = printed.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok());
    let collected = collected.with_context(|| format!("callgrind counted nothing:\n{printed}"))?;
    Ok((collected, String::from_utf8_lossy(&output.stdout).into_owned()))
}
