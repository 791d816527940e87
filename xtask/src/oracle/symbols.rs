//! Functions, files, lines and inlined calls of small programs, compared with addr2line, pdb-addr2line and
//! llvm-symbolizer. Every available compiler makes the programs, in every form of debug info.

use std::process::Command;

use anyhow::Result;

use crate::steps::succeeds_seen;
use crate::tally::Tally;
use crate::workspace::Workspace;

/// Checks programs with DWARF.
pub(super) fn check_lines(tally: &mut Tally) -> Result<bool> {
    check("check-lines", tally)
}

/// Checks a program for Windows with its PDB.
pub(super) fn check_pdb(tally: &mut Tally) -> Result<bool> {
    check("check-pdb", tally)
}

/// Runs a checking program. It makes the programs that it compares, and reports which tools are missing here.
fn check(program: &str, tally: &mut Tally) -> Result<bool> {
    let Some(workspace) = Workspace::fetched("benches/symbols", "oracle", tally) else { return Ok(true) };
    let check = Command::new(workspace.build(program)?);
    succeeds_seen(check, |line| {
        if let Some(reason) = line.strip_prefix("skipped: ") {
            tally.skip("oracle", reason);
        }
    })
}
