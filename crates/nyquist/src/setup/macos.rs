//! `nyquist setup`: signs this program, so that the system lets it look at other programs. Nothing is changed
//! without confirmation.

use super::asking::agrees;
use super::replaced_program::replace;
use crate::args::SetupArgs;
use crate::failure::Failure;
use crate::page;
use nyquist_record::macos::{DEBUGGER_ENTITLEMENTS, sign_debugger};
use std::path::Path;
use std::{env, fs};

/// Runs the subcommand and returns the exit status.
pub(crate) fn run(args: SetupArgs) -> Result<u8, Failure> {
    let only_linux = [(args.lasting, "--lasting"), (args.capabilities, "--capabilities")];
    if let Some((_, option)) = only_linux.into_iter().find(|(is_given, _)| *is_given) {
        return Err(Failure::new(format!("{option} is for Linux: here, setup signs this program"))
            .hint(format!("leave out {option}")));
    }
    let program = env::current_exe().and_then(fs::canonicalize);
    let program =
        program.map_err(|error| Failure::because("cannot find the file of this program", &error))?;
    page::print(shown(&program, args.dry_run))?;
    if args.dry_run {
        page::print("Nothing was changed (--dry-run).\n")?;
    } else if agrees(args.yes)? {
        replace(&program, sign_debugger)?;
        page::print("Done.\n")?;
    }
    Ok(0)
}

/// The text to show before the change.
fn shown(program: &Path, dry_run: bool) -> String {
    let is = if dry_run { "would be" } else { "is" };
    format!(
        "This file {is} signed on this machine, with the entitlements {}:\n  {}\n      \
         nyquist can then record your programs; the system may ask for an administrator's password once\n      \
         a signature that it has now is replaced, and a new version of the file has to be signed again\n",
        DEBUGGER_ENTITLEMENTS.join(" and "),
        program.display()
    )
}
