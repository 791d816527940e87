//! Functions, files, lines and inlined calls of small programs, made by every compiler at hand in every way of writing debug info, as
//! addr2line, pdb-addr2line and llvm-symbolizer answer them.

use std::process::Command;

use anyhow::Result;

use crate::steps::succeeds_seen;
use crate::tally::Tally;
use crate::workspace::Workspace;

/// Programs with DWARF.
pub(super) fn check_lines(tally: &mut Tally) -> Result<bool> {
    check("check-lines", tally)
}

/// A program of Windows with its PDB.
pub(super) fn check_pdb(tally: &mut Tally) -> Result<bool> {
    check("check-pdb", tally)
}

/// Runs a program that makes what it compares, and says itself which tools are missing here.
fn check(program: &str, tally: &mut Tally) -> Result<bool> {
    let Some(workspace) = Workspace::fetched("benches/symbols", "oracle", tally) else { return Ok(true) };
    let check = Command::new(workspace.build(program)?);
    succeeds_seen(check, |line| {
        if let Some(reason) = line.strip_prefix("skipped: ") {
            tally.skip("oracle", reason);
        }
    })
}
