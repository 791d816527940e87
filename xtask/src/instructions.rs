//! The step `instructions`: compares the instructions of unwinding and symbolication with a limit. They do
//! not depend on the load of the machine.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::builds;
use crate::tally::Tally;
use crate::workspace::Workspace;

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
const UNWINDING: &[Work] =
    &[Work { name: "walk", unit: "frame", most: 238.0 }, Work { name: "compile", unit: "row", most: 293.0 }];

/// The unit is an entry of debug info that is skipped. Most entries belong to functions that are not looked
/// up. Where names have scopes and no linkage names, the entries are read a second time.
const SYMBOLICATION: &[Work] = &[
    Work { name: "look-up", unit: "debug entry", most: 93.0 },
    Work { name: "look-up-of-scopes", unit: "debug entry", most: 148.0 },
];

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
    Ok(clean)
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
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?} under valgrind failed ({}):\n{said}", output.status);
    let collected = said.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok());
    let collected = collected.with_context(|| format!("callgrind counted nothing:\n{said}"))?;
    Ok((collected, String::from_utf8_lossy(&output.stdout).into_owned()))
}
