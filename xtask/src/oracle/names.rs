//! Names of C++, compared with c++filt: all in the C++ library and in the LLVM of rustc.

use std::process::Command;

use anyhow::Result;

use super::rows::{libraries_of_gcc, libraries_of_rustc};
use crate::steps::succeeds_seen;
use crate::tally::Tally;
use crate::workspace::Workspace;

/// Compares every name. This is skipped if the crates of the workspace cannot be fetched.
pub(super) fn check(tally: &mut Tally) -> Result<bool> {
    let Some(workspace) = Workspace::fetched("benches/symbols", "oracle", tally) else { return Ok(true) };
    let mut check = Command::new(workspace.build("check-names")?);
    check.args(libraries_of_gcc()?).args(libraries_of_rustc()?);
    succeeds_seen(check, |line| {
        if let Some(reason) = line.strip_prefix("skipped: ") {
            tally.skip("oracle", reason);
        }
    })
}
